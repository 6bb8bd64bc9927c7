"""The tests on each Hermes and each Python that is proven: `nox -l` lists them.

`nox -s 'hermes(0.17.0)'` runs one. `nox` by itself runs all versions of Hermes but the newest
release of PyPI, on which `make test` runs everything; `nox -s python` runs what needs no Hermes on
newer Pythons. A Python that is not on the machine is skipped.

Each has an environment of its own. The forks are pinned to one version and are in no extra of the
package: they stand for Hermes's newer code, which PyPI does not have as `hermes-agent`.
"""

from __future__ import annotations

import shutil
import subprocess
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

# What agents run without a plan, in tests.
TRIED_THERE = ("mypy", "ruff")

# Those on which the package's own tests are run without Hermes, which not every Python takes. The
# classifiers of pyproject.toml name them, and the one of `make test`.
PYTHONS = ("3.12", "3.13")

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
    session.install(host.requirement, "-e", ".", *TO_TEST_HOST, *TRIED_THERE)
    session.run("pytest", "-n", "3", "--dist", "worksteal", *TESTS[host.runs], *session.posargs)


@nox.session
def neighbors(session: nox.Session) -> None:
    """Beside other people's plugins, pinned, on the newest code of Hermes."""
    session.install(NEWER.requirement, "-e", ".", *TO_TEST_HOST, *NEIGHBORS)
    session.run("pytest", "tests/neighbors", *session.posargs)


@nox.session(venv_backend="none")
@nox.parametrize("version", [nox.param(each, id=each) for each in PYTHONS])
def python(session: nox.Session, version: str) -> None:
    """The package's own tests, those without Hermes, on another Python."""
    interpreter = interpreter_of(version)
    if interpreter is None:
        session.skip(f"there is no Python {version} on this machine")
    place = Path(session.cache_dir, f"python-{version}")
    if not (place / "bin" / "python").exists():
        session.run(interpreter, "-m", "venv", str(place), external=True)
    own = str(place / "bin" / "python")
    packages = ("-e", ".", *TO_TEST_HOST, "hatchling", "markdown", "mypy", "pyright", "ruff")
    session.run(own, "-m", "pip", "install", "--quiet", *packages, external=True)
    # The clients of providers come with Hermes.
    ignored = ("tests/testing/test_model_server.py", "tests/hermes/test_plugin_folder.py")
    without = ("-m", "not hermes", *(f"--ignore={each}" for each in ignored))
    options = ("-n", "3", "--dist", "worksteal", *without, *session.posargs)
    session.run(own, "-m", "pytest", *options, external=True)


def interpreter_of(version: str) -> str | None:
    """The path of a Python of this version, or None.

    That a program has its name does not suffice: pyenv has one for each version that is installed,
    which fails where that version is not chosen.
    """
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), reverse=True)
    for place in (shutil.which(f"python{version}"), *map(str, kept)):
        if place is None:
            continue
        asked = [place, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        told = subprocess.run(asked, capture_output=True, text=True, check=False)
        if told.stdout.strip() == version:
            return place
    return None
