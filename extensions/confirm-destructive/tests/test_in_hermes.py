"""What README.md says, done by the real Hermes."""

from __future__ import annotations

import pytest
from tests.bundled import enable_in, prompt_in, readme_of

from hermes_ext.testing import Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("confirm-destructive")


def test_the_readmes_example(hermes_session: StartSession) -> None:
    """Enabled by its command; what may go goes, what may not is asked about, with nobody there."""
    commands = ("rm -rf node_modules", "rm -rf src", "bash -c 'git push -uf origin main'")
    for command in commands:
        assert f"`{command}`" in README
    calls = [ToolUse("terminal", {"command": command}) for command in commands]
    session = hermes_session(*(Reply(tool_calls=(call,)) for call in calls), "Done.")
    session.hermes("extensions", *enable_in(README)).check()
    for name in ("node_modules/x", "src/a.py"):
        (session.project / name).parent.mkdir()
        (session.project / name).write_text("x\n", encoding="utf-8")
    run = session.run(prompt_in(README))
    _, delete, push = run.tool_results
    assert not (session.project / "node_modules").exists()
    assert (session.project / "src" / "a.py").exists()
    assert "[confirm-destructive]" in delete
    assert "with all that is in it." in delete
    assert "cannot be undone (force-push)" in push
