"""Which command takes which arguments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hermes_ext.cli._completion import SHELLS
from hermes_ext.cli._decisions import SHOWN
from hermes_ext.cli._loading import CANARY_SECONDS, LOAD_SECONDS, REPLAY_SECONDS
from hermes_ext.cli._parser import (
    Parser,
    action,
    at_least_one,
    count,
    digest,
    home,
    hook,
    seconds,
    since,
)


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Fills a parser with the commands; `run` takes the namespace that it parses.

    Every name it leaves in the namespace begins with `ext_`, so that it meets none of a host's.
    """
    parser.set_defaults(ext_help=parser.format_help)
    commands = parser.add_subparsers(
        dest="ext_command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    common = _common()

    command = commands.add_parser(
        "list", parents=[common], help="what is installed, and whether it is on"
    )
    command.add_argument(
        "--all", action="store_true", dest="ext_all",
        help="also hidden files, __pycache__, README, LICENSE and CHANGELOG of extensions folders",
    )  # fmt: skip
    command.add_argument(
        "--load", action="store_true", dest="ext_load",
        help="load everything in a child process and show what comes of it",
    )  # fmt: skip
    command.add_argument(
        "--order", metavar="HOOK", type=hook, dest="ext_order",
        help="the handlers of a hook in the order in which they run, and why (implies --load)",
    )  # fmt: skip
    _add_deadline(command)

    for name, verb in (("enable", "on"), ("disable", "off")):
        command = commands.add_parser(
            name, parents=[common], help=f"turn an extension {verb} in config.yaml"
        )
        command.add_argument("ext_name", metavar="NAME", help="its name, as list has it")
        command.add_argument(
            "--hook", metavar="HOOK", type=hook, dest="ext_hook", help="only this hook of it"
        )

    command = commands.add_parser(
        "info", parents=[common], help="one extension: its requirements, hooks and settings"
    )
    command.add_argument("ext_name", metavar="NAME", help="its name, as list has it")

    _add_doctor(commands, common)
    _add_trust(commands, common)
    _add_log(commands, common)
    _add_new(commands, common)
    _add_test(commands, common)
    _add_replay(commands, common)

    command = commands.add_parser(
        "install", parents=[common], help="put the plugin into a Hermes home's plugins.enabled"
    )
    command.add_argument(
        "--sentinel", action="store_true", dest="ext_sentinel",
        help="also a plugin that refuses tools if this package is gone"
        " (written anyway where extensions.required names any)",
    )  # fmt: skip
    commands.add_parser(
        "uninstall", parents=[common], help="take the plugin out; extensions stay where they are"
    )
    command = commands.add_parser(
        "completion", parents=[common],
        help='print what turns completion on: eval "$(hermes-ext completion bash)"',
    )  # fmt: skip
    command.add_argument(
        "ext_name", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}"
    )


def _add_doctor(commands: Any, common: Parser) -> None:
    command = commands.add_parser(
        "doctor", parents=[common],
        help="load everything in a child process and check it; try the hooks in the real Hermes",
    )  # fmt: skip
    command.add_argument(
        "--no-canary", action="store_false", dest="ext_canary",
        help="do not start Hermes to see whether each hook fires once and is honoured",
    )  # fmt: skip
    command.add_argument(
        "--ci", action="store_true", dest="ext_ci",
        help="for a pipeline: no colour, no progress, and an error where nothing could be tried",
    )  # fmt: skip
    command.add_argument(
        "--junit", metavar="FILE", type=Path, dest="ext_junit",
        help="also write JUnit XML: a test case for each check and each proof",
    )  # fmt: skip
    command.add_argument(
        "--deadline", metavar="SECONDS", type=seconds, dest="ext_deadline",
        help="how long loading may take, and trying the hooks in Hermes"
        f" (default: {LOAD_SECONDS:g} and {CANARY_SECONDS:g})",
    )  # fmt: skip


def _add_new(commands: Any, common: Parser) -> None:
    command = commands.add_parser(
        "new", parents=[common], help="write an extension to begin with, and its test"
    )
    command.add_argument(
        "ext_name", metavar="NAME", help="what it is to be called: a-z, 0-9, - and _"
    )
    command.add_argument(
        "--hook", metavar="HOOK", type=hook, dest="ext_hooks", action="append",
        help="a hook that it has a handler for; may be given more than once"
        " (default: intercept_tool_call, as a guard)",
    )  # fmt: skip
    command.add_argument(
        "--guard", action="store_true", dest="ext_guard",
        help="its handlers are guards: they see the final value, and may only refuse",
    )  # fmt: skip
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--project", action="store_true", dest="ext_project",
        help="for this project only: into its .hermes/extensions",
    )  # fmt: skip
    where.add_argument(
        "--global", action="store_false", dest="ext_project",
        help="for all your work: into the Hermes home (the default)",
    )  # fmt: skip


def _add_test(commands: Any, common: Parser) -> None:
    command = commands.add_parser(
        "test", parents=[common],
        help="run an extension's handlers on sample or recorded events; no model, no tool",
    )  # fmt: skip
    command.add_argument(
        "ext_name", metavar="NAME", help="its name, or the path of its folder or file"
    )
    events = command.add_mutually_exclusive_group()
    events.add_argument(
        "--event", metavar="FILE", type=Path, dest="ext_event",
        help="on the events of a JSON or YAML file instead of samples; - is standard input",
    )  # fmt: skip
    events.add_argument(
        "--last", action="store_true", dest="ext_newest",
        help="on the newest event of the decision log that it is called for",
    )  # fmt: skip
    command.add_argument(
        "--hook", metavar="HOOK", type=hook, dest="ext_hook", help="only its handlers for this hook"
    )
    command.add_argument(
        "--chain", action="store_true", dest="ext_chain",
        help="as part of the whole chain, with everything else that is on",
    )  # fmt: skip
    _add_deadline(command)


def _add_replay(commands: Any, common: Parser) -> None:
    command = commands.add_parser(
        "replay", parents=[common],
        help="run recorded events through today's extensions: which verdicts changed",
    )  # fmt: skip
    command.add_argument(
        "ext_path", metavar="LOG", type=Path, nargs="?",
        help="a decision log with payloads (default: the Hermes home's); - is standard input",
    )  # fmt: skip
    command.add_argument(
        "--config", metavar="FILE", type=Path, dest="ext_config",
        help="take the settings from this file instead of the home's config.yaml",
    )  # fmt: skip
    command.add_argument(
        "--turn", metavar="ID", dest="ext_turn", help="only of this turn; its begin is enough"
    )
    command.add_argument(
        "--limit", metavar="N", type=at_least_one, default=0, dest="ext_limit",
        help="only the newest N (default: all)",
    )  # fmt: skip
    _add_filters(command, actions=False)
    _add_deadline(command, REPLAY_SECONDS)


def _add_trust(commands: Any, common: Parser) -> None:
    command = commands.add_parser(
        "trust", parents=[common],
        help="let the extensions of a project run, exactly as they are now; shows them first",
    )  # fmt: skip
    _add_path(command, "a folder of the project")
    command.add_argument(
        "-y", "--yes", action="store_true", dest="ext_yes", help="do not ask, even in a terminal"
    )
    command.add_argument(
        "--full", action="store_true", dest="ext_full",
        help="cut nothing; of a project that was never trusted, show all files",
    )  # fmt: skip
    command.add_argument(
        "--expect", metavar="DIGEST", type=digest, dest="ext_expect",
        help="record it only if this is its digest",
    )  # fmt: skip
    only = command.add_mutually_exclusive_group()
    for look, told in (
        ("diff", "only show it; exit code 0 if it is trusted as it is, else 1"),
        ("digest", "only print the digest, for HERMES_EXT_TRUST"),
        ("list", "only list the projects that are trusted"),
    ):
        only.add_argument(f"--{look}", action="store_const", const=look, dest="ext_look", help=told)
    command = commands.add_parser(
        "untrust", parents=[common], help="stop trusting the extensions of a project"
    )
    _add_path(command, "the project, or where it was")


def _add_log(commands: Any, common: Parser) -> None:
    command = commands.add_parser(
        "why", parents=[common],
        help="who decided what and why: the last decision, or all of a turn",
    )  # fmt: skip
    command.add_argument(
        "ext_turn", metavar="TURN", nargs="?", default="last",
        help="how the id of a turn begins (default: last, the last decision of all)",
    )  # fmt: skip
    _add_filters(command)

    command = commands.add_parser(
        "log", parents=[common], help="the newest lines of the decision log"
    )
    command.add_argument(
        "-n", "--last", metavar="N", type=count, default=SHOWN, dest="ext_last",
        help="how many lines (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "-f", "--follow", action="store_true", dest="ext_follow",
        help="go on with each new line, until Ctrl-C; with --json one JSON object per line",
    )  # fmt: skip
    command.add_argument(
        "--turn", metavar="ID", dest="ext_turn", help="only of this turn; its begin is enough"
    )
    _add_filters(command)


def _add_filters(command: argparse.ArgumentParser, *, actions: bool = True) -> None:
    add = command.add_argument
    add("--session", metavar="ID", dest="ext_session", help="only of this; its begin is enough")
    add("--hook", metavar="HOOK", type=hook, dest="ext_log_hook", help="only of this hook")
    add(
        "--extension", metavar="NAME", dest="ext_extension",
        help="only where this extension took part",
    )  # fmt: skip
    if actions:
        add(
            "--action", metavar="ACTION", type=action, dest="ext_action",
            help="only what came to this; error: where a handler failed",
        )  # fmt: skip
    add(
        "--since", metavar="WHEN", type=since, dest="ext_since",
        help="only since then: 30m, 2h, 3d, or a date and time",
    )  # fmt: skip


def _add_path(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(
        "ext_path", metavar="PATH", type=Path, nargs="?",
        help=f"{what} (default: the working directory)",
    )  # fmt: skip


def _common() -> Parser:
    common = Parser(add_help=False)
    common.add_argument(
        "--json", action="store_true", dest="ext_json", help="print one JSON value, nothing else"
    )
    common.add_argument(
        "--home", metavar="PATH", type=home, dest="ext_home",
        help="the Hermes home (default: $HERMES_HOME, else ~/.hermes)",
    )  # fmt: skip
    return common


def _add_deadline(command: argparse.ArgumentParser, default: float = LOAD_SECONDS) -> None:
    command.add_argument(
        "--deadline", metavar="SECONDS", type=seconds, default=default, dest="ext_deadline",
        help="how long it may take (default: %(default)g)",
    )  # fmt: skip
