"""What is said of the rules themselves: commands that change them, variables that turn them off."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hermes_ext.effects import Command

if TYPE_CHECKING:
    from hermes_ext.hosts.facts import HostFacts

_SWITCHES: Final = frozenset({"HERMES_EXT_OFF", "HERMES_EXT_TRUST"})
_PROGRAM: Final = "hermes-ext"
_OWN: Final = frozenset({_PROGRAM, "hermes_ext", "hermes_ext.cli", "hermes_ext.cli.__main__"})
_TO: Final = r"['\",\s\[\]]+"
_OPTIONS: Final = rf"(?:-[^\s'\",]*{_TO}(?:[^-\s'\",][^\s'\",]*{_TO})?){{0,4}}"
# What code of this package settings and rules are changed with.
_OWN_CODE: Final = re.compile(
    r"\bhermes_ext(?:\.|\s+import\s+)"
    r"(?:cli|guard|hosts\.hermes\.home|loading|settings|trust|turns|_\w+)\b"
)
# Escapes undone and neighbouring texts joined, as code puts them together.
_JOINTS: Final = re.compile(r"([\"'])\s*(?:\+|\.|\.\.|,)?\s*([\"'])")
_AROUND_WORDS: Final = re.compile(r"[`()*]")
_INSTALLERS: Final = re.compile(r"(?:pip[\d.]*|pipx|uv|conda|poetry)\Z")
_INSTALLS: Final = frozenset({"install", "uninstall", "remove"})
_INTERPRETERS: Final = re.compile(r"(?:python[\d.]*|(?:ba|da|z|k)?sh|env|exec)\Z")
_PYTHON: Final = re.compile(r"python[\d.]*\Z")


class Talk:
    """Finds what would change the rules in commands and texts, in one host.

    Attributes:
        switches: variables that turn the rules off, or other rules on.
    """

    def __init__(self, facts: HostFacts) -> None:
        host = self._host = facts.commands()
        self.switches = _SWITCHES | host.switches
        self._packages = _either(_PROGRAM, facts.distribution, joint="[-_.]", end=r"(?:\W|\Z)")
        module = f"{_either(_PROGRAM, host.package).pattern}(?:\\.\\w+)*{_TO}"
        section = rf"{re.escape(host.program)}{_TO}{_OPTIONS}(?:{'|'.join(host.sections)}){_TO}"
        self._command = re.compile(
            rf"\b(?:{module}|{section}){_OPTIONS}(?:{'|'.join(sorted(host.changes))})\b",
            re.IGNORECASE,
        )
        named, bare = sorted(self.switches), sorted(self.switches - {facts.home_variable})
        self._switch = re.compile(
            rf"\b(?:({'|'.join(named)})['\"\]}})]*\s*=(?!=)"
            rf"|({'|'.join(bare)})(?:['\"\]}})]+\s*[:,]|\Z))"
            rf"|(?:\bset(?:env)?\s+(?:-\S+\s+)*|<key>\s*)({'|'.join(named)})\b",
            re.IGNORECASE,
        )

    def rule_command(self, command: Command) -> str | None:
        """The command, shortened, if it could change the rules."""
        return self._named(command.name or "", list(command.args))

    def run_by_lookup(self, commands: Sequence[Command]) -> str | None:
        """A command whose name another one looks up: `$(which hermes-ext) …`."""
        looked_up = {each for command in commands for each in command.args} & {
            self._host.program,
            _PROGRAM,
        }
        told = (
            self._named(str(name), list(command.args))
            for command in commands
            if not command.name
            for name in looked_up
        )
        return next(filter(None, told), None)

    def _named(self, name: str, args: list[str | None]) -> str | None:
        if _PYTHON.match(name) and "-m" in args[:-1]:
            place = args.index("-m")
            name, args = str(args[place + 1]), args[place + 2 :]
        script = os.path.basename(args[0] or "") if args else ""
        if script in (self._host.program, _PROGRAM) and _INTERPRETERS.match(name):
            name, args = script, args[1:]
        if name in _OWN:
            changes = self._host.changes
            word = next((each for each in args if each is None or each in changes), "")
            return None if word == "" else f"{_PROGRAM} {word or '…'}"
        if name in self._host.programs:
            return self._host.change(args)
        if name.partition(".")[0] in self._host.servers:
            return name
        installs = _INSTALLERS.match(name) and not _INSTALLS.isdisjoint(args)
        if installs and any(each is not None and self._packages.match(each) for each in args):
            return f"{name} of {_PROGRAM}"
        return None

    def code_in(self, text: str) -> str | None:
        """A module or a function, named in a text, with which code could change the rules."""
        if not any(word in text for word in ("hermes_ext", *self._host.code_words)):
            return None
        if "hermes_ext" in text and "from_config" in text:
            return "Runtime.from_config"
        found = _OWN_CODE.search(text) or self._host.code.search(text)
        return found[0].split()[-1] if found else None

    def tells_the_home(self, command: Command) -> bool:
        """Whether a command prints where the host's settings are, for another one to use."""
        return command.name in self._host.programs and self._host.tells_home(command.args)

    def command_in(self, text: str) -> str | None:
        """A command in a text that could change the rules."""
        if len(text) < 6:
            return None
        joined = _JOINTS.sub("", text)
        found = (
            self._command.search(text)
            or self._command.search(joined)
            or self._host.conversation.search(joined)
        )
        return " ".join(found[0].split()) if found else None

    def command_somewhere_in(self, text: str) -> str | None:
        """The same in a text of which it is not known how a command is made of it."""
        return self.command_in(_AROUND_WORDS.sub(" ", text))

    def names_the_home(self, text: str) -> bool:
        """Whether a text, code perhaps, takes the host's home from where it is told."""
        return any(word in text for word in self._host.home_words)

    def switch_in(self, text: str) -> str | None:
        """The variable that a text gives another value to, if it decides which rules hold."""
        found = self._switch.search(text) if len(text) > 5 else None
        return next(filter(None, found.groups())) if found else None


@functools.cache
def talk_of(host: HostFacts) -> Talk:
    """What is said of the rules in a host; made once."""
    return Talk(host)


def _either(*names: str, joint: str = "[-_]", end: str = "") -> re.Pattern[str]:
    """Finds names whose parts may be joined by `-` or `_`."""
    either = "|".join(joint.join(map(re.escape, re.split("[-_]", each))) for each in names)
    return re.compile(f"(?:{either}){end}", re.IGNORECASE)
