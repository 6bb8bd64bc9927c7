"""What a value looks like: a secret, or a word, a variable, a call, a blank to fill in."""

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
    r"|secret|token|value|key|username|user|write|read|keyword|secretstr|incomplete)[.!?:]?$"
    r"|#[0-9a-fA-F]{3,8}$|-?0[xX][0-9a-fA-F]{1,8}[uUlL]{0,3}$|.$"
    r"|(?i:your|my|insert|enter|replace|change|put|add|some|dummy|fake)[-_ ]"
    r"|[\^~<>=v]{0,2}\d+(?:\.[\dx*]+)+(?:[-+.][\w.+-]*)?$|[\W_]+$"
)
_OPEN: Final = re.compile(r"\s*(?:\$\{[^{}]*\}|\$[A-Za-z_]\w*|\{\{[^{}]*\}\}|<[^<>]*>|\*{3,})?\s*")
_PATH: Final = re.compile(r"(?:[A-Za-z]:[\\/]|[.~]{0,2}/|\.{1,2}\\)|[a-z][a-z0-9+.-]{1,20}://")
_DOTTED: Final = re.compile(
    r"[A-Za-z_$][A-Za-z_]*(?:\.[A-Za-z_$][A-Za-z_]*)+\.?$|(?:exports|self|this|process|os)\.[\w.]+$"
)
# `oauth2`, `aes-256-cbc`, `us_east_1`, `HS256`: letters, then maybe a short number.
_WORD: Final = re.compile(r"[^\W\d_]*\d{0,4}[a-z]{0,2}$|[a-z]\w?\d{1,3}[a-z]+$")
# `hunter2`, `swordfish99`; but `oauth2` and `client3` are names.
_NUMBERED: Final = re.compile(
    r"(?!(?:oauth|python|client|server|user|value|param|string|test|example|item|field|node|token"
    r"|secret|key|auth|cookie|bearer|basic|version|level|type|group|index|number|name|input|output"
    r"|result|object|class|state|event|model|admin|header|request|response|method|scope|channel"
    r"|account|argon|public|private|crypt|blake|ripemd|whirlpool|windows|linux|session|device"
    r"|backend|provider|cluster|bucket|region|zone|option|variable|placeholder|prefix|suffix)s?\d)"
    r"[a-z]{5,}\d{1,4}[!?.]?$",
    re.IGNORECASE,
)
_SEPARATORS: Final = re.compile(r"[-_.:/ =,;&\u3001\u3002\u300c\u300d\uff08-\uff1f]+")
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+|.", re.DOTALL)
_ENOUGH: Final = 256  # characters of a value that are looked at
_CAPITAL: Final = re.compile("[A-Z]")
_COLOR: Final = re.compile("#[0-9a-fA-F]{3,8}$")
_INSERTED: Final = re.compile(r"\$?\{[^{}]{0,80}\}|%[sd]|\\x[0-9a-fA-F]{2}|\\[0-7]{1,3}")


@lru_cache(maxsize=4096)
def is_harmless(value: str) -> bool:
    """Whether a value is surely none: empty, a variable, a format, `<your password>`, `1.2.3`."""
    value = value.strip()
    if not value or _HARMLESS.match(value) or PLACEHOLDER.fullmatch(value):
        return True
    if value.endswith(("...", "…")) or "***" in value:
        return True
    rest = _INSERTED.sub("", value)
    return rest != value and (not rest or is_plain(rest))


def is_open(value: str) -> bool:
    """Whether a value hides nothing, whatever its name: empty, a variable, a blank to fill in."""
    return _OPEN.fullmatch(value) is not None or PLACEHOLDER.fullmatch(value.strip()) is not None


def stands_for_another(value: str, name: str) -> bool:
    """Whether a value is the name of a secret, a path or an expression: `settings.secret`."""
    if len(value) > 200:
        return False
    is_name = is_plain(value) or value.isidentifier()
    if _DOTTED.match(value) or (is_name and is_secret(value)):
        return True
    if _PATH.match(value):
        return not any(map(_is_random_word, _SEPARATORS.split(value)))
    return _letters(value) == _letters(name)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).lower()


def is_plain(value: str) -> bool:
    """Whether a value is made of words, as names in programs are: `oauth2-bearer`."""
    words = _SEPARATORS.split(value[:_ENOUGH])
    return all(_WORD.match(word) and not _NUMBERED.match(word) for word in words)


def is_random(value: str) -> bool:
    """Whether there is a text in a value that is not made of words: letters and digits mixed."""
    return any(map(_is_random_word, _SEPARATORS.split(value[:_ENOUGH])))


def _is_random_word(word: str) -> bool:
    """Whether a word changes from letters to digits or from small to capital at each turn."""
    if len(word) < 6 or _COLOR.match(word):
        return False
    if _NUMBERED.match(word):
        return True
    if _WORD.match(word) and len(_CAPITAL.findall(word)) <= len(word) / 4:
        return len(word) >= 24 and word.islower()
    return len(word) < 3 * len(_PARTS.findall(word))
