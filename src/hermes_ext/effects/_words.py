"""A word of a command: known to the letter, or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, TypeGuard

from attrs import frozen


@frozen
class Hole:
    """A word that nobody can know before it runs.

    prefix: what it surely begins with. many: it may be no word, or several (an expansion that
    stands in no quotes). suffix: what it surely ends with. text: what is known of a longer text,
    with `\ufffd` for what is not. tags: what printed it, by the marks of `Recorder.tag`.
    """

    prefix: str = ""
    many: bool = False
    suffix: str = ""
    text: str = ""
    tags: str = ""

    def may_begin_with(self, text: str) -> bool:
        """Whether the word, or one of the words, may begin with `text`."""
        return self.many or self.prefix.startswith(text) or text.startswith(self.prefix)


Word: TypeAlias = str | Hole


def is_many(word: Word) -> TypeGuard[Hole]:
    """Whether a word may be no word, or several."""
    return isinstance(word, Hole) and word.many


def beginning(word: Word) -> str:
    """What a word surely begins with."""
    return word.prefix if isinstance(word, Hole) else word


def shown(word: Word | None) -> str:
    """What is known of a word, with `\ufffd` for what is not."""
    if isinstance(word, Hole):
        return word.text or f"{word.prefix}\ufffd{word.suffix}"
    return word or ""


def tags_of(words: Iterable[Word | None]) -> str:
    """What printed these words, each once."""
    found = "".join(each.tags for each in words if isinstance(each, Hole))
    return "".join(dict.fromkeys(found))


ANYTHING: Final = Hole(many=True)
"""Any words at all."""
