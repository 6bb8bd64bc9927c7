"""`why`, `log` and `replay` name the handler that decided, by the settings that it was given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from tests.cli.conftest import Home
from tests.cli.test_why import facts

from hermes_ext import Runtime

HEAD = "from hermes_ext import HookResult, register_hook\n"
KEY = "AKIA" + "Z7Q4XK2M9T3B5N8P"

# Each has one handler for calls, in this order.
RULES = {
    "a_asks": """
@register_hook("intercept_tool_call", guard=True)
def asks(tool_args, config):
    if "ask" in tool_args["command"]:
        return HookResult.ask("ASK REASON", metadata={"setting": "words"})
""",
    "b_asks": """
@register_hook("intercept_tool_call", guard=True)
def asks_too(tool_args):
    if "two" in tool_args["command"]:
        return HookResult.ask("OTHER REASON", metadata={"setting": "words"})
""",
    "c_blocks": """
@register_hook("intercept_tool_call", guard=True)
def blocks(tool_args):
    if "block" in tool_args["command"]:
        return HookResult.block("BLOCK REASON", metadata={"setting": "words"})
""",
    "d_fails": """
@register_hook("intercept_tool_call", guard=True)
def fails(tool_args):
    if "fail" in tool_args["command"]:
        raise ValueError("broken")
""",
    "e_changes": """
@register_hook("intercept_tool_call", priority=1)
def changes(tool_args):
    if "change" in tool_args["command"]:
        command = tool_args["command"].replace("change", "changed")
        return HookResult.rewrite({**tool_args, "command": command}, metadata={"setting": "words"})

@register_hook("before_llm_call")
def reminds(messages):
    if "remind" in messages[0]["content"]:
        return HookResult.inject_system("Be brief.", metadata={"setting": "words"})
""",
    "f_answers": """
@register_hook("intercept_tool_call", priority=2)
def answers(tool_args):
    if "answer" in tool_args["command"]:
        return HookResult.answer("ready", metadata={"setting": "words"})
""",
    "g_watches": """
@register_hook("intercept_tool_call", guard=True)
def watches(tool_args):
    if "watch" in tool_args["command"]:
        return HookResult.block("WATCHED", metadata={"setting": "words"})
""",
}
MANIFEST = "config: {properties: {words: {default: [none]}}}\n"
LEVELS = ["decisions", "steps", "payloads"]


class Rules:
    """A home with all of them, whose question is answered by the test."""

    def __init__(self, home: Home, level: str = "decisions") -> None:
        self.home, self.level = home, level
        self.files = {
            name: home.add(name, HEAD + code, MANIFEST) / "__init__.py"
            for name, code in RULES.items()
        }
        self.set("then")

    def set(self, word: str, more: str = "") -> None:
        settings = "".join(f"  {name}: {{words: [{word}]}}\n" for name in RULES)
        self.home.write_config(
            f"extensions:\n  log: {self.level}\n  observe: [g_watches]\n{more}{settings}"
        )

    def run(self, command: str, *yes: str, nobody: bool = False) -> Any:
        def approver(request: Any) -> bool:
            return request.extension in yes

        runtime = Runtime.from_config(home=self.home.path, approver=None if nobody else approver)
        with runtime.turn(session_id="s1", turn_id="t1") as turn:
            outcome = turn.intercept_tool_call("terminal", {"command": command})
        runtime.close()
        return outcome

    def why(self, *argv: str) -> dict[str, Any]:
        (told,) = self.home.run("why", *argv, "--json").json["decisions"]
        return dict(told)

    def line_of(self, extension: str, handler: str) -> int:
        lines = self.files[extension].read_text().splitlines()
        return lines.index(next(each for each in lines if each.startswith(f"def {handler}(")))


@frozen
class Case:
    """A command, who says yes, and who decided how."""

    command: str
    who: tuple[str, str]
    action: str
    says: str
    yes: tuple[str, ...] = ()
    reason: str | None = None
    asked: tuple[str, ...] = ()
    named: bool = True


CASES = {
    "ask, then block": Case(
        "ask block", ("c_blocks", "blocks"), "block", "c_blocks blocked terminal",
        reason="BLOCK REASON", asked=("a_asks",),
    ),
    "two ask, then block": Case(
        "ask two block", ("c_blocks", "blocks"), "block", "c_blocks blocked terminal",
        reason="BLOCK REASON", asked=("a_asks", "b_asks"),
    ),
    "ask, then a failure": Case(
        "ask fail", ("d_fails", "fails"), "block",
        "d_fails blocked terminal, because its handler failed",
        reason="fails failed (ValueError), so this call is refused", asked=("a_asks",),
        named=False,
    ),
    "a change, then a block": Case(
        "change block", ("c_blocks", "blocks"), "block", "c_blocks blocked terminal",
        reason="BLOCK REASON",
    ),
    "refused": Case(
        "ask", ("a_asks", "asks"), "block", "a_asks asked about terminal: a person said no",
        reason="Not approved: ASK REASON",
    ),
    "the second one is refused": Case(
        "ask two", ("b_asks", "asks_too"), "block",
        "b_asks asked about terminal: a person said no", yes=("a_asks",),
        reason="Not approved: OTHER REASON", asked=("a_asks",),
    ),
    "approved": Case(
        "ask", ("a_asks", "asks"), "pass", "a_asks asked about terminal: a person said yes",
        yes=("a_asks",), reason="ASK REASON",
    ),
    "both approved": Case(
        "ask two change", ("a_asks", "asks"), "rewrite",
        "a_asks and b_asks asked about terminal: a person said yes", yes=("a_asks", "b_asks"),
        reason="ASK REASON; OTHER REASON",
    ),
    "rewrite": Case("change", ("e_changes", "changes"), "rewrite", "e_changes rewrote terminal"),
    "answer": Case("answer", ("f_answers", "answers"), "answer",
                   "f_answers answered terminal itself"),
    "change, then answer": Case("change answer", ("f_answers", "answers"), "answer",
                                "f_answers answered terminal itself"),
    "failure": Case(
        "fail", ("d_fails", "fails"), "block",
        "d_fails blocked terminal, because its handler failed",
        reason="fails failed (ValueError), so this call is refused", named=False,
    ),
    "observe": Case(
        "watch", ("g_watches", "watches"), "pass",
        "g_watches would have blocked terminal; it is only observed", reason="WATCHED",
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CASES)
def test_who_decided(home: Home, name: str, level: str) -> None:
    """Extension, handler, file, line, setting and value are right, and `log --json` agrees."""
    rules, case = Rules(home, level), CASES[name]
    outcome = rules.run(case.command, *case.yes)
    told = rules.why("last")
    extension, handler = case.who
    place = (str(rules.files[extension]), rules.line_of(extension, handler))

    assert told["says"] == case.says
    assert (told["extension"], told["handler"], told["reason"]) == (*case.who, case.reason)
    assert (told["file"], told["line"]) == place
    assert [each["extension"] for each in told["asked"]] == [*case.asked]
    setting = {
        "key": f"extensions.{extension}.words",
        "value": ["then"],
        "from": f"config.yaml:{home.config.read_text().splitlines().index(_line(extension)) + 1}",
    }
    assert [{key: each[key] for key in setting} for each in told["settings"]] == (
        [setting] if case.named else []
    )
    (line,) = home.run("log", "--json").json["lines"]
    assert line == told["decision"]
    assert line["action"] == case.action
    if name != "observe":
        assert (line["extension"], line["handler"]) == case.who
        assert (line["file"], line["line"]) == place
    assert line.get("blocked_by") == (extension if case.action == "block" else None)
    if outcome.blocked:
        assert f'"extension": "{extension}"' in outcome.as_tool_result()
    disable = f"hermes-ext disable {extension}"
    assert told["to_change"] == [f"hermes-ext info {extension}"] + (
        [] if name == "observe" else [disable]
    )


def _line(extension: str) -> str:
    return f"  {extension}: {{words: [then]}}"


@pytest.mark.parametrize("name", CASES)
def test_the_pages_say_the_same(home: Home, name: str) -> None:
    """`why`, `why TURN` and `log` as text; nobody who did not decide is to be turned off."""
    rules, case = Rules(home), CASES[name]
    rules.run(case.command, *case.yes)
    shown = home.run("why").out
    told = facts(shown)

    assert shown.startswith(f"{case.says}\n")
    label = "Observed" if name == "observe" else "Decided by"
    assert (label, case.who[0]) in told
    assert ("Handler", case.who[1]) in told
    assert ("Call", case.command) in told
    for label, text in (("Because", case.reason), ("Value", '["then"]' if case.named else None)):
        assert (label, text) in told or text is None
    others = [each for each in RULES if each != case.who[0]]
    assert not any(f"disable {each}" in shown for each in others)
    asked = [value for label, value in told if label in ("Asked before", "Asked too")]
    assert [each.partition("/")[0] for each in asked] == [*case.asked]

    page = home.run("why", "t1").out
    assert case.says in page
    row = home.run("log").out
    assert case.command.split()[0] in row
    assert f"{case.who[0]}" in row
    if case.asked and "approved" not in rules.why()["decision"]:
        assert "said no" not in shown + page + row
        assert "ASK REASON" not in row
        assert row.split()[3] == "block"


@pytest.mark.parametrize("name", CASES)
def test_replay_names_the_same(home: Home, name: str) -> None:
    """Nothing has changed; and where the rules are gone the verdict of then has the right name."""
    rules, case = Rules(home, "payloads"), CASES[name]
    rules.run(case.command, *case.yes)
    unchanged = home.run("replay", "--json")
    assert (unchanged.code, unchanged.json["compared"]) == (0, 1)

    off = home.path / "off.yaml"
    off.write_text("extensions: {enabled: false}\n")
    (change,) = home.run("replay", "--config", str(off), "--json").json["changed"]
    if name == "observe":
        assert change["then"]["would_have"][0]["extension"] == "g_watches"
        return
    assert (change["then"]["extension"], change["then"]["handler"]) == case.who


def test_nobody_is_there(home: Home) -> None:
    """The setting that answers in place of a person, as it was."""
    rules = Rules(home)
    rules.run("ask", nobody=True)
    rules.set("now", "  ask_without_human: approve\n")
    told = rules.why()
    assert told["says"] == "a_asks asked about terminal: nobody was there to say yes"
    assert told["settings"][-1] == {
        "key": "extensions.ask_without_human",
        "value": "block",
        "from": None,
        "file": None,
        "today": {"value": "approve", "from": "config.yaml:4", "file": f"{home.config}:4"},
    }
    shown = facts(home.run("why").out)
    assert shown[shown.index(("Setting", "extensions.ask_without_human")) + 1 :][:3] == [
        ("Value", '"block"'),
        ("Value today", '"approve"'),
        ("Set today in", f"{home.config}:4"),
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_an_injection(home: Home, level: str) -> None:
    """Who added to the request, by which setting; the text is in no log but one with payloads."""
    rules = Rules(home, level)
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1", turn_id="t1") as turn:
        turn.before_llm_call([{"role": "user", "content": "remind"}], "system")
    runtime.close()
    told = rules.why()
    assert told["says"] == "e_changes added to the request to the model, in the system prompt"
    assert (told["extension"], told["handler"]) == ("e_changes", "reminds")
    assert told["line"] == rules.line_of("e_changes", "reminds")
    assert [each["value"] for each in told["settings"]] == [["then"]]
    written = (home.path / "logs" / "extensions.jsonl").read_text()
    assert ("Be brief." in written) is (level == "payloads")


def test_what_is_missing_is_found_by_its_name(home: Home) -> None:
    """`log --extension` finds the calls that were refused because it is not loaded."""
    home.write_config("extensions: {required: [absent]}\n")
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1") as turn:
        turn.intercept_tool_call("terminal", {"command": "ls"})
    runtime.close()
    (line,) = home.run("log", "--extension", "absent", "--json").json["lines"]
    assert (line["blocked_by"], line["missing"]) == ("hermes-ext", ["absent"])
    assert "hermes-ext: Tool calls are refused" in home.run("log").out


# -- settings -------------------------------------------------------------------------------------


def test_a_setting_that_was_changed_afterwards(home: Home) -> None:
    """The value that decided is told, and today's in a line of its own."""
    rules = Rules(home)
    rules.run("block")
    rules.set("now")
    (setting,) = rules.why()["settings"]
    assert (setting["value"], setting["today"]["value"]) == (["then"], ["now"])
    told = facts(home.run("why").out)
    assert ("Value", '["then"]') in told
    assert ("Value today", '["now"]') in told
    assert home.run("log", "--json").json["lines"][0]["settings"][0]["value"] == ["then"]

    home.write_config("extensions: {}\n")
    (setting,) = rules.why()["settings"]
    assert (setting["value"], setting["today"]["value"]) == (["then"], ["none"])
    assert setting["today"]["from"] == "default"


@pytest.mark.parametrize(("then", "now"), [("1", "true"), ("0", "false"), ("1", "1.0")])
def test_a_setting_that_is_equal_to_python_alone(home: Home, then: str, now: str) -> None:
    """A number that became a switch was changed; one that was written anew was not."""
    rules = Rules(home)
    for value, changed in ((then, False), (now, True)):
        rules.set(value)
        if not changed:
            rules.run("block")
        (setting,) = rules.why()["settings"]
        assert (setting["today"] is not None) is changed


def test_secret_settings_are_nowhere(home: Home) -> None:
    """Neither in the file nor on a page; a long value is cut."""
    home.add(
        "keeper",
        HEAD
        + """
@register_hook("intercept_tool_call")
def keeps(config):
    return HookResult.block("no", metadata={"setting": ["login", "words"]})
""",
        "config: {properties: {login: {}, words: {}}}\n",
    )
    words = [f"word{n}" for n in range(1000)]
    login = {"user": "me", "password": "swordfish77", "note": f"key {KEY}"}
    home.write_config(json.dumps({"extensions": {"keeper": {"login": login, "words": words}}}))
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1", turn_id="t1") as turn:
        turn.intercept_tool_call("terminal", {"command": "ls"})
    runtime.close()
    written = (home.path / "logs" / "extensions.jsonl").read_text()
    pages = [home.run(*argv).out for argv in (("why",), ("why", "t1"), ("log", "--json"))]
    for text in (written, *pages):
        assert "swordfish77" not in text
        assert KEY not in text
    assert len(written) < 6_000
    (told,) = home.run("why", "--json").json["decisions"]
    assert [each["key"].rpartition(".")[2] for each in told["settings"]] == [
        "user",
        "password",
        "note",
        "words",
    ]
    assert [each["today"] for each in told["settings"]] == [None] * 4


# -- from what to what ----------------------------------------------------------------------------


def recorded(home: Home, code: str, does: Callable[[Any], object], level: str) -> Path:
    """The log of one turn with one extension."""
    home.add("rules", HEAD + code)
    home.write_config(f"extensions: {{log: {level}}}\n")
    runtime = Runtime.from_config(home=home.path)
    with runtime.turn(session_id="s1", turn_id="t1") as turn:
        does(turn)
    runtime.close()
    return home.path / "logs" / "extensions.jsonl"


REDACTS = """
@register_hook("transform_user_input")
def hides(user_message):
    return HookResult.rewrite(user_message.replace("Ananas4711", "[withheld]"))

@register_hook("transform_tool_result")
def hides_too(result):
    return HookResult.rewrite(result.replace("Ananas4711", "[withheld]"))

@register_hook("before_llm_call")
def hides_all(messages):
    told = [{**each, "content": each["content"].replace("Ananas4711", "[withheld]")}
            for each in messages]
    return HookResult.rewrite(told)
"""


@pytest.mark.parametrize("level", ["decisions", "steps"])
def test_what_was_removed_from_a_text_is_in_no_log(home: Home, level: str) -> None:
    """Of an input, a result and messages it is counted; what stands there now is shown."""

    def does(turn: Any) -> None:
        turn.transform_user_input("my word is Ananas4711, keep it")
        turn.before_llm_call([{"role": "user", "content": "my word is Ananas4711"}], "s")
        turn.transform_tool_result("terminal", {"command": "cat x"}, "Ananas4711\n")

    file = recorded(home, REDACTS, does, level)
    pages = [home.run(*argv).out for argv in (("log",), ("why",), ("why", "t1"), ("log", "--json"))]
    for text in (file.read_text(), *pages):
        assert "Ananas" not in text
        assert "keep it" not in text
    lines = home.run("log", "--json").json["lines"]
    assert [line["change"] for line in lines] == [[{"removed": 10, "added": "[withheld]"}]] * 3
    assert pages[0].count('[10 characters removed], added "[withheld]"') == 3
    assert ("Change", '[10 characters removed], added "[withheld]"') in facts(pages[1])
    assert lines[2]["call"] == "cat x"


BLOCKS = """
@register_hook("transform_user_input")
def adds(user_message):
    return HookResult.rewrite(user_message + " Pineapple")

@register_hook("transform_user_input", guard=True)
def stops(user_message):
    return HookResult.block("not this")
"""


def test_of_a_blocked_input_nothing_is_told(home: Home) -> None:
    """Neither what was written nor what a rule made of it before."""
    file = recorded(home, BLOCKS, lambda turn: turn.transform_user_input("Ananas4711"), "steps")
    for text in (file.read_text(), home.run("why").out, home.run("log").out):
        assert "Ananas" not in text
        assert "Pineapple" not in text
        assert "not this" in text


QUOTES = """
@register_hook("transform_user_input", priority=1)
def fails(user_message):
    raise ValueError(user_message)

@register_hook("transform_user_input")
def hides(user_message):
    return HookResult.rewrite("something else")
"""


def test_an_error_that_quotes_an_input_that_was_taken_away(home: Home) -> None:
    """Its kind is told, and not its text."""
    file = recorded(home, QUOTES, lambda turn: turn.transform_user_input("Ananas4711"), "steps")
    written = file.read_text()
    assert "Ananas" not in written
    assert '"error":{"kind":"exception"}' in written


def test_secrets_in_commands(home: Home) -> None:
    """Neither in the command of a call nor in what it was changed to or from."""
    code = """
@register_hook("intercept_tool_call")
def changes(tool_args):
    if "curl" in tool_args["command"]:
        return HookResult.rewrite({"command": tool_args["command"].replace("curl", "curl -s")})
"""

    def does(turn: Any) -> None:
        for command in (f"echo {KEY}", f"curl -H 'Authorization: Bearer {KEY}' -d x=1 h"):
            turn.intercept_tool_call("terminal", {"command": command})

    file = recorded(home, code, does, "decisions")
    shown = home.run("log").out
    assert KEY not in file.read_text() + shown + home.run("why").out
    told = " ".join(home.run("why").out.split())
    hidden = "'Authorization: Bearer [redacted: AWS Access Key]' -d x=1 h"
    assert f"command: curl -H {hidden} → curl -s -H {hidden}" in told
    assert shown.splitlines()[0].rstrip().endswith("echo [redacted: AWS Access Key]")


# -- lines of an earlier version ------------------------------------------------------------------

OLD: dict[str, Any] = {
    "time": "2026-01-01T00:00:00.000Z", "turn": "old", "session": "s", "conversation": "s",
    "hook": "intercept_tool_call", "tool": "terminal", "tool_call_id": "c1", "action": "block",
    "blocked_by": "b_blocks", "message": "BLOCK REASON", "extension": "a_asks", "handler": "asks",
    "setting": ["words"], "file": "/a_asks.py", "line": 3, "changed": False,
    "asks": [{"extension": "a_asks", "handler": "asks", "reason": "ASK REASON"}],
    "approved": False, "digests": {"in": "0" * 64}, "duration_ns": 1,
}  # fmt: skip
BLOCKER = {
    "extension": "b_blocks", "handler": "blocks", "action": "block", "setting": ["words"],
    "file": "/b_blocks.py", "line": 5,
}  # fmt: skip
ASKER = {"extension": "a_asks", "handler": "asks", "action": "ask"}


def written(home: Home, **changes: Any) -> dict[str, Any]:
    """What `why` makes of a line that an earlier version wrote."""
    file = home.path / "logs" / "extensions.jsonl"
    file.parent.mkdir(exist_ok=True)
    line = {key: value for key, value in (OLD | changes).items() if value is not None}
    file.write_text(f"{json.dumps(line)}\n")
    (told,) = home.run("why", "--json").json["decisions"]
    (again,) = home.run("log", "--json").json["lines"]
    assert again == told["decision"]
    return dict(told)


@pytest.mark.parametrize("where", ["by", "steps"])
def test_an_old_line_that_named_the_asker(home: Home, where: str) -> None:
    """It is explained by the handler that blocked; its setting has no value."""
    others = [BLOCKER] if where == "by" else [ASKER, BLOCKER]
    told = written(home, **{where: others})
    assert told["says"] == "b_blocks blocked terminal"
    assert (told["handler"], told["file"], told["line"]) == ("blocks", "/b_blocks.py", 5)
    assert [each["extension"] for each in told["asked"]] == ["a_asks"]
    assert told["settings"] == [
        {"key": "words", "value": None, "from": None, "file": None, "today": None}
    ]
    assert "a_asks" not in " ".join(told["to_change"])


def test_an_old_line_in_which_a_failure_blocked(home: Home) -> None:
    """Also after a question."""
    failed = {**BLOCKER, "error": {"kind": "timeout"}}
    told = written(home, by=[failed], setting=None)
    assert told["says"] == "b_blocks blocked terminal, because its handler failed"
    assert told["decision"]["failure"] == "timeout"


def test_old_lines_of_questions_stay_as_they_are(home: Home) -> None:
    """A no, a yes, and a line without more."""
    no = written(home, blocked_by="a_asks", decided_by="person")
    assert no["says"] == "a_asks asked about terminal: a person said no"
    yes = written(home, action="pass", blocked_by=None, decided_by="person", approved=True)
    assert yes["says"] == "a_asks asked about terminal: a person said yes"
    alone = written(home)
    assert alone["says"] == "b_blocks blocked terminal"
    assert alone["handler"] is None


def test_an_old_line_shows_todays_value_as_such(home: Home) -> None:
    """The value that decided was not written down."""
    home.add("b_blocks", HEAD, MANIFEST)
    told = written(home, by=[BLOCKER])
    (setting,) = told["settings"]
    assert (setting["key"], setting["value"]) == ("extensions.b_blocks.words", None)
    assert setting["today"]["value"] == ["none"]
    assert ("Value today", '["none"]') in facts(home.run("why").out)
