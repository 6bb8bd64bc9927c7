"""`completion`: the lines that turn completion on in a shell."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, Final

from hermes_ext.cli._options import add
from hermes_ext.cli._page import Page
from hermes_ext.cli._request import Request, Result

_SHELLS: Final = ("bash", "zsh", "fish", "tcsh", "powershell")


def arguments(command: ArgumentParser) -> None:
    add(command, "SHELL", f"one of {', '.join(_SHELLS)}", choices=_SHELLS, dest="name")


def work(request: Request) -> Result:
    from argcomplete.shell_integration import shellcode

    shell = request.name
    return Result(0, {"shell": shell, "code": shellcode(["hermes-ext"], shell=shell)})


def page(payload: Mapping[str, Any], page: Page) -> None:
    page.verbatim(payload["code"])
