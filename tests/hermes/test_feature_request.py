"""The lines of the feature request run as they stand, in an extension of the real Hermes."""

from __future__ import annotations

import json
from collections.abc import Callable
from textwrap import indent

import pytest
from tests.harness.home import HermesHome

from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

# What the request's lines call and leave to the reader.
GIVEN = """\
import pathlib

from agent.extension_hooks import HookResult


def is_implementation_request(text):
    return text.startswith(('fix', 'add', 'implement'))


def has_valid_plan():
    return pathlib.Path('plans/active/plan.md').exists()


"""

INPUT_HOOK = """\
from agent.extension_hooks import register_hook

@register_hook("transform_user_input", priority=10)
def my_input_hook(user_message, **kwargs):
    if is_implementation_request(user_message) and not has_valid_plan():
        return HookResult("rewrite", f"/start-feature {user_message}")
    return HookResult("pass")
"""

INPUT_HOOK_AGAIN = """\
# Example hook handler for transform_user_input
from agent.extension_hooks import register_hook, HookResult

@register_hook("transform_user_input", priority=10)
def my_input_hook(user_message, **kwargs):
    if is_implementation_request(user_message) and not has_valid_plan():
        return HookResult("rewrite", f"/start-feature {user_message}")
    return HookResult("pass")
"""

TURN_STATE = """\
from agent.extension_hooks import get_turn_state

state = get_turn_state(session_id)
state["plan_required"] = True
state["authorized_paths"] = ["plans/", "handoff/"]
"""

CONFIG = """\
# ~/.hermes/config.yaml
extensions:
  enabled: true
  global_dir: ~/.hermes/extensions/
  project_local: true  # load from .hermes/extensions/ in cwd

  # Per-extension config (optional)
  workflow-guard:
    plan_path: plans/active/plan.md
    blocked_tools: [write, edit, patch]
    allowed_paths: [plans/, handoff/]
"""

# The other two hooks with the request's signatures and results.
GUARD = f"""
@register_hook("before_llm_call")
def before_llm_call(messages: list, system_prompt: str, session_id: str, **kwargs) -> HookResult:
{indent(TURN_STATE, "    ")}
    return HookResult("inject_system", "do not implement code yet")


@register_hook("intercept_tool_call")
def intercept_tool_call(
    tool_name: str, tool_args: dict, session_id: str, task_id: str, config, **kwargs
) -> HookResult:
    state = get_turn_state(session_id)
    if state["plan_required"] and tool_name in config["blocked_tools"]:
        paths = ', '.join(state["authorized_paths"])
        return HookResult("block", f"No valid plan. Write to {{paths}} only.")
    return HookResult("pass")


from agent.extension_hooks import get_turn_state
"""


@pytest.mark.parametrize("input_hook", [INPUT_HOOK, INPUT_HOOK_AGAIN], ids=["first", "again"])
def test_as_written(model_factory: ModelFactory, hermes: HomeFactory, input_hook: str) -> None:
    """Hook, turn state, results and configuration do what the request says they do."""
    edit = {"mode": "replace", "path": "a.txt", "old_string": "bug", "new_string": "feature"}
    plan = {"path": "plans/active/plan.md", "content": "# Plan\n"}
    model = model_factory(
        [
            Reply(tool_calls=(ToolUse("patch", edit), ToolUse("write_file", plan))),
            Reply("Planned."),
            Reply("There is a plan."),
        ]
    )
    home = hermes(model)
    (home.project / "a.txt").write_text("bug\n")
    settings = "".join(f"{key}: {json.dumps(value)}\n" for key, value in home.config.items())
    home.config_path.write_text(settings + CONFIG)
    folder = home.user / ".hermes" / "extensions" / "workflow-guard"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(GIVEN + input_hook + GUARD)

    assert home.oneshot("fix the bug").check().stdout == "Planned.\n"
    first, second = model.main_requests
    assert first.last_user == "/start-feature fix the bug"
    assert first.system.endswith("\n\ndo not implement code yet")
    refused, planned = [json.loads(text) for _, text in second.tool_results]
    assert refused == {"error": "[workflow-guard] No valid plan. Write to plans/, handoff/ only."}
    assert "error" not in planned
    assert (home.project / "a.txt").read_text() == "bug\n"

    assert home.oneshot("fix the bug").check().stdout == "There is a plan.\n"
    assert model.main_requests[2].last_user == "fix the bug"
