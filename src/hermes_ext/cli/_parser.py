"""The parser of the command line, and the values of arguments that it checks."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from hermes_ext._problems import did_you_mean
from hermes_ext._text import printable
from hermes_ext.cli._errors import error_payload
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hooks.table import Action
from hermes_ext.settings.names import HOOKS

_ACTIONS = (*(each.value for each in Action), "error")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST = 1_000_000_000  # lines
_LONGEST = 1_000_000.0  # seconds; waiting for a process takes no more than 2**31 milliseconds
_WRONG_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """Says of which command a usage is wrong, as JSON where that was asked for."""

    _as_json = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        self._as_json = "--json" in given
        parsed, extra = super().parse_known_args(given, namespace)
        if extra:  # the parser of a command would leave them to the one above, which knows no usage
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return parsed, extra

    def error(self, message: str) -> NoReturn:
        wrong_choice = _WRONG_CHOICE.search(message)
        if wrong_choice is not None:
            near = did_you_mean(wrong_choice[1], re.findall(r"[\w-]+", wrong_choice[2]))
            message += f". {near}" if near else ""
        if not self._as_json:
            super().error(message)
        wrong = HermesExtError(message, hint=" ".join(self.format_usage().split()))
        payload = error_payload(wrong) | {"error": printable(f"{self.prog}: {message}")}
        sys.stdout.write(json.dumps(payload, indent=2) + "\n")
        self.exit(2)


def hook(text: str) -> str:
    name = text.strip().replace("-", "_")
    if name not in HOOKS:
        hint = did_you_mean(text, HOOKS) or f"Hooks: {', '.join(HOOKS)}"
        raise argparse.ArgumentTypeError(f'no hook is called "{printable(text)}". {hint}')
    return name


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f'"{printable(text)}" is not a number of seconds above 0')
    return min(number, _LONGEST)


def home(text: str) -> Path:
    """A Hermes home, there or not."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the Hermes home has no name")
    path = Path(text)
    if path.name == "config.yaml" or path.expanduser().is_file():
        told = f"{printable(text)} is a file. Name the folder that config.yaml is in"
        raise argparse.ArgumentTypeError(told)
    return path


def digest(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text.strip().lower()):
        raise argparse.ArgumentTypeError(
            f'"{printable(text)}" is not a digest, which has 64 hex digits'
        )
    return text.strip().lower()


def count(text: str) -> int:
    """A number of lines."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f'"{printable(text)}" is not a number of lines')
    try:
        return min(int(text), _MOST)
    except ValueError:  # more digits than Python reads
        return _MOST


def at_least_one(text: str) -> int:
    """A number of lines that is not 0."""
    number = count(text)
    if not number:
        raise argparse.ArgumentTypeError("0 lines are none; leave it out for all")
    return number


def action(text: str) -> str:
    """An action of a handler, or `error`."""
    name = text.strip().lower().replace("-", "_")
    if name not in _ACTIONS:
        hint = did_you_mean(text, _ACTIONS) or f"Actions: {', '.join(_ACTIONS)}"
        raise argparse.ArgumentTypeError(f'no action is called "{printable(text)}". {hint}')
    return name


def since(text: str) -> float:
    """A time in seconds since the epoch: how long ago, or a date."""
    ago = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip().lower())
    if ago is not None:
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f'"{printable(text)}" is not a valid time. Write 30m, 2h, 3d, or 2026-01-31T12:00'
        ) from None
