"""The plugin attaches whatever is imported first, and is not there while nothing is on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.harness import in_process
from tests.harness.compare import files, plain
from tests.harness.home import HermesHome

from hermes_ext.hosts.hermes.process.processes import cold_start
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

RULES = """\
from hermes_ext import HookResult, register_hook


@register_hook('transform_user_input')
def typed(user_message):
    return HookResult.rewrite(user_message + ' giraffe')


@register_hook('before_llm_call')
def request():
    return HookResult.inject_system('RULE-ONE applies.')


@register_hook('intercept_tool_call', guard=True)
def tree(tool_name, tool_args):
    if tool_args.get('path') == 'b.txt':
        return HookResult.block('not b')


@register_hook('transform_tool_result')
def mask(result):
    return HookResult.rewrite(result + ' SEEN')
"""


def write(name: str) -> ToolUse:
    return ToolUse("write_file", {"path": name, "content": "x"})


@pytest.mark.parametrize("first", ["run_agent", "model_tools", "tools.approval", "hermes_cli.main"])
def test_first_import(model_factory: ModelFactory, hermes: HomeFactory, first: str) -> None:
    """All four hooks are held in a program that imports this module of Hermes before all others."""
    model = model_factory([Reply(tool_calls=(write("a.txt"), write("b.txt"))), Reply("Done.")])
    home = hermes(model, start=cold_start)
    home.extension("rules", RULES)
    home.python(
        f"import {first}\n"
        + in_process.PRELUDE
        + "assert new_agent().run_conversation('hello')['final_response'] == 'Done.'\n"
        + "from hermes_ext.hosts.hermes.adapter.wraps.attaching import standings\n"
        + "import agent.copilot_acp_client, agent.title_generator, cli\n"
        + "import gateway.platforms.api_server, gateway.run\n"
        # What newer Hermes alone has, or imports for a pseudo terminal, may wait.
        + "found = [e for e in standings() if not (e.seam.newer and e.status == 'waiting')]\n"
        + "wrong = {str(e.seam): e.status for e in found if e.status != 'attached'}\n"
        + "assert not wrong, wrong\n"
    ).check()
    first_request, second = model.main_requests
    assert first_request.last_user == "hello giraffe"
    assert second.system.endswith("RULE-ONE applies.")
    allowed, blocked = [text for _, text in second.tool_results]
    assert allowed.endswith(" SEEN")
    assert json.loads(blocked) == {"error": "[rules] not b"}
    assert [path.name for path in home.project.iterdir()] == ["a.txt"]


def test_commands(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """Commands that start no agent work with the plugin on, and `extensions` is one of them."""
    home = hermes(model_factory([]), start=cold_start)
    home.extension("rules", RULES)
    assert "Hermes" in home.cli("--version").check().stdout
    assert "rules" in home.cli("extensions", "list").check().stdout


@pytest.mark.parametrize("command", [("-z",), ("chat", "-q")], ids=["oneshot", "chat"])
def test_nothing_on(
    model_factory: ModelFactory, hermes: HomeFactory, command: tuple[str, ...]
) -> None:
    """With no extension on, a session with tools and approvals is the same with and without us."""
    told: list[Any] = []
    for plugins in ((), ("hermes-ext",)):
        model = model_factory(
            [
                Reply("Writing.", (write("a.txt"), write("c.txt"))),
                Reply(tool_calls=(ToolUse("read_file", {"path": "a.txt", "limit": "5"}),)),
                # A command that Hermes asks about: `-z` approves it, `chat -q` has nobody to ask.
                Reply(tool_calls=(ToolUse("terminal", {"command": "rm -rf old && ls"}),)),
                Reply(tool_calls=(ToolUse("terminal", {"command": 'echo "hi"'}),)),
                Reply("Done."),
            ]
        )
        home = hermes(model, plugins=plugins, start=cold_start)
        (home.project / "old").mkdir()
        (home.project / "old" / "b.txt").write_text("b")
        run = home.cli(*command, "work").check()
        assert model.exhausted == 0
        told.append(
            {
                "requests": [plain(home, request.body) for request in model.requests],
                "others": model.other_paths,
                "stdout": plain(home, run.stdout),
                "stderr": plain(home, run.stderr),
                "project": files(home.project),
                "home": {plain(home, str(p.relative_to(home.home))) for p in home.saved_text()},
                "rows": plain(home, home.session_rows()),
            }
        )
    without, with_us = told
    assert "a.txt" in without["project"]
    assert ("old/b.txt" in without["project"]) == (command[0] == "chat")
    assert with_us == without
