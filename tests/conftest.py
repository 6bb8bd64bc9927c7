"""Fixtures for tests that run the real Hermes Agent against a scripted model."""

from __future__ import annotations

import compileall
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.harness.home import HermesHome
from tests.harness.warm import warm_start
from tests.hermes.versions import expect, lacks_here

from hermes_ext.hosts.hermes.process.processes import Start
from hermes_ext.testing.model_server import Script, ScriptedModel

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

# How long a machine takes that does other things beside is no finding.
settings.register_profile("noisy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("noisy")

# A shell has what runs in its background ignore ctrl-c, and all children of that too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    # Processes that tests start write no bytecode; without any each would compile the package.
    if not hasattr(config, "workerinput"):
        for folder in ("src", "tests/harness", "tests/hermes"):
            compileall.compile_dir(config.rootpath / folder, quiet=2)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    expect(items, lacks_here())


@pytest.fixture(scope="session")
def hermes_start() -> Start:
    """How `hermes_session` starts Hermes."""
    return warm_start


@pytest.fixture
def model_factory() -> Iterator[ModelFactory]:
    """Starts `ScriptedModel(script, **options)` servers that end with the test."""
    with ExitStack() as running:

        def start(script: Script = (), **options: Any) -> ScriptedModel:
            return running.enter_context(ScriptedModel(script, **options))

        yield start


@pytest.fixture
def hermes(tmp_path: Path) -> HomeFactory:
    """Builds `HermesHome(model, **options)` installations, each in its own folder."""
    built: list[HermesHome] = []

    def build(model: ScriptedModel | None = None, **options: Any) -> HermesHome:
        base = tmp_path / f"hermes{len(built)}"
        built.append(HermesHome(base, model, **{"start": warm_start, **options}))
        return built[-1]

    return build
