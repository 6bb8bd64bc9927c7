"""What handlers of `transform_user_input` get, and where their rewrites go, in the real Hermes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.harness import in_process
from tests.harness.home import HermesHome

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

RECORDER = """\
import json
import pathlib

from hermes_ext import HookResult, register_hook

SEEN = pathlib.Path({seen!r})


@register_hook('transform_user_input')
def typed(user_message, user_content, command):
    told = {{'text': user_message[-80:], 'parts': user_content, 'command': command}}
    with SEEN.open('a') as file:
        file.write(json.dumps(told) + '\\n')
    if user_message == 'to the skill':
        return HookResult.rewrite('/greeting in new words')
    if user_message == 'to both skills':
        return HookResult.rewrite('/greeting /parting in new words')
    if user_message == 'to the help':
        return HookResult.rewrite('/help in new words')
    if user_message == 'hide me':
        return HookResult.block('HIDDEN')
    if not user_message.strip():
        return HookResult.rewrite('new words')
    if 'old words' in user_message:
        return HookResult.rewrite(user_message.replace('old words', 'new words'))
"""

PNG = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}


def skill(home: HermesHome, name: str, body: str) -> None:
    folder = home.home / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to.\n---\n\n{body}\n")


def say_all(
    home: HermesHome, program: str, *inputs: tuple[Any, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run each input, with what is to be stored for it, as the first turn of a session of its own.

    Returns what the handler got for each, and each turn's result.
    """
    seen = home.base / "seen"
    home.extension("recorder", RECORDER.format(seen=str(seen)))
    given = home.base / "inputs.json"
    given.write_text(json.dumps(inputs))
    out = home.base / "results.json"
    home.python(
        in_process.PRELUDE
        + f"import json\ninputs = json.load(open({str(given)!r}))\n"
        + program
        + "\nresults = []\n"
        + "for message, stored in inputs:\n"
        + "    extra = {} if stored is None else {'persist_user_message': stored}\n"
        + "    results.append(new_agent().run_conversation(message, **extra))\n"
        + f"json.dump(results, open({str(out)!r}, 'w'), default=str)\n"
    ).check()
    return [json.loads(line) for line in seen.read_text().splitlines()], json.loads(out.read_text())


def sent(request: ModelRequest) -> Any:
    return request.messages[-1]["content"]


def test_text_and_parts(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """A text rewrite keeps images and the host's prefixes, for the model and for the record."""
    model = model_factory(lambda request: Reply("Heard."))
    home = hermes(model, config={"model": {"supports_vision": True, "context_length": 2_000_000}})
    text = {"type": "text", "text": "what of old words"}
    long = "z" * 1_000_000 + " old words"
    seen, results = say_all(
        home,
        "",
        ([text, IMAGE], None),
        ([IMAGE], None),
        ([], None),
        ("", None),
        ("  \n", None),
        (long, None),
        ("[Voice: be brief] say old words", "say old words"),
        ("[Voice: be brief] leave me", "leave me"),
        ("[Voice: be brief] hide me", "hide me"),
    )
    assert [one["text"] for one in seen] == [
        "what of old words",
        "",
        "",
        "",
        "  \n",
        long[-80:],
        "say old words",
        "leave me",
        "hide me",
    ]
    assert seen[0]["parts"] == [text, IMAGE]
    assert seen[1]["parts"] == [IMAGE]
    assert seen[2]["parts"] == []
    assert {one["parts"] is None for one in seen[3:]} == {True}
    assert {one["command"] for one in seen} == {None}
    both, image, nothing, empty, blank, big, voice, left = map(sent, model.main_requests)
    assert both == [{"type": "text", "text": "what of new words"}, IMAGE]
    assert image == [{"type": "text", "text": "new words"}, IMAGE]
    # Newer Hermes sends text alone as text.
    assert nothing in ([{"type": "text", "text": "new words"}], "new words")
    assert empty == blank == "new words"
    assert big == "z" * 1_000_000 + " new words"
    # 0.17 sends what it stores, without the prefix; that is the host's own doing.
    assert left in ("[Voice: be brief] leave me", "leave me")
    assert voice == left.replace("leave me", "say new words")
    assert [result["final_response"] for result in results] == ["Heard."] * 8 + ["HIDDEN"]
    stored = [content for role, content in home.session_rows() if role == "user"]
    assert stored[-3:] == ["say new words", "leave me", "[withheld by recorder]"]
    assert home.occurrences("old words") == [home.home / "extensions/recorder/__init__.py"]


def test_skills(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """A skill is reduced to what was typed after it; a rewrite to its command is expanded."""
    model = model_factory(lambda request: Reply("Heard."))
    home = hermes(model)
    skill(home, "greeting", "GREET WARMLY. Never say old words.")
    skill(home, "parting", "PART KINDLY.")
    seen, _ = say_all(
        home,
        "from agent.skill_commands import build_skill_invocation_message as built\n"
        "inputs = [\n"
        "    (built('/greeting', 'with old words'), None),\n"
        "    (built('/greeting', 'with old words', runtime_note='no old words'), None),\n"
        "    (built('/greeting', ''), None),\n"
        "    *inputs,\n"
        "]\n",
        ("to the skill", None),
        ("to the help", None),
        ("to both skills", None),
    )
    assert [one["text"] for one in seen] == [
        "with old words",
        "with old words",
        "",
        "to the skill",
        "to the help",
        "to both skills",
    ]
    assert [one["command"] for one in seen] == ["greeting"] * 3 + [None] * 3
    typed, noted, bare, rewritten, helped, stacked = map(sent, model.main_requests)
    for expanded in (typed, noted, bare, rewritten):
        assert expanded.startswith('[IMPORTANT: The user has invoked the "greeting" skill')
        assert expanded.count("GREET WARMLY. Never say old words.") == 1
    assert typed.endswith("with new words")
    assert "with new words" in noted
    assert noted.endswith("[Runtime note: no old words]")
    assert bare.endswith("skill invocation: new words")
    assert rewritten.endswith("skill invocation: in new words")
    assert helped == "/help in new words"
    assert stacked.count("GREET WARMLY") == 1
    assert "in new words" in stacked
