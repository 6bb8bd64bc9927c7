"""A word of a command: known to the letter, or not."""

from __future__ import annotations

from typing import Final, TypeAlias, TypeGuard

from attrs import frozen


@frozen
class Hole:
    """A word that nobody can know before it runs.

    prefix: what it surely begins with. many: it may be no word, or several (an expansion that
    stands in no quotes). suffix: what it surely ends with.
    """

    prefix: str = ""
    many: bool = False
    suffix: str = ""

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


ANYTHING: Final = Hole(many=True)
"""Any words at all."""
