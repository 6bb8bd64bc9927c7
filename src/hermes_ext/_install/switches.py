"""Turns an extension, or one hook of it, on and off in the user's `config.yaml`.

    bundled, entry point    off until `extensions.on` names it
    global, project         on until `extensions.disabled` names it
    one hook of any         on until `extensions.disabled` names `extension:hook`

Nothing of an extension is imported, so that a broken one can be turned off.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

from hermes_ext._hooks.source import Source
from hermes_ext._hooks.text import printable
from hermes_ext._install.config_edit import Change, ListEdit, edit_lists
from hermes_ext._install.inventory import Inventory, inventory
from hermes_ext._install.records import (
    HERMES_EXT,
    HOOKS,
    ExtensionRecord,
    Prog,
    Status,
    canonical_name,
    did_you_mean,
)
from hermes_ext.exceptions import ConfigError

_NAMED_TO_BE_ON = frozenset({Source.BUNDLED, Source.ENTRY_POINT})


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
    found = inventory(home, cwd)
    records = _named(found, name)
    if not any(record.source for record in records) and not _is_written(found, name):
        raise unknown_extension(found, name)
    spelled = records[0].name if records else name
    if hook:
        edits = [ListEdit("extensions", "disabled", remove=(f"{spelled}:{hook}",))]
    else:
        edits = [ListEdit("extensions", "disabled", remove=(spelled,))]
        if _sources(records) & _NAMED_TO_BE_ON and not _sources(records) - _NAMED_TO_BE_ON:
            edits.append(ListEdit("extensions", "on", add=(spelled,)))
    notes = functools.partial(_notes_on_enabling, prog=prog)
    return _switched(home, cwd, spelled, hook, edits=edits, notes=notes)


def disable(home: Path, cwd: Path | None, name: str, *, hook: str | None = None) -> Switched:
    """Turns it off. Raises as `enable` does."""
    found = inventory(home, cwd)
    records = _named(found, name)
    if not records and not _is_written(found, name):
        raise unknown_extension(found, name)
    spelled = records[0].name if records else name
    sources = _sources(records)
    if hook:
        edits = [ListEdit("extensions", "disabled", add=(f"{spelled}:{hook}",))]
    else:
        edits = [ListEdit("extensions", "on", remove=(spelled,))]
        if sources - _NAMED_TO_BE_ON:
            edits.append(ListEdit("extensions", "disabled", add=(spelled,)))
    return _switched(home, cwd, spelled, hook, edits=edits, notes=_notes_on_disabling)


def _named(found: Inventory, name: str) -> list[ExtensionRecord]:
    """The records of this name, the one that is used first."""
    same = [each for each in found.records if canonical_name(each.name) == canonical_name(name)]
    return sorted(same, key=lambda record: record.status is Status.SHADOWED)


def _sources(records: Iterable[ExtensionRecord]) -> set[Source]:
    return {record.source for record in records if record.source is not None}


def _is_written(found: Inventory, name: str) -> bool:
    """Whether the lists that this module edits name it, so that the name can be taken out."""
    config = found.config
    return config.is_on(name) or config.is_disabled(name) or bool(config.hooks_off(name))


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
    notes: Any,
) -> Switched:
    if hook is not None and hook not in HOOKS:
        raise ConfigError(f'no hook is called "{hook}"', hint=f"Hooks: {', '.join(HOOKS)}")
    edited = edit_lists(home / "config.yaml", edits, same=canonical_name)
    after = inventory(home, cwd)
    return Switched(name, hook, edited.path, edited.changes, tuple(notes(after, name, hook)))


def _notes_on_enabling(after: Inventory, name: str, hook: str | None, prog: Prog) -> list[str]:
    notes = [
        f"it is {record.status}: {record.reason}"
        for record in _named(after, name)[:1]
        if record.status not in {Status.ENABLED, Status.SHADOWED}
    ]
    if hook and after.config.is_disabled(name):
        notes.append(
            f"the whole extension is off as well; turn it on with: {prog(f'enable {name}')}"
        )
    if not hook and after.config.hooks_off(name):
        still = ", ".join(sorted(after.config.hooks_off(name)))
        call = prog(f"enable {name} --hook HOOK")
        notes.append(f"still off: {still}. To turn one on: {call}")
    return notes


def _notes_on_disabling(after: Inventory, name: str, hook: str | None) -> list[str]:
    notes = []
    if after.config.is_required(name) and not hook:
        notes.append(
            f"extensions.required names {name}: while it is off, every tool call is refused"
        )
    known = {
        info.hook
        for record in _named(after, name)[:1]
        for info in (*record.hooks, *record.turned_off)
    }
    if hook and known and hook not in known:
        has = ", ".join(sorted(known))
        notes.append(f"as last loaded it has no handler for {hook}; it has {has}")
    return notes
