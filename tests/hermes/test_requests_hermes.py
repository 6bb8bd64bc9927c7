"""Requests to the model through the real Hermes: retries, summaries, nudges and other plugins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.home import HermesHome

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

BOTH_FORMS = pytest.mark.parametrize("api_mode", ["chat_completions", "anthropic_messages"])

RULES = """\
import json
import pathlib

from hermes_ext import HookResult, register_hook

SEEN = pathlib.Path({seen!r})


@register_hook('before_llm_call', priority=10)
def rules(messages, system_prompt, api_call_count):
    told = {{
        'count': api_call_count,
        'roles': [message['role'] for message in messages],
        'system': len(system_prompt),
        'told': 'RULE-ONE' in json.dumps([messages, system_prompt]),
    }}
    with SEEN.open('a') as file:
        file.write(json.dumps(told) + '\\n')
    return HookResult.inject_system('RULE-ONE applies.')


@register_hook('before_llm_call', priority=20)
def note(api_call_count):
    if api_call_count == 1:
        return HookResult.inject_user('NOTE-KEPT', keep='turn')
"""


def write(name: str) -> ToolUse:
    return ToolUse("write_file", {"path": name, "content": "x"})


def seen_by(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def places(request: ModelRequest, text: str) -> list[int]:
    """Indices of the messages that hold the text, the system prompt left out."""
    return [i for i, message in enumerate(request.messages) if text in json.dumps(message)]


def plugin(home: HermesHome, name: str, source: str) -> None:
    """A plugin of somebody else's, in the user's plugin folder and enabled."""
    folder = home.home / "plugins" / name
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(f"name: {name}\nversion: 0.1.0\ndescription: Another.\n")
    (folder / "__init__.py").write_text(source)
    home.write_config({"plugins": {"enabled": ["hermes-ext", name]}})


@BOTH_FORMS
def test_requests_of_a_turn(
    model_factory: ModelFactory, hermes: HomeFactory, api_mode: str
) -> None:
    """The chain runs once per request, a retry included; what it injected stands there once."""
    script = [
        Reply(status=500, error="overloaded"),
        Reply(tool_calls=(write("a.txt"),)),
        Reply(tool_calls=(write("b.txt"), write("c.txt"))),
        Reply("Done."),
    ]
    model = model_factory(script)
    # Hermes marks what the provider may cache where the model bears this name.
    config = {"model": {"default": "claude-scripted"}} if api_mode != "chat_completions" else {}
    home = hermes(model, api_mode=api_mode, config=config)
    seen = home.base / "seen"
    home.extension("rules", RULES.format(seen=str(seen)))
    assert home.oneshot("hello there").check().stdout == "Done.\n"
    told = seen_by(seen)
    assert [one["count"] for one in told] == [1, 2, 3]
    assert [one["roles"][0] for one in told] == ["user"] * 3
    assert [len(one["roles"]) for one in told] == [1, 3, 6]
    assert all(one["system"] > 100 and not one["told"] for one in told)
    requests = model.main_requests
    assert len(requests) == 4
    for request in requests:
        assert request.system.count("RULE-ONE applies.") == 1
        assert request.system.endswith("RULE-ONE applies.")
        assert places(request, "NOTE-KEPT") == [0]
        assert json.dumps(request.body).count("NOTE-KEPT") == 1
    assert requests[0].body["messages"] == requests[1].body["messages"]
    assert len({request.system for request in requests}) == 1
    if api_mode == "anthropic_messages":
        for request in requests:
            *cached, injected = request.body["system"]
            assert injected["text"].strip() == "RULE-ONE applies."
            assert "cache_control" not in injected
            assert "cache_control" in cached[-1]
    assert home.occurrences("NOTE-KEPT") == [home.home / "extensions/rules/__init__.py"]
    assert home.occurrences("RULE-ONE applies.") == [home.home / "extensions/rules/__init__.py"]


@BOTH_FORMS
def test_iteration_summary(model_factory: ModelFactory, hermes: HomeFactory, api_mode: str) -> None:
    """The summary at the iteration limit is one more request: counted, and injected into."""
    model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("The summary.")])
    home = hermes(model, api_mode=api_mode)
    seen = home.base / "seen"
    home.extension("rules", RULES.format(seen=str(seen)))
    assert "The summary." in home.chat("go", "--max-turns", "1").stdout
    assert [one["count"] for one in seen_by(seen)] == [1, 2]
    first, summary = model.main_requests
    assert "maximum number of tool-calling iterations" in summary.last_user
    for request in (first, summary):
        assert request.system.count("RULE-ONE applies.") == 1
        assert request.system.endswith("RULE-ONE applies.")
        assert places(request, "NOTE-KEPT") == [0]


@pytest.mark.parametrize("action", ["answer", "block"])
def test_iteration_summary_without_the_model(
    model_factory: ModelFactory, hermes: HomeFactory, action: str
) -> None:
    """A summary that is answered or blocked is not asked for; its text ends the turn."""
    model = model_factory([Reply(tool_calls=(write("a.txt"),))])
    home = hermes(model)
    home.extension(
        "rules",
        "from hermes_ext import HookResult, register_hook\n"
        "@register_hook('before_llm_call')\n"
        "def second(api_call_count):\n"
        f"    return HookResult.{action}('NO-SUMMARY') if api_call_count > 1 else None\n",
    )
    run = home.chat("go", "--max-turns", "1")
    assert run.stdout.count("NO-SUMMARY") == 1, run
    assert len(model.main_requests) == 1
    role, content = home.session_rows()[-1]
    assert role == "assistant"
    assert content.endswith("NO-SUMMARY")


def test_blocked_in_spite_of_nudges(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """A turn whose request was blocked sends nothing more, though Hermes is told to go on."""
    model = model_factory([Reply(tool_calls=(write("a.py"),)), Reply("Slipped through.")])
    home = hermes(model)
    nudged, asked = home.base / "nudged", home.base / "asked"
    home.extension(
        "once",
        "import pathlib\n"
        "from hermes_ext import HookResult, register_hook\n"
        "@register_hook('before_llm_call', guard=True)\n"
        "def once(api_call_count):\n"
        f"    with pathlib.Path({str(asked)!r}).open('a') as file:\n"
        "        file.write(f'{api_call_count} ')\n"
        "    return HookResult.block('ENOUGH') if api_call_count == 2 else None\n",
    )
    plugin(
        home,
        "nudger",
        "import pathlib\n"
        "def go_on(**kwargs):\n"
        f"    pathlib.Path({str(nudged)!r}).touch()\n"
        "    return {'action': 'continue', 'message': 'Go on, please.'}\n"
        "def register(ctx):\n"
        "    ctx.register_hook('pre_verify', go_on)\n",
    )
    run = home.chat("go").check()
    if not nudged.exists():
        pytest.skip("this Hermes has no such nudge")
    assert "[once] ENOUGH" in run.stdout
    assert "Slipped through." not in run.stdout
    assert len(model.main_requests) == 1
    assert asked.read_text() == "1 2 "


@BOTH_FORMS
def test_another_plugin_takes_it_out(
    model_factory: ModelFactory, hermes: HomeFactory, api_mode: str
) -> None:
    """What another plugin's middleware takes out of a request is put back, each text once."""
    quoted = ToolUse("write_file", {"path": "a.txt", "content": "RULE-ONE applies."})
    model = model_factory([Reply(tool_calls=(quoted,)), Reply("Done.")])
    home = hermes(model, api_mode=api_mode)
    home.extension("rules", RULES.format(seen=str(home.base / "seen")))
    plugin(
        home,
        "scrubber",
        "import json\n"
        "def scrubbed(request):\n"
        "    text = json.dumps(request).replace('NOTE-KEPT', 'SCRUBBED')\n"
        "    request = json.loads(text)\n"
        "    key = 'system' if 'system' in request else 'messages'\n"
        "    part = json.loads(json.dumps(request[key]).replace('RULE-ONE applies.', ''))\n"
        "    if key == 'messages':\n"
        "        part[1:] = request[key][1:]\n"
        "    return {**request, key: part}\n"
        "def on_request(request, **kwargs):\n"
        "    return {'request': scrubbed(request)}\n"
        "def on_execution(request, next_call, **kwargs):\n"
        "    return next_call(scrubbed(request))\n"
        "def register(ctx):\n"
        "    ctx.register_middleware('llm_request', on_request)\n"
        "    ctx.register_middleware('llm_execution', on_execution)\n",
    )
    assert home.oneshot("hello there").check().stdout == "Done.\n"
    assert len(model.main_requests) == 2
    for request in model.main_requests:
        assert "SCRUBBED" in json.dumps(request.body)
        assert request.system.count("RULE-ONE applies.") == 1
        assert request.system.endswith("RULE-ONE applies.")
        assert json.dumps(request.body).count("NOTE-KEPT") == 1
