"""Other plugins, shell hooks and skills go on as before beside us."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.compare import files, plain
from tests.harness.home import HermesHome
from tests.hermes.versions import NEWER, installed

from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

PASSING = """\
from hermes_ext import HookResult, register_hook


@register_hook('transform_user_input')
def typed(user_message):
    return None


@register_hook('before_llm_call')
def request(messages, system_prompt):
    return HookResult.pass_()


@register_hook('intercept_tool_call')
def call(tool_name, tool_args):
    return HookResult('pass')


@register_hook('intercept_tool_call', guard=True)
def guard(**kwargs):
    return None


@register_hook('transform_tool_result')
def result(result):
    return None
"""

PLUGIN = """\
import json
import pathlib

SEEN = pathlib.Path({seen!r})


def record(name, told):
    with SEEN.open('a') as file:
        file.write(json.dumps([name, told], default=str, sort_keys=True) + '\\n')


def on_tool_request(args, tool_name, **kwargs):
    record('tool_request', [tool_name, args, kwargs])
    if tool_name == 'write_file':
        return {{'args': {{**args, 'content': args['content'] + ' via middleware'}}}}


def on_tool_execution(args, next_call, **kwargs):
    record('tool_execution', [args, sorted(kwargs)])
    return next_call(args)


def before_tool(tool_name, args, **kwargs):
    record('pre_tool_call', [tool_name, args, kwargs])
    if 'forbidden' in json.dumps(args):
        return {{'action': 'block', 'message': 'The plugin forbids it.'}}


def after_tool(**kwargs):
    record('post_tool_call', kwargs)


def transform(result, tool_name, **kwargs):
    record('transform_tool_result', [tool_name, result])
    return result.replace('plain words', 'other words')


def before_request(**kwargs):
    record('pre_llm_call', sorted(kwargs))
    return {{'context': 'CONTEXT OF THE PLUGIN'}}


def register(ctx):
    ctx.register_middleware('tool_request', on_tool_request)
    ctx.register_middleware('tool_execution', on_tool_execution)
    ctx.register_hook('pre_tool_call', before_tool)
    ctx.register_hook('post_tool_call', after_tool)
    ctx.register_hook('transform_tool_result', transform)
    ctx.register_hook('pre_llm_call', before_request)
"""

SHELL_HOOK = """\
#!/bin/sh
cat >> {seen}
echo >> {seen}
echo '{{"decision": "block", "reason": "The shell hook forbids it."}}'
"""

SCRIPT = (
    Reply(tool_calls=(ToolUse("skill_view", {"name": "greeting"}),)),
    Reply(tool_calls=(ToolUse("write_file", {"path": "a.txt", "content": "plain words"}),)),
    Reply(tool_calls=(ToolUse("write_file", {"path": "forbidden.txt", "content": "x"}),)),
    Reply(tool_calls=(ToolUse("read_file", {"path": "a.txt", "limit": "9"}),)),
    Reply(tool_calls=(ToolUse("terminal", {"command": "touch b.txt"}),)),
    Reply(tool_calls=(ToolUse("todo", {"todos": []}), ToolUse("no_such_tool", {}))),
    Reply("Done."),
)


def furnish(home: HermesHome) -> tuple[Path, Path]:
    """A plugin, a shell hook and a skill; returns the files in which the first two record."""
    seen, shell_seen = home.base / "seen", home.base / "shell-seen"
    folder = home.home / "plugins" / "neighbour"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: neighbour\nversion: 0.1.0\ndescription: Next.\n")
    (folder / "__init__.py").write_text(PLUGIN.format(seen=str(seen)))
    hook = home.base / "hook.sh"
    hook.write_text(SHELL_HOOK.format(seen=shell_seen))
    hook.chmod(0o755)
    skill = home.home / "skills" / "greeting" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greeting\ndescription: How to greet.\n---\n\nGREET WARMLY.\n")
    entry = {"matcher": "terminal", "command": str(hook)}
    home.write_config({"hooks": {"pre_tool_call": [entry]}, "hooks_auto_accept": True})
    return seen, shell_seen


def run(model: ScriptedModel, home: HermesHome) -> dict[str, Any]:
    seen, shell_seen = furnish(home)
    done = home.oneshot("work").check()
    assert model.exhausted == 0
    records = seen.read_text()
    if installed() is NEWER:
        # Hooks run inside of the gate there, and see the types that Hermes converts arguments to.
        records = records.replace('"limit": "9"', '"limit": 9')
    return {
        "requests": [plain(home, request.body) for request in model.requests],
        "records": [plain(home, json.loads(line)) for line in records.splitlines()],
        "shell": [plain(home, json.loads(line)) for line in shell_seen.read_text().splitlines()],
        "stdout": done.stdout,
        "project": files(home.project),
    }


def test_same_transcript(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Beside an extension that only passes, neighbours see and do exactly what they did alone."""
    model = model_factory(SCRIPT)
    without = run(model, hermes(model, plugins=("neighbour",)))
    model = model_factory(SCRIPT)
    home = hermes(model, plugins=("hermes-ext", "neighbour"), extensions={"log": "decisions"})
    home.extension("passing", PASSING)
    with_us = run(model, home)
    log = (home.home / "logs" / "extensions.jsonl").read_text()
    assert len({json.loads(line)["hook"] for line in log.splitlines()}) == 4

    text = "\n".join(without["requests"])
    for mark in (
        "GREET WARMLY",
        "The plugin forbids it",
        "The shell hook forbids it",
        "CONTEXT OF",
    ):
        assert mark in text
    assert without["project"] == {"a.txt": "plain words via middleware"}
    assert len(without["shell"]) == 1
    for key, value in without.items():
        assert with_us[key] == value, key
