"""What went wrong, as JSON and in one line."""

from __future__ import annotations

from typing import Any

from hermes_ext._text import printable
from hermes_ext.exceptions import HermesExtError


def error_payload(error: HermesExtError) -> dict[str, Any]:
    return {
        "error": one_line(error),
        "file": None if error.path is None else printable(error.path),
        "line": error.line,
        "key": error.key,
        "hint": error.hint,
    }


def one_line(error: HermesExtError) -> str:
    return printable(str(error))
