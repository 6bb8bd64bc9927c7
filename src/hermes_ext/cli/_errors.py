"""What went wrong, as JSON and in one line."""

from __future__ import annotations

import json
from typing import Any

from hermes_ext._problems import did_you_mean
from hermes_ext._text import printable
from hermes_ext.exceptions import HermesExtError

__all__ = ["did_you_mean", "error_payload", "one_line", "usage_error"]


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


def usage_error(prog: str, message: str, usage: str) -> str:
    """That the command line is wrong, as the one JSON value on stdout."""
    wrong = HermesExtError(message, hint=usage)
    payload = error_payload(wrong) | {"error": printable(f"{prog}: {message}")}
    return json.dumps(payload, indent=2) + "\n"
