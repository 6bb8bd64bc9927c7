"""`ask` with a person: what they are shown, what a yes covers, and who else cannot say it."""

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

CAREFUL = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True, tools=['jot', 'write_file'])
def careful(tool_name, tool_args, interactive):
    __main__.seen.append(interactive)
    return HookResult.ask('Really?\\x1b[2K\\rYes')
"""
)

PERSON = """
from tools.terminal_tool import set_approval_callback
asked, says = [], 'once'
def person(command, text, **options):
    asked.append([command, text])
    return says
set_approval_callback(person)
agent = stage.agent()
facts = {}
"""


def test_a_person_answers(hermes: HomeFactory) -> None:
    """A yes runs the call, a no refuses it, and neither covers a call with other arguments."""
    home = hermes()
    home.extension("careful", CAREFUL)
    facts = play(
        home,
        PERSON
        + """
from tools import approval
facts['gate'] = hasattr(approval, 'request_tool_approval')
for says in ('once', 'deny', 'session', 'always'):
    asked.clear()
    results = stage.use(agent, jot(says), jot('other ' + says)) + stage.use(agent, jot(says))
    facts[says] = [asked[:], results, stage.jots]
says = 'once'
asked.clear()
stage.use(agent, write('a\\u202e\\n\\x1b[31mb.txt', 'X' * 5000), write('c.txt'))
facts['shown'] = asked[:]
report(**facts)
""",
        HERMES_INTERACTIVE="1",
    )
    if not facts["gate"]:  # a Hermes that cannot ask about tools: nobody says yes
        assert not any(facts[says][2] for says in ("once", "session", "always"))
        return
    asked, _, jots = facts["once"]
    assert jots == ["once 1", "other once 1", "once 1"]
    assert len(asked) == 3
    asked, results, jots = facts["deny"]
    assert jots == []
    assert all("[careful]" in text for text in results)
    for says in ("session", "always"):
        asked, _, jots = facts[says]
        assert jots == [f"{says} 1", f"other {says} 1", f"{says} 1"]
        assert len(asked) == 2  # the same call again is covered, other arguments are not
    shown = "\n".join(part for asked in facts["shown"] for part in asked)
    assert len(facts["shown"]) == 2
    assert "[careful] Really?\\x1b[2K\\rYes" in shown
    assert "write_file" in shown
    assert "c.txt" in shown
    assert not any(char in shown for char in "\u202e\x1b\r")
    assert "5000" not in shown
    assert "characters left out" in shown


@pytest.mark.parametrize("who", ["script", "yolo", "mode-off"])
def test_nobody_is_there(hermes: HomeFactory, who: str) -> None:
    """Without a person, or in modes that approve everything, a call that needs a yes is refused."""
    config = {"approvals": {"mode": "off"}} if who == "mode-off" else {}
    home = hermes(config=config)
    home.extension("careful", CAREFUL)
    env = {
        "script": {},
        "yolo": {"HERMES_YOLO_MODE": "1", "HERMES_INTERACTIVE": "1"},
        "mode-off": {"HERMES_INTERACTIVE": "1"},
    }[who]
    facts = play(
        home,
        PERSON
        + "report(results=stage.use(agent, jot('x'), write('a'), write('b')), asked=asked)\n",
        **env,
    )
    assert list(home.project.iterdir()) == []
    assert facts["asked"] == []
    assert all("[careful]" in text for text in facts["results"])


CRON_JOB = """
import sys
from cron.jobs import create_job, trigger_job
trigger_job(create_job('go', 'every 5h', deliver='local')['id'])
sys.argv = ['hermes', 'cron', 'tick']
from hermes_cli.main import main
main()
"""


@pytest.fixture
def writing(model_factory: ModelFactory) -> ScriptedModel:
    """A model that writes the file `a` of the project, and says that it is done."""

    def script(request: ModelRequest) -> Reply:
        if request.tool_results:
            return Reply("Done.")
        return Reply(tool_calls=(ToolUse("write_file", {"path": "a", "content": "x"}),))

    return model_factory(script)


def asking(hermes: HomeFactory, model: ScriptedModel, **approvals: str) -> HermesHome:
    """A home whose guard asks before each write."""
    home = hermes(model, config={"approvals": approvals})
    home.extension("careful", CAREFUL.replace("__main__.seen.append(interactive)", "pass"))
    return home


def test_a_cron_job(hermes: HomeFactory, writing: ScriptedModel) -> None:
    """Cron has nobody to ask, whatever Hermes itself approves there."""
    home = asking(hermes, writing, cron_mode="approve")
    home.python(CRON_JOB, env={"HERMES_INTERACTIVE": "1"}).check()
    assert list(home.base.rglob("a")) == []
    (result,) = writing.main_requests[-1].tool_results
    assert "nobody is there" in result[1]


def test_a_single_query(hermes: HomeFactory, writing: ScriptedModel) -> None:
    """`chat -q` has nobody to ask either, whatever Hermes itself approves there."""
    home = asking(hermes, writing, single_query_mode="approve")
    home.chat("go").check()
    assert list(home.project.iterdir()) == []
    (result,) = writing.main_requests[-1].tool_results
    assert "nobody is there" in result[1]


NO_EVIL = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def no_evil(tool_args):
    if 'evil' in str(tool_args):
        return HookResult.block('no evil')
"""
)


def test_the_user_has_answered_for_where_nobody_is(hermes: HomeFactory) -> None:
    """`ask_without_human: approve` answers yes and is logged; it lifts no block, and no no."""
    home = hermes(extensions={"ask_without_human": "approve"})
    home.extension("careful", CAREFUL)
    home.extension("no-evil", NO_EVIL)
    facts = play(
        home,
        PERSON
        + """
from tools import approval
key = 'here'
approval_sessions().set_current_session_key(key)
says = 'deny'
facts['person'] = [stage.use(agent, jot('x')), stage.jots, len(asked)]
approval.enable_session_yolo(key)
facts['yolo'] = [stage.use(agent, jot('fine'), jot('evil')), stage.jots, len(asked)]
approval.disable_session_yolo(key)
os.environ['HERMES_INTERACTIVE'] = ''
facts['script'] = [stage.use(agent, jot('fine'), jot('evil')), stage.jots, len(asked)]
report(**facts)
""",
        HERMES_INTERACTIVE="1",
    )
    # A Hermes that cannot ask about tools has nobody there either.
    answered = 1 if facts["person"][2] else 0
    assert facts["person"][1] == ([] if answered else ["x 1"])
    for who in ("yolo", "script"):
        results, jots, asked = facts[who]
        assert jots == ["fine 1"]
        assert "[no-evil] no evil" in results[1]
        assert asked == answered
    lines = (home.home / "logs" / "extensions.jsonl").read_text(encoding="utf-8").splitlines()
    told = [line for line in map(json.loads, lines) if line["hook"] == "intercept_tool_call"]
    by_setting = [line for line in told if line.get("decided_by") == "setting"]
    assert [line["approved"] for line in by_setting] == [True] * (3 - answered)


def test_a_person_in_a_chat(hermes: HomeFactory) -> None:
    """On a chat platform the question goes to the chat; a no, or nobody listening, refuses."""
    home = hermes()
    home.extension("careful", CAREFUL)
    facts = play(
        home,
        """
        from tools import approval
        asked, says = [], None
        def notify(data):
            asked.append([data['description'], data['pattern_key']])
            threading.Thread(
                target=approval.resolve_gateway_approval, args=('chat', says)).start()
        approval_sessions().set_current_session_key('chat')
        agent = stage.agent(session_id='chat')
        facts = {'gate': hasattr(approval, 'request_tool_approval')}
        facts['unheard'] = [stage.use(agent, jot('unheard')), stage.jots]
        approval.register_gateway_notify('chat', notify)
        for says in ('once', 'deny', 'no', 'session'):
            asked.clear()
            results = stage.use(agent, jot(says)) + stage.use(agent, jot(says), jot('not ' + says))
            facts[says] = [asked[:], results, stage.jots]
        report(**facts)
        """,
        HERMES_GATEWAY_SESSION="1",
    )
    assert facts["unheard"][1] == []
    assert "[careful]" in facts["unheard"][0][0]
    for says in ("deny", "no"):  # Hermes itself takes for a yes what is not "deny"
        asked, results, jots = facts[says]
        assert jots == []
        assert all("[careful]" in text for text in results)
    if not facts["gate"]:  # a Hermes that cannot ask about tools: nobody says yes
        assert (facts["once"][2], facts["session"][2]) == ([], [])
        return
    asked, _, jots = facts["once"]
    assert jots == ["once 1", "once 1", "not once 1"]
    assert [text.startswith("[careful] Really?\\x1b") for text, _ in asked] == [True] * 3
    asked, _, jots = facts["session"]
    assert jots == ["session 1", "session 1", "not session 1"]
    assert len({key for _, key in asked}) == len(asked) == 2
