"""Changes lists of names in the user's `config.yaml` and leaves every other byte as it was.

One change is: lock, read, put the names in or take them out (`yaml_text`), read the result with
the parser that Hermes reads it with, compare, write a new file beside it, swap. Whatever goes
wrong before the swap leaves the file as it was.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hermes_ext._files import locked, remove_leftovers, replace_file
from hermes_ext._regular import read_regular
from hermes_ext._text import printable
from hermes_ext._values import frozen
from hermes_ext.exceptions import ConfigError
from hermes_ext.settings.yaml_nodes import Unreadable, compose, line_of_error
from hermes_ext.settings.yaml_text import TextRefusedError, YamlText, is_key

_BOM = b"\xef\xbb\xbf"
_ATTEMPTS = 5
_NULL = "tag:yaml.org,2002:null"


@frozen
class ListEdit:
    """Names to put into and to take out of the list at `section.key`.

    Names that are there already, or that are not there to be taken out, are no change. keep_empty:
    a list that has lost its last name stays; else it goes, where it has its lines for itself.
    """

    section: str
    key: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    keep_empty: bool = True

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.key}"


@frozen
class Change:
    """What one edit did: the dotted key, and the entries as they stand or stood in the file."""

    key: str
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values with the same keys."""
        return {"key": self.key, "added": list(self.added), "removed": list(self.removed)}


@frozen
class Edited:
    """What came of `edit_lists`. `path`: the real file behind links; `changes`: no empty ones."""

    path: Path
    changes: tuple[Change, ...]


def edit_lists(
    path: Path,
    edits: Sequence[ListEdit],
    *,
    same: Callable[[str], str] = str,
    lock_seconds: float = 10.0,
) -> Edited:
    """Applies all edits in one write, or none of them.

    `same` maps each spelling of a name to one form; entries of one form count as one name. A
    missing file, section or key is made when something is to be added. Nothing is written, not
    even a lock file, when there is nothing to change.

    Raises ConfigError, with the file as it was, where the file does not parse, is not UTF-8, has
    several documents or a key twice, has something else than a list of names at a key, is locked
    for longer than `lock_seconds`, or cannot be read or written.
    """
    real = Path(os.path.realpath(path))
    try:
        plan = _plan(real, _read(real), edits, same)
        if not plan.changes:
            return Edited(real, ())
        real.parent.mkdir(parents=True, exist_ok=True)
        with locked(real, lock_seconds):
            return _edit_locked(real, plan, edits, same)
    except OSError as error:
        raise ConfigError(
            f"the file cannot be changed: {error.strerror or error}; nothing was written",
            path=real,
            hint="Check who owns the file and its folder, and their permissions",
        ) from error


def read_list(path: Path, section: str, key: str) -> tuple[str, ...]:
    """The names at `section.key` as they are written; () where file, section or key is missing.

    Raises ConfigError as `edit_lists` does, without a word of writing.
    """
    real = Path(os.path.realpath(path))
    try:
        data = _read(real)
    except OSError as error:
        told = f"the file cannot be read: {error.strerror or error}"
        raise ConfigError(told, path=real) from error
    with _located(real):
        return _parsed(real, data).entries(section, key)


@frozen
class _Plan:
    before: bytes | None
    data: bytes
    changes: tuple[Change, ...]


def _edit_locked(
    real: Path, plan: _Plan, edits: Sequence[ListEdit], same: Callable[[str], str]
) -> Edited:
    remove_leftovers(real)
    for _ in range(_ATTEMPTS):
        before = _read(real)
        if before != plan.before:  # while this one waited for the lock
            plan = _plan(real, before, edits, same)
        if not plan.changes:
            return Edited(real, ())
        if replace_file(real, plan.data, still=partial(_is_still, real, before)):
            return Edited(real, plan.changes)
    told = "another program keeps writing this file; nothing was written"
    raise ConfigError(told, path=real, hint="Try again when it is done")


def _read(real: Path) -> bytes | None:
    try:
        return read_regular(real)
    except FileNotFoundError:
        return None


def _is_still(real: Path, data: bytes | None) -> bool:
    return _read(real) == data


def _plan(
    real: Path, data: bytes | None, edits: Sequence[ListEdit], same: Callable[[str], str]
) -> _Plan:
    with _told_unwritten():
        before = _parsed(real, data)
        with _located(real):
            text, changes = before, []
            for edit in edits:
                text, change = _applied(text, edit, same)
                if change.added or change.removed:
                    changes.append(change)
            removed = {change.key for change in changes if change.removed}
            for edit in edits:
                if edit.dotted in removed and not edit.keep_empty:
                    text = YamlText.parse(text.without_empty(edit.section, edit.key).text)
    if not changes:
        return _Plan(data, data or b"", ())
    with _told_unwritten(), _located(real):
        _check_nothing_else_changed(real, before, text, edits, changes)
    mark = _BOM if (data or b"").startswith(_BOM) else b""
    return _Plan(data, mark + text.text.encode(), tuple(changes))


def _applied(text: YamlText, edit: ListEdit, same: Callable[[str], str]) -> tuple[YamlText, Change]:
    added, removed = [], []
    gone = {same(name) for name in edit.remove}
    for entry in text.entries(edit.section, edit.key):
        if same(entry) in gone:
            removed.append(entry)
            changed = text.removing(edit.section, edit.key, lambda name: same(name) in gone)
            text = YamlText.parse(changed.text)
    for name in edit.add:
        if same(name) not in map(same, text.entries(edit.section, edit.key)):
            added.append(name)
            text = YamlText.parse(text.adding(edit.section, edit.key, name).text)
    return text, Change(edit.dotted, tuple(added), tuple(removed))


@contextlib.contextmanager
def _told_unwritten() -> Iterator[None]:
    """Adds to an error about the file that it stays as it is, and what to do then."""
    try:
        yield
    except ConfigError as error:
        error.message += "; nothing was written"
        error.hint = error.hint or "Change the file by hand, then run this again"
        raise


@contextlib.contextmanager
def _located(real: Path) -> Iterator[None]:
    """Turns what the text refuses into an error that names the file."""
    try:
        yield
    except TextRefusedError as error:
        # Texts of the file are quoted in it, which may have several lines.
        key = None if error.key is None else printable(error.key)
        told = printable(error.reason)
        raise ConfigError(told, path=real, line=error.line, key=key) from None


def _parsed(real: Path, data: bytes | None) -> YamlText:
    data = data or b""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        told = "the file is UTF-16, which Hermes cannot read"
        raise ConfigError(told, path=real, hint="Save it as UTF-8")
    try:
        text = data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        line, hint = data.count(b"\n", 0, error.start) + 1, "Save it as UTF-8"
        raise ConfigError("the file is not UTF-8", path=real, line=line, hint=hint) from None
    with _located(real):
        _model(text)
        return YamlText.parse(text)


def _model(text: str) -> Any:
    """The file as Hermes reads it, as plain tuples that keep tags and order."""
    try:
        return _plain(compose(text))
    except Unreadable as error:
        raise TextRefusedError(f"the file {error}", line=error.line) from None
    except yaml.MarkedYAMLError as error:
        told = ", ".join(filter(None, (error.context, error.problem)))
        line = line_of_error(error)
        raise TextRefusedError(f"the file does not parse: {told}", line=line) from None
    except yaml.YAMLError as error:
        raise TextRefusedError(f"the file does not parse: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise TextRefusedError("the file is nested too deeply, or an alias holds itself") from None


def _plain(node: yaml.Node | None) -> Any:
    if node is None:
        return None
    if isinstance(node, yaml.MappingNode):
        return ("map", tuple((_plain(key), _plain(value)) for key, value in node.value))
    if isinstance(node, yaml.SequenceNode):
        return ("list", tuple(_plain(item) for item in node.value))
    return (node.tag, node.value)


def _check_nothing_else_changed(
    real: Path, before: YamlText, after: YamlText, edits: Sequence[ListEdit], changes: list[Change]
) -> None:
    """Reads the new text as Hermes will; compares all but the edited lists, and those by name."""
    places = [(edit.section, edit.key) for edit in edits]
    same_rest = _without(_model(before.text), places) == _without(_model(after.text), places)
    for change in changes:
        section, key = change.key.split(".", 1)
        left = [name for name in before.entries(section, key) if name not in change.removed]
        if [*left, *change.added] != list(after.entries(section, key)):
            same_rest = False
        if not set(change.added) <= set(_texts(_model(after.text), section, key)):
            same_rest = False
    if not same_rest:
        raise ConfigError(
            f"{changes[0].key} cannot be changed without changing something else",
            path=real,
            key=changes[0].key,
            hint="Aliases and unusual layouts can cause this: change the file by hand",
        )


def _without(model: Any, places: Sequence[tuple[str, str]]) -> Any:
    """The model without the edited lists, and without sections that have nothing else."""
    if model is None or model[0] != "map":
        return None if model is None or model[0] == _NULL else model
    edited = {section for section, _ in places}
    rest = []
    for key, value in model[1]:
        if key[1] in edited:
            keys = {name for section, name in places if section == key[1]}
            pairs = value[1] if value[0] == "map" else ()
            left = tuple(pair for pair in pairs if not any(_means(pair[0], name) for name in keys))
            if left:
                rest.append((key, ("map", left)))
        else:
            rest.append((key, value))
    return ("map", tuple(rest)) if rest else None


def _means(written: Any, key: str) -> bool:
    return is_key(str(written[1]), key, plain=written[0] == "tag:yaml.org,2002:bool")


def _texts(model: Any, section: str, key: str) -> Iterator[str]:
    """The entries that Hermes takes for text, not for a number or a yes."""
    for name, value in () if model is None else model[1]:
        if name[1] == section and value[0] == "map":
            for inner, items in value[1]:
                if _means(inner, key) and items[0] == "list":
                    yield from (text for tag, text in items[1] if tag == "tag:yaml.org,2002:str")
