"""Where a session works, and where its tools do: Hermes keeps both, and they differ.

The session's directory is the one that it was opened in: by an editor or a desktop program through
a task's override, by a gateway through a context variable, else `TERMINAL_CWD` or the process's.
The tools' directory moves with every `cd` in the terminal. A guard judges paths by the second,
and finds the project (its plan, its rules) by the first.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from hermes_ext._log import logger
from hermes_ext.effects import Machine

LOCAL: Final = "local"
"""The terminal backend that starts processes on this machine."""


def session_directory(*keys: str | None) -> Path:
    """The directory that a session was opened in, by the ids of its task and its own."""
    overrides: Any = getattr(sys.modules.get("tools.terminal_tool"), "_task_env_overrides", None)
    if isinstance(overrides, dict) and overrides:
        for key in filter(None, keys):
            found = overrides.get(key)
            place = _existing(found.get("cwd")) if isinstance(found, dict) else None
            if place is not None:
                return _shared(place)
    return _shared(_pinned() or _configured() or _of_the_process())


@functools.lru_cache(maxsize=256)
def _shared(directory: str | Path) -> Path:
    """The same object for the same directory: thousands of sessions that wait keep it."""
    return Path(directory)


def tool_directory(task_id: str | None, session: Path) -> Path:
    """Where a tool call's relative paths start from; `session` where Hermes cannot be asked."""
    tools = sys.modules.get("tools.file_tools")
    base = getattr(tools, "_resolve_base_dir", None)
    if not callable(base):
        return session
    try:
        return Path(str(base(task_id or "default")))
    except Exception:
        logger.warning("cannot tell where the tools of %s work", task_id, exc_info=True)
        return session


def backend() -> str:
    """Where Hermes runs commands, as it is set up now: `local`, `docker`, `ssh` and so on."""
    config = getattr(sys.modules.get("tools.terminal_tool"), "_get_env_config", None)
    try:
        # It takes the setting over from the config at its first call, and knows profiles.
        kind = config()["env_type"] if callable(config) else os.environ.get("TERMINAL_ENV")
    except Exception:
        logger.warning("cannot tell where commands run", exc_info=True)
        kind = os.environ.get("TERMINAL_ENV")
    return str(kind or "").strip().lower() or LOCAL


def environment_of(task_id: str | None) -> Any:
    """What runs the commands of a task since its first one; None before."""
    for module in ("tools.terminal_tool", "tools.terminal_tool_lifecycle"):
        find = getattr(sys.modules.get(module), "get_active_env", None)
        if callable(find):
            return find(task_id or "default")
    return None


def elsewhere(kind: str) -> str:
    """Why nothing is confined with a terminal backend that is not `local`."""
    return (
        f"Hermes runs commands elsewhere (terminal.backend: {kind}), where they cannot be confined"
    )


def machine_now(machine: Machine) -> Machine:
    """The machine that the tools run on, as Hermes has it set up now."""
    home = _home_of_tools()
    local = backend() == LOCAL
    homes = (home,) if home and local else machine.homes
    if (local, homes) == (machine.local, machine.homes):
        return machine
    return evolve(machine, local=local, homes=homes)


def has_processes() -> bool:
    """Whether something runs in the background that a tool has started."""
    registry = getattr(sys.modules.get("tools.process_registry"), "process_registry", None)
    running = getattr(registry, "count_running", None) or getattr(registry, "has_any_active", None)
    return callable(running) and bool(running())


def _home_of_tools() -> str | None:
    constants = sys.modules.get("hermes_constants")
    override = getattr(constants, "get_subprocess_home", None)
    if inspect.iscoroutinefunction(override):
        override = None
    try:
        found = override(MappingProxyType(os.environ)) if callable(override) else None
    except Exception:
        logger.warning("cannot tell the home directory of the tools", exc_info=True)
        found = None
    return str(found or os.environ.get("HOME") or "") or None


def _pinned() -> Path | None:
    override = getattr(sys.modules.get("agent.runtime_cwd"), "_session_cwd_override", None)
    return _existing(override()) if callable(override) else None


def _configured() -> Path | None:
    return _existing(os.environ.get("TERMINAL_CWD"))


def _existing(path: Any) -> Path | None:
    if not isinstance(path, str) or not path.strip():
        return None
    place = Path(path.strip()).expanduser()
    return place if place.is_absolute() and place.is_dir() else None


def _of_the_process() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # somebody removed the directory that we stand in
        return "/"
