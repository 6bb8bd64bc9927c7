"""What makes a handler fail in one session keeps it from no other."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext.chain.failures import SESSIONS_REMEMBERED


def hiding(**options: Any) -> Runtime:
    @register_hook("transform_user_input", **options)
    def hides(user_message: str, session_id: str) -> Any:
        if "odd" in user_message:
            raise ValueError
        return HookResult.rewrite(user_message.replace("secret", "***"))

    return Runtime([hides])


def said(runtime: Runtime, session: str, text: str) -> Any:
    with runtime.turn(session_id=session) as turn:
        return turn.transform_user_input(text).final(text)


@pytest.mark.parametrize("timeout", [None, 5])
def test_it_is_suspended_where_it_failed_and_nowhere_else(timeout: float | None) -> None:
    runtime = hiding(timeout=timeout)
    for _ in range(5):
        said(runtime, "one", "odd")
    assert said(runtime, "one", "secret") == "secret"
    assert said(runtime, "other", "secret") == "***"
    assert said(runtime, "one", "secret") == "secret"
    (row,) = runtime.manager.failures
    assert (row.count, row.in_a_row, row.suspended) == (5, 5, True)


def test_failures_of_several_sessions_are_not_in_a_row() -> None:
    runtime = hiding()
    for number in range(20):
        said(runtime, str(number), "odd")
    (row,) = runtime.manager.failures
    assert (row.count, row.in_a_row, row.suspended) == (20, 1, False)


def test_no_more_sessions_are_remembered_than_that() -> None:
    runtime = hiding()
    for number in range(SESSIONS_REMEMBERED + 9):
        said(runtime, str(number), "odd")
    (health,) = runtime.manager._failures._health.values()
    assert len(health.in_a_row) == SESSIONS_REMEMBERED
