"""Putting injected text into a request, in chat-completions form: pure functions.

System text goes behind what is there, so that the cached prefix stays byte-identical; user text
goes behind everything else. The host's lists and dicts are never changed: what differs is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from hermes_ext._values import field, frozen

Message = dict[str, Any]
InjectionKind = Literal["system", "user"]


@frozen
class Kept:
    """An injection that stays for the rest of the turn.

    Attributes:
        kind: where it goes.
        text: what is injected.
        handler: who injected it, `extension/handler`; the same text of it is kept once.
        after: how many messages (without the system message) stood in front of it; where it stands
            makes it no other one.
    """

    kind: InjectionKind
    text: str
    handler: str
    after: int = field(default=0, eq=False)


def split_system(messages: Sequence[Message]) -> tuple[Message | None, list[Message]]:
    """The leading system (or developer) message, if there is one, and the others."""
    if messages and messages[0].get("role") in ("system", "developer"):
        return messages[0], list(messages[1:])
    return None, list(messages)


def append_text(content: Any, text: str) -> Any:
    """Content with `text` behind it: a string grows, a list of parts gets a part."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    if isinstance(content, str) and content:
        return f"{content}\n\n{text}"
    return text


def with_system(system: Message | None, texts: Sequence[str]) -> Message | None:
    """The system message with the texts at its end, joined with blank lines."""
    joined = "\n\n".join(texts)
    if not joined:
        return system
    if system is None:
        return {"role": "system", "content": joined}
    return {**system, "content": append_text(system.get("content"), joined)}


def with_user(messages: Sequence[Message], texts: Sequence[str]) -> list[Message]:
    """The messages with the texts behind everything else.

    They become a part of the last user message when that is the last message, and a new user
    message otherwise (after tool results).
    """
    joined = "\n\n".join(texts)
    if not joined:
        return list(messages)
    if messages and messages[-1].get("role") == "user":
        last = {**messages[-1], "content": append_text(messages[-1].get("content"), joined)}
        return [*messages[:-1], last]
    return [*messages, {"role": "user", "content": joined}]


def compose(
    messages: Sequence[Message],
    *,
    system: Sequence[str] = (),
    user: Sequence[str] = (),
    kept: Sequence[Kept] = (),
) -> list[Message]:
    """The messages to send.

    Args:
        messages: the request's messages, the system message first if there is one.
        system: all texts for the end of the system prompt, in handler order.
        user: new texts for the end of the request, in handler order.
        kept: injections of earlier requests of this turn; user texts are put where they stood.

    Returns:
        A new list; dicts that did not change are shared with `messages`.
    """
    head, body = split_system(messages)
    places: dict[int, list[str]] = {}
    for one in kept:
        if one.kind == "user":
            places.setdefault(min(one.after, len(body)), []).append(one.text)
    for place in sorted(places, reverse=True):
        body = [*with_user(body[:place], places[place]), *body[place:]]
    head = with_system(head, system)
    body = with_user(body, user)
    return body if head is None else [head, *body]
