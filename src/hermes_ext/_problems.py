"""What is wrong in a file that people write, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hermes_ext._text import near_names, printable
from hermes_ext._values import frozen


@frozen
class Problem:
    """Something wrong in a file that people write.

    line: from 1, None where there is none. key: dotted path, "" for the file as a whole. code: what
    `doctor` calls it; None for what the file itself says.
    `str(problem)` is "file:line: key: message. hint".
    """

    file: Path
    line: int | None
    key: str
    message: str
    hint: str | None = None
    code: str | None = None

    def __str__(self) -> str:
        where = str(self.file) + ("" if self.line is None else f":{self.line}")
        parts = [where, self.key, self.message] if self.key else [where, self.message]
        return printable(": ".join(parts) + (f". {self.hint}" if self.hint else ""))

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values with the same keys; all text is printable."""
        return {
            "file": printable(self.file),
            "line": self.line,
            "key": printable(self.key),
            "message": printable(self.message),
            "hint": None if self.hint is None else printable(self.hint),
        }


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`Did you mean "x"?` for the nearest known name, or None if nothing is near."""
    near = near_names(name, known, most=1, cutoff=0.7)
    return f'Did you mean "{near[0]}"?' if near else None
