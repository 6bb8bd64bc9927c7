"""Why an extension could not be loaded, in words."""

from __future__ import annotations

import os
import sys
from types import ModuleType

from hermes_ext._problems import Problem
from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hooks.registration import near_misses
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.imports.importing import modules_of, place_of
from hermes_ext.records import Status

_LONGEST = 400  # characters of an extension's own error text
_LONGEST_OF_OURS = 4000  # ours list names, which are of no use if they are cut off


class Failed(Exception):  # noqa: N818 - never leaves this room
    """Loading ends here, with this status and reason."""

    def __init__(self, status: Status, reason: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.problems = problems


def nothing_registered(module: ModuleType) -> str:
    """What to do about an extension that registers nothing."""
    modules = [sys.modules.get(name, module) for name in modules_of(module.__name__)]
    near = [text for each in modules for text in near_misses(each)]
    hint = "; ".join(near) or "Put @register_hook(...) above its functions"
    return f"registers no handler, so nothing of it is ever called. {hint}"


def words_of(error: BaseException, candidate: Candidate) -> str:
    """What an extension raised while it was loaded, where, and what may help."""
    text = _text_of(error)
    if isinstance(error, SystemExit):
        text = f"it called sys.exit({text}) while loading"
    place = place_of(error, candidate.path) if candidate.path is not None else ""
    told = text if isinstance(error, HermesExtError) else f"{type(error).__name__}: {text}"
    told = told if not place or place in told else f"{place}: {told}"
    hint = _import_hint(error, candidate)
    shown: str = redacted(told)
    return f"{shown}. {hint}" if hint else shown


def _import_hint(error: BaseException, candidate: Candidate) -> str:
    name = getattr(error, "name", None)
    if not isinstance(error, ModuleNotFoundError) or not name or not candidate.is_package:
        return ""
    assert candidate.path is not None
    near = (candidate.path / f"{name}.py", candidate.path / name)
    return f"Write `from . import {name}`" if any(map(os.path.exists, near)) else ""


def _text_of(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception as broken:  # noqa: BLE001 - an author's own __str__
        text = f"(its __str__ raised {type(broken).__name__})"
    longest = _LONGEST_OF_OURS if isinstance(error, HermesExtError) else _LONGEST
    return printable(text if len(text) <= longest else f"{text[:longest]}...")
