"""What Hermes's own log files hold of the rules that run in it: no secret."""

from __future__ import annotations

import pytest

from hermes_ext.testing import Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

TELLS = """
from hermes_ext import register_hook

@register_hook("intercept_tool_call", tools=["terminal"])
def tells(tool_args):
    raise RuntimeError(f"cannot handle {tool_args}")
"""


def test_the_text_of_a_handlers_exception_holds_no_secret(hermes_session: StartSession) -> None:
    """It quotes the arguments, and Hermes's logs, the terminal and the model get it without."""
    password = "Xk39fj" + "Q02mLpz8Vt"
    command = f"curl -u bob:{password} https://example.org; DB_PASSWORD={password} ls"
    session = hermes_session(
        Reply(tool_calls=(ToolUse("terminal", {"command": command}),)), "It did not work."
    )
    folder = session.home / "extensions/tells"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(TELLS, encoding="utf-8")
    run = session.chat("Go.")
    logs = {
        name: (session.home / "logs" / name).read_text(encoding="utf-8")
        for name in ("agent.log", "errors.log")
    }
    for name, text in logs.items():
        ours = [line for line in text.splitlines() if "cannot handle {'command'" in line]
        assert ours, (name, text)
        assert all("[redacted]" in line for line in ours)
        assert password not in "\n".join(ours)
        assert "Traceback" in text
    assert password not in run.answer + run.stderr
    assert password not in run.tool_results[0]
