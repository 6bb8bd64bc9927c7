"""Commands, variables and code of Hermes that change its settings, and with them the rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hermes_ext.hosts.facts import HostCommands
from hermes_ext.hosts.hermes.facts.names import HOME_VARIABLE, PACKAGE

_CHANGE: Final = frozenset(
    {"trust", "untrust", "enable", "disable", "install", "uninstall", "new", "set", "unset",
     "edit", "migrate", "remove", "update"}
)  # fmt: skip
# They run extensions, of any folder: code without a judge.
_RUN: Final = frozenset({"test", "replay"})
_SECTIONS: Final = {
    "extensions": _CHANGE | _RUN,
    "config": _CHANGE,
    "plugins": _CHANGE,
    "profile": frozenset(
        {"alias", "create", "delete", "import", "install", "rename", "update", "use"}
    ),
}
# What answers a prompt, or tells something, and ends; else a person types to it, slash commands
# too, and a pipe would do so in their place.
_ENDS: Final = re.compile(r"-(?:[qzhV]|-(?:q|on|u|h|ver))")
_TAKES_A_WORD: Final = re.compile(r"-(?:[mtscr]|-(?:m|prov|t|r|c|sk|so|max|im))[^=]*\Z")
_TO: Final = r"['\",\s\[\]]+"
_CONVERSATION: Final = re.compile(
    rf"\bhermes{_TO}(?:chat{_TO})?(?:--re|--cont|-r\b|-c\b)(?![^\n]{{0,400}}?(?:-[qz]\b|--query|--onesh))"
)
# Each may be shortened, as long as no other begins like it.
_WITHOUT_RULES: Final = {"--safe-mode": "--sa", "--ignore-user-config": "--ignore-u"}
# What settings are changed with; and what a person's slash commands are handed over with, one of
# which may take a rule off.
_CODE: Final = re.compile(
    r"\btui_gateway\b"
    r"|\bhermes_(?:cli|constants)\b.*?\b(?:atomic_config_write|get_config_path|get_env_path"
    r"|save_config|save_env_value\w*|(?:un)?set_config_value|write_platform_config_field)\b",
    re.DOTALL,
)


def _change(args: Sequence[str | None]) -> str | None:
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


def _tells_home(args: Sequence[str | None]) -> bool:
    return "config" in args and any("path" in (each or "") for each in args)


COMMANDS: Final = HostCommands(
    program="hermes",
    package=PACKAGE,
    programs=frozenset({"hermes", PACKAGE, f"{PACKAGE}.main"}),
    sections=("extensions", "config", "plugins"),
    changes=_CHANGE | _RUN,
    change=_change,
    tells_home=_tells_home,
    conversation=_CONVERSATION,
    servers=frozenset({"tui_gateway"}),
    code=_CODE,
    code_words=("hermes_", "tui_gateway"),
    home_words=(HOME_VARIABLE, "get_hermes_home"),
    switches=frozenset({HOME_VARIABLE, "HERMES_IGNORE_USER_CONFIG", "HERMES_SAFE_MODE"}),
)
