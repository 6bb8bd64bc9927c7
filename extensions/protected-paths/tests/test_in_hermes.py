"""What README.md says, done by the real Hermes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.bundled import enable_in, prompt_in, readme_of, settings_in

from hermes_ext.testing.model_server import Reply, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("protected-paths")
Factory = Callable[..., Any]


def test_the_readmes_example(model_factory: Factory, hermes: Factory) -> None:
    """Enabled by its command; neither a tool nor the shell changes the file, which can be read."""
    calls = (
        ToolUse("write_file", {"path": "uv.lock", "content": "version = 2.0\n"}),
        ToolUse("terminal", {"command": "sed -i s/1.0/2.0/ uv.lock"}),
        ToolUse("terminal", {"command": "cat uv.lock"}),
    )
    model = model_factory([*(Reply(tool_calls=(call,)) for call in calls), Reply("Done.")])
    settings = {"protected-paths": settings_in(README, "protected-paths")}
    home = hermes(model, extensions=settings, git=True)
    home.cli("extensions", *enable_in(README)).check()
    lock = home.project / "uv.lock"
    lock.write_text("version = 1.0\n", encoding="utf-8")
    home.oneshot(prompt_in(README)).check()
    tool, shell, read = [text for _, text in model.main_requests[-1].tool_results]
    assert "[protected-paths] write_file must not write" in tool
    assert "it is protected (extensions.protected-paths.paths: *.lock)" in tool
    assert "[protected-paths] sed -i must not write" in shell
    assert "version = 1.0" in read
    assert lock.read_text(encoding="utf-8") == "version = 1.0\n"
