"""What is a secret by the settings of this extension."""

from __future__ import annotations

import re
from functools import lru_cache

# Shared with all that the package prints and logs, which shows no secrets either.
from hermes_ext._redaction.finding import Finder

__all__ = ["PLACEHOLDER", "Finder", "finder_for"]

# Ours, and those that Hermes puts in place of some secrets in files that it reads.
PLACEHOLDER = re.compile(r"\[redacted: [^\]\n]{1,80} [0-9a-f]{4}\]|«redacted[:-][^»\n]{0,80}»")


@lru_cache(maxsize=8)
def finder_for(
    high_entropy: bool, patterns: tuple[tuple[str, str], ...], allow: tuple[str, ...]
) -> Finder:
    """A finder for these settings.

    Raises:
        ValueError: a pattern of the settings is not a regular expression.
    """
    own = [(kind, _compiled(each, f"patterns.{kind}")) for kind, each in patterns]
    free = [_compiled(each, f"allow[{place}]") for place, each in enumerate(allow)]
    return Finder(own, free, random=high_entropy)


def _compiled(pattern: str, setting: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        place = f"extensions.redact-secrets.{setting}"
        raise ValueError(f"{place} is not a regular expression: {error}") from error
