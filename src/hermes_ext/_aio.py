"""Async handlers: awaited in the caller's loop, or in one background loop for a sync host."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final

from hermes_ext._timeouts import Ended, Limited, TimedOut, workers

__all__ = ["awaited", "call_async", "wait_for"]

_GRACE: Final = 0.25


async def _result_of(function: Callable[..., Any], values: Any) -> Any:
    returned = function(*values)
    return await returned if inspect.isawaitable(returned) else returned


# -- in the caller's loop -------------------------------------------------------------------------


async def awaited(handler: Limited, function: Callable[..., Any], values: Any) -> Ended:
    """Await a handler in the running loop, within its limit.

    Returns:
        What it returned and None, or None and what it raised.

    Raises:
        asyncio.CancelledError: the caller's own task was cancelled.
    """
    if not handler.is_async:
        return await _from_worker(handler, function, values)
    return await _ended_of(asyncio.ensure_future(_result_of(function, values)), handler)


async def _ended_of(task: asyncio.Task[Any], handler: Limited) -> Ended:
    # asyncio.wait, not asyncio.timeout: a handler that swallows its cancellation must not hold the
    # caller, and a handler's CancelledError must not be taken for the caller's.
    try:
        done, _ = await asyncio.wait({task}, timeout=handler.timeout)
    except BaseException:
        _drop(task)
        raise
    if not done:
        _drop(task)
        return None, TimedOut()
    if task.cancelled():
        return None, asyncio.CancelledError()
    error = task.exception()
    return (None, error) if error is not None else (task.result(), None)


def _drop(task: asyncio.Task[Any]) -> None:
    task.add_done_callback(_retrieve)
    task.cancel()


def _retrieve(task: asyncio.Task[Any]) -> None:
    # An exception that nobody asks for is reported on stderr by asyncio.
    if not task.cancelled():
        task.exception()


async def _from_worker(handler: Limited, function: Callable[..., Any], values: Any) -> Ended:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop was closed in the meantime; nobody waits
            loop.call_soon_threadsafe(done.set)

    job = workers.start(handler, lambda: function(*values), tell)
    if isinstance(job, TimedOut):
        return None, job
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(handler.timeout):
                await done.wait()
    except BaseException:
        workers.leave(job)
        raise
    if not done.is_set() and workers.leave(job):
        return None, TimedOut()
    return job.ended


# -- in a background loop -------------------------------------------------------------------------


class _Loop:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(
            target=self._run, name="hermes-ext-async-handlers", daemon=True
        )
        self.thread.start()
        self._inner: _Loop | None = None

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def usable(self) -> _Loop:
        """This loop; or one inside, if a handler that runs on this one calls a chain itself."""
        if threading.current_thread() is not self.thread:
            return self
        if self._inner is None:
            self._inner = _Loop()
        return self._inner.usable()

    def answers(self) -> bool:
        """Whether nothing blocks it."""
        alive = threading.Event()
        self.loop.call_soon_threadsafe(alive.set)
        return alive.wait(_GRACE)

    def call(self, handler: Limited, function: Callable[..., Any], values: Any) -> Ended:
        """Await a handler here, while the calling thread waits."""
        ended: list[Ended] = []
        done = threading.Event()
        context = copy_context()

        async def supervise() -> None:
            try:
                task = self.loop.create_task(_result_of(function, values), context=context)
                ended.append(await _ended_of(task, handler))
            finally:
                done.set()

        # The future keeps the task alive: a loop itself only holds weak references.
        running = asyncio.run_coroutine_threadsafe(supervise(), self.loop)
        in_time = done.wait(None if handler.timeout is None else handler.timeout + _GRACE)
        if not in_time:
            running.cancel()
        return ended[0] if in_time and ended else (None, TimedOut())


class _Background:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: after a fork, the child does not have the thread."""
        self._lock = threading.Lock()
        self._loop: _Loop | None = None

    def current(self) -> _Loop:
        with self._lock:
            if self._loop is None:
                self._loop = _Loop()
            return self._loop.usable()

    def replace(self, stuck: _Loop) -> None:
        """Let later calls go to a new loop; the stuck one's thread is left behind."""
        with self._lock:
            if self._loop is stuck:
                self._loop = None


_background: Final = _Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.forget)


def call_async(handler: Limited, function: Callable[..., Any], values: Any) -> Ended:
    """Await a handler in the background loop, within its limit; any thread may call this.

    Returns:
        What it returned and None, or None and what it raised.
    """
    loop = _background.current()
    ended = loop.call(handler, function, values)
    if isinstance(ended[1], TimedOut) and not loop.answers():
        _background.replace(loop)
    return ended


def wait_for(awaitable: Awaitable[Any]) -> Any:
    """Await something in the background loop, without a limit; any thread may call this.

    Raises:
        BaseException: what it raised.
    """
    returned, error = call_async(_Unlimited(), lambda: awaitable, ())
    if error is not None:
        raise error
    return returned


class _Unlimited:
    timeout: float | None = None
    is_async = True
