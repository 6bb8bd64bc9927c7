"""Tool calls: one verdict for each, and a last gate that runs nothing without one.

A call passes Hermes in steps, and other plugins may change it at each of them. It is judged once,
at the first step, as a `Verdict` that names exactly what may run. The later steps look the verdict
up by what is about to run; different arguments mean a new judgement, and no exception of ours
reaches Hermes, because Hermes would let the call through.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from attrs import define

from hermes_ext._hooks.specs import HookName
from hermes_ext._turns.decisions import canonical_digest
from hermes_ext._turns.state import judging_again
from hermes_ext._turns.turn import Turn
from hermes_ext.hosts.hermes.host import hook_is_on, the_host

logger = logging.getLogger("hermes_ext")

Args = dict[str, Any]
NextCall = Callable[[Any], Any]

_OVER: Final = "the turn that this call belongs to has ended"


@define(eq=False)
class Verdict:
    """What was decided on one tool call.

    Attributes:
        tool: the tool.
        host_id: Hermes's id of the call, possibly empty or used twice.
        call_id: ours: never empty, unique in the turn.
        args: the arguments that may run, ours alone.
        digest: of tool and arguments.
        refusal: why it may not run, or None.
        answer: its result, given without running it, or None.
        pending: asks the person whether it may run; returns the refusal or None.
    """

    tool: str
    host_id: str
    call_id: str
    args: Args
    digest: str
    refusal: str | None = None
    answer: str | None = None
    pending: Callable[[], str | None] | None = None

    def settled(self) -> Verdict:
        """This verdict, after a person was asked where one had to be."""
        if self.pending is not None:
            ask, self.pending = self.pending, None
            self.refusal = self.refusal or ask()
        return self


@define(eq=False)
class _Grant:
    """Leave to run one call, given by the gate to what it calls; good for one step inside."""

    verdict: Verdict
    turn: Turn
    used: bool = False


_grant: ContextVar[_Grant | None] = ContextVar("hermes_ext_grant", default=None)
_in_invoke_tool: ContextVar[bool] = ContextVar("hermes_ext_in_invoke_tool", default=False)


def _error(text: str) -> str:
    return json.dumps({"error": text}, ensure_ascii=False)


def _coerced(tool: str, args: Any) -> Args:
    """A copy of the arguments with the types that the tool will get (`"5"` becomes 5)."""
    from model_tools import coerce_tool_args

    own = copy.deepcopy(args) if isinstance(args, dict) else {}
    coerced = coerce_tool_args(tool, own)
    return coerced if isinstance(coerced, dict) else {}


def _digest(tool: str, args: Args) -> str:
    return canonical_digest([tool, args])


class _Judge:
    """Verdicts for the calls of one turn."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.pool: list[Verdict] = turn.host.verdicts

    def fresh(self, tool: str, args: Any, host_id: str) -> Verdict:
        """Judge a call for the first time; a rewrite of the arguments is taken."""
        own = _coerced(tool, args)
        call_id = host_id if host_id and not self._used(host_id) else self.turn.new_call_id()
        return self._judged(tool, own, host_id, call_id, rewrite=True)

    def again(self, before: Verdict, args: Any) -> Verdict:
        """Judge a call whose arguments were changed after its verdict."""
        own = _coerced(before.tool, args)
        with judging_again():
            return self._judged(before.tool, own, before.host_id, before.call_id, rewrite=False)

    def _judged(
        self, tool: str, args: Args, host_id: str, call_id: str, *, rewrite: bool
    ) -> Verdict:
        turn = self.turn
        if turn.runtime.refusal is not None:
            refusal = f"[hermes-ext] {turn.runtime.refusal}"
            return Verdict(tool, host_id, call_id, args, _digest(tool, args), refusal=refusal)
        outcome = turn.judge_tool_call(tool, args, tool_call_id=call_id)
        if outcome.blocked:
            refusal = f"[{outcome.blocked_by}] {outcome.message}"
            return Verdict(tool, host_id, call_id, args, _digest(tool, args), refusal=refusal)
        if outcome.answered:
            answer = str(outcome.value)
            return Verdict(tool, host_id, call_id, args, _digest(tool, args), answer=answer)
        final = outcome.final(args)
        if outcome.changed and not rewrite:
            rewriter = _who_changed(outcome)
            refusal = (
                f"[{rewriter}] the arguments of {tool} were changed by {_other_plugins()} after "
                f"the extensions had judged them, and {rewriter} would rewrite them once more; "
                "the two do not go together, so the call is refused"
            )
            return Verdict(tool, host_id, call_id, args, _digest(tool, args), refusal=refusal)
        verdict = Verdict(tool, host_id, call_id, _coerced(tool, final), "")
        verdict.digest = _digest(tool, verdict.args)
        if outcome.asks:
            verdict.pending = lambda: _asked(turn, outcome, verdict)
        return verdict

    def _used(self, host_id: str) -> bool:
        with self.turn.lock:
            seen = host_id in self.turn.host.call_ids
            self.turn.host.call_ids.add(host_id)
            return seen

    def store(self, verdict: Verdict) -> None:
        with self.turn.lock:
            self.pool.append(verdict)

    def find(self, tool: str, digest: str, host_id: str) -> Verdict | None:
        """The newest verdict on exactly this call."""
        with self.turn.lock:
            return self._newest(tool, host_id, digest)

    def take(self, tool: str, digest: str, host_id: str) -> tuple[Verdict | None, bool]:
        """The verdict for this call, used up by it, and whether it is for these arguments."""
        with self.turn.lock:
            exact = self._newest(tool, host_id, digest)
            verdict = exact or self._newest(tool, host_id, None)
            if verdict is not None:
                self.pool.remove(verdict)
            return verdict, exact is not None

    def waiting(self, tool: str, args: Any) -> Verdict | None:
        """A verdict on such a call, whatever its id."""
        digest = _digest(tool, _coerced(tool, args))
        with self.turn.lock:
            return next(
                (one for one in self.pool if (one.tool, one.digest) == (tool, digest)), None
            )

    def drop(self, verdict: Verdict) -> None:
        with self.turn.lock, contextlib.suppress(ValueError):
            self.pool.remove(verdict)

    def _newest(self, tool: str, host_id: str, digest: str | None) -> Verdict | None:
        for verdict in reversed(self.pool):
            same = verdict.tool == tool and verdict.host_id == host_id
            if same and (digest is None or verdict.digest == digest):
                return verdict
        return None


def _who_changed(outcome: Any) -> str:
    return next((step.extension for step in outcome.steps if step.changed), "hermes-ext")


def _other_plugins() -> str:
    """The plugins that can change arguments after us, as they are named in a message."""
    from hermes_cli.plugins import get_plugin_manager

    manager = get_plugin_manager()
    callbacks = [
        *getattr(manager, "_hooks", {}).get("pre_tool_call", ()),
        *getattr(manager, "_middleware", {}).get("tool_execution", ()),
    ]
    modules = (str(getattr(callback, "__module__", "")) for callback in callbacks)
    names = sorted({module.removeprefix("hermes_plugins.") for module in modules} - {""})
    if len(names) == 1:
        return f"the plugin {names[0]}"
    return f"another plugin ({' or '.join(names)})" if names else "another plugin"


def _asked(turn: Turn, outcome: Any, verdict: Verdict) -> str | None:
    settled = turn.settle(outcome, verdict.tool, verdict.args)
    return None if settled.approved else f"[{settled.blocked_by}] {settled.message}"


# -- the steps, in the order in which Hermes takes them ----------------------------------------


def apply_tool_request(
    original: Callable[..., Any], tool_name: str, args: Any, **context: Any
) -> Any:
    """Wraps `hermes_cli.middleware.apply_tool_request_middleware`: the others first, then we."""
    result = original(tool_name, args, **context)
    turn = the_host.find_turn(context)
    if turn is None or not _concerned(turn):
        return result
    try:
        judge = _Judge(turn)
        verdict = judge.fresh(tool_name, result.payload, str(context.get("tool_call_id") or ""))
        judge.store(verdict)
        # Types that Hermes coerces anyway are no change: other plugins see what they always saw.
        if _digest(tool_name, _coerced(tool_name, result.payload)) != verdict.digest:
            result.changed = True
            result.trace = [*result.trace, {"source": "hermes-ext"}]
            result.payload = copy.deepcopy(verdict.args)
    except Exception:  # without a verdict the last gate judges the call, or refuses it
        logger.exception("hermes-ext could not judge a call of %s at its first step", tool_name)
    return result


def pre_tool_block(
    original: Callable[..., Any], tool_name: str, args: Any, *positional: Any, **context: Any
) -> Any:
    """Wraps `hermes_cli.plugins.resolve_pre_tool_block` (0.17: `get_pre_tool_call_block_message`).

    Other plugins' hooks run first, once: their block stands, and their leave does not lift ours.
    """
    message = original(tool_name, args, *positional, **context)
    turn = the_host.find_turn(context)
    if turn is None:
        over = the_host.turn_is_over(context) and not the_host.runtime().idle
        return message or (f"[hermes-ext] {_OVER}" if over else None)
    if not _concerned(turn):
        return message
    try:
        return _block_message(_Judge(turn), tool_name, args, context, message)
    except Exception as error:  # a guard that cannot be asked has not said yes
        logger.exception("hermes-ext could not judge a call of %s", tool_name)
        return message or _internal(error)


def _block_message(
    judge: _Judge, tool: str, args: Any, context: dict[str, Any], message: str | None
) -> str | None:
    host_id = str(context.get("tool_call_id") or "")
    now = _coerced(tool, args)
    verdict = judge.find(tool, _digest(tool, now), host_id)
    if verdict is None:
        verdict = _without_exact(judge, tool, now, host_id)
        judge.store(verdict)
    if message is None:
        message = verdict.settled().refusal
    if message is not None:
        judge.drop(verdict)
    return message


def _without_exact(judge: _Judge, tool: str, args: Args, host_id: str) -> Verdict:
    before, _ = judge.take(tool, "", host_id)
    return judge.again(before, args) if before is not None else judge.fresh(tool, args, host_id)


def run_tool_execution(
    original: Callable[..., Any],
    tool_name: str,
    args: Any,
    next_call: NextCall,
    **context: Any,
) -> Any:
    """Wraps `hermes_cli.middleware.run_tool_execution_middleware`: the last gate.

    `next_call` is what really runs the tool, inside every other plugin's middleware.
    """
    turn = the_host.find_turn(context)
    if turn is None:
        return _stray_execution(original, tool_name, args, next_call, context)
    if not _concerned(turn):
        return original(tool_name, args, next_call, **context)
    return _gated_execution(turn, original, tool_name, args, next_call, context)


def _stray_execution(
    original: Callable[..., Any],
    tool_name: str,
    args: Any,
    next_call: NextCall,
    context: dict[str, Any],
) -> Any:
    if the_host.runtime().idle:
        return original(tool_name, args, next_call, **context)
    if the_host.turn_is_over(context):
        return _error(f"[hermes-ext] {_OVER}")
    with the_host.stray_turn(str(context.get("session_id") or ""), None) as turn:
        return _gated_execution(turn, original, tool_name, args, next_call, context)


def _gated_execution(
    turn: Turn,
    original: Callable[..., Any],
    tool_name: str,
    args: Any,
    next_call: NextCall,
    context: dict[str, Any],
) -> Any:
    """One execution with the gate innermost: around what really runs the tool."""
    host_id = str(context.get("tool_call_id") or "")
    outer = _passed_on(turn, tool_name, host_id)
    judged: list[Verdict] = []

    def gate(final: Any) -> Any:
        verdict = _admitted(turn, tool_name, final, host_id, outer)
        judged.append(verdict)
        if verdict.refusal is not None:
            return _not_run(tool_name, verdict, _error(verdict.refusal), context, "blocked")
        if verdict.answer is not None:
            return _not_run(tool_name, verdict, verdict.answer, context, None)
        with _granted(turn, verdict):
            return next_call(copy.deepcopy(verdict.args))

    started = time.monotonic()
    result = original(tool_name, args, gate, **context)
    if outer is not None:
        return result  # the step around this one looks at it
    verdict = judged[0] if judged else _unused(turn, tool_name, args, host_id)
    if verdict.refusal is not None and result == _error(verdict.refusal):
        return result  # nothing of the tool's to look at
    if not judged and verdict.answer is not None:
        result = verdict.answer
    seen = _looked_at(turn, verdict, result, int((time.monotonic() - started) * 1000))
    return _for_script(seen) if _called_by_script() else seen


def _called_by_script() -> bool:
    """Whether the call comes back from a script that `execute_code` runs."""
    grant = _grant.get()
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


def _unused(turn: Turn, tool: str, args: Any, host_id: str) -> Verdict:
    """The verdict on a call that another plugin's middleware did not pass on to the gate."""
    judge = _Judge(turn)
    try:
        now = _coerced(tool, args)
        verdict, _ = judge.take(tool, _digest(tool, now), host_id)
        return verdict or Verdict(tool, host_id, turn.new_call_id(), now, "")
    except Exception:  # arguments that cannot be copied; the result is looked at all the same
        logger.exception("hermes-ext could not tell which call of %s this was", tool)
        return Verdict(tool, host_id, turn.new_call_id(), {}, "")


def _passed_on(turn: Turn, tool: str, host_id: str) -> _Grant | None:
    """The grant of the step around this one, where Hermes nests two steps for one call."""
    grant = _grant.get()
    if grant is None or grant.used or grant.turn is not turn:
        return None
    if grant.verdict.tool != tool or grant.verdict.host_id != host_id:
        return None
    grant.used = True
    return grant


def _admitted(turn: Turn, tool: str, args: Any, host_id: str, outer: _Grant | None) -> Verdict:
    """The verdict under which the call may run, or may not."""
    try:
        judge = _Judge(turn)
        if turn.closed:
            return Verdict(tool, host_id, "", {}, "", refusal=f"[hermes-ext] {_OVER}")
        now = _coerced(tool, args)
        digest = _digest(tool, now)
        if outer is not None:
            if outer.verdict.digest == digest:
                return outer.verdict
            changed = judge.again(outer.verdict, now).settled()
            outer.verdict.refusal = changed.refusal  # the outer step is to know what came of it
            return changed
        verdict, exact = judge.take(tool, digest, host_id)
        if verdict is None:
            return judge.fresh(tool, now, host_id).settled()
        return (verdict if exact else judge.again(verdict, now)).settled()
    except Exception as error:  # a guard that cannot be asked has not said yes
        logger.exception("hermes-ext could not judge a call of %s at the last gate", tool)
        return Verdict(tool, host_id, "", {}, "", refusal=_internal(error))


@contextmanager
def _granted(turn: Turn, verdict: Verdict) -> Iterator[None]:
    grant = _grant.set(_Grant(verdict, turn))
    # What runs inside (a subagent, say) is on paths of its own.
    path = _in_invoke_tool.set(False)
    try:
        yield
    finally:
        _in_invoke_tool.reset(path)
        _grant.reset(grant)


def _not_run(
    tool: str, verdict: Verdict, result: str, context: dict[str, Any], status: str | None
) -> str:
    """The result of a call that did not run, told to observers where Hermes would not."""
    if _in_invoke_tool.get():
        from model_tools import _emit_post_tool_call_hook

        _emit_post_tool_call_hook(
            function_name=tool,
            function_args=verdict.args,
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


def invoke_tool(original: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `AIAgent._invoke_tool`: marks the path on which a gate must tell observers itself."""
    token = _in_invoke_tool.set(True)
    try:
        return original(agent, *args, **kwargs)
    finally:
        _in_invoke_tool.reset(token)


def dispatch(
    original: Callable[..., Any], registry: Any, name: str, args: Any, **kwargs: Any
) -> Any:
    """Wraps `ToolRegistry.dispatch`: runs what the gate granted, judges what came another way."""
    context = {"task_id": kwargs.get("task_id"), "session_id": kwargs.get("session_id")}
    return _run_directly(
        name, args, lambda final: original(registry, name, final, **kwargs), context
    )


def search_catalog(original: Callable[..., Any], args: Any, **kwargs: Any) -> Any:
    """Wraps `tools.tool_search.dispatch_tool_search`, which no middleware is around."""
    return _read_catalog("tool_search", args, lambda final: original(final, **kwargs))


def describe_tool(original: Callable[..., Any], args: Any, **kwargs: Any) -> Any:
    """Wraps `tools.tool_search.dispatch_tool_describe`, which no middleware is around."""
    return _read_catalog("tool_describe", args, lambda final: original(final, **kwargs))


def _read_catalog(name: str, args: Any, run: NextCall) -> Any:
    """Run one of the two tools that Hermes runs without saying for which call."""
    turn = the_host.find_turn({})
    judged = _Judge(turn).waiting(name, args) if turn is not None else None
    return _run_directly(name, args, run, {"tool_call_id": judged.host_id if judged else ""})


def _run_directly(name: str, args: Any, run: NextCall, context: dict[str, Any]) -> Any:
    """Run a tool whose caller passed no gate, or has leave from the gate around it."""
    grant = _grant.get()
    if grant is not None and not grant.used and grant.verdict.tool == name:
        grant.used = True
        if _digest(name, _coerced(name, args)) == grant.verdict.digest:
            # Our own copy: nobody else can change it between this look and the run.
            return run(copy.deepcopy(grant.verdict.args))
    turn = the_host.find_turn(context)
    if turn is None:
        return _stray_execution(_no_middleware, name, args, run, context)
    if not _concerned(turn):
        return run(args)
    return _gated_execution(turn, _no_middleware, name, args, run, context)


def _no_middleware(tool: str, args: Any, next_call: NextCall, **_: Any) -> Any:
    return next_call(args)


# -- results -----------------------------------------------------------------------------------


def _looked_at(turn: Turn, verdict: Verdict, result: Any, duration_ms: int) -> Any:
    """The result as the hook `transform_tool_result` leaves it."""
    if not hook_is_on(turn, HookName.TRANSFORM_TOOL_RESULT):
        return result
    text = _text_of_result(result)
    try:
        outcome = turn.transform_tool_result(
            verdict.tool,
            verdict.args,
            text,
            tool_call_id=verdict.call_id,
            status=_status(text),
            duration_ms=duration_ms,
        )
    except Exception as error:  # what nobody could look at is not shown
        logger.exception("hermes-ext could not look at a result of %s", verdict.tool)
        return _error(_internal(error))
    if outcome.blocked:
        return _error(f"[{outcome.blocked_by}] {outcome.message}")
    return _with_text(result, str(outcome.value)) if outcome.changed else result


def _text_of_result(result: Any) -> str:
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        parts = (part.get("text") for part in result["content"] if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return result if isinstance(result, str) else json.dumps(result, default=str)


def _with_text(result: Any, text: str) -> Any:
    """The result with another text; what is not text (images) stays."""
    if not (isinstance(result, dict) and isinstance(result.get("content"), list)):
        return text
    others = [
        part
        for part in result["content"]
        if not (isinstance(part, dict) and isinstance(part.get("text"), str))
    ]
    changed = {**result, "content": [{"type": "text", "text": text}, *others]}
    if "text_summary" in changed:
        changed["text_summary"] = text
    return changed


def _status(text: str) -> str:
    try:
        decoded = json.loads(text)
    except ValueError:
        return "ok"
    return "error" if isinstance(decoded, dict) and decoded.get("error") else "ok"


def _concerned(turn: Turn) -> bool:
    return (
        turn.runtime.refusal is not None
        or hook_is_on(turn, HookName.INTERCEPT_TOOL_CALL)
        or hook_is_on(turn, HookName.TRANSFORM_TOOL_RESULT)
    )


def _internal(error: BaseException) -> str:
    return (
        f"[hermes-ext] the call could not be judged ({type(error).__name__}), so it is refused; "
        "the Hermes log has the details"
    )
