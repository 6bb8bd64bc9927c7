"""What is known about an extension, loaded or not: one record each, with a status and a reason."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from hermes_ext._text import printable
from hermes_ext._values import fields, frozen
from hermes_ext.hooks.isolation import ATOMS
from hermes_ext.hooks.source import Source


class Status(StrEnum):
    """How finding and loading an extension ended.

    ENABLED: its handlers are live (in an inventory: on, and nothing speaks against it).
    DISABLED: turned off, or never turned on. SKIPPED: it said itself that it cannot run here.
    NOT_AN_EXTENSION: something else in an extensions folder.
    UNTRUSTED: project code that the user has not trusted. SHADOWED: another one of its name, or
    another name of the same code, is used. INCOMPATIBLE: a version or package that it needs is
    not here. CONFIG_ERROR: its settings are wrong. LOAD_ERROR: everything else that went wrong.
    MISSING: the configuration names it, and it is nowhere.
    """

    ENABLED = "enabled"
    DISABLED = "disabled"
    SKIPPED = "skipped"
    NOT_AN_EXTENSION = "not-an-extension"
    UNTRUSTED = "untrusted"
    SHADOWED = "shadowed"
    INCOMPATIBLE = "incompatible"
    CONFIG_ERROR = "config-error"
    LOAD_ERROR = "load-error"
    MISSING = "missing"


BROKEN: Final = frozenset(
    {
        Status.LOAD_ERROR,
        Status.CONFIG_ERROR,
        Status.INCOMPATIBLE,
        Status.MISSING,
        Status.NOT_AN_EXTENSION,
    }
)
"""Something is wrong, and the extension is not in force because of it."""


@frozen
class _Told:
    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values with the same keys; paths as printable text."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(type(self))}


def _plain(value: Any) -> Any:
    if type(value) in ATOMS:
        return value
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, _Told):
        return value.to_json()
    if isinstance(value, Path):
        return printable(value)
    return str(value) if isinstance(value, StrEnum) else value


@frozen
class HookInfo(_Told):
    """One handler of an extension.

    handler: the function's qualified name. tools: name patterns, None for all tools.
    timeout: seconds, None for none. file: absolute path, printable. line: from 1. fault: what it
    will certainly do wrong when called, as its source tells; None where nothing is known, and
    where nobody looked (the agent itself does not). on_store_error: None for the same as on_error.
    """

    hook: str
    handler: str
    priority: int
    guard: bool
    tools: tuple[str, ...] | None
    on_error: str
    timeout: float | None
    file: str
    line: int
    fault: str | None = None
    on_store_error: str | None = None


@frozen
class CommandInfo(_Told):
    """One slash command of an extension.

    name: without the slash. args_hint, help: for people, "" where there is none. file: absolute
    path, printable. line: from 1.
    """

    name: str
    args_hint: str
    help: str
    file: str
    line: int


@frozen
class ExtensionRecord(_Told):
    """One extension, found or named in the configuration.

    name: the name of its folder, file or entry point, printable. source: None for a missing one.
    path: folder, or file of a single-file extension; None where there is none.
    reason: why it has this status, "" for a plain `enabled`. configured_on: what the
    configuration asks for; loaded: whether its code ran to the end. hooks: as loaded, or as the
    last load recorded them. hooks_off: the hooks that the configuration turns off. turned_off: its
    handlers for them, as far as they are known. commands: its slash commands. warnings: what is
    odd but stops nothing. also_at: other places that hold the same extension or one of the same
    name. import_seconds: how long its import took, None if it was not imported.
    """

    name: str
    source: Source | None
    status: Status
    reason: str = ""
    path: Path | None = None
    version: str | None = None
    description: str | None = None
    configured_on: bool = False
    loaded: bool = False
    hooks: tuple[HookInfo, ...] = ()
    hooks_off: tuple[str, ...] = ()
    turned_off: tuple[HookInfo, ...] = ()
    commands: tuple[CommandInfo, ...] = ()
    warnings: tuple[str, ...] = ()
    required: bool = False
    also_at: tuple[Path, ...] = ()
    import_seconds: float | None = None

    @property
    def known_hooks(self) -> tuple[HookInfo, ...]:
        """All its handlers, as far as they are known, turned off or not."""
        return (*self.hooks, *self.turned_off)
