"""A command line in pieces: words, operators, and the simple commands that they make."""

import re
from collections.abc import Iterator
from typing import Final

from attrs import frozen

_PIECE: Final = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>(?<!\S)\#.*)
      | (?P<operator>\$?\(|[|&;)]+|\d?[<>]+&?\d?)
      | (?P<word>(?: '[^']*' | "(?:\\.|[^"\\])*" | \\. | [^\s'"\\|&;()<>] )+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
# What stands before a program and runs it.
_BEFORE: Final = frozenset({"sudo", "command", "then", "do", "else", "if", "while", "!", "{"})
_SUBCOMMANDS: Final = frozenset(
    {
        "apt",
        "apt-cache",
        "apt-get",
        "docker",
        "git",
        "hg",
        "ip",
        "openssl",
        "pip",
        "pip3",
        "podman",
        "ruff",
        "svn",
        "systemctl",
        "timedatectl",
        "hostnamectl",
        "udevadm",
    }
)


@frozen
class Piece:
    """A part of the line: its kind and its text; joined, the texts are the line again."""

    kind: str
    text: str
    first: bool = False  # whether it is the word that names a program

    @property
    def bare(self) -> bool:
        """Whether it is a word without quotes, escapes, variables and braces."""
        return self.kind == "word" and not set(self.text) & set("'\"\\$`{}")


@frozen
class Simple:
    """One simple command: its program and its other words."""

    program: str
    words: tuple[str, ...]

    @property
    def form(self) -> str:
        """The program, its subcommand and its options, without their values."""
        subcommand = ""
        if self.program in _SUBCOMMANDS:
            subcommand = next((each for each in self.words if not each.startswith("-")), "")
        options = sorted({each for word in self.words for each in _options(word)})
        return " ".join(filter(None, (self.program, subcommand, *options)))


def pieces(line: str) -> Iterator[Piece]:
    """The pieces of `line`, in order."""
    first = True
    for found in _PIECE.finditer(line):
        kind, text = str(found.lastgroup), found[0]
        yield Piece(kind, text, first and kind == "word")
        if kind == "operator":
            first = first or text in {"$(", "("} or not set(text) & set("<>")
        elif kind == "word":
            first = first and (text in _BEFORE or re.match(r"\w+=", text) is not None)


def simple_commands(line: str) -> tuple[Simple, ...]:
    """The simple commands of `line`, in order; what runs a program is none itself."""
    found: list[tuple[str, list[str]]] = []
    started = False
    for piece in pieces(line):
        if piece.first and piece.text not in _BEFORE and not re.match(r"\w+=", piece.text):
            found.append((piece.text, []))
            started = True
        elif piece.kind == "word" and started:
            found[-1][1].append(piece.text)
    inner = [text for piece in pieces(line) for text in re.findall(r"\$\(([^()]+)\)", piece.text)]
    nested = [each for text in inner for each in simple_commands(text)]
    return (*(Simple(program, tuple(words)) for program, words in found), *nested)


def form(line: str) -> str:
    """The forms of its simple commands."""
    return " | ".join(each.form for each in simple_commands(line))


def _options(word: str) -> Iterator[str]:
    """`-rn` is `-n` and `-r`; `--color=never` is `--color`; `-k2,2` is `-k`."""
    if word.startswith("--") and len(word) > 2:
        yield word.partition("=")[0]
    elif found := re.match(r"-([A-Za-z]+)", word):
        letters = found[1]
        yield from ([f"-{each}" for each in letters] if len(letters) <= 3 else [f"-{letters}"])
