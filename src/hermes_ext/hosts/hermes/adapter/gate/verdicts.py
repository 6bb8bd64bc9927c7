"""Verdicts on the tool calls of a turn: what was judged, and what may run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, Final

from hermes_ext._values import define, field
from hermes_ext.chain.outcome import ChainOutcome, Confined
from hermes_ext.hooks.arguments import Arguments
from hermes_ext.hooks.payloads import ToolCall
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.gate.servers import only_reads
from hermes_ext.hosts.hermes.adapter.person.host_questions import HostQuestion
from hermes_ext.hosts.hermes.adapter.places import tool_directory
from hermes_ext.hosts.hermes.adapter.state import held, state
from hermes_ext.turns.decisions.canonical import canonical_json
from hermes_ext.turns.state import judging_again
from hermes_ext.turns.turn import Turn

_UNANSWERED: Final = "[hermes-ext] this needs a person's approval, and nobody has answered"


@define(eq=False)
class Verdict:
    """What was decided on one tool call.

    Attributes:
        tool: the tool.
        arguments: those that may run.
        host_id: Hermes's id of the call, possibly empty or used twice.
        call_id: ours: never empty, unique in the turn.
        refusal: why it may not run, or None.
        answer: its result, given without running it, or None.
        rewritten: whether extensions have changed the arguments that arrived.
        pending: asks the person whether it may run; returns the refusal or None.
        host_question: Hermes's own question about it, which the person has answered with ours.
        confined: what it may change where it runs; None: it is not confined.
    """

    tool: str
    arguments: Arguments
    host_id: str
    call_id: str = ""
    refusal: str | None = None
    answer: str | None = None
    rewritten: bool = False
    pending: Callable[[], str | None] | None = None
    host_question: HostQuestion | None = None
    confined: Confined | None = None
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


class Arrived:
    """A call as it arrives at a gate, possibly after other plugins have changed its arguments."""

    def __init__(self, tool: str, args: Any) -> None:
        self.tool = tool
        self._args = args

    @cached_property
    def arguments(self) -> Arguments:
        """Our own copy, with the types that the tool will get (`"5"` becomes 5).

        Raises:
            TypeError: a value is not of the plain types.
            RecursionError: they contain themselves, or are nested too deeply.
        """
        return coerced(self.tool, self._args)

    def has(self, judged: Arguments) -> bool:
        """Whether it has these arguments, so that their verdict holds; raises as `arguments`."""
        if _alike(self._args, judged.shared):
            return True
        return canonical_json(self.arguments.shared) == canonical_json(judged.shared)


def coerced(tool: str, args: Any) -> Arguments:
    """Arguments as `Arrived.arguments` has them."""
    from model_tools import coerce_tool_args

    made = coerce_tool_args(tool, plain(args) if isinstance(args, dict) else {})
    return Arguments(made if isinstance(made, dict) else {})


def _alike(arrived: Any, judged: Any) -> bool:
    """Whether a value is the same as a plain one, to the type. False where that is hard to say."""
    kind = type(judged)
    if type(arrived) is not kind:
        return False
    if kind is dict:
        return len(arrived) == len(judged) and all(
            type(key) is str and key in judged and _alike(value, judged[key])
            for key, value in arrived.items()
        )
    if kind is list:
        return len(arrived) == len(judged) and all(map(_alike, arrived, judged))
    return arrived is judged or (kind in _ATOMS and bool(arrived == judged))


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


class Judge:
    """Verdicts for the calls of one turn."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.pool: list[Verdict] = turn.host.verdicts

    def fresh(self, arrived: Arrived, host_id: str) -> Verdict:
        """Judge a call for the first time; a rewrite of the arguments is taken."""
        verdict = Verdict(arrived.tool, arrived.arguments, host_id)
        new = host_id and not self._used(host_id)
        verdict.call_id = host_id if new else self.turn.new_call_id()
        return self._judged(verdict, rewrite=True)

    def again(self, before: Verdict, arrived: Arrived) -> Verdict:
        """Judge a call whose arguments were changed after its verdict."""
        verdict = Verdict(before.tool, arrived.arguments, before.host_id, before.call_id)
        with judging_again():
            return self._judged(verdict, rewrite=False)

    def _judged(self, verdict: Verdict, *, rewrite: bool) -> Verdict:
        """The verdict, filled in."""
        turn, tool, arguments = self.turn, verdict.tool, verdict.arguments
        refusal = turn.rules.refusal
        if refusal is not None:  # the person has been shown it at the start
            call = ToolCall(tool, arguments, verdict.call_id)
            turn.log_refusal(HookName.INTERCEPT_TOOL_CALL, OWN, refusal, call, turn.rules.cause)
            return _refused(verdict, OWN, refusal)
        cwd = None
        if turn.looks_at_calls:  # Hermes takes long to tell
            cwd = tool_directory(turn.task_id or turn.host.stray_task, turn.directory)
        read_only = tool.startswith("mcp_") and only_reads(tool)
        with out_of_call():
            outcome = turn.judge_tool_call(
                tool, arguments, tool_call_id=verdict.call_id, cwd=cwd, read_only=read_only
            )
        if outcome.blocked:
            return _refused(verdict, outcome.blocked_by, outcome.message)
        if outcome.answered:
            verdict.answer = str(outcome.value)
            return verdict
        final = outcome.final(arguments.shared)
        fault = _HOLES[tool](final) if tool in _HOLES else None
        if fault is not None:
            return self.refuse(verdict, OWN, fault)
        if outcome.changed and not rewrite:
            rewriter = _who_changed(outcome)
            clash = (
                f"the arguments of {tool} were changed by {_other_plugins()} after "
                f"the extensions had judged them, and {rewriter} would rewrite them once more; "
                "the two do not go together, so the call is refused"
            )
            return self.refuse(verdict, rewriter, clash)
        if outcome.changed:
            verdict.arguments = coerced(tool, final)
            verdict.rewritten = not Arrived(tool, arguments.shared).has(verdict.arguments)
        verdict.confined = _confined(outcome)
        if state.confined.get() is not None:
            where = partial(turn.services.machine_for, cwd=cwd or turn.directory)
            self._inherit(verdict, where, read_only=read_only)
        if outcome.asks and verdict.refusal is None:
            verdict.pending = lambda: _asked(turn, outcome, verdict)
        return verdict

    def _inherit(self, verdict: Verdict, machine: Any, *, read_only: bool) -> None:
        """Hold a call that is made inside of a confined one to what that one may change."""
        from hermes_ext.turns.confining import inherited

        around = state.confined.get()
        assert around is not None
        call = ToolCall(verdict.tool, verdict.arguments, verdict.call_id, machine, read_only)
        outer = around.confined.confinement
        found = inherited(call, verdict.confined, outer, self.turn.services.confiner)
        verdict.confined = found
        if found.why is not None:
            self.refuse(verdict, found.confinement.reasons[0].extension, found.why)

    def refuse(self, verdict: Verdict, by: str, why: str) -> Verdict:
        """A refusal of ours, which the person and the log are told of."""
        self.turn.notify_refusal(
            by,
            verdict.tool,
            why,
            tool_args=verdict.arguments.shared,
            tool_call_id=verdict.call_id,
        )
        return _refused(verdict, by, why)

    def _used(self, host_id: str) -> bool:
        with self.turn.lock:
            seen = host_id in self.turn.host.call_ids
            self.turn.host.call_ids.add(host_id)
            return seen

    def store(self, verdict: Verdict) -> None:
        """Keep a verdict for the steps to come."""
        with self.turn.lock:
            self.pool.append(verdict)

    def find(self, arrived: Arrived, host_id: str) -> Verdict | None:
        """The newest verdict on exactly this call."""
        with self.turn.lock:
            found = self._on(arrived.tool, host_id)
            return next((one for one in found if arrived.has(one.arguments)), None)

    def take(self, arrived: Arrived, host_id: str) -> tuple[Verdict | None, bool]:
        """The verdict for this call, used up by it, and whether it is for these arguments."""
        with self.turn.lock:
            exact = self.find(arrived, host_id)
            verdict = exact or next(self._on(arrived.tool, host_id), None)
            if verdict is not None:
                self.pool.remove(verdict)
            return verdict, exact is not None

    def waiting(self, arrived: Arrived) -> Verdict | None:
        """A verdict on such a call, whatever its id."""
        with self.turn.lock:
            found = (one for one in self.pool if one.tool == arrived.tool)
            return next((one for one in found if arrived.has(one.arguments)), None)

    def drop(self, verdict: Verdict) -> None:
        """Forget a verdict: its call has ended."""
        with self.turn.lock, contextlib.suppress(ValueError):
            self.pool.remove(verdict)

    def _on(self, tool: str, host_id: str) -> Iterator[Verdict]:
        """The verdicts on calls of a tool with an id, the newest first."""
        return (
            each for each in reversed(self.pool) if (each.tool, each.host_id) == (tool, host_id)
        )


def _refused(verdict: Verdict, by: str | None, why: str | None) -> Verdict:
    verdict.refusal = f"[{by}] {why}"
    return verdict


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


def _confined(outcome: ChainOutcome) -> Confined | None:
    return None if outcome.confinement is None else outcome.confined


def out_of_call() -> AbstractContextManager[None]:
    """For what is no part of the call that runs confined here: extensions and other plugins."""
    if state.confined.get() is None:
        return _NOTHING
    from hermes_ext.confine import outside

    return outside()


_NOTHING: Final = contextlib.nullcontext()


def _asked(turn: Turn, outcome: ChainOutcome, verdict: Verdict) -> str | None:
    with held(state.answered, []) as answered, out_of_call():
        settled = turn.settle(outcome, verdict.tool, verdict.arguments)
    if not settled.approved:
        return f"[{settled.blocked_by}] {settled.message}"
    if state.confined.get() is None:
        verdict.confined = _confined(settled)  # a yes may be one to running it unconfined
    verdict.host_question = answered[-1] if answered else None
    return None


# -- calls that do more in Hermes than they say --------------------------------------------------

# A guard can only judge what a call says. Each of these makes a harmless-looking tool run programs
# through a fault of the host, and each has a harmless spelling.


def _option_of_the_search(args: Mapping[str, Any]) -> str | None:
    # Hermes hands these to ripgrep without `--`, and `--pre=sh` runs each file that is searched.
    for name, value in args.items():
        if isinstance(value, str) and value.lstrip().startswith("-"):
            return (
                f"search_files with {name} {value[:40]!r} would be read as an option of the search "
                "program, which can run programs. Write the first dash as [-]."
            )
    return None


_HOLES: Final[Mapping[str, Callable[[Mapping[str, Any]], str | None]]] = {
    "search_files": _option_of_the_search,
}
"""By tool, what says why a call with these final arguments is refused, or None."""
