"""Verdicts on the tool calls of a turn: what was judged, and what may run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from hermes_ext.hooks.payloads import ToolCall
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.holes import hole
from hermes_ext.hosts.hermes.adapter.host_questions import HostQuestion, collecting
from hermes_ext.hosts.hermes.adapter.places import tool_directory
from hermes_ext.turns.decisions import canonical_digest
from hermes_ext.turns.state import judging_again
from hermes_ext.turns.turn import Turn

Args = dict[str, Any]

_UNANSWERED: Final = "[hermes-ext] this needs a person's approval, and nobody has answered"


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
        host_question: Hermes's own question about it, which the person has answered with ours.
    """

    tool: str
    host_id: str
    call_id: str
    args: Args
    digest: str
    refusal: str | None = None
    answer: str | None = None
    pending: Callable[[], str | None] | None = None
    host_question: HostQuestion | None = None
    _asking: threading.RLock = field(factory=threading.RLock, init=False)

    def settled(self) -> Verdict:
        """This verdict, after a person was asked where one had to be.

        Another call that is the same to the byte may find this verdict meanwhile: it waits for the
        answer. A question that is broken off (Ctrl-C) has been answered with no.
        """
        with self._asking:
            if self.pending is not None:
                ask, self.pending = self.pending, None
                if self.refusal is None:
                    self.refusal = _UNANSWERED
                    self.refusal = ask()
        return self


def coerced(tool: str, args: Any) -> Args:
    """A copy of the arguments with the types that the tool will get (`"5"` becomes 5).

    Raises:
        TypeError: a value is not of the plain types.
        RecursionError: they contain themselves, or are nested too deeply.
    """
    from model_tools import coerce_tool_args

    coerced = coerce_tool_args(tool, plain(args) if isinstance(args, dict) else {})
    return coerced if isinstance(coerced, dict) else {}


def plain(value: Any) -> Any:
    """A copy in plain types only: of an object of a class of its own, what it really holds.

    Another plugin can put such an object into a call, whose methods may tell a guard one thing and
    the tool another. So it is neither judged nor run, but what it holds. What is of no plain type
    at all cannot be judged.

    Raises:
        TypeError: of such a value.
    """
    if value is None or type(value) in _ATOMS:
        return value
    for kind, made in _PLAIN.items():
        if isinstance(value, kind):
            return made(value)
    raise TypeError(f"an argument is a {type(value).__name__}, which is not a JSON value")


_ATOMS: Final = frozenset({str, int, float, bool, bytes})
_PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: lambda value: b"".join((value,)),
    dict: lambda value: {plain(key): plain(each) for key, each in dict.items(value)},
    list: lambda value: [plain(each) for each in list.__iter__(value)],
    tuple: lambda value: tuple(plain(each) for each in tuple.__iter__(value)),
    set: lambda value: {plain(each) for each in set.__iter__(value)},
    frozenset: lambda value: frozenset(plain(each) for each in frozenset.__iter__(value)),
}


def digest_of(tool: str, args: Args) -> str:
    """What tells a call with these arguments from any other."""
    return canonical_digest([tool, args])


class Judge:
    """Verdicts for the calls of one turn."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.pool: list[Verdict] = turn.host.verdicts

    def fresh(self, tool: str, args: Any, host_id: str) -> Verdict:
        """Judge a call for the first time; a rewrite of the arguments is taken."""
        own = coerced(tool, args)
        call_id = host_id if host_id and not self._used(host_id) else self.turn.new_call_id()
        return self._judged(tool, own, host_id, call_id, rewrite=True)

    def again(self, before: Verdict, args: Any) -> Verdict:
        """Judge a call whose arguments were changed after its verdict."""
        own = coerced(before.tool, args)
        with judging_again():
            return self._judged(before.tool, own, before.host_id, before.call_id, rewrite=False)

    def _judged(
        self, tool: str, args: Args, host_id: str, call_id: str, *, rewrite: bool
    ) -> Verdict:
        turn, refusal = self.turn, self.turn.rules.refusal
        if refusal is not None:  # the person has been shown it at the start
            call = ToolCall(tool, args, call_id)
            turn.log_refusal(HookName.INTERCEPT_TOOL_CALL, OWN, refusal, call, turn.rules.cause)
            refusal = f"[{OWN}] {refusal}"
            return Verdict(tool, host_id, call_id, args, digest_of(tool, args), refusal=refusal)
        cwd = tool_directory(turn.task_id or turn.host.stray_task, turn.directory)
        outcome = turn.judge_tool_call(tool, args, tool_call_id=call_id, cwd=cwd)
        if outcome.blocked:
            refusal = f"[{outcome.blocked_by}] {outcome.message}"
            return Verdict(tool, host_id, call_id, args, digest_of(tool, args), refusal=refusal)
        if outcome.answered:
            answer = str(outcome.value)
            return Verdict(tool, host_id, call_id, args, digest_of(tool, args), answer=answer)
        final = outcome.final(args)
        fault = hole(tool, final)
        if fault is not None:
            turn.notify_refusal(OWN, tool, fault, tool_args=args, tool_call_id=call_id)
            refusal = f"[hermes-ext] {fault}"
            return Verdict(tool, host_id, call_id, args, digest_of(tool, args), refusal=refusal)
        if outcome.changed and not rewrite:
            rewriter = _who_changed(outcome)
            clash = (
                f"the arguments of {tool} were changed by {_other_plugins()} after "
                f"the extensions had judged them, and {rewriter} would rewrite them once more; "
                "the two do not go together, so the call is refused"
            )
            turn.notify_refusal(rewriter, tool, clash, tool_args=args, tool_call_id=call_id)
            refusal = f"[{rewriter}] {clash}"
            return Verdict(tool, host_id, call_id, args, digest_of(tool, args), refusal=refusal)
        verdict = Verdict(tool, host_id, call_id, coerced(tool, final), "")
        verdict.digest = digest_of(tool, verdict.args)
        if outcome.asks:
            verdict.pending = lambda: _asked(turn, outcome, verdict)
        return verdict

    def _used(self, host_id: str) -> bool:
        with self.turn.lock:
            seen = host_id in self.turn.host.call_ids
            self.turn.host.call_ids.add(host_id)
            return seen

    def store(self, verdict: Verdict) -> None:
        """Keep a verdict for the steps to come."""
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
        digest = digest_of(tool, coerced(tool, args))
        with self.turn.lock:
            return next(
                (one for one in self.pool if (one.tool, one.digest) == (tool, digest)), None
            )

    def drop(self, verdict: Verdict) -> None:
        """Forget a verdict: its call has ended."""
        with self.turn.lock, contextlib.suppress(ValueError):
            self.pool.remove(verdict)

    def _newest(self, tool: str, host_id: str, digest: str | None) -> Verdict | None:
        for verdict in reversed(self.pool):
            same = verdict.tool == tool and verdict.host_id == host_id
            if same and (digest is None or verdict.digest == digest):
                return verdict
        return None


def _who_changed(outcome: Any) -> str:
    changed = (one for one in reversed(outcome.steps) if one.changed and not one.observed)
    return next((step.extension for step in changed), OWN)


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
    with collecting() as answered:
        settled = turn.settle(outcome, verdict.tool, verdict.args)
    if not settled.approved:
        return f"[{settled.blocked_by}] {settled.message}"
    verdict.host_question = answered[-1] if answered else None
    return None
