"""`patch`: files that its operands or the text of the patch name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole, Word

_HEADER: Final = re.compile(
    r"^(?:---|\+\+\+|\*\*\*|Index:) +(\"?[^\t\n]+?)\"?(?:\t[^\n]*)?$", re.MULTILINE
)
_STRANGE: Final = re.compile(
    r"^(?:rename|copy|GIT binary|Binary|Prereq:|old mode|new mode|deleted file|new file mode 12"
    r"|\d+(?:,\d+)?[acd]\s*$)",
    re.MULTILINE,
)


def patch(call: Call) -> None:
    """`patch`, `patch FILE PATCH`, `patch -i PATCH`."""
    call.check_options()
    if call.has("--dry-run", "-C", "--check"):
        return
    with call.at(call.last("-d", "--directory") or "."):
        for word in call.values("-i", "--input"):
            call.read(word)
        for word in call.operands[1:2]:
            call.read(word)
        for word in call.values("-r", "--reject-file"):
            if word != "-":
                call.write(word)
        output = call.last("-o", "--output")
        if output is not None and output != "-":
            call.write(output)
        if call.has("-B", "--prefix", "-Y", "--basename-prefix", "--get", "-g"):
            call.writes_unknown("has options that are not followed")
        if call.operands:
            _changed(call, call.operands[0])
        else:
            _by_text(call)


def _changed(call: Call, word: Word) -> None:
    """A file is patched, and copies of it may be kept."""
    if isinstance(word, Hole):
        call.write(word)
        return
    suffix = call.last("-z", "--suffix")
    endings = ["", ".orig", ".rej", *([suffix] if isinstance(suffix, str) else [])]
    for ending in endings:
        call.write(word + ending)
    call.delete(word)
    if call.has("-V", "--version-control") or isinstance(suffix, Hole):
        call.write_below(os.path.dirname(word) or ".")


def _by_text(call: Call) -> None:
    text = call.shell.stdin
    if call.has("-i", "--input") or not isinstance(text, str) or _STRANGE.search(text):
        call.writes_unknown("changes the files that the patch names")
        return
    for name in dict.fromkeys(_names(call, text)):
        _changed(call, name)


def _names(call: Call, text: str) -> Iterator[str]:
    strip = call.last("-p", "--strip")
    for header in _HEADER.findall(text):
        name = header.strip()
        if "\\" in name or name.startswith('"'):
            call.writes_unknown("changes the files that the patch names")
        parts = [each for each in name.split("/") if each]
        if name == "/dev/null" or not parts:
            continue
        counts = range(len(parts))
        if isinstance(strip, str) and strip.isdigit():
            counts = range(int(strip), int(strip) + 1)
        for count in counts:
            # Absolute names and `..` are refused by it, unless nothing is stripped.
            rest = "/".join(parts[count:])
            if rest:
                yield ("/" if name.startswith("/") and not count else "") + rest
