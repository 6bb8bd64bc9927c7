"""Handlers that call without end, interrupt or take long, in the real Hermes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

# How a handler calls the tool that it is for: by the host's registry, and by its dispatch.
CALLS = {
    "registry": "from tools.registry import registry\n    return registry.dispatch('jot', args)",
    "dispatch": (
        "from model_tools import handle_function_call\n    return handle_function_call('jot', args)"
    ),
    "in a thread": (
        "import asyncio\n    from tools.registry import registry\n"
        "    return asyncio.run(asyncio.to_thread(registry.dispatch, 'jot', args))"
    ),
}
RECURSIVE = (
    HEAD
    + """
def call(args):
    {call}

@register_hook('intercept_tool_call', tools=['jot'], {options})
def again(tool_args):
    n = tool_args['n'] + 1
    __main__.seen.append([n, call({{'text': 'again', 'n': n}})])
"""
)


@pytest.mark.parametrize("options", ["", "timeout=60"], ids=["inline", "limited"])
@pytest.mark.parametrize("call", CALLS)
def test_a_handler_that_calls_its_own_tool(call: str, options: str, hermes: HomeFactory) -> None:
    """The tool runs four times at most; the turn ends, and the log names the handler."""
    home = hermes()
    home.extension("recursive", RECURSIVE.format(call=CALLS[call], options=options))
    facts = play(
        home,
        """
        before = threading.active_count()
        results = stage.use(stage.agent(), jot('first', 0))
        report(results=results, jots=stage.jots, seen=seen,
               threads=threading.active_count() - before)
        """,
    )
    assert sorted(facts["jots"]) == ["again 1", "again 2", "again 3", "first 0"]
    assert "written" in facts["results"][0]
    assert facts["seen"][0][0] == 4
    assert "recursive/again" in facts["seen"][0][1]
    assert "at most 3 are allowed" in facts["seen"][0][1]
    assert facts["threads"] <= 16
    log = (home.home / "logs" / "agent.log").read_text(encoding="utf-8")
    assert "recursive/again (" in log
    assert "RecursionError" not in log


def test_a_handler_that_starts_an_agent(hermes: HomeFactory) -> None:
    """Which has the same handler: the innermost agent's message is refused, the others answer."""
    home = hermes()
    home.extension(
        "starts",
        HEAD
        + """
@register_hook('transform_user_input')
def start(user_message):
    agent = __main__.stage.agent()
    __main__.seen.append(agent.run_conversation(user_message + '!'))
""",
    )
    facts = play(
        home,
        """
        result = stage.say(stage.agent(), 'hello')
        keys = ('final_response', 'blocked')
        report(answer=result['final_response'], seen=[[r.get(k) for k in keys] for r in seen])
        """,
    )
    assert facts["answer"] == "Done."
    refused, *others = facts["seen"]
    assert others == [["Done.", None]] * 3
    assert refused[1] is True
    assert "starts/start" in refused[0]


def test_an_interrupt_of_a_handler_ends_nothing(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """In one-shot mode the handler runs in the main thread: its call is refused, with a line."""
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    model = model_factory([Reply(tool_calls=(write,)), Reply("Done.")])
    home = hermes(model)
    home.extension(
        "interrupts",
        HEAD.replace("import __main__\n", "") + "@register_hook('intercept_tool_call')\n"
        "def stop(tool_name):\n    raise KeyboardInterrupt('no')\n",
    )
    run = home.oneshot("go").check()
    assert run.stdout == "Done.\n"
    assert "stop raised KeyboardInterrupt: no" in run.stderr
    assert not (home.project / "a.txt").exists()


SLOW = (
    HEAD.replace("import __main__\n", "")
    + """
import threading
from hermes_ext.turns.slow import watchdog
watchdog.after, watchdog.every = 0.05, 0.01
said = threading.Event()
report = type(watchdog).look

def look(self, now):
    report(self, now)
    if self._reported:
        said.set()

type(watchdog).look = look

@register_hook('intercept_tool_call')
def slow(tool_name):
    assert said.wait(60)
"""
)


def test_a_handler_that_takes_long_is_in_the_log(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """And not in what a program reads that has started Hermes: nobody looks at a screen."""
    read = ToolUse("read_file", {"path": "a.txt"})
    home = hermes(model_factory([Reply(tool_calls=(read,)), Reply("Done.")]))
    home.extension("takes-long", SLOW)
    run = home.chat("go").check()
    assert "Done." in run.stdout
    assert "slow (" not in run.stdout + run.stderr
    log = (home.home / "logs" / "agent.log").read_text(encoding="utf-8")
    assert log.count("takes-long/slow (") == 1
    assert "has been running for 0 s, and the turn waits for it" in log
