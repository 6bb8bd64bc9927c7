"""A Hermes that is a library of coroutines: nothing is attached, and no rule is passed by silently.

`nox -s 'hermes(async-0.20.4.1)'` runs these.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome, Run
from tests.hermes.versions import installed

from hermes_ext.testing import Reply, ScriptedModel

host = installed()
pytestmark = [
    pytest.mark.hermes,
    pytest.mark.skipif(
        host is None or host.runs != "closed",
        reason="this Hermes is a program; its own tests say what is attached",
    ),
]

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

GUARD = """\
from hermes_ext import HookResult, register_hook


@register_hook('transform_user_input', guard=True)
def no_secrets(user_message):
    return HookResult.block('no secrets') if 'hunter2' in user_message else None
"""
# As an application uses it.
PROGRAM = """\
import asyncio, sys

async def main():
    from hermes_cli.plugins import discover_plugins
    await discover_plugins()
    from run_agent import AIAgent
    agent = AIAgent(
        base_url=sys.argv[1], api_key='sk-test', provider='custom', model='scripted',
        quiet_mode=True, enabled_toolsets=['file'],
    )
    told = await agent.run_conversation('my password is hunter2')
    print('ANSWERED', told['final_response'])

asyncio.run(main())
"""


def said_to(home: HermesHome, model: ScriptedModel) -> Run:
    """What comes of one message."""
    return home.python(PROGRAM, model.base_url)


def test_a_guard_that_cannot_be_attached(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Nothing is sent: the process ends with one line that names guard, reason and remedy."""
    model = model_factory([Reply("Hello.")])
    home = hermes(model, extensions={"required": ["no-secrets"]})
    home.extension("no-secrets", GUARD)
    run = said_to(home, model)
    assert run.returncode != 0
    assert "ANSWERED" not in run.stdout
    assert model.main_requests == []
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("hermes-ext: ")]
    assert "transform_user_input of no-secrets is not in force" in line
    assert "AIAgent.run_conversation of this Hermes is asynchronous" in line
    assert "disable no-secrets" in line


def test_without_rules_it_works(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Where no extension is on, the library answers, and nothing is said of this package."""
    model = model_factory([Reply("Hello.")])
    run = said_to(hermes(model), model).check()
    assert run.stdout.endswith("ANSWERED Hello.\n")
    assert len(model.main_requests) == 1
    assert "not in force" not in run.stderr


def test_doctor_says_so_before(hermes: HomeFactory) -> None:
    """`doctor` fails, and names the distribution and the functions that it cannot attach to."""
    home = hermes()
    home.extension("no-secrets", GUARD)
    run = home.python("from hermes_ext.cli import main\nraise SystemExit(main(['doctor']))")
    assert run.returncode == 1
    assert "async-hermes-agent 0.20.4.1" in run.stdout
    assert "AIAgent.run_conversation of this Hermes is asynchronous" in run.stdout
    assert "is a library without a program to start" in run.stdout
