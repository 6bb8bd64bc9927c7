"""What the person typed, out of what Hermes hands to a turn, and a rewrite back into it.

Hermes decorates the text before the turn sees it: notes and voice instructions in front, a skill's
whole text around it. Handlers get what was typed; the decorations stay when it is rewritten.
"""

from __future__ import annotations

import re
from typing import Any

from attrs import frozen

from hermes_ext._requests import text_of

_SKILL_NAME = re.compile(r'invoked the "([^"]+)" skill')


@frozen
class Typed:
    """One user message, taken apart.

    Attributes:
        text: what was typed; empty for a bare skill command or an input without text.
        message: what Hermes sends to the model: a string or a list of content parts.
        clean: what Hermes stores instead, where that differs; else None.
        command: the name of the skill or bundle that the text was typed after, or None.
    """

    text: str
    message: Any
    clean: Any
    command: str | None

    @property
    def stored(self) -> Any:
        """What Hermes stores as the user's message."""
        return self.message if self.clean is None else self.clean

    @property
    def value(self) -> Any:
        """What the chain gets: the parts of a message in parts, else the text."""
        return self.message if isinstance(self.message, list) else self.text


def take_apart(message: Any, clean: Any) -> Typed:
    """The typed text of a `user_message` and its `persist_user_message` (None: the same)."""
    stored = message if clean is None else clean
    text = text_of(stored)
    typed, command = _without_skill(text)
    return Typed(text=typed, message=message, clean=clean, command=command)


def _without_skill(text: str) -> tuple[str, str | None]:
    from agent.skill_commands import extract_user_instruction_from_skill_message

    typed = extract_user_instruction_from_skill_message(text)
    if typed == text:
        return text, None
    named = _SKILL_NAME.search(text)
    return typed or "", named.group(1) if named else None


def put_back(typed: Typed, value: Any, *, task_id: str | None) -> tuple[Any, Any]:
    """The `user_message` and `persist_user_message` for a rewritten value.

    Args:
        typed: the message as it came.
        value: a string replaces the typed text and keeps everything around it; a list of parts
            replaces the whole message. A string that is the slash command of a skill or a bundle
            is expanded, as if it had been typed.
        task_id: handed on to Hermes's skill loader.
    """
    if isinstance(value, list):
        return value, None if typed.clean is None else value
    expanded = expand_skill(value, task_id=task_id)
    if expanded is not None and typed.command is not None:
        # The skill's text was around the old words only; it goes away with them.
        return expanded, None
    new = value if expanded is None else expanded
    message = _replaced(typed.message, typed.text, new)
    return message, None if typed.clean is None else _replaced(typed.clean, typed.text, new)


def _replaced(content: Any, old: str, new: str) -> Any:
    if isinstance(content, list):
        return _replaced_in_parts(content, old, new)
    if not isinstance(content, str) or not old:
        return new
    before, found, after = content.rpartition(old)
    return f"{before}{new}{after}" if found else new


def _replaced_in_parts(parts: list[Any], old: str, new: str) -> list[Any]:
    texts = [i for i, part in enumerate(parts) if isinstance(part, dict) and "text" in part]
    for i in reversed(texts):
        if old and old in str(parts[i]["text"]):
            return [
                {**part, "text": _replaced(part["text"], old, new)} if i == j else part
                for j, part in enumerate(parts)
            ]
    kept = [part for i, part in enumerate(parts) if i not in texts]
    return [{"type": "text", "text": new}, *kept]


def expand_skill(text: str, *, task_id: str | None) -> str | None:
    """The message that Hermes makes of a skill's or bundle's slash command.

    Returns:
        The expanded message, or None where `text` is no such command: built-in and plugin
        commands stay text, and so does everything else.
    """
    if not text.startswith("/"):
        return None
    command, _, instruction = text[1:].partition(" ")
    from agent import skill_bundles, skill_commands

    bundle = skill_bundles.resolve_bundle_command_key(command)
    if bundle is not None:
        built = skill_bundles.build_bundle_invocation_message(
            bundle, instruction.strip(), task_id=task_id
        )
        return str(built[0]) if built else None
    skill = skill_commands.resolve_skill_command_key(command)
    if skill is None:
        return None
    message = skill_commands.build_skill_invocation_message(
        skill, instruction.strip(), task_id=task_id
    )
    return str(message) if message else None
