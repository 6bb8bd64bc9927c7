"""One question where Hermes would ask about the same command too, and what a yes to it covers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.harness.home import HermesHome
from tests.harness.irc import chat_server
from tests.hermes.errands import Errands
from tests.hermes.stage import HEAD, play
from tests.hermes.test_ask_gateway import Run
from tests.hermes.test_ask_terminal import DENY, ONCE, PANEL, chat
from tests.hermes.words import give_words

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

CAREFUL = (
    HEAD.replace("import __main__\n", "")
    + """
@register_hook('intercept_tool_call', guard=True, tools=['terminal'])
def careful(tool_args):
    if 'rm' in tool_args['command']:
        return HookResult.ask('Really?')
"""
)

# `data` is a folder with a file, made anew for each command. What was asked, and whether it ran.
PERSON = """
import shutil
from pathlib import Path
from tools import approval
from tools.terminal_tool import set_approval_callback

asked, says = [], ['once']
def person(command, text, **options):
    asked.append(text)
    return says.pop(0) if len(says) > 1 else says[0]
set_approval_callback(person)
agent = stage.agent(enabled_toolsets=['stage', 'terminal'])

def run(command, *answers):
    asked.clear()
    says[:] = answers or ['deny']
    Path('data').mkdir(exist_ok=True)
    Path('data', 'file').write_text('x')
    (result,) = stage.use(agent, ToolUse('terminal', {'command': command}))
    return [asked[:], not Path('data').exists(), result]

facts = {'merged': hasattr(approval, 'request_tool_approval')}
"""

RM = "rm -rf data"


@pytest.fixture
def careful(hermes: HomeFactory) -> HermesHome:
    """A home whose guard asks about each command with `rm` in it."""
    home = hermes()
    home.extension("careful", CAREFUL)
    return home


def test_a_person_is_asked_once(careful: HermesHome) -> None:
    """One question has both reasons; a yes covers one execution and is stored nowhere."""
    facts = play(
        careful,
        PERSON
        + f"""
facts['once'] = run({RM!r}, 'once')
facts['again'] = run({RM!r}, 'once')
facts['other'] = run({RM!r} + ' x', 'once')
facts['deny'] = run({RM!r}, 'deny')
facts['harmless'] = run('echo rm', 'once')
facts['session'] = run({RM!r} + ' y', 'session')
facts['stored'] = [sorted(approval._permanent_approved), list(map(sorted,
                   approval._session_approved.values()))]
# Our own question is answered for the session, Hermes's is not.
facts['after session'] = run({RM!r} + ' y', 'deny')
report(**facts)
""",
        HERMES_INTERACTIVE="1",
    )
    if not facts["merged"]:
        pytest.skip("this Hermes asks about no tools")
    for which in ("once", "again", "other"):
        asked, ran, _ = facts[which]
        assert ran
        (text,) = asked
        assert text.startswith("[careful] Really?")
        assert "delete" in text  # Hermes's reason
    asked, ran, result = facts["deny"]
    assert (len(asked), ran) == (1, False)
    assert "[careful]" in result
    assert facts["harmless"][0] == ["[careful] Really?"]
    permanent, sessions = facts["stored"]
    assert permanent == []
    assert all(key.startswith("plugin_rule:careful:") for keys in sessions for key in keys)
    asked, ran, _ = facts["after session"]
    assert (len(asked), ran) == (1, False)
    assert "careful" not in asked[0]


def test_what_hermes_decides_stays(careful: HermesHome) -> None:
    """A yes lifts no block of Hermes's; what Hermes allows for the session, we still ask about."""
    careful.write_config({"approvals": {"deny": ["rm -rf data blocked*"]}})
    facts = play(
        careful,
        PERSON
        + f"""
facts['denied'] = run({RM!r} + ' blocked', 'once')
facts['hard'] = run({RM!r} + '; mkfs.ext4 ./none', 'once')
key = approval.detect_dangerous_command({RM!r})[1]
approval.approve_session(approval.get_current_session_key(), key)
facts['allowed'] = [run({RM!r}, 'once'), run({RM!r}, 'deny')]
report(**facts)
""",
        HERMES_INTERACTIVE="1",
    )
    if not facts["merged"]:
        pytest.skip("this Hermes asks about no tools")
    assert facts["denied"][1] is False
    assert facts["hard"][1] is False
    assert "BLOCKED" in facts["hard"][2]
    (yes, no) = facts["allowed"]
    assert yes[:2] == [["[careful] Really?"], True]
    assert no[:2] == [["[careful] Really?"], False]


@pytest.mark.parametrize("who", ["rule", "changed", "smart", "reason"])
def test_no_answer_of_a_person_to_this(careful: HermesHome, who: str) -> None:
    """Hermes asks itself where its own question was not answered with ours."""
    driver = {
        # Another plugin's middleware has the call, and the person has agreed to nothing there.
        "rule": "approval.approve_session(approval.get_current_session_key(), KEY)\n",
        # A call from inside of the tool is not the one that was agreed to.
        "changed": """
from tools import terminal_tool
guards = terminal_tool._check_all_guards_impl
terminal_tool._check_all_guards_impl = lambda command, *a, **k: guards(command + ' z', *a, **k)
""",
        "smart": """
real = approval.prompt_dangerous_approval
def smart(command, description, *a, **k):
    return real(command, description, *a, **{**k, 'smart_denied': True})
approval.check_all_command_guards.__globals__['prompt_dangerous_approval'] = smart
""",
        "reason": """
found = approval.detect_dangerous_command
calls = []
def changing(command):
    calls.append(command)
    dangerous, key, reason = found(command)
    return dangerous, key, reason + (' now' if len(calls) > 1 else '')
approval.detect_dangerous_command = changing
""",
    }[who]
    if who == "rule":
        careful.extension("careful", CAREFUL.replace("'Really?'", "'Really?', key='rm'"))
        driver = driver.replace("KEY", "'plugin_rule:careful:careful:rm'")
    answers = "'deny'" if who == "rule" else "'once', 'deny'"
    run = f"facts['run'] = run({RM!r}, {answers})\nreport(**facts)\n"
    facts = play(careful, PERSON + driver + run, HERMES_INTERACTIVE="1")
    if not facts["merged"]:
        pytest.skip("this Hermes asks about no tools")
    asked, ran, _ = facts["run"]
    assert ran is False
    assert "careful" not in asked[-1]
    assert len(asked) == (1 if who == "rule" else 2)


def test_the_setting_is_not_a_person(careful: HermesHome) -> None:
    """`ask_without_human: approve` answers our question and never Hermes's."""
    careful.write_config({"extensions": {"ask_without_human": "approve"}})
    facts = play(
        careful,
        PERSON
        + f"""
from hermes_ext.hosts.hermes.adapter.person import approvals
approvals._someone_there = lambda: False
facts['run'] = run({RM!r}, 'deny')
report(**facts)
""",
        HERMES_INTERACTIVE="1",
    )
    asked, ran, _ = facts["run"]
    assert ran is False
    assert len(asked) == 1
    assert "careful" not in asked[0]


def test_what_is_long(careful: HermesHome) -> None:
    """Both ends of a long command are shown, and where all of it is while the question is open."""
    careful.extension("careful", CAREFUL)
    facts = play(
        careful,
        PERSON.replace(
            "asked.append(text)",
            """asked.append(text)
    found = re.search(r'all of it: (\\S+)', text)
    if found:
        place = Path(found[1])
        seen.append([place.read_text(), oct(place.stat().st_mode), str(place)])""",
        ).replace("import shutil", "import re, shutil")
        + f"""
facts['run'] = run('echo ' + 'word ' * 2000 + '\\u202e\\x1b[2K\\n' + {RM!r}, 'deny')
facts['seen'] = seen
report(**facts)
""",
        HERMES_INTERACTIVE="1",
    )
    if not facts["merged"]:
        pytest.skip("this Hermes asks about no tools")
    (text,) = facts["run"][0]
    ((full, mode, place),) = facts["seen"]
    assert full.count("word ") == 2000
    assert full.endswith(f"\n{RM}\n")
    assert r"\u202e\x1b[2K" in full
    assert not any(char in text + full for char in "\u202e\x1b")
    assert mode == "0o100600"
    assert not Path(place).exists()


def test_at_a_terminal(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """One panel in `hermes chat`: a yes runs the command, and nothing more is asked."""
    from tools import approval

    if not hasattr(approval, "request_tool_approval"):
        pytest.skip("this Hermes asks about no tools")

    def script(request: ModelRequest) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply(f"Heard {len(request.tool_results)}.")
        filler = "word " * 1000 if "long" in request.last_user else ""
        command = f"rm -rf one {filler} two"
        return Reply(tool_calls=(ToolUse("terminal", {"command": command}),))

    home = hermes(
        model_factory(script),
        config={"approvals": {"timeout": 600}, "extensions": {"on": ["confirm-destructive"]}},
    )
    give_words(home)
    with chat(home) as person:
        shown = person.asked("short")
        assert "[confirm-destructive]" in shown
        assert "Hermes asks too" in shown
        (home.project / "one").touch()
        person.terminal.press(ONCE)
        person.terminal.wait("Heard 1.")
        person.terminal.wait(lambda: PANEL not in person.terminal.screen)
        assert not (home.project / "one").exists()
        person.asked("long")
        (home.project / "one").touch()
        # The panel's last lines may be drawn after its first.
        person.terminal.wait(
            lambda: 'word word two"}' in " ".join(re.split(r"[│\s]+", person.terminal.screen))
        )
        person.terminal.press("5")  # show the full command
        person.terminal.wait("left out")
        person.terminal.press(DENY)
        person.terminal.wait("Heard 2.")
        assert (home.project / "one").exists()


class Remover(Errands):
    """A model that runs `rm -rf` on each path that it is told: `go one two`."""

    def call(self, name: str) -> ToolUse:
        if name.startswith("script"):
            code = f"import shutil; shutil.rmtree({str(self.folder / name)!r})"
            return ToolUse("execute_code", {"code": code})
        return ToolUse("terminal", {"command": f"rm -rf {self.folder / name}"})


def test_behind_a_gateway(hermes: HomeFactory, model_factory: ModelFactory, tmp_path: Path) -> None:
    """A client of the API server and a person in a chat are asked once for each command."""
    from tools import approval

    if not hasattr(approval, "request_tool_approval"):
        pytest.skip("this Hermes asks about no tools")
    folder = tmp_path / "data"
    for name in ("one", "two", "script"):
        (folder / name).mkdir(parents=True)
    model = model_factory(Remover(folder))
    quiet = {"tool_progress": "off", "busy_input_mode": "queue"}
    home = hermes(model, config={"approvals": {"timeout": 600}, "display": quiet})
    home.extension(
        "careful",
        CAREFUL.replace("'terminal'", "'terminal', 'execute_code'").replace(
            "tool_args['command']", "str(tool_args)"
        ),
    )
    give_words(home)
    with chat_server() as chats, home.gateway(env=chats.env) as gateway:
        with closing(Run(gateway, "go one two")) as run:
            for name in ("one", "two"):
                asked = run.asked()
                assert asked["event"] == "approval.request", name
                assert name in asked["command"]
                assert asked["description"].startswith("[careful] Really?")
                assert "Hermes asks too" in asked["description"]
                assert (folder / name).exists()
                assert run.answer("once") == 200
            assert run.asked()["event"] == "run.completed"
        assert [each.name for each in folder.iterdir()] == ["script"]
        for name in ("one", "two"):
            (folder / name).mkdir()
        chats.say("ann", "go one script two")
        assert "Hermes asks too" in chats.hears("ann", "/deny")
        chats.say("ann", "/approve")
        assert "execute_code script execution" in chats.hears("ann", "/deny")
        assert not (folder / "one").exists()
        chats.say("ann", "/approve")
        assert str(folder / "two") in chats.hears("ann", "/deny")
        assert not (folder / "script").exists()
        chats.say("ann", "/deny")
        chats.hears("ann", "All done.")
        assert (folder / "two").exists()
    assert "command_allowlist" not in home.config_path.read_text(encoding="utf-8")
    lines = (home.home / "logs" / "extensions.jsonl").read_text(encoding="utf-8").splitlines()
    assert any(json.loads(line).get("approved") for line in lines)
    assert not list(home.home.glob("cache/hermes-ext-questions/*"))
    assert re.search("careful", lines[-1])
