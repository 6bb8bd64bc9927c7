"""What README.md says, done by the real Hermes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.bundled import enable_in, prompt_in, readme_of, settings_in

from hermes_ext.testing.model_server import Reply, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("budget")
Factory = Callable[..., Any]


def test_the_readmes_example(model_factory: Factory, hermes: Factory) -> None:
    """Enabled by its command: told at the limit, refused beyond it; the last request answers."""
    calls = [ToolUse("read_file", {"path": f"{name}.txt"}) for name in "abcd"]
    model = model_factory([*(Reply(tool_calls=(call,)) for call in calls), Reply("Done.")])
    settings = settings_in(README, "budget")
    home = hermes(model, extensions={"budget": settings}, git=True)
    home.cli("extensions", *enable_in(README)).check()
    for name in "abcd":
        (home.project / f"{name}.txt").write_text(f"{name}\n", encoding="utf-8")
    home.oneshot(prompt_in(README)).check()
    requests = model.main_requests
    assert len(requests) == settings["per_turn"]["requests"]
    assert "2 of 2 tool calls of this turn" in requests[2].system
    results = [text for _, text in requests[-1].tool_results]
    assert "[budget] The budget is used up: 2 tool calls of this turn." in results[2]
    assert "budget" not in results[0] + results[1]
    assert "This is the last request of the budget" in requests[-1].system
