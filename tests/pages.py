"""The fenced blocks of README and docs, and which pages are walked through from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

# Each is one walk in a home of its own; of the other pages each block stands for itself.
WALKS = [DOCS / "first-extension.md", *sorted((DOCS / "how-to").glob("*.md"))]


@frozen
class Block:
    """A fenced block. section: number and heading of the section that it stands in. lead: the
    paragraph right before it.
    """

    page: Path
    line: int
    language: str
    text: str
    section: str
    lead: str = ""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    section, language, begun = "", None, 0
    lines: list[str] = []
    lead: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if language is None and line.startswith("```"):
            language, begun, lines = line[3:].strip(), number, []
        elif language is None:
            if line.startswith("#"):
                section = f"{number} {line}"
            if line and lead and not lead[-1]:
                lead = []
            lead.append(line)
        elif line == "```":
            told = " ".join(lead).strip()
            yield Block(page, begun, language, "\n".join(lines) + "\n", section, told)
            language, lead = None, []
        else:
            lines.append(line)
    assert language is None, f"{page.name}:{begun}: the block is not closed"
