"""Tool calls: one verdict for each, and a last gate that runs nothing without one.

A call passes Hermes in steps, and other plugins may change it at each of them. It is judged once,
at the first step, as a `Verdict` that names exactly what may run. The later steps look the verdict
up by what is about to run; different arguments mean a new judgement, and no exception of ours
reaches Hermes, because Hermes would let the call through.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from hermes_ext._log import logger
from hermes_ext._values import define, evolve, field
from hermes_ext.hooks.arguments import Arguments
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter import host
from hermes_ext.hosts.hermes.adapter.gate.results import error_result, internal_fault, looked_at
from hermes_ext.hosts.hermes.adapter.gate.verdicts import Arrived, Judge, Verdict, out_of_call
from hermes_ext.hosts.hermes.adapter.host import hook_is_on
from hermes_ext.hosts.hermes.adapter.state import held, state
from hermes_ext.turns.approval import ENDED
from hermes_ext.turns.state import entered
from hermes_ext.turns.turn import Turn

Original = Callable[..., Any]
NextCall = Callable[[Any], Any]
Context = dict[str, Any]


@define(eq=False)
class Grant:
    """Leave to run one call, given by the gate to what it calls; good for one step inside."""

    verdict: Verdict
    turn: Turn
    used: bool = False
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def use(self) -> bool:
        """Use it up; False if that was done already. Threads of the tool may do it at once."""
        with self._lock:
            before, self.used = self.used, True
            return not before


# -- the steps, in the order in which Hermes takes them ----------------------------------------


def apply_tool_request(original: Original, tool_name: str, args: Any, **context: Any) -> Any:
    """Wraps `hermes_cli.middleware.apply_tool_request_middleware`: the others first, then we."""
    result = original(tool_name, args, **context)
    turn = host.find_turn(context)
    if turn is None or not _concerned(turn):
        return result
    try:
        judge = Judge(turn)
        arrived = Arrived(tool_name, result.payload)
        verdict = judge.fresh(arrived, str(context.get("tool_call_id") or ""))
        judge.store(verdict)
        # Types that Hermes coerces anyway are no change: other plugins see what they always saw.
        if verdict.rewritten:
            result.changed = True
            result.trace = [*result.trace, {"source": "hermes-ext"}]
            result.payload = verdict.arguments.copy()
    except Exception:  # without a verdict the last gate judges the call, or refuses it
        logger.exception("hermes-ext could not judge a call of %s at its first step", tool_name)
    return result


def pre_tool_block(
    original: Original, tool_name: str, args: Any, *positional: Any, **context: Any
) -> Any:
    """Wraps `hermes_cli.plugins.resolve_pre_tool_block` (0.17: `get_pre_tool_call_block_message`).

    Other plugins' hooks run first, once: their block stands, and their leave does not lift ours.
    """
    message = original(tool_name, args, *positional, **context)
    turn = host.find_turn(context)
    if turn is None:
        why = None if _idle_at(context) else _why_outside(context)
        return message or (None if why is None else f"[hermes-ext] {why}")
    if not _concerned(turn):
        return message
    try:
        return _block_message(Judge(turn), tool_name, args, context, message)
    except Exception as error:  # a guard that cannot be asked has not said yes
        logger.exception("hermes-ext could not judge a call of %s", tool_name)
        return message or _not_evaluated(turn, tool_name, error)


def pre_tool_hooks(
    original: Original, tool_name: str, args: Any, *positional: Any, **context: Any
) -> Any:
    """Wraps `hermes_cli.plugins._dispatch_pre_tool_call_hooks`.

    In a Hermes that has it, plugins' hooks run inside of the gate, and may change the arguments
    that the gate has let through, by `modify` or in place. Those are checked as any others are.

    Returns:
        A block's message or None, and the arguments that run, or None for those that were given.
    """
    message, changed = original(tool_name, args, *positional, **context)
    turn, host_id = host.find_turn(context), str(context.get("tool_call_id") or "")
    grant = None if turn is None else _leave_for(turn, tool_name, host_id)
    if message is not None or grant is None:
        return message, changed
    try:
        arrived = Arrived(tool_name, args if changed is None else changed)
        if not arrived.has(grant.verdict.arguments):
            grant.verdict = _changed_inside(grant, arrived)
    except Exception as error:  # a guard that cannot be asked has not said yes
        logger.exception("hermes-ext could not check what a hook made of a call of %s", tool_name)
        refusal = _not_evaluated(grant.turn, tool_name, error)
        grant.verdict = evolve(grant.verdict, refusal=refusal)
    verdict = grant.verdict
    # Our own copy, even of what is unchanged: a hook may have kept the dict that it was given.
    return verdict.refusal or _in_place_of_a_run(verdict), verdict.arguments.copy()


def _changed_inside(grant: Grant, arrived: Arrived) -> Verdict:
    """The verdict on what a hook made of a call that already runs, confined or not."""
    verdict = Judge(grant.turn).again(grant.verdict, arrived).settled()
    before, now = grant.verdict.confined, verdict.confined
    if verdict.refusal is not None or now is None:
        return verdict
    if before is not None and before.confinement.holds(now.confinement):
        return verdict
    why = "a plugin changed this call too late to change what confines it"
    return evolve(verdict, refusal=f"[{now.confinement.reasons[0].extension}] {why}")


def _in_place_of_a_run(verdict: Verdict) -> str | None:
    """What keeps Hermes from running an answered call: the gate around it gives the answer."""
    return verdict.answer if verdict.answer is None else verdict.answer or "answered"


def _block_message(
    judge: Judge, tool: str, args: Any, context: Context, message: str | None
) -> str | None:
    host_id = str(context.get("tool_call_id") or "")
    arrived = Arrived(tool, args)
    verdict = judge.find(arrived, host_id)
    if verdict is None:
        verdict = _without_exact(judge, arrived, host_id)
        judge.store(verdict)
    if message is None:
        message = verdict.settled().refusal
    if message is not None:
        judge.drop(verdict)
    return message


def _without_exact(judge: Judge, arrived: Arrived, host_id: str) -> Verdict:
    before, _ = judge.take(arrived, host_id)
    return judge.fresh(arrived, host_id) if before is None else judge.again(before, arrived)


def run_tool_execution(
    original: Original, tool_name: str, args: Any, next_call: NextCall, **context: Any
) -> Any:
    """Wraps `hermes_cli.middleware.run_tool_execution_middleware`: the last gate.

    `next_call` is what really runs the tool, inside every other plugin's middleware.
    """
    turn = host.find_turn(context)
    if turn is None:
        return _stray_execution(original, tool_name, args, next_call, context)
    if not _concerned(turn):
        return original(tool_name, args, next_call, **context)
    return _gated_execution(turn, original, tool_name, args, next_call, context)


def _stray_execution(
    original: Original, tool_name: str, args: Any, next_call: NextCall, context: Context
) -> Any:
    if _idle_at(context):
        return original(tool_name, args, next_call, **context)
    why = _why_outside(context)
    if why is not None:
        return error_result(f"[hermes-ext] {why}")
    task_id, session_id = _ids(context)
    with host.stray_turn(session_id, task_id or None) as turn:
        return _gated_execution(turn, original, tool_name, args, next_call, context)


def _why_outside(context: Context) -> str | None:
    """Why a call may not run that belongs to no open turn, or None where it may be checked."""
    return host.refusal_without_turn(*_ids(context)) or (
        ENDED if host.turn_is_over(context) else None
    )


def _ids(context: Context) -> tuple[str, str]:
    task_id, session_id = (str(context.get(key) or "") for key in ("task_id", "session_id"))
    return task_id, session_id


def _idle_at(context: Context) -> bool:
    """Whether nothing is in force where the session of a call works."""
    return host.rules_for(*_ids(context)).idle


def _gated_execution(
    turn: Turn, original: Original, tool_name: str, args: Any, next_call: NextCall, context: Context
) -> Any:
    """One execution with the gate innermost: around what really runs the tool."""
    host_id = str(context.get("tool_call_id") or "")
    outer = _passed_on(turn, tool_name, host_id)
    judged: list[Verdict] = []

    def gate(final: Any) -> Any:
        verdict = _admitted(turn, tool_name, final, host_id, outer)
        judged.append(verdict)
        if verdict.refusal is not None:
            return _not_run(tool_name, verdict, error_result(verdict.refusal), context, "blocked")
        if verdict.answer is not None:
            return _not_run(tool_name, verdict, verdict.answer, context, None)
        with _granted(turn, verdict) as grant:
            try:
                result = _run(turn, verdict, outer, next_call)
            finally:
                judged[-1] = grant.verdict  # a hook inside may have changed what runs
        if verdict.refusal is not None:  # it could not be confined
            return _not_run(tool_name, verdict, error_result(verdict.refusal), context, "blocked")
        return result if grant.verdict.answer is None else grant.verdict.answer

    # A call that a script makes is in the script's.
    with out_of_call() if outer is None else nullcontext():
        started = time.monotonic()
        result = original(tool_name, args, gate, **context)
        if outer is not None:
            return result  # the step around this one looks at it
        if judged:
            verdict = judged[0]
        else:  # another plugin's middleware did not pass the call on: its result has no leave yet
            verdict = _admitted(turn, tool_name, args, host_id, None)
            if verdict.refusal is not None:
                result = error_result(verdict.refusal)
            elif verdict.answer is not None:
                result = verdict.answer
        if verdict.refusal is not None and result == error_result(verdict.refusal):
            return result  # nothing of the tool's to look at
        if hook_is_on(turn, HookName.TRANSFORM_TOOL_RESULT):
            result = looked_at(turn, verdict, result, int((time.monotonic() - started) * 1000))
        return _for_script(result) if _called_by_script() else result


def _run(turn: Turn, verdict: Verdict, outer: Grant | None, next_call: NextCall) -> Any:
    """Run a call, confined where its verdict says so; a refusal is put into the verdict."""
    confined = verdict.confined
    if confined is not None and (outer is None or verdict is not outer.verdict):
        from hermes_ext.hosts.hermes.adapter.gate.confining import run_confined

        return run_confined(turn, verdict, confined, next_call)
    result = next_call(verdict.arguments.copy())
    if state.has_confined and outer is None:
        from hermes_ext.hosts.hermes.adapter.gate.confining import of_process

        return of_process(verdict, result)
    return result


def _called_by_script() -> bool:
    """Whether the call comes back from a script that `execute_code` runs."""
    grant = state.grant.get()
    return grant is not None and grant.verdict.tool == "execute_code"


def _for_script(result: Any) -> Any:
    """A result in the one form that the script's end of the line reads: JSON in one line."""
    if not isinstance(result, str):
        return result
    try:
        json.loads(result)
    except ValueError:
        return json.dumps(result)
    return result


def _passed_on(turn: Turn, tool: str, host_id: str) -> Grant | None:
    """The grant of the step around this one, where Hermes nests two steps for one call."""
    grant = _leave_for(turn, tool, host_id)
    return grant if grant is not None and grant.use() else None


def _leave_for(turn: Turn, tool: str, host_id: str | None) -> Grant | None:
    """The grant that the gate around this step has given to this very call.

    What a tool runs may be another turn, of a subagent say, in which the same tool is called.
    """
    grant = state.grant.get()
    if grant is None or grant.used or grant.turn is not turn or grant.verdict.tool != tool:
        return None
    return grant if host_id in (None, grant.verdict.host_id) else None


def _admitted(turn: Turn, tool: str, args: Any, host_id: str, outer: Grant | None) -> Verdict:
    """The verdict under which the call may run, or may not."""
    verdict = None if turn.closed else _verdict_at_gate(turn, tool, args, host_id, outer)
    if verdict is None or turn.closed:  # it may have ended while a person was asked
        return Verdict(tool, Arguments({}), host_id, refusal=f"[{OWN}] {ENDED}")
    return verdict


def _verdict_at_gate(
    turn: Turn, tool: str, args: Any, host_id: str, outer: Grant | None
) -> Verdict:
    try:
        judge = Judge(turn)
        arrived = Arrived(tool, args)
        if outer is not None:
            if arrived.has(outer.verdict.arguments):
                return outer.verdict
            changed = judge.again(outer.verdict, arrived).settled()
            outer.verdict.refusal = changed.refusal  # the outer step is to know what came of it
            return changed
        verdict, exact = judge.take(arrived, host_id)
        if verdict is None:
            return judge.fresh(arrived, host_id).settled()
        return (verdict if exact else judge.again(verdict, arrived)).settled()
    except Exception as error:  # a guard that cannot be asked has not said yes
        logger.exception("hermes-ext could not judge a call of %s at the last gate", tool)
        return Verdict(tool, Arguments({}), host_id, refusal=_not_evaluated(turn, tool, error))


def _not_evaluated(turn: Turn, tool: str, error: Exception) -> str:
    """The refusal of a call that could not be evaluated; the person sees it too."""
    if turn.closed:
        return f"[{OWN}] {ENDED}"
    refusal = internal_fault(error)
    turn.notify_refusal(OWN, tool, refusal.removeprefix(f"[{OWN}] "))
    return refusal


class _granted:  # noqa: N801 - used as a function; a generator takes three times as long
    """While open, the call has leave to run."""

    def __init__(self, turn: Turn, verdict: Verdict) -> None:
        self._grant = Grant(verdict, turn)
        self._entered = entered(turn)  # also in a thread that has found it by its ids

    def __enter__(self) -> Grant:
        grant = self._grant
        self._before = (
            state.grant.set(grant),
            # What runs inside, a subagent say, is on its own paths.
            state.in_invoke_tool.set(False),
            state.agreed.set(lambda: grant.verdict.host_question),
        )
        self._entered.__enter__()
        return grant

    def __exit__(self, *_: object) -> None:
        self._entered.__exit__()
        grant, in_invoke_tool, agreed = self._before
        state.agreed.reset(agreed)
        state.in_invoke_tool.reset(in_invoke_tool)
        state.grant.reset(grant)


def _not_run(tool: str, verdict: Verdict, result: str, context: Context, status: str | None) -> str:
    """The result of a call that did not run, told to observers where Hermes would not."""
    if state.in_invoke_tool.get():
        from model_tools import _emit_post_tool_call_hook

        _emit_post_tool_call_hook(
            function_name=tool,
            function_args=verdict.arguments.copy(),
            result=result,
            task_id=str(context.get("task_id") or ""),
            session_id=str(context.get("session_id") or ""),
            tool_call_id=verdict.host_id,
            turn_id=str(context.get("turn_id") or ""),
            api_request_id=str(context.get("api_request_id") or ""),
            status=status,
            error_type="plugin_block" if status else None,
            error_message=verdict.refusal,
        )
    return result


def invoke_tool(original: Original, agent: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `AIAgent._invoke_tool`: marks the path on which a gate must tell observers itself."""
    with held(state.in_invoke_tool, True):
        return original(agent, *args, **kwargs)


def dispatch(original: Original, registry: Any, name: str, args: Any, **kwargs: Any) -> Any:
    """Wraps `ToolRegistry.dispatch`: runs what the gate granted, judges what came another way."""
    context = {"task_id": kwargs.get("task_id"), "session_id": kwargs.get("session_id")}
    return _run_directly(
        name, args, lambda final: original(registry, name, final, **kwargs), context
    )


def search_catalog(original: Original, args: Any, **kwargs: Any) -> Any:
    """Wraps `tools.tool_search.dispatch_tool_search`, which no middleware is around."""
    return _read_catalog("tool_search", args, lambda final: original(final, **kwargs))


def describe_tool(original: Original, args: Any, **kwargs: Any) -> Any:
    """Wraps `tools.tool_search.dispatch_tool_describe`, which no middleware is around."""
    return _read_catalog("tool_describe", args, lambda final: original(final, **kwargs))


def _read_catalog(name: str, args: Any, run: NextCall) -> Any:
    """Run one of the two tools that Hermes runs without saying for which call."""
    turn = host.find_turn({})
    judged = Judge(turn).waiting(Arrived(name, args)) if turn is not None else None
    return _run_directly(name, args, run, {"tool_call_id": judged.host_id if judged else ""})


def _run_directly(name: str, args: Any, run: NextCall, context: Context) -> Any:
    """Run a tool whose caller passed no gate, or has leave from the gate around it."""
    turn = host.find_turn(context)
    if turn is None:
        return _stray_execution(_no_middleware, name, args, run, context)
    grant = _leave_for(turn, name, None)
    if grant is not None and grant.use() and Arrived(name, args).has(grant.verdict.arguments):
        # Our own copy: nobody else can change it between this look and the run.
        return run(grant.verdict.arguments.copy())
    if not _concerned(turn):
        return run(args)
    return _gated_execution(turn, _no_middleware, name, args, run, context)


def _no_middleware(tool: str, args: Any, next_call: NextCall, **_: Any) -> Any:
    return next_call(args)


def _concerned(turn: Turn) -> bool:
    return not turn.rules.idle and (
        turn.rules.refusal is not None
        or hook_is_on(turn, HookName.INTERCEPT_TOOL_CALL)
        or hook_is_on(turn, HookName.TRANSFORM_TOOL_RESULT)
    )
