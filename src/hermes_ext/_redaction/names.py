"""Which names say that what they stand for is a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# The last words of a name: `db_password`, `X-Api-Key`, `clientSecret`.
_ENDINGS: Final = (
    ("password",), ("passwd",), ("passphrase",), ("passcode",), ("pwd",), ("secret",), ("token",),
    ("apikey",), ("api", "key"), ("access", "key"), ("secret", "key"), ("private", "key"),
    ("account", "key"), ("encryption", "key"), ("signing", "key"), ("authorization",), ("cookie",),
    ("credential",), ("connection", "string"), ("auth",), ("sid",),
)  # fmt: skip
_ONLY_BEHIND_OTHERS: Final = frozenset({"pass", "auth", "sid", "pin"})  # `db_pass`, not `pass`
_GLUED: Final = re.compile(
    r"(?:password|passwd|passphrase|apikey|secretkey|accesskey|authtoken|dbpass|passin|passout)\Z"
)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Headers and sentences: what stands behind these alone is as often a remark.
_WEAK: Final = frozenset(
    {"token", "auth", "authorization", "cookie", "credential", "secret", "sid"}
)
_HEADERS: Final = frozenset({"authorization", "cookie"})


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a name is that of a secret: `DB_PASSWORD`, `apiKey`; not `max_tokens`."""
    words = _words_of(name)
    if not words:
        return False
    if words[-2:] == ("key", "base"):  # `SECRET_KEY_BASE`
        words = words[:-1]
    last = words[-1]
    if name == "PASS":  # a variable
        return True
    if last in _ONLY_BEHIND_OTHERS:
        return len(words) > 1
    if _GLUED.search("".join(words[-2:])):
        return True
    return any(words[-len(ending) :] == ending for ending in _ENDINGS)


def is_password(name: str) -> bool:
    """Whether even a number behind this name is a secret."""
    last = (_words_of(name) or ("",))[-1]
    return last.startswith("pass") or last in ("pwd", "pin")


def is_weak(name: str) -> bool:
    """Whether the name alone, with a word behind it, says little: `token: expired`."""
    return _words_of(name)[-1] in _WEAK


def is_header(name: str) -> bool:
    """Whether a whole line behind the name is the secret: `Cookie: a=b; c=d`."""
    return _words_of(name)[-1] in _HEADERS


def _words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case, the last one in the singular."""
    words = [word.lower() for word in _WORDS.findall(name[-100:])]
    while words and words[-1].isdigit():  # `password1`
        words.pop()
    # `passwords`, `api_keys`; but the `tokens` of models are counted.
    if words and words[-1].endswith("s") and not words[-1].endswith(("ss", "tokens")):
        words[-1] = words[-1][:-1]
    return tuple(words)
