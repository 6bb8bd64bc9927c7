"""What a chain returns: `ChainOutcome` with its `Step`s, asks and injections."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_ext._values import evolve, field, frozen
from hermes_ext.chain.failures import Crash, handler_error
from hermes_ext.exceptions import HandlerError
from hermes_ext.hooks.bounds import Bounds
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.isolation import raw
from hermes_ext.hooks.payloads import NO_METADATA, Event, LLMRequest
from hermes_ext.hooks.results import Keep
from hermes_ext.hooks.settings import Setting, keys_named
from hermes_ext.hooks.table import ENDING, Action, HookName

if TYPE_CHECKING:
    from hermes_ext.confine import Confinement

_V = TypeVar("_V")


@frozen
class Ask:
    """A handler wants a person to decide about a tool call.

    Attributes:
        extension, handler: who asks.
        reason: why.
        key: what a yes covers; None: this tool with exactly these arguments.
        step: the number of its step in `ChainOutcome.steps`.
    """

    extension: str
    handler: str
    reason: str
    key: str | None = None
    step: int = field(default=0, eq=False, repr=False)


@frozen
class Confine:
    """A handler wants a tool call confined.

    Attributes:
        extension, handler: who wants it.
        bounds: what the call may change, and why.
        step: the number of its step in `ChainOutcome.steps`.
    """

    extension: str
    handler: str
    bounds: Bounds
    step: int = field(default=0, eq=False, repr=False)

    def advised(self, text: str) -> str:
        """A text that refuses the call, with what the handler says should be done."""
        return f"{text.rstrip('.')}. {self.bounds.advice}" if self.bounds.advice else text


class KeptBy(StrEnum):
    """What became of a confinement.

    `kernel`: the host runs the call's processes confined. `effects`: what the call changes is
    known, and lies inside. `server`: the server of the tool says that it only reads. `refusal`: it
    would change something outside, and is blocked. `nothing`: it cannot be confined, and is
    blocked or asked about; a yes runs it unconfined.
    """

    KERNEL = "kernel"
    EFFECTS = "effects"
    SERVER = "server"
    REFUSAL = "refusal"
    NOTHING = "nothing"


@frozen
class Confined:
    """What a turn makes of the confinements of a call.

    Attributes:
        confinement: what all of them allow, resolved against the disk.
        kept_by: what became of it.
        why: why the call is blocked or asked about; None where it runs.
        by: the confinement that refuses the call, or wants to know.
        ask: the question to a person, where the user wants one instead of a block.
        level: of `kernel`, the level of confinement, such as "Landlock alone"; None: the host
            does not say.
    """

    confinement: Confinement
    kept_by: KeptBy
    why: str | None = None
    by: Confine | None = None
    ask: Ask | None = None
    level: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data; what is empty is left out."""
        found = self.confinement
        data: dict[str, Any] = {
            "writable": [str(path) for path in found.writable],
            "network": found.network,
            "kept_by": self.kept_by.value,
        }
        if self.level is not None:
            data["level"] = self.level
        if found.left_out:
            data["left_out"] = [{"path": path, "why": why} for path, why in found.left_out]
        if self.ask is not None:
            data["asked"] = True
        return data


@frozen
class Settled:
    """How the questions of a chain were answered.

    Attributes:
        by: who answered: `person`, `setting` or `nobody`; None: not known.
        refused: the question that was answered with no; None: all with yes.
    """

    by: str | None
    refused: Ask | None = None


class Injection(str):
    """An injected text that knows who injected it and how long it stays."""

    __slots__ = ("extension", "handler", "keep")

    extension: str
    handler: str
    keep: Keep

    def __new__(cls, text: str, handler: Handler, keep: Keep) -> Injection:
        made = super().__new__(cls, text)
        made.extension = handler.extension
        made.handler = handler.name
        made.keep = keep
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


@frozen
class Step:
    """What one handler did in a chain.

    Attributes:
        extension, handler: who.
        guard: whether it is a guard.
        action: what it did, or with an error what its failure did (`pass`, `block`, `ask`).
        changed: whether it changed the value.
        error: how it failed, or None.
        observed: it is only observed: `action` is what it would have done.
        skipped: why it was not called: `ended` (the chain was over) or `suspended`; else None.
        reason: the text of a block or ask, or why it confines.
        bounds: of `confine`, what the call may change; else None.
        duration_ns: how long it took, where that was asked for.
        mutated: in strict runs, whether it changed its arguments in place without returning them.
        setting: the keys of the settings that made it do so, as its metadata says (`setting`).
        file, line: where its function is defined.
    """

    extension: str
    handler: str
    guard: bool
    action: Action
    changed: bool = False
    error: HandlerError | None = None
    observed: bool = False
    skipped: str | None = None
    reason: str | None = None
    duration_ns: int | None = None
    mutated: bool | None = None
    setting: tuple[str, ...] = ()
    file: str = field(default="", eq=False, repr=False)
    line: int = field(default=0, eq=False, repr=False)
    bounds: Bounds | None = None
    _named: tuple[Handler, Any] | None = field(default=None, eq=False, repr=False, alias="named")

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings that `setting` names, with the values that the handler was given."""
        return () if self._named is None else self._named[0].settings(self._named[1])

    def to_json(self) -> dict[str, Any]:
        """Plain data; what is None or False is left out."""
        data: dict[str, Any] = {
            "extension": self.extension,
            "handler": self.handler,
            "action": self.action.value,
        }
        for name in ("guard", "changed", "observed", "skipped", "reason", "duration_ns", "mutated"):
            value = getattr(self, name)
            if value is not None and value is not False:
                data[name] = value
        if self.bounds is not None:
            data["bounds"] = self.bounds.to_json()
        if self.setting:
            data["setting"] = [*self.setting]
            data["settings"] = [each.to_json() for each in self.settings]
        if self.file:
            data |= {"file": self.file, "line": self.line}
        if self.error is not None:
            data["error"] = {"kind": self.error.kind, "message": str(self.error)}
        return data


class _Draft:
    """A `ChainOutcome` in the making.

    A frozen attrs class takes three times as long to build, which would be more than all the rest
    of handling a crash; so the chain fills this one in and then gives it its real class.
    """

    __slots__ = (
        "_trace",
        "action",
        "approved",
        "blocked_by",
        "changed",
        "confined",
        "duration_ns",
        "event",
        "settled",
        "value",
    )


def made_outcome(
    action: Action,
    value: Any,
    event: Event,
    changed: bool,
    blocked_by: str | None,
    duration_ns: int,
    trace: Trace,
) -> ChainOutcome:
    """An outcome, without the generated `__init__`."""
    made: Any = _Draft()
    made.action = action
    made.value = value
    made.event = event
    made.changed = changed
    made.blocked_by = blocked_by
    made.duration_ns = duration_ns
    made.approved = False
    made.confined = None
    made._trace = trace
    made.settled = None
    made.__class__ = ChainOutcome
    return made  # type: ignore[no-any-return]


@frozen(weakref_slot=False)
class ChainOutcome(_Draft):
    """What a chain returns to the host.

    Attributes:
        action: the most severe that occurred: block > answer > ask > confine > rewrite >
            inject > pass.
        value: `block`: the message; `answer`: the reply or tool result; where the value was
            rewritten: the new one; else None.
        event: the event as the handlers left it; None if all passed.
        changed: whether the value differs from the one that came in.
        blocked_by: the extension that blocked, or None.
        duration_ns: nanoseconds that the chain took; 0 if all passed (that outcome is shared).
        approved: True once a person (or the user's setting) has answered all asks with yes.
        settled: how the asks were answered; None: nobody was asked, or not yet.
        confined: what the turn made of `confines`; None: nobody confines, or it does not run.
    """

    action: Action
    value: Any = None
    event: Event | None = field(default=None, repr=False)
    changed: bool = False
    blocked_by: str | None = None
    duration_ns: int = 0
    approved: bool = False
    settled: Settled | None = field(default=None, repr=False)
    confined: Confined | None = field(default=None, repr=False)
    _trace: Trace | None = field(default=None, repr=False, eq=False, alias="trace")

    @classmethod
    def refused(
        cls, message: str, by: str, event: Event | None = None, cause: Cause | None = None
    ) -> ChainOutcome:
        """A block that no handler made: by the runtime, in the name of `by`.

        Args:
            message: why.
            by: an extension, or `hermes-ext`.
            event: what is refused.
            cause: what the runtime lacks, where it is known.
        """
        return cls(Action.BLOCK, message, event, blocked_by=by, trace=cause)

    @property
    def blocked(self) -> bool:
        """Whether it must not go on."""
        return self.action is Action.BLOCK

    @property
    def answered(self) -> bool:
        """Whether `value` is the reply to the user, or the tool's result."""
        return self.action is Action.ANSWER

    @property
    def message(self) -> str | None:
        """The text of a block; None otherwise."""
        return self.value if self.blocked else None

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the handlers added, merged left to right; read-only."""
        metadata = NO_METADATA if self._trace is None else self._trace.metadata
        return MappingProxyType(metadata) if isinstance(metadata, dict) else metadata

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What a person has to decide, in handler order.

        Behind them stands what the turn asks about a call that cannot be confined.
        """
        asks = () if self._trace is None else self._trace.asks
        own = None if self.confined is None else self.confined.ask
        return asks if own is None else (*asks, own)

    @property
    def confines(self) -> tuple[Confine, ...]:
        """What the call may change as handlers want it, in handler order."""
        return () if self._trace is None else self._trace.confines

    @property
    def confinement(self) -> Confinement | None:
        """What the call may change, where it runs; None: it runs unconfined, or not at all."""
        confined = self.confined
        if confined is None or confined.kept_by is KeptBy.NOTHING or self.action in ENDING:
            return None
        return confined.confinement

    @property
    def system_injections(self) -> tuple[Injection, ...]:
        """Texts for the end of the system prompt, in handler order."""
        return () if self._trace is None else self._trace.system

    @property
    def user_injections(self) -> tuple[Injection, ...]:
        """Texts that go behind everything else in the request, in handler order."""
        return () if self._trace is None else self._trace.user

    @property
    def steps(self) -> tuple[Step, ...]:
        """What each handler of the chain did, in order; built when read."""
        return () if self._trace is None else self._trace.steps()

    @property
    def decider(self) -> Step | None:
        """The step that made the outcome what it is.

        Of a block, an answer or a failure the one that ended the chain; of questions the first, or
        the one that was refused; else the last that changed the value, or injected. None where all
        passed, and where the runtime refused by itself. Built when read.
        """
        trace, place = self._trace, self._decided
        return None if trace is None or place is None else trace.step(place)

    @property
    def _decided(self) -> int | None:
        if self.settled is not None and self.blocked:
            refused = self.settled.refused
            return None if refused is None else refused.step
        if self.blocked and self.confined is not None and self.confined.by is not None:
            return self.confined.by.step
        return None if self._trace is None else self._trace.decided

    @property
    def errors(self) -> tuple[HandlerError, ...]:
        """How handlers failed, in order."""
        return tuple(step.error for step in self.steps if step.error is not None)

    @property
    def first(self) -> Event | None:
        """The event as it came in; None where nobody can have changed it."""
        return None if self._trace is None else self._trace.first

    def final(self, original: _V) -> _V | Any:
        """The rewritten value, or `original` if nothing changed it."""
        if not self.changed or self.event is None:
            return original
        return outgoing(self.event) if self.action in ENDING else self.value

    def resolved(
        self, approved: bool, message: str = "", by: str | None = None, refused: Ask | None = None
    ) -> ChainOutcome:
        """The outcome after the asks were answered.

        Args:
            approved: yes to all of them.
            message: for a no, what the model is told.
            by: who answered.
            refused: for a no, the ask that it is about; by default all of them, and the first one
                is named.
        """
        if approved:
            action = self._unasked
            return evolve(self, action=action, approved=True, settled=Settled(by))
        about = self.asks if refused is None else (refused,)
        text = message or "Not approved: " + "; ".join(ask.reason for ask in about)
        first = about[0] if about else None
        confined = self.confined
        if confined is not None and confined.by is not None and confined.ask in about:
            text = confined.by.advised(text)
        return evolve(
            self,
            action=Action.BLOCK,
            value=text,
            blocked_by=None if first is None else first.extension,
            settled=Settled(by, first),
        )

    def confining(self, confined: Confined) -> ChainOutcome:
        """The outcome after the turn has looked at what handlers confine."""
        if confined.ask is not None:
            return evolve(self, action=Action.ASK, confined=confined)
        if confined.why is None or confined.by is None:
            return evolve(self, confined=confined)
        by = confined.by.extension
        return evolve(
            self, action=Action.BLOCK, value=confined.why, blocked_by=by, confined=confined
        )

    @property
    def _unasked(self) -> Action:
        """What it is once all questions are answered with yes."""
        if self.confines and (self.confined is None or self.confined.kept_by is not KeptBy.NOTHING):
            return Action.CONFINE
        return Action.REWRITE if self.changed else Action.PASS

    def as_tool_result(self) -> str | None:
        """What the model gets in place of the tool's result; None if the tool is to run.

        For a block the JSON `{"error", "blocked_by_extension", "extension"}`, for an answer itself.
        """
        if self.blocked:
            return json.dumps(
                {"error": self.value, "blocked_by_extension": True, "extension": self.blocked_by},
                ensure_ascii=False,
            )
        return self.value if self.answered else None

    def to_json(self) -> dict[str, Any]:
        """Plain data: the decision with its steps, without the payload.

        `decider` is the number of the step that decided, counted from 0.
        """
        data: dict[str, Any] = {"action": self.action.value, "changed": self.changed}
        if self.blocked:
            data |= {"blocked_by": self.blocked_by, "message": self.value}
        if self.asks:
            data["asks"] = [
                {"extension": a.extension, "handler": a.handler, "reason": a.reason, "key": a.key}
                for a in self.asks
            ]
        if self.confines:
            data["confines"] = [
                {
                    "extension": one.extension,
                    "handler": one.handler,
                    "reason": one.bounds.reason,
                    **one.bounds.to_json(),
                }
                for one in self.confines
            ]
        if self.confined is not None:
            data["confined"] = self.confined.to_json()
        if isinstance(self._trace, Cause):
            data |= self._trace.to_json()
        if self.settled is not None:
            data["approved"] = self.approved
            if self.settled.by is not None:
                data["decided_by"] = self.settled.by
        for name, texts in (("system", self.system_injections), ("user", self.user_injections)):
            if texts:
                data[f"{name}_injections"] = [
                    {"extension": t.extension, "handler": t.handler, "text": str(t), "keep": t.keep}
                    for t in texts
                ]
        if self._decided is not None:
            data["decider"] = self._decided
        data["duration_ns"] = self.duration_ns
        data["steps"] = [step.to_json() for step in self.steps]
        return data


def outgoing(event: Event) -> Any:
    """What a host gets of a rewritten event."""
    # A plain list that shares the untouched messages with the host; the others are already ours.
    return raw(event.messages) if isinstance(event, LLMRequest) else event.value


def is_taken_away(hook: str, blocked: bool, changed: bool, failed: bool) -> bool:
    """Whether a text was withheld so that no log may have it, in which failures may quote it.

    Args:
        hook: the hook. Of an input nothing is kept that was rewritten, either.
        blocked: whether the text goes no further.
        changed: whether another goes further in its place.
        failed: whether a failure blocked it, so that nobody has found anything in it.
    """
    if hook == HookName.TRANSFORM_USER_INPUT:
        return blocked or changed
    return blocked and not failed and hook != HookName.INTERCEPT_TOOL_CALL


class Record:
    """What is kept of a step until somebody reads it; most are never read."""

    action: Action = Action.PASS
    reason: str | None = None
    bounds: Bounds | None = None
    changed: bool = False
    observed: bool = False
    skipped: str | None = None
    failure: Crash | None = None
    duration_ns: int | None = None
    mutated: bool | None = None
    setting: Any = None

    def __init__(self, action: Action) -> None:
        self.action = action


class Trace:
    """How a chain went: what an outcome's properties are read from.

    Attributes:
        first: the event as it came in, where it may have been changed.
        decided: the place of the handler that made the outcome what it is; None where all passed.
        asks, confines, metadata, system, user: as of the outcome.
    """

    __slots__ = ()

    first: Event | None = None
    decided: int | None = None
    asks: tuple[Ask, ...] = ()
    confines: tuple[Confine, ...] = ()
    metadata: Mapping[str, Any] = NO_METADATA
    system: tuple[Injection, ...] = ()
    user: tuple[Injection, ...] = ()

    def step(self, place: int) -> Step:
        """What the handler at this place did."""
        raise IndexError(place)

    def steps(self) -> tuple[Step, ...]:
        """What each handler did, in order."""
        return ()


@frozen
class Cause(Trace):
    """Why the runtime refuses by itself. It stands for the trace of a chain that did not run.

    Attributes:
        missing: the required extensions that are not loaded.
        setting: the setting that wants it so; None: none does.
        file, line: where the user's configuration says so; empty and 0: nowhere.
    """

    missing: tuple[str, ...] = ()
    setting: Setting | None = None
    file: str = ""
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data; what is not known is left out."""
        data: dict[str, Any] = {"missing": [*self.missing]} if self.missing else {}
        if self.setting is not None:
            data |= {"setting": [self.setting.key], "settings": [self.setting.to_json()]}
        return data | ({"file": self.file, "line": self.line} if self.line else {})


def step_of(handler: Handler, record: Record) -> Step:
    """The step that a record stands for."""
    return Step(
        handler.extension,
        handler.name,
        handler.guard,
        record.action,
        record.changed,
        None if record.failure is None else handler_error(handler, record.failure),
        record.observed,
        record.skipped,
        record.reason,
        record.duration_ns,
        record.mutated,
        () if record.setting is None else keys_named(record.setting),
        handler.file,
        handler.line,
        record.bounds,
        None if record.setting is None else (handler, record.setting),
    )
