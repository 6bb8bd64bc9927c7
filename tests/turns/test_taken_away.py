"""What one handler takes away is in no log because another one, which failed, quotes it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.test_runtime import home_with

from hermes_ext import Runtime

WORDS = "the purple walrus sings"
FAILING = """
from hermes_ext import register_hook

@register_hook("transform_user_input")
def on_input(user_message):
    raise ValueError(user_message)

@register_hook("before_llm_call")
def on_request(messages):
    raise ValueError(str(messages))

@register_hook("transform_tool_result")
def on_result(result):
    raise ValueError(result)
"""
TAKING = """
from hermes_ext import HookResult, register_hook

@register_hook("transform_user_input", priority=200)
def input_changed():
    return HookResult.{}

@register_hook("before_llm_call", priority=200)
def request_changed():
    return HookResult.{}

@register_hook("transform_tool_result", priority=200)
def result_changed():
    return HookResult.{}
"""
BLOCK, REWRITE = 'block("no")', 'rewrite("gone")'


@pytest.mark.parametrize("level", ["decisions", "steps"])
@pytest.mark.parametrize("action", [BLOCK, REWRITE], ids=["block", "rewrite"])
def test_no_log_has_what_was_taken_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, action: str, level: str
) -> None:
    caplog.set_level(logging.DEBUG)
    lines: list[str] = []
    home = home_with(
        tmp_path,
        f"extensions: {{log: {level}}}\n",
        failing=FAILING,
        taking=TAKING.format(action, BLOCK, BLOCK),
    )
    runtime = Runtime.from_config(home=home, cwd=home)
    runtime.on_failure = lines.append
    with runtime.turn(session_id="s") as turn:
        for outcome in (
            turn.transform_user_input(WORDS),
            turn.before_llm_call([{"role": "user", "content": WORDS}]),
            turn.transform_tool_result("terminal", {"command": "ls"}, WORDS),
        ):
            assert outcome.blocked or outcome.changed
    runtime.close()
    assert len(lines) == 3
    written = [caplog.text, *lines]
    written += [path.read_text() for path in home.rglob("*.jsonl")]
    assert not [text for text in written if "walrus" in text]
    for hook in ("transform_user_input: on_input", "before_llm_call: on_request"):
        assert f"failing, {hook} failed (ValueError)" in caplog.text


def test_a_guard_that_fails_says_what_it_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody has found anything in this result, and its author has to know."""
    code = FAILING.replace('_tool_result"', '_tool_result", guard=True')
    runtime = Runtime.from_config(home=home_with(tmp_path, failing=code), cwd=tmp_path)
    with runtime.turn(session_id="s") as turn:
        assert turn.transform_tool_result("terminal", {}, "unexpected").blocked
    runtime.close()
    assert "ValueError: unexpected" in caplog.text
