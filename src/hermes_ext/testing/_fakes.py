"""What stands in for a person, for a host that confines, and for the time of day."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from hermes_ext.confine import Confinement
from hermes_ext.hooks.payloads import ToolCall
from hermes_ext.turns.approval import Approval, ApprovalRequest

Answer = bool | Approval
Answers = Answer | Iterable[Answer] | Callable[[ApprovalRequest], Answer]


class ScriptedApprover:
    """Answers the questions of handlers, and keeps them.

    Args:
        answers: True or False (or an `Approval`) for every question; a list of them, one for each
            question in turn; or a function of the `ApprovalRequest`.

    Attributes:
        questions: what was asked, in order.
        unanswered: the questions that came after the end of a list; they were answered with no.
    """

    def __init__(self, answers: Answers = True) -> None:
        self.questions: list[ApprovalRequest] = []
        self.unanswered: list[ApprovalRequest] = []
        self._lock = threading.Lock()
        self._function: Callable[[ApprovalRequest], Answer]
        if isinstance(answers, bool | Approval):
            fixed: Answer = answers
            self._function = lambda _: fixed
        elif callable(answers):
            self._function = answers
        else:
            left = list(answers)
            self._function = lambda request: self._next(left, request)

    def __call__(self, request: ApprovalRequest) -> Answer:
        """The answer to a question."""
        with self._lock:
            self.questions.append(request)
        return self._function(request)

    def _next(self, left: list[Answer], request: ApprovalRequest) -> Answer:
        with self._lock:
            if left:
                return left.pop(0)
            self.unanswered.append(request)
        return False


def as_approver(answers: Answers | ScriptedApprover | None) -> ScriptedApprover | None:
    """The approver that `load_extension(approver=…)` means; None: nobody is there."""
    if answers is None or isinstance(answers, ScriptedApprover):
        return answers
    return ScriptedApprover(answers)


class FakeConfiner:
    """A host that can confine each call, or none; nothing runs in a test.

    Args:
        why_not: why it cannot; None: it can.

    Raises:
        TypeError: `why_not` is not a text, or is blank.
    """

    def __init__(self, why_not: str | None = None) -> None:
        if why_not is not None and not (isinstance(why_not, str) and why_not.strip()):
            raise TypeError(
                f"cannot_confine= says why, got {why_not!r}. Write cannot_confine='Windows cannot',"
                " or leave it out: then the host can"
            )
        self._why_not = why_not

    def reason_not(self, call: ToolCall, confinement: Confinement) -> str | None:
        """The answer of a `Confiner`."""
        return self._why_not


class FakeClock:
    """A time that stands still until it is told to go on.

    What of this package measures in days goes by it when it is given to `load_extension`: the age
    of `session_state`, which is swept when the extension is loaded anew (`restart`). It does not
    change `time.time` or `datetime.now` for anybody: an extension that depends on the time of day
    reads it through a function of its own, and a test puts `clock.now` in that function's place:
    `monkeypatch.setattr(extension.module, "now", clock.now)`. Time limits of handlers and the
    limit for slow ones are real seconds.

    Args:
        at: when it is; a time without a zone is local. 1 January 2030, 12:00 UTC by default.
    """

    def __init__(self, at: datetime | None = None) -> None:
        self._at = (at or datetime(2030, 1, 1, 12, tzinfo=UTC)).astimezone()

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self._at.timestamp()

    def now(self, tz: object = None) -> datetime:
        """The time, in the local zone or in `tz` (a `tzinfo`), as of `datetime.now`."""
        return self._at.astimezone(tz)  # type: ignore[arg-type]

    def set(self, at: datetime) -> None:
        """Make it another time, earlier or later."""
        self._at = at.astimezone()

    def advance(self, by: timedelta | float) -> None:
        """Let time pass: seconds, or a `timedelta`."""
        self._at += by if isinstance(by, timedelta) else timedelta(seconds=by)
