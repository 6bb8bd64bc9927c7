"""A confined call runs, is blocked, or is asked about: by what it changes and what the host can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from hermes_ext import Action, ChainOutcome, HookResult, Runtime, ToolCall, register_hook
from hermes_ext.confine import Confinement, Reason
from hermes_ext.effects import Machine
from hermes_ext.turns.confining import inherited


@define
class Host:
    """A host that can confine, or says why not; it remembers what it was asked."""

    why_not: str | None = None
    asked: list[tuple[ToolCall, Confinement]] = field(factory=list)

    def reason_not(self, call: ToolCall, confinement: Confinement) -> str | None:
        self.asked.append((call, confinement))
        return self.why_not


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("plans", "src"):
        (tmp_path / name).mkdir()
    return tmp_path


def confining(**bounds: Any) -> Any:
    @register_hook("intercept_tool_call", guard=True)
    def confine(tool_name: str) -> Any:
        return HookResult.confine(**{"writable": ["plans"], "reason": "no plan yet", **bounds})

    return confine


def asking(reason: str = "sure?", key: str | None = None) -> Any:
    @register_hook("intercept_tool_call", guard=True)
    def ask(tool_name: str) -> Any:
        return HookResult.ask(reason, key)

    return ask


Call = Callable[..., ChainOutcome]


@pytest.fixture(params=["intercept", "aintercept", "judge and settle"])
def call(request: pytest.FixtureRequest, project: Path) -> Call:
    """Calls a tool in a runtime, by each of the ways that a host has."""

    def called(runtime: Runtime, tool: str, args: dict[str, Any], **more: Any) -> ChainOutcome:
        with runtime.turn(session_id="s", cwd=project, project_root=project) as turn:
            if request.param == "intercept":
                return turn.intercept_tool_call(tool, args, **more)
            if request.param == "aintercept":
                return asyncio.run(turn.aintercept_tool_call(tool, args, **more))
            outcome = turn.judge_tool_call(tool, args, **more)
            return turn.settle(outcome, tool, outcome.final(args))

    return called


def test_a_shell_call_runs_confined_where_the_host_can(call: Call, project: Path) -> None:
    """The outcome has what may be written, on the disk, and the host was asked about that."""
    host = Host()
    outcome = call(Runtime([confining()], confiner=host), "terminal", {"command": "make"})
    assert outcome.action is Action.CONFINE
    assert outcome.confinement is not None
    assert outcome.confinement.writable == (project / "plans",)
    assert [asked for _, asked in host.asked] == [outcome.confinement]
    assert outcome.final({"command": "make"}) == {"command": "make"}
    assert outcome.as_tool_result() is None


def test_without_a_confiner_a_shell_call_is_blocked(call: Call) -> None:
    """By the extension that confines, with its reason, why not, and which setting decides."""
    outcome = call(Runtime([confining()]), "terminal", {"command": "true"})
    assert (outcome.blocked, outcome.blocked_by) == (True, "test_confining")
    assert outcome.confinement is None
    assert outcome.message == (
        "no plan yet, and terminal cannot be confined: this host cannot confine processes "
        "(extensions.confine_unavailable decides what happens then)"
    )


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("terminal", {"command": "make"}),
        ("terminal", {"command": "ls"}),
        ("terminal", {"command": "echo x > src/a.py"}),
        ("execute_code", {"code": "print(1)"}),
        ("process", {"action": "write", "session_id": "p", "data": "rm -r ."}),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else value,
)
def test_what_starts_processes_is_the_hosts_to_confine(
    call: Call, tool: str, args: dict[str, Any]
) -> None:
    """Whatever is known of the call: only the kernel sees all that it does."""
    assert call(Runtime([confining()], confiner=Host()), tool, args).confined.kept_by == "kernel"
    refused = call(Runtime([confining()], confiner=Host("it is far away")), tool, args)
    assert f"no plan yet, and {tool} cannot be confined: it is far away (" in refused.message
    assert refused.confined.kept_by == "nothing"


def test_a_tool_that_changes_what_it_may_runs(call: Call) -> None:
    """The host is not asked: such a tool starts no processes. The confinement stays with it."""
    host = Host("nothing can be confined")
    runtime = Runtime([confining()], confiner=host)
    for args in ({"path": "plans/a.md", "content": "x"}, {"path": "./plans/b/c", "content": "x"}):
        outcome = call(runtime, "write_file", args)
        assert (outcome.action, outcome.confined.kept_by) == (Action.CONFINE, "effects")
        assert outcome.confinement is not None
    assert call(runtime, "read_file", {"path": "src/a.py"}).confined.kept_by == "effects"
    assert host.asked == []


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({}, "only what is in {0}/plans may be changed"),
        ({"writable": []}, "nothing may be changed"),
        ({"writable": ["new"]}, "nothing may be changed (not writable: new: it does not exist)"),
    ],
    ids=["elsewhere", "nothing", "left out"],
)
def test_a_tool_that_would_change_something_else_is_blocked(
    call: Call, project: Path, bounds: dict[str, Any], told: str
) -> None:
    """With the path, and what may be changed."""
    outcome = call(
        Runtime([confining(**bounds)], confiner=Host()),
        "write_file",
        {"path": "src/a.py", "content": "x"},
    )
    assert (outcome.blocked_by, outcome.confined.kept_by) == ("test_confining", "refusal")
    told = told.format(project)
    assert outcome.message == f"no plan yet: write_file would change {project}/src/a.py, and {told}"
    assert outcome.decider is not None
    assert outcome.decider.handler == "confine"


def test_a_link_leads_outside(call: Call, project: Path) -> None:
    """What counts is where a change ends, not what the path looks like."""
    (project / "plans" / "a.md").symlink_to(project / "src" / "a.py")
    outcome = call(
        Runtime([confining()], confiner=Host()), "write_file", {"path": "plans/a.md", "content": ""}
    )
    assert outcome.blocked


def test_removing_the_directory_itself_changes_what_is_above(call: Call, project: Path) -> None:
    """A directory is writable; that it is there is not its own affair."""
    runtime = Runtime([confining()], confiner=Host())
    assert "would change" in call(runtime, "mcp_files_delete_directory", {"path": "plans"}).message
    inside = call(runtime, "mcp_files_delete_file", {"path": "plans/a.md"})
    assert "mcp_files_delete_file cannot be confined" in inside.message


def test_a_tool_that_its_server_calls_read_only_runs(call: Call) -> None:
    """Unless it is known to change something outside, whatever its server says."""
    runtime = Runtime([confining()], confiner=Host())
    args = {"query": "x"}
    unknown = call(runtime, "mcp_docs_search", args)
    assert unknown.confined.kept_by == "nothing"
    assert "mcp_docs_search cannot be confined: it runs where no process can be" in unknown.message
    assert call(runtime, "mcp_docs_search", args, read_only=True).confined.kept_by == "server"
    liar = call(
        runtime, "mcp_files_write_file", {"path": "src/a.py", "content": ""}, read_only=True
    )
    assert liar.confined.kept_by == "refusal"


def test_several_confinements_intersect(call: Call, project: Path) -> None:
    """Only what all allow may be changed; of a refusal, the first that does not allow it."""

    @register_hook("intercept_tool_call", guard=True, priority=200)
    def stricter(tool_name: str) -> Any:
        return HookResult.confine(["plans/deep"], "none", reason="only deep")

    (project / "plans" / "deep").mkdir()
    runtime = Runtime([confining(), stricter], confiner=Host())
    outcome = call(runtime, "terminal", {"command": "make"})
    assert outcome.confinement.writable == (project / "plans" / "deep",)
    assert outcome.confinement.network == "none"
    assert [one.handler for one in outcome.confines] == ["confine", "stricter"]
    refused = call(runtime, "write_file", {"path": "plans/a.md", "content": ""})
    assert refused.message.startswith("only deep: write_file would change ")
    assert refused.decider.handler == "stricter"


def test_the_arguments_count_as_the_handlers_left_them(call: Call, project: Path) -> None:
    """A rewrite and a confinement: the value is the rewritten one, and it is what is looked at."""

    @register_hook("intercept_tool_call")
    def elsewhere(tool_args: dict[str, Any]) -> Any:
        return HookResult.rewrite({**tool_args, "path": "plans/a.md"})

    args = {"path": "src/a.py", "content": "x"}
    outcome = call(Runtime([elsewhere, confining()]), "write_file", args, read_only=True)
    assert (outcome.action, outcome.changed) == (Action.CONFINE, True)
    assert outcome.final(args) == {"path": "plans/a.md", "content": "x"}
    assert outcome.event.read_only


def test_relative_paths_start_at_the_projects_root(project: Path) -> None:
    """Where the session works does not matter; without a project its directory is what counts."""
    runtime = Runtime([confining()], confiner=Host())
    for options, found in (
        ({"project_root": project}, (project / "plans",)),
        ({"project_root": lambda: project}, (project / "plans",)),
        ({"project_root": lambda: None}, ()),
        ({}, ()),
    ):
        with runtime.turn(session_id="s", cwd=project / "src", **options) as turn:
            outcome = turn.judge_tool_call("terminal", {"command": "make"}, cwd=project)
            assert outcome.confinement.writable == found
    with runtime.turn(session_id="s", cwd=project) as turn:
        outcome = turn.intercept_tool_call("terminal", {"command": "make"})
        assert outcome.confinement.writable == (project / "plans",)


class TestDropped:
    """A confinement is of a call that runs."""

    @pytest.mark.parametrize("end", ["block", "answer"])
    def test_a_block_or_an_answer_drops_it(self, call: Call, end: str) -> None:
        """Neither the disk nor the host is asked; that somebody confined is still told."""

        @register_hook("intercept_tool_call", priority=1)
        def first(tool_name: str) -> Any:
            return HookResult.confine(reason="read-only")

        @register_hook("intercept_tool_call", priority=2)
        def then(tool_name: str) -> Any:
            return HookResult(end, "this instead")

        host = Host()
        outcome = call(Runtime([first, then], confiner=host), "terminal", {"command": "make"})
        assert (outcome.action, outcome.value) == (end, "this instead")
        assert (outcome.confinement, outcome.confined, host.asked) == (None, None, [])
        assert [one.handler for one in outcome.confines] == ["first"]

    def test_a_turn_that_has_ended_meanwhile(self, project: Path) -> None:
        """The call is refused, and has no confinement."""
        open_turns: list[Any] = []

        @register_hook("intercept_tool_call")
        def ends(tool_name: str) -> Any:
            open_turns[0].close()
            return HookResult.confine(reason="read-only")

        with Runtime([ends], confiner=Host()).turn(session_id="s", cwd=project) as turn:
            open_turns.append(turn)
            outcome = turn.intercept_tool_call("terminal", {"command": "make"})
        assert outcome.blocked
        assert outcome.confinement is None

    def test_a_turn_that_ends_while_the_host_is_asked(self, project: Path) -> None:
        """The same: what the host says comes too late."""

        class Ending:
            def reason_not(self, call: ToolCall, confinement: Confinement) -> None:
                turn.close()

        runtime = Runtime([confining()], confiner=Ending())
        with runtime.turn(session_id="s", cwd=project) as turn:
            outcome = turn.intercept_tool_call("terminal", {"command": "make"})
        assert "has ended" in str(outcome.message)
        with runtime.turn(session_id="s", cwd=project) as turn:
            outcome = asyncio.run(turn.aintercept_tool_call("terminal", {"command": "make"}))
        assert (outcome.blocked, outcome.confinement) == (True, None)


class TestAsked:
    """What is asked about and confined."""

    def test_a_yes_runs_it_confined(self, call: Call, project: Path) -> None:
        """Whoever asks, and whether before or after the one who confines."""
        for handlers in ([asking(), confining()], [confining(), asking()]):
            runtime = Runtime(handlers, confiner=Host(), approver=lambda _: True)
            outcome = call(runtime, "terminal", {"command": "make"})
            assert (outcome.action, outcome.approved) == (Action.CONFINE, True)
            assert outcome.confinement.writable == (project / "plans",)

    def test_a_no_refuses_it(self, call: Call) -> None:
        """In the name of the one whose question it was."""
        runtime = Runtime([confining(), asking()], confiner=Host(), approver=lambda _: False)
        outcome = call(runtime, "terminal", {"command": "make"})
        assert (outcome.blocked, outcome.message) == (True, "Not approved: sure?")
        assert outcome.decider.handler == "ask"
        assert outcome.confinement is None

    def test_what_cannot_be_confined_is_asked_about_by_nobody(self, call: Call) -> None:
        """The block comes before the question."""
        asked: list[Any] = []
        runtime = Runtime([asking(), confining()], approver=asked.append)
        assert call(runtime, "terminal", {"command": "make"}).confined.kept_by == "nothing"
        assert asked == []


class TestUnavailable:
    """`confine_unavailable: ask`: what cannot be confined is a question to a person."""

    def asked(self, call: Call, *answers: Any, more: Any = ()) -> tuple[ChainOutcome, list[Any]]:
        """The outcome of a shell call, and what the person was asked."""
        questions: list[Any] = []
        given = iter(answers)

        def approver(request: Any) -> Any:
            questions.append(request)
            return next(given)

        runtime = Runtime(
            [*more, confining(advice="Write a plan.")],
            confiner=Host("it is far away"),
            approver=approver if answers else None,
        )
        runtime.confine_unavailable = "ask"
        return call(runtime, "terminal", {"command": "make"}), questions

    def test_a_yes_runs_it_unconfined(self, call: Call) -> None:
        """The question says so, and why; the outcome has no confinement then."""
        outcome, (question,) = self.asked(call, True)
        assert question.extension == "test_confining"
        assert question.reason == (
            "no plan yet, and terminal cannot be confined: it is far away. A yes runs it unconfined"
        )
        assert (outcome.action, outcome.approved) == (Action.PASS, True)
        assert outcome.confinement is None

    @pytest.mark.parametrize("answers", [(False,), ()], ids=["no", "nobody there"])
    def test_a_no_refuses_it(self, call: Call, answers: tuple[bool, ...]) -> None:
        """In the name of the extension that confines, as every question does."""
        outcome, _ = self.asked(call, *answers)
        assert (outcome.blocked, outcome.blocked_by) == (True, "test_confining")
        assert outcome.decider.handler == "confine"
        assert "cannot be confined: it is far away" in outcome.message
        assert outcome.message.endswith(". Write a plan.")

    def test_a_change_that_is_known_is_never_asked_about(self, call: Call) -> None:
        """What would surely change something outside is blocked all the same."""
        runtime = Runtime([confining()], approver=lambda _: True)
        runtime.confine_unavailable = "ask"
        assert call(runtime, "write_file", {"path": "src/a.py", "content": ""}).blocked

    def test_each_question_is_asked(self, call: Call) -> None:
        """The handlers' own first; all must be answered with yes."""
        outcome, questions = self.asked(call, True, True, more=[asking()])
        assert questions[0].reason == "sure?"
        assert len(questions) == 2
        assert (outcome.action, outcome.confinement) == (Action.PASS, None)
        outcome, questions = self.asked(call, True, False, more=[asking()])
        assert outcome.blocked

    def test_a_yes_to_another_question_covers_nothing_of_it(self, call: Call) -> None:
        """What a host remembers by `rule_key` is another thing, though one handler asks both."""

        @register_hook("intercept_tool_call", guard=True, on_error="ask")
        def confine(tool_name: str) -> Any:
            raise OSError("broken")

        _, (mine,) = self.asked(call, True)
        _, (of_a_failure, *_) = self.asked(call, True, True, more=[confine])
        extension, handler, _ = mine.rule_key.split(":", 2)
        assert of_a_failure.rule_key.startswith(f"{extension}:{handler}:")
        assert of_a_failure.rule_key != mine.rule_key

    def test_the_user_says_yes_where_nobody_is(self, call: Call) -> None:
        """`ask_without_human: approve` answers this question like every other."""
        runtime = Runtime([confining()])
        runtime.confine_unavailable = "ask"
        runtime.services.approve_without_human = True
        outcome = call(runtime, "terminal", {"command": "make"})
        assert (outcome.blocked, outcome.settled.by) == (False, "setting")


@pytest.mark.parametrize(
    "answer",
    ["", 0, False, RuntimeError("x"), SystemExit(0), KeyboardInterrupt(), asyncio.CancelledError()],
    ids=repr,
)
def test_a_confiner_that_does_not_answer_confines_nothing(call: Call, answer: Any) -> None:
    """Only None is a promise; a failure of the host's is none."""

    class Broken:
        def reason_not(self, call: ToolCall, confinement: Confinement) -> Any:
            if isinstance(answer, BaseException):
                raise answer
            return answer

    outcome = call(Runtime([confining()], confiner=Broken()), "terminal", {"command": "make"})
    assert outcome.blocked
    assert "cannot be confined: the host " in outcome.message


def test_observed_confinements_change_nothing(tmp_path: Path) -> None:
    """They are recorded as what would have been, with what might have been changed."""
    code = (
        "from hermes_ext import HookResult, register_hook\n"
        '@register_hook("intercept_tool_call", guard=True)\n'
        "def confine(tool_name):\n"
        '    return HookResult.confine(["plans"], reason="no plan yet")\n'
    )
    (tmp_path / "extensions").mkdir()
    (tmp_path / "extensions" / "rules.py").write_text(code)
    (tmp_path / "config.yaml").write_text("extensions: {observe: [rules]}\n")
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    with runtime.turn(session_id="s") as turn:
        outcome = turn.intercept_tool_call("terminal", {"command": "ls"})
    runtime.close()
    assert (outcome.action, outcome.confines, outcome.confinement) == (Action.PASS, (), None)
    (step,) = [one for one in outcome.steps if one.extension == "rules"]
    assert (step.observed, step.action, step.reason) == (True, Action.CONFINE, "no plan yet")
    assert step.bounds is not None
    assert step.bounds.writable == ("plans",)


def test_the_users_settings_reach_the_runtime(tmp_path: Path) -> None:
    """What a host needs of them is on the runtime."""
    for text, expected in (
        ("", ("namespaces", "block")),
        ("{confine_minimum: landlock, confine_unavailable: ask}", ("landlock", "ask")),
    ):
        (tmp_path / "config.yaml").write_text(f"extensions: {text}\n")
        runtime = Runtime.from_config(home=tmp_path, confiner=Host())
        assert (runtime.confine_minimum, runtime.confine_unavailable) == expected
        assert isinstance(runtime.confiner, Host)
        runtime.close()


@pytest.mark.parametrize(
    ("command", "runs"),
    [("ls src", True), ("echo x > plans/a", True), ("echo x > src/a", False), ("make", False)],
)
def test_exact_calls_run_where_the_host_cannot(call: Call, command: str, runs: bool) -> None:
    """Only if the handler says so, and only those that change nothing outside."""
    assert call(Runtime([confining()]), "terminal", {"command": command}).blocked
    outcome = call(Runtime([confining(or_exact=True)]), "terminal", {"command": command})
    assert outcome.blocked is not runs
    host = Host()
    call(Runtime([confining(or_exact=True)], confiner=host), "terminal", {"command": command})
    assert len(host.asked) == 1
    offline = Runtime([confining(or_exact=True, network="none")])
    assert call(offline, "terminal", {"command": command}).blocked


def test_all_who_confine_must_accept_exact_calls(call: Call) -> None:
    """One that wants the kernel gets it, or the call does not run."""
    both = Runtime([confining(or_exact=True), confining()])
    assert call(both, "terminal", {"command": "ls"}).blocked


def test_advice_stands_behind_the_reason(call: Call) -> None:
    """The model is told what to do instead."""
    runtime = Runtime([confining(advice=" Write the plan. ")])
    message = call(runtime, "terminal", {"command": "make"}).message
    assert message is not None
    assert message.endswith(" what happens then). Write the plan.")
    refused = call(runtime, "write_file", {"path": "src/a", "content": "x"}).message
    assert refused is not None
    assert refused.endswith("may be changed. Write the plan.")


@pytest.mark.parametrize(
    ("tool", "args", "kept_by"),
    [
        ("terminal", {"command": "ls"}, "nothing"),
        ("write_file", {"path": "plans/a", "content": ""}, "effects"),
        ("write_file", {"path": "src/a", "content": ""}, "refusal"),
    ],
)
def test_a_call_inside_of_a_confined_one(
    project: Path, tool: str, args: dict[str, Any], kept_by: str
) -> None:
    """It may do no more than that one, and what is only known of it is not enough."""
    outer = Confinement.of(["plans"], root=project, reason=Reason("rules", "no plan yet"))
    call = ToolCall(tool, args, "c1", Machine(cwd=project))
    found = inherited(call, None, outer, None)
    assert (found.confinement, found.kept_by) == (outer, kept_by)
    assert (found.why is None) is (kept_by == "effects")
