"""The turn: one user message up to the final answer, its ids and its state.

State belongs to the turn and to nothing that bears its `session_id`: sessions overlap (a background
review runs beside the next user turn with the same id) and ids change in mid-turn (compression), so
only the turn object itself is the key. Ids are merely ways to find it.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import get_ident
from time import monotonic
from types import FrameType
from typing import Any, Final, Protocol, TypeVar, final

from hermes_ext._forks import has_locks
from hermes_ext.chain.calls import Call, inside
from hermes_ext.chain.loans import LentLock, Lock, SharedLock
from hermes_ext.exceptions import StateError
from hermes_ext.hooks.isolation import own_copy

_State = TypeVar("_State", bound=MutableMapping[str, Any])

_current: ContextVar[TurnCore | None] = ContextVar("hermes_ext_turn", default=None)
_rejudging: ContextVar[bool] = ContextVar("hermes_ext_rejudging", default=False)


def rejudging() -> bool:
    """Whether the running handler looks at a call that it has judged before."""
    return _rejudging.get()


@contextmanager
def judging_again() -> Iterator[None]:
    """While open, counters stand still: a call that is judged twice is counted once."""
    token = _rejudging.set(True)
    try:
        yield
    finally:
        _rejudging.reset(token)


class TurnState(dict[str, Any]):
    """The dict that all extensions of one turn share, safe to use from parallel tool calls.

    Plain reads and writes never raise because of another thread: iterating walks a snapshot.
    A read-modify-write of several steps needs `with state.lock:`; counting has `count`.

    A handler that runs into its time limit is cut from it: the lock that it holds is replaced, and
    what it writes from then on is seen by nobody else.
    """

    __slots__ = ("_lock", "over")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        dict.__init__(self, *args, **kwargs)
        self._lock: Any = SharedLock()
        self.over = False

    @property
    def lock(self) -> Lock:
        """A re-entrant lock for what must happen as one step: `with state.lock: …`."""
        return self._lock  # type: ignore[no-any-return]

    def renew_lock(self) -> None:
        """After a fork: a thread of the parent may hold it."""
        self._lock = SharedLock()

    def count(self, key: str, by: int = 1) -> int:
        """Add `by` to the number under `key` (0 where there is none) and return the sum.

        Atomic over threads. While a call is judged a second time (another plugin changed its
        arguments) the number is returned as it stands, so that one call counts once.
        """
        with self._lock:
            total = int(dict.get(self, key, 0))
            if not rejudging():
                total += by
                dict.__setitem__(self, key, total)
            return total

    def _snapshot(self) -> dict[str, Any]:
        with self._lock:
            return dict(dict.items(self))

    def __iter__(self) -> Iterator[str]:
        return iter(self._snapshot())

    def keys(self) -> Any:
        return self._snapshot().keys()

    def values(self) -> Any:
        return self._snapshot().values()

    def items(self) -> Any:
        return self._snapshot().items()

    def copy(self) -> dict[str, Any]:
        return self._snapshot()

    def __reduce__(self) -> tuple[Any, ...]:
        # A lock cannot be pickled or deep-copied; a copy of the state gets one of its own.
        return (TurnState, (self._snapshot(),))

    @property
    def loan_key(self) -> int:
        """What is lent once to each call."""
        return id(self)

    def lent(self) -> TurnState:
        """This state for one call, which may be left behind."""
        return _LentState(self)


def _locked(name: str) -> Any:
    method = getattr(dict, name)

    @wraps(method)
    def call(self: TurnState, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return call


for _name in ("__delitem__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(TurnState, _name, _locked(_name))


class _LentState(TurnState):
    """A turn's state as one call has it: the turn's own, until the call is left behind."""

    __slots__ = ("_of",)

    def __init__(self, state: TurnState) -> None:
        super().__init__()
        dict.__setitem__(self, "", None)  # json.dumps takes what stores nothing for empty
        self._of = state
        self._lock = LentLock(state._lock)

    def take_back(self) -> str | None:
        """Go on with a copy; `state.lock` if the call held it."""
        held: bool = self._lock.take_back()
        # Without the lock of the turn, which another one may hold.
        self._of = TurnState(own_copy(dict(dict.items(self._of))))
        return "state.lock" if held else None

    def let_go(self) -> None:
        """Release the lock, if this thread holds it."""
        self._lock.let_go()


def _reading(name: str) -> Any:
    def method(self: _LentState, *args: Any) -> Any:
        return getattr(self._of, name)(*args)

    return method


def _writing(name: str) -> Any:
    def method(self: _LentState, *args: Any, **kwargs: Any) -> Any:
        with self._lock:  # whose state it is, is settled once this is held
            return getattr(self._of, name)(*args, **kwargs)

    return method


_READ: Final = (
    *("__contains__", "__eq__", "__getitem__", "__len__", "__ne__", "__or__", "__repr__"),
    *("__reversed__", "__ror__", "get"),
)
_WRITTEN: Final = (
    *("__delitem__", "__reduce__", "__setitem__", "_snapshot", "clear", "count", "pop", "popitem"),
    *("setdefault", "update"),
)
for _names, _made in ((_READ, _reading), (_WRITTEN, _writing)):
    for _name in _names:
        setattr(_LentState, _name, _made(_name))


def _or_in_place(self: _LentState, other: Any) -> _LentState:
    self.update(other)
    return self


_LentState.__ior__ = _or_in_place  # type: ignore[assignment, method-assign]


_KINDS: Final = ("turn", "task", "session")

_LEFT_IDLE: Final = 3_600.0
_LEFT_RUNNING: Final = 86_400.0

_serials: Final = itertools.count(1)


class TurnCore:
    """One open turn: its ids, its state, and whether it is over.

    Args:
        session_id: the session it began in.
        turn_id: the host's id of the turn; one is made up where it has none yet.
        task_id: the host's id of the task, or None.

    Attributes:
        uid: what handlers and the decision log call the turn, from its first moment to its last.
        turn_id: the host's id, which may become known later (`bind`).
        outer: the handler's call that the turn was begun in; None for all others.
        chains: the turn's chains that run in this moment.
        attended: whether its host ends it for certain, so that it is at work for as long as it is
            open; the host sets this.
        serial: a number that no other turn of this process has.
        running: what else runs in it at the moment: questions, and the ids of tool calls that were
            let through and whose results have not come.
        used_at: when anything last began or ended in it, by `time.monotonic`.
    """

    __slots__ = (
        "__weakref__",
        "_call_serial",
        "attended",
        "chains",
        "closed",
        "lock",
        "outer",
        "running",
        "serial",
        "session_id",
        "state",
        "task_id",
        "turn_id",
        "uid",
        "used_at",
    )

    def __init__(
        self, session_id: str, turn_id: str | None = None, task_id: str | None = None
    ) -> None:
        self.session_id = session_id
        self.uid = turn_id or os.urandom(16).hex()
        self.turn_id = self.uid
        self.task_id = task_id
        self.state = TurnState()
        self.closed = False
        self.outer = inside.get()
        self.chains: set[Running] = set()
        self.attended = False
        self.lock = threading.RLock()
        self.serial = next(_serials)
        self.running: set[object] = set()
        self.used_at = monotonic()
        self._call_serial = 0

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            open_turns.drop(self)

    def is_idle(self, now: float) -> bool:
        """Whether nothing has happened in it for so long that its host has left it open.

        A request to the model takes minutes, a tool may take hours.
        """
        limit = _LEFT_RUNNING if self.running or self.chains else _LEFT_IDLE
        return not self.attended and now - self.used_at > limit

    def worked_until(self, now: float) -> float:
        """The last moment at which its agent may have been at work."""
        if self.attended:
            return now
        busy = self.running or self.chains
        return min(now, self.used_at + _LEFT_RUNNING) if busy else self.used_at

    @property
    def packages(self) -> Set[str]:
        """The packages of the extensions whose handlers it calls."""
        return frozenset()

    def session_state_of_module(self, module: str) -> MutableMapping[str, Any] | None:
        """The session state of the extension that a module belongs to; None for other modules."""
        return None

    def report_slow(self, text: str) -> None:
        """Show the person that one of the turn's handlers takes long."""

    def new_call_id(self) -> str:
        """A tool call id for a call that the host gave none, unique in this turn."""
        with self.lock:
            self._call_serial += 1
            return f"ext-call-{self._call_serial}"

    def bind(
        self,
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        task_id: str | None = None,
    ) -> None:
        """Tell ids that the host made, or changed, after the turn began; it is found by them, too.

        Handlers keep seeing the `turn_id` that the turn began with, as the decision log does.
        """
        before = self.session_id, self.turn_id, self.task_id
        self.session_id = session_id or self.session_id
        self.turn_id = turn_id or self.turn_id
        self.task_id = task_id or self.task_id
        if (self.session_id, self.turn_id, self.task_id) == before:
            return
        open_turns.index(self, session=session_id, turn=turn_id, task=task_id)
        self._bound()

    def _bound(self) -> None:
        """Its ids have changed."""


class QuietWatcher(Protocol):
    """Told when the last turn of the process that is at work ends, while it is still open."""

    def last_turn_ends(self, turn: TurnCore) -> None:
        """Must not raise, nor take long."""


class _OpenTurns:
    """All turns that are open in this process, found by turn, task or session id.

    They are held weakly: a turn that its host drops without ending it is over with that.

    Attributes:
        begun: how many turns ever began: equal numbers mean that none did in between.
        drops_turns: whether the host has dropped a turn without ending it.
        to_be_told: whether that is still to be said.
        watchers: told when the last turn that is at work ends, as long as somebody holds them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        has_locks(self)
        self._ending = threading.RLock()
        self._turns: dict[int, weakref.ref[TurnCore]] = {}
        self._ids: dict[int, set[tuple[str, str | None]]] = {}
        self._by_id: dict[tuple[str, str | None], set[int]] = {}
        self._dropped: deque[tuple[int, float]] = deque()
        self._worked_until = 0.0
        self.begun = 0
        self.drops_turns = self.to_be_told = False
        self.watchers: weakref.WeakSet[QuietWatcher] = weakref.WeakSet()

    def renew_locks(self) -> None:
        """Also those of the turns: a fork in the middle of one goes on in the child."""
        self._lock = threading.Lock()
        self._ending = threading.RLock()
        for turn in self.all():
            turn.lock = threading.RLock()
            turn.state.renew_lock()

    def index(self, turn: TurnCore, /, **ids: str | None) -> None:
        with self._lock:
            self._forget_dropped()
            if turn.closed:
                return
            self._turns.setdefault(turn.serial, weakref.ref(turn))
            own = self._ids.setdefault(turn.serial, set())
            for key in ids.items():
                if key[1] and key not in own:
                    own.add(key)
                    self._by_id.setdefault(key, set()).add(turn.serial)

    def drop(self, turn: TurnCore) -> None:
        """Note a turn that goes away unended. Takes no lock: any line of Python may collect it."""
        self._dropped.append((turn.serial, turn.worked_until(monotonic())))

    def _forget_dropped(self) -> None:
        while self._dropped:
            serial, until = self._dropped.popleft()
            self._worked_until = max(self._worked_until, until)
            if serial in self._turns and not self.drops_turns:
                self.drops_turns = self.to_be_told = True
            self._forget(serial)

    def _forget(self, serial: int) -> None:
        self._turns.pop(serial, None)
        for key in self._ids.pop(serial, ()):
            holders = self._by_id[key]
            holders.discard(serial)
            if not holders:
                del self._by_id[key]

    def end(self, turn: TurnCore) -> None:
        """Remove a turn; whoever watches is told first where it is the last one at work."""
        # Alone: of two that end at the same time one is the last.
        with self._ending:
            if turn.serial not in self._turns:
                return
            self._worked_until = monotonic()
            if self.watchers and not self.any_at_work(besides=turn):
                for watcher in list(self.watchers):
                    watcher.last_turn_ends(turn)
            with self._lock:
                self._forget(turn.serial)

    def only(self, kind: str, value: str | None) -> TurnCore | None:
        """The one open turn with this id; None where there is none, or more than one."""
        if not value:
            return None
        with self._lock:
            if self._dropped:
                self._forget_dropped()
            holders = self._by_id.get((kind, value), ())
            return self._turns[next(iter(holders))]() if len(holders) == 1 else None

    def all(self) -> set[TurnCore]:
        """Idle ones included."""
        with self._lock:
            self._forget_dropped()
            refs = list(self._turns.values())
        return {turn for ref in refs if (turn := ref()) is not None}

    def find(self, matches: Callable[[TurnCore], bool]) -> TurnCore | None:
        """An open turn that `matches`; None where there is none."""
        return next(filter(matches, self.all()), None)

    def idle(self) -> set[TurnCore]:
        """Those that their host seems to have left open."""
        now = monotonic()
        return {turn for turn in self.all() if turn.is_idle(now)}

    def any_at_work(self, besides: TurnCore | None = None) -> bool:
        """Whether a turn is open that is not idle, and not the one given."""
        now = monotonic()
        return any(turn is not besides and not turn.is_idle(now) for turn in self.all())

    def chains(self) -> int:
        """How many chains run in this moment, of all turns together."""
        return sum(len(turn.chains) for turn in self.all())

    def worked_until(self) -> float:
        """The last moment at which any turn may have been at work, by `time.monotonic`."""
        now = monotonic()
        return max([self._worked_until, *(turn.worked_until(now) for turn in self.all())])


open_turns: Final = _OpenTurns()


def open_turn_count() -> int:
    """How many turns are open in this process; 0 when all are over."""
    return len(open_turns.all())


# Nobody's: what is left of turns that are over. It has no ids and no state.
_ended: Final = TurnCore.__new__(TurnCore)
_ended.closed = True


def begin(turn: TurnCore) -> None:
    """Make a turn findable by its ids."""
    open_turns.begun += 1  # that two at once count as one does no harm
    open_turns.index(turn, turn=turn.turn_id, session=turn.session_id, task=turn.task_id)
    if open_turns.to_be_told:  # once in a process
        open_turns.to_be_told = False
        _logger().warning(
            "the host drops turns without ending them (Turn.close, or `with`): each is over when "
            "its object is collected, and what it still has to show is not shown"
        )


def end(turn: TurnCore) -> None:
    """End a turn: it can no longer be found, and its state is empty. Ending twice is harmless."""
    with turn.lock:
        turn.closed = True
    open_turns.end(turn)
    turn.state.over = True
    dict.clear(turn.state)  # without its lock: a handler may hold that for ever


class entered:  # noqa: N801 - used as a function; a generator takes three times as long
    """While open, `turn` is the current turn of this context (thread or task), and is at work."""

    __slots__ = ("_token", "_turn")

    def __init__(self, turn: TurnCore) -> None:
        self._turn = turn

    def __enter__(self) -> None:
        turn = self._turn
        turn.running.add(self)
        turn.used_at = monotonic()
        self._token = None if _current.get() is turn else _current.set(turn)

    def __exit__(self, *_: object) -> None:
        turn = self._turn
        if self._token is not None:
            _current.reset(self._token)
        turn.running.discard(self)
        turn.used_at = monotonic()


# Bound once, which takes as long as the call.
_goes_in: Final = inside.set
_comes_out: Final = inside.reset


@final
class Running(Call):
    """A chain that runs in a turn, which is the current one of this context meanwhile.

    Attributes:
        turn: the turn.
        chain: the chain; what it is made of is not this room's business.
        scope: what its handlers may ask for.
    """

    __slots__ = ("_here", "_inside", "chain", "scope", "turn")

    turn: TurnCore
    chain: Any
    scope: Any
    loan = None

    @property
    def handlers(self) -> Any:  # type: ignore[override]
        """Those of the chain."""
        return self.chain.handlers

    def begin(self) -> Running:
        """It runs from now on, in this thread."""
        turn = self.turn
        self.thread = get_ident()
        self._here = None if _current.get() is turn else _current.set(turn)
        self._inside = _goes_in(self)
        turn.chains.add(self)
        return self

    def end(self) -> None:
        """It has run."""
        turn = self.turn
        turn.chains.discard(self)
        turn.used_at = monotonic()
        _comes_out(self._inside)
        if self._here is not None:
            _current.reset(self._here)


def current_turn() -> TurnCore | None:
    """The turn of this context, also when it is over; None outside of any turn."""
    return _current.get()


def enter(turn: TurnCore) -> weakref.ref[TurnCore] | None:
    """Make a turn the current one of this context; returns what `leave` wants."""
    before = _current.get()
    _current.set(turn)
    return None if before is None else weakref.ref(before)


def leave(turn: TurnCore, before: weakref.ref[TurnCore] | None) -> None:
    """Undo `enter`. In a context in which another turn is the current one nothing changes.

    before: weak, so that turns which are entered and never left do not hold each other.
    """
    if _current.get() is turn:
        earlier = None if before is None else before()
        # What belongs to a turn that is over stays without one.
        over = before is not None and (earlier is None or earlier.closed)
        _current.set(_ended if over else earlier)


def turn_here(turn_id: str | None) -> TurnCore | None:
    """The open turn of this context, where it has this id or none is given: as `find_turn`."""
    here = _current.get()
    if here is None or here.closed or turn_id not in (None, here.turn_id):
        return None
    return here


def find_turn(
    *, turn_id: str | None = None, task_id: str | None = None, session_id: str | None = None
) -> TurnCore | None:
    """The open turn that these ids, or this context, belong to.

    The host's own turn id is exact and comes first; then the context variable, the task id, and
    the session id if exactly one turn of that session is open. What belongs to a turn that is over
    (a turn id that is not open, a context whose turn has ended) finds none: it must not slip into
    the session's next turn.
    """
    found = open_turns.only("turn", turn_id)
    if found is not None:
        return found
    here = _current.get()
    if here is not None:
        return None if here.closed else here
    if turn_id:
        return None
    return open_turns.only("task", task_id) or open_turns.only("session", session_id)


def _as_lent(state: _State) -> _State:
    """Some state as the call of this context has it, if it has it on loan."""
    call = inside.get()
    if call is None:
        return state
    lent: _State = call.lent(state)
    return lent


def get_turn_state(session_id: str | None = None) -> TurnState:
    """The state of the turn that the caller runs in: a dict shared by all extensions.

    Seen by the threads of parallel tool calls, gone when the turn ends.

    Args:
        session_id: helps to find the turn where the caller's thread knows of none (a raw thread
            that an extension started itself). Inside a handler it is not needed, and the
            handler's own turn wins over it. A turn or task id is understood too.

    Returns:
        The turn's state. Where no turn can be told, or several of one session are open, an
        empty state that belongs to nothing; a warning on the logger `hermes_ext` says so.
    """
    turn = _current.get()
    if turn is None or turn.closed:
        turn = next(filter(None, (open_turns.only(kind, session_id) for kind in _KINDS)), None)
    if turn is not None:
        return _as_lent(turn.state)
    _logger().warning(
        "get_turn_state(%r): no open turn can be told from this thread and id; the state is empty. "
        "Use the handler's `state` argument, or hand the state to your thread.",
        session_id,
    )
    return TurnState()


def _logger() -> Any:
    # Here, because an author's `import hermes_ext` should not wait for it.
    from hermes_ext._log import logger

    return logger


def get_session_state() -> MutableMapping[str, Any]:
    """What the calling extension keeps for this conversation: the handler's `session_state`.

    JSON values under string keys, private to the extension; kept over turns, resume and restart,
    with the same atomic `count` as the turn's state. Whose code calls tells whose state it is.

    Raises:
        StateError: called outside of a turn, or by code that belongs to no extension. What is
            returned raises it, with `unavailable` set, while state cannot be read or stored.
    """
    turn = _current.get()
    frame: FrameType | None = sys._getframe(1)
    while turn is not None and frame is not None:
        state = turn.session_state_of_module(str(frame.f_globals.get("__name__", "")))
        if state is not None:
            return _as_lent(state)
        frame = frame.f_back
    raise StateError(
        "get_session_state() was called outside of a handler",
        hint="Call it in a handler, or name `session_state` among the handler's arguments",
    )
