"""The facts of Hermes, for the rest of the package. What is slow to find is imported when asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_ext.hosts.facts import HomeLayout, HostCommands, HostFacts
from hermes_ext.hosts.hermes.facts.names import DISTRIBUTION, HOME_VARIABLE

if TYPE_CHECKING:
    from hermes_ext.effects import ToolTable


def hermes_home() -> Path:
    """The Hermes home of this process, absolute.

    Where Hermes is installed it is asked, since its releases differ: 0.19 takes `$HERMES_HOME` as
    it is written, so that `~/.hermes` is a folder `~` of the working directory, and later ones
    replace `~` and variables. Without Hermes here it is what 0.19 makes of it.
    """
    try:
        return Path(os.path.abspath(_of_hermes()))
    except ImportError:
        pass
    except RuntimeError:  # no home is known: HOME is not set, and this user has no entry
        return _NOWHERE
    written = os.environ.get(HOME_VARIABLE, "").strip()
    if written:
        return Path(os.path.abspath(written))
    default = os.path.expanduser("~/.hermes")
    return _NOWHERE if default.startswith("~") else Path(os.path.abspath(default))


_NOWHERE = Path(os.devnull, "no-home-is-known")  # what cannot be read, instead of a folder `~` here


def _of_hermes() -> Path:
    import hermes_constants

    # Not get_hermes_home where there is the other: it warns of profiles.
    asked = getattr(hermes_constants, "get_process_hermes_home", hermes_constants.get_hermes_home)
    return Path(asked())


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
        files={
            _CONFIG: "Hermes's settings",
            ".env": "Hermes's environment",
            "active_profile": "the profile that Hermes starts with",
            "hooks": "Hermes's hooks",
            "shell-hooks-allowlist.json": "the shell hooks that Hermes may run",
        },
        beginnings={f".{_CONFIG}.": "Hermes's settings"},
        plugins="plugins",
        profiles="profiles",
    ),
    home_variable=HOME_VARIABLE,
    home=hermes_home,
    version=_version,
    commands=_commands,
    tools=_tools,
    samples=_samples,
)
