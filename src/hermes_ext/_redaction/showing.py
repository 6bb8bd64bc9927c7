"""`redacted`: a value as it may be shown."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from hermes_ext._redaction.finding import Finder, known_patterns
from hermes_ext._redaction.names import is_header, is_password, is_secret, is_weak

LONGEST: Final = 200_000  # characters of one text that are searched; of more the rest is left out
_DEEPEST: Final = 40
_HIDDEN: Final = "[redacted]"

Span = tuple[int, int]

# A name and what is between it and its value; a name is at most as long as it may be, so that no
# text takes long.
_NAMED: Final = re.compile(
    r"(?<![\w.-])(?P<option>--?)?(?P<name>[A-Za-z_][\w.-]{0,80})"
    r"(?:\\{0,8}[\"'`]?\]?\s{0,4}(?:=>|:=|=(?!=)|:(?!//))\s{0,4}"
    r"|(?<=\w)(?P<blank> {1,4})(?=[^\s|&;<>]))"
)
_QUOTED: Final = re.compile(
    r"(?P<quote>\\{1,8}[\"'`])(?P<value>[^\r\n]{0,2000}?)(?P=quote)"
    r"|(?P<plain>[\"'`])(?P<text>(?:[^\r\n\\]|\\.){0,2000}?)(?P=plain)"
)
_BARE: Final = re.compile(r"[^\s\"'`,;&|<>(){}\[\]\\]{1,2000}")
_REST: Final = re.compile(r"[^\r\n\"'`\\]{1,4000}")
# Not the secret itself: a variable, a format, a blank to fill in, a word of a program.
_NONE: Final = re.compile(
    r"\$|%[({\w]|\{|<|\*{2,}|x{3,}\Z|\.{3}|«|\[redacted|\(hidden\)"
    r"|(?i:none|null|nil|true|false|undefined|required|optional|str|string|redacted|hidden)\Z"
)
_SCHEME: Final = re.compile(r"(?i:bearer|basic|token|digest|apikey)\s{1,4}")
_ELEMENT: Final = re.compile(r"<(?P<name>[A-Za-z_][\w.:-]{0,80})>(?P<value>[^<>\r\n]{1,500})</")
_BEARER: Final = re.compile(r"(?i:\bbearer)\s{1,4}(?P<value>[\w.~+/=-]{12,4000})")
_BASIC: Final = re.compile(r"(?i:\bbasic)\s{1,4}(?P<value>[A-Za-z0-9+/]{6,2000}={0,2})")
_USER: Final = re.compile(
    r"(?<!\S)(?:-u|--user|--proxy-user|-U)(?:\s{1,4}|=|(?=[^\s=]))\\?[\"']?"
    r"(?P<user>[^\s:\"'/]{1,200}):(?P<value>[^\s\"'\\]{1,500})"
)
# What programs take a password behind: some of them only in the same word, some only in the next.
_A_WORD: Final = r"(?P<value>[^\s\"']{3,200}|\"[^\"\n]{1,200}\"|'[^'\n]{1,200}')"
_ARGUMENTS: Final = r"\s[^\n|;]{0,200}?(?<=\s)"
_MYSQL: Final = re.compile(rf"\b(?:mysql\w*|mariadb\w*|sshpass|7za?){_ARGUMENTS}-p\s?{_A_WORD}")
_LOGIN: Final = re.compile(
    r"\b(?:docker|podman|helm|oras|az|cf|skopeo)\s[^\n|;]{0,80}?"
    rf"\blogin{_ARGUMENTS}-p[ =]?{_A_WORD}"
)
_REDIS: Final = re.compile(rf"\b(?:redis-cli|valkey-cli){_ARGUMENTS}-a\s{{0,4}}{_A_WORD}")
_ZIP: Final = re.compile(rf"\b(?:zip|unzip|sqlcmd|ipmitool){_ARGUMENTS}-P\s{{0,4}}{_A_WORD}")
_LDAP: Final = re.compile(rf"\bldap[a-z]{{3,10}}{_ARGUMENTS}-w\s{{0,4}}{_A_WORD}")
_ENC: Final = re.compile(rf"\bopenssl\s+enc{_ARGUMENTS}-k\s+{_A_WORD}")
_PASS: Final = re.compile(r"\bpass:(?P<value>[^\s\"']{3,200})")
_HTPASSWD: Final = re.compile(
    r"\bhtpasswd\s+-[A-Za-z]*b[A-Za-z]*\s+(?:-\S+\s+){0,4}\S{1,200}\s+\S{1,200}\s+(?P<value>\S{1,200})"
)
_SMB: Final = re.compile(r"(?<=\s)-U\s{0,4}[\w.\\/@-]{1,80}%(?P<value>[^\s\"']{1,200})")
_PIPED: Final = re.compile(
    r"\b(?:echo|printf)\s+(?:-\S+\s+){0,3}(?P<value>\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|[^\s|\"']{1,200})"
    r"\s*\|\s*(?:sudo\s+(?:-\w+\s+){0,4}-[a-zA-Z]*S|sudo\s+chpasswd|chpasswd|passwd\s+--stdin"
    r"|\w[\w-]*\s[^\n|;]{0,80}--password-stdin)"
)
_IN_WORDS: Final = re.compile(
    r"(?i:\b(?:password|passphrase|passcode)\s{1,4}is:?\s{1,4})[\"'`]?(?P<value>[^\s\"'`]{4,200})"
)
# A password with a slash in it, which should have been written as %2F; a port is none.
_SLASHED: Final = re.compile(
    r"://[^\s:/?#@\"'<>\\]{1,200}:(?!\d+/)(?![{$*]|%[s(])(?P<value>[^\s?#@\"'<>\\]{1,200})@[\w.-]"
)
_ATTRIBUTE: Final = re.compile(
    r"<[^<>]{0,200}?\b(?i:name|key|id)=[\"'](?P<name>[\w.:-]{1,80})[\"'][^<>]{0,200}?"
    r"\b(?i:value)=[\"'](?P<value>[^\"'\r\n]{1,500})[\"']"
)
_NETRC: Final = re.compile(r"\blogin\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(?P<value>\S{1,500})")
_SIGNED: Final = re.compile(
    r"[?&](?:sig|signature|X-Amz-Signature|code)=(?P<value>[\w%.~+/=-]{8,2000})"
)
_DIGITS: Final = re.compile(r"\d+")


def redacted(value: Any, *, thorough: bool = True) -> Any:
    """The same value with what is, or may be, a secret replaced by `[redacted]` and what it is.

    Args:
        value: any JSON value; it is not changed.
        thorough: also look for the tokens of services that only detect-secrets knows, whose import
            takes a moment.
    """
    return _in_value(value, _finder(thorough), 0)


@lru_cache(maxsize=2)
def _finder(thorough: bool) -> Finder:
    return Finder(known_patterns(thorough), (), (), ())


def _in_value(value: Any, finder: Finder, depth: int) -> Any:
    if isinstance(value, str):
        return _in_text(value, finder, depth)
    if depth > _DEEPEST and isinstance(value, Mapping | list | tuple):
        return _HIDDEN
    if isinstance(value, Mapping):
        return {
            _in_text(str(key), finder, depth): _named(str(key), each, finder, depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_in_value(each, finder, depth + 1) for each in value]
    return value


def _named(name: str, value: Any, finder: Finder, depth: int) -> Any:
    if not is_secret(name) or isinstance(value, bool) or value is None:
        return _in_value(value, finder, depth)
    if isinstance(value, str):
        return value if not value.strip() or _NONE.match(value) else _HIDDEN
    if isinstance(value, Mapping) and depth <= _DEEPEST:
        return {str(key): _named(name, each, finder, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and depth <= _DEEPEST:
        return [_named(name, each, finder, depth + 1) for each in value]
    return value if isinstance(value, int | float) and not is_password(name) else _HIDDEN


def _in_text(text: str, finder: Finder, depth: int) -> str:
    if len(text) < 4:
        return text
    left_out = ""
    if len(text) > LONGEST:
        left_out = f"… [{len(text)} characters]"
        # Not in the middle of a word, which could be one that is known when it is whole.
        kept = text[:LONGEST].rsplit(None, 1)[0]
        text = kept if len(kept) > LONGEST - 4_000 else text[: LONGEST - 4_000]
    told = _in_json(text, finder, depth)
    if told is None:
        told = finder.replaced(_without_named(text))
    return told + left_out


def _in_json(text: str, finder: Finder, depth: int) -> str | None:
    """JSON in a text, which says by its keys what is secret; None where it is none."""
    begun = text.lstrip()[:1]
    if begun not in ("{", "[") or depth > _DEEPEST:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    told = _in_value(value, finder, depth + 1)
    return text if told == value else json.dumps(told, ensure_ascii=False)


def _without_named(text: str) -> str:
    parts, place = [], 0
    for begin, end in sorted(_spans(text)):
        if begin < place:
            continue
        parts += [text[place:begin], _HIDDEN]
        place = end
    return "".join(parts) + text[place:] if parts else text


def _spans(text: str) -> Iterator[Span]:
    for match in _NAMED.finditer(text):
        if is_secret(match["name"]):
            yield from _value_behind(text, match)
    lowered = text.lower()
    for sign, pattern, is_harmless in _MORE:
        if sign in lowered:
            for match in pattern.finditer(text):
                if not _NONE.match(match["value"]) and not is_harmless(match):
                    yield match.span("value")


def _value_behind(text: str, match: re.Match[str]) -> Iterator[Span]:
    """The value of a name that is a secret's; nothing where it is none."""
    name, begin = match["name"], match.end()
    if match["blank"] and match["option"] != "--":
        return  # "the password is wrong"
    scheme = _SCHEME.match(text, begin)
    if scheme is not None and is_header(name):
        begin = scheme.end()
    quoted = _QUOTED.match(text, begin)
    if quoted is not None:
        group = "value" if quoted["quote"] else "text"
        inner = _SCHEME.match(quoted[group]) if is_header(name) else None
        begin, end = quoted.span(group)
        begin += inner.end() if inner else 0
        if end > begin and not _NONE.match(text[begin:end]):
            yield begin, end
        return
    found = (_REST if is_header(name) and not match["blank"] else _BARE).match(text, begin)
    if found is None or _NONE.match(found[0]) or text[found.end() : found.end() + 1] == "(":
        return
    told = found[0]
    if told.isdigit() and not is_password(name):
        return
    # A remark or a name in a program: `token: expired`, `secret = settings.secret`.
    assigned = match["option"] or ("=" in match[0] and not text[match.end() - 1].isspace())
    if is_weak(name) and not assigned and not _DIGITS.search(told) and len(told) < 20:
        return
    if re.fullmatch(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+", told):
        return
    yield begin, found.end()


def _numbers(match: re.Match[str]) -> bool:
    return match["user"].isdigit() and match["value"].isdigit()


def _no_credentials(match: re.Match[str]) -> bool:
    try:
        return b":" not in base64.b64decode(match["value"], validate=True)
    except (binascii.Error, ValueError):
        return True


def _a_word(match: re.Match[str]) -> bool:
    return len(match["value"]) < 20 and not _DIGITS.search(match["value"])


def _no_digit(match: re.Match[str]) -> bool:
    return not _DIGITS.search(match["value"])


def _no_secret(match: re.Match[str]) -> bool:
    return not is_secret(match["name"])


def _never(_match: re.Match[str]) -> bool:
    return False


# What has to be in a text in lower case, what is looked for then, and when it is harmless.
_MORE: Final[tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool]], ...]] = (
    ("</", _ELEMENT, _no_secret),
    ("bearer", _BEARER, _a_word),
    ("basic", _BASIC, _no_credentials),
    (":", _USER, _numbers),
    ("-p", _MYSQL, _never),
    ("login", _NETRC, _never),
    ("login", _LOGIN, _never),
    ("-cli", _REDIS, _never),
    ("-p", _ZIP, _never),
    ("ldap", _LDAP, _never),
    ("openssl", _ENC, _never),
    ("pass:", _PASS, _never),
    ("htpasswd", _HTPASSWD, _never),
    ("%", _SMB, _never),
    ("|", _PIPED, _never),
    ("://", _SLASHED, _never),
    (" is", _IN_WORDS, _no_digit),
    ("value=", _ATTRIBUTE, _no_secret),
    ("=", _SIGNED, _a_word),
)
