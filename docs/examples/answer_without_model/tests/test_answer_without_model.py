"""What is answered without the model, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ext.testing import LoadExtension, assert_answered, assert_passed

EXTENSION = Path(__file__).parents[1]
ANSWERS = {"Who are you?": "The agent of the build team."}


@pytest.mark.parametrize("text", ["Who are you?", " who  ARE you", "Who are you??\n"])
def test_known_questions(load_extension: LoadExtension, text: str) -> None:
    """However they are typed."""
    extension = load_extension(EXTENSION, config={"answers": ANSWERS})
    assert_answered(extension.input(text), ANSWERS["Who are you?"])


@pytest.mark.parametrize(
    ("message", "options", "turn"),
    [
        ("Who are you, and what is in a.py?", {}, {}),
        ("", {}, {}),
        ([{"type": "text", "text": "Who are you?"}, {"type": "image_url"}], {}, {}),
        ("Who are you?", {"command": "a-skill"}, {}),
        ("Who are you?", {"origin": "steer"}, {}),
        ("Who are you?", {}, {"origin": "cron"}),
        ("Who are you?", {}, {"origin": "subagent"}),
    ],
)
def test_what_the_model_is_to_answer(
    load_extension: LoadExtension, message: Any, options: dict[str, Any], turn: dict[str, Any]
) -> None:
    """Other questions, pictures, skills, and what is no message of a user."""
    extension = load_extension(EXTENSION, config={"answers": ANSWERS})
    with extension.turn(**turn) as opened:
        assert_passed(opened.input(message, **options))


def test_enough_is_enough(load_extension: LoadExtension) -> None:
    """Counted over turns, restarts and subagents, for each conversation."""
    extension = load_extension(EXTENSION, config={"requests": 3})
    with extension.turn() as turn:
        assert_passed(turn.request())
        assert_passed(turn.request())
    extension.restart()
    child = {"session_id": "child", "conversation_id": "test", "origin": "subagent"}
    assert_passed(extension.request(**child))
    assert_answered(extension.request(), match="asked 3 times")
    assert_answered(extension.request(**child))
    assert_passed(extension.request(session_id="other"))
