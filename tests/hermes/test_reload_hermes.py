"""Extensions that change while the real Hermes runs: a person's edit counts, an agent's not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

RULE = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def no(tool_args):
    return HookResult.block({says!r})
"""


def test_one_gateway_that_goes_on(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """An edit between turns is in force at the next one; one that does not load keeps the old, with
    one line; and what the agent's own script writes is not taken, whatever a person edits then.
    """
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    calls = [write]
    results: list[str] = []

    def script(request: ModelRequest) -> Reply:
        last = request.messages[-1]
        if last["role"] == "tool":
            results.append(json.dumps(last["content"]))
            return Reply("Done.")
        return Reply(tool_calls=(calls[0],))

    # Hermes itself is not to ask about the script.
    home = hermes(model_factory(script), config={"approvals": {"mode": "off"}})
    folder = home.extension("rule", RULE.format(says="RULE ONE"))
    file = folder / "__init__.py"
    evil = home.base / "evil.py"
    evil.write_text(RULE.format(says="RULE OF THE AGENT"))
    (home.project / "work.sh").write_text(f"cp '{evil}' '{file}'\necho worked\n")
    with home.gateway(env={"TERMINAL_CWD": str(home.project)}) as gateway:

        def said() -> str:
            results.clear()
            gateway.ask("go on")
            assert results, gateway.output[-4000:]
            return results[-1]

        assert "RULE ONE" in said()
        file.write_text(RULE.format(says="RULE TWO"))
        assert "RULE TWO" in said()
        file.write_text("x = nothing\n")
        assert "RULE TWO" in said()
        assert "RULE TWO" in said()
        file.write_text(RULE.format(says="RULE THREE"))
        assert "RULE THREE" in said()
        # Not the terminal: 0.17 has none there.
        run = "import subprocess\nprint(subprocess.check_output(['sh', 'work.sh']))"
        calls[0] = ToolUse("execute_code", {"code": run})
        assert "worked" in said()
        assert "RULE OF THE AGENT" in file.read_text()
        calls[0] = write
        assert "RULE THREE" in said()
        home.extension("other", HEAD.replace("import __main__\n", "") + "x = 1\n")
        assert "RULE THREE" in said()
        output = gateway.output
    assert not (home.project / "a.txt").exists()
    lines = [line for line in output.splitlines() if line.startswith("hermes-ext: ")]
    assert len([line for line in lines if f"{file}:1: NameError" in line]) == 1
    (theirs,) = [line for line in lines if "changed while the agent was at work" in line]
    assert str(file) in theirs


def test_what_the_agent_left_running(hermes: HomeFactory) -> None:
    """While a process that it has started runs, what changes between turns may be its doing."""
    home = hermes()
    folder = home.extension("rule", RULE.format(says="RULE ONE"))
    facts = play(
        home,
        f"""
        from tools.process_registry import process_registry
        file = Path({str(folder / "__init__.py")!r})
        agent = stage.agent(enabled_toolsets=['file', 'terminal'])
        rule = lambda: stage.use(agent, write('a.txt'))[0]
        said = [rule()]
        file.write_text(file.read_text().replace('ONE', 'TWO'))
        said.append(rule())
        stage.use(agent, ToolUse('terminal', {{'command': 'sleep 600', 'background': True}}))
        running = process_registry.count_running()
        file.write_text(file.read_text().replace('TWO', 'OF THE AGENT'))
        process_registry.kill_all()
        said.append(rule())
        report(said=said, running=running)
        """,
    )
    assert facts["running"] == 1
    assert ["RULE ONE" in facts["said"][0], "RULE TWO" in facts["said"][1]] == [True, True]
    assert "RULE TWO" in facts["said"][2]
