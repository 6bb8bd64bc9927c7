"""What README.md says, done by the real Hermes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.bundled import enable_in, prompt_in, readme_of

from hermes_ext.testing.model_server import Reply, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("confirm-destructive")
Factory = Callable[..., Any]


def test_the_readmes_example(model_factory: Factory, hermes: Factory) -> None:
    """Enabled by its command; what may go goes, what may not is asked about, with nobody there."""
    commands = ("rm -rf node_modules", "rm -rf src", "bash -c 'git push -uf origin main'")
    for command in commands:
        assert f"`{command}`" in README
    calls = [ToolUse("terminal", {"command": command}) for command in commands]
    model = model_factory([*(Reply(tool_calls=(call,)) for call in calls), Reply("Done.")])
    home = hermes(model, git=True)
    home.cli("extensions", *enable_in(README)).check()
    for name in ("node_modules/x", "src/a.py"):
        (home.project / name).parent.mkdir()
        (home.project / name).write_text("x\n", encoding="utf-8")
    home.oneshot(prompt_in(README)).check()
    _, delete, push = [text for _, text in model.main_requests[-1].tool_results]
    assert not (home.project / "node_modules").exists()
    assert (home.project / "src" / "a.py").exists()
    assert "[confirm-destructive]" in delete
    assert "with all that is in it." in delete
    assert "cannot be undone (force-push)" in push
