"""Turns an extension, or one hook of it, on and off in the user's `config.yaml`.

    bundled, entry point    off until `extensions.on` names it
    global, project         on until `extensions.disabled` names it
    one hook of any         on until `extensions.disabled` names `extension:hook`

A name means every extension that has it: what lies in some project neither keeps a bundled one of
its name from being turned on, nor stays on when that is turned off. Nothing of an extension is
imported, so that a broken one can be turned off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_ext._problems import did_you_mean
from hermes_ext._prog import HERMES_EXT, Prog
from hermes_ext._text import canonical_name, printable
from hermes_ext._values import frozen
from hermes_ext.exceptions import ConfigError
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.discovery import OFF_UNTIL_NAMED, trusted_names
from hermes_ext.loading.inventory import Inventory, inventory
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.names import HOOKS
from hermes_ext.trust.store import Standing

if TYPE_CHECKING:
    from hermes_ext.settings.editing import Change, ListEdit

_WORDS = {
    Status.CONFIG_ERROR: "is not loaded, because its settings are wrong",
    Status.LOAD_ERROR: "cannot be loaded",
    Status.INCOMPATIBLE: "cannot be loaded here",
    Status.MISSING: "is not there",
    Status.NOT_AN_EXTENSION: "is not an extension",
}
_UNUSED = {Status.UNTRUSTED: 1, Status.SHADOWED: 2, Status.NOT_AN_EXTENSION: 3}


class UnknownExtensionError(ConfigError):
    """No extension and no entry of the configuration has this name."""


@frozen
class Switched:
    """What enabling or disabling did.

    name: as the extension spells it. hook: the one hook that was meant, None for all.
    file: the `config.yaml` behind links. notes: what still stands in the way, or follows from it.
    """

    name: str
    hook: str | None
    file: Path
    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    @property
    def changed(self) -> bool:
        return bool(self.changes)

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values; paths as printable text."""
        return {
            "name": self.name,
            "hook": self.hook,
            "file": printable(self.file),
            "changed": self.changed,
            "changes": [change.to_json() for change in self.changes],
            "notes": list(self.notes),
        }


def enable(
    home: Path, cwd: Path | None, name: str, *, hook: str | None = None, prog: Prog = HERMES_EXT
) -> Switched:
    """Turns it on. Raises UnknownExtensionError for a name that is nowhere, ConfigError where
    the file cannot be changed safely.
    """
    from hermes_ext.settings.editing import ListEdit

    found = inventory(home, cwd)
    records = named(found, name)
    known = any(record.source for record in records) or _is_written(found, name)
    if not known and not _is_elsewhere(home, name):
        raise unknown_extension(found, name)
    spelled = records[0].name if records else name
    if hook:
        edits = [_taken_out("disabled", f"{spelled}:{hook}")]
    else:
        edits = [_taken_out("disabled", spelled)]
        everywhere = _sources(records) - {Source.PROJECT}
        if everywhere and everywhere <= OFF_UNTIL_NAMED:
            edits.append(ListEdit("extensions", "on", add=(spelled,)))
    notes = functools.partial(_notes_on_enabling, prog=prog)
    return _switched(home, cwd, spelled, hook, edits=edits, notes=notes)


def disable(home: Path, cwd: Path | None, name: str, *, hook: str | None = None) -> Switched:
    """Turns it off. Raises as `enable` does."""
    from hermes_ext.settings.editing import ListEdit

    found = inventory(home, cwd)
    records = named(found, name)
    elsewhere = not records and _is_elsewhere(home, name)
    if not records and not _is_written(found, name) and not elsewhere:
        raise unknown_extension(found, name)
    spelled = records[0].name if records else name
    sources = _sources(records)
    if hook:
        edits = [ListEdit("extensions", "disabled", add=(f"{spelled}:{hook}",))]
    else:
        edits = [_taken_out("on", spelled)]
        if sources - OFF_UNTIL_NAMED or elsewhere:
            edits.append(ListEdit("extensions", "disabled", add=(spelled,)))
    return _switched(home, cwd, spelled, hook, edits=edits, notes=_notes_on_disabling)


def _taken_out(key: str, name: str) -> ListEdit:
    from hermes_ext.settings.editing import ListEdit

    return ListEdit("extensions", key, remove=(name,), keep_empty=False)


def named(found: Inventory, name: str) -> list[ExtensionRecord]:
    """The records of this name, the one that is used first."""
    same = [each for each in found.records if canonical_name(each.name) == canonical_name(name)]
    return sorted(same, key=by_use)


def by_use(record: ExtensionRecord) -> int:
    """Sorts the records of one name: the one that is used, or would be, comes first."""
    return _UNUSED.get(record.status, 0)


def _sources(records: Sequence[ExtensionRecord]) -> set[Source]:
    extensions = [each for each in records if each.status is not Status.NOT_AN_EXTENSION]
    return {each.source for each in extensions or records if each.source is not None}


def _is_written(found: Inventory, name: str) -> bool:
    """Whether the lists that this module edits name it, so that the name can be taken out."""
    config = found.config
    return config.is_on(name) or config.is_disabled(name) or bool(config.hooks_off(name))


def _is_elsewhere(home: Path, name: str) -> bool:
    """Whether another project that the user trusts has it."""
    return canonical_name(name) in map(canonical_name, trusted_names(home))


def unknown_extension(found: Inventory, name: str) -> UnknownExtensionError:
    """The error for a name that nothing has, with what was probably meant."""
    known = [record.name for record in found.records if record.source is not None]
    listed = f"Installed: {', '.join(sorted(known))}" if known else "None is installed"
    return UnknownExtensionError(
        f'there is no extension "{printable(name)}"',
        hint=did_you_mean(name, known)
        or f"{listed}. Extensions are looked for in {printable(found.config.global_dir)}",
    )


def _switched(
    home: Path,
    cwd: Path | None,
    name: str,
    hook: str | None,
    *,
    edits: list[ListEdit],
    notes: Callable[[Inventory, str, str | None], Iterable[str]],
) -> Switched:
    from hermes_ext.settings.editing import edit_lists

    if hook is not None and hook not in HOOKS:
        raise ConfigError(f'no hook is called "{hook}"', hint=f"Hooks: {', '.join(HOOKS)}")
    edited = edit_lists(home / "config.yaml", edits, same=canonical_name)
    after = inventory(home, cwd)
    return Switched(name, hook, edited.path, edited.changes, tuple(notes(after, name, hook)))


def _notes_on_enabling(after: Inventory, name: str, hook: str | None, prog: Prog) -> Iterator[str]:
    records = named(after, name)
    alone = len(records) == 1
    in_project = any(record.source is Source.PROJECT for record in records)
    for record in records:
        # Which of several is used is no news, unless it is another one in this project.
        if record.status is not Status.ENABLED and (in_project or record.status not in _UNUSED):
            who = "it" if alone else _which(record)
            yield f"{who} {_stands(after, record, prog)}"
    if hook and any(record.status is Status.DISABLED for record in records):
        yield f"the whole extension is off as well; turn it on with: {prog(f'enable {name}')}"
    if not hook and after.config.hooks_off(name):
        still = ", ".join(sorted(after.config.hooks_off(name)))
        yield f"still off: {still}. To turn one on: {prog(f'enable {name} --hook HOOK')}"


def _which(record: ExtensionRecord) -> str:
    where = "" if record.path is None else f" ({printable(record.path)})"
    owner = "this project's own" if record.source is Source.PROJECT else f"the {record.source} one"
    return f"{owner}{where}"


def _stands(after: Inventory, record: ExtensionRecord, prog: Prog) -> str:
    """How it ended, and what to do about that."""
    verdict = after.projects.nearest
    if record.status is not Status.UNTRUSTED or verdict is None:
        return f"{_WORDS.get(record.status, f'is {record.status}')}: {record.reason}"
    reason = record.reason
    if verdict.standing is Standing.CHANGED:  # `trust` says in which files
        reason = reason.partition(":")[0]
    typed = prog("trust", verdict.project.root)
    return f"is untrusted: {reason}. To look at it and decide: {typed}"


def _notes_on_disabling(after: Inventory, name: str, hook: str | None) -> Iterator[str]:
    records = [record for record in named(after, name) if record.source is not None]
    if len(records) > 1:
        those = ", ".join(map(_which, records))
        what = f"{hook} is off for all of them" if hook else "all of them are off"
        yield f"{len(records)} extensions have this name, and {what}: {those}"
    if after.config.is_required(name) and not hook:
        yield f"extensions.required names {name}: while it is off, every tool call is refused"
    known = {info.hook for record in records[:1] for info in record.known_hooks}
    if hook and known and hook not in known:
        has = ", ".join(sorted(known))
        yield f"as last loaded it has no handler for {hook}; it has {has}"
