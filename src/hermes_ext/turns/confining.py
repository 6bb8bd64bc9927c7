"""What becomes of a call that handlers confine: it runs, is blocked, or a person is asked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from hermes_ext._interrupts import let_through
from hermes_ext._log import logger
from hermes_ext._text import printable
from hermes_ext._values import evolve
from hermes_ext.chain.outcome import Ask, ChainOutcome, Confine, Confined, KeptBy
from hermes_ext.confine import Confinement, Reason
from hermes_ext.effects import Change, ChangeKind, Effects, effects_of
from hermes_ext.effects._table import ToolKind
from hermes_ext.hooks.payloads import ToolCall

Unavailable: TypeAlias = Literal["block", "ask"]
"""What `extensions.confine_unavailable` may be."""

_STARTS_PROCESSES: Final = frozenset({ToolKind.SHELL, ToolKind.CODE, ToolKind.INPUT})
_SETTING: Final = "extensions.confine_unavailable decides what happens then"


class Confiner(Protocol):
    """What a host can confine. See `docs/hosting.md`.

    It may also have a `level`: how it confines, for the decision log and `why`.
    """

    def reason_not(self, call: ToolCall, confinement: Confinement) -> str | None:
        """Why the host cannot run this call confined; None: it can, and then it does.

        Args:
            call: a call of a tool that starts processes, with its final arguments.
            confinement: what the call may change.
        """


def confined(
    call: ToolCall,
    outcome: ChainOutcome,
    *,
    root: Path | None,
    confiner: Confiner | None,
    unavailable: Unavailable = "block",
) -> ChainOutcome:
    """The outcome of a chain in which somebody confines, after a look at call, disk and host.

    Args:
        call: the call, as the handlers left it.
        outcome: neither blocked nor answered.
        root: the directory of the project, in which writable paths are.
        confiner: what the host can confine; None: nothing.
        unavailable: whether a call that cannot be confined is blocked, or asked about.
    """
    wanted = [(one, _resolved(one, root)) for one in outcome.confines]
    confinement = reduce(and_, (each for _, each in wanted))
    or_exact = all(one.bounds.or_exact for one in outcome.confines)
    found = _kept(call, confinement, confiner, or_exact=or_exact)
    if isinstance(found, KeptBy):
        return outcome.confining(_held(confinement, found, confiner))
    if isinstance(found, Change):
        refusing = (one for one, mine in wanted if not mine.covers(found.path))
        by = next(refusing, outcome.confines[0])
        why = by.advised(f"{by.bounds.reason}: {_outside_of(confinement, found)}")
        return outcome.confining(Confined(confinement, KeptBy.REFUSAL, why, by))
    by = outcome.confines[0]
    why = _unconfined(call, confinement, found)
    blocked = by.advised(f"{why} ({_SETTING})")
    told = Confined(confinement, KeptBy.NOTHING, blocked, by)
    if unavailable == "ask":
        question = f"{why}. A yes runs it unconfined"
        told = evolve(told, why=why, ask=Ask(by.extension, by.handler, question, step=by.step))
    return outcome.confining(told)


def inherited(
    call: ToolCall, own: Confined | None, outer: Confinement, confiner: Confiner | None
) -> Confined:
    """What becomes of a call that runs inside of a confined one: it may do no more than that.

    Args:
        call: the call, with its final arguments.
        own: what became of the call's own confinements; None where nobody confines it.
        outer: what the call around it may change.
        confiner: what the host can confine.

    Returns:
        With `why` where it does not run: nobody is asked about it.
    """
    confinement = outer if own is None else own.confinement & outer
    found = _kept(call, confinement, confiner, or_exact=False)
    if isinstance(found, KeptBy):
        return _held(confinement, found, confiner)
    if isinstance(found, Change):
        why = f"{confinement.why}: {_outside_of(confinement, found)}"
        return Confined(confinement, KeptBy.REFUSAL, why)
    return Confined(confinement, KeptBy.NOTHING, _unconfined(call, confinement, found))


def _held(confinement: Confinement, by: KeptBy, confiner: Confiner | None) -> Confined:
    level = getattr(confiner, "level", None) if by is KeptBy.KERNEL else None
    return Confined(confinement, by, level=None if level is None else str(level))


def _resolved(confine: Confine, root: Path | None) -> Confinement:
    bounds = confine.bounds
    reason = Reason(confine.extension, bounds.reason)
    return Confinement.of(bounds.writable, root=root, network=bounds.network, reason=reason)


def _unconfined(call: ToolCall, confinement: Confinement, why: str) -> str:
    return f"{confinement.why}, and {printable(call.tool_name)} cannot be confined: {why}"


def _outside_of(confinement: Confinement, change: Change) -> str:
    """What is said of a change outside of what a call may change."""
    may = ", ".join(printable(path) for path in confinement.writable)
    told = f"{printable(change.by or 'this call')} would change {printable(change.path)}, and "
    told += f"only what is in {may} may be changed" if may else "nothing may be changed"
    left_out = "; ".join(f"{printable(p)}: {printable(why)}" for p, why in confinement.left_out)
    return f"{told} (not writable: {left_out})" if left_out else told


def _kept(
    call: ToolCall, confinement: Confinement, confiner: Confiner | None, *, or_exact: bool
) -> KeptBy | Change | str:
    """What keeps the call to its bounds; what it would change outside; why nothing keeps it."""
    starts_processes = call.tools.kind_of(call.tool_name) in _STARTS_PROCESSES
    why_not = _why_not(call, confinement, confiner) if starts_processes else None
    if starts_processes and why_not is None:
        return KeptBy.KERNEL
    effects = effects_of(call)
    outside = next(_outside(effects, confinement), None)
    if why_not is not None:
        # What is known of a call says nothing about the network.
        known = effects.exact and outside is None and confinement.network == "host"
        return KeptBy.EFFECTS if known and or_exact else why_not
    if outside is not None:
        return outside
    if effects.exact:
        return KeptBy.EFFECTS
    if call.read_only:
        return KeptBy.SERVER
    return f"it runs where no process can be confined, and {effects.unknown[0]}"


def _outside(effects: Effects, confinement: Confinement) -> Iterator[Change]:
    for change in effects.changes:
        removed = change.kind is ChangeKind.DELETE and change.path in confinement.writable
        if removed or not confinement.covers(change.path):
            yield change


def _why_not(call: ToolCall, confinement: Confinement, confiner: Confiner | None) -> str | None:
    if confiner is None:
        return "this host cannot confine processes"
    try:
        why = confiner.reason_not(call, confinement)
    except BaseException as error:
        let_through(error)
        logger.exception("the confiner failed; the call is not run")
        return f"the host failed to say whether it can ({type(error).__name__})"
    return why if why is None or (isinstance(why, str) and why) else "the host does not say why"
