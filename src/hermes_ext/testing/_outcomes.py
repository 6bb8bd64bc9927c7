"""Assertions on what a chain returned, with messages that tell the whole chain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NoReturn

from hermes_ext.chain.outcome import ChainOutcome, Confine, Step
from hermes_ext.hooks.bounds import Bounds
from hermes_ext.hooks.table import Action

__tracebackhide__ = True  # what fails is told by the test's own line

_ANY: Final = object()
_SHOWN: Final = 300


def assert_passed(outcome: ChainOutcome) -> None:
    """Nothing came of it: no block, answer, question, change or injection; nobody failed.

    Raises:
        AssertionError: something did; the message tells the chain.
    """
    if outcome.action is not Action.PASS or outcome.asks or outcome.errors:
        _fail("expected that everybody passes", outcome)


def assert_blocked(
    outcome: ChainOutcome, *, by: str | None = None, match: str | None = None
) -> None:
    """It was blocked, and not because a handler failed.

    Args:
        outcome: what a hook returned.
        by: the extension that has to have done it.
        match: a regular expression that is searched in the message.

    Raises:
        AssertionError: it was not; the message tells the chain.
    """
    if not outcome.blocked:
        _fail("expected a block", outcome)
    if by is not None and outcome.blocked_by != by:
        _fail(f"expected a block by {by}", outcome)
    culprits = [step for step in outcome.steps if step.error and step.action is Action.BLOCK]
    if culprits:
        _fail("blocked only because a handler failed", outcome)
    _matches(match, str(outcome.message), "message", outcome)


def assert_asked(
    outcome: ChainOutcome,
    *,
    match: str | None = None,
    key: str | None = None,
    approved: bool | None = None,
) -> None:
    """A handler wanted a person to decide.

    Args:
        outcome: of `call`.
        match: a regular expression that is searched in the reason of any of the questions.
        key: the key that one of them has to have.
        approved: what the answer has to have been.

    Raises:
        AssertionError: nobody asked, or not this; the message tells the chain.
    """
    if not outcome.asks:
        _fail("expected a question to a person", outcome)
    _matches(match, "\n".join(ask.reason for ask in outcome.asks), "reason", outcome)
    if key is not None and key not in {ask.key for ask in outcome.asks}:
        _fail(f"expected a question with the key {key!r}", outcome)
    if approved is not None and outcome.approved is not approved:
        _fail(f"expected that the answer is {'yes' if approved else 'no'}", outcome)


def assert_confined(
    outcome: ChainOutcome,
    *,
    writable: Sequence[str] | None = None,
    network: Literal["host", "none"] | None = None,
    match: str | None = None,
    by: str | None = None,
) -> None:
    """A handler confined the call, and it runs confined.

    Args:
        outcome: of `call`.
        writable: the paths that one of the handlers has to let it write, as the handler names
            them; none of them may be left out, as a directory is that does not exist.
        network: the network that one of the handlers has to leave it.
        match: a regular expression that is searched in the reason of any of them.
        by: the extension that has to have done it.

    Raises:
        AssertionError: nobody did, or not so, or a yes ran it unconfined; the message tells the
            chain.
        ResultError: `writable` is not a list of paths, or `network` is unknown.
    """
    wanted = Bounds(
        () if writable is None else writable, "host" if network is None else network, "any"
    )
    if outcome.blocked or outcome.answered or not outcome.confines:
        _fail("expected a confined call", outcome)
    if outcome.confinement is None:
        yes = "; it ran unconfined, because a person said yes" if outcome.approved else ""
        _fail(f"expected a confined call{yes}", outcome)
    if by is not None and by not in {one.extension for one in outcome.confines}:
        _fail(f"expected that {by} confines it", outcome)
    bounds = [one.bounds for one in outcome.confines]
    _matches(match, "\n".join(each.reason for each in bounds), "reason", outcome)
    named = wanted.writable in {each.writable for each in bounds}
    if writable is not None and (not named or _left_out(wanted, outcome)):
        _fail(f"expected that {[*wanted.writable]} may be written", outcome)
    if network is not None and network not in {each.network for each in bounds}:
        _fail(f"expected the network {network!r}", outcome)


def assert_answered(outcome: ChainOutcome, value: Any = _ANY, *, match: str | None = None) -> None:
    """It was answered, without the model or the tool.

    Args:
        outcome: what a hook returned.
        value: the whole answer, if that is to be compared.
        match: a regular expression that is searched in the answer.

    Raises:
        AssertionError: it was not; the message tells the chain.
    """
    if not outcome.answered:
        _fail("expected an answer", outcome)
    if value is not _ANY and outcome.value != value:
        _fail(f"expected the answer {value!r}", outcome)
    _matches(match, str(outcome.value), "answer", outcome)


def assert_rewritten(outcome: ChainOutcome, value: Any = _ANY) -> None:
    """The value was changed, and goes on.

    Args:
        outcome: what a hook returned.
        value: what it has to be now (the text, the arguments, the messages), if that is to be
            compared.

    Raises:
        AssertionError: it was not; the message tells the chain.
    """
    if outcome.blocked or outcome.answered or not outcome.changed:
        _fail("expected a changed value", outcome)
    if value is not _ANY and outcome.final(None) != value:
        _fail(f"expected the value {_short(value)}", outcome)


def assert_injected(
    outcome: ChainOutcome,
    match: str | None = None,
    *,
    where: Literal["system", "user"] | None = None,
) -> None:
    """A text was injected into the request.

    Args:
        outcome: of `request`.
        match: a regular expression that is searched in the injected texts.
        where: `system`, `user`, or None for either.

    Raises:
        AssertionError: nothing was, or not this; the message tells the chain.
    """
    texts = {"system": outcome.system_injections, "user": outcome.user_injections}
    found = [text for place, each in texts.items() if where in (None, place) for text in each]
    if not found:
        _fail(f"expected an injected {where or 'system or user'} text", outcome)
    _matches(match, "\n".join(found), "injected text", outcome)


def describe(outcome: ChainOutcome) -> str:
    """An outcome in words: what came of it, and what each handler did."""
    return "\n".join(_lines(outcome))


def _lines(outcome: ChainOutcome) -> Iterator[str]:
    by = f" by {outcome.blocked_by}" if outcome.blocked else ""
    yield f"the outcome is {outcome.action.value}{by}"
    if outcome.blocked or outcome.answered:
        yield f"  {'message' if outcome.blocked else 'answer'}: {_short(outcome.value)}"
    elif outcome.changed:
        yield f"  value: {_short(outcome.final(None))}"
    for ask in outcome.asks:
        yield f"  asked by {ask.extension}, {_answer(outcome)}: {ask.reason} (key {ask.key!r})"
    yield from (f"  {_confine(one, outcome)}" for one in outcome.confines)
    for place, texts in (("system", outcome.system_injections), ("user", outcome.user_injections)):
        yield from (f"  injected {place} text: {_short(str(text))}" for text in texts)
    if not outcome.steps:
        yield "  no handler is registered for this hook, tool and origin"
    yield from (f"  {_step(step)}" for step in outcome.steps)


def _answer(outcome: ChainOutcome) -> str:
    if outcome.settled is None:
        return "not answered"
    return "answered yes" if outcome.approved else "answered no"


def _confine(one: Confine, outcome: ChainOutcome) -> str:
    bounds, left_out = one.bounds, _left_out(one.bounds, outcome)
    told = f"writable {[*bounds.writable]}"
    told += f" (not writable: {left_out})" if left_out else ""
    verb = "confined" if outcome.confinement else "to be confined"
    return f"{verb} by {one.extension}, {told}, network {bounds.network}: {bounds.reason}"


def _left_out(bounds: Bounds, outcome: ChainOutcome) -> str:
    """Which of its paths cannot be written, and why; "" for none."""
    found = () if outcome.confined is None else outcome.confined.confinement.left_out
    return "; ".join(f"{path}: {why}" for path, why in found if path in bounds.writable)


def _step(step: Step) -> str:
    what = f"not called ({step.skipped})" if step.skipped else step.action.value
    told = f"{step.extension}/{step.handler}{' (guard)' if step.guard else ''}: {what}"
    if step.observed:
        told += " (only observed)"
    if step.error is None:
        return told
    trace = step.error.traceback.rstrip()
    return "\n    ".join([f"{told}: {step.error}", *trace.splitlines()])


def _matches(pattern: str | None, text: str, what: str, outcome: ChainOutcome) -> None:
    if pattern is not None and re.search(pattern, text) is None:
        _fail(f"expected a {what} that matches {pattern!r}", outcome)


def _fail(expected: str, outcome: ChainOutcome) -> NoReturn:
    raise AssertionError(f"{expected}; {describe(outcome)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
