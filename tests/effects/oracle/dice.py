"""Fills templates of shell text with paths, quoting and other commands, at random.

A template holds places in « »: `«file»` is a file that is there, written in any way that shells
allow, `«plain»` the same without need of quoting, `«w»` a command that writes, `«any»` one of any
construct, `«q:w»` a command as one quoted word. `«new:1»` twice is the same twice. `@ROOT@` stands
for the directory of the tree until it is known.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from tests.effects.oracle.code import PYTHON_SOURCES
from tests.effects.oracle.tree import WORK

__all__ = ["FILES", "Dice"]

_PLACE: Final = re.compile(r"«([a-z]+:)?([a-z]+)(\d*)»")
_BUNDLE: Final = re.compile(r"(?<= )-([A-Za-z]{2,4})(?= )")
_SAFE: Final = re.compile(r"[\w./+-]+", re.ASCII)

FILES: Final = (
    "readme.md",
    "todo.txt",
    "list.txt",
    "my notes.txt",
    "été.txt",
    "odd/-dash.txt",
    "odd/new\nline.txt",
    "data.json",
    ".hidden",
    "src/app.py",
    "src/util.py",
    "src/old file.py",
    "docs/guide.md",
    "docs/img/logo.svg",
    "link.md",
    "dirlink/guide.md",
    "hard.txt",
)
_FOLDERS: Final = ("src", "docs", "docs/img", "empty", "dirlink", ".", "..", "outside", "src/..")
_ODD: Final = (*";&|(){}<>$`\"'\\\n#!~*?[]= \t-+,:%@^/", "&&", "||", "$(", "${", "<<", "((", ">&")
_WORDS: Final = ("x", "hello", "a b", "1", "done", "über", "v2", "*", "$HOME", "line")


class Dice:
    """One generator's chances."""

    def __init__(self, seed: str, simple: Simple, any_command: AnyCommand) -> None:
        self.random = random.Random(seed)
        self._simple = simple
        self._any = any_command

    def fill(self, template: str, depth: int = 0) -> str:
        """The template with its places filled; `depth` is how far commands may nest in it."""
        same: dict[str, str] = {}

        def value(match: re.Match[str]) -> str:
            how, kind, number = match.groups()
            key = match.group(0)
            if number and key in same:
                return same[key]
            text = self._value(kind, depth)
            if how == "q:":
                text = shlex.quote(text)
            elif how == "dq:":
                text = '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'
            if number:
                same[key] = text
            return text

        return _PLACE.sub(value, template)

    def _value(self, kind: str, depth: int) -> str:
        if kind == "any":
            return self._any(self, depth - 1) if depth > 0 else self.writer()
        if kind == "w":
            return self.writer()
        if kind == "py":
            return self.fill(self.pick(PYTHON_SOURCES))
        if kind == "r":
            return self._simple(self, "r")
        return str(getattr(self, kind)())

    def writer(self) -> str:
        """A short command that changes something."""
        return self._simple(self, "w")

    def pick(self, among: Sequence[str]) -> str:
        """One of them."""
        return self.random.choice(among)

    # -- paths ------------------------------------------------------------------------------------

    def file(self) -> str:
        """A file that is there."""
        return self.written(self.pick(FILES))

    def plain(self) -> str:
        """The same, written without quotes."""
        return self.pick([each for each in FILES if _SAFE.fullmatch(each) and each[0] != "-"])

    def new(self) -> str:
        """A path that is not there yet, in a directory that is."""
        return self.written(self._fresh(self.random.random() < 0.2))

    def fresh(self) -> str:
        """The same, written without quotes."""
        return self._fresh(False)

    def _fresh(self, odd: bool) -> str:
        folder = self.pick(("", "", "", "src/", "docs/", "empty/", "dirlink/", "docs/img/", "../"))
        stem = self.pick(("out", "new", "result", "copy", "b", "log", "tmp"))
        ending = self.pick(("", ".txt", ".md", ".py", ".log"))
        middle = self.pick((" ", "é", "'", "&", "(1)", "$", ";", '"')) if odd else ""
        return f"{folder}{stem}{middle}{self.random.randint(1, 99)}{ending}"

    def name(self) -> str:
        """A name for something new, without a directory."""
        return self.pick(("out", "new", "n", "res")) + str(self.random.randint(1, 999))

    def dir(self) -> str:
        """A directory that is there."""
        return self.written(self.pick(_FOLDERS))

    def folder(self) -> str:
        """A directory of the project, written without quotes."""
        return self.pick(("src", "docs", "docs/img", "empty", "dirlink"))

    def target(self) -> str:
        """Something to write to: there or not."""
        return self.file() if self.random.random() < 0.4 else self.new()

    def few(self) -> str:
        """One of a few names, so that commands meet what others left."""
        return self.pick(("a", "b", "d", "d/a", "d/b", "l", "l/a", "docs", "list.txt", "dirlink"))

    def word(self) -> str:
        """Any word that names nothing."""
        return shlex.quote(self.pick(_WORDS))

    def n(self) -> str:
        """A small number."""
        return str(self.random.randint(1, 9))

    def sep(self) -> str:
        """What separates commands that all run."""
        return self.pick(("; ", "\n", " && ", " ;\n"))

    def var(self) -> str:
        """A variable's name."""
        return self.pick(("x", "f", "out", "target", "_v", "NAME", "path1"))

    def shuffled(self, text: str) -> str:
        """The text with the letters of its options (`-rf`) in another order, or apart."""
        if self.random.random() < 0.6:
            return text

        def other(match: re.Match[str]) -> str:
            letters = list(match[1])
            self.random.shuffle(letters)
            return self.random.choice(("-" + "".join(letters), " ".join(f"-{x}" for x in letters)))

        return _BUNDLE.sub(other, text)

    def damaged(self, text: str) -> str:
        """The text with a few characters taken out, doubled, exchanged or put in."""
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(text) + 1)
            if "@ROOT@" in text[max(0, place - 6) : place + 6]:
                continue
            end = min(len(text), place + self.random.choice((0, 0, 1, 1, 2)))
            put = self.random.choice((self.random.choice(_ODD), text[place:end] * 2, ""))
            text = text[:place] + put + text[end:]
        return text

    # -- quoting ----------------------------------------------------------------------------------

    def written(self, path: str) -> str:
        """A path as one word of a shell, in any of the ways to write it."""
        where = self._somehow(path)
        head, rest = where
        if not rest:
            return head or "''"
        return head + self._quoted(rest)

    def _somehow(self, path: str) -> tuple[str, str]:
        """What a word begins with that must not be quoted, and the rest."""
        chance = self.random.random()
        if path.startswith("-") and chance > 0.1:
            return "", f"./{path}"
        if chance < 0.6:
            return "", path
        return self.random.choice(
            (
                ("", f"./{path}"),
                ("", f"docs/../{path}"),
                ("", f"././/{path}"),
                ("", f"../demo/{path}"),
                ("$PWD/", path),
                ('"$PWD"/', path),
                ("~/code/demo/", path),
                ("$HOME/code/demo/", path),
                ("${HOME}/code/demo/", path),
                ('"${HOME}/code/"demo/', path),
                ("", f"@ROOT@/{WORK}/{path}"),
            )
        )

    def _quoted(self, text: str) -> str:
        safe = bool(_SAFE.fullmatch(text.replace("@ROOT@", "")))
        ways: list[Callable[[str], str]] = [
            _single,
            _double,
            _escaped,
            _ansi,
            self._mixed,
        ]
        if safe and self.random.random() < 0.6:
            return text
        if "\n" in text:  # a backslash before it would take it away
            return self.random.choice((_single, _double, _ansi))(text)
        return self.random.choice(ways)(text)

    def _mixed(self, text: str) -> str:
        if "@ROOT@" in text or len(text) < 2:
            return _single(text)
        cut = self.random.randint(1, len(text) - 1)
        ways = (_single, _double, _escaped, _ansi)
        return self.random.choice(ways)(text[:cut]) + self.random.choice(ways)(text[cut:])


Simple = Callable[[Dice, str], str]
AnyCommand = Callable[[Dice, int], str]


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _double(text: str) -> str:
    return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'


def _escaped(text: str) -> str:
    if "@ROOT@" in text:
        return _double(text)
    return re.sub(r"([^\w./])", r"\\\1", text)


def _ansi(text: str) -> str:
    if "@ROOT@" in text or len(text) < 1:
        return _single(text)
    body = re.sub(r"(['\\])", r"\\\1", text)
    # One character as its number, as only this form of quoting knows it.
    last = body[-1]
    if last.isascii() and last.isalnum() and not body[:-1].endswith("\\"):
        body = f"{body[:-1]}\\x{ord(last):02x}"
    return f"$'{body}'"
