"""What is said in a canary's turn, and what it has to become. Used on both sides."""

from __future__ import annotations

from typing import Final

EXTENSION: Final = "canary"
PLUGIN: Final = "hermes-ext-canary"
RECORDS: Final = "HERMES_EXT_CANARY_RECORDS"
"""The variable that names the file for what fires: a JSON object per line."""
STANDING: Final = "HERMES_EXT_CANARY_STANDING"
"""The variable that names the file for how the wraps stand, and which plugins are loaded."""
SECONDS: Final = "HERMES_EXT_CANARY_SECONDS"
"""The variable that says after how many seconds Hermes ends itself, whoever is left to see it."""

TYPED: Final = "Words that canary-typed."
REWRITTEN: Final = "Words that canary-rewrote."
NOTE: Final = "Note that canary-injected."

ASKED_FILE: Final = "asked.txt"
GIVEN_FILE: Final = "given.txt"
BLOCKED_FILE: Final = "blocked.txt"
CONFINED_FILE: Final = "confined.txt"
ASKED: Final = "canary-asked"
GIVEN: Final = "canary-given"
RAW: Final = "-raw-text"
SEEN: Final = "-seen-text"
HELD: Final = "canary-held"
REFUSAL: Final = "the canary lets nothing be written"
