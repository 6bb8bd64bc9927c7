"""`sed`: what its script writes and runs, and files that it edits in place."""

from __future__ import annotations

import os
import re
import sys
from typing import Final

from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole

_PLAIN: Final = frozenset("=dDgGhHnNpPxzF")
_NUMBER: Final = re.compile(r"\s*\d*")
_ADDRESS: Final = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|[+~]\d+)")
# No bracket, no class and no backslash in front of the last one.
_BRACKET: Final = re.compile(r"\[\^?+(?!\])(?:[^]\[\\\n]|\[:\w+:\]|\\[^]\n])+\]")
_FLAGS: Final = re.compile(r"[gpiImM0-9]*")
# Others than GNU's take all of the line for the name, and some go on behind a blank.
_LABEL: Final = re.compile(r"[ \t]*[\w.-]*[ \t]*(?=[;\n}]|\Z)")


class _NotUnderstood(Exception):  # noqa: N818 - an answer, not a failure
    """The script says something that is not known here."""


def sed(call: Call) -> None:
    """`sed SCRIPT FILE…`."""
    call.check_options()
    operands = list(call.operands)
    scripts = call.values("-e", "--expression")
    if call.has("-f", "--file"):
        call.unknown("reads its script from a file")
    elif not scripts:
        scripts = operands[:1]
        del operands[:1]
    if any(isinstance(each, Hole) for each in scripts):
        call.unknown("has a script that is not known before it runs", *scripts)
    else:
        text = "\n".join(map(str, scripts))
        try:
            _Script(call, text).read()
        except (_NotUnderstood, IndexError):
            call.unknown("has a script that is not understood", text)
    if call.has("-i", "--in-place", "-I"):
        call.by = f"{call.by} -i"
        in_place(call, operands, call.values("-i", "--in-place", "-I"))
    else:
        for word in operands:
            call.read(word)


def in_place(call: Call, operands: list[str | Hole], suffixes: list[str | Hole]) -> None:
    """Files are written, and copies kept of them."""
    for word in operands:
        call.write(word)
        for suffix in suffixes:
            if isinstance(word, Hole) or isinstance(suffix, Hole):
                call.writes_unknown("keeps a copy whose name is not known before it runs", word)
                continue
            folder, name = os.path.split(word)
            copy = suffix.replace("*", name) if "*" in suffix else name + suffix
            if suffix:
                call.write(copy if "/" in suffix else os.path.join(folder, copy))
            if "/" in suffix:
                call.write(os.path.join(folder, copy))
        if sys.platform == "darwin" and not any(suffixes) and operands and word is not operands[0]:
            # There the suffix is a word of its own, which has been taken for an operand.
            call.unknown("may keep copies", word)


class _Script:
    """A script, read from left to right."""

    def __init__(self, call: Call, text: str) -> None:
        self.call = call
        self.text = text
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, found: re.Match[str] | None) -> bool:
        if found is not None:
            self.at = found.end()
        return found is not None

    def line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        found, self.at = self.text[self.at : end], end
        return found

    def read(self) -> None:
        while self.at < len(self.text):
            if self.peek() in " \t\n;}":
                self.at += 1
                continue
            self._addresses()
            self._command()

    def _addresses(self) -> None:
        if not self._address():
            return
        self._blanks()
        if self.peek() == ",":
            self.at += 1
            if not self._address():
                raise _NotUnderstood

    def _blanks(self) -> None:
        while self.peek() in (" ", "\t"):
            self.at += 1

    def _address(self) -> bool:
        self._blanks()
        if self.skip(_ADDRESS.match(self.text, self.at)):
            return True
        if self.peek() == "\\":
            self.at += 1
        elif self.peek() != "/":
            return False
        self._delimited(self._delimiter())
        while self.peek() in ("I", "M"):
            self.at += 1
        return True

    def _delimiter(self) -> str:
        found = self.peek()
        self.at += 1
        if not found or found in "\\\n[":
            raise _NotUnderstood
        return found

    def _delimited(self, delimiter: str) -> None:
        """Go behind the next delimiter."""
        while (char := self.text[self.at]) != delimiter:
            if char == "\\":
                self.at += 1
            elif char == "[":
                self._bracket(delimiter)
            self.at += 1
        self.at += 1

    def _bracket(self, delimiter: str) -> None:
        """See to it that brackets hide no delimiter.

        One that stands in them ends a pattern for some and not for others, and where they end is
        not the same to all.
        """
        found = _BRACKET.match(self.text, self.at)
        if found is None:
            # Outside of patterns a bracket means nothing.
            if "]" in self.text[self.at : self.text.find("\n", self.at) + 1 or None]:
                raise _NotUnderstood
        elif delimiter in found[0].replace(f"\\{delimiter}", ""):
            raise _NotUnderstood

    def _command(self) -> None:
        while self.peek() in ("!", " ", "\t"):
            self.at += 1
        command = self.peek()
        self.at += 1
        if command in _PLAIN or command == "{":
            return
        if command in ("l", "L", "q", "Q"):
            self.skip(_NUMBER.match(self.text, self.at))
        elif command in (":", "b", "t", "T", "v"):
            self._label()
        elif command == "#":
            self.line()
        elif command in ("a", "i", "c"):
            self._text()
        elif command in ("r", "R"):
            self.call.read(self.line().strip())
        elif command in ("w", "W"):
            self._write()
        elif command == "s":
            self._substitute()
        elif command == "y":
            delimiter = self._delimiter()
            self._delimited(delimiter)
            self._delimited(delimiter)
        elif command == "e":
            self._execute()
        elif command:
            raise _NotUnderstood

    def _label(self) -> None:
        if not self.skip(_LABEL.match(self.text, self.at)):
            raise _NotUnderstood

    def _text(self) -> None:
        while self.line().endswith("\\") and self.at < len(self.text):
            self.at += 1

    def _write(self) -> None:
        name = self.line().lstrip()
        self.call.write(name)

    def _substitute(self) -> None:
        delimiter = self._delimiter()
        self._delimited(delimiter)
        self._delimited(delimiter)
        self.skip(_FLAGS.match(self.text, self.at))
        if self.peek() == "w":
            self.at += 1
            self._write()
        elif self.peek() and self.peek() not in " \t\n;}#":
            # `e` among them: what has been replaced is run.
            raise _NotUnderstood

    def _execute(self) -> None:
        code = self.line().strip()
        if not code:
            raise _NotUnderstood
        self.call.sh(code, stdin="")
