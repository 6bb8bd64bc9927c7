"""The tests against each supported Hermes Agent: `nox` runs all, `nox -s 'hermes(0.17.0)'` one."""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"

HERMES = ("0.17.0", "0.18.2", "0.19.0")


@nox.session
@nox.parametrize("version", [nox.param(version, id=version) for version in HERMES])
def hermes(session: nox.Session, version: str) -> None:
    """Everything that starts the real Hermes, in its version."""
    session.install("-e", ".[dev]", f"hermes-agent=={version}")
    session.run("pytest", "-n", "2", "-m", "hermes", *session.posargs)
