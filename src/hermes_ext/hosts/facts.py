"""What the package needs to know of a host without running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes_ext._values import frozen

if TYPE_CHECKING:
    import re
    from pathlib import Path

    from hermes_ext.effects import ToolTable


@frozen
class HomeLayout:
    """What lies in a host's home, apart from what this package puts there.

    Attributes:
        files: those that decide which rules hold, and what each is.
        beginnings: the same for files of whose name only the beginning is fixed.
        plugins: the folder of plugins, which may be links.
        profiles: the folder of further homes.
    """

    files: Mapping[str, str]
    beginnings: Mapping[str, str]
    plugins: str
    profiles: str


@frozen(eq=False)
class HostCommands:
    """How the rules are changed in a host: by its commands, its variables, its code.

    Attributes:
        program: what a person types to start it.
        package: the import package that `python -m` runs.
        programs: all names that run it.
        sections: its commands that have commands of their own which change rules.
        changes: those commands.
        change: says which change a command with these words makes, None if it makes none.
        tells_home: whether a command with these words prints where the settings are.
        conversation: finds, in a text, a command that a person would type to.
        servers: its modules that take a person's slash commands.
        code: finds, in a text, code that changes settings.
        code_words: `code` finds nothing in a text that has none of these.
        home_words: with these code asks for the home.
        switches: variables that turn rules off.
    """

    program: str
    package: str
    programs: frozenset[str]
    sections: tuple[str, ...]
    changes: frozenset[str]
    change: Callable[[Sequence[str | None]], str | None]
    tells_home: Callable[[Sequence[str | None]], bool]
    conversation: re.Pattern[str]
    servers: frozenset[str]
    code: re.Pattern[str]
    code_words: tuple[str, ...]
    home_words: tuple[str, ...]
    switches: frozenset[str]


@frozen(eq=False)
class HostFacts:
    """The facts of one host.

    Attributes:
        name: what people call the host, for messages.
        distribution: its distribution on PyPI.
        import_name: the module under which its extensions may import the public names of
            `hermes_ext`.
        config_file: the file in its home that has the section `extensions`.
        layout: what else lies in its home.
        home_variable: the environment variable that says where its home is.
        home: finds its home, absolute.
        version: finds its version, None where it is not installed.
        commands: how rules are changed in it; asked when the first call is judged.
        tools: its tools; asked when they first matter.
        samples: events that are about its tools, by hook, each by the names of its arguments.
    """

    name: str
    distribution: str
    import_name: str
    config_file: str
    layout: HomeLayout
    home_variable: str
    home: Callable[[], Path]
    version: Callable[[], str | None]
    commands: Callable[[], HostCommands]
    tools: Callable[[], ToolTable]
    samples: Callable[[], Mapping[str, Sequence[Mapping[str, Any]]]]
