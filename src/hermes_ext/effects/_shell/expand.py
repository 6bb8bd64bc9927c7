"""From a word of shell text to the words that a program gets: braces, `~`, splitting, globs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from hermes_ext.effects._machine import Places
from hermes_ext.effects._record import Recorder
from hermes_ext.effects._shell import marks
from hermes_ext.effects._shell.marks import BRACKET, EMPTY, GLOBS, HOLE, HOLES, MANY, plain
from hermes_ext.effects._words import ANYTHING, Hole, Word

_MOST_WORDS: Final = 1_000
_OPENS: Final = f"[{BRACKET}\\[]"
# `[…]` with classes such as `[:alpha:]` in it.
_BRACKETED: Final = re.compile(rf"{BRACKET}[!^]?\]?(?:{_OPENS}([:.=]).*?\1\]|[^\]])*\]", re.DOTALL)
_SPLITS: Final = re.compile(f"[{marks.SPLIT}]+")


def fields(marked: str, recorder: Recorder) -> list[Word]:
    """The words that one word of a command becomes."""
    found: list[Word] = []
    pieces = _braces(marked) if recorder.on("brace") else iter([marked])
    for each in pieces:
        for field in each.split(marks.FIELD) if marks.FIELD in each else (each,):
            found += _split(field, recorder)
        if len(found) > _MOST_WORDS:
            return [ANYTHING]
    return found


def as_word(marked: str, recorder: Recorder) -> Word:
    """A word that stays one: the value of an assignment, the text of a here-string."""
    return _known(_with_home(marked, recorder))


def _split(text: str, recorder: Recorder) -> Iterator[Word]:
    quoted = EMPTY in text
    parts = _SPLITS.split(text) if marks.SPLIT in text else [text]
    for part in parts:
        if not part and not (quoted and len(parts) == 1):
            continue
        bare = _with_home(part, recorder).replace(EMPTY, "")
        if GLOBS.search(bare) and recorder.on("glob"):
            yield from _glob(bare, recorder)
        elif bare or EMPTY in part:
            yield _known(bare)


def _known(text: str) -> Word:
    first = HOLES.search(text)
    if first is None:
        return plain(text)
    last = max(text.rfind(HOLE), text.rfind(MANY))
    tags = "".join(dict.fromkeys(marks.TAGS.findall(text)))
    prefix = plain(marks.TAGS.sub("", text[: first.start()]))
    return Hole(prefix, MANY in text, plain(text[last + 1 :]), tags=tags)


_USER: Final = re.compile(r"[A-Za-z0-9_.-]+")


def _with_home(text: str, recorder: Recorder) -> str:
    """A text with the home that it begins with.

    Only what is written without quotes and the like up to the first slash is one: `~$x`, `~"a"`.
    """
    if not text.startswith(marks.TILDE):
        return text
    rest = text[1:]
    user = rest.partition("/")[0]
    if user:
        if not _USER.fullmatch(user):
            return f"~{rest}"
        home = os.path.expanduser(f"~{user}")
        known = home.startswith("/") and recorder.machine.local
        return (home if known else HOLE) + rest[len(user) :]
    homes = recorder.machine.homes
    if not recorder.on("home") or len(homes) != 1:
        return (MANY if recorder.on("home") else "") + rest
    return homes[0] + rest


# -- braces -------------------------------------------------------------------------------------


def _braces(text: str) -> Iterator[str]:
    """Each word that braces give, in order; braces that give none stay as they are."""
    begin = text.find(marks.OPEN)
    while begin >= 0:
        end, commas = _closing(text, begin)
        if end is not None:
            choices = _choices(text, begin, end, commas)
            if choices is not None:
                for choice in choices:
                    for inner in _braces(choice):
                        for rest in _braces(text[end + 1 :]):
                            yield text[:begin] + inner + rest
                return
        begin = text.find(marks.OPEN, begin + 1)
    yield text


def _closing(text: str, begin: int) -> tuple[int | None, list[int]]:
    depth, commas = 0, []
    for place in range(begin, len(text)):
        each = text[place]
        if each == marks.OPEN:
            depth += 1
        elif each == marks.COMMA and depth == 1:
            commas.append(place)
        elif each == marks.CLOSE:
            depth -= 1
            if depth == 0:
                return place, commas
    return None, commas


def _choices(text: str, begin: int, end: int, commas: list[int]) -> list[str] | None:
    if commas:
        edges = [begin, *commas, end]
        return [text[one + 1 : other] for one, other in pairwise(edges)]
    inner = text[begin + 1 : end]
    return _sequence(plain(inner)) if marks.RANGE in inner else None


def _sequence(inner: str) -> list[str] | None:
    found = marks.SEQUENCE.fullmatch(inner)
    if found is None or found[1].isalpha() != found[2].isalpha():
        return None
    step = abs(int(found[3] or 1)) or 1
    if found[1].isalpha():
        one, other = ord(found[1]), ord(found[2])
        return [chr(each) for each in _steps(one, other, step)]
    one, other = int(found[1]), int(found[2])
    padded = any(re.match(r"-*0.", each) for each in found.group(1, 2))
    width = max(map(len, found.group(1, 2))) if padded else 0
    return [f"{each:0{width}d}" for each in _steps(one, other, step)]


def _steps(one: int, other: int, step: int) -> range:
    found = range(one, other + 1, step) if one <= other else range(one, other - 1, -step)
    return found[: _MOST_WORDS + 1]


# -- globs --------------------------------------------------------------------------------------


def _glob(pattern: str, recorder: Recorder) -> Iterator[Word]:
    """The names that a pattern matches now; the pattern itself if there are none."""
    first = GLOBS.search(pattern)
    assert first is not None
    hole = HOLES.search(pattern)
    # Whether `globstar` is set may stand in the user's own files.
    if marks.STAR * 2 in pattern.split("/"):
        recorder.search(_directory_before(pattern))
    if hole is not None or not recorder.machine.local:
        known = pattern[: min(first.start(), hole.start() if hole else len(pattern))]
        tags = "".join(dict.fromkeys(marks.TAGS.findall(pattern)))
        yield Hole(plain(marks.TAGS.sub("", known)), many=True, tags=tags)
        return
    bases = ("/",) if pattern.startswith("/") else recorder.cwd
    found = [glob_matches(pattern, base, recorder) for base in bases]
    names = dict.fromkeys(name for each in found for name in each)
    if len(names) > _MOST_WORDS:
        recorder.search(_directory_before(pattern))
    if len(names) > _MOST_WORDS or not bases:
        yield Hole(plain(pattern[: first.start()]), many=True)
        return
    yield from names
    if not all(found):
        yield plain(pattern)


def _directory_before(pattern: str) -> str:
    """The directory below which all matches of a pattern lie."""
    head, slash, _ = re.split(f"{GLOBS.pattern}|{HOLES.pattern}", pattern)[0].rpartition("/")
    return plain(head) or slash or "."


def glob_matches(pattern: str, base: str, recorder: Recorder) -> list[str]:
    """The paths below `base` that a pattern (with marks) matches, as they are written in it."""
    found = [""]
    parts = re.split(r"(/+)", pattern)
    for place in range(0, len(parts), 2):
        part = parts[place]
        slash = parts[place - 1] if place else ""
        found = [
            f"{before}{slash}{name}"
            for before in found
            for name in _names(part, f"{before}{slash}", base, recorder)
        ]
        if len(found) > _MOST_WORDS:
            break
    return found


def _names(part: str, before: str, base: str, recorder: Recorder) -> list[str]:
    if not GLOBS.search(part):
        name = plain(part)
        places = recorder.places(os.path.join(base, before, name))
        return [name] if not name or any(_is_there(each, recorder) for each in places) else []
    matches = _pattern(part).match
    hidden = part.startswith(".")
    return sorted(
        name
        for name in _listed(os.path.join(base, before), recorder)
        if (hidden or not name.startswith(".")) and matches(name)
    )


def _is_there(places: Places, recorder: Recorder) -> bool:
    return any(
        os.path.lexists(each)
        or recorder.made_below(each)
        or os.path.basename(each) in recorder.made_below(os.path.dirname(each))
        for each in places[:2]
    )


def _listed(directory: str, recorder: Recorder) -> set[str]:
    names: set[str] = set()
    for _, leads_to, _ in recorder.places(directory):
        names.update(recorder.made_below(leads_to))
        try:
            names.update(os.listdir(leads_to))
        except (OSError, ValueError):
            continue
    return names


@lru_cache(maxsize=256)
def _pattern(part: str) -> re.Pattern[str]:
    """As a shell matches one name; where it depends on the locale, rather more than less."""
    written, place, ranges = "", 0, False
    while place < len(part):
        each = part[place]
        if each == marks.STAR:
            written += ".*"
        elif each == marks.QUESTION:
            written += "."
        elif each == BRACKET and (found := _BRACKETED.match(part, place)):
            place = found.end() - 1
            inner = plain(found[0][1:-1])
            ranges |= "-" in inner
            written += _bracket(inner)
        else:
            written += re.escape(plain(each))
        place += 1
    return re.compile(rf"{written}\Z", re.DOTALL | (re.IGNORECASE if ranges else 0))


def _bracket(inner: str) -> str:
    if "[" in inner or "\\" in inner:  # a class such as [:alpha:]
        return "."
    negated = inner[:1] in ("!", "^")
    body = re.escape(inner[negated:]).replace(r"\-", "-")
    try:
        re.compile(f"[{body}]")
    except re.error:
        return "."
    return f"[{'^' if negated else ''}{body}]"
