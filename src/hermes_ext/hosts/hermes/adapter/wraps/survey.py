"""What an installed Hermes offers: what the package attaches to, its slash commands, its tools."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from hermes_ext._values import asdict, frozen
from hermes_ext.hosts.hermes.adapter.places import LOCAL, backend


@frozen
class Survey:
    """What doctor has to know of Hermes.

    Attributes:
        statuses: what is wrong with each function that the package wraps, "" where nothing is;
            None without Hermes.
        needed: those without which guards do not hold.
        failure: why Hermes could not be looked at.
        commands: the names of its own slash commands.
        tools: the names of its tools, () where they are not known.
        backend: where it runs commands: `local`, `docker` and so on.
        confining: those of `statuses` without which it cannot have calls confined.
    """

    statuses: dict[str, str] | None = None
    needed: tuple[str, ...] = ()
    failure: str | None = None
    commands: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    backend: str = LOCAL
    confining: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `Survey(**…)` takes."""
        return asdict(self)


def survey() -> Survey:
    """Import Hermes into this process, attach to it, and look."""
    from hermes_ext.hosts.hermes.adapter.wraps.attaching import attach, standings
    from hermes_ext.hosts.hermes.adapter.wraps.seams import SEAMS

    # `run_agent` first, as Hermes itself does: other orders meet its circular imports.
    modules = ["run_agent", *(seam.module for seam in SEAMS if not seam.surface)]
    every = {seam.module for seam in SEAMS if not seam.newer}
    failures = [
        failure
        for module in dict.fromkeys(modules)
        if (failure := _import_failure(module)) and module in {"run_agent", *every}
    ]
    attach()
    return Survey(
        {str(each.seam): str(each) if each.lost else "" for each in standings()},
        tuple(str(seam) for seam in SEAMS if seam.needed),
        failures[0] if failures else None,
        host_commands(),
        tool_names(),
        backend(),
        tuple(str(seam) for seam in SEAMS if seam.confines and not seam.newer),
    )


def _import_failure(module: str) -> str | None:
    try:
        import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the host's own code
        return f"importing {module} failed: {type(error).__name__}: {error}"
    return None


def host_commands() -> tuple[str, ...]:
    """The names of Hermes's own slash commands, as far as it tells them."""
    try:
        known = import_module("hermes_cli.commands").COMMAND_REGISTRY
        return tuple(sorted({name for each in known for name in (each.name, *each.aliases)}))
    except (Exception, SystemExit):  # noqa: BLE001 - the host's own code, of any version
        return ()


def tool_names() -> tuple[str, ...]:
    """Of the tools that Hermes and its plugins have registered; () where they are not known."""
    registry = sys.modules.get("tools.registry")
    try:
        return () if registry is None else (*map(str, registry.registry.get_all_tool_names()),)
    except Exception:  # noqa: BLE001 - the host's own code, of any version
        return ()
