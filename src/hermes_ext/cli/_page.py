"""A page of lines: for a terminal wrapped at its width, whole where they go to a file or a pipe.

Every text that an extension, a path or a file brings goes through `printable`, and none is parsed
as markup, so that none can colour, move or clear anything.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.text import Text

from hermes_ext._prog import Prog
from hermes_ext._text import printable

_LABEL = 10  # characters of a label and what follows it


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # rich would end the process here, with exit code 1.
        raise BrokenPipeError


class Page:
    """Where a command's lines go.

    Args:
        file: they are written to it. In a terminal, and where `width` is given, they are wrapped,
            and the user's home folder is written as `~`.
        prog: what the user calls, for the next steps.
        width: in characters; by default the terminal's.
        full: long texts are not cut.
        plain: as for a file, also in a terminal.
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
        self._console = _Console(
            file=file,
            width=width,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=False,
            no_color=plain or None,
            force_terminal=False if plain else None,
        )
        for_eyes = width is not None or self._console.is_terminal
        self._wraps = for_eyes or ("COLUMNS" in os.environ and not plain)
        self._home = _user_home() if for_eyes else None

    @property
    def text(self) -> str:
        """All that was written, where it went to a `StringIO`."""
        return self._file.getvalue() if isinstance(self._file, io.StringIO) else ""

    @property
    def width(self) -> int | None:
        """How many characters fit into a line; None where nothing is wrapped."""
        return self._console.width if self._wraps else None

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One line of texts, or of (text, style)."""
        cells = ((part, "") if isinstance(part, str) else part for part in parts)
        text = Text.assemble(*((self._short(cell), style) for cell, style in cells))
        for each in self._wrapped(text, indent):
            self._console.print(Text(" " * indent) + each, soft_wrap=True)

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
            for each in self._wrapped(Text(self._short(printable(line)), style), indent + width):
                self._console.print(Text(" " * indent + label) + each, soft_wrap=True)
                label = " " * width

    def source(self, line: str, *, indent: int = 0, style: str = "") -> None:
        """A line of a source file: never wrapped, so that it can be read as it is indented."""
        text = Text(" " * indent + printable(line), style=style)
        self._console.print(text, soft_wrap=True)

    def verbatim(self, text: str) -> None:
        """A text of our own that another program is to read."""
        self._file.write(text if text.endswith("\n") else f"{text}\n")

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def _wrapped(self, text: Text, indent: int) -> Iterator[Text]:
        width = max(self._console.width - indent, 20)
        for line in text.wrap(self._console, width, overflow="fold") if self._wraps else [text]:
            line.rstrip()
            yield line

    def _short(self, text: str) -> str:
        return text if self._home is None else self._home.sub("~", text)


def _user_home() -> re.Pattern[str] | None:
    """Finds the user's home folder in a text; None where there is none.

    Not within quotes, where a shell would leave the `~` as it is.
    """
    home = printable(os.path.expanduser("~"))
    if not os.path.isabs(home) or home == os.sep:
        return None
    return re.compile(rf"(?<![\w.~/'\"-]){re.escape(home)}(?=[/\s:;,)]|$)")
