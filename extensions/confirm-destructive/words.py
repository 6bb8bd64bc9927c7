"""The words of a command; None stands for one that is not known before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Words = Sequence[str | None]


def has(words: Words, *options: str) -> bool:
    """Whether one of these options is given: shortened (`--forc`), or in a cluster (`-uf`)."""
    return any(option in options for option in _options(words, options))


def _options(words: Words, options: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word == "--":
            return
        if word is None or not word.startswith("-"):
            continue
        if word.startswith("--"):
            name = word.partition("=")[0]
            yield from (each for each in options if each.startswith(name) and len(name) > 2)
        else:
            yield from (f"-{letter}" for letter in word[1:])


def without_values(words: Words, letters: str) -> Words:
    """Words without those that are the values of options: a message is no option."""
    kept: list[str | None] = []
    rest = iter(words)
    for word in rest:
        cluster = word is not None and word.startswith("-") and not word.startswith("--")
        ends = [at for at, each in enumerate(word or "") if at and each in letters]
        if word is not None and cluster and ends:
            kept.append(word[: ends[0] + 1])
            if ends[0] == len(word) - 1:
                next(rest, None)
        else:
            kept.append(word)
            if word in ("--message", "--file") and letters:
                next(rest, None)
    return kept


def in_order(patterns: Sequence[re.Pattern[str]], words: Words) -> bool:
    """Whether these words are given, among others.

    A word that is not known counts as one of them where it may be a subcommand: behind options and
    what was found so far.
    """
    left, decides = list(patterns), True
    after_option = False
    for word in words:
        if not left:
            break
        if decides if word is None else left[0].match(word):
            left.pop(0)
            decides = True
        elif word is not None:
            decides = decides and (word.startswith("-") or after_option)
        after_option = word is not None and word.startswith("-")
    return not left
