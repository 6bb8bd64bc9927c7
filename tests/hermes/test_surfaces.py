"""One extension, the same verdicts on every way into Hermes: `-z`, `chat -q` and the API server."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.harness import in_process
from tests.harness.home import HermesHome
from tests.hermes.surfaces import SURFACES, surface

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

RULES = """\
from hermes_ext import HookResult, register_hook


@register_hook('transform_user_input')
def typed(user_message):
    if 'xyzzy-hunter2' in user_message:
        return HookResult.block('SECRETS-STAY-HOME')
    if user_message == 'ping':
        return HookResult.answer('PONG-WITHOUT-MODEL')
    if 'zebra' in user_message:
        return HookResult.rewrite(user_message.replace('zebra', 'giraffe'))


@register_hook('before_llm_call')
def request(messages):
    said = str(messages[-1]['content'])
    if 'halt' in said:
        return HookResult.block('NO-REQUEST-TODAY')
    if 'cached' in said:
        return HookResult.answer('ANSWER-FROM-CACHE')
    return HookResult.inject_system('RULE-ONE applies.')


@register_hook('before_llm_call', priority=200)
def spelling(messages):
    if 'work on the giraffe' in str(messages):
        return HookResult.rewrite([
            {**each, 'content': str(each['content']).replace('the giraffe', 'the tall giraffe')}
            if each['role'] == 'user' else each
            for each in messages
        ])


@register_hook('before_llm_call', priority=300)
def note(messages):
    if 'tall giraffe' in str(messages):
        return HookResult.inject_user('NOTE-TWO is here.')


@register_hook('intercept_tool_call', tools=['write_file'])
def written(tool_args):
    name = tool_args['path'].rsplit('/', 1)[-1]
    if name == 'c.txt':
        return HookResult.rewrite({**tool_args, 'content': 'REWRITTEN'})
    if name == 'd.txt':
        return HookResult.answer('{"answered": "ANSWERED"}')


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def tree(tool_args):
    if tool_args['path'].endswith('b.txt'):
        return HookResult.block('b.txt is not to be written')
    if tool_args['path'].endswith('e.txt'):
        return HookResult.ask('may e.txt be written?')


@register_hook('transform_tool_result', tools=['read_file'])
def mask(result):
    if 'private' in result:
        return HookResult.block('private')
    return HookResult.rewrite(result.replace('abcdef123', '[MASKED]'))
"""

# Nobody is asked anywhere: a question is refused.
ALONE = {"approvals": {"mode": "off"}}
TITLES_ON = {"auxiliary": {"title_generation": {"enabled": True}}}


def echo(request: ModelRequest) -> Reply:
    return Reply(f"HEARD({request.last_user})")


def calls_in(project: Path) -> tuple[ToolUse, ...]:
    """Five writes and two reads. Whole paths: a gateway works in a directory of its own."""
    return (
        *(
            ToolUse("write_file", {"path": str(project / f"{n}.txt"), "content": n})
            for n in "abcde"
        ),
        ToolUse("read_file", {"path": str(project / "secret.txt")}),
        ToolUse("read_file", {"path": str(project / "own.txt")}),
    )


@pytest.mark.parametrize("name", SURFACES)
def test_every_action(model_factory: ModelFactory, hermes: HomeFactory, name: str) -> None:
    """Each action on input, requests, tool calls and results is honored, whatever the surface."""
    script: list[Reply] = []
    model = model_factory(script)
    home = hermes(model, config=ALONE)
    script += [Reply(tool_calls=calls_in(home.project)), Reply("ALL-DONE")]
    (home.project / "secret.txt").write_text("token=abcdef123\n")
    (home.project / "own.txt").write_text("private\n")
    home.extension("rules", RULES)
    with surface(home, name) as say:
        shown = say("work on the zebra", "ALL-DONE")
    assert shown.count("ALL-DONE") == 1, shown
    first, second = model.main_requests
    for request in (first, second):
        assert request.contains("work on the tall giraffe")
        assert request.system.endswith("RULE-ONE applies.")
        assert request.system.count("RULE-ONE applies.") == 1
        assert request.contains("NOTE-TWO is here.")
    done, blocked, rewritten, answered, asked, masked, withheld = [
        text for _, text in second.tool_results
    ]
    assert "error" not in json.loads(done)
    assert json.loads(blocked) == {"error": "[rules] b.txt is not to be written"}
    assert "error" not in json.loads(rewritten)
    assert json.loads(answered) == {"answered": "ANSWERED"}
    assert "may e.txt be written?" in json.loads(asked)["error"]
    assert "token=[MASKED]" in masked
    assert json.loads(withheld) == {"error": "[rules] private"}
    assert not second.contains("abcdef123")
    texts = {path.name: path.read_text() for path in home.project.iterdir()}
    assert texts == {
        "a.txt": "a",
        "c.txt": "REWRITTEN",
        "own.txt": "private\n",
        "secret.txt": "token=abcdef123\n",
    }


@pytest.mark.parametrize("name", SURFACES)
def test_nothing_keeps_what_was_typed(
    model_factory: ModelFactory, hermes: HomeFactory, name: str
) -> None:
    """What an input was before it was rewritten stands in no file of the home."""
    home = hermes(model_factory(echo))
    home.extension("rules", RULES)
    with surface(home, name) as say:
        say("look at the zebra", "HEARD(look at the giraffe")
    assert home.occurrences("look at the giraffe") != []
    assert home.occurrences("look at the zebra") == []


@pytest.mark.parametrize("name", SURFACES)
def test_ended_without_the_model(
    model_factory: ModelFactory, hermes: HomeFactory, name: str
) -> None:
    """A reply given without the model is shown once, and the session goes on after it."""
    model = model_factory(echo)
    home = hermes(model, config=TITLES_ON)
    home.extension("rules", RULES)
    with surface(home, name) as say:
        for text, reply in (
            ("my word is xyzzy-hunter2", "SECRETS-STAY-HOME"),
            ("ping", "PONG-WITHOUT-MODEL"),
            ("halt now", "[rules] NO-REQUEST-TODAY"),
            ("something cached", "ANSWER-FROM-CACHE"),
        ):
            shown = say(text, reply)
            assert shown.count(reply) == 1, shown
        assert model.main_requests == []
        assert "HEARD(and now" in say("and now", "HEARD(and now")
    [request] = model.main_requests
    assert home.occurrences("xyzzy-hunter2") == [home.home / "extensions/rules/__init__.py"]
    assert not any(one.contains("xyzzy-hunter2") for one in model.requests)
    if name != "oneshot":
        roles = [message["role"] for message in request.messages]
        assert roles == ["user", "assistant"] * 4 + ["user"]
        kept = [role for role, _ in home.session_rows() if role != "session_meta"]
        assert kept == ["user", "assistant"] * 5
        assert request.messages[0]["content"] == "[withheld by rules]"
        assert len(home.session_ids()) == 1


def test_titles(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """A session's title is made of what its first input was rewritten to; of a blocked one, none.

    In 0.19 CLI and gateways hand what was typed to `maybe_auto_title`; it is called here as they
    call it, because a command that ends with its turn seldom comes to make a title. Newer code
    makes titles at a turn's start.
    """
    model = model_factory(echo)
    home = hermes(model, config=TITLES_ON)
    home.extension("rules", RULES)
    home.python(
        in_process.PRELUDE
        + """
import threading
from agent import title_generator
from agent.title_generator import maybe_auto_title

at_the_start = hasattr(title_generator, 'apply_instant_title')

for typed in ('tell me of the zebra', 'my word is xyzzy-hunter2', 'plain words'):
    agent = new_agent()
    result = agent.run_conversation(typed)
    if not at_the_start:
        maybe_auto_title(
            agent._session_db, agent.session_id, typed, result['final_response'],
            result['messages'], main_runtime=runtime_of(agent),
        )
    for thread in threading.enumerate():
        if thread.name == 'auto-title':
            thread.join(30)
"""
    ).check()
    asked = [one.last_user for one in model.requests if not one.is_main]
    firsts = [text.removeprefix("User: ").partition("\n")[0] for text in asked]
    # A Hermes that got no JSON for an answer asks once more.
    firsts = list(dict.fromkeys(firsts))
    assert firsts == ["tell me of the giraffe", "plain words"]
    assert not any(one.contains("zebra") or one.contains("xyzzy") for one in model.requests)
    assert home.occurrences("xyzzy-hunter2") == [home.home / "extensions/rules/__init__.py"]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_responses_api(model_factory: ModelFactory, hermes: HomeFactory, stream: bool) -> None:
    """`/v1/responses`, which has a store of its own, keeps and goes on with what inputs became."""
    model = model_factory(echo)
    home = hermes(model)
    home.extension("rules", RULES)
    with home.gateway() as gateway:

        def say(text: str, previous: str | None) -> str:
            body = {"model": "hermes-agent", "input": text, "previous_response_id": previous}
            told = gateway.post("/v1/responses", {**body, "stream": stream}).body
            return str((told["events"][-1]["response"] if stream else told)["id"])

        blocked = say("my word is xyzzy-hunter2", None)
        rewritten = say("tell me of the zebra", blocked)
        say("and now", rewritten)
        first = say("another zebra", None)
        say("and then", first)
    assert home.occurrences("xyzzy-hunter2") == [home.home / "extensions/rules/__init__.py"]
    assert home.occurrences("zebra") == [home.home / "extensions/rules/__init__.py"]
    said = [
        [message["content"] for message in request.messages if message["role"] == "user"]
        for request in model.main_requests
    ]
    assert said == [
        ["[withheld by rules]", "tell me of the giraffe"],
        ["[withheld by rules]", "tell me of the giraffe", "and now"],
        ["another giraffe"],
        ["another giraffe", "and then"],
    ]


def test_messaging_gateway(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """On a messaging platform too a blocked input is in no log, row, title or request."""
    model = model_factory(echo)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    route = {"secret": "INSECURE_NO_AUTH", "prompt": "{text}", "deliver": "log"}
    extra = {"host": "127.0.0.1", "port": port, "routes": {"note": route}}
    webhook = {"platforms": {"webhook": {"enabled": True, "extra": extra}}}
    home = hermes(model, config={**TITLES_ON, **webhook})
    home.extension("rules", RULES)

    def send(text: str) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as link:
            body = json.dumps({"text": text})
            link.request("POST", "/webhooks/note", body, {"Content-Type": "application/json"})
            assert link.getresponse().status == 202

    with home.gateway():
        send("my word is xyzzy-hunter2")
        send("tell me of the zebra")
        model.wait_for(lambda seen: any(not request.is_main for request in seen))
    [title] = [request for request in model.requests if not request.is_main]
    assert title.last_user.removeprefix("User: ").startswith("tell me of the giraffe")
    assert ("user", "[withheld by rules]") in home.session_rows()
    assert home.home / "logs" / "agent.log" in home.occurrences("msg='[not logged: ")
    for typed in ("xyzzy-hunter2", "zebra"):
        assert home.occurrences(typed) == [home.home / "extensions/rules/__init__.py"]
        assert not any(request.contains(typed) for request in model.requests)
