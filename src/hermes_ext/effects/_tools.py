"""A tool call, read by the table of its host.

Tools in no table, MCP servers' among them, are read by their names, their arguments' names and
their schemas. Such a tool may do anything; what it is told to read or change is listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Final

from attrs import frozen

from hermes_ext.effects._patch import NotUnderstood, edits_of
from hermes_ext.effects._record import Recorder, TooMuch
from hermes_ext.effects._spelling import from_home, local_path
from hermes_ext.effects._table import normal

_DEPTH: Final = 12
_LONGEST_PATH: Final = 4_096


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_READING: Final = _set(
    "cat describe diff fetch find get glob grep head info inspect list lookup ls open query read"
    " search show stat status tail tree view"
)
_SEARCHING: Final = _set("find glob grep query search tree")
_CREATING: Final = _set(
    "add append apply change copy cp create download edit export extract fix format generate insert"
    " install link make mkdir modify overwrite patch put replace save set store sync touch truncate"
    " unzip update upload write"
)
_DELETING: Final = _set("clean clear delete drop erase prune purge remove rm rmdir unlink")
_MOVING: Final = _set("move mv rename")
_OF_PATHS: Final = _set(
    "cwd dest destination dir directories directory dirs dst file filename filepath files folder"
    " folders from location out outfile output path paths root source sources src target targets"
    " to uri uris url urls workdir workspace"
)
_OF_DESTINATIONS: Final = _set("dest destination dst new target to")
_OF_SOURCES: Final = _set("from old source sources src")
_OF_COMMANDS: Final = _set(
    "argv bash cmd cmdline command commandline commands data input script shell stdin"
)
_OF_CODE: Final = _set("code expression program python")
_OF_CONTENT: Final = _set(
    "body comment content contents data description diff message new_string new_text note notes"
    " old_string old_text patch prompt query subject summary text title"
)
_LONGEST_COMMAND: Final = 20_000
_MOST_TEXTS: Final = 10_000
_A_PATH: Final = re.compile(r"\b(?:path|file ?name|directory|folder)\b|\bfile to\b", re.IGNORECASE)


@frozen
class Text:
    """A text among the arguments.

    keys: the names of the arguments that it stands in, outermost first. schema: of the innermost.
    """

    text: str
    keys: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None

    def words(self) -> tuple[str, ...]:
        """The words of the innermost name that is told."""
        return _words(self.keys[-1]) if self.keys else ()


def announce(tool_name: str, tool_args: Mapping[str, Any], rec: Recorder) -> None:
    """Announce what a call touches. A tool that is not in the table may do anything."""
    tools = rec.machine.tools
    row = None if tools is None else tools.get(tool_name)
    if row is None:
        announce_by_names(tool_name.strip(), tool_args, rec)
    else:
        row.does.announce(row.name, tool_args, rec)


def announce_by_names(name: str, args: Mapping[str, Any], rec: Recorder) -> None:
    """Announce what the arguments of a tool name."""
    verbs = set(_words(re.sub(r"\Amcp_", "", name, flags=re.IGNORECASE)))
    texts = list(islice(_texts(args, rec.machine.schema), _MOST_TEXTS + 1))
    if len(texts) > _MOST_TEXTS:
        raise TooMuch(_MOST_TEXTS, "texts in its arguments")
    paths = [each for each in texts if _is_path(each)]
    if any(fnmatchcase(normal(name), normal(each)) for each in rec.machine.read_only_tools):
        _read(paths, rec, verbs | {"search"})
        return
    _announce_paths(name, verbs, paths, rec)
    rec.unknown(f"what {name} does is not known", *_said(texts, paths))
    _announce_programs(args, texts, rec)


def _announce_paths(name: str, verbs: set[str], paths: list[Text], rec: Recorder) -> None:
    if verbs & _DELETING:
        for path in _spelt(paths, rec):
            rec.delete(path, name, tree=True)
    elif verbs & _MOVING:
        _move(name, paths, rec)
    elif verbs & _CREATING:
        for path in _spelt(paths, rec):
            rec.write(path, name, tree=rec.is_directory(path) is True)
    elif verbs & _READING:
        _read(paths, rec, verbs)


def _move(name: str, paths: list[Text], rec: Recorder) -> None:
    """What is no destination is moved away, what is no source is written to."""
    for each in paths:
        words = set(each.words())
        for path in _spelt([each], rec):
            if not words & _OF_DESTINATIONS:
                rec.delete(path, name, tree=True)
            if not words & _OF_SOURCES:
                rec.write(path, name, tree=rec.is_directory(path) is not False)


def _read(paths: list[Text], rec: Recorder, verbs: set[str]) -> None:
    for path in _spelt(paths, rec):
        if verbs & _SEARCHING and rec.is_directory(path) is not False:
            rec.search(path)
        else:
            rec.read(path)


def _announce_programs(args: Mapping[str, Any], texts: Iterable[Text], rec: Recorder) -> None:
    # The table's own readings need neither.
    from hermes_ext.effects._python.reading import read_code
    from hermes_ext.effects._shell import Reading

    for each in texts:
        words = {word for key in each.keys for word in _words(key)}
        if words & _OF_COMMANDS and len(each.text) <= _LONGEST_COMMAND:
            Reading(rec).text(each.text)
        if words & _OF_CODE:
            read_code(each.text, Reading(rec, ""))
        if "***" in each.text:
            _announce_patch(each.text, rec)
    _announce_program_with_words(args, rec)


def _announce_program_with_words(args: Mapping[str, Any], rec: Recorder) -> None:
    """A program and its arguments, given apart or as a list."""
    from hermes_ext.effects._shell import Reading

    more = next((args[key] for key in ("args", "arguments", "argv") if key in args), ())
    for key, value in args.items():
        if set(_words(key)) & _OF_COMMANDS:
            listed = [value] if isinstance(value, str) else value
            if isinstance(listed, list) and isinstance(more, list | tuple):
                words = [str(word) for word in (*listed, *more)]
                if len(words) > 1:
                    Reading(rec).run(words)


def _announce_patch(text: str, rec: Recorder) -> None:
    with suppress(NotUnderstood):
        for edit in edits_of(text):
            for path in (edit.path, edit.to):
                for each in from_home(path, rec.machine) if path else ():
                    rec.write(each, "patch")
                    if edit.verb in ("delete", "move"):
                        rec.delete(each, "patch")


def _said(texts: Iterable[Text], paths: list[Text]) -> Iterator[str]:
    """What the tool is told, without what is only the content of something."""
    for each in texts:
        single = not re.search(r"\s", each.text.strip())
        if single or each in paths or not set(each.words()) & _OF_CONTENT:
            yield local_path(each.text.strip())


def _spelt(paths: Iterable[Text], rec: Recorder) -> Iterator[str]:
    for each in paths:
        text = local_path(each.text.strip())
        if text and "://" not in text:
            yield from from_home(text, rec.machine)


def _is_path(text: Text) -> bool:
    bare = text.text.strip()
    if not bare or len(bare) > _LONGEST_PATH or "\n" in bare:
        return False
    words = set(text.words())
    if words & _OF_CONTENT and not words & {"path", "file", "filename", "directory"}:
        return False
    named = bool(words & _OF_PATHS) or _says_path(text.schema)
    return named or bare.startswith(("/", "~", "./", "../")) or local_path(bare) != bare


def _says_path(schema: Mapping[str, Any] | None) -> bool:
    if not schema:
        return False
    if schema.get("format") in ("directory-path", "file-path", "path", "uri", "uri-reference"):
        return True
    description = schema.get("description")
    return isinstance(description, str) and _A_PATH.search(description) is not None


def _words(name: str) -> tuple[str, ...]:
    """The words of a name: `oldPath`, `old_path` and `old-path` have two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return tuple(word for word in re.split(r"[\W_]+", parted.lower()) if word)


def _texts(
    value: object, schema: object = None, keys: tuple[str, ...] = (), depth: int = 0
) -> Iterator[Text]:
    known = schema if isinstance(schema, Mapping) else None
    if isinstance(value, str):
        yield Text(value, keys, known)
        nested = _parsed(value)
        if nested is not None and depth <= _DEPTH:
            yield from _texts(nested, schema, keys, depth + 1)
    elif depth > _DEPTH:
        yield Text(str(value)[:_LONGEST_PATH], keys)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            if depth:  # names of files, in {"files": {"a.py": "…"}}
                yield Text(str(name), keys)
            yield from _texts(each, _below(known, str(name)), (*keys, str(name)), depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _texts(each, _below(known, None), keys, depth + 1)


def _below(schema: Mapping[str, Any] | None, name: str | None) -> object:
    """The schema of a property, or of a list's items; of a list, its description holds for them."""
    if schema is None:
        return None
    if name is None:
        items = schema.get("items")
        described = {key: schema[key] for key in ("description",) if key in schema}
        return {**described, **items} if isinstance(items, Mapping) else described
    parameters = schema.get("parameters")
    properties = (parameters if isinstance(parameters, Mapping) else schema).get("properties")
    return properties.get(name) if isinstance(properties, Mapping) else None


def _parsed(text: str) -> object:
    """Arguments that are given as the text of a JSON object or list."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None
