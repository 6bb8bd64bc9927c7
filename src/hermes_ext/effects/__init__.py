"""What a tool call will touch, asked before it runs.

    @register_hook("intercept_tool_call", guard=True)
    def keep_off(event: ToolCall) -> CallVerdict:
        effects = effects_of(event)
        if not effects.exact or effects.change_of(SECRET):
            return HookResult.block("This may change the secret.")
        return None

Shell commands are read by a real parse of bash, code by its syntax tree, patches in all their
forms. What is not understood may write.

What a tool does, its host says in a `ToolTable`: a row per tool, with a reading out of
`hermes_ext.effects.readings`. Where the tools run, and the table, is in a `Machine`. Nothing here
needs the rest of the package:

    tools = ToolTable((Tool("Write", writes()), Tool("Bash", runs_shell())))
    machine = Machine(cwd=Path("/project"), tools=tools)
    effects_of(call, machine=machine).writes
    effects_of_command("rm -r build", machine=machine).writes
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve

from hermes_ext.effects._machine import Machine

if TYPE_CHECKING:
    from hermes_ext.effects._model import Change, ChangeKind, Command, Effects, OpenChange
    from hermes_ext.effects._table import Does, Reading, Tool, ToolKind, ToolTable

__all__ = [
    "Call",
    "Change",
    "ChangeKind",
    "Command",
    "Does",
    "Effects",
    "Machine",
    "OpenChange",
    "Tool",
    "ToolKind",
    "ToolTable",
    "effects_of",
    "effects_of_command",
]


def __getattr__(name: str) -> Any:
    # These are of no use before the first call, and every start would wait for them.
    if name in ("Does", "Tool", "ToolKind", "ToolTable"):
        from hermes_ext.effects import _table

        return getattr(_table, name)
    if name in ("Change", "ChangeKind", "Command", "Effects", "OpenChange"):
        from hermes_ext.effects import _model

        return getattr(_model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Call(Protocol):
    """A tool call, or the result of one: `ToolCall` and `ToolResult` are.

    Attributes:
        tool_name: the tool.
        tool_args: its arguments.
        machine: where it runs; None where that is not known.
        tools: the host's tools, where `machine` does not say.
    """

    @property
    def tool_name(self) -> str: ...
    @property
    def tool_args(self) -> dict[str, Any]: ...
    @property
    def machine(self) -> Machine | None: ...
    @property
    def tools(self) -> ToolTable: ...
    def remembered(self, what: str, find: Callable[[dict[str, Any]], Effects]) -> Effects:
        """What `find` makes of the arguments; kept for the next who asks about the same ones."""


def effects_of(event: Call, *, cwd: Path | None = None, machine: Machine | None = None) -> Effects:
    """What a tool call touches; of a result, what the call touched that it came from.

    Never raises: what cannot be read may touch everything. Asked again about the same event, by
    any handler of the chain, it answers from memory.

    Args:
        event: as a handler gets it. It knows where its session works.
        cwd: where relative paths start, if not in the session's directory.
        machine: where the tools run, if not where the host says.
    """

    def find(args: dict[str, Any]) -> Effects:
        from hermes_ext.effects._tools import announce

        where = machine or event.machine or Machine()
        if cwd is not None:
            where = where.at(cwd, where.schema)
        if where.tools is None:
            where = evolve(where, tools=event.tools)
        return _read(event.tool_name, args, where, announce)

    return find(event.tool_args) if cwd or machine else event.remembered("effects", find)


def effects_of_command(command: str, *, machine: Machine | None = None) -> Effects:
    """What a shell command touches.

    Never raises, as `effects_of`.

    Args:
        command: the text of the shell.
        machine: where it runs; by default here, in no directory that is known.
    """
    from hermes_ext.effects.readings import runs_shell

    announce = runs_shell("command").announce
    return _read("the shell", {"command": command}, machine or Machine(), announce)


def _read(name: str, args: dict[str, Any], machine: Machine, announce: Reading) -> Effects:
    from hermes_ext.effects._record import Recorder, TooMuch

    recorder = Recorder(machine)
    try:
        announce(name, args, recorder)
    except TooMuch as error:
        recorder.anything(_unread(name, args, str(error)))
    except RecursionError:
        recorder.anything(_unread(name, args, "nested too deeply to be read"))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not open a guard
        recorder.anything(f"{name} cannot be understood ({type(error).__name__}: {error})")
    return recorder.effects()


def _unread(tool_name: str, args: dict[str, Any], why: str) -> str:
    longest = max((len(each) for each in args.values() if isinstance(each, str)), default=0)
    return (
        f"{tool_name} is given {longest:,} characters that cannot be checked: {why}. "
        "Split it into several calls, or write long data to a file first"
    )
