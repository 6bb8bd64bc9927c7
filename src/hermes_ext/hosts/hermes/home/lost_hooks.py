"""Hooks that Hermes, when it last started, did not let the package keep, for `list` to name.

One JSON file in the home's cache, there only while something is lost. What another version of
Hermes has left there says nothing about the one that is installed now.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hermes_ext._files import replace_file
from hermes_ext._log import logger
from hermes_ext._regular import read_regular
from hermes_ext._text import printable
from hermes_ext.hosts.hermes.facts.host_package import host_package

_LARGEST = 64 * 1024


def note_lost_hooks(home: Path, lines: Sequence[str]) -> None:
    """Keep what is lost, one line each; none where nothing is. A full disk costs only this."""
    file = _file(home)
    try:
        if not lines:
            file.unlink(missing_ok=True)
            return
        told = {"hermes_agent": str(host_package()), "lines": list(lines)}
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps(told).encode(), mode=0o600, durable=False)
    except OSError:
        logger.debug("cannot write which hooks are lost", exc_info=True)


def lost_hooks(home: Path) -> tuple[str, ...]:
    """What was lost at the last start of the Hermes that is installed."""
    try:
        told = json.loads(read_regular(_file(home), _LARGEST))
        lines, version = told["lines"], told["hermes_agent"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return ()
    if version != str(host_package()) or not isinstance(lines, list):
        return ()
    return tuple(printable(line) for line in lines if isinstance(line, str))


def _file(home: Path) -> Path:
    return home / "cache" / "hermes-ext" / "lost-hooks.json"
