"""Through several turns, with the strict mode looking on."""

from __future__ import annotations

import json

from hermes_ext.testing import LoadExtension, assert_blocked, assert_passed

MAP = "# Map\n\nBilling: src/billing\n"


def test_the_document_comes_first(load_extension: LoadExtension) -> None:
    """A search of everything is refused until the document was read."""
    extension = load_extension("module-router")
    extension.write("AGENTS.md", MAP)
    search = ("terminal", {"command": "grep -rn invoice ."})
    read = ("read_file", {"path": "AGENTS.md"})
    with extension.turn() as turn:
        assert_blocked(turn.call(*search), by="module-router", match=r"AGENTS\.md")
        assert_passed(turn.call(*read))
        turn.result(*read, json.dumps({"content": MAP}))
        assert_passed(turn.call(*search))
    with extension.turn("another session") as turn:
        assert_blocked(turn.call(*search), by="module-router")
