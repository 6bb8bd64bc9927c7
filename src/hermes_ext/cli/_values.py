"""The values of options: what is typed, checked and made into what is meant."""

from __future__ import annotations

import re
import time
from argparse import ArgumentTypeError
from collections.abc import Collection
from pathlib import Path

from hermes_ext._text import printable

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST = 1_000_000_000  # lines
_LONGEST = 1_000_000.0  # seconds; waiting for a process takes no more than 2**31 milliseconds


def hook(text: str) -> str:
    from hermes_ext.settings.names import HOOKS

    return _one_of(HOOKS, "hook", text, text.strip().replace("-", "_"))


def actions() -> tuple[str, ...]:
    """What a line of the log may have come to."""
    from hermes_ext.hooks.table import Action

    return (*(each.value for each in Action), "error")


def action(text: str) -> str:
    return _one_of(actions(), "action", text, text.strip().lower().replace("-", "_"))


def _one_of(known: Collection[str], kind: str, text: str, name: str) -> str:
    if name in known:
        return name
    from hermes_ext._problems import did_you_mean

    hint = did_you_mean(text, known) or f"{kind.capitalize()}s: {', '.join(known)}"
    raise ArgumentTypeError(f'no {kind} is called "{printable(text)}". {hint}')


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f'"{printable(text)}" is not a number of seconds above 0')
    return min(number, _LONGEST)


def home(text: str) -> Path:
    """A Hermes home, there or not."""
    if not text.strip():
        raise ArgumentTypeError("the Hermes home has no name")
    path = Path(text)
    if path.name == "config.yaml" or path.expanduser().is_file():
        told = f"{printable(text)} is a file. Name the folder that config.yaml is in"
        raise ArgumentTypeError(told)
    return path


def digest(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text.strip().lower()):
        raise ArgumentTypeError(f'"{printable(text)}" is not a digest, which has 64 hex digits')
    return text.strip().lower()


def count(text: str) -> int:
    if not text.strip().isdecimal():
        raise ArgumentTypeError(f'"{printable(text)}" is not a number of lines')
    try:
        return min(int(text), _MOST)
    except ValueError:  # more digits than Python reads
        return _MOST


def at_least_one(text: str) -> int:
    """A number of lines that is not 0."""
    number = count(text)
    if not number:
        raise ArgumentTypeError("0 lines are none; leave it out for all")
    return number


def since(text: str) -> float:
    """A time in seconds since the epoch: how long ago, or a date."""
    from datetime import datetime

    ago = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip().lower())
    if ago is not None:
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ArgumentTypeError(
            f'"{printable(text)}" is not a valid time. Write 30m, 2h, 3d, or 2026-01-31T12:00'
        ) from None
