"""The drawn list: a file that anybody can read, with the digest of what it lists."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml
from attrs import asdict, frozen
from tests.confine.corpus import apart, words
from tests.confine.corpus.sources import SOURCES

FILE: Final = Path(__file__).with_name("drawn.yaml")
_HEAD: Final = """\
# Written by `python -m tests.confine.corpus.draw`; not edited by hand. The commands are examples of
# the packages below with the names of our own files. Their license is MIT, as our LICENSE has it,
# with the copyright that is named here.
"""


@frozen(order=True)
class Command:
    """One command: its program, where it is from, and its text."""

    source: str
    program: str
    line: str

    @property
    def form(self) -> str:
        """What it has in common with commands that differ in names and values only."""
        return words.form(self.line)

    @property
    def apart(self) -> str | None:
        """Why it is counted apart, or None."""
        return apart.reason(self.line)


@frozen
class Drawn:
    """What a seed drew."""

    seed: str
    commands: tuple[Command, ...]
    apart: tuple[Command, ...]

    @property
    def digest(self) -> str:
        """Of the seed and every command."""
        listed = [self.seed, *map(repr, self.commands), *map(repr, self.apart)]
        return hashlib.sha256("\n".join(listed).encode()).hexdigest()

    def write(self) -> None:
        """Replace the file."""
        document = {
            "sources": [asdict(each) for each in SOURCES],
            "seed": self.seed,
            "digest": self.digest,
            "commands": _nested(self.commands),
            "apart": _nested(self.apart),
        }
        text = yaml.safe_dump(document, sort_keys=False, width=1000, allow_unicode=True)
        FILE.write_text(_HEAD + text)

    @classmethod
    def read(cls) -> "Drawn":
        """The file.

        Raises:
            ValueError: Somebody changed the list.
        """
        found = yaml.safe_load(FILE.read_text())
        drawn = cls(found["seed"], *(tuple(_flat(found[key])) for key in ("commands", "apart")))
        if drawn.digest != found["digest"]:
            raise ValueError(f"{FILE.name} is not as it was drawn")
        return drawn


def _nested(commands: Iterable[Command]) -> dict[str, dict[str, list[str]]]:
    """Source, program, lines."""
    nested: dict[str, dict[str, list[str]]] = {}
    for each in commands:
        nested.setdefault(each.source, {}).setdefault(each.program, []).append(each.line)
    return nested


def _flat(nested: dict[str, dict[str, list[str]]]) -> Iterator[Command]:
    for source, programs in nested.items():
        for program, lines in programs.items():
            for line in lines:
                yield Command(source, program, line)
