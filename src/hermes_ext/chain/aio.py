"""Async handlers: awaited in an event loop of their session, for sync and async hosts alike.

A handler that blocks its loop delays its own session only. The loop that it blocks is left behind,
and the session goes on with a new one. Handlers of calls that a handler makes itself run in
another loop than that handler, which may be waiting for them.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final, TypeAlias

from hermes_ext._forks import has_locks
from hermes_ext._log import logger
from hermes_ext.chain.calls import inside
from hermes_ext.chain.raised import read
from hermes_ext.chain.threads import nothing, threads
from hermes_ext.chain.timeouts import Ended, Job, Limited, Session, TimedOut, name_of, workers

LOOPS_KEPT: Final = 8
LOOPS_IN_ALL: Final = 64
REPLACED_PER_SESSION: Final = 8
_GRACE: Final = 0.25

_Key: TypeAlias = tuple[str | None, str | None, int]
"""A conversation, one of its sessions if several are at work, and how deep the call is."""


async def _ended(function: Callable[..., Any], values: Any) -> Ended:
    try:
        returned = function(*values)
        return (await returned if inspect.isawaitable(returned) else returned), None
    except BaseException as error:  # noqa: BLE001 - a SystemExit would end the whole event loop
        read(error)
        return None, error


class _Pool(ThreadPoolExecutor):
    """Threads for `run_in_executor`, which know in whose call they work; asyncio takes no other."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(copy_context().run, fn, *args, **kwargs)


class _Loop:
    """An event loop in a daemon thread.

    Attributes:
        at_work: the sessions of the calls that somebody waits for.
        probe: answered once the loop has gone on after a call was left; None where none was.
        turn: the state of the turn that used it last.
    """

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(_Pool())
        self.at_work: list[str | None] = []
        self.probe: Future[None] | None = None
        self.turn: Any = None
        self.retired = self.ended = False
        self._closing = False
        try:
            threads.make("hermes-ext-async-handlers", self._run)
        except BaseException:
            self.loop.close()
            raise

    def _run(self) -> Callable[[], None]:
        asyncio.set_event_loop(self.loop)
        while not self._closing:
            try:
                self.loop.run_forever()
            except BaseException:  # a SystemExit in a task that a handler has begun
                logger.warning("an event loop of handlers goes on after an error", exc_info=True)
        with suppress(BaseException):
            self.loop.run_until_complete(self._end_tasks())
        self.loop.close()
        asyncio.set_event_loop(None)  # the thread goes on with other calls
        self.ended = True
        return nothing

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE)
        await self.loop.shutdown_asyncgens()

    def close(self) -> None:
        """End it as soon as nothing blocks it; what still waits in it is cancelled."""

        def stop() -> None:
            self._closing = True
            self.loop.stop()

        self.loop.call_soon_threadsafe(stop)

    def ask(self) -> Future[None]:
        """Answered as soon as nothing blocks it."""
        answer: Future[None] = Future()
        self.loop.call_soon_threadsafe(answer.set_result, None)
        return answer

    def start(
        self,
        handler: Limited,
        function: Callable[..., Any],
        values: Any,
        session: Session | None,
        context: Context,
        when_done: Callable[[], None] | None,
    ) -> _AsyncJob:
        """Begin to await a handler here."""
        job = _AsyncJob(handler, name_of(session), workers.left, when_done)
        job.loop = self.loop

        def begin() -> None:
            task = self.loop.create_task(_ended(function, values), context=context)
            job.begun(task)

        self.loop.call_soon_threadsafe(begin)
        return job


class _AsyncJob(Job):
    """A handler that is awaited in a loop."""

    loop: asyncio.AbstractEventLoop
    # The loop itself only holds weak references to its tasks.
    _task: asyncio.Task[Ended] | None = None

    def begun(self, task: asyncio.Task[Ended]) -> None:
        """In the loop: this is its task."""
        self._task = task
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Ended]) -> None:
        self._task = None
        self.ended = (None, asyncio.CancelledError()) if task.cancelled() else task.result()
        self.finish()

    def cancel(self) -> None:
        """Ask the handler to end; any thread may do so."""

        def cancel() -> None:
            if self._task is not None:  # a loop does one thing after the other: it has begun
                self._task.cancel()

        with suppress(RuntimeError):  # it has ended, and its loop was closed since
            self.loop.call_soon_threadsafe(cancel)


class _Loops:
    """The loops of the sessions. What is used by nobody is closed, the oldest first."""

    def __init__(self) -> None:
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """Start anew: after a fork, the child does not have the threads."""
        self._lock = threading.RLock()
        self._by_key: OrderedDict[_Key, _Loop] = OrderedDict()
        self._replaced: list[_Loop] = []

    def __len__(self) -> int:
        return len(self._by_key) + len(self._replaced)

    def give_back(self, loop: _Loop, session: Session | None) -> None:
        """A call that `choose` chose a loop for is over, or left."""
        with self._lock:
            loop.at_work.remove(name_of(session))
            self._close_unused()

    def choose(self, session: Session | None) -> tuple[_Loop, Future[None] | None]:
        """The session's loop, and what is answered if nothing blocks it, where that is not sure."""
        with self._lock:
            conversation = None if session is None else session.conversation_id
            name = name_of(session)
            call = inside.get()
            depth = 0 if call is None else call.depth
            # Branches and subagents share a conversation. Who comes while another of them has its
            # loop gets one of its own, and keeps it.
            own = (conversation, name, depth)
            shared = self._by_key.get((conversation, None, depth))
            alone = shared is None or all(one == name for one in shared.at_work)
            if alone and own not in self._by_key:
                return self._taken((conversation, None, depth), session)
            return self._taken(own, session)

    def instead_of(self, loop: _Loop, session: Session | None) -> _Loop:
        """A new loop in the place of one that gave no answer, unless too many are blocked."""
        with self._lock:
            self._replaced = [one for one in self._replaced if not one.ended]
            ours = sum(one.key == loop.key for one in self._replaced)
            if self._by_key.get(loop.key) is loop:
                if ours >= REPLACED_PER_SESSION or len(self._replaced) >= LOOPS_IN_ALL:
                    return loop
                del self._by_key[loop.key]
                self._replaced.append(loop)
            new = self._taken(loop.key, session)[0]
            self.give_back(loop, session)
            return new

    def _taken(self, key: _Key, session: Session | None) -> tuple[_Loop, Future[None] | None]:
        loop = self._by_key.get(key)
        if loop is None:
            loop = self._by_key[key] = _Loop(key)
        self._by_key.move_to_end(key)
        if loop.probe is not None and loop.probe.done():
            loop.probe = None
        probe = loop.ask() if loop.at_work else loop.probe
        loop.at_work.append(name_of(session))
        loop.turn = None if session is None else session.state
        self._close_unused()
        return loop, probe

    def _close_unused(self) -> None:
        for loop in self._replaced:
            if not loop.at_work and not loop.retired:
                loop.retired = True
                loop.close()
        idle = [loop for loop in self._by_key.values() if not loop.at_work]
        over = [loop for loop in idle if getattr(loop.turn, "over", True)]
        unused = over[: max(0, len(over) - LOOPS_KEPT)]
        # Hosts may forget to end their turns.
        unused += [one for one in idle if one not in unused][: len(self._by_key) - LOOPS_IN_ALL]
        for loop in unused:
            del self._by_key[loop.key]
            loop.close()


loops: Final = _Loops()


# -- from a thread that waits ---------------------------------------------------------------------


def call_async(
    handler: Limited,
    function: Callable[..., Any],
    values: Any,
    session: Session | None = None,
    context: Context | None = None,
) -> Ended:
    """Await a handler in its session's loop, within its limit; any thread may call this.

    Returns:
        What it returned and None, or None and what it raised.
    """
    refusal = workers.left.refusal(session, handler)
    if refusal is not None:
        return None, refusal
    loop, probe = loops.choose(session)
    try:
        if probe is not None and not _answered(probe):
            loop = loops.instead_of(loop, session)
        job = loop.start(handler, function, values, session, context or copy_context(), None)
        try:
            in_time = job.wait(handler.timeout)
        except BaseException:
            _give_up(job, loop)
            job.leave()
            raise
        if in_time:
            return job.ended
        _give_up(job, loop)
        # Its clean-up is waited for, for a moment: most handlers end when they are cancelled.
        if not job.wait(_GRACE):
            job.leave()
        return None, TimedOut()
    finally:
        loops.give_back(loop, session)


def _answered(probe: Future[None]) -> bool:
    try:
        probe.result(_GRACE)
    except NoAnswer:
        return False
    return True


def _give_up(job: _AsyncJob, loop: _Loop) -> None:
    job.cancel()
    loop.probe = loop.ask()


def wait_for(awaitable: Awaitable[Any], session: Session | None = None) -> Any:
    """Await something in a session's loop, without a limit; any thread may call this.

    Raises:
        BaseException: what it raised.
    """
    returned, error = call_async(_Unlimited(), lambda: awaitable, (), session)
    if error is not None:
        raise error
    return returned


class _Unlimited:
    timeout: float | None = None
    is_async = True


# -- from another event loop ----------------------------------------------------------------------


async def awaited(
    handler: Limited,
    function: Callable[..., Any],
    values: Any,
    session: Session | None = None,
    context: Context | None = None,
) -> Ended:
    """Await a handler elsewhere, within its limit, while the running loop goes on.

    Returns:
        What it returned and None, or None and what it raised.

    Raises:
        asyncio.CancelledError: the caller's own task was cancelled.
    """
    context = copy_context() if context is None else context
    over, tell = _signal()
    if not handler.is_async:
        job = workers.start(handler, function, values, session, context, tell)
        return (None, job) if isinstance(job, TimedOut) else await _end_of(job, over, handler)
    refusal = workers.left.refusal(session, handler)
    if refusal is not None:
        return None, refusal
    loop, probe = loops.choose(session)
    try:
        if probe is not None:
            answered, _ = await asyncio.wait({asyncio.wrap_future(probe)}, timeout=_GRACE)
            if not answered:
                loop = loops.instead_of(loop, session)
        started = loop.start(handler, function, values, session, context, tell)
        try:
            return await _end_of(started, over, handler)
        finally:
            if not started.finished:
                _give_up(started, loop)
    finally:
        loops.give_back(loop, session)


def _signal() -> tuple[asyncio.Future[None], Callable[[], None]]:
    """A future of the running loop, and what another thread calls to have it done."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def done() -> None:
        if not future.done():
            future.set_result(None)

    def tell() -> None:
        with suppress(RuntimeError):  # the loop was closed in the meantime; nobody waits
            loop.call_soon_threadsafe(done)

    return future, tell


async def _end_of(job: Job, over: asyncio.Future[None], handler: Limited) -> Ended:
    # asyncio.wait, not asyncio.timeout: what the handler raises must not be taken for the caller's.
    try:
        await asyncio.wait({over}, timeout=handler.timeout)
    except BaseException:
        job.leave()
        raise
    if not job.finished and isinstance(job, _AsyncJob):
        job.cancel()
        await asyncio.wait({over}, timeout=_GRACE)
        job.leave()
        return None, TimedOut()
    if not job.finished and job.leave():
        return None, TimedOut()
    return job.ended
