"""Where a turn comes from, on the ways that have no surface of their own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

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
