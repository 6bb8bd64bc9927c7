"""Completion in the shell, by argcomplete: commands, options, and the names that are there now."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from hermes_ext.cli._options import home_of, working_directory
from hermes_ext.cli._values import actions

_NEWEST: Final = 2_000  # lines of the decision log that are looked at

Completer = Callable[..., Iterable[str]]


def complete(parser: argparse.ArgumentParser) -> None:
    """Answers the shell that has started the process, and ends it."""
    from argcomplete import autocomplete

    # What is completed is never long; a fault of ours must not spoil the person's line.
    autocomplete(parser, always_complete_options=False)


def offer(parser: argparse.ArgumentParser) -> None:
    """Have the arguments of a command completed by the values that there are."""
    for action in parser._actions:
        completer = _COMPLETERS.get(action.dest)
        if completer is not None and action.choices is None:
            action.completer = completer  # type: ignore[attr-defined]


def _names(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Of extensions: those that the command can do something about."""
    from hermes_ext.loading.inventory import inventory
    from hermes_ext.records import Status

    wanted = {"enable": False, "disable": True}.get(parsed_args.ext_command)
    with suppress(Exception):  # a configuration that cannot be read has no names
        records = inventory(home_of(parsed_args), working_directory()).records
        return [
            each.name
            for each in records
            if wanted is None or (each.status is not Status.DISABLED) is wanted
        ]
    return []


def _names_or_paths(parsed_args: argparse.Namespace, prefix: str, **rest: Any) -> list[str]:
    """Of extensions; for `test` also where one may be that is installed nowhere."""
    names = _names(parsed_args, **rest)
    if parsed_args.ext_command != "test":
        return names
    from argcomplete.completers import FilesCompleter

    return [*names, *FilesCompleter(allowednames=("py",))(prefix)]


def _of_the_log(key: str) -> Completer:
    def values(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        from hermes_ext.turns.decisions.reading import read_decisions

        with suppress(OSError):
            log = home_of(parsed_args) / "logs" / "extensions.jsonl"
            lines = list(read_decisions(log, last=_NEWEST))
            return [*dict.fromkeys(str(line[key]) for line in reversed(lines) if line.get(key))]
        return []

    return values


def _turns(parsed_args: argparse.Namespace, **rest: Any) -> list[str]:
    last = ["last"] if parsed_args.ext_command == "why" else []
    return [*last, *_of_the_log("turn")(parsed_args, **rest)]


def _hooks(**_: Any) -> Iterable[str]:
    from hermes_ext.settings.names import HOOKS

    return HOOKS


_COMPLETERS: Final[dict[str, Completer]] = {
    "ext_name": _names_or_paths,
    "ext_query_extension": _names,
    "ext_hook": _hooks,
    "ext_hooks": _hooks,
    "ext_query_hook": _hooks,
    "ext_order": _hooks,
    "ext_query_action": lambda **_: actions(),
    "ext_query_session": _of_the_log("session"),
    "ext_query_turn": _turns,
}
