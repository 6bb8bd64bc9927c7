"""`/extensions log` and `why` in the real Hermes: each chat sees its own session, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome

from hermes_ext.testing import ScriptedModel

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

RULE = """
from hermes_ext import HookResult, register_hook

@register_hook('intercept_tool_call', guard=True)
def no(tool_args):
    return HookResult.block('not in ' + tool_args['path'])
"""

# Three chats of a gateway, of which one has had no turn yet; then the terminal's chat.
DRIVER = r"""
import asyncio, json
from pathlib import Path
import run_agent, cli
from gateway.config import GatewayConfig, Platform
from gateway.platforms.base import MessageEvent
from gateway.run import GatewayRunner
from gateway.session import SessionSource
from hermes_ext.hosts.hermes.adapter import host

runtime = host.runtime()

def decided_in(session):
    with runtime.turn(session_id=session) as turn:
        turn.intercept_tool_call('write_file', {'path': session})
    runtime.log.flush(30)
    return session

runner = GatewayRunner(GatewayConfig())
chats = [
    SessionSource(platform=Platform.TELEGRAM, chat_id=str(n), user_id=str(n)) for n in range(3)
]
ids = [
    decided_in(runner.session_store.get_or_create_session(chat).session_id) for chat in chats[:2]
]
terminal = cli.HermesCLI()
ids.append(decided_in(terminal.session_id))

async def asked(text):
    return [
        str(await runner._handle_message(MessageEvent(text=text, source=chat))) for chat in chats
    ]

told = asyncio.run(asked('/extensions log'))
why = asyncio.run(asked('/extensions why'))
shown = []
cli._cprint = shown.append
terminal.process_command('/extensions log')
facts = {'ids': ids, 'told': told, 'why': why, 'shown': ''.join(map(str, shown))}
Path('facts.json').write_text(json.dumps(facts))
"""


def test_each_chat_sees_its_own_decisions(
    model_factory: Callable[..., ScriptedModel], hermes: Callable[..., HermesHome]
) -> None:
    """Two chats of one gateway and the terminal's, all in one process; a new chat sees nothing."""
    home = hermes(model_factory())
    home.extension("rule", RULE)
    run = home.python(DRIVER, env={"GATEWAY_ALLOW_ALL_USERS": "true"})
    assert run.returncode == 0, run
    facts = json.loads((home.project / "facts.json").read_text())

    first, second, terminal = facts["ids"]
    for answer, own in (
        (facts["told"][0], first),
        (facts["told"][1], second),
        (facts["why"][0], first),
        (facts["why"][1], second),
        (facts["shown"], terminal),
    ):
        assert f"not in {own}" in answer
        assert answer.count("not in ") == 1
    for answer in (facts["told"][2], facts["why"][2]):
        assert answer.startswith("the session of this chat is not known here")
