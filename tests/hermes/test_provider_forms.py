"""Every provider form of Hermes: the four hooks do in each what they do in all others.

One Hermes plays all turns, in lanes: a form, and whether its answers are streamed. Responses are
always streamed by Hermes. The model is asked over the wire by the client that Hermes takes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.harness.home import HermesHome
from tests.harness.warm import warm_start
from tests.hermes.stage import AWS_KEYS, HEAD, play, plugin

pytestmark = pytest.mark.hermes

LANES = {
    "chat": ("chat_completions", True),
    "chat-whole": ("chat_completions", False),
    "anthropic": ("anthropic_messages", True),
    "anthropic-whole": ("anthropic_messages", False),
    "responses": ("codex_responses", True),
    "converse": ("bedrock_converse", True),
    "converse-whole": ("bedrock_converse", False),
}
FORM_OF = {
    "chat_completions": "chat",
    "anthropic_messages": "anthropic",
    "codex_responses": "responses",
    "bedrock_converse": "converse",
}

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA"
    "DUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

# What it does is set by the driver: `__main__.how`.
ALL_HOOKS = (
    HEAD
    + """
import json

def how(name):
    return __main__.how.get(name)

@register_hook('transform_user_input')
def words(user_message):
    if how('input'):
        return getattr(HookResult, how('input')[0])(how('input')[1])

@register_hook('before_llm_call', priority=10)
def rules(messages, system_prompt, api_call_count):
    __main__.asked.append([api_call_count, json.dumps([messages, system_prompt])])
    if how('system'):
        return HookResult.inject_system(how('system').format(n=api_call_count))

@register_hook('before_llm_call', priority=20)
def note(api_call_count):
    if how('user'):
        return HookResult.inject_user(how('user').format(n=api_call_count))

@register_hook('before_llm_call', priority=30)
def kept(api_call_count):
    if how('kept') and api_call_count == 1:
        return HookResult.inject_user(how('kept'), keep='turn')

@register_hook('before_llm_call', priority=40)
def scrub(messages):
    if how('scrub'):
        clean = json.loads(json.dumps(messages))
        for message in clean:
            if isinstance(message.get('content'), str):
                message['content'] = message['content'].replace(how('scrub'), 'SCRUBBED')
        return HookResult.rewrite(clean)

@register_hook('before_llm_call', priority=50)
def reply(api_call_count):
    if how('reply') and how('reply')[0] == api_call_count:
        return getattr(HookResult, how('reply')[1])(how('reply')[2])

@register_hook('intercept_tool_call')
def call(tool_name, tool_args, tool_call_id):
    __main__.calls.append([tool_name, dict(tool_args), tool_call_id])
    text = str(tool_args.get('text', ''))
    if text.startswith('change'):
        return HookResult.rewrite({**tool_args, 'text': 'changed'})
    if text.startswith('answer'):
        return HookResult.answer('ANSWERED')

@register_hook('intercept_tool_call', guard=True)
def guard(tool_args):
    if how('no-tool'):
        return HookResult.block('no tool')
    text = str(tool_args.get('text', ''))
    if text.startswith('evil'):
        return HookResult.block('no evil')
    if text.startswith('risky'):
        return HookResult.ask('is it?')

@register_hook('transform_tool_result')
def result(result):
    if 'hide' in result:
        return HookResult.block('hidden')
    if 'loud' in result:
        return HookResult.rewrite('A quiet result.')
"""
)

# Another plugin, that takes out of requests what `__main__.take` says, wherever it stands.
TAKER = """
import __main__, json

def taken(value):
    if isinstance(value, str):
        for text in __main__.take:
            value = value.replace(text, 'TAKEN')
        return value
    if isinstance(value, list):
        return [taken(item) for item in value]
    if isinstance(value, dict):
        return {k: v if k in __main__.spare else taken(v) for k, v in value.items()}
    return value

def on_request(request, **_):
    if __main__.switch:
        agent, mode = __main__.switch['to']
        agent.api_mode = mode
    return {'request': taken(request)} if __main__.take else None

def on_execution(request, next_call, **_):
    return next_call(taken(request) if __main__.take else request)

def register(ctx):
    ctx.register_middleware('llm_request', on_request)
    ctx.register_middleware('llm_execution', on_execution)
"""

DRIVER = """
stage.retry_at_once()
how, switch, asked, calls, take, spare = {}, {}, [], [], [], []

def agent_of(mode, stream, **options):
    made = stage.agent_in(mode, **options)
    made._disable_streaming = not stream
    return made

def saved(agent):
    rows = agent._session_db.get_messages(agent.session_id)
    return json.dumps(rows, default=str)

def turn(agent, *replies, text='go', history=None, **settings):
    global how
    how = settings
    asked.clear(), calls.clear(), stage.jots
    before, shown = len(stage.model.requests), []
    result = stage.say(
        agent, text, *replies, conversation_history=history, stream_callback=shown.append
    )
    how = {}
    return {
        'result': {k: v for k, v in result.items() if k != 'messages'},
        'messages': result['messages'],
        'results': results_of(result),
        'requests': [
            {
                'form': one.form,
                'stream': one.stream,
                'system': one.system,
                'messages': one.messages,
                'body': one.body,
            }
            for one in stage.model.requests[before:]
        ],
        'asked': list(asked),
        'calls': list(calls),
        'jots': stage.jots,
        'shown': ''.join(text for text in shown if text),
        'saved': saved(agent),
        'session': agent.session_id,
    }

def scenes(mode, stream):
    global how
    new = lambda: agent_of(mode, stream)
    told = {}
    two = Reply('Two at once.', (jot('one'), jot('two', id='an-id')))
    failing = [Reply(status=500, error='overloaded'), Reply(status=429, error='slow down')]
    agent = new()
    first = told['turn'] = turn(
        agent, *failing, two, Reply('', (jot('three'),)), Reply('The end.'),
        system='RULES-{n} apply.\\n', user='NOTE-{n} ', kept='KEPT-NOTE',
    )
    told['next'] = turn(agent, Reply('Hello again.'), text='more', history=first['messages'])
    agent = new()
    told['steady'] = turn(agent, system='RULES apply.')
    told['plain'] = turn(agent)
    told['rewritten'] = turn(new(), input=('rewrite', 'PLAN FIRST'))
    told['input'] = turn(agent, input=('block', 'no such input'))
    odd = tuple(jot(text, id=id) for text, id in (('1', ''), ('2', 'same'), ('3', 'same')))
    told['ids'] = turn(agent, Reply('', odd + (jot('4', id='é |/'),)))
    first = turn(agent, Reply('The word is PLUGH.', (jot('one'),)), text='say PLUGH')
    for message in first['messages']:
        if mode == 'anthropic_messages' and message.get('tool_calls'):
            # What Hermes keeps of a model that thinks between its calls.
            message['anthropic_content_blocks'] = [
                {'type': 'thinking', 'thinking': 'hm', 'signature': 'sig'},
                {'type': 'text', 'text': 'The word, in full, is PLUGH.'},
                {'type': 'tool_use', 'id': message['tool_calls'][0]['id'], 'name': 'jot',
                 'input': {'text': 'one'}},
            ]
    told['scrubbed'] = turn(agent, history=first['messages'], scrub='PLUGH')
    told['as-it-was'] = turn(agent, history=first['messages'], scrub='not there')
    told['answered'] = turn(agent, reply=(1, 'answer', 'I will check the files of this repo.'))
    told['refused'] = turn(agent, reply=(1, 'block', 'I will check the files of this repo.'))
    told['blocked'] = turn(
        agent, Reply('', (jot('one'),)), reply=(2, 'block', 'I will check the files of this repo.')
    )
    told['tools'] = turn(
        agent,
        Reply('', tuple(jot(text) for text in ('evil', 'change', 'answer', 'risky', 'fine'))),
        Reply('', (jot('hide'), jot('loud'))),
    )
    image = {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,' + %r}}
    told['image'] = turn(
        new(), text=[{'type': 'text', 'text': 'see'}, image, image], user='NOTE-{n}'
    )
    told['image-alone'] = turn(new(), text=[image], user='NOTE-{n}')
    told['odd'] = [
        turn(new(), Reply('', (call,)), **{'no-tool': True})
        for call in (
            *(ToolUse('jot', args) for args in ('', 'null', '[]', '{"n":1}{"n":1}', '"{}"')),
            *(ToolUse(name, {'n': 1}) for name in ('JOT', ' jot ', 'jotjot', '')),
        )
    ]
    told['summary'] = turn(
        agent_of(mode, stream, max_iterations=1), Reply('', (jot('one'),)), Reply('In short.'),
        system='RULES-{n} apply.', user='NOTE-{n}',
    )
    told['no-summary'] = turn(
        agent_of(mode, stream, max_iterations=1), Reply('', (jot('one'),)), Reply('In short.'),
        reply=(2, 'block', 'no summary'),
    )
    take[:] = ['RULES-1 apply.', 'RULES-2 apply.', 'NOTE-1', 'NOTE-2', 'KEPT-NOTE']
    told['taken'] = turn(
        agent, Reply('', (jot('NOTE-2 RULES-2 apply. KEPT-NOTE'),)),
        system='RULES-{n} apply.', user='NOTE-{n}', kept='KEPT-NOTE', text='RULES-1 apply.',
    )
    # Only the system prompt; the same words are left where a tool or the user said them.
    spare[:] = ['messages', 'input', 'tools', 'toolConfig']
    if mode != 'chat_completions':
        told['taken-system'] = turn(agent, system='RULES-{n} apply.', text='say: RULES-1 apply.')
    take.clear(), spare.clear()
    return told

lanes = {name: scenes(*lane) for name, lane in %r.items()}

# The model's own search, which Hermes offers in place of its tool.
searching = agent_of('codex_responses', True, provider='xai', enabled_toolsets=['stage', 'web'])
judged = turn(searching)
from hermes_ext import HookResult, Runtime, register_hook
from hermes_ext.hosts.hermes.adapter.state import state

@register_hook('intercept_tool_call', guard=True, tools=['terminal'])
def of_one_tool(tool_name):
    return HookResult.block('no')

@register_hook('before_llm_call')
def injects():
    return HookResult.inject_system('RULES apply.')

def only(*handlers):
    state.runtimes = {home: Runtime(handlers) for home in state.runtimes}

novel = agent_of('chat_completions', True)
switch['to'] = (novel, 'novel_form')
fell_back = turn(novel)
only(injects)
novel.api_mode = 'chat_completions'
found = turn(novel)
take[:] = ['RULES apply.']
novel.api_mode = 'chat_completions'
taken_away = turn(novel)
switch.clear(), take.clear()
only(of_one_tool)
not_judged = turn(searching)
report(
    lanes=lanes, judged=judged, not_judged=not_judged, fell_back=fell_back, found=found,
    taken_away=taken_away,
)
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    base = tmp_path_factory.mktemp("forms")
    # With a key Hermes has a tool for the web; it is not called.
    home = HermesHome(
        base,
        None,
        start=warm_start,
        extra_env={**AWS_KEYS, "TAVILY_API_KEY": "k"},
        config={"model": {"supports_vision": True}},
    )
    home.extension("all-hooks", ALL_HOOKS)
    plugin(home, "taker", TAKER)
    return play(home, DRIVER % (PIXEL, LANES), timeout=300)


@pytest.fixture(params=LANES)
def lane(request: pytest.FixtureRequest, played: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = played["lanes"][request.param]
    form, stream = FORM_OF[LANES[request.param][0]], LANES[request.param][1]
    for name in told.keys() - {"summary", "odd", "image", "image-alone"}:
        for number, one in enumerate(told[name]["requests"]):
            assert one["form"] == form
            # After an error of 500 newer Hermes asks once without a stream.
            assert one["stream"] == stream or (name, number) == ("turn", 1)
    return {**told, "form": form}


def ends_with(request: dict[str, Any], text: str) -> bool:
    """Whether the text stands once in the system prompt, at its end."""
    system = request["system"].strip()
    return bool(system.endswith(text) and system.count(text) == 1)


def places(request: dict[str, Any], text: str) -> list[int]:
    """Indices of the messages that hold the text, counted from the end."""
    found = [text in json.dumps(message) for message in request["messages"]]
    return [at - len(found) for at, here in enumerate(found) if here]


def test_injections(lane: dict[str, Any]) -> None:
    """System text is at the prompt's end, user text at the request's; what is kept stays put."""
    requests = lane["turn"]["requests"]
    numbers = [1, 1, 1, 2, 3]
    assert len(requests) == len(numbers)
    for number, request in zip(numbers, requests, strict=True):
        assert ends_with(request, f"RULES-{number} apply.")
        assert request["system"].count("RULES-") == 1
        assert places(request, f"NOTE-{number}") == [-1]
        assert request["messages"][-1]["role"] == "user"
        body = json.dumps(request["body"])
        assert (body.count("NOTE-"), body.count("KEPT-NOTE")) == (1, 1)
        assert places(request, "KEPT-NOTE") == [-len(request["messages"])]
    # Everything in front of the injections is the same each time.
    prompts = {request["system"].partition("RULES-")[0] for request in requests}
    assert len(prompts) == 1
    assert lane["turn"]["result"]["final_response"] == "The end."


@pytest.mark.parametrize(("scene", "images"), [("image", 2), ("image-alone", 1)])
def test_injected_beside_images(lane: dict[str, Any], scene: str, images: int) -> None:
    """In the form's own parts: the text, the images as they were, and behind them what is new."""
    *_, request = lane[scene]["requests"]
    *parts, last = request["body"].get("input", request["body"].get("messages"))[-1]["content"]
    assert last.get("text") == "NOTE-1"
    assert [PIXEL in json.dumps(part) for part in parts] == [False] * (images - 1) + [True] * images


def test_malformed_calls(lane: dict[str, Any]) -> None:
    """Whatever arguments and name the model sends, a guard of all calls lets none of them run."""
    named = lane["odd"][:-1]
    for told in named:
        assert told["result"]["completed"]
        assert told["jots"] == []
    capitals, spaces = named[5:7]
    assert "no tool" in json.dumps(capitals["results"])
    assert "no tool" in json.dumps(spaces["results"])


def test_a_call_without_a_name(lane: dict[str, Any]) -> None:
    """It runs nothing, and the turn comes to its end."""
    told = lane["odd"][-1]
    assert told["jots"] == []
    assert told["result"]["completed"]


def test_a_retry_is_the_same_request(lane: dict[str, Any]) -> None:
    """After an error of 500 and one of 429 the same is sent; the chain ran once per request."""
    first, second, third, *_ = (one["body"] for one in lane["turn"]["requests"])
    assert first == third
    whole = {k: v for k, v in first.items() if k not in {"stream", "stream_options"}}
    assert second in (first, whole)
    assert [number for number, _ in lane["turn"]["asked"]] == [1, 2, 3]


def test_nothing_accumulates(lane: dict[str, Any]) -> None:
    """What was injected is in no later request, no saved message, no handler's view."""
    for text in ("NOTE-", "RULES-", "KEPT-NOTE"):
        for scene in ("turn", "next"):
            told = lane[scene]
            assert text not in told["saved"]
            assert text not in json.dumps(told["messages"])
            assert not [view for _, view in told["asked"] if text in view]
        assert text not in json.dumps(lane["next"]["requests"])
    assert "Two at once." in lane["turn"]["saved"]
    assert lane["next"]["result"]["final_response"] == "Hello again."


def test_cache_key(lane: dict[str, Any]) -> None:
    """Where a request names a key to cache by, injections do not change it."""
    told = [lane[name] for name in ("turn", "steady", "plain")]
    keys_of = [{one["body"].get("prompt_cache_key") for one in each["requests"]} for each in told]
    assert [len(keys) for keys in keys_of] == [1, 1, 1]
    keys = set().union(*keys_of)
    # Some versions of Hermes make it of the session's id, which no injection is part of, too.
    assert len(keys) in {1, len({each["session"] for each in told})}
    assert (None in keys) == (lane["form"] != "responses")


def test_input(lane: dict[str, Any]) -> None:
    """A rewritten input is what is sent; of a blocked one nothing is."""
    (request,) = lane["rewritten"]["requests"]
    assert request["messages"] == [{"role": "user", "content": "PLAN FIRST"}]
    assert '"go"' not in lane["rewritten"]["saved"]
    blocked = lane["input"]
    assert blocked["requests"] == []
    assert blocked["result"]["final_response"] == blocked["shown"] == "no such input"


def test_rewritten_messages(lane: dict[str, Any]) -> None:
    """A word that a handler takes out of the messages is not sent, whoever had said it."""
    (request,) = lane["scrubbed"]["requests"]
    body = json.dumps(request["body"])
    assert "PLUGH" not in body
    assert places(request, "SCRUBBED") == [-5, -4]
    assert "PLUGH" in json.dumps(lane["scrubbed"]["messages"])


def test_messages_that_stay(lane: dict[str, Any]) -> None:
    """A rewrite that changes nothing leaves in what the provider wants word for word."""
    (request,) = lane["as-it-was"]["requests"]
    assert places(request, "PLUGH") == [-5, -4]
    own = {"responses": '"id": "msg_', "anthropic": "in full"}.get(lane["form"])
    if own is not None:
        (scrubbed,) = lane["scrubbed"]["requests"]
        kept = [json.dumps(one["body"]).count(own) for one in (request, scrubbed)]
        # Of Responses the last answer has its own too, which was not rewritten.
        assert kept == ([2, 1] if lane["form"] == "responses" else [1, 0])


def test_answered_request(lane: dict[str, Any]) -> None:
    """An answer is the turn's reply; the model is not asked, not even to go on."""
    told = lane["answered"]
    assert told["requests"] == []
    reply = "I will check the files of this repo."
    assert told["result"]["final_response"] == told["shown"].strip() == reply
    assert told["result"]["completed"] is True
    assert [number for number, _ in told["asked"]] == [1]
    assert told["messages"][-1]["content"] == reply


def test_blocked_request(lane: dict[str, Any]) -> None:
    """A blocked request is not sent, and none after it, though Hermes would go on."""
    reply = "[all-hooks] I will check the files of this repo."
    assert lane["refused"]["requests"] == []
    assert lane["refused"]["result"]["final_response"] == reply
    told = lane["blocked"]
    assert len(told["requests"]) == 1
    assert told["result"]["final_response"] == told["shown"].strip() == reply
    assert told["jots"] == ["one 1"]


def test_tools(lane: dict[str, Any]) -> None:
    """Calls are blocked, rewritten, answered and asked about; results withheld and rewritten."""
    told = lane["tools"]
    assert told["jots"] == ["changed 1", "fine 1", "hide 1", "loud 1"]
    evil, changed, answered, risky, fine, hidden, quiet = told["results"]
    assert json.loads(evil) == {"error": "[all-hooks] no evil"}
    assert [json.loads(text) for text in (changed, fine)] == [
        {"written": "changed"},
        {"written": "fine"},
    ]
    assert answered == "ANSWERED"
    assert "[all-hooks] is it?" in json.loads(risky)["error"]
    assert json.loads(hidden) == {"error": "[all-hooks] hidden"}
    assert quiet == "A quiet result."
    sent = [m["content"] for m in told["requests"][-1]["messages"] if m["role"] == "tool"]
    assert sent == told["results"]
    assert told["result"]["final_response"] == "Done."


def test_ids(lane: dict[str, Any]) -> None:
    """Calls with an empty, a repeated or an odd id are judged and run once each, under own ids."""
    told = lane["ids"]
    assert sorted(told["jots"]) == ["1 1", "2 1", "3 1", "4 1"]
    ids = [call_id for _, _, call_id in told["calls"]]
    assert len(set(ids)) == 4
    assert all(ids)


def test_summary(lane: dict[str, Any]) -> None:
    """The summary at the iteration limit is a request like any other."""
    told = lane["summary"]
    assert [number for number, _ in told["asked"]] == [1, 2]
    _, summary = told["requests"]
    assert ends_with(summary, "RULES-2 apply.")
    assert places(summary, "NOTE-2") == [-1]
    assert told["result"]["final_response"].startswith("In short.")


def test_a_summary_that_is_blocked(lane: dict[str, Any]) -> None:
    """It is not asked for, and the answer is the block's."""
    blocked = lane["no-summary"]
    assert len(blocked["requests"]) == 1
    assert blocked["result"]["final_response"].startswith("[all-hooks] no summary")


def test_put_back(lane: dict[str, Any]) -> None:
    """What another plugin takes out is put back, though a tool or the user said the same words."""
    for number, request in enumerate(lane["taken"]["requests"], start=1):
        assert ends_with(request, f"RULES-{number} apply.")
        assert places(request, f"NOTE-{number}") == places(request, "KEPT-NOTE") == [-1]
        assert "TAKEN" in request["system"]
    assert len(lane["taken"]["requests"]) == 2
    if "taken-system" in lane:
        (request,) = lane["taken-system"]["requests"]
        assert ends_with(request, "RULES-1 apply.")
        assert request["messages"][-1]["content"] == "say: RULES-1 apply."


def test_a_tool_of_the_provider(played: dict[str, Any]) -> None:
    """What the provider would run by itself is not offered where a guard judges such calls."""
    (judged,), (not_judged,) = played["judged"]["requests"], played["not_judged"]["requests"]
    kinds = [tool["type"] for tool in not_judged["body"]["tools"]]
    if "web_search" not in kinds:
        pytest.skip("this Hermes offers no tool of the provider's")
    assert {tool["type"] for tool in judged["body"]["tools"]} == {"function"}
    assert len(judged["body"]["tools"]) == len(kinds) - 1


def test_an_unknown_form(played: dict[str, Any]) -> None:
    """A turn that falls into a form that nobody here knows sends nothing while a guard is on.

    Without one it sends what has in it all that was injected.
    """
    assert played["fell_back"]["requests"] == []
    assert len(played["found"]["requests"]) == 1
    assert played["taken_away"]["requests"] == []
