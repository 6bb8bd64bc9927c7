"""Arguments in, exit code out: what is asked, the two forms of output, and what may go wrong."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_ext.__about__ import __version__
from hermes_ext._prog import Prog
from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext.cli._arguments import add_commands
from hermes_ext.cli._commands import COMMANDS
from hermes_ext.cli._completion import complete
from hermes_ext.cli._decisions import SHOWN, Query
from hermes_ext.cli._errors import error_payload
from hermes_ext.cli._log_pages import row
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import show
from hermes_ext.cli._parser import Parser
from hermes_ext.cli._request import Request, Result, UsageError
from hermes_ext.cli._trust_pages import QUESTION, what_is_there
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hosts.default import default_host
from hermes_ext.loading.switches import UnknownExtensionError

PROG = "hermes-ext"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `hermes-ext` with these arguments (default: the process's) and returns the exit code."""
    parser = Parser(
        prog=PROG, description="Runtime extensions: rules of your own in the agent's loop."
    )
    parser.add_argument("--version", action="version", version=f"{PROG} {__version__}")
    add_commands(parser)
    complete(parser)
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    return run(args, prog=PROG)


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
    code = 0
    try:
        result = _outcome(command, _request(args, called))
        code = result.exit_code
        _put_out(
            command,
            result,
            prog=called,
            as_json=as_json,
            full=getattr(args, "ext_full", False),
            plain=getattr(args, "ext_ci", False),
        )
    except KeyboardInterrupt:
        sys.stderr.write("\n")  # what stands behind ^C begins a line
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter must not fail on it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _outcome(command: str, request: Request) -> Result:
    try:
        return COMMANDS[command](request)
    except HermesExtError as error:
        code = 2 if isinstance(error, UnknownExtensionError | UsageError) else 1
        return Result(code, error_payload(error))


def _home(args: argparse.Namespace) -> Path:
    home: Path | None = args.ext_home
    return home.expanduser().absolute() if home else default_host().home()


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
        every=getattr(args, "ext_all", False),
        sentinel=getattr(args, "ext_sentinel", False),
        load=getattr(args, "ext_load", False),
        deadline=getattr(args, "ext_deadline", None),
        canary=getattr(args, "ext_canary", False),
        ci=getattr(args, "ext_ci", False),
        junit=getattr(args, "ext_junit", None),
        path=getattr(args, "ext_path", None),
        look=getattr(args, "ext_look", None),
        full=getattr(args, "ext_full", False),
        ask=_question(args, prog),
        expect=getattr(args, "ext_expect", None),
        query=_query(args),
        emit=_emitter(args, prog),
        hooks=tuple(getattr(args, "ext_hooks", None) or ()),
        guard=getattr(args, "ext_guard", False),
        project=getattr(args, "ext_project", False),
        event=getattr(args, "ext_event", None),
        last=getattr(args, "ext_newest", False),
        chain=getattr(args, "ext_chain", False),
        config=getattr(args, "ext_config", None),
        limit=getattr(args, "ext_limit", 0),
        unseen=len(_terminals()) > 1 and not getattr(args, "ext_yes", True),
    )


def _query(args: argparse.Namespace) -> Query:
    return Query(
        last=getattr(args, "ext_last", SHOWN),
        session=getattr(args, "ext_session", None),
        turn=getattr(args, "ext_turn", None),
        hook=getattr(args, "ext_log_hook", None),
        extension=getattr(args, "ext_extension", None),
        action=getattr(args, "ext_action", None),
        since=getattr(args, "ext_since", None),
        follow=getattr(args, "ext_follow", False),
        brief=not args.ext_json,
    )


def _emitter(args: argparse.Namespace, prog: Prog) -> Callable[[Mapping[str, Any]], None]:
    """Prints a line that came while the command runs."""
    page = Page(sys.stdout, prog=prog)

    def emit(line: Mapping[str, Any]) -> None:
        if args.ext_json:
            sys.stdout.write(json.dumps(line, default=str) + "\n")
        else:
            row(line, page)
        sys.stdout.flush()

    return emit


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


def _put_out(
    command: str, result: Result, *, prog: Prog, as_json: bool, full: bool, plain: bool
) -> None:
    # Whoever decides whether to trust code has to see all of it.
    payload = result.payload if command == "trust" else redacted(result.payload)
    if as_json:
        sys.stdout.write(json.dumps(payload, indent=2, default=str) + "\n")
    elif "error" in payload:
        Page(sys.stderr, prog=prog).lines(f"error: {payload['error']}", style="red")
    else:
        show(command, payload, Page(sys.stdout, prog=prog, full=full, plain=plain))
    sys.stdout.flush()


def _never_fail_to_encode() -> None:
    """Paths and texts may hold what the terminal's encoding lacks; it is then written out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
