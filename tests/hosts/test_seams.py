"""What of Hermes is wrapped: each function once, its kind kept, and said where it cannot be."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from tests.harness.home import HermesHome

from hermes_ext.hosts.hermes.seams import SEAMS, Seam, _status, _wrap

HomeFactory = Callable[..., HermesHome]


def doubled(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return 2 * original(*args, **kwargs)


class Agent:
    def method(self, number: int) -> int:
        """The method's own words."""
        return number

    @staticmethod
    def static(number: int) -> int:
        return number


@pytest.fixture
def host() -> ModuleType:
    module = ModuleType("a_host")
    module.Agent = type("Agent", (), dict(vars(Agent)))
    module.function = lambda number: number
    return module


@pytest.mark.parametrize("name", ["function", "Agent.method", "Agent.static"])
def test_wrapped_once(host: ModuleType, name: str) -> None:
    """Wrapping again changes nothing, and what is wrapped is called as before."""
    seam = Seam("a_host", name, doubled)
    for _ in range(3):
        _wrap(host, seam)
    assert _status(host, seam) == "attached"
    agent = host.Agent()
    call = {"function": host.function, "Agent.method": agent.method, "Agent.static": agent.static}
    assert call[name](3) == 6
    if name == "Agent.static":
        assert host.Agent.static(3) == 6
    if name == "Agent.method":
        assert host.Agent.method.__doc__ == "The method's own words."
        assert "number" in inspect.signature(host.Agent.method).parameters


def test_wrapped_by_somebody_else_too(host: ModuleType) -> None:
    """Another's wrap around ours, made the usual way, leaves us attached."""
    import functools

    seam = Seam("a_host", "function", doubled)
    _wrap(host, seam)
    ours = host.function
    host.function = functools.wraps(ours)(lambda number: ours(number) + 1)
    assert _status(host, seam) == "attached"
    assert host.function(3) == 7


def test_wrapped_by_another_in_a_way_of_its_own(host: ModuleType) -> None:
    """A plugin's wrap that hides ours does not make us wrap once more."""
    seam = Seam("a_host", "function", doubled)
    _wrap(host, seam)
    ours = host.function
    host.function = lambda number: ours(number) + 1
    _wrap(host, seam)
    assert host.function(3) == 7


def test_a_name_that_is_missing(host: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """A function that this Hermes does not have is named in a warning, or noted if not needed."""
    with caplog.at_level(logging.INFO, "hermes_ext"):
        _wrap(host, Seam("a_host", "Gone.method", doubled))
        _wrap(host, Seam("a_host", "gone", doubled, needed=False))
    assert [(record.levelname, "a_host" in record.message) for record in caplog.records] == [
        ("WARNING", True),
        ("INFO", True),
    ]
    assert _status(host, Seam("a_host", "gone", doubled)) == "missing"


def test_the_older_of_two_names(host: ModuleType) -> None:
    """Where the newer name is there, the older one is left alone."""
    _wrap(host, Seam("a_host", "function", doubled, instead_of="Agent"))
    assert host.function(3) == 3
    _wrap(host, Seam("a_host", "function", doubled, instead_of="newer"))
    assert host.function(3) == 6


@pytest.mark.hermes
@pytest.mark.parametrize(
    "first", ["run_agent", "model_tools", "tools.registry", "hermes_cli.plugins", "tools.approval"]
)
def test_whatever_is_imported_first(hermes: HomeFactory, first: str) -> None:
    """Every seam of the installed Hermes is wrapped, once, whichever of its modules comes first."""
    home = hermes(extensions={"enabled": True})
    run = home.python(
        f"import {first}\n"
        """
import json, importlib, sys
from hermes_cli.plugins import discover_plugins
discover_plugins()
import run_agent, hermes_cli.main
from hermes_ext.hosts.hermes.seams import SEAMS, _MARK, _owner, attach, seam_report
for seam in SEAMS:
    importlib.import_module(seam.module)
attach()
discover_plugins(force=True)
discover_plugins(force=True)
wraps = {}
for seam in SEAMS:
    owner, name = _owner(sys.modules[seam.module], seam)
    found, depth = getattr(owner, name, None), 0
    while found is not None:
        depth += getattr(found, _MARK, None) == seam.name and '__wrapped__' in vars(found)
        found = getattr(found, '__wrapped__', None)
    wraps[str(seam)] = depth
print(json.dumps([seam_report(), wraps]))
"""
    ).check()
    report, wraps = json.loads(run.stdout.splitlines()[-1])
    needed = {str(seam) for seam in SEAMS if seam.needed}
    assert {name for name, status in report.items() if status != "attached"} & needed == set()
    assert {wraps[name] for name, status in report.items() if status == "attached"} == {1}


@pytest.mark.hermes
def test_switched_off(hermes: HomeFactory) -> None:
    """With HERMES_EXT_OFF set nothing at all is wrapped or watched."""
    home = hermes(extra_env={"HERMES_EXT_OFF": "1"})
    run = home.python(
        """
import sys, run_agent
from hermes_cli.plugins import discover_plugins
discover_plugins()
print([name for name in sys.modules if name.startswith('hermes_ext.hosts.hermes.')])
print(hasattr(run_agent.AIAgent.run_conversation, '__hermes_ext_seam__'))
print([finder for finder in sys.meta_path if 'hermes_ext' in type(finder).__module__])
"""
    ).check()
    modules, wrapped, finders = run.stdout.splitlines()[-3:]
    assert modules == "['hermes_ext.hosts.hermes.plugin']"
    assert (wrapped, finders) == ("False", "[]")
