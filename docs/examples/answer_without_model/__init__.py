"""Answers without the model: to questions with a fixed answer, and once too much was asked.

`answers` maps questions to answers. After `requests` requests in one conversation the model is
asked no more, and the user is told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_ext import (
    HookResult,
    InputResult,
    RequestResult,
    SessionState,
    UserInput,
    register_hook,
)


# Not for what steers a running turn, nor for what a program asks: both are about the work.
@register_hook("transform_user_input", origins=["user", "api"])
def known_answer(event: UserInput, config: Mapping[str, Any]) -> InputResult:
    """Answer a question that is known, whatever its case, spaces and question marks."""
    if event.command is not None or event.content is not None:
        return None  # a skill, or pictures
    answers = {plain(question): answer for question, answer in config["answers"].items()}
    answer = answers.get(plain(event.text))
    if answer is None:
        return None
    return HookResult.answer(
        answer, metadata={"setting": "extensions.answer_without_model.answers"}
    )


@register_hook("before_llm_call")
def enough(session_state: SessionState, config: Mapping[str, Any]) -> RequestResult:
    """Count requests, subagents' too, and end the turn when there were too many."""
    limit = config["requests"]
    if session_state.count("requests") <= limit:
        return None
    return HookResult.answer(
        f"The model was asked {limit} times in this conversation. Begin a new one to go on.",
        metadata={"setting": "extensions.answer_without_model.requests"},
    )


def plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?!. ")
