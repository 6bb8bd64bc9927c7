"""In the real Hermes: what the model is told, what `why` says and what the log has are one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.harness.home import HermesHome

from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

HEAD = "from hermes_ext import HookResult, register_hook\n\n"
ASKS = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def asks(tool_args):
    return HookResult.ask('ASK REASON')
"""
)
BLOCKS = (
    HEAD
    + """
@register_hook('transform_user_input')
def hides(user_message):
    return HookResult.rewrite(user_message.replace('Ananas4711', '[withheld]'))

@register_hook('intercept_tool_call', guard=True)
def blocks(tool_args, config):
    if config['word'] in tool_args['path']:
        return HookResult.block('BLOCK REASON', metadata={'setting': 'word'})
"""
)
MANIFEST = {"config": {"properties": {"word": {"type": "string", "default": "b"}}}}


def why(home: HermesHome, *argv: str) -> dict[str, Any]:
    run = home.cli("extensions", "why", *argv, "--json").check()
    (told,) = json.loads(run.stdout)["decisions"]
    return dict(told)


def test_one_question_and_one_block(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Of two guards the one that blocked is named everywhere; the file that was to be read too."""
    model = model_factory([Reply(tool_calls=(ToolUse("read_file", {"path": "b.txt"}),)), Reply()])
    home = hermes(model, extensions={"b_blocks": {"word": "b.txt"}})
    home.extension("a_asks", ASKS)
    home.extension("b_blocks", BLOCKS, manifest=MANIFEST)
    home.oneshot("remember Ananas4711").check()

    [(_, result)] = model.main_requests[1].tool_results
    assert json.loads(result) == {"error": "[b_blocks] BLOCK REASON"}
    told = why(home, "last")
    assert told["says"] == "b_blocks blocked read_file"
    assert (told["handler"], told["reason"]) == ("blocks", "BLOCK REASON")
    assert told["file"] == str(home.home / "extensions" / "b_blocks" / "__init__.py")
    assert told["line"] == BLOCKS.splitlines().index("def blocks(tool_args, config):")
    (setting,) = told["settings"]
    assert (setting["key"], setting["value"]) == ("extensions.b_blocks.word", "b.txt")
    assert setting["file"].startswith(f"{home.config_path}:")
    assert [each["extension"] for each in told["asked"]] == ["a_asks"]
    assert not any("a_asks" in command for command in told["to_change"])

    shown = home.cli("extensions", "log").check().stdout
    assert "b.txt — b_blocks: BLOCK REASON" in " ".join(shown.split())
    assert '[10 characters removed], added "[withheld]"' in " ".join(shown.split())
    assert "Ananas" not in (home.home / "logs" / "extensions.jsonl").read_text()


def test_what_is_required_and_missing(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """The refusal is in the log: by the runtime, with what is missing and what requires it."""
    model = model_factory([Reply(tool_calls=(ToolUse("read_file", {"path": "b.txt"}),)), Reply()])
    home = hermes(model, extensions={"required": ["absent"]})
    home.oneshot("go on")

    [(_, result)] = model.main_requests[1].tool_results
    assert json.loads(result)["error"].startswith("[hermes-ext] Tool calls are refused because")
    told = why(home)
    assert told["says"] == (
        "hermes-ext blocked read_file, because absent is required and not loaded"
    )
    assert told["decision"]["missing"] == ["absent"]
    assert told["decision"]["call"] == "b.txt"
    (setting,) = told["settings"]
    assert (setting["key"], setting["value"]) == ("extensions.required", ["absent"])
    assert f"{told['file']}:{told['line']}" == setting["file"]
    assert told["to_change"] == ["hermes extensions doctor"]
    lines = json.loads(home.cli("extensions", "log", "--json").check().stdout)["lines"]
    assert [line["action"] for line in lines] == ["block"]
