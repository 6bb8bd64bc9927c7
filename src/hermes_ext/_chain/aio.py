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

from hermes_ext._chain.timeouts import Ended, Limited, TimedOut, workers

__all__ = ["awaited", "call_async", "wait_for"]

LOOPS_LEFT: Final = 4
_GRACE: Final = 0.25


async def _ended(function: Callable[..., Any], values: Any) -> Ended:
    try:
        returned = function(*values)
        return (await returned if inspect.isawaitable(returned) else returned), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - a SystemExit would end the whole event loop
        return None, error


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
    return await _ended_of(asyncio.ensure_future(_ended(function, values)), handler)


async def _ended_of(task: asyncio.Task[Ended], handler: Limited) -> Ended:
    # asyncio.wait, not asyncio.timeout: a handler that swallows its cancellation must not hold the
    # caller, and a handler's CancelledError must not be taken for the caller's.
    try:
        done, _ = await asyncio.wait({task}, timeout=handler.timeout)
    except BaseException:
        task.cancel()
        raise
    if not done:
        task.cancel()
        return None, TimedOut()
    return (None, asyncio.CancelledError()) if task.cancelled() else task.result()


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
        # Stopped after it had been replaced: what still waits in it has been given up.
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()

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
                task = self.loop.create_task(_ended(function, values), context=context)
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
    """The loop that is in use, and those that handlers have blocked and that were replaced."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: after a fork, the child does not have the threads."""
        self._lock = threading.Lock()
        self._loop: _Loop | None = None
        self._left: list[_Loop] = []

    def current(self) -> _Loop | TimedOut:
        """The loop to use; a `TimedOut` while too many are blocked."""
        with self._lock:
            if self._loop is None:
                self._left = [loop for loop in self._left if loop.thread.is_alive()]
                if len(self._left) >= LOOPS_LEFT:
                    return TimedOut(len(self._left))
                self._loop = _Loop()
            return self._loop.usable()

    def replace(self, stuck: _Loop) -> None:
        """Let later calls go to a new loop; the blocked one ends as soon as it can."""
        with self._lock:
            if self._loop is stuck:
                self._loop = None
                self._left.append(stuck)
                stuck.loop.call_soon_threadsafe(stuck.loop.stop)


_background: Final = _Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.forget)


def call_async(handler: Limited, function: Callable[..., Any], values: Any) -> Ended:
    """Await a handler in the background loop, within its limit; any thread may call this.

    Returns:
        What it returned and None, or None and what it raised.
    """
    loop = _background.current()
    if isinstance(loop, TimedOut):
        return None, loop
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
