"""What the person typed, out of what Hermes hands to a turn, and a rewrite back into it.

Hermes decorates the text before the turn sees it: notes and voice instructions in front, a skill's
whole text around it. Handlers get what was typed; the decorations stay when it is rewritten.
"""

from __future__ import annotations

import re
from typing import Any

from hermes_ext._text import text_of
from hermes_ext._values import frozen

_SKILL_NAME = r'invoked the "([^"]+)" (?:stacked )?skill'


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
    named = re.search(_SKILL_NAME, text)
    return typed or "", named.group(1) if named else None


def put_back(typed: Typed, value: Any, *, task_id: str | None) -> tuple[Any, Any]:
    """The `user_message` and `persist_user_message` for a rewritten value.

    A string replaces the typed text and keeps everything around it; one that is the slash command
    of a skill or a bundle is expanded, as if it had been typed. A list replaces the whole message.
    """
    if isinstance(value, list):
        return value, None if typed.clean is None else value
    expanded = expand_skill(value, task_id=task_id)
    if expanded is not None and typed.command is not None:
        # The skill's text was around the old words only; it goes away with them.
        return expanded, None
    if typed.command is not None:
        return _with_instruction(typed, value, task_id=task_id)
    new = value if expanded is None else expanded
    message = _replaced(typed.message, typed.text, new)
    return message, None if typed.clean is None else _replaced(typed.clean, typed.text, new)


def _with_instruction(typed: Typed, new: str, *, task_id: str | None) -> tuple[Any, Any]:
    """A skill's message with other words behind its command."""
    if typed.text:
        message = _instructed(typed.message, typed.text, new)
        return message, None if typed.clean is None else _instructed(typed.clean, typed.text, new)
    slug = "-".join((typed.command or "").lower().split())
    built = expand_skill(f"/{slug} {new}", task_id=task_id)
    stored = typed.message if typed.clean is None else typed.clean
    return built or f"{text_of(stored)}\n\n{new}", None


def _instructed(content: Any, old: str, new: str) -> Any:
    """The skill's own text may hold the same words: only those of the person are replaced."""
    if not isinstance(content, str):
        return _replaced(content, old, new)
    start = _instruction_start(content)
    before, found, after = content[start:].partition(old)
    return f"{content[:start]}{before}{new}{after}" if found else _replaced(content, old, new)


def _instruction_start(message: str) -> int:
    """Where in a skill's message the person's own words begin, as Hermes tells it."""
    from agent import skill_commands

    bundle = getattr(skill_commands, "_BUNDLE_MARKER", None)
    if bundle is not None and bundle in message:
        return max(0, message.find(getattr(skill_commands, "_BUNDLE_USER_INSTRUCTION", "\0")))
    return max(0, message.rfind(getattr(skill_commands, "_SINGLE_SKILL_INSTRUCTION", "\0")))


def _replaced(content: Any, old: str, new: str) -> Any:
    if isinstance(content, list):
        return _replaced_in_parts(content, old, new)
    if not isinstance(content, str):
        return new
    if not old:  # nothing was typed; what is there is the host's
        return f"{content}{new}"
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
    """The message that Hermes makes of a skill's or bundle's slash command; None for other text."""
    if not text.startswith("/"):
        return None
    command, *rest = text[1:].split(None, 1)[:2] or [""]
    instruction = rest[0].strip() if rest else ""
    from agent import skill_bundles, skill_commands

    bundle = skill_bundles.resolve_bundle_command_key(command)
    if bundle is not None:
        built = skill_bundles.build_bundle_invocation_message(bundle, instruction, task_id=task_id)
        return str(built[0]) if built else None
    skill = skill_commands.resolve_skill_command_key(command)
    if skill is None:
        return None
    stacked = _expand_stacked(skill, instruction, task_id=task_id)
    if stacked is not None:
        return stacked
    message = skill_commands.build_skill_invocation_message(skill, instruction, task_id=task_id)
    return str(message) if message else None


def _expand_stacked(skill: str, instruction: str, *, task_id: str | None) -> str | None:
    """`/one /two do it`, where this Hermes loads several skills at once (0.18 on)."""
    from agent import skill_commands

    split = getattr(skill_commands, "split_stacked_skill_commands", None)
    build = getattr(skill_commands, "build_stacked_skill_invocation_message", None)
    if split is None or build is None or not instruction.startswith("/"):
        return None
    more, words = split(instruction)
    built = build([skill, *more], words, task_id=task_id) if more else None
    return str(built[0]) if built else None
