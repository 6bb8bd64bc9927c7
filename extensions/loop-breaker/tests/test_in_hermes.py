"""What README.md says, done by the real Hermes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.bundled import enable_in, prompt_in, readme_of

from hermes_ext.testing.model_server import Reply, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("loop-breaker")
Factory = Callable[..., Any]


def test_the_readmes_example(model_factory: Factory, hermes: Factory) -> None:
    """Enabled by its command; the second time the model is told, the third time it is refused."""
    call = ToolUse("terminal", {"command": "cat build.log"})
    model = model_factory([*[Reply(tool_calls=(call,))] * 3, Reply("It says no.")])
    home = hermes(model, git=True)
    home.cli("extensions", *enable_in(README)).check()
    (home.project / "build.log").write_text("no\n", encoding="utf-8")
    home.oneshot(prompt_in(README)).check()
    first, second, third = [text for _, text in model.main_requests[-1].tool_results]
    assert "loop-breaker" not in first
    assert "[loop-breaker] The same call again will be refused" in second
    assert "[loop-breaker] This is call number 3 of terminal with exactly these arguments" in third
