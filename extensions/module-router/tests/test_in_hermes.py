"""What README.md says, done by the real Hermes."""

from __future__ import annotations

import pytest
from tests.bundled import enable_in, prompt_in, readme_of

from hermes_ext.testing import Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("module-router")


def test_the_readmes_example(hermes_session: StartSession) -> None:
    """Enabled by its command: blocked, then the document is read, then the search runs."""
    search = ToolUse("terminal", {"command": "grep -rn invoice ."})
    read = ToolUse("read_file", {"path": "AGENTS.md"})
    session = hermes_session(
        *(Reply(tool_calls=(call,)) for call in (search, read, search)), "In src/billing."
    )
    session.hermes("extensions", *enable_in(README)).check()
    (session.project / "AGENTS.md").write_text(
        '# "Map"\n\nBilling: src/billing\n', encoding="utf-8"
    )
    (session.project / "src").mkdir()
    (session.project / "src" / "billing.py").write_text("invoice = 1\n", encoding="utf-8")
    run = session.run(prompt_in(README))
    blocked, shown, found = run.tool_results
    assert "[module-router] Searching all of the project comes after reading AGENTS.md" in blocked
    assert "Billing: src/billing" in shown
    assert "invoice = 1" in found
