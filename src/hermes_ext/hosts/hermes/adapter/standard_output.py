"""Standard output where it is a protocol: what an extension prints does not get into it.

    hermes acp                          JSON-RPC with an editor
    hermes mcp serve, hermes-tools      MCP
    the backend of the TUI, its helpers JSON in lines

Each of these takes `sys.stdout` from its own module's `sys`. There it finds a duplicate of
standard output, which nobody else has. As soon as code of an extension is to run, standard output
itself becomes standard error, for this process and those that it starts: so it does not matter
whether something prints, logs, writes to the descriptor or runs a program that does.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from types import ModuleType
from typing import Any, Final, TextIO

from hermes_ext._log import logger
from hermes_ext.hosts.hermes.adapter.state import state
from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported
from hermes_ext.loading.imports import importing

_STDOUT: Final = 1
_STDERR: Final = 2

# Where each protocol takes its streams from.
_SPEAKERS: Final = (
    "acp.stdio",
    "mcp.server.stdio",
    "tui_gateway.compute_host",
    "tui_gateway.slash_worker",
)
_TUI: Final = "tui_gateway.server"

# Programs that are going to speak one of them: no other imports the first two.
_IMPORTED: Final = frozenset({"acp_adapter.entry", "mcp_serve"})
_RUN: Final = _IMPORTED | {
    "agent.transports.hermes_tools_mcp_server",
    "tui_gateway.compute_host",
    "tui_gateway.entry",
    "tui_gateway.slash_worker",
}


def protocol() -> TextIO:
    """The stream of the protocol: what standard output is, or was."""
    with state.output_lock:
        if state.output is None:
            state.output = os.dup(_STDOUT)
        if state.protocol is None or state.protocol.closed:
            state.protocol = _text_stream(os.dup(state.output))
        if state.extensions_run:
            _turn_away()
        return state.protocol


def extensions_run() -> None:
    """Code of an extension is going to run in this process."""
    with state.output_lock:
        state.extensions_run = True
        if state.output is None and _will_speak():
            state.output = os.dup(_STDOUT)
            for transport in _open_transports():
                transport._fileno = os.dup(state.output)
        if state.output is not None:
            _turn_away()


def _turn_away() -> None:
    if state.output_apart:
        return
    state.output_apart = True
    for stream in {id(each): each for each in (sys.stdout, sys.__stdout__)}.values():
        with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or another's
            stream.flush()  # type: ignore[union-attr]
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # there is no standard error
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), _STDOUT)


def _text_stream(descriptor: int) -> TextIO:
    """A stream like `sys.stdout` for another descriptor."""
    like = sys.__stdout__
    return io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(descriptor, "w")),
        encoding=getattr(like, "encoding", None) or "utf-8",
        errors=getattr(like, "errors", None),
        line_buffering=bool(getattr(like, "line_buffering", False)),
        write_through=bool(getattr(like, "write_through", False)),
    )


def _open_transports() -> list[Any]:
    """The transports of asyncio that have standard output already.

    Newer Hermes discovers plugins in an editor's first session, when its protocol is long open.
    """
    return [
        each
        for each in gc.get_objects()
        if type(each).__name__ == "_UnixWritePipeTransport"
        and getattr(each, "_fileno", None) == _STDOUT
    ]


def _will_speak() -> bool:
    return _main_name() in _RUN or not _IMPORTED.isdisjoint(sys.modules)


def _main_name() -> str:
    """The full name of the module that this process runs by `python -m`."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return str(getattr(spec, "name", ""))


class _Sys:
    """`sys` to a module that speaks a protocol: the same, but for where it writes."""

    @property
    def stdout(self) -> TextIO:
        return protocol()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)


def keep_protocols_clean() -> None:
    """Have the modules that speak a protocol write where no extension can."""
    importing.before_code = extensions_run
    for name in _SPEAKERS:
        when_imported(name, _give_own_output)
    when_imported(_TUI, _give_own_stream)
    main = sys.modules.get("__main__")
    if main is not None and _main_name() in _SPEAKERS:
        _give_own_output(main)


def _give_own_output(module: ModuleType) -> None:
    if vars(module).get("sys") is sys:
        vars(module)["sys"] = _Sys()
    else:
        logger.info("%s is not as expected: what extensions print may get in", module.__name__)


def _give_own_stream(module: ModuleType) -> None:
    # It has taken the stream, and made `sys.stdout` standard error, while it was imported.
    if "_real_stdout" in vars(module):
        vars(module)["_real_stdout"] = protocol()
    else:
        logger.info("%s is not as expected: what extensions print may get in", module.__name__)
