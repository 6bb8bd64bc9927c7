"""What README.md says, done by the real Hermes."""

from __future__ import annotations

import pytest
from tests.bundled import enable_in, prompt_in, readme_of

from hermes_ext.testing import Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("loop-breaker")


def test_the_readmes_example(hermes_session: StartSession) -> None:
    """Enabled by its command; the second time the model is told, the third time it is refused."""
    call = ToolUse("terminal", {"command": "cat build.log"})
    session = hermes_session(*[Reply(tool_calls=(call,))] * 3, "It says no.")
    session.hermes("extensions", *enable_in(README)).check()
    (session.project / "build.log").write_text("no\n", encoding="utf-8")
    run = session.run(prompt_in(README))
    first, second, third = run.tool_results
    assert "loop-breaker" not in first
    assert "[loop-breaker] The same call again will be refused" in second
    assert "[loop-breaker] This is call number 3 of terminal with exactly these arguments" in third
