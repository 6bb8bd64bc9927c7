"""What would leave our sight is refused, and what hides is unwrapped."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]

GUARD = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def guard(tool_name):
    return HookResult.block('no')

@register_hook('transform_user_input')
def words(user_message):
    __main__.seen.append(user_message)
    return HookResult.block('not that word') if 'forbidden' in user_message else None
"""
)


def test_a_runtime_whose_tools_cannot_be_judged_is_refused(hermes: HomeFactory) -> None:
    """A turn in `codex_app_server` is not started while a guard is on; without one it is."""
    home = hermes(None)
    home.extension("guarding", GUARD)
    told = play(
        home,
        """
        agent = stage.agent()
        started = []
        agent._run_codex_app_server_turn = lambda **_: started.append(1) or {"final_response": "x"}
        agent.api_mode = "codex_app_server"
        refused = stage.say(agent, "hello")
        from hermes_ext.hosts.hermes.adapter.state import state
        from hermes_ext import Runtime, register_hook
        @register_hook("before_llm_call")
        def harmless():
            return None
        state.runtimes = {home: Runtime([harmless]) for home in state.runtimes}
        agent.api_mode = "codex_app_server"
        allowed = stage.say(agent, "hello")
        report(refused=refused, started=len(started), allowed=allowed)
        """,
    )
    assert told["refused"]["blocked"] is True
    assert told["refused"]["blocked_by"] == "hermes-ext"
    assert "codex_app_server" in told["refused"]["final_response"]
    assert "guarding" in told["refused"]["final_response"]
    assert told["started"] == 1
    assert told["allowed"]["final_response"] == "x"


def test_a_primary_provider_that_comes_back_is_refused(hermes: HomeFactory) -> None:
    """A turn that becomes `codex_app_server` only after it began is refused at its last door."""
    home = hermes(None)
    home.extension("guarding", GUARD)
    told = play(
        home,
        """
        agent = stage.agent()
        def restore():
            agent.api_mode = "codex_app_server"
        agent._restore_primary_runtime = restore
        result = stage.say(agent, "hello")
        report(result=result, requests=len(stage.model.requests))
        """,
    )
    assert told["result"]["blocked_by"] == "hermes-ext"
    assert "codex_app_server" in told["result"]["final_response"]
    assert told["requests"] == 0


def test_input_in_a_marker_is_seen(hermes: HomeFactory) -> None:
    """Text that is hidden in Hermes's mixture-of-agents marker meets the input hook decoded."""
    pytest.importorskip("hermes_cli.moa_config", reason="this Hermes has no such marker")
    home = hermes(None)
    home.extension("guarding", GUARD)
    told = play(
        home,
        """
        from base64 import urlsafe_b64encode
        from hermes_cli.moa_config import MOA_MARKER_PREFIX
        hidden = json.dumps({"prompt": "a forbidden thing", "config": {}})
        marker = MOA_MARKER_PREFIX + urlsafe_b64encode(hidden.encode()).decode()
        result = stage.say(stage.agent(), marker)
        report(result=result, seen=seen, requests=len(stage.model.requests))
        """,
    )
    assert told["seen"] == ["a forbidden thing"]
    assert told["result"]["final_response"] == "not that word"
    assert told["requests"] == 0


def test_a_program_that_runs_its_own_tools_is_refused(hermes: HomeFactory) -> None:
    """`copilot-acp` writes files and runs tools by itself: no turn and no side request of it."""
    home = hermes()
    home.extension("guarding", GUARD)
    told = play(
        home,
        """
        from agent.copilot_acp_client import CopilotACPClient
        agent = stage.agent()
        agent.provider = 'copilot-acp'
        result = stage.say(agent, 'hello')
        client = CopilotACPClient.__new__(CopilotACPClient)
        try:
            client._run_prompt('hello', timeout_seconds=1)
            refused = ''
        except RuntimeError as error:
            refused = str(error)
        report(result=result, requests=len(stage.model.requests), refused=refused)
        """,
    )
    assert told["result"]["blocked_by"] == "hermes-ext"
    assert "copilot-acp" in told["result"]["final_response"]
    assert told["requests"] == 0
    assert "copilot-acp" in told["refused"]
