"""Where a turn comes from, on the ways that have no surface of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.harness.home import HermesHome, hermes_command
from tests.harness.terminal import ENTER, terminal
from tests.hermes.stage import HEAD, play
from tests.hermes.surfaces import surface
from tests.hermes.words import give_words

from hermes_ext.hooks.payloads import ORIGINS
from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

WATCH = """\
import json
from pathlib import Path

from hermes_ext import HookResult, register_hook

SEEN = Path(__file__).parents[2] / 'seen'


@register_hook('transform_user_input', origins=['batch'])
def typed(user_message, origin, platform):
    with SEEN.open('a') as file:
        file.write(json.dumps([origin, platform, user_message]) + '\\n')


@register_hook('intercept_tool_call', guard=True, origins=['batch'], tools=['write_file'])
def no_files(tool_args):
    return HookResult.block('no files in batches')
"""

CRON_JOB = """
import sys
from cron.jobs import create_job, trigger_job
trigger_job(create_job('go', 'every 5h', deliver='local')['id'])
sys.argv = ['hermes', 'cron', 'tick']
from hermes_cli.main import main
main()
"""

# In the words of the command line, and by a program that imports the runner.
AS_MODULE = """
import os, sys
options = [f'--{name}={value}' for name, value in OPTIONS]
os.execv(sys.executable, [sys.executable, '-m', 'batch_runner', *options])
"""
IMPORTED = """
import batch_runner
if __name__ == '__main__':
    batch_runner.main(**dict(OPTIONS))
"""


def script(request: ModelRequest) -> Reply:
    if request.messages[-1]["role"] == "tool":
        return Reply("Done.")
    return Reply(tool_calls=(ToolUse("write_file", {"path": request.last_user, "content": "x"}),))


@pytest.mark.parametrize("program", [AS_MODULE, IMPORTED], ids=["module", "imported"])
def test_the_batch_runner(model_factory: ModelFactory, hermes: HomeFactory, program: str) -> None:
    """Each prompt is a turn of origin and platform `batch`, in whichever worker process."""
    model = model_factory(script)
    home = hermes(model)
    home.extension("watch", WATCH)
    prompts = home.project / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"file{n}"}) + "\n" for n in range(3)))
    options = {
        "dataset_file": str(prompts),
        "batch_size": 1,
        "run_name": "r",
        "model": "scripted",
        "base_url": model.base_url,
        "api_key": "sk-test",
        "num_workers": 2,
    }
    home.python(f"OPTIONS = {[*options.items()]!r}\n{program}", timeout=240).check()
    seen = [json.loads(line) for line in (home.home / "seen").read_text().splitlines()]
    assert sorted(seen) == [["batch", "batch", f"file{n}"] for n in range(3)]
    assert not list(home.project.glob("file*"))
    results = [
        message["content"]
        for request in model.requests
        for message in request.messages
        if message["role"] == "tool"
    ]
    assert len(results) == 3
    assert all("no files in batches" in result for result in results)


NOTE = """\
import json
from pathlib import Path

from hermes_ext import register_hook

SEEN = Path(__file__).parents[2] / 'seen'


@register_hook('transform_user_input', origins=ORIGINS)
def typed(user_message, origin, platform, conversation_id, session_state, turn_number):
    seen = [origin, platform, user_message[-20:], conversation_id, session_state.count('n')]
    with SEEN.open('a') as file:
        file.write(json.dumps([*seen, turn_number]) + '\\n')
""".replace("ORIGINS", repr(list(ORIGINS)))


def seen_in(home: HermesHome) -> list[list[Any]]:
    file = home.home / "seen"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("oneshot", ["user", "cli"]),
        ("chat", ["user", "cli"]),
        ("api", ["api", "api_server"]),
        ("messaging", ["user", "irc"]),
    ],
)
def test_the_surfaces(
    model_factory: ModelFactory, hermes: HomeFactory, name: str, expected: list[str]
) -> None:
    home = hermes(model_factory(lambda request: Reply("Heard it.")))
    home.extension("note", NOTE)
    with surface(home, name) as say:
        say("hello", "Heard it.")
    assert [[origin, platform] for origin, platform, *_ in seen_in(home)] == [expected]


def test_a_cron_job(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    home = hermes(model_factory(lambda request: Reply("Heard it.")))
    home.extension("note", NOTE)
    home.python(CRON_JOB, timeout=240).check()
    assert [[origin, platform] for origin, platform, *_ in seen_in(home)] == [["cron", "cron"]]


def test_background_and_branch(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """What is typed after `/background` or `/btw` is a person's, in a conversation of its own;
    a branch goes on in the conversation that it comes from.
    """
    home = hermes(model_factory(lambda request: Reply(f"Heard {request.last_user}.")))
    home.extension("note", NOTE)
    give_words(home)
    with terminal((*hermes_command(), "chat"), home.project, home.env(), rows=90) as person:

        def say(text: str, seen: int) -> None:
            person.press(text)
            person.wait(text)
            person.press(ENTER)
            person.wait(lambda: len(seen_in(home)) == seen)
            person.wait(person.is_idle)

        person.wait(person.is_idle)
        say("one", 1)
        say("/background two", 2)
        say("/btw three", 3)
        person.press("/branch")
        person.wait("/branch")
        person.press(ENTER)
        person.wait("Original session")
        person.wait(person.is_idle)
        say("four", 4)
    # Newer Hermes puts instructions of its own before what is asked with `/btw`.
    found = {text.rpartition("Side question: ")[2]: rest for _, _, text, *rest in seen_in(home)}
    assert {origin for origin, *_ in seen_in(home)} == {"user"}
    assert len({found[text][0] for text in ("one", "two", "three")}) == 3
    assert [found[text][1:] for text in ("two", "three")] == [[1, 1], [1, 1]]
    assert found["four"] == [found["one"][0], 2, 2]


def test_an_agent_without_a_platform_is_a_user_s(hermes: HomeFactory) -> None:
    """As a program makes one that is not the batch runner."""
    home = hermes()
    home.extension(
        "watch",
        HEAD
        + """
@register_hook('transform_user_input')
def typed(origin, platform):
    __main__.seen.append([origin, platform])
""",
    )
    facts = play(
        home,
        """
        stage.say(stage.agent(platform=None), 'hello')
        report(seen=seen)
        """,
    )
    assert facts["seen"] == [["user", None]]
