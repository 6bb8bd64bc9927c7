"""Which inputs ask for an implementation, and which have been sent to the planning already."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .languages import LANGUAGES, Language, phrases

# At each end of a text. A request stands at one of them, and a slow pattern stays bearable.
_LOOKED_AT = 4_000

# A path such as /etc/hosts is no command.
_SLASH_COMMAND = re.compile(r"\s*/[\w-]+(?:\s|\Z)")
# As escapes, the full stop and what else ends a sentence or a part of it in Chinese.
_STOPS = r"\n\u3002\uff01\uff1f\uff1b"
_SENTENCE = re.compile(rf"[.!?:;](?=\s|\Z)|[{_STOPS}\uff1a]")
_GAP = r"[\s,\uff0c]{0,20}+"

# Where a text, a line or a sentence begins, with what lists and quotations put there.
_BEGINNING = rf"(?:\A|[.!?:;¿¡{_STOPS}])[\s*>\-\d.)\u3001]{{0,20}}+"
# Not "Build failed", "Update: it works" or "write-only"; nor a question that begins with a verb.
_HAPPENED = "is|are|was|were|has|had|does|did|fails?|failed|breaks?|broke|works?|worked"
_NO_REMARK = rf"(?![\w\-:]|\s+(?:{_HAPPENED})\b)"
_NO_REMARK_UNSPACED = rf"(?![:\uff1a]|[^{_STOPS}]{{0,60}}(?:什么|什麼|怎么|怎麼))"
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def asks_for_work(text: str, config: Mapping[str, Any]) -> bool:
    """Whether a text is a request to implement something."""
    parts = (text,) if len(text) <= 2 * _LOOKED_AT else (text[:_LOOKED_AT], text[-_LOOKED_AT:])
    if config["implementation_pattern"]:
        pattern = _pattern(config["implementation_pattern"])
        return any(pattern.search(part) for part in parts)
    added = [word for words in config["implementation_words"].values() for word in words]
    words = _Words.of(tuple(config["languages"]), tuple(added))
    return any(words.ask(unicodedata.normalize("NFC", part)) for part in parts)


def is_routed(text: str, command: str) -> bool:
    """Whether a text begins with a command, or a line of it with the planning command.

    The latter where messages that waited were joined, or were given a sender's name in front.
    """
    line = rf"^[^\S\n]{{0,20}}+(?:\[[^\]\n]{{1,80}}\] ?)?{re.escape(command)}(?![\w-])"
    begins = _SLASH_COMMAND.match(text) or re.search(line, text, re.IGNORECASE | re.MULTILINE)
    return bool(begins)


def digest(text: str) -> str:
    """What a text is known by when it comes again."""
    return hashlib.sha256(" ".join(text.split()).casefold().encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Words:
    """The words of some languages, as patterns."""

    begins: re.Pattern[str]
    further_back: tuple[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]], ...]

    @staticmethod
    @lru_cache(maxsize=16)
    def of(languages: tuple[str, ...], added: tuple[str, ...]) -> _Words:
        used = [LANGUAGES[name] for name in languages]
        verbs = [*_all(each.verbs for each in used), *added]
        leads = _one_of(_all(each.leads for each in used))
        fillers = _one_of(_all(each.fillers for each in used))
        begin = rf"(?:{_BEGINNING}|{leads}{_GAP})(?:{fillers}{_GAP}){{0,5}}+"
        return _Words(
            re.compile(begin + _one_of(verbs, no_remark=True), re.IGNORECASE),
            tuple(_further_back(each) for each in used if each.last),
        )

    def ask(self, text: str) -> bool:
        """Whether a text asks for work."""
        text = text.replace("\u2019", "'")
        return bool(self.begins.search(text)) or any(map(self._asks_late, _SENTENCE.split(text)))

    def _asks_late(self, sentence: str) -> bool:
        for leads, verbs, unless in self.further_back:
            lead = leads.search(sentence)
            verb = lead and verbs.search(sentence, lead.end())
            if lead and verb and not unless.search(sentence, lead.end(), verb.start()):
                return True
        return False


def _further_back(language: Language) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    leads, verbs, unless = (
        re.compile(_one_of(phrases(text)), re.IGNORECASE)
        for text in (language.leads, language.verbs, language.unless)
    )
    return leads, verbs, unless


def _all(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from phrases(text)


def _one_of(words: Iterable[str], *, no_remark: bool = False) -> str:
    """A pattern for any of some words; the longest first."""
    spaced: list[str] = []
    unspaced: list[str] = []
    for word in sorted({unicodedata.normalize("NFC", each) for each in words}, key=len)[::-1]:
        pattern = r"\s+".join(map(re.escape, word.split()))
        (unspaced if _UNSPACED.search(word) else spaced).append(pattern)
    forms = []
    if spaced:
        end = _NO_REMARK if no_remark else r"(?![\w\-])"
        forms.append(rf"(?<!\w)(?:{'|'.join(spaced)}){end}")
    if unspaced:
        end = _NO_REMARK_UNSPACED if no_remark else ""
        forms.append(rf"(?:{'|'.join(unspaced)}){end}")
    return rf"(?:{'|'.join(forms)})" if forms else r"(?!)"


@lru_cache(maxsize=16)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(
            f"extensions.workflow-guard.implementation_pattern is not a regular expression: {error}"
        ) from error
