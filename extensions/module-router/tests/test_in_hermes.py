"""What README.md says, done by the real Hermes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.bundled import enable_in, prompt_in, readme_of

from hermes_ext.testing.model_server import Reply, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("module-router")
Factory = Callable[..., Any]


def test_the_readmes_example(model_factory: Factory, hermes: Factory) -> None:
    """Enabled by its command: blocked, then the document is read, then the search runs."""
    search = ToolUse("terminal", {"command": "grep -rn invoice ."})
    read = ToolUse("read_file", {"path": "AGENTS.md"})
    model = model_factory(
        [*(Reply(tool_calls=(call,)) for call in (search, read, search)), Reply("In src/billing.")]
    )
    home = hermes(model, git=True)
    home.cli("extensions", *enable_in(README)).check()
    (home.project / "AGENTS.md").write_text('# "Map"\n\nBilling: src/billing\n', encoding="utf-8")
    (home.project / "src").mkdir()
    (home.project / "src" / "billing.py").write_text("invoice = 1\n", encoding="utf-8")
    home.oneshot(prompt_in(README)).check()
    blocked, shown, found = [text for _, text in model.main_requests[-1].tool_results]
    assert "[module-router] Searching all of the project comes after reading AGENTS.md" in blocked
    assert "Billing: src/billing" in shown
    assert "invoice = 1" in found
