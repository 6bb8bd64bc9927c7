"""Results of tools that hold images, in the real loop, for every provider's form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import AWS_KEYS, MODES, play

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
LOOKS = """\
import __main__
from hermes_ext import HookResult, register_hook


@register_hook('transform_tool_result', tools=['shoot'])
def look(result, tool_args):
    __main__.seen.append(result)
    if tool_args['text'] == 'block':
        return HookResult.block('not for you')
    if 'SECRET' in result:
        return HookResult.rewrite(result.replace('SECRET', '[HIDDEN]'))
"""

# Where a model sees no images it gets the summary, which the tool says in other words.
DRIVER = """
from tools.registry import registry

image = {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,' + %r}}

def shoot(args, **_):
    kind = args['text']
    about = 'SECRET' if kind in ('text', 'block') else 'a window'
    summary = 'the path is SECRET' if kind in ('summary', 'block') else about
    one, two = ({'type': 'text', 'text': text} for text in ('One: ' + about, 'Two.'))
    return {'_multimodal': True, 'content': [one, dict(image), two], 'text_summary': summary}

schema = {
    'name': 'shoot', 'description': 'Shoot.',
    'parameters': {'type': 'object', 'properties': {'text': {'type': 'string'}}},
}
registry.register(name='shoot', toolset='stage', schema=schema, handler=shoot)

told = {}
for mode in MODES:
    for sees in (True, False):
        agent = stage.agent_in(mode)
        agent._model_supports_vision = lambda sees=sees: sees
        calls = tuple(
            ToolUse('shoot', {'text': kind}) for kind in ('text', 'summary', 'plain', 'block')
        )
        seen.clear()
        result = stage.say(agent, 'go', Reply('', calls))
        sent = stage.model.main_requests[-1]
        told[f'{mode}-{sees}'] = {
            'seen': list(seen), 'sent': json.dumps(sent.body, default=str),
            'saved': json.dumps(agent._session_db.get_messages(agent.session_id), default=str),
        }
report(told=told)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = HermesHome(tmp_path_factory.mktemp("images"), None, extra_env=AWS_KEYS)
    home.extension("looks", LOOKS)
    result: dict[str, Any] = play(home, DRIVER % PIXEL, timeout=200)["told"]
    return result


@pytest.mark.parametrize("sees", [True, False], ids=["vision", "no-vision"])
@pytest.mark.parametrize("mode", MODES)
def test_all_text(told: dict[str, Any], mode: str, sees: bool) -> None:
    """Handlers see text and summary; what they rewrite is nowhere, the images are still there."""
    lane = told[f"{mode}-{sees}"]
    assert lane["seen"] == [
        "One: SECRET\nTwo.",
        "One: a window\nTwo.\nthe path is SECRET",
        "One: a window\nTwo.",
        "One: SECRET\nTwo.\nthe path is SECRET",
    ]
    for kept in (lane["sent"], lane["saved"]):
        assert "SECRET" not in kept
        assert kept.count("[HIDDEN]") == 2
    assert "[looks] not for you" in lane["sent"]
    # Two rewritten, one untouched; the one that was blocked has no image.
    images = lane["sent"].count(PIXEL[:40])
    assert images == (3 if sees else 0), json.loads(lane["sent"])["messages"]
