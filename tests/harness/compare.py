"""Two runs of Hermes told in the same words, so that they can be compared as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.harness.home import HermesHome

_VARYING = (
    (re.compile(r"\d{8}_\d{6}_[0-9a-f]{6,}"), "SESSION"),
    (re.compile(r"\b\d{8}-\d{6}\b"), "TIME"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r":[0-9a-f]{8}\b"), ":TURN"),
    (re.compile(r"\d{1,2}:\d{2}(:\d{2})?( [AP]M)?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? ?s\b"), "SECONDS"),
    (re.compile(r'"duration_ms": \d+'), '"duration_ms": 0'),
)


def plain(home: HermesHome, value: Any) -> str:
    """A value as JSON, without paths of the run, times, and ids that are made up anew."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = text.replace(str(home.base), "BASE")
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    return text


def files(root: Path) -> dict[str, str]:
    """The text of each file under a directory, by relative path."""
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_text() for path in found}
