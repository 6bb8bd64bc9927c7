"""What of Hermes is wrapped: each function once, its kind kept, and said where it cannot be."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from tests.harness.home import HermesHome

from hermes_ext.hosts.hermes.adapter.state import held, state
from hermes_ext.hosts.hermes.adapter.wraps.attaching import _wrap, standing_of
from hermes_ext.hosts.hermes.adapter.wraps.seams import Seam

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

    @classmethod
    def made(cls, number: int) -> int:
        return number


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("a_host")
    module.Agent = type("Agent", (), dict(vars(Agent)))
    module.function = lambda number: number
    monkeypatch.setitem(sys.modules, "a_host", module)
    return module


@pytest.mark.parametrize("name", ["function", "Agent.method", "Agent.static", "Agent.made"])
def test_wrapped_once(host: ModuleType, name: str) -> None:
    """Wrapping again changes nothing, and what is wrapped is called as before."""
    seam = Seam("a_host", name, doubled)
    for _ in range(3):
        _wrap(host, seam)
    assert standing_of(seam).status == "attached"
    agent = host.Agent()
    call = {"function": host.function, "Agent.method": agent.method, "Agent.static": agent.static}
    call["Agent.made"] = host.Agent.made
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
    assert standing_of(seam).status == "attached"
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
    """A function that this Hermes does not have is noted, unless only a newer one has it."""
    with caplog.at_level(logging.INFO, "hermes_ext"):
        _wrap(host, Seam("a_host", "Gone.method", doubled))
        _wrap(host, Seam("a_host", "gone", doubled, newer=True))
    assert [record.message for record in caplog.records] == [
        "this Hermes has no a_host.Gone.method, so hermes-ext cannot attach there"
    ]
    assert standing_of(Seam("a_host", "gone", doubled)).status == "missing"


def test_what_another_hermes_has_instead(host: ModuleType) -> None:
    """Where the other name is there, this one is left alone."""
    _wrap(host, Seam("a_host", "function", doubled, unless="a_host:Agent"))
    assert host.function(3) == 3
    _wrap(host, Seam("a_host", "function", doubled, unless="a_host:newer"))
    assert host.function(3) == 6


class Mixin:
    def inherited(self, number: int) -> int:
        return number


def test_wrapped_where_it_is_inherited(host: ModuleType) -> None:
    """A method that the class inherits is wrapped for the class, and its base is left alone."""
    host.Agent = type("Agent", (Mixin,), {})
    seam = Seam("a_host", "Agent.inherited", doubled)
    _wrap(host, seam)
    assert standing_of(seam).status == "attached"
    assert (host.Agent().inherited(3), Mixin().inherited(3)) == (6, 3)


async def asynchronous(number: int) -> int:
    return number


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (asynchronous, "is asynchronous"),
        (lambda text, number: number, "takes (text, number)"),
        (lambda: 3, "takes ()"),
        (lambda *args: args[0], "does not say which argument is number"),
        (3, "is not a function"),
    ],
    ids=["coroutine", "other order", "fewer", "forwarded", "not callable"],
)
def test_what_the_wrapper_does_not_know(host: ModuleType, function: Any, fault: str) -> None:
    """A function of another shape is left as it is, and reported with what is wrong."""
    host.function = function
    seam = Seam("a_host", "function", doubled, takes=("number",), by_name=True)
    _wrap(host, seam)
    found = standing_of(seam)
    assert (host.function, found.status, found.lost) == (function, "unfit", True)
    assert fault in str(found)


def test_more_parameters(host: ModuleType) -> None:
    """Parameters behind those that the wrapper knows are passed on."""
    host.function = lambda number, *, more=0: number + more
    _wrap(host, Seam("a_host", "function", doubled, takes=("number",)))
    assert host.function(3, more=1) == 8


def test_taken_away(host: ModuleType) -> None:
    """A function in whose place another one stands that never calls ours is lost."""
    seam = Seam("a_host", "function", doubled)
    _wrap(host, seam)
    host.function = lambda number: number
    found = standing_of(seam)
    assert (found.status, found.lost) == ("taken", True)
    assert "a_host.function was taken by" in str(found)


def test_a_copy_of_our_attributes(host: ModuleType) -> None:
    """What carries our attributes (`functools.wraps`) and does not call our wrap has taken it."""
    import functools

    seam = Seam("a_host", "function", doubled)
    _wrap(host, seam)
    host.function = functools.wraps(host.function)(lambda number: number)
    assert standing_of(seam).status == "taken"


def test_an_object_that_answers_nothing(host: ModuleType) -> None:
    """A stranger's object that raises at every question is reported, as any other."""

    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __call__(self, number: int) -> int:
            return number

    seam = Seam("a_host", "function", doubled)
    _wrap(host, seam)
    host.function = Hostile()
    found = standing_of(seam)
    assert found.status == "taken"
    assert f"was taken by {__name__}" in str(found)


def _in_a_closure(ours: Callable[..., Any]) -> Callable[..., Any]:
    return lambda number: ours(number) + 1


def _in_a_default(ours: Callable[..., Any]) -> Callable[..., Any]:
    def call(number: int, kept: Callable[..., Any] = ours) -> int:
        return int(kept(number)) + 1

    return call


def _in_an_object(ours: Callable[..., Any]) -> Callable[..., Any]:
    class Callee:
        def __init__(self) -> None:
            self.kept = {"original": ours}

        def __call__(self, number: int) -> int:
            return int(self.kept["original"](number)) + 1

    return Callee()


def _in_a_method(ours: Callable[..., Any]) -> Callable[..., Any]:
    class Keeper:
        kept = staticmethod(ours)

        def call(self, number: int) -> int:
            return int(self.kept(number)) + 1

    return Keeper().call


def _in_a_partial(ours: Callable[..., Any]) -> Callable[..., Any]:
    import functools

    return functools.partial(lambda kept, number: kept(number) + 1, ours)


_KEPT: dict[str, Callable[..., Any]] = {}


def _in_the_module(ours: Callable[..., Any]) -> Callable[..., Any]:
    _KEPT["ours"] = ours
    return lambda number: _KEPT["ours"](number) + 1


def _in_an_inner_function(ours: Callable[..., Any]) -> Callable[..., Any]:
    _KEPT["ours"] = ours

    def call(number: int) -> int:
        def inner() -> int:
            return int(_KEPT["ours"](number))

        return inner() + 1

    return call


def _in_slots(ours: Callable[..., Any]) -> Callable[..., Any]:
    class Callee:
        __slots__ = ("kept",)

        def __call__(self, number: int) -> int:
            return int(self.kept(number)) + 1

    callee = Callee()
    callee.kept = ours  # type: ignore[attr-defined]
    return callee


def _in_another_module(ours: Callable[..., Any]) -> Callable[..., Any]:
    saved = ModuleType("a_host_saved")
    saved.original = ours
    sys.modules["a_host"].saved = saved

    def call(number: int) -> int:
        import a_host  # type: ignore[import-not-found]

        return int(a_host.saved.original(number)) + 1

    return call


def _in_the_host(ours: Callable[..., Any]) -> Callable[..., Any]:
    sys.modules["a_host"].original = ours
    return lambda number: sys.modules["a_host"].original(number) + 1


@pytest.mark.parametrize(
    "around",
    [
        _in_a_closure,
        _in_a_default,
        _in_an_object,
        _in_a_method,
        _in_a_partial,
        _in_the_module,
        _in_an_inner_function,
        _in_slots,
        _in_another_module,
        _in_the_host,
    ],
)
def test_wherever_another_keeps_ours(
    host: ModuleType, around: Callable[..., Callable[..., Any]]
) -> None:
    """A plugin that wraps our wrap has not taken it, however it keeps what it wraps."""
    seam = Seam("a_host", "function", doubled)
    _wrap(host, seam)
    host.function = around(host.function)
    assert host.function(3) == 7
    assert standing_of(seam).status == "attached"


def test_a_wrap_for_confined_calls(host: ModuleType) -> None:
    """Its wrapper is called in a confined call, and in no other."""
    seam = Seam("a_host", "function", doubled, confines=True)
    _wrap(host, seam)
    assert standing_of(seam).status == "attached"
    assert host.function(3) == 3
    with held(state.confined, object()):
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
from hermes_ext.hosts.hermes.adapter.wraps.attaching import _MARK, _owner, attach, standings
from hermes_ext.hosts.hermes.adapter.wraps.seams import SEAMS
for seam in SEAMS:
    try:
        importlib.import_module(seam.module)
    except ImportError:
        assert seam.newer, seam
attach()
discover_plugins(force=True)
discover_plugins(force=True)
wraps = {}
for seam in SEAMS:
    if seam.module not in sys.modules:
        continue
    owner, name = _owner(sys.modules[seam.module], seam)
    found, depth = getattr(owner, name, None), 0
    while found is not None:
        depth += getattr(found, _MARK, None) == seam.name and '__wrapped__' in vars(found)
        found = getattr(found, '__wrapped__', None)
    wraps[str(seam)] = depth
found = [(str(each.seam), each.status, each.seam.needed) for each in standings()]
print(json.dumps([found, wraps]))
"""
    ).check()
    found, wraps = json.loads(run.stdout.splitlines()[-1])
    assert [name for name, status, needed in found if needed and status != "attached"] == []
    assert {wraps[name] for name, status, _ in found if status == "attached"} == {1}


@pytest.mark.hermes
def test_switched_off(hermes: HomeFactory) -> None:
    """With HERMES_EXT_OFF set nothing at all is wrapped or watched."""
    home = hermes(extra_env={"HERMES_EXT_OFF": "1"})
    run = home.python(
        """
import sys, run_agent
from hermes_cli.plugins import discover_plugins
discover_plugins()
print(sorted(name for name in sys.modules if name.startswith('hermes_ext.hosts.hermes.')))
print(hasattr(run_agent.AIAgent.run_conversation, '__hermes_ext_seam__'))
print([finder for finder in sys.meta_path if 'hermes_ext' in type(finder).__module__])
"""
    ).check()
    modules, wrapped, finders = run.stdout.splitlines()[-3:]
    facts = ["facts", "facts.hermes", "facts.names"]
    loaded = ["adapter", "adapter.plugin_host", *facts, "plugin"]
    assert ast.literal_eval(modules) == [f"hermes_ext.hosts.hermes.{name}" for name in loaded]
    assert (wrapped, finders) == ("False", "[]")
