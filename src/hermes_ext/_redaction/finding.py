"""Where the secrets in a text are: the one place where it is decided, for all that prints any.

Nothing is asked of any server, and nothing is kept. A text is searched in time that grows with its
length, and in pieces: while one is searched, nothing else in the process runs.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from hermes_ext._redaction.assigned import assigned, inserted
from hermes_ext._redaction.forms import FORMS
from hermes_ext._redaction.pieces import found, lowered, pieces, unescaped
from hermes_ext._redaction.private_keys import private_keys
from hermes_ext._redaction.random_text import random_texts
from hermes_ext._redaction.tokens import KINDS, Kind, token_spans
from hermes_ext._redaction.values import PLACEHOLDER, is_harmless

Span = tuple[int, int, str]

_SHORTEST = 4  # characters of a text that may hold a secret
_ROUNDS = 4
_NO_KIND = "Secret"


class Finder:
    """Finds the secrets in a text. Thread-safe.

    Args:
        own: kinds that the user has named, and what they look like.
        allow: what is no secret.
        random: also texts in quotes that look random.
    """

    def __init__(
        self,
        own: Sequence[tuple[str, re.Pattern[str]]] = (),
        allow: Sequence[re.Pattern[str]] = (),
        *,
        random: bool = False,
    ) -> None:
        self._own = own
        self._allow = (*allow, PLACEHOLDER)
        self._random = random

    def replaced(self, text: str, tag: Callable[[str], str] | None = None) -> str:
        """The text with each secret replaced by its kind, and a tag where there is one.

        What was hidden by what stands beside it is found once that is gone.
        """
        for _ in range(_ROUNDS):
            told = self._replaced(text, tag) if len(text) >= _SHORTEST else text
            if told == text:
                break
            text = told
        return text

    def _replaced(self, text: str, tag: Callable[[str], str] | None) -> str:
        parts, place = [], 0
        for begin, end, kind in self._spans(text):
            if tag is not None:
                mark = f"[redacted: {kind or _NO_KIND} {tag(text[begin:end])}]"
            else:
                mark = f"[redacted: {kind}]" if kind else "[redacted]"
            parts += [text[place:begin], mark]
            place = end
        return "".join(parts) + text[place:] if parts else text

    def _spans(self, text: str) -> list[Span]:
        """Where secrets are, in order and apart from each other: those that overlap are one."""
        merged: list[Span] = []
        already = [match.span() for match in PLACEHOLDER.finditer(text)]
        for span in sorted(self._all(text), key=lambda span: (span[0], -span[1])):
            begin, end, kind = span
            allowed = any(each.fullmatch(text[begin:end]) for each in self._allow)
            if begin == end or allowed or _is_within(already, begin, end):
                continue
            if merged and begin < merged[-1][1]:
                first, last, known = merged.pop()
                merged.append((first, max(end, last), known or kind))
            else:
                merged.append(span)
        return merged

    def _all(self, text: str) -> Iterator[Span]:
        shown = unescaped(text)
        lower = lowered(shown)
        for begin, end in private_keys(shown):
            yield begin, end, "Private Key"
        if "values" in lower:
            for begin, end in inserted(shown):
                yield begin, end, ""
        yield from self._own_kinds({text, shown})
        for begin, end in pieces(len(text)):
            yield from _tokens(shown, lower, begin, end)
            yield from _formed(shown, lower, begin, end)
            for first, last in assigned(text, shown, lower, begin, end):
                yield first, last, ""
            if self._random:
                for first, last in random_texts(shown, begin, end):
                    yield first, last, "High Entropy String"

    def _own_kinds(self, texts: Iterable[str]) -> Iterator[Span]:
        """In one go: what a pattern of the user's needs to see around its match, nobody knows."""
        for text in texts:
            for kind, pattern in self._own:
                for match in pattern.finditer(text):
                    groups = range(1, pattern.groups + 1)
                    yield *match.span(next((one for one in groups if match[one]), 0)), kind


def _is_within(spans: Sequence[tuple[int, int]], begin: int, end: int) -> bool:
    """Whether a span is within one of these, which are in order."""
    place = bisect_right(spans, (begin, sys.maxsize)) - 1
    return place >= 0 and end <= spans[place][1]


def _tokens(shown: str, lower: str, begin: int, end: int) -> Iterator[Span]:
    for kind in KINDS:
        if _has_any(lower, kind.signs, begin, end):
            for pattern in _patterns(kind, lower, begin, end):
                for first, last in token_spans(kind, found(pattern, shown, begin, end)):
                    yield first, last, kind.name


def _patterns(kind: Kind, lower: str, begin: int, end: int) -> tuple[re.Pattern[str], ...]:
    if kind.detector is not None and not any(found(kind.first, lower, begin, end)):
        return ()
    return kind.patterns()


def _formed(shown: str, lower: str, begin: int, end: int) -> Iterator[Span]:
    for form in FORMS:
        if _has_any(lower, form.signs, begin, end):
            for match in found(form.pattern, shown, begin, end):
                if not (is_harmless(match["value"]) or form.is_none(match)):
                    yield *match.span("value"), form.kind


def _has_any(lower: str, signs: Iterable[str], begin: int, end: int) -> bool:
    for sign in signs:  # noqa: SIM110 - most of the time goes here, and any() takes twice as long
        if lower.find(sign, begin, end) >= 0:
            return True
    return False
