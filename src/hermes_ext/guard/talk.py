"""What is said of the rules themselves: commands that change them, variables that turn them off."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from hermes_ext.effects import Command

__all__ = [
    "SWITCHES",
    "code_in",
    "command_in",
    "command_somewhere_in",
    "names_the_home",
    "rule_command",
    "run_by_lookup",
    "switch_in",
    "tells_the_home",
]

SWITCHES: Final = frozenset(
    {
        "HERMES_EXT_OFF",
        "HERMES_EXT_TRUST",
        "HERMES_HOME",
        "HERMES_IGNORE_USER_CONFIG",
        "HERMES_SAFE_MODE",
    }
)
"""Variables that turn the rules off, or other rules on."""

_NAMES: Final = "|".join(sorted(SWITCHES))
_SWITCH: Final = re.compile(
    rf"\b(?:({_NAMES})['\"\]}})]*\s*=(?!=)"
    rf"|({'|'.join(sorted(SWITCHES - {'HERMES_HOME'}))})(?:['\"\]}})]+\s*[:,]|\Z))",
    re.IGNORECASE,
)
_CHANGE: Final = frozenset(
    {"trust", "untrust", "enable", "disable", "install", "uninstall", "new", "set", "unset",
     "edit", "migrate", "remove", "update"}
)  # fmt: skip
# They run extensions, of any folder: code without a judge.
_RUN: Final = frozenset({"test", "replay"})
_CHANGE_OF_PROFILES: Final = frozenset(
    {"alias", "create", "delete", "import", "install", "rename", "update", "use"}
)
_TO: Final = r"['\",\s\[\]]+"
_OPTIONS: Final = rf"(?:-[^\s'\",]*{_TO}(?:[^-\s'\",][^\s'\",]*{_TO})?){{0,4}}"
_COMMAND: Final = re.compile(
    rf"\bhermes(?:[-_](?:ext|cli)(?:\.\w+)*{_TO}"
    rf"|{_TO}{_OPTIONS}(?:extensions|config|plugins){_TO}){_OPTIONS}"
    rf"(?:{'|'.join(sorted(_CHANGE | _RUN))})\b",
    re.IGNORECASE,
)
# What code of the host, and of this package, settings and rules are changed with; and what a
# person's slash commands are handed over with, one of which may take a rule off.
_OF_THE_CODE: Final = re.compile(
    r"\bhermes_ext(?:\.|\s+import\s+)"
    r"(?:cli|guard|hosts\.hermes\.home|loading|settings|trust|turns|_\w+)\b"
    r"|\btui_gateway\b"
    r"|\bhermes_(?:cli|constants)\b.*?\b(?:atomic_config_write|get_config_path|get_env_path"
    r"|save_config|save_env_value\w*|(?:un)?set_config_value|write_platform_config_field)\b",
    re.DOTALL,
)
# Escapes undone and neighbouring texts joined, as code puts them together.
_JOINTS: Final = re.compile(r"([\"'])\s*(?:\+|\.|\.\.|,)?\s*([\"'])")

_AROUND_WORDS: Final = re.compile(r"[`()*]")

_OWN: Final = frozenset({"hermes-ext", "hermes_ext", "hermes_ext.cli", "hermes_ext.cli.__main__"})
_HOSTS: Final = frozenset({"hermes", "hermes_cli", "hermes_cli.main"})
_SECTIONS: Final = {
    "extensions": _CHANGE | _RUN,
    "config": _CHANGE,
    "plugins": _CHANGE,
    "profile": _CHANGE_OF_PROFILES,
}
# What answers a prompt, or tells something, and ends; else a person types to it, slash commands
# too, and a pipe would do so in their place.
_ENDS: Final = re.compile(r"-(?:[qzhV]|-(?:q|on|u|h|ver))")
_TAKES_A_WORD: Final = re.compile(r"-(?:[mtscr]|-(?:m|prov|t|r|c|sk|so|max|im))[^=]*\Z")
_CONVERSATION: Final = re.compile(
    rf"\bhermes{_TO}(?:chat{_TO})?(?:--re|--cont|-r\b|-c\b)(?![^\n]{{0,400}}?(?:-[qz]\b|--query|--onesh))"
)
# Each may be shortened, as long as no other begins like it.
_WITHOUT_RULES: Final = {"--safe-mode": "--sa", "--ignore-user-config": "--ignore-u"}
_PACKAGES: Final = re.compile(r"hermes[-_.](?:ext|agent)(?:\W|\Z)", re.IGNORECASE)
_INSTALLERS: Final = re.compile(r"(?:pip[\d.]*|pipx|uv|conda|poetry)\Z")
_INSTALLS: Final = frozenset({"install", "uninstall", "remove"})
_INTERPRETERS: Final = re.compile(r"(?:python[\d.]*|(?:ba|da|z|k)?sh|env|exec)\Z")
_PYTHON: Final = re.compile(r"python[\d.]*\Z")


def rule_command(command: Command) -> str | None:
    """The command, shortened, if it could change the rules."""
    return _named(command.name or "", list(command.args))


def run_by_lookup(commands: Sequence[Command]) -> str | None:
    """A command whose name another one looks up: `$(which hermes-ext) …`."""
    looked_up = {each for command in commands for each in command.args} & {"hermes", "hermes-ext"}
    told = (
        _named(str(name), list(command.args))
        for command in commands
        if not command.name
        for name in looked_up
    )
    return next(filter(None, told), None)


def _named(name: str, args: list[str | None]) -> str | None:
    if _PYTHON.match(name) and "-m" in args[:-1]:
        place = args.index("-m")
        name, args = str(args[place + 1]), args[place + 2 :]
    script = os.path.basename(args[0] or "") if args else ""
    if script in ("hermes", "hermes-ext") and _INTERPRETERS.match(name):
        name, args = script, args[1:]
    if name in _OWN:
        word = next((each for each in args if each is None or each in _CHANGE | _RUN), "")
        return None if word == "" else f"hermes-ext {word or '…'}"
    if name in _HOSTS:
        return _of_the_host(args)
    if name.partition(".")[0] == "tui_gateway":
        return name
    installs = _INSTALLERS.match(name) and not _INSTALLS.isdisjoint(args)
    if installs and any(each is not None and _PACKAGES.match(each) for each in args):
        return f"{name} of hermes-ext"
    return None


def code_in(text: str) -> str | None:
    """A module or a function in it, named in a text, with which code could change the rules."""
    if "hermes_" not in text and "tui_gateway" not in text:
        return None
    if "hermes_ext" in text and "from_config" in text:
        return "Runtime.from_config"
    found = _OF_THE_CODE.search(text)
    return found[0].split()[-1] if found else None


def tells_the_home(command: Command) -> bool:
    """Whether a command prints where Hermes's settings are, for another one to use."""
    words = [each or "" for each in command.args]
    return command.name in _HOSTS and "config" in words and any("path" in each for each in words)


def _of_the_host(args: list[str | None]) -> str | None:
    section = next((place for place, each in enumerate(args) if each in _SECTIONS), None)
    if section is not None:
        changes = _SECTIONS[str(args[section])]
        word = next((each for each in args[section + 1 :] if each is None or each in changes), "")
        return None if word == "" else f"hermes {args[section]} {word or '…'}"
    for each in args:
        for option, shortest in _WITHOUT_RULES.items():
            if each is not None and each.startswith(shortest) and option.startswith(each):
                return f"hermes {option}"
    if "uninstall" in args:
        return "hermes uninstall"
    return "hermes, for a person to type to," if _is_typed_to(args) else None


def _is_typed_to(args: Sequence[str | None]) -> bool:
    """Whether `hermes` would wait for what somebody types."""
    if any(each is None or _ENDS.match(each) for each in args):
        return False
    words = iter(args)
    for word in words:
        if not str(word).startswith("-"):
            return word == "chat"
        if _TAKES_A_WORD.match(str(word)):
            next(words, None)
    return True


def command_in(text: str) -> str | None:
    """A command in a text that could change the rules."""
    if len(text) < 6:
        return None
    joined = _JOINTS.sub("", text)
    found = _COMMAND.search(text) or _COMMAND.search(joined) or _CONVERSATION.search(joined)
    return " ".join(found[0].split()) if found else None


def command_somewhere_in(text: str) -> str | None:
    """The same in a text of which it is not known how a command is made of it."""
    return command_in(_AROUND_WORDS.sub(" ", text))


def names_the_home(text: str) -> bool:
    """Whether a text, code perhaps, takes the Hermes home from where it is told."""
    return "HERMES_HOME" in text or "get_hermes_home" in text


def switch_in(text: str) -> str | None:
    """The variable that a text gives another value to, if it decides which rules hold."""
    found = _SWITCH.search(text) if len(text) > 5 else None
    return (found[1] or found[2]) if found else None
