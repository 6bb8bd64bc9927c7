"""Tool calls that the kernel confines: which of Hermes's it can, and how they run.

A call without a confinement does not come here. What Hermes does of its own accord on the way,
what extensions and the hooks of other plugins do, and the turns of subagents run outside of a
call's confinement.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from hermes_ext import confine
from hermes_ext._log import logger
from hermes_ext._text import printable
from hermes_ext.chain.outcome import Confined, KeptBy
from hermes_ext.confine import Confinement, ConfinementError, PrivateFolder, Sandbox
from hermes_ext.effects import ToolKind
from hermes_ext.hooks.payloads import ToolCall
from hermes_ext.hooks.source import OWN
from hermes_ext.hosts.hermes.adapter import host
from hermes_ext.hosts.hermes.adapter.gate.starting import (
    MARK,
    ConfinedCall,
    NotStarted,
    check_is_here,
)
from hermes_ext.hosts.hermes.adapter.gate.verdicts import Judge, Verdict
from hermes_ext.hosts.hermes.adapter.person import notices
from hermes_ext.hosts.hermes.adapter.places import (
    LOCAL,
    backend,
    elsewhere,
    environment_of,
    tool_directory,
)
from hermes_ext.hosts.hermes.adapter.state import held, state
from hermes_ext.hosts.hermes.facts.tools import TOOLS
from hermes_ext.trust.place import project_of
from hermes_ext.turns.turn import Turn

_PROCESSES: Final = frozenset({ToolKind.SHELL, ToolKind.CODE})
_FILES: Final = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.WRITE, ToolKind.EDIT})
_LOOKS: Final = frozenset({"list", "poll", "log", "wait", "kill"})  # type into no process
_TEXTS: Final = ("output", "output_preview", "error")  # where a result has what programs said
_KEPT: Final = frozenset({"blocked", "disabled", "error", "pending_approval"})  # from running
_SOCKET: Final = "HERMES_RPC_SOCKET"

_UNSEEN: Final = (
    "a confined command started a process in a way that hermes-ext cannot see. This Hermes cannot "
    "confine calls any more; restart it"
)
_NOTHING_HERE: Final = "this machine has no way to confine programs; run hermes-ext doctor"
_NO_PROCESS: Final = "Hermes knows no process with this session_id"
_UNMARKED: Final = "it is input to a process that was started unconfined"


# -- what can be confined ---------------------------------------------------------------------


def reason_not(call: ToolCall, confinement: Confinement, minimum: confine.Minimum) -> str | None:
    """Why Hermes cannot run a call confined; None where it can.

    Args:
        call: of a tool that starts processes, or types into one.
        confinement: what it may change.
        minimum: the weakest level that the user accepts.
    """
    if TOOLS.kind_of(call.tool_name) is ToolKind.INPUT:
        return _why_no_input(call.tool_args, confinement)
    return why_not(confinement, minimum)


def why_not(confinement: Confinement, minimum: confine.Minimum) -> str | None:
    """Why no process of Hermes can be confined so; None where one can."""
    if state.unseen:
        return _UNSEEN
    kind = backend()
    if kind != LOCAL:
        return elsewhere(kind)
    # Not at the top: `attaching` imports the modules beside this one.
    from hermes_ext.hosts.hermes.adapter.wraps.attaching import lost_to_confinement

    lost = lost_to_confinement()
    if lost:
        why = "; ".join(map(str, lost))
        host.note_unconfinable(f"no call can be confined: {why}")
        return why
    support = confine.support(minimum)
    return _NOTHING_HERE if support.rung is None else support.reason_not(confinement)


def _why_no_input(args: Mapping[str, Any], confinement: Confinement) -> str | None:
    if args.get("action") in _LOOKS:
        return None
    if _session_of(args) is None:
        return _NO_PROCESS
    started = _started_by(args)
    strict = started is not None and started.confined.confinement.holds(confinement)
    return None if strict else _UNMARKED


def _started_by(args: Mapping[str, Any]) -> ConfinedCall | None:
    """The confined call that started the process which a call of the process tool names."""
    found = getattr(_session_of(args), MARK, None)
    return found if isinstance(found, ConfinedCall) else None


def _session_of(args: Mapping[str, Any]) -> Any:
    """That process as Hermes knows it, or None."""
    processes = getattr(sys.modules.get("tools.process_registry"), "process_registry", None)
    return None if processes is None else processes.get(str(args.get("session_id") or ""))


# -- running a call ---------------------------------------------------------------------------


def run_confined(
    turn: Turn, verdict: Verdict, confined: Confined, next_call: Callable[[Any], Any]
) -> Any:
    """Run a call as its verdict confines it.

    Returns:
        Its result, with a line where the kernel refused something. Where it could not be confined
        the verdict is a refusal, and the result nothing.
    """
    around = state.confined.get()
    if around is not None:
        around.run.started += 1  # what starts from here on is counted here
    kind, result = TOOLS.kind_of(verdict.tool), None
    if not _is_run_inside(turn, confined, kind):
        return of_process(verdict, next_call(verdict.arguments.copy()))
    try:
        with _confining(turn, confined, kind) as call:
            result = next_call(verdict.arguments.copy())
    except NotStarted as stop:
        return _refuse(turn, verdict, confined, str(stop))
    failure = call.run.failure
    if failure is not None and call.run.started:
        logger.error("a process of a call of %s was not started: %s", verdict.tool, failure)
        result = _ended(result, f"[{OWN}] one process of this call was not started: {failure}")
    elif failure is not None:
        return _refuse(turn, verdict, confined, failure)
    if kind in _PROCESSES and not call.run.started and _has_run(result):
        state.unseen = True
        logger.error("a confined call of %s started no process that hermes-ext saw", verdict.tool)
        notices.say(_UNSEEN)
    return with_line(result, call)


def _is_run_inside(turn: Turn, confined: Confined, kind: ToolKind) -> bool:
    """Whether a call may start processes that are to be confined; Hermes's other tools do not."""
    if confined.kept_by is KeptBy.KERNEL:
        return kind in _PROCESSES
    # What the others change is known: they may run where nothing can be confined.
    starts = confined.kept_by is KeptBy.EFFECTS and kind in _PROCESSES | _FILES
    return starts and why_not(confined.confinement, turn.services.confine_minimum) is None


@contextmanager
def _confining(turn: Turn, confined: Confined, kind: ToolKind) -> Iterator[ConfinedCall]:
    try:
        sandbox = _sandbox_for(turn, confined.confinement, kind)
    except (ConfinementError, OSError) as error:
        raise NotStarted(str(error)) from error
    task = turn.task_id or turn.host.stray_task
    environment = environment_of(task)
    if environment is not None:
        check_is_here(environment)
    with confine.inside(sandbox) as run:
        here = partial(tool_directory, task, turn.directory)
        call = ConfinedCall(confined, sandbox, run, turn.directory, here)
        with held(state.confined, call):
            yield call


class _ForScripts(Sandbox):
    """A sandbox for scripts, which call tools back through a socket that Hermes makes for each."""

    def start(
        self, argv: Any, environment: Mapping[Any, Any] | None = None, **options: Any
    ) -> confine.Start:
        socket = (environment or {}).get(_SOCKET)
        if not isinstance(socket, str) or not os.path.isabs(socket):
            return super().start(argv, environment, **options)
        reached: dict[str, Any] = {"sockets": (Path(os.path.realpath(socket)),)}
        sandbox = Sandbox(self.confinement, self.support, self.private, **reached)
        return sandbox.start(argv, environment, **options)


def _sandbox_for(turn: Turn, confinement: Confinement, kind: ToolKind) -> Sandbox:
    """What such calls run in; the private folder is that of the project and the process."""
    state.has_confined = True
    private = PrivateFolder.of(turn.directory, confinement)
    made = _ForScripts if kind is ToolKind.CODE else Sandbox
    return made(confinement, confine.support(turn.services.confine_minimum), private)


def _refuse(turn: Turn, verdict: Verdict, confined: Confined, failure: str) -> None:
    reason = confined.confinement.reasons[0]
    logger.error("a call of %s could not be confined: %s", verdict.tool, failure)
    why = f"{reason.text}, and this call was stopped because it could not be confined: {failure}"
    Judge(turn).refuse(verdict, reason.extension, why)


def _has_run(result: Any) -> bool:
    """Whether a command ran, as far as its result says: Hermes refuses some by itself."""
    told = _decoded(result)
    return told is None or not (told.get("error") or told.get("status") in _KEPT)


# -- what the model sees ----------------------------------------------------------------------


def of_process(verdict: Verdict, result: Any) -> Any:
    """The result of a call of the process tool, with the line of the call that started it."""
    if TOOLS.kind_of(verdict.tool) is not ToolKind.INPUT:
        return result
    started = _started_by(verdict.arguments.shared)
    return result if started is None else with_line(result, started)


def with_line(result: Any, call: ConfinedCall) -> Any:
    """A result with a line that says why, where the kernel refused something."""
    told = _decoded(result)
    texts = (result,) if told is None else map(told.get, _TEXTS)
    if not any(call.run.refused(text) for text in texts if isinstance(text, str)):
        return result
    return _ended(result, line_of(call.confined.confinement, call.root, call.here()))


def _ended(result: Any, line: str) -> Any:
    """A result with a line at the end of what programs said, in the first place that has some."""
    told = _decoded(result)
    if told is None:
        return _joined(result, line) if isinstance(result, str) else result
    said = (each for each in _TEXTS if isinstance(told.get(each), str) and told[each])
    key = next(said, "output")
    return json.dumps({**told, key: _joined(str(told.get(key) or ""), line)}, ensure_ascii=False)


def _joined(text: str, line: str) -> str:
    if line in text:  # of a call that ran inside of this one
        return text
    return f"{text}{line}" if text.endswith("\n") or not text else f"{text}\n{line}"


def line_of(confinement: Confinement, root: Path, here: Path) -> str:
    """The line for the model where the kernel refused something; short only from the root."""
    who = ", ".join(dict.fromkeys(reason.extension for reason in confinement.reasons))
    project = Path(os.path.realpath(project_of(root) or root))
    is_near = os.path.realpath(here) == str(project)
    shown = (path.relative_to(project) if is_near else path for path in confinement.writable)
    but = ", ".join(f"{path}/" for path in shown)
    network = " and without network" if confinement.network == "none" else ""
    left = "; ".join(f"{path} is not writable: {why}" for path, why in confinement.left_out[:3])
    where = f"the project read-only{f' except {but}' if but else ''}{network}"
    where += f" ({printable(left)})" if left else ""
    return f"[{who}] this command ran with {where}: {confinement.why}"


def _decoded(result: Any) -> dict[str, Any] | None:
    try:
        told = json.loads(result) if isinstance(result, str) else None
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
