"""`/extensions …` in a chat."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_ext._prog import Prog
from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext.cli import _commands
from hermes_ext.cli._decisions import Query
from hermes_ext.cli._page import Page
from hermes_ext.cli._request import Request
from hermes_ext.cli._values import count
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hosts.default import default_host

if TYPE_CHECKING:
    from hermes_ext.runtime import Runtime

_SHOWN = 10  # lines of the log
# What may stand behind each of them.
_READ_ONLY = {"list": "", "info": "NAME", "why": "[TURN]", "log": "[N]"}


def slash(
    raw_args: str, *, home: Path | None, cwd: Path | None, live: Runtime | None, session: str | None
) -> str:
    """See `hermes_ext.cli.slash`."""
    try:
        words = shlex.split(raw_args or "")
    except ValueError as error:
        return f"That cannot be read: {error}."
    command, *rest = words or ["list"]
    if command not in _READ_ONLY:
        typed = printable(" ".join(words))
        ways = ", ".join(f"/extensions {name} {more}".strip() for name, more in _READ_ONLY.items())
        return (
            f"/extensions {printable(command)} is not available in a chat, which can only look:"
            f" {ways}. In a terminal: hermes extensions {typed}"
        )
    usage = _READ_ONLY[command]
    least, most = int(usage == "NAME"), int(bool(usage))
    word = "".join(rest)
    wrong_number = command == "log" and bool(word) and not word.isdecimal()
    if not least <= len(rest) <= most or wrong_number:
        return f"Usage: /extensions {command} {usage}".rstrip()
    request = Request(
        home=home or default_host().home(),
        cwd=cwd,
        prog=Prog("hermes extensions"),
        name=printable(word),
        live=None if live is None else live.for_directory(cwd),
        not_taken=None if live is None else live.not_taken,
        query=Query(
            last=count(word) if command == "log" and word else _SHOWN,
            turn=word or None if command == "why" else None,
            chat=session or "",
            brief=True,
        ),
    )
    asked = _commands.command(command)
    try:
        result = asked.work(request)
    except HermesExtError as error:
        return str(redacted(printable(str(error))))
    page = Page(io.StringIO(), prog=request.prog, width=80)
    asked.page(redacted(result.payload), page)
    return page.text.strip()
