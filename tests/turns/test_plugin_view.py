"""`Runtime.plugin_manager`: who is in force and what each chain came to, to look at and no more."""

from __future__ import annotations

from pathlib import Path

import pluggy
import pytest

from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext.hooks.source import OWN

RULE = """\
from hermes_ext import HookResult, register_command, register_hook

@register_hook("intercept_tool_call", guard=True)
def refuse(tool_name):
    return HookResult.block("no")
"""
COMMAND = """\
from hermes_ext import register_command

@register_command("plan", help="the plan")
def plan(): return "none"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "extensions").mkdir()
    (tmp_path / "extensions/no-deploys.py").write_text(RULE)
    (tmp_path / "extensions/planning.py").write_text(COMMAND)
    return tmp_path


def names(runtime: Runtime) -> list[str]:
    return [name for name, _ in runtime.plugin_manager.list_name_plugin()]


def test_it_lists_the_extensions_in_force(home: Path) -> None:
    """Each once, with those that have only commands and the package's own guard."""
    runtime = Runtime.from_config(home=home, cwd=home)
    view = runtime.plugin_manager
    assert sorted(names(runtime)) == sorted(["no-deploys", "planning", OWN])
    plugin = view.get_plugin("no-deploys")
    assert plugin is not None
    assert (plugin.name, plugin.hooks) == ("no-deploys", ("intercept_tool_call",))
    assert (view.get_name(plugin), view.is_registered(plugin)) == ("no-deploys", True)
    assert view.has_plugin("planning")
    assert not view.has_plugin("other")
    assert plugin in view.get_plugins()
    assert view.project_name == "hermes_ext"


def test_it_follows_a_reload(home: Path) -> None:
    """What came is there and what went is not, in a view that was taken before."""
    runtime = Runtime.from_config(home=home, cwd=home)
    view = runtime.plugin_manager
    (home / "extensions/planning.py").unlink()
    (home / "extensions/late.py").write_text(RULE)
    with runtime.turn(session_id="s"):
        pass
    assert {name for name, _ in view.list_name_plugin()} == {"late", "no-deploys", OWN}


def test_nobody_can_unregister_through_it(home: Path) -> None:
    """Of what changes a plugin manager it has nothing, and its lists are copies."""
    runtime = Runtime.from_config(home=home, cwd=home)
    view = runtime.plugin_manager
    for change in ("register", "unregister", "set_blocked", "unblock", "hook"):
        assert hasattr(pluggy.PluginManager("x"), change)
        assert not hasattr(view, change)
    with pytest.raises(AttributeError):
        view.list_name_plugin = list  # type: ignore[method-assign, assignment]
    view.list_name_plugin().clear()
    view.get_plugins().clear()
    assert view.has_plugin("no-deploys")
    with runtime.turn(session_id="s") as turn:
        assert turn.intercept_tool_call("terminal", {}).blocked


def test_a_trace_sees_each_chain() -> None:
    """Also one in which everyone passed, until it is ended; what it raises changes nothing."""

    @register_hook("transform_user_input")
    def shout(user_message: str) -> object:
        return HookResult.rewrite(user_message.upper()) if user_message == "a" else None

    runtime = Runtime([shout])
    seen: list[tuple[str, object, object]] = []
    undo = runtime.plugin_manager.trace(lambda *told: seen.append(told))

    def failing(*_told: object) -> None:
        raise ValueError("a listener's own")

    runtime.plugin_manager.trace(failing)
    with runtime.turn(session_id="s") as turn:
        first = turn.transform_user_input("a")
        second = turn.transform_user_input("b")
        undo()
        turn.transform_user_input("c")
    assert [(hook, event.text, outcome) for hook, event, outcome in seen] == [  # type: ignore[attr-defined]
        ("transform_user_input", "a", first),
        ("transform_user_input", "b", second),
    ]
    assert first.value == "A"
