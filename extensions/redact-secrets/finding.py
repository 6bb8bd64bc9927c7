"""What is a secret by the settings of this extension."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

# Shared with the decision log, which shows no secrets either.
from hermes_ext._redaction.finding import LONGEST, PLACEHOLDER, Finder, known_patterns

__all__ = ["LONGEST", "PLACEHOLDER", "Finder", "finder_for"]


@lru_cache(maxsize=8)
def finder_for(
    keywords: bool,
    high_entropy: bool,
    patterns: tuple[tuple[str, str], ...],
    allow: tuple[str, ...],
) -> Finder:
    """A finder for these settings.

    Raises:
        ValueError: a pattern of the settings is no regular expression.
    """
    own = [(kind, _compiled(each, f"patterns.{kind}")) for kind, each in patterns]
    free = [_compiled(each, f"allow[{place}]") for place, each in enumerate(allow)]
    return Finder(known_patterns(), own, _scanners(keywords, high_entropy), free)


def _compiled(pattern: str, setting: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        place = f"extensions.redact-secrets.{setting}"
        raise ValueError(f"{place} is no regular expression: {error}") from error


def _scanners(keywords: bool, high_entropy: bool) -> list[Any]:
    found: list[Any] = []
    if keywords:
        found.append(import_module("detect_secrets.plugins.keyword").KeywordDetector())
    if high_entropy:
        module = import_module("detect_secrets.plugins.high_entropy_strings")
        found += [module.Base64HighEntropyString(), module.HexHighEntropyString()]
    return found
