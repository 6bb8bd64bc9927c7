"""What README.md says, done by the real Hermes."""

from __future__ import annotations

import pytest
from tests.bundled import enable_in, prompt_in, readme_of, settings_in

from hermes_ext.testing import Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("budget")


def test_the_readmes_example(hermes_session: StartSession) -> None:
    """Enabled by its command: told at the limit, refused beyond it; the last request answers."""
    calls = [ToolUse("read_file", {"path": f"{name}.txt"}) for name in "abcd"]
    settings = settings_in(README, "budget")
    session = hermes_session(
        *(Reply(tool_calls=(call,)) for call in calls), "Done.", config={"budget": settings}
    )
    session.hermes("extensions", *enable_in(README)).check()
    for name in "abcd":
        (session.project / f"{name}.txt").write_text(f"{name}\n", encoding="utf-8")
    run = session.run(prompt_in(README))
    requests = run.requests
    assert len(requests) == settings["per_turn"]["requests"]
    assert "2 of 2 tool calls of this turn" in requests[2].system
    results = [text for _, text in requests[-1].tool_results]
    assert "[budget] The budget is used up: 2 tool calls of this turn." in results[2]
    assert "budget" not in results[0] + results[1]
    assert "This is the last request of the budget" in requests[-1].system
