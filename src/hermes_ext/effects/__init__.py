"""What a tool call will touch, asked before it runs.

    @register_hook("intercept_tool_call", guard=True)
    def keep_off(event: ToolCall) -> CallVerdict:
        effects = effects_of(event)
        if not effects.exact or effects.change_of(SECRET):
            return HookResult.block("This may change the secret.")
        return None

Shell commands are read by a real parse of bash, code by its syntax tree, patches in all their
forms. What is not understood may write.
"""

from __future__ import annotations

from pathlib import Path

from hermes_ext.effects._machine import Machine
from hermes_ext.effects._model import Change, ChangeKind, Command, Effects, OpenChange
from hermes_ext.hooks.isolation import identical, own_copy
from hermes_ext.hooks.payloads import ToolCall, ToolResult

__all__ = ["Change", "ChangeKind", "Command", "Effects", "Machine", "OpenChange", "effects_of"]


def effects_of(
    event: ToolCall | ToolResult, *, cwd: Path | None = None, machine: Machine | None = None
) -> Effects:
    """What a tool call touches; of a result, what the call touched that it came from.

    Never raises: what cannot be read may touch everything. Asked again about the same event, by
    any handler of the chain, it answers from memory.

    Args:
        event: as a handler gets it. It knows where its session works.
        cwd: where relative paths start, if not in the session's directory.
        machine: where the tools run, if not where the host says.
    """
    where = machine or event.machine or Machine()
    if cwd is not None:
        where = where.at(cwd, where.schema)
    # Handlers may change the arguments that they were given, so those are compared.
    kept = None if cwd or machine else event.memo.get("effects")
    if kept is not None and kept[0] == event.tool_name and identical(kept[1], event.tool_args):
        known: Effects = kept[2]
        return known
    args = own_copy(dict(event.tool_args))
    effects = _read(event.tool_name, args, where)
    if not (cwd or machine):
        event.memo["effects"] = (event.tool_name, args, effects)
    return effects


def _read(tool_name: str, args: dict[str, object], machine: Machine) -> Effects:
    from hermes_ext.effects._record import Recorder, TooMuch

    recorder = Recorder(machine)
    try:
        from hermes_ext.effects._tools import announce

        announce(tool_name, args, recorder)
    except TooMuch as error:
        recorder.anything(_unread(tool_name, args, str(error)))
    except RecursionError:
        recorder.anything(_unread(tool_name, args, "nested too deeply to be read"))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not open a guard
        recorder.anything(f"{tool_name} cannot be understood ({type(error).__name__}: {error})")
    return recorder.effects()


def _unread(tool_name: str, args: dict[str, object], why: str) -> str:
    longest = max((len(each) for each in args.values() if isinstance(each, str)), default=0)
    return (
        f"{tool_name} is given {longest:,} characters that cannot be checked: {why}. "
        "Split it into several calls, or write long data to a file first"
    )
