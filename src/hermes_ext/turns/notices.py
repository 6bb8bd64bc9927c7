"""What the rules did, one line for each event, for the person who talks to the agent.

A chain's outcome becomes at most one `Notice`. A host prints it where the person looks; see
`Runtime.on_notice`. Equal events of one turn are counted, not repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from hermes_ext._text import printable
from hermes_ext._values import evolve, frozen
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import TABLE, Action, HookDef, HookName

if TYPE_CHECKING:
    from hermes_ext.chain.outcome import ChainOutcome

Notify = Literal["blocks", "all", "off"]

LINES_PER_TURN: Final = 20
_LONGEST_REASON: Final = 500
_LONGEST_NAME: Final = 60
_SEARCHED: Final = 4 * _LONGEST_REASON
_SHORTEST_REASON: Final = 16
_MARK: Final = "┊ "
_CUT: Final = "…"
_ANY: Final = "an extension"


@frozen
class Notice:
    """One thing that a rule did, fit to be shown: one line each, no control characters, no secrets.

    Attributes:
        extension: who did it.
        did: what: `blocked`, `withheld`, `answered`, `silently answered`, `asked about`,
            `confined`, `rewrote`.
        what: to what: a tool's name, `the message`, `the result of read_file`.
        reason: why; "" where none is known.
        action: the outcome's action: `block` for everything that was refused.
        repeats: 0 for an event that is reported at once. At the end of a turn, how many more
            like it followed.
        session_id: the session of the turn.
        turn_id: the turn.
    """

    extension: str
    did: str
    what: str
    reason: str = ""
    action: Action = Action.BLOCK
    repeats: int = 0
    session_id: str = ""
    turn_id: str = ""

    def __str__(self) -> str:
        return self.line()

    def line(self, width: int | None = None, hint: str = "") -> str:
        """The notice in one line, as in `┊ no-deploys blocked terminal: not on Fridays`.

        Args:
            width: columns of the terminal; what is longer is cut: first the reason, then the hint
                is left out. None cuts nothing.
            hint: what shows more, a command; it is put in parentheses at the end.
        """
        head = f"{_MARK}{self.extension} {self.did} {self.what}{self._times()}"
        reason = f": {self.reason}" if self.reason else ""
        tail = f" ({hint})" if hint else ""
        if width is None:
            return head + reason + tail
        room = width - _cells(head) - _cells(tail)
        if room < min(_cells(reason), _SHORTEST_REASON):
            return _fitted(head + reason, width)
        return head + _fitted(reason, room) + tail

    def _times(self) -> str:
        if not self.repeats:
            return ""
        return " once more" if self.repeats == 1 else f" {self.repeats} more times"


def notice_of(
    hook: HookName, tool: str | None, outcome: ChainOutcome, notify: Notify, why: str | None = None
) -> Notice | None:
    """What an outcome has to report; None where it has nothing, or the user wants none.

    Args:
        hook: the chain's hook.
        tool: the tool of the call, for the hooks that have one.
        outcome: of a question, after it was answered.
        notify: what the user wants to see.
        why: the reason of a block, where its message is not it.
    """
    if notify == "off" or (notify == "blocks" and not outcome.blocked):
        return None
    told = TABLE[hook]
    if outcome.blocked:
        who = str(outcome.blocked_by)
        reason = str(outcome.message) if why is None else why
        return _notice(who, told.refused, told.object, tool, reason, Action.BLOCK)
    if outcome.answered:
        who = _ANY if outcome.decider is None else outcome.decider.extension
        did = "answered" if outcome.value else "silently answered"
        return _notice(who, did, told.object, tool, "", Action.ANSWER)
    return _of_what_runs(told, tool, outcome)


def _of_what_runs(told: HookDef, tool: str | None, outcome: ChainOutcome) -> Notice | None:
    """The notice of what goes on, although somebody did something about it."""
    if outcome.approved:
        who = ", ".join(dict.fromkeys(ask.extension for ask in outcome.asks))
        reason = "; ".join(ask.reason for ask in outcome.asks)
        said = f"approved: {reason}"
        return _notice(who, "asked about", told.object, tool, said, Action.ASK)
    if outcome.action is Action.CONFINE:
        who = ", ".join(dict.fromkeys(one.extension for one in outcome.confines))
        reason = "; ".join(dict.fromkeys(one.bounds.reason for one in outcome.confines))
        return _notice(who, "confined", told.object, tool, reason, Action.CONFINE)
    if outcome.changed and not told.repeats:
        changed = (one.extension for one in outcome.steps if one.changed and not one.observed)
        who = ", ".join(dict.fromkeys(changed)) or _ANY
        return _notice(who, "rewrote", told.rewritten or told.object, tool, "", Action.REWRITE)
    return None


def refusal(extension: str, tool: str, reason: str) -> Notice:
    """The notice for a call that the host refuses in the name of an extension."""
    return _notice(extension, "blocked", "{tool}", tool, reason, Action.BLOCK)


def _notice(who: str, did: str, what: str, tool: str | None, reason: str, action: Action) -> Notice:
    named = what.format(tool=_name(tool or "a tool"))
    return Notice(_name(who), did, named, _shown(reason), action)


def _name(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + _CUT


def _shown(reason: str) -> str:
    """A reason in one line, without secrets."""
    from hermes_ext._redaction import redacted

    # Searched before it is cut: nothing recognizes half a secret.
    clean = redacted(reason[:_SEARCHED])
    line = printable(" ".join(clean.split()))
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + _CUT


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _fitted(text: str, width: int) -> str:
    """The text in at most so many columns, with an ellipsis where it was cut."""
    if _cells(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, max(width - 1, 0)).rstrip() + _CUT


class TurnNotices:
    """The notices of one turn: the first of its kind at once, equal ones as a number at the end.

    Beyond `LINES_PER_TURN` different ones, notices are only counted. The caller holds the turn's
    lock.
    """

    __slots__ = ("_calls", "_first", "_left_out")

    def __init__(self) -> None:
        self._first: dict[Notice, int] = {}
        self._calls: set[tuple[Notice, str]] = set()
        self._left_out = 0

    def is_new(self, notice: Notice, call_id: str | None) -> bool:
        """Count a notice; whether it is to be shown now.

        Args:
            notice: without its session and turn.
            call_id: of the tool call: a call that is evaluated again is one event.
        """
        if call_id is not None:
            if (notice, call_id) in self._calls:
                return False
            self._calls.add((notice, call_id))
        if notice in self._first:
            self._first[notice] += 1
            return False
        if len(self._first) >= LINES_PER_TURN:
            self._left_out += 1
            return False
        self._first[notice] = 0
        return True

    def rest(self) -> list[Notice]:
        """What is to be shown at the end of the turn; afterwards there is nothing."""
        found = [evolve(one, repeats=n) for one, n in self._first.items() if n]
        if self._left_out:
            found.append(Notice(OWN, "left out", f"{self._left_out} further notices"))
        self._first, self._calls, self._left_out = {}, set(), 0
        return found
