"""What README.md says, done by the real Hermes."""

from __future__ import annotations

import pytest
from tests.bundled import enable_in, prompt_in, readme_of, settings_in

from hermes_ext.testing import Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("protected-paths")


def test_the_readmes_example(hermes_session: StartSession) -> None:
    """Enabled by its command; neither a tool nor the shell changes the file, which can be read."""
    calls = (
        ToolUse("write_file", {"path": "uv.lock", "content": "version = 2.0\n"}),
        ToolUse("terminal", {"command": "sed -i s/1.0/2.0/ uv.lock"}),
        ToolUse("terminal", {"command": "cat uv.lock"}),
    )
    settings = {"protected-paths": settings_in(README, "protected-paths")}
    session = hermes_session(
        *(Reply(tool_calls=(call,)) for call in calls), "Done.", config=settings
    )
    session.hermes("extensions", *enable_in(README)).check()
    lock = session.project / "uv.lock"
    lock.write_text("version = 1.0\n", encoding="utf-8")
    run = session.run(prompt_in(README))
    tool, shell, read = run.tool_results
    assert "[protected-paths] write_file must not write" in tool
    assert "it is protected (extensions.protected-paths.paths: *.lock)" in tool
    assert "[protected-paths] sed -i must not write" in shell
    assert "version = 1.0" in read
    assert lock.read_text(encoding="utf-8") == "version = 1.0\n"
