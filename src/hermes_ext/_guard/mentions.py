"""What a text speaks of: protected places, commands that change rules, switches that turn them off.

A text that only speaks of them does nothing yet. But where a program is given such a text and
nobody knows what it does with it, the text counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal
from urllib.parse import unquote

from attrs import frozen

from hermes_ext._guard.look import Look
from hermes_ext._guard.places import ANY, MANY, ONE, fold
from hermes_ext._guard.shell import unescaped

Kind = Literal["place", "home", "command", "switch"]

SWITCHES: Final = (
    "HERMES_EXT_OFF",
    "HERMES_EXT_TRUST",
    "HERMES_HOME",
    "HERMES_IGNORE_USER_CONFIG",
    "HERMES_SAFE_MODE",
)
"""Variables that turn the rules off, or other rules on."""

_SWITCH: Final = re.compile(
    rf"\b(?:({'|'.join(SWITCHES)})['\"\]}})]*\s*=(?!=)"
    rf"|({'|'.join(name for name in SWITCHES if name != 'HERMES_HOME')})['\"\]}})]+\s*[:,])",
    re.IGNORECASE,
)
_TO: Final = r"['\",\s\[\]]+"
_COMMAND: Final = re.compile(
    rf"\bhermes(?:[-_](?:ext|cli)(?:\.\w+)*{_TO}|{_TO}(?:extensions|config|plugins){_TO})"
    r"(?:trust|untrust|enable|disable|install|uninstall|set|unset|edit|migrate|remove|update)\b",
    re.IGNORECASE,
)
_BREAKS: Final = re.compile(r"[\s=:,;'\"`()<>|&{}\[\]!\\]+")
_JOINTS: Final = re.compile(r"([\"'])\s*(?:\+|\.|\.\.|,)?\s*([\"'])")
_USER_HOME: Final = re.compile(r"~(?=/|\Z)|\$\{?HOME\}?(?![\w])|%USERPROFILE%")
_HERMES_HOME: Final = re.compile(r"\$\{?HERMES_HOME\}?(?![\w])|%HERMES_HOME%")
# An option's letters, or a command of sed, and then a path: `-o.hermes/x`, `w.hermes/x`.
_GLUED: Final = re.compile(r"(?:-\w{1,6}|\d*w)(?=[.~])|-\w(?=\w)", re.ASCII)
_LONGEST: Final = 4_096  # of a path
_MOST: Final = 4_000  # pieces of a text that are looked up on the disk


@frozen
class Mention:
    """kind: `home` is a Hermes home as such, which only some of what can be done to it touches.

    what: for a message.
    """

    kind: Kind
    what: str


def mention_in(text: str, bases: Iterable[str], look: Look) -> Mention | None:
    """What a text speaks of, the worst of it.

    Args:
        text: any; it may have holes.
        bases: the directories that relative paths in it may start from.
    """
    found: Mention | None = None
    for mention in mentions_in(text, bases, look):
        if mention.kind != "home":
            return mention
        found = mention
    return found


def mentions_in(text: str, bases: Iterable[str], look: Look) -> Iterator[Mention]:
    """All that a text speaks of."""
    if len(text) > 5:
        switch, command = _SWITCH.search(text), _COMMAND.search(text)
        if switch:
            yield Mention("switch", switch[1] or switch[2])
        if command:
            yield Mention("command", " ".join(command[0].split()))
    bases = tuple(bases)
    for piece in dict.fromkeys(_pieces(text, look)):
        for base in bases:
            place = look.place(piece, base)
            if place is not None:
                yield Mention("place", place)
            elif look.is_home(piece, base):
                yield Mention("home", piece)


def loosened(text: str) -> str:
    """Code of some language with its escapes undone and its neighbouring texts joined."""
    return _JOINTS.sub("", unescaped(text))


def _pieces(text: str, look: Look) -> Iterator[str]:
    """What in a text may be a path: itself, and what stands between its punctuation."""
    if len(text) <= _LONGEST:
        yield text
    if _is_plain(text):
        glued = _GLUED.match(text)
        if glued:
            yield text[glued.end() :]
        return
    protected = look.protected
    texts = [text]
    if "~" in text or "$" in text or "%" in text:
        texts = [_with_homes(text, home, protected.hermes_home) for home in protected.user_homes]
        texts += [unquote(each) for each in texts if "%" in each]
    count = 0
    for each in texts:
        for piece in _BREAKS.split(each):
            if not piece or len(piece) > _LONGEST:
                continue
            count += 1
            if count > _MOST and not _is_hot(piece):
                continue
            yield piece
            if piece[0] == "-" and "/" in piece:
                yield piece[piece.index("/") :]
            glued = _GLUED.match(piece)
            if glued:
                yield piece[glued.end() :]
            if piece.startswith("//"):  # file://, after its colon
                yield piece[1:]


def _with_homes(text: str, user: str, hermes: str) -> str:
    return _HERMES_HOME.sub(lambda _: hermes, _USER_HOME.sub(lambda _: user, text))


_PLAIN: Final = re.compile(r"[\w./-]*\Z", re.ASCII)


def _is_plain(text: str) -> bool:
    return text[:1] != "-" and _PLAIN.match(text) is not None


def _is_hot(piece: str) -> bool:
    return ".hermes" in fold(piece) or ANY in piece or MANY in piece or ONE in piece
