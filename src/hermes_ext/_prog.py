"""How the user calls the commands, for what messages tell them to type."""

from __future__ import annotations

import shlex
from pathlib import Path

from hermes_ext._text import printable
from hermes_ext._values import frozen


@frozen
class Prog:
    """How the user calls the commands: `prog("list")` is what to type next, as to a shell.

    home: the home that was named with --home, None where none was.
    """

    name: str = "hermes-ext"
    home: str | None = None

    def __call__(self, command: str, path: Path | None = None) -> str:
        named = "" if self.home is None else f" --home {shlex.quote(printable(self.home))}"
        last = "" if path is None else f" {shlex.quote(printable(path))}"
        return f"{self.name} {command}{named}{last}"


HERMES_EXT = Prog()
