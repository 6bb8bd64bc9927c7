"""The facts of Hermes, for the rest of the package. What is slow to find is imported when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hermes_ext.hosts.facts import HomeLayout, HostCommands, HostFacts
from hermes_ext.hosts.hermes.facts.names import DISTRIBUTION, HOME_VARIABLE
from hermes_ext.hosts.hermes.facts.which_home import hermes_home

if TYPE_CHECKING:
    from hermes_ext.effects import ToolTable


def _version() -> str | None:
    from hermes_ext.hosts.hermes.facts.host_package import hermes_version

    return hermes_version()


def _commands() -> HostCommands:
    from hermes_ext.hosts.hermes.facts.commands import COMMANDS

    return COMMANDS


def _tools() -> ToolTable:
    from hermes_ext.hosts.hermes.facts.tools import TOOLS

    return TOOLS


def _samples() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    from hermes_ext.hosts.hermes.facts.samples import SAMPLES

    return SAMPLES


_CONFIG: Final = "config.yaml"

HERMES: Final = HostFacts(
    name="Hermes",
    distribution=DISTRIBUTION,
    import_name="agent.extension_hooks",
    config_file=_CONFIG,
    layout=HomeLayout(
        files={_CONFIG: "Hermes's settings", ".env": "Hermes's environment"},
        beginnings={f".{_CONFIG}.": "Hermes's settings"},
        plugins="plugins",
        profiles="profiles",
        user_home="home",
    ),
    home_variable=HOME_VARIABLE,
    home=hermes_home,
    version=_version,
    commands=_commands,
    tools=_tools,
    samples=_samples,
)
