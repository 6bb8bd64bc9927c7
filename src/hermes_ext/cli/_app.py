"""Arguments in, exit code out: what is asked, the two forms of output, and what may go wrong."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from attrs import fields

from hermes_ext._prog import Prog
from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext.cli import _commands
from hermes_ext.cli._decisions import Query
from hermes_ext.cli._options import home_of, working_directory
from hermes_ext.cli._page import Page
from hermes_ext.cli._request import Request, Result, UsageError, error_payload
from hermes_ext.exceptions import HermesExtError


def run(args: argparse.Namespace, prog: str) -> int:
    """See `hermes_ext.cli.run`."""
    _never_fail_to_encode()
    command = getattr(args, "ext_command", None)
    if command is None:
        sys.stdout.write(args.ext_help())
        return 2
    called = Prog(prog, str(home_of(args)) if args.ext_home else None)
    code = 0
    try:
        result = _outcome(command, _request(args, called))
        code = result.exit_code
        _put_out(args, result, called)
    except KeyboardInterrupt:
        sys.stderr.write("\n")  # what stands behind ^C begins a line
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter must not fail on it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _outcome(command: str, request: Request) -> Result:
    try:
        return _commands.command(command).work(request)
    except HermesExtError as error:
        from hermes_ext.loading.switches import UnknownExtensionError

        code = 2 if isinstance(error, UnknownExtensionError | UsageError) else 1
        return Result(code, error_payload(error))


def _request(args: argparse.Namespace, prog: Prog) -> Request:
    given = vars(args)
    asked = _given(given, "ext_", Request) | {"home": home_of(args)}
    asked["name"] = printable(asked.get("name", ""))  # as records have it
    return Request(
        **asked,
        cwd=working_directory(),
        prog=prog,
        query=Query(**_given(given, "ext_query_", Query), brief=not args.ext_json),
        ask=_question(args, prog),
        emit=_emitter(args, prog),
        unseen=len(_terminals()) > 1 and not given.get("ext_yes", True),
    )


def _given(args: Mapping[str, Any], prefix: str, kind: type) -> dict[str, Any]:
    """What an argument was given for, by the name of the attribute."""
    names = (each.name for each in fields(kind))
    return {name: args[prefix + name] for name in names if args.get(prefix + name) is not None}


def _emitter(args: argparse.Namespace, prog: Prog) -> Callable[[Mapping[str, Any]], None]:
    """Prints a line that came while the command runs."""
    page = Page(sys.stdout, prog=prog)

    def emit(line: Mapping[str, Any]) -> None:
        if args.ext_json:
            sys.stdout.write(json.dumps(line, default=str) + "\n")
        else:
            from hermes_ext.cli._log_pages import row

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
        from hermes_ext.cli._trust_pages import QUESTION, what_is_there

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


def _put_out(args: argparse.Namespace, result: Result, prog: Prog) -> None:
    command = args.ext_command
    # Whoever decides whether to trust code has to see all of it.
    payload = result.payload if command == "trust" else redacted(result.payload)
    if args.ext_json:
        sys.stdout.write(json.dumps(payload, indent=2, default=str) + "\n")
    elif "error" in payload:
        Page(sys.stderr, prog=prog).lines(f"error: {payload['error']}", style="red")
    else:
        full, plain = (getattr(args, name, False) for name in ("ext_full", "ext_ci"))
        page = Page(sys.stdout, prog=prog, full=full, plain=plain)
        _commands.command(command).page(payload, page)
    sys.stdout.flush()


def _never_fail_to_encode() -> None:
    """Paths and texts may hold what the terminal's encoding lacks; it is then written out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
