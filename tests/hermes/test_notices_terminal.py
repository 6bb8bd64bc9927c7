"""What a person at `hermes chat` sees of the rules: the lines are on the screen after the turn."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.harness.home import HermesHome, hermes_command
from tests.harness.terminal import ENTER, Terminal, terminal

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

GUARD = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def no_plan(tool_args):
    return HookResult.block('no plan yet')


@register_hook('transform_tool_result', tools=['terminal'])
def shorter(result):
    return HookResult.rewrite('It worked.')
"""

NOTE = """\
from hermes_ext import HookResult, register_hook


@register_hook('before_llm_call')
def note():
    return HookResult.inject_system('x')
"""

BLOCKED = "┊ house-rules blocked write_file"


def script(request: ModelRequest) -> Reply:
    """Does what it is told: "write N" writes N files, anything else is run as a command."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return Reply(f"Done with {request.last_user}.")
    word, _, rest = request.last_user.partition(" ")
    if word == "write":
        names = range(int(rest))
        return Reply(
            tool_calls=tuple(ToolUse("write_file", {"path": f"{n}", "content": "x"}) for n in names)
        )
    return Reply(tool_calls=(ToolUse("terminal", {"command": request.last_user}),))


class Chat:
    """One `hermes chat`, as the person at it sees it."""

    def __init__(self, person: Terminal) -> None:
        self.person = person

    def turn(self, text: str) -> None:
        """Say what was not said before, and wait until the turn is over and the prompt is back."""
        self.person.press(text)
        self.person.wait(text)
        self.person.press(ENTER)
        self.person.wait(f"Done with {text}.")
        self.person.wait(self.person.is_idle)

    @property
    def lines(self) -> list[str]:
        return self.person.screen.splitlines()

    @property
    def text(self) -> str:
        """The screen, with lines that the terminal wrapped put together."""
        return "".join(self.lines)


@contextmanager
def chat(home: HermesHome, cols: int) -> Iterator[Chat]:
    command = (*hermes_command(), "chat")
    with terminal(command, home.project, home.env(), rows=90, cols=cols) as person:
        person.wait(person.is_idle)
        yield Chat(person)


def home_with_rules(
    hermes: HomeFactory, model_factory: ModelFactory, **extensions: object
) -> HermesHome:
    home = hermes(model_factory(script), extensions=extensions)
    home.extension("house-rules", GUARD)
    return home


@pytest.mark.parametrize("cols", [40, 80, 200])
def test_a_blocked_call_is_on_the_screen(
    hermes: HomeFactory, model_factory: ModelFactory, cols: int
) -> None:
    """In one line of its own at any width; equal blocks of a turn are a number in a second line."""
    home = home_with_rules(hermes, model_factory)
    with chat(home, cols) as person:
        person.turn("write 3")
        found = [line for line in person.lines if BLOCKED in line]
    assert len(found) == 2, person.text
    first, others = found
    if cols == 40:
        assert first == f"{BLOCKED}: no pl…"
        assert others == f"{BLOCKED} 2 more…"
    else:
        assert first == f"{BLOCKED}: no plan yet (/extensions why)"
        assert others == f"{BLOCKED} 2 more times: no plan yet (/extensions why)"


def test_what_is_not_in_force_is_on_the_screen(
    hermes: HomeFactory, model_factory: ModelFactory
) -> None:
    """At 80 columns: a fault of the configuration, an untrusted project, an extension that does
    not load, and later what changed while the agent was at work; and what `all` reports.
    """
    home = home_with_rules(hermes, model_factory, notify="all", log="dicisions")
    rule = home.home / "extensions" / "house-rules" / "__init__.py"
    home.extension("planted", NOTE, project=True)
    home.extension("broken", "def (:\n")
    (home.project / "work.sh").write_text(f"echo '# agent' >> '{rule}'\n")
    with chat(home, 80) as person:
        person.turn("write 1")
        shown = person.text
        assert 'extensions.log: found the string "dicisions"' in shown.replace("'", '"')
        assert re.search(r"hermes-ext: project extensions in \S+ are not loaded: planted", shown)
        assert "hermes extensions trust" in shown
        assert "hermes-ext: extension broken is not in force (load-error): " in shown
        assert "changed while the agent was at work" not in shown
        person.turn("sh work.sh")
        assert "┊ house-rules rewrote the result of terminal (/extensions why)" in person.text
        person.turn("write 2")
        assert "hermes-ext: changed while the agent was at work, and not taken: " in person.text
        assert str(rule) in person.text
        (old,) = json.loads(home.cli("extensions", "list", "--json").stdout)["old_rules"]
        assert str(rule) in old["reason"]
        os.kill(old["pid"], 0)  # it runs
        assert person.text.count("are not loaded: planted") == 1


def test_off_shows_no_line_of_what_rules_did(
    hermes: HomeFactory, model_factory: ModelFactory
) -> None:
    """`notify: off` leaves the block to the model's words; what is not in force is still said."""
    home = home_with_rules(hermes, model_factory, notify="off", disabled="house")
    with chat(home, 80) as person:
        person.turn("write 1")
        assert "┊ house-rules" not in person.text
        assert "extensions.disabled: " in person.text
