"""Arguments in, exit code out: parsing, the two forms of output, and what may go wrong."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hermes_ext.__about__ import __version__
from hermes_ext._hooks.text import printable
from hermes_ext._install.config import hermes_home
from hermes_ext._install.records import HOOKS, Prog, did_you_mean
from hermes_ext._install.switches import UnknownExtensionError
from hermes_ext.cli._commands import COMMANDS
from hermes_ext.cli._loading import LOAD_SECONDS
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import show
from hermes_ext.cli._request import Request, Result, UsageError
from hermes_ext.cli._trust_pages import QUESTION, what_is_there
from hermes_ext.exceptions import HermesExtError

if TYPE_CHECKING:
    from hermes_ext.runtime import Runtime

PROG = "hermes-ext"
_READ_ONLY = ("list", "info")


_WRONG_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class _Parser(argparse.ArgumentParser):
    """Says of which command a usage is wrong, as JSON where that was asked for."""

    _as_json = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        self._as_json = "--json" in given
        parsed, extra = super().parse_known_args(given, namespace)
        if extra:  # the parser of a command would leave them to the one above, which knows no usage
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return parsed, extra

    def error(self, message: str) -> NoReturn:
        wrong_choice = _WRONG_CHOICE.search(message)
        if wrong_choice is not None:
            near = did_you_mean(wrong_choice[1], re.findall(r"[\w-]+", wrong_choice[2]))
            message += f". {near}" if near else ""
        if not self._as_json:
            super().error(message)
        wrong = HermesExtError(message, hint=" ".join(self.format_usage().split()))
        payload = _error_payload(wrong) | {"error": printable(f"{self.prog}: {message}")}
        sys.stdout.write(json.dumps(payload, indent=2) + "\n")
        self.exit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `hermes-ext` with these arguments (default: the process's) and returns the exit code."""
    parser = _Parser(
        prog=PROG, description="Runtime extensions: rules of your own in the agent's loop."
    )
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}")
    add_commands(parser)
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    return run(args, prog=PROG)


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Fills a parser with the commands; `run` takes the namespace that it parses.

    Every name it leaves in the namespace begins with `ext_`, so that it meets none of a host's.
    """
    parser.set_defaults(ext_help=parser.format_help)
    commands = parser.add_subparsers(
        dest="ext_command", metavar="COMMAND", title="commands", parser_class=_Parser
    )
    common = _common()

    command = commands.add_parser(
        "list", parents=[common], help="what is installed, and whether it is on"
    )
    command.add_argument(
        "--load", action="store_true", dest="ext_load",
        help="load everything in a child process and show what comes of it",
    )  # fmt: skip
    command.add_argument(
        "--order", metavar="HOOK", type=_hook, dest="ext_order",
        help="the handlers of a hook in the order in which they run, and why (implies --load)",
    )  # fmt: skip
    _add_deadline(command)

    for name, verb in (("enable", "on"), ("disable", "off")):
        command = commands.add_parser(
            name, parents=[common], help=f"turn an extension {verb} in config.yaml"
        )
        command.add_argument("ext_name", metavar="NAME")
        command.add_argument(
            "--hook", metavar="HOOK", type=_hook, dest="ext_hook", help="only this hook of it"
        )

    command = commands.add_parser(
        "info", parents=[common], help="one extension: what it needs, registers and is set to"
    )
    command.add_argument("ext_name", metavar="NAME")

    command = commands.add_parser(
        "doctor", parents=[common], help="load everything in a child process and check it"
    )
    _add_deadline(command)

    _add_trust(commands, common)

    commands.add_parser(
        "install", parents=[common], help="put the plugin into a Hermes home's plugins.enabled"
    )
    commands.add_parser(
        "uninstall", parents=[common], help="take the plugin out; extensions stay where they are"
    )


def run(args: argparse.Namespace, *, prog: str = PROG) -> int:
    """Runs the command in `args` and returns the exit code; prints to stdout, errors to stderr.

    `prog` is how the user calls these commands, for what is printed about the next step.
    """
    _never_fail_to_encode()
    command = getattr(args, "ext_command", None)
    if command is None:
        sys.stdout.write(args.ext_help())
        return 2
    as_json = args.ext_json
    called = Prog(prog, str(_home(args)) if args.ext_home else None)
    try:
        result = COMMANDS[command](_request(args, called))
    except HermesExtError as error:
        code = 2 if isinstance(error, UnknownExtensionError | UsageError) else 1
        result = Result(code, _error_payload(error))
    except KeyboardInterrupt:
        sys.stderr.write("\n")  # what stands behind ^C begins a line
        return 130
    try:
        _put_out(
            command, result, prog=called, as_json=as_json, full=getattr(args, "ext_full", False)
        )
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter must not fail on it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return result.exit_code


def slash(
    raw_args: str,
    *,
    home: Path | None = None,
    cwd: Path | None = None,
    live: Runtime | None = None,
) -> str:
    """What `/extensions …` answers in a chat: plain text, and nothing is ever changed.

    home: default `hermes_home()`. cwd: the session's directory, None where it has none. live: the
    runtime of this process, whose extensions are shown; None where none is loaded: the files'.
    """
    try:
        words = shlex.split(raw_args or "")
    except ValueError as error:
        return f"That cannot be read: {error}."
    command, *rest = words or ["list"]
    if command not in _READ_ONLY:
        asked = printable(" ".join(words))
        return (
            f"/extensions {printable(command)} is not available in a chat, which can only look:"
            f" /extensions list, /extensions info NAME. In a terminal: hermes extensions {asked}"
        )
    if len(rest) != (command == "info"):
        usage = " NAME" if command == "info" else ""
        return f"Usage: /extensions {command}{usage}"
    request = Request(
        home=home or hermes_home(),
        cwd=cwd,
        prog=Prog("hermes extensions"),
        name=printable("".join(rest)),
        live=live,
    )
    try:
        result = COMMANDS[command](request)
    except HermesExtError as error:
        return _one_line(error)
    page = Page(io.StringIO(), prog=request.prog, width=80)
    show(command, result.payload, page)
    return page.text.strip()


def _add_trust(commands: Any, common: _Parser) -> None:
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
        "--expect", metavar="DIGEST", type=_digest, dest="ext_expect",
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
        "untrust", parents=[common], help="let the extensions of a project run no longer"
    )
    _add_path(command, "the project, or where it was")


def _add_path(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(
        "ext_path", metavar="PATH", type=Path, nargs="?",
        help=f"{what} (default: the working directory)",
    )  # fmt: skip


def _common() -> _Parser:
    common = _Parser(add_help=False)
    common.add_argument(
        "--json", action="store_true", dest="ext_json", help="print one JSON value, nothing else"
    )
    common.add_argument(
        "--home", metavar="PATH", type=Path, dest="ext_home",
        help="the Hermes home (default: $HERMES_HOME, else ~/.hermes)",
    )  # fmt: skip
    return common


def _add_deadline(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--deadline", metavar="SECONDS", type=_seconds, default=LOAD_SECONDS, dest="ext_deadline",
        help="how long loading may take (default: %(default)g)",
    )  # fmt: skip


def _hook(text: str) -> str:
    name = text.strip().replace("-", "_")
    if name not in HOOKS:
        hint = did_you_mean(text, HOOKS) or f"Hooks: {', '.join(HOOKS)}"
        raise argparse.ArgumentTypeError(f'no hook is called "{printable(text)}". {hint}')
    return name


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f'"{printable(text)}" is no number of seconds above 0')
    return seconds


def _digest(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text.strip().lower()):
        raise argparse.ArgumentTypeError(
            f'"{printable(text)}" is no digest, which has 64 hex digits'
        )
    return text.strip().lower()


def _home(args: argparse.Namespace) -> Path:
    home: Path | None = args.ext_home
    return home.expanduser().absolute() if home else hermes_home()


def _request(args: argparse.Namespace, prog: Prog) -> Request:
    try:
        cwd = Path.cwd()
    except OSError:  # the directory was removed under us
        cwd = None
    return Request(
        home=_home(args),
        cwd=cwd,
        prog=prog,
        name=printable(getattr(args, "ext_name", "")),  # as records have it
        hook=getattr(args, "ext_hook", None),
        order=getattr(args, "ext_order", None),
        load=getattr(args, "ext_load", False),
        deadline=getattr(args, "ext_deadline", LOAD_SECONDS),
        path=getattr(args, "ext_path", None),
        look=getattr(args, "ext_look", None),
        full=getattr(args, "ext_full", False),
        ask=_question(args, prog),
        expect=getattr(args, "ext_expect", None),
        unseen=len(_terminals()) > 1 and not getattr(args, "ext_yes", True),
    )


def _question(args: argparse.Namespace, prog: Prog) -> Callable[[Mapping[str, Any]], bool] | None:
    """Shows and asks, where a person sits at a terminal who has not said yes already."""
    if _terminals() != {True} or getattr(args, "ext_yes", True):
        return None
    # What is asked must be seen, and with --json stdout is for nothing else.
    stream = sys.stderr if args.ext_json else sys.stdout

    def ask(payload: Mapping[str, Any]) -> bool:
        page = Page(stream, prog=prog, full=args.ext_full)
        what_is_there(payload, page)
        page.line(
            "Once you trust it, it runs as part of the agent, with all your rights, whenever the"
            " agent works in this project."
        )
        stream.write(QUESTION)
        stream.flush()
        answer = sys.stdin.readline()
        if not answer.endswith("\n"):  # Ctrl-D
            stream.write("\n")
        return answer.strip().lower() in {"y", "yes"}

    return ask


def _terminals() -> set[bool]:
    """Whether input and output are terminals: `{True}`, `{False}`, or one of them is."""
    return {stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)}


def _put_out(command: str, result: Result, *, prog: Prog, as_json: bool, full: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(result.payload, indent=2, default=str) + "\n")
    elif "error" in result.payload:
        Page(sys.stderr, prog=prog).lines(f"error: {result.payload['error']}", style="red")
    else:
        show(command, result.payload, Page(sys.stdout, prog=prog, full=full))
    sys.stdout.flush()


def _error_payload(error: HermesExtError) -> dict[str, Any]:
    return {
        "error": _one_line(error),
        "file": None if error.path is None else printable(error.path),
        "line": error.line,
        "key": error.key,
        "hint": error.hint,
    }


def _one_line(error: HermesExtError) -> str:
    return printable(str(error))


def _never_fail_to_encode() -> None:
    """Paths and texts may hold what the terminal's encoding lacks; it is then written out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
