"""`ask` at a terminal: the panel of `hermes chat`, a person's keys, and what a yes covers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.harness.home import HermesHome, hermes_command
from tests.harness.terminal import CTRL_C, ENTER, Terminal, terminal
from tests.hermes.words import give_words

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

CAREFUL = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def careful(tool_args):
    return HookResult.ask('Really?\\x1b[2K\\rYes')
"""

# As on a machine whose kernel confines nothing.
NOTHING_CONFINES = """\
from functools import partial
from hermes_ext import confine, register_hook

confine.support = partial(
    confine.support, without=frozenset({'namespaces', 'landlock', 'bubblewrap'})
)


@register_hook('intercept_tool_call')
def nothing():
    return None
"""

ONCE, SESSION, ALWAYS, DENY, FULL = "12345"
PANEL, READY = "Allow once", "Type your message"
ODD = "a\u202e\x1b[31m\nb.txt"
LONG = "X" * 3000
RUN = ToolUse("terminal", {"command": "sh ../run.sh"})


def script(request: ModelRequest, call: ToolUse | None = None) -> Reply:
    """Makes a call, else writes the file that it is told to; says how many results it has had."""
    if request.messages[-1]["role"] == "tool":
        return Reply(f"Heard {len(request.tool_results)}.")
    if call is not None:
        return Reply(tool_calls=(call,))
    told = re.search(r"go (\w+)", request.last_user)
    assert told is not None, request.last_user
    name = told[1]
    args = {"content": LONG if name == "long" else "x", "path": f"{name}.txt"}
    return Reply(
        tool_calls=(ToolUse("write_file", args | ({"path": ODD} if name == "odd" else {})),)
    )


class Chat:
    """One `hermes chat`, as the person at it sees it."""

    def __init__(self, terminal: Terminal, home: HermesHome) -> None:
        self.terminal = terminal
        self._home = home
        self._heard = 0

    def go(self, name: str) -> None:
        """Say "go NAME"; the model writes that file."""
        self.terminal.press(f"go {name}")
        self.terminal.wait(f"go {name}")
        self.terminal.press(ENTER)

    def asked(self, name: str) -> str:
        """Say it, and wait for the panel that asks; returns the screen."""
        self.go(name)
        return self.terminal.wait(PANEL)

    def answer(self, keys: str) -> bool:
        """Answer the panel; returns whether the file was written."""
        self.terminal.press(keys)
        return self.heard()

    def heard(self) -> bool:
        """Wait for the end of the turn; returns whether the file was written, and removes it."""
        self._heard += 1
        self.terminal.wait(f"Heard {self._heard}.")
        self.terminal.wait(lambda: PANEL not in self.terminal.screen)
        files = list(self._home.project.iterdir())
        for file in files:
            file.unlink()
        return bool(files)

    def new_session(self) -> None:
        self.terminal.wait(self.terminal.is_idle)
        self.terminal.press("/new")
        self.terminal.wait("/new")
        self.terminal.press(ENTER)
        self.terminal.wait("New session started")
        self._heard = 0


@contextmanager
def chat(home: HermesHome) -> Iterator[Chat]:
    with terminal((*hermes_command(), "chat"), home.project, home.env()) as person:
        person.wait(READY)
        yield Chat(person, home)


def home_with(hermes: HomeFactory, model: ScriptedModel, timeout: int) -> HermesHome:
    approvals = {"timeout": timeout, "destructive_slash_confirm": False}
    home = hermes(model, config={"approvals": approvals})
    home.extension("careful", CAREFUL)
    give_words(home)
    return home


def allowed(home: HermesHome) -> list[str]:
    """What `config.yaml` says is always allowed."""
    return re.findall(r"plugin_rule:[\w:]+", home.config_path.read_text(encoding="utf-8"))


def can_ask() -> bool:
    from tools import approval

    return hasattr(approval, "request_tool_approval")


def test_a_person_at_the_terminal(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """Each key of the panel does what it says, for this very call and no other."""
    if not can_ask():
        pytest.skip("this Hermes asks about no tools")
    home = home_with(hermes, model_factory(script), timeout=600)
    with chat(home) as person:
        shown = person.asked("one")
        assert '<write_file {"content": "x", "path": "one.txt"}>' in shown
        assert r"[careful] Really?\x1b[2K\rYes" in shown
        assert person.answer(ONCE)
        person.asked("one")
        assert not person.answer(DENY)

        person.asked("two")
        assert person.answer(SESSION)
        person.go("two")
        assert person.heard()
        person.asked("other")
        assert not person.answer(DENY)

        person.asked("three")
        assert person.answer("9?" + ALWAYS)  # what is no answer is none
        assert allowed(home) == [allowed(home)[0]]
        assert re.fullmatch(r"plugin_rule:careful:careful:[0-9a-f]{64}", allowed(home)[0])

        shown = person.asked("odd")
        assert r"a\u202e\u001b[31m\nb.txt" in shown
        assert "\u202e" not in shown
        person.terminal.press(CTRL_C)
        person.terminal.wait(lambda: PANEL not in person.terminal.screen)
        person.terminal.wait(r'b.txt"}> (plugin approval rule) → denied')
        assert list(home.project.iterdir()) == []

        person.new_session()
        person.go("three")
        assert person.heard()
        shown = person.asked("two")
        assert not person.answer(DENY)
        shown = person.asked("long")
        assert "long.txt" in shown
        assert "(choose Show full command)" in shown
        person.terminal.press(FULL)
        person.terminal.wait("characters left out")
        assert person.answer(ONCE)


def test_what_cannot_be_confined_is_asked_about(
    hermes: HomeFactory, model_factory: ModelFactory
) -> None:
    """`confine_unavailable: ask`: a yes runs this call unconfined, and the question says so."""
    if not can_ask():
        pytest.skip("this Hermes asks about no tools")
    extensions = {"on": ["workflow-guard"], "confine_unavailable": "ask"}
    model = model_factory(lambda request: script(request, RUN))
    home = hermes(model, extensions=extensions, config={"approvals": {"timeout": 600}})
    home.extension("nothing-confines", NOTHING_CONFINES)
    (home.base / "run.sh").write_text("touch ran.txt\n")
    give_words(home)
    with chat(home) as person:
        shown = " ".join(person.asked("one").replace("│", " ").split())
        assert "[workflow-guard] no plan yet, and terminal cannot be confined: " in shown
        assert "A yes runs it unconfined" in shown
        assert not person.answer(DENY)
        person.asked("two")
        assert person.answer(ONCE)
    refused, ran = (text for _, text in model.main_requests[-1].tool_results)
    assert "[workflow-guard] " in refused
    assert '"exit_code": 0' in ran


def test_nobody_answers_at_the_terminal(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """No answer in time is a no. Where Hermes shows no panel, nobody is waited for."""
    model = model_factory(script)
    home = home_with(hermes, model, timeout=1)
    if can_ask():
        with chat(home) as person:
            person.go("one")
            assert not person.heard()
    home.write_config({"approvals": {"timeout": 600}})
    home.chat("go two", timeout=300).check()
    assert "[careful]" in model.main_requests[-1].tool_results[-1][1]
    assert "nobody is there" in model.main_requests[-1].tool_results[-1][1]
    assert list(home.project.iterdir()) == []
