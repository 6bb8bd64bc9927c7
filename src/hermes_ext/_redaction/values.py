"""What a value looks like: like a secret, or like a word, a variable, a call, a blank to fill in."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hermes_ext._redaction.names import is_secret

PLACEHOLDER: Final = re.compile(
    r"\[redacted(?:: [^\]\n]{1,80})?\]|«redacted[:-][^»\n]{0,80}»|\(hidden\)"
)
"""Ours, and those that Hermes puts in place of some secrets in files that it reads."""

# A variable, a format, a blank to fill in, a word of a program.
_HARMLESS: Final = re.compile(
    r"\$[({]|\$\w+(?:$|[/:.,\"'\\}@-])|%[({\w]|\{|<|\*{2,}|[xX]{3,}$|\.{2,}|…|«|\[redacted|\(hidden\)|//|&[\w:]+;?$|@\w+[.@(]"
    r"|(?i:none|null|nil|undef|undefined|true|false|yes|no|on|off|required|optional|str|string|text"
    r"|bytes|bool|boolean|int|integer|number|object|array|list|dict|any|unknown|void|self|this"
    r"|redacted|hidden|masked|removed|omitted|empty|unset|missing|invalid|expired|wrong|incorrect"
    r"|changeme|change-me|change_me|placeholder|example|todo|tbd|n/a|default|password|passwd"
    r"|secret|token|value|key|username|user|write|read|keyword|secretstr)[.!?:]?$"
    r"|(?i:your|my|insert|enter|replace|change|put|add|some|dummy|fake)[-_ ]"
    r"|[\^~<>=v]{0,2}\d+(?:\.[\dx*]+)+(?:[-+.][\w.+-]*)?$|[\W_]+$"
)
_PATH: Final = re.compile(r"(?:[A-Za-z]:[\\/]|[.~]{0,2}/|\.{1,2}\\)|[a-z][a-z0-9+.-]{1,20}://")
_DOTTED: Final = re.compile(r"[A-Za-z_$][A-Za-z_]*(?:\.[A-Za-z_$][A-Za-z_]*)+\.?$")
# `oauth2`, `aes-256-cbc`, `us_east_1`, `HS256`: letters, then maybe a short number.
_WORD: Final = re.compile(r"[A-Za-z]*\d{0,4}[a-z]{0,2}$|[a-z]\w?\d{1,3}[a-z]+$")
_SEPARATORS: Final = re.compile(r"[-_.:/ ]+")
_HEX: Final = re.compile(r"[0-9a-fA-F]{16,}$")


@lru_cache(maxsize=4096)
def is_harmless(value: str) -> bool:
    """Whether a value is surely none: empty, a variable, a format, `<your password>`, `1.2.3`."""
    stripped = value.strip()
    return not stripped or _HARMLESS.match(stripped) is not None or PLACEHOLDER.fullmatch(stripped) is not None


def stands_for_another(value: str, name: str) -> bool:
    """Whether a value is the name of a secret, a path or an expression: `settings.secret`."""
    if len(value) > 200:
        return False
    if _DOTTED.match(value) or (is_plain(value) and is_secret(value)):
        return True
    if _PATH.match(value):
        return not any(map(_is_random_word, _SEPARATORS.split(value)))
    return _letters(value) == _letters(name)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).lower()


def is_plain(value: str) -> bool:
    """Whether a value is made of words, as names in programs are: `oauth2-bearer`."""
    return all(map(_WORD.match, _SEPARATORS.split(value)))


def is_random(value: str) -> bool:
    """Whether a value is no word of any language: letters and digits mixed, or long and mixed."""
    if len(value) < 8:
        return len(value) >= 6 and any(map(str.isdigit, value)) and _is_random_word(value)
    return not is_plain(value) and any(map(_is_random_word, _SEPARATORS.split(value)))


def _is_random_word(word: str) -> bool:
    if _WORD.match(word) and not _HEX.match(word):
        return len(word) >= 24 and any(map(str.isdigit, word))
    has_digit = any(map(str.isdigit, word))
    if not word.isalnum():
        return len(word) >= 6 and (has_digit or any(map(str.isupper, word)))
    return has_digit and any(map(str.isalpha, word))
