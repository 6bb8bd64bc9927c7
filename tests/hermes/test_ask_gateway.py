"""`ask` behind a gateway: a client of the API server, people in chats, and nobody at all."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.harness.home import Gateway, HermesHome
from tests.harness.irc import ChatServer, chat_server
from tests.hermes.errands import Errands
from tests.hermes.words import give_words

from hermes_ext.testing import ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

CAREFUL = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def careful(tool_args):
    return HookResult.ask('Really?')
"""


class Writer(Errands):
    """A model that writes the files it is told to, one after the other: `go one two one`."""

    def call(self, name: str) -> ToolUse:
        return ToolUse("write_file", {"path": str(self.folder / name), "content": "x"})

    def written(self) -> list[str]:
        """The names of the files that are there; they are removed."""
        files = sorted(self.folder.iterdir())
        for file in files:
            file.unlink()
        return [file.name for file in files]


class Run:
    """One run of the API server: its events as they come, and a client's answers."""

    def __init__(self, gateway: Gateway, task: str) -> None:
        self._gateway = gateway
        answer = gateway.post("/v1/runs", {"input": task})
        self.id = answer.body["run_id"]
        self._link = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=120)
        self._link.request("GET", f"/v1/runs/{self.id}/events", headers=gateway.authorization)
        self._events = self._read(self._link.getresponse())

    def next(self, *kinds: str) -> dict[str, Any]:
        """The next event of these kinds."""
        return next(event for event in self._events if event["event"] in kinds)

    def asked(self) -> dict[str, Any]:
        return self.next("approval.request", "run.completed", "run.failed", "run.cancelled")

    def answer(self, choice: str) -> int:
        return self._gateway.post(f"/v1/runs/{self.id}/approval", {"choice": choice}).status

    def stop(self) -> None:
        self._gateway.post(f"/v1/runs/{self.id}/stop", {})

    def close(self) -> None:
        self._link.close()

    @staticmethod
    def _read(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
        for line in response:
            if line.startswith(b"data:"):
                yield json.loads(line[5:])


@contextmanager
def waiting_at_most(home: HermesHome, seconds: int) -> Iterator[None]:
    """Hermes waits so long for an answer; it looks at its config for each question."""
    home.write_config({"approvals": {"timeout": seconds}})
    try:
        yield
    finally:
        home.write_config({"approvals": {"timeout": 600}})


def test_people_behind_a_gateway(
    hermes: HomeFactory, model_factory: ModelFactory, tmp_path: Path
) -> None:
    """A yes is for the run or chat that was asked, and for this very call."""
    from tools import approval

    folder = tmp_path / "written"
    folder.mkdir()
    writer = Writer(folder)
    model = model_factory(writer)
    # A line takes the bot 0.3 s, and it says that it is done before it is.
    quiet = {"tool_progress": "off", "busy_input_mode": "queue"}
    home = hermes(model, config={"approvals": {"timeout": 600}, "display": quiet})
    home.extension("careful", CAREFUL)
    give_words(home)
    with chat_server() as chats, home.gateway(env=chats.env) as gateway:
        nobody_is_asked(gateway, model, writer)
        if hasattr(approval, "request_tool_approval"):
            clients(gateway, home, writer)
            people(chats, home, model, writer)


def nobody_is_asked(gateway: Gateway, model: ScriptedModel, writer: Writer) -> None:
    """A plain request to the API server has nobody who could answer."""
    gateway.ask("go one")
    assert writer.written() == []
    assert "nobody is there" in model.main_requests[-1].tool_results[-1][1]


def clients(gateway: Gateway, home: HermesHome, writer: Writer) -> None:
    with closing(Run(gateway, "go one one two")) as run:
        asked = run.asked()
        assert asked["event"] == "approval.request"
        assert asked["description"].startswith("[careful] Really?")
        assert str(writer.folder / "one") in asked["command"]
        assert run.answer("yes, please") == 400
        assert writer.written() == []
        assert run.answer("session") == 200
        assert str(writer.folder / "two") in run.asked()["command"]  # the second "one" is covered
        assert writer.written() == ["one"]
        assert run.answer("deny") == 200
        assert run.asked()["event"] == "run.completed"
    assert writer.written() == []
    with closing(Run(gateway, "go one")) as run:  # another run's session
        assert run.asked()["event"] == "approval.request"
        run.stop()
        assert run.asked()["event"] == "run.cancelled"
    assert writer.written() == []
    with waiting_at_most(home, 1), closing(Run(gateway, "go one")) as run:
        assert run.asked()["event"] == "approval.request"
        assert run.asked()["event"] == "run.completed"
    assert writer.written() == []


def people(chats: ChatServer, home: HermesHome, model: ScriptedModel, writer: Writer) -> None:
    chats.say("ann", "go one")
    shown = chats.hears("ann", "/deny")
    assert "[careful] Really?" in shown
    assert str(writer.folder / "one") in shown
    chats.say("cat", "/approve")  # another chat
    chats.hears("cat", "pending")
    chats.say("bob", "go one")
    chats.hears("bob", "/deny")
    assert writer.written() == []
    chats.say("ann", "/approve session")
    chats.hears("ann", "All done.")
    assert writer.written() == ["one"]
    chats.say("bob", "/deny not today")
    chats.hears("bob", "All done.")
    assert writer.written() == []
    assert any("not today" in text for _, text in model.main_requests[-1].tool_results)

    chats.say("ann", "go one two")  # the first was allowed for this chat
    assert str(writer.folder / "two") in chats.hears("ann", "/deny")
    assert writer.written() == ["one"]
    chats.say("ann", "/approve always")
    chats.hears("ann", "All done.")
    assert writer.written() == ["two"]
    text = home.config_path.read_text(encoding="utf-8")
    assert len(re.findall(r"plugin_rule:careful:careful:[0-9a-f]{64}", text)) == 1
    chats.say("bob", "go two three")  # what is always allowed, and what is not
    assert str(writer.folder / "three") in chats.hears("bob", "/deny")
    assert writer.written() == ["two"]
    chats.say("bob", "/deny")
    chats.hears("bob", "All done.")
    assert writer.written() == []
