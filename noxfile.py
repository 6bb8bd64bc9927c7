"""The tests on each Hermes that is proven: `nox -l` lists them, `nox -s 'hermes(0.17.0)'` runs one.

`nox` by itself runs all but the newest release of PyPI, on which `make test` runs everything.

Each has an environment of its own. The forks are pinned to one version and are in no extra of the
package: they stand for Hermes's newer code, which PyPI does not have as `hermes-agent`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))
from tests.hermes.versions import HOSTS, NEWER, NEWEST, Host  # nox does not look beside this file

nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = [f"hermes({host.id})" for host in HOSTS if host is not NEWEST]
nox.options.sessions.append("neighbors")

# What pytest itself needs; what Hermes needs comes with its extras, in the versions that it pins.
TO_TEST_HOST = ("hypothesis", "pyte", "pytest>=8.2", "pytest-asyncio", "pytest-xdist")

# Other people's plugins, which guard or trace tools.
NEIGHBORS = (
    "agentsfence==0.2.0a9",
    "hermes-tenuo==0.1.4",
    "latitude-telemetry-hermes==0.3.1",
)

TESTS = {
    "all": ("tests/hermes", "tests/enforcement", "tests/canary", "tests/hosts"),
    "each_host": ("-m", "each_host"),
    "closed": ("tests/hosts/test_library.py",),
}


@nox.session
@nox.parametrize("host", [nox.param(host, id=host.id) for host in HOSTS])
def hermes(session: nox.Session, host: Host) -> None:
    """What is tested on this Hermes; pytest's own options go behind `--`."""
    session.install(host.requirement, "-e", ".", *TO_TEST_HOST)
    session.run("pytest", "-n", "3", "--dist", "worksteal", *TESTS[host.runs], *session.posargs)


@nox.session
def neighbors(session: nox.Session) -> None:
    """Beside other people's plugins, pinned, on the newest code of Hermes."""
    session.install(NEWER.requirement, "-e", ".", *TO_TEST_HOST, *NEIGHBORS)
    session.run("pytest", "tests/neighbors", *session.posargs)
