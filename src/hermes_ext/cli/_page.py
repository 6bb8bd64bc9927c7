"""A page of lines: for a terminal wrapped at its width, whole where they go to a file or a pipe.

Every text that an extension, a path or a file brings goes through `printable`, and none is parsed
as markup, so that none can color, move or clear anything. Written here and not by rich, whose
import takes longer than most commands.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from hermes_ext._prog import Prog
from hermes_ext._text import printable

_LABEL = 10  # characters of a label and what follows it
_NARROWEST: Final = 20
_WORD: Final = re.compile(r"\s*\S+\s*")
_CODES: Final = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36",
}  # fmt: skip
_COLORS: Final = frozenset({"red", "green", "yellow", "cyan"})

Part = tuple[str, str]


class Page:
    """Where a command's lines go.

    Args:
        file: they are written to it. In a terminal, and where `width` is given, they are wrapped,
            and the user's home folder is written as `~`.
        prog: what the user calls, for the next steps.
        width: in characters; by default the terminal's.
        full: long texts are not cut.
        plain: as for a file, also in a terminal.

    Attributes:
        width: how many characters fit into a line; None where nothing is wrapped.
    """

    def __init__(
        self,
        file: TextIO,
        *,
        prog: Prog,
        width: int | None = None,
        full: bool = False,
        plain: bool = False,
    ) -> None:
        self.prog = prog
        self.full = full
        self._file = file
        in_terminal = not plain and is_terminal(file)
        is_dumb = os.environ.get("TERM", "").lower() in {"dumb", "unknown"}
        self._shown = frozenset(_CODES) if in_terminal and not is_dumb else frozenset()
        if os.environ.get("NO_COLOR"):
            self._shown -= _COLORS
        for_eyes = width is not None or in_terminal
        wraps = for_eyes or ("COLUMNS" in os.environ and not plain)
        self.width = (width or _width_of_terminal(in_terminal and is_dumb)) if wraps else None
        self._home = _user_home() if for_eyes else None

    @property
    def text(self) -> str:
        """All that was written, where it went to a `StringIO`."""
        return self._file.getvalue() if isinstance(self._file, io.StringIO) else ""

    def line(self, *parts: str | Part, indent: int = 0) -> None:
        """One line of texts, or of (text, style)."""
        cells = ((part, "") if isinstance(part, str) else part for part in parts)
        for each in self._wrapped([(self._short(cell), style) for cell, style in cells], indent):
            self._put([(" " * indent, ""), *each])

    def lines(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """A text of an extension or a file, whatever is in it."""
        for line in text.splitlines() or [""]:
            self.line((printable(line), style), indent=indent)

    def fact(
        self, label: str, text: str, *, indent: int = 0, style: str = "", width: int = _LABEL
    ) -> None:
        """A label and a text, whose further lines stand below its first one."""
        label = f"{label + ':':<{width}}"
        for line in text.splitlines() or [""]:
            for each in self._wrapped([(self._short(printable(line)), style)], indent + width):
                self._put([(" " * indent + label, ""), *each])
                label = " " * width

    def source(self, line: str, *, indent: int = 0, style: str = "") -> None:
        """A line of a source file: never wrapped, so that it can be read as it is indented."""
        self._put([(" " * indent + printable(line), style)])

    def verbatim(self, text: str) -> None:
        """A text of our own that another program is to read."""
        self._file.write(text if text.endswith("\n") else f"{text}\n")

    def blank(self) -> None:
        self._put([])

    def _put(self, parts: Sequence[Part]) -> None:
        self._file.write("".join(self._styled(*part) for part in parts) + "\n")
        self._file.flush()

    def _styled(self, text: str, style: str) -> str:
        codes = ";".join(_CODES[word] for word in style.split() if word in self._shown)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text

    def _wrapped(self, parts: Sequence[Part], indent: int) -> Iterator[list[Part]]:
        text = "".join(part for part, _ in parts)
        ends = [len(text)]
        if self.width is not None:
            ends = [*_breaks(text, max(self.width - indent, _NARROWEST)), *ends]
        begin = 0
        for end in ends:
            yield _piece(parts, begin, begin + len(text[begin:end].rstrip()))
            begin = end

    def _short(self, text: str) -> str:
        return text if self._home is None else self._home.sub("~", text)


def is_terminal(file: TextIO) -> bool:
    """Whether a person reads it: a terminal, or what the usual variables say is one."""
    compatible = os.environ.get("TTY_COMPATIBLE")
    if compatible in {"0", "1"}:
        return compatible == "1"
    forced = os.environ.get("FORCE_COLOR")
    if forced is not None:
        return forced != ""
    try:
        return file.isatty()
    except ValueError:  # it is closed
        return False


def _width_of_terminal(is_dumb: bool) -> int:
    if is_dumb:
        return 80
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit():
        return int(columns) or 80
    for stream in (0, 1, 2):
        try:
            return os.get_terminal_size(stream).columns or 80
        except (AttributeError, ValueError, OSError):  # probably not a terminal
            continue
    return 80


def _piece(parts: Sequence[Part], begin: int, end: int) -> list[Part]:
    """What of the parts is between two places of their text."""
    piece, place = [], 0
    for text, style in parts:
        piece.append((text[max(begin - place, 0) : max(end - place, 0)], style))
        place += len(text)
    return piece


def _breaks(text: str, width: int) -> Iterator[int]:
    """Where a text is broken: before a word that does not fit, and in one that never would."""
    used = 0
    for match in _WORD.finditer(text):
        start, word = match.start(), match[0]
        length = _cells(word.rstrip())
        if used + length <= width:
            used += _cells(word)
        elif length <= width:
            if used and start:
                yield start
                used = _cells(word)
        else:
            *folded, last = _folded(word, width)
            for piece in folded:
                if start:
                    yield start
                start += len(piece)
            if start:
                yield start
            used = _cells(last)


def _cells(text: str) -> int:
    """How wide a terminal shows it."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _folded(word: str, width: int) -> list[str]:
    if word.isascii():
        return [word[place : place + width] for place in range(0, len(word), width)]
    from rich.cells import chop_cells

    return chop_cells(word, width)


def _user_home() -> re.Pattern[str] | None:
    """Finds the user's home folder in a text; None where there is none.

    Not within quotes, where a shell would leave the `~` as it is.
    """
    home = printable(os.path.expanduser("~"))
    if not os.path.isabs(home) or home == os.sep:
        return None
    return re.compile(rf"(?<![\w.~/'\"-]){re.escape(home)}(?=[/\s:;,)]|$)")
