"""Calls that do more in Hermes than they say; refused while an extension judges tools.

A guard can only judge what a call says. Each of these makes a harmless-looking tool run programs
through a fault of the host, and each has a harmless spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final


def _option_of_the_search(args: Mapping[str, Any]) -> str | None:
    # Hermes hands these to ripgrep without `--`, and `--pre=sh` runs each file that is searched.
    for name, value in args.items():
        if isinstance(value, str) and value.lstrip().startswith("-"):
            return (
                f"search_files with {name} {value[:40]!r} would be read as an option of the search "
                "program, which can run programs. Write the first dash as [-]."
            )
    return None


HOLES: Final[Mapping[str, Callable[[Mapping[str, Any]], str | None]]] = {
    "search_files": _option_of_the_search,
}
"""By tool, what says why a call with these final arguments is refused, or None."""
