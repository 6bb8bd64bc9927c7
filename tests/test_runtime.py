"""Runtime and Turn as a host uses them, without any host."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hermes_ext import (
    Action,
    Approval,
    ApprovalRequest,
    ChainOutcome,
    HookResult,
    Runtime,
    Turn,
    get_session_state,
    get_turn_state,
    hookimpl,
    register_hook,
)
from hermes_ext.exceptions import RegistrationError, StateError, TurnEndedError
from hermes_ext.turns.state import open_turn_count

USER = {"role": "user", "content": "hello"}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "done"}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a turn open."""
    yield
    assert open_turn_count() == 0


def handler(hook: str, body: Callable[..., Any], **options: Any) -> Any:
    """`body` as a handler of `hook`."""
    return register_hook(hook, **options)(body)


def seeing(seen: list[Any], name: str) -> Callable[..., None]:
    """A handler that notes one argument and has no opinion."""

    def see(**arguments: Any) -> None:
        seen.append(arguments.get(name))

    return see


def asking(reason: str = "Sure?", key: str | None = None) -> Any:
    """A handler that asks about every tool call."""
    return handler("intercept_tool_call", lambda tool_name: HookResult.ask(reason, key))


def judged(runtime: Runtime, tool: str = "t", **args: Any) -> ChainOutcome:
    """The outcome of one tool call in a turn of its own."""
    with runtime.turn(session_id="s") as turn:
        return turn.intercept_tool_call(tool, args)


def home_with(home: Path, config: str = "", **extensions: str) -> Path:
    """A Hermes home with these extensions (source of `__init__.py`) and this `config.yaml`."""
    for name, source in extensions.items():
        folder = home / "extensions" / name.replace("_", "-")
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("from hermes_ext import *\n" + source)
    (home / "config.yaml").write_text(config)
    return home


def logged(home: Path) -> list[dict[str, Any]]:
    """The lines of a home's decision log."""
    text = (home / "logs/extensions.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


# -- a loop -------------------------------------------------------------------------------------


class Loop:
    """A small agent loop: what it sends to the model, and the tools that it runs."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.sent: list[tuple[list[Any], str]] = []
        self.ran: list[tuple[str, Any]] = []

    def ask(self, text: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
        """One turn: a request, the tool calls, a second request."""
        with self.runtime.turn(session_id="s1", platform="cli") as turn:
            given = turn.transform_user_input(text)
            if given.blocked or given.answered:
                return str(given.value)
            messages: list[Any] = [{"role": "user", "content": given.final(text)}]
            self._send(turn, messages)
            for number, (name, args) in enumerate(calls):
                content = self._call(turn, name, args, f"c{number}")
                messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": content})
            self._send(turn, messages)
        return "done"

    def _send(self, turn: Turn, messages: list[Any]) -> None:
        request = turn.before_llm_call(messages, "You are helpful.")
        self.sent.append(turn.apply(request, messages, "You are helpful."))

    def _call(self, turn: Turn, name: str, args: dict[str, Any], call_id: str) -> str:
        outcome = turn.intercept_tool_call(name, args, tool_call_id=call_id)
        result = outcome.as_tool_result()
        if result is None:
            self.ran.append((name, outcome.final(args)))
            result = f"ran {name}"
        seen = turn.transform_tool_result(name, args, result, tool_call_id=call_id)
        return str(seen.message or seen.final(result))


class TestLoop:
    def test_all_four_hooks_in_one_turn(self) -> None:
        """What each hook decides is what the loop sends, runs and shows."""

        def calls(tool_name: str, tool_args: dict[str, Any]) -> Any:
            if tool_name == "terminal":
                return HookResult.block("No shell.")
            if tool_name == "clock":
                return HookResult.answer("noon")
            return HookResult.rewrite({**tool_args, "path": "b.py"})

        loop = Loop(
            Runtime(
                [
                    handler(
                        "transform_user_input",
                        lambda user_message: HookResult.rewrite(user_message.upper()),
                    ),
                    handler("before_llm_call", lambda messages: HookResult.inject_system("Rule.")),
                    handler("intercept_tool_call", calls),
                    handler(
                        "transform_tool_result",
                        lambda result: HookResult.rewrite(f"<{result}>"),
                        tools=["write_file"],
                    ),
                ]
            )
        )
        loop.ask("fix", [("terminal", {}), ("clock", {}), ("write_file", {"path": "a.py"})])
        assert loop.ran == [("write_file", {"path": "b.py"})]
        (first, system), (second, again) = loop.sent
        assert first == [{"role": "user", "content": "FIX"}]
        assert system == again == "You are helpful.\n\nRule."
        blocked, answered, written = (message["content"] for message in second[1:])
        assert json.loads(blocked) == {
            "error": "No shell.",
            "blocked_by_extension": True,
            "extension": "test_runtime",
        }
        assert (answered, written) == ("noon", "<ran write_file>")

    @pytest.mark.parametrize("action", ["answer", "block"])
    def test_input_that_ends_the_turn(self, action: str) -> None:
        """An answered or blocked input gives its text, and no request is made."""
        loop = Loop(
            Runtime(
                [handler("transform_user_input", lambda user_message: HookResult(action, "pong"))]
            )
        )
        assert loop.ask("ping", []) == "pong"
        assert loop.sent == []

    def test_without_handlers_nothing_changes(self) -> None:
        """A runtime without handlers is idle, and hands everything through."""
        runtime = Runtime()
        assert runtime.idle
        loop = Loop(runtime)
        loop.ask("fix", [("t", {"a": 1})])
        assert loop.ran == [("t", {"a": 1})]
        assert loop.sent[0] == ([{"role": "user", "content": "fix"}], "You are helpful.")

    async def test_async_twins_give_the_same(self) -> None:
        """Each `a…` method gives the outcome of its sync twin, with sync and async handlers."""

        async def slow(tool_args: dict[str, Any]) -> Any:
            await asyncio.sleep(0)
            return HookResult.rewrite({**tool_args, "seen": True})

        runtime = Runtime(
            [
                handler("transform_user_input", lambda user_message: HookResult.rewrite("x")),
                handler("before_llm_call", lambda messages: HookResult.inject_user("y")),
                handler("intercept_tool_call", slow),
                handler(
                    "transform_tool_result",
                    lambda result, status: HookResult.rewrite(f"{result} {status}"),
                ),
            ]
        )
        async with runtime.turn(session_id="s") as turn:
            pairs = [
                (turn.transform_user_input("a"), await turn.atransform_user_input("a")),
                (turn.before_llm_call([USER]), await turn.abefore_llm_call([USER])),
                (
                    turn.intercept_tool_call("t", {"p": 1}),
                    await turn.aintercept_tool_call("t", {"p": 1}),
                ),
                (
                    turn.transform_tool_result("t", {}, "r"),
                    await turn.atransform_tool_result("t", {}, "r"),
                ),
            ]
        for sync, awaited in pairs:
            assert (sync.action, sync.value) == (awaited.action, awaited.value)
            assert sync.system_injections == awaited.system_injections
            assert sync.user_injections == awaited.user_injections
        assert pairs[2][1].value == {"p": 1, "seen": True}
        assert pairs[3][1].value == "r ok"

    def test_objects_and_modules_as_handlers(self) -> None:
        """Marked methods of an object are handlers; what has no mark is refused with a hint."""

        class Rules:
            @hookimpl(guard=True)
            def intercept_tool_call(self, tool_name: str) -> Any:
                return HookResult.block("no")

        assert judged(Runtime([Rules()])).blocked
        with pytest.raises(RegistrationError, match="register_hook"):
            Runtime([lambda tool_name: None])

    def test_config_reaches_handlers(self) -> None:
        """What `config=` holds is each handler's `config`."""
        rule = handler("intercept_tool_call", lambda config: HookResult.block(config["why"]))
        assert judged(Runtime([rule], config={"why": "because"})).message == "because"


# -- asking -------------------------------------------------------------------------------------


class TestAsk:
    def test_a_yes_lets_the_call_run(self) -> None:
        """After a yes the outcome is a pass, approved, and no tool result."""
        outcome = judged(Runtime([asking()], approver=lambda request: True))
        assert (outcome.action, outcome.approved) == (Action.PASS, True)
        assert outcome.as_tool_result() is None

    @pytest.mark.parametrize(
        "answer",
        [False, None, 1, "yes", object(), [True], Approval(approved="yes")],  # type: ignore[arg-type]
        ids=["false", "none", "one", "text", "object", "list", "approval-of-text"],
    )
    def test_anything_but_true_is_a_no(self, answer: object) -> None:
        """Only `True` is a yes; every other answer blocks, in the name of who asked."""
        outcome = judged(Runtime([asking("Really?")], approver=lambda request: answer))  # type: ignore[arg-type,return-value]
        assert outcome.blocked
        assert not outcome.approved
        assert outcome.message == "Not approved: Really?"
        assert outcome.blocked_by == "test_runtime"

    def test_the_persons_own_words(self) -> None:
        """An `Approval` with a message tells the model that message."""
        no = Approval(approved=False, message="Not on a Friday.")
        assert judged(Runtime([asking()], approver=lambda _: no)).message == "Not on a Friday."

    def test_a_raising_approver_has_not_said_yes(self, caplog: pytest.LogCaptureFixture) -> None:
        """An approver that fails refuses the call, and the failure is logged."""

        def broken(request: ApprovalRequest) -> bool:
            raise ValueError("oops")

        outcome = judged(Runtime([asking()], approver=broken))
        assert outcome.blocked
        assert "Approval failed" in str(outcome.message)
        assert "the approver failed" in caplog.text

    async def test_async_approvers(self) -> None:
        """An async approver is awaited, in sync hosts too."""

        async def yes(request: ApprovalRequest) -> bool:
            await asyncio.sleep(0)
            return True

        runtime = Runtime([asking()], approver=yes)
        with runtime.turn(session_id="s") as turn:
            assert (await turn.aintercept_tool_call("t", {})).approved
            assert turn.intercept_tool_call("t", {}).approved

    async def test_sync_approver_does_not_hold_the_loop(self) -> None:
        """In an async host a blocking approver runs beside the event loop."""
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        answered = threading.Event()

        def slow(request: ApprovalRequest) -> bool:
            loop.call_soon_threadsafe(asked.set)
            return answered.wait(60)

        with Runtime([asking()], approver=slow).turn(session_id="s") as turn:
            call = asyncio.ensure_future(turn.aintercept_tool_call("t", {}))
            await asyncio.wait_for(asked.wait(), 60)
            answered.set()
            assert (await call).approved

    async def test_nobody_there(self) -> None:
        """Without an approver the call is blocked, and the message names the setting."""
        with Runtime([asking()]).turn(session_id="s") as turn:
            for outcome in (
                turn.intercept_tool_call("t", {}),
                await turn.aintercept_tool_call("t", {}),
            ):
                assert outcome.blocked
                assert "extensions.ask_without_human" in str(outcome.message)
                assert outcome.to_json()["decided_by"] == "nobody"

    def test_the_users_setting_approves(self, tmp_path: Path) -> None:
        """`ask_without_human: approve` answers yes where nobody is, and says that it did."""
        source = (
            "@register_hook('intercept_tool_call')\n"
            "def ask(tool_name):\n    return HookResult.ask('Sure?')\n"
        )
        home = home_with(tmp_path, "extensions: {ask_without_human: approve}", asks=source)
        runtime = Runtime.from_config(home=home, cwd=tmp_path)
        outcome = judged(runtime)
        assert outcome.approved
        assert outcome.to_json()["decided_by"] == "setting"
        runtime.close()
        (line,) = logged(home)
        assert (line["decided_by"], line["tool"]) == ("setting", "t")

    def test_a_yes_lifts_no_block(self) -> None:
        """Nobody is asked about a call that another handler blocks."""
        asked: list[ApprovalRequest] = []
        block = handler(
            "intercept_tool_call", lambda tool_name: HookResult.block("never"), guard=True
        )
        runtime = Runtime([asking(), block], approver=lambda r: not asked.append(r))
        assert judged(runtime).message == "never"
        assert asked == []

    def test_all_must_be_answered_with_yes(self) -> None:
        """Several asks are put one by one; the first no ends it and names its extension."""
        asked: list[str] = []

        def approver(request: ApprovalRequest) -> bool:
            asked.append(request.reason)
            return request.reason == "one"

        runtime = Runtime([asking("one"), asking("two"), asking("three")], approver=approver)
        outcome = judged(runtime)
        assert asked == ["one", "two"]
        assert outcome.message == "Not approved: two"

    def test_what_a_yes_covers(self) -> None:
        """The rule key holds the digest of tool and final args, or the handler's own key."""
        keys: list[str] = []

        def approver(request: ApprovalRequest) -> bool:
            keys.append(request.rule_key)
            return True

        runtime = Runtime([asking()], approver=approver)
        for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}):
            judged(runtime, "t", **args)
        judged(runtime, "other", a=1, b=2)
        assert keys[0] == keys[1]
        assert len(set(keys)) == 3
        assert all(key.startswith("test_runtime:") for key in keys)
        named: list[str] = []
        runtime = Runtime([asking(key="deploys")], approver=lambda r: not named.append(r.rule_key))
        judged(runtime, "t", a=1)
        judged(runtime, "t", a=2)
        assert len(set(named)) == 1
        assert named[0].endswith(":deploys")

    def test_the_person_sees_the_final_args(self) -> None:
        """A question is about the arguments that would run, control characters escaped."""
        seen: list[str] = []
        rewrite = handler(
            "intercept_tool_call",
            lambda tool_args: HookResult.rewrite({"command": "rm\x1b[2J -rf"}),
        )
        ask = handler(
            "intercept_tool_call", lambda tool_name: HookResult.ask("Risky\n?"), guard=True
        )
        runtime = Runtime([rewrite, ask], approver=lambda r: not seen.append(r.describe()))
        outcome = judged(runtime, "terminal", command="ls")
        assert outcome.action is Action.REWRITE
        assert outcome.final({"command": "ls"}) == {"command": "rm\x1b[2J -rf"}
        (shown,) = seen
        assert "\x1b" not in shown
        assert "rm" in shown
        assert "Risky\\n?" in shown

    def test_failure_with_policy_ask(self) -> None:
        """A handler with `on_error="ask"` that fails is a question."""

        def broken(tool_name: str) -> None:
            raise ValueError("x")

        rule = handler("intercept_tool_call", broken, on_error="ask")
        assert judged(Runtime([rule], approver=lambda r: True)).approved
        assert judged(Runtime([rule])).blocked


# -- schemas ------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
    "additionalProperties": False,
}


class TestSchemas:
    @pytest.mark.parametrize(
        "schemas", [{"t": SCHEMA}, {"t": SCHEMA}.get], ids=["mapping", "function"]
    )
    def test_rewritten_args_must_fit(self, schemas: Any) -> None:
        """A rewrite that the tool's schema refuses is the handler's failure, and blocks."""
        runtime = Runtime(
            [handler("intercept_tool_call", lambda tool_args: HookResult.rewrite({"count": "5"}))],
            tool_schemas=schemas,
        )
        outcome = judged(runtime, count=1)
        assert outcome.blocked
        (error,) = outcome.errors
        assert error.kind == "invalid-result"
        assert "$.count" in str(error)
        assert judged(runtime, "tool-without-schema", count=1).value == {"count": "5"}

    def test_a_fitting_rewrite_and_unchecked_originals(self) -> None:
        """A rewrite that fits goes through; arguments that nobody rewrote are the host's affair."""
        rule = handler(
            "intercept_tool_call",
            lambda tool_args: HookResult.rewrite({"count": 2}) if tool_args else None,
        )
        runtime = Runtime([rule], tool_schemas={"t": SCHEMA})
        assert judged(runtime, count=1).value == {"count": 2}
        assert not judged(runtime).blocked

    @pytest.mark.parametrize(
        "schema",
        [{"$ref": "http://127.0.0.1:9/schema.json"}, {"type": 5}, {"type": "no-such-type"}],
        ids=["far-reference", "no-type", "unknown-type"],
    )
    def test_unusable_schemas(self, schema: dict[str, Any]) -> None:
        """A schema that cannot be used refuses the rewrite and says so; nothing is fetched."""
        rule = handler("intercept_tool_call", lambda tool_args: HookResult.rewrite({"count": 2}))
        outcome = judged(Runtime([rule], tool_schemas={"t": schema}))
        assert outcome.blocked
        assert "schema" in str(outcome.errors[0])


# -- requests -----------------------------------------------------------------------------------


def grown() -> Iterator[list[Any]]:
    """The messages of three requests of one turn: the question, a tool's result, another one."""
    messages: list[Any] = [USER]
    yield list(messages)
    for _ in range(2):
        messages += [CALL, TOOL]
        yield list(messages)


def sent_by(turn: Turn, messages: list[Any], prompt: str = "base") -> tuple[list[Any], str]:
    outcome = turn.before_llm_call(messages, prompt)
    return turn.apply(outcome, messages, prompt)


class TestRequests:
    def test_inject_system_stands_once(self) -> None:
        """Each of three requests has the base prompt first and the text once, at the end."""
        runtime = Runtime(
            [handler("before_llm_call", lambda messages: HookResult.inject_system("Rule."))]
        )
        with runtime.turn(session_id="s") as turn:
            for messages in grown():
                assert sent_by(turn, messages) == (messages, "base\n\nRule.")

    def test_inject_user_goes_last(self) -> None:
        """In the last user message, or in a new one after tool results; for that request only."""

        def note(api_call_count: int) -> Any:
            return HookResult.inject_user("Note.") if api_call_count < 3 else None

        with Runtime([handler("before_llm_call", note)]).turn(session_id="s") as turn:
            sent = [
                turn.apply(turn.before_llm_call(m, api_call_count=n), m)[0]
                for n, m in enumerate(grown(), 1)
            ]
        assert sent[0] == [{"role": "user", "content": "hello\n\nNote."}]
        assert sent[1] == [USER, CALL, TOOL, {"role": "user", "content": "Note."}]
        assert sent[2] == [USER, CALL, TOOL, CALL, TOOL]

    @pytest.mark.parametrize("again", [False, True], ids=["returned-once", "returned-each-time"])
    def test_kept_text_stays_at_its_place(self, again: bool) -> None:
        """With `keep="turn"` the text stands once, where it first stood, also if returned again."""
        calls: list[int] = []

        def note(messages: Any) -> Any:
            calls.append(len(messages))
            if len(calls) > 1 and not again:
                return None
            return HookResult.inject_user("Note.", keep="turn")

        with Runtime([handler("before_llm_call", note)]).turn(session_id="s") as turn:
            sent = [sent_by(turn, messages)[0] for messages in grown()]
        first = {"role": "user", "content": "hello\n\nNote."}
        assert sent[0] == [first]
        assert sent[1] == [first, CALL, TOOL]
        assert sent[2] == [first, CALL, TOOL, CALL, TOOL]

    def test_kept_after_tool_results(self) -> None:
        """Text kept from a request that ended in tool results stays behind those results."""

        def note(messages: Any) -> Any:
            return HookResult.inject_user("Note.", keep="turn") if len(messages) == 3 else None

        with Runtime([handler("before_llm_call", note)]).turn(session_id="s") as turn:
            sent = [sent_by(turn, messages)[0] for messages in grown()]
        kept = {"role": "user", "content": "Note."}
        assert sent[0] == [USER]
        assert sent[1] == [USER, CALL, TOOL, kept]
        assert sent[2] == [USER, CALL, TOOL, kept, CALL, TOOL]

    @pytest.mark.parametrize("again", [False, True], ids=["returned-once", "returned-each-time"])
    def test_kept_system_text(self, again: bool) -> None:
        """Kept system text stands once in every request of its turn, and in no other turn."""

        def rule(api_call_count: int) -> Any:
            if api_call_count == 1 or (again and api_call_count > 0):
                return HookResult.inject_system("Rule.", keep="turn")
            return None

        runtime = Runtime([handler("before_llm_call", rule)])
        with runtime.turn(session_id="s") as turn:
            for number, messages in enumerate(grown(), 1):
                outcome = turn.before_llm_call(messages, "base", api_call_count=number)
                assert turn.apply(outcome, messages, "base")[1] == "base\n\nRule."
        with runtime.turn(session_id="s") as turn:
            outcome = turn.before_llm_call([USER], "base", api_call_count=0 if again else 2)
            assert turn.apply(outcome, [USER], "base") == ([USER], "base")

    def test_what_the_host_gave_is_left_alone(self) -> None:
        """Neither the host's list nor its messages change, and retries of `apply` agree."""
        runtime = Runtime(
            [
                handler("before_llm_call", lambda messages: HookResult.inject_user("A")),
                handler(
                    "before_llm_call",
                    lambda messages: HookResult.rewrite(
                        [*messages, {"role": "user", "content": "B"}]
                    ),
                ),
            ]
        )
        messages = [dict(USER)]
        with runtime.turn(session_id="s") as turn:
            outcome = turn.before_llm_call(messages, "base")
            assert turn.apply(outcome, messages, "base") == turn.apply(outcome, messages, "base")
        assert messages == [USER]

    def test_content_in_parts(self) -> None:
        """Injected user text becomes a text part behind the image; parts keep their order."""
        parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]
        runtime = Runtime(
            [handler("before_llm_call", lambda messages: HookResult.inject_user("Note."))]
        )
        with runtime.turn(session_id="s") as turn:
            sent, prompt = sent_by(turn, [{"role": "user", "content": parts}], "")
        assert sent[0]["content"] == [*parts, {"type": "text", "text": "Note."}]
        assert prompt == ""

    def test_system_texts_keep_the_handlers_order(self) -> None:
        """What stays and what is new stand in the handlers' order, the same at each request."""
        first = handler(
            "before_llm_call", lambda: HookResult.inject_system("each time"), priority=10
        )

        def once(api_call_count: int) -> Any:
            if api_call_count > 1:
                return None
            return HookResult.inject_system("stays", keep="turn")

        last = handler("before_llm_call", once, priority=20)
        with Runtime([last, first]).turn(session_id="s") as turn:
            prompts = []
            for number in (1, 2, 3):
                outcome = turn.before_llm_call([USER], "base", api_call_count=number)
                prompts.append(turn.apply(outcome, [USER], "base")[1])
        assert prompts == ["base\n\neach time\n\nstays"] * 3


class TestInput:
    @pytest.mark.parametrize(
        ("message", "text"),
        [
            ("", ""),
            ("   ", "   "),
            (None, ""),
            ([], ""),
            ([{"type": "image_url", "image_url": {"url": "x"}}], ""),
            ([{"type": "text", "text": "see"}], "see"),
            ("x" * 2_000_000, "x" * 2_000_000),
        ],
        ids=["empty", "blank", "none", "no-parts", "image", "part", "two-megabytes"],
    )
    def test_every_input_fires(self, message: Any, text: str) -> None:
        """The hook fires once for every input, with or without text, and never crashes."""
        seen: list[str] = []
        rule = handler("transform_user_input", seeing(seen, "user_message"))
        with Runtime([rule]).turn(session_id="s") as turn:
            assert turn.transform_user_input(message).final(message) is message
        assert seen == [text]

    def test_rewritten_parts_keep_the_image(self) -> None:
        """A text that replaces the text of a list leaves the other parts where they are."""
        image = {"type": "image_url", "image_url": {"url": "x"}}
        message = [{"type": "text", "text": "see"}, image]
        rule = handler("transform_user_input", lambda user_message: HookResult.rewrite("look"))
        with Runtime([rule]).turn(session_id="s") as turn:
            outcome = turn.transform_user_input(message)
        assert outcome.final(message) == [{"type": "text", "text": "look"}, image]

    def test_origins(self) -> None:
        """Background input reaches only who names it; steering text says that it steers."""
        seen: list[tuple[str, str]] = []
        runtime = Runtime(
            [
                handler("transform_user_input", lambda origin: seen.append(("all", origin))),
                handler(
                    "transform_user_input",
                    lambda origin: seen.append(("background", origin)),
                    origins=["background"],
                ),
            ]
        )
        with runtime.turn(session_id="s", origin="background") as turn:
            turn.transform_user_input("x")
        with runtime.turn(session_id="s") as turn:
            turn.transform_user_input("x")
            turn.transform_user_input("y", origin="steer")
        assert seen == [("background", "background"), ("all", "user"), ("all", "steer")]


# -- what handlers get --------------------------------------------------------------------------


class TestArguments:
    def test_unknown_values(self) -> None:
        """What the host does not know is None, or the parameter's own default."""
        seen: list[Any] = []
        no_default = object()

        def look(model: Any, chat_id: Any = no_default, platform: Any = "none") -> None:
            seen.append((model, chat_id, platform))

        runtime = Runtime([handler("intercept_tool_call", look)])
        judged(runtime)
        with runtime.turn(session_id="s", model="m", chat_id="7", platform="cli") as turn:
            turn.intercept_tool_call("t", {})
        assert seen == [(None, no_default, "none"), ("m", "7", "cli")]

    def test_call_ids_are_made_up(self) -> None:
        """A call without an id gets one that is unique in its turn."""
        seen: list[str] = []
        runtime = Runtime([handler("intercept_tool_call", seeing(seen, "tool_call_id"))])
        with runtime.turn(session_id="s") as turn:
            turn.intercept_tool_call("t", {})
            turn.intercept_tool_call("t", {}, tool_call_id="")
            turn.intercept_tool_call("t", {}, tool_call_id="mine")
        assert all(seen)
        assert len(set(seen)) == 3
        assert seen[2] == "mine"

    def test_bind_changes_ids_in_mid_turn(self) -> None:
        """Ids told later find the turn; handlers see them, but for the turn's own, which stays."""
        seen: list[Any] = []

        def look(session_id: str, turn_id: str, task_id: Any, state: Any) -> None:
            seen.append((session_id, turn_id, task_id, state.count("calls")))

        with Runtime([handler("intercept_tool_call", look)]).turn(session_id="a") as turn:
            turn.intercept_tool_call("t", {})
            turn.bind(session_id="b", turn_id="t9", task_id="k1")
            turn.intercept_tool_call("t", {})
            found = [run_in_thread(lambda i=i: get_turn_state(i)) for i in ("a", "b", "t9", "k1")]  # type: ignore[misc]
            assert all(state is turn.state for state in found)
        assert seen[0][0::3] == ("a", 1)
        assert seen[1] == ("b", seen[0][1], "k1", 2)

    def test_no_working_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A process whose directory was removed still has turns; `cwd` is then unknown."""
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        seen: list[Any] = []
        judged(Runtime([handler("intercept_tool_call", seeing(seen, "cwd"))]))
        assert seen == [None]


def run_in_thread(call: Callable[[], Any]) -> Any:
    """Call in a raw thread, with an empty context."""
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(call()))
    thread.start()
    thread.join(30)
    return ended[0]


# -- turns and state ----------------------------------------------------------------------------


@register_hook("intercept_tool_call")
def counting(state: Any, tool_name: str) -> Any:
    """Blocks the third call of a turn."""
    assert get_turn_state() is state
    return HookResult.block("Three times.") if state.count(tool_name) >= 3 else None


@register_hook("intercept_tool_call")
def remembering(session_state: Any) -> Any:
    """Blocks the third call of a conversation."""
    assert get_session_state() == session_state
    return HookResult.block("Three times.") if session_state.count("calls") >= 3 else None


class TestTurns:
    def test_state_is_the_turns_own(self) -> None:
        """State lasts for its turn, and the next one begins anew."""
        runtime = Runtime([counting])
        for _ in range(2):
            with runtime.turn(session_id="s") as turn:
                blocked = [turn.intercept_tool_call("t", {}).blocked for _ in range(3)]
            assert blocked == [False, False, True]
            assert turn.state == {}

    def test_nested_turns(self) -> None:
        """A turn inside another, even of the same session, has a state of its own."""
        runtime = Runtime([counting])
        with runtime.turn(session_id="s") as outer:
            outer.intercept_tool_call("t", {})
            with runtime.turn(session_id="s") as inner:
                inner.intercept_tool_call("t", {})
                outer.intercept_tool_call("t", {})
                assert (inner.state["t"], outer.state["t"]) == (1, 2)
                assert get_turn_state() is inner.state
            assert get_turn_state() is outer.state
            assert outer.state["t"] == 2

    def test_a_call_after_the_end_is_refused(self) -> None:
        """A tool call whose turn is over raises, and nothing is judged."""
        with Runtime([counting]).turn(session_id="s") as turn:
            pass
        with pytest.raises(TurnEndedError, match=r"t was called .*Runtime\.turn"):
            turn.intercept_tool_call("t", {})
        with pytest.raises(TurnEndedError):
            asyncio.run(turn.aintercept_tool_call("t", {}))
        assert turn.state == {}

    @pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, asyncio.CancelledError])
    def test_a_turn_ends_however_it_is_left(self, kind: type[BaseException]) -> None:
        """Whatever goes through `with`, the turn is over and the exception the same."""
        runtime = Runtime([counting])
        turn = runtime.turn(session_id="s")

        def leave() -> None:
            with turn:
                turn.intercept_tool_call("t", {})
                raise kind

        with pytest.raises(kind):
            leave()
        assert turn.closed
        assert turn.state == {}
        turn.close()

    def test_begun_and_ended_in_two_contexts(self) -> None:
        """A turn ends although its end runs in another context than its beginning."""
        turn = Runtime([counting]).turn(session_id="s")
        contextvars.copy_context().run(turn.__enter__)
        contextvars.copy_context().run(turn.__exit__, None, None, None)
        assert turn.closed

    def test_parallel_calls_share_the_turn(self) -> None:
        """Of 400 parallel calls in 8 threads exactly two pass."""
        with Runtime([counting]).turn(session_id="s") as turn, ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(lambda _: turn.intercept_tool_call("t", {}), range(400)))
            assert turn.state["t"] == 400
        assert sum(not outcome.blocked for outcome in outcomes) == 2

    def test_parallel_sessions_stay_apart(self) -> None:
        """Two sessions' calls from raw threads, by argument only, count for their own turn."""
        runtime = Runtime([counting])
        with runtime.turn(session_id="a") as one, runtime.turn(session_id="b") as two:
            calls = [(turn, n) for n in range(100) for turn in (one, two)]
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda call: call[0].intercept_tool_call("t", {}), calls))
            assert (one.state["t"], two.state["t"]) == (100, 100)

    async def test_in_other_threads_of_asyncio(self) -> None:
        """`asyncio.to_thread` carries the turn; gathered async calls share it."""
        with Runtime([counting]).turn(session_id="s") as turn:
            await asyncio.to_thread(turn.intercept_tool_call, "t", {})
            assert await asyncio.to_thread(get_turn_state) is turn.state
            await asyncio.gather(*(turn.aintercept_tool_call("t", {}) for _ in range(20)))
            assert turn.state["t"] == 21

    async def test_async_handlers_in_a_sync_host(self) -> None:
        """An async handler's verdict holds in a sync call, inside a running loop too."""

        async def rule(state: Any) -> Any:
            await asyncio.sleep(0)
            assert get_turn_state() is state
            return HookResult.block("no")

        with Runtime([handler("intercept_tool_call", rule)]).turn(session_id="s") as turn:
            assert turn.intercept_tool_call("t", {}).message == "no"
            assert (await asyncio.to_thread(turn.intercept_tool_call, "t", {})).message == "no"

    def test_ten_thousand_turns_leave_nothing(self) -> None:
        """No turn, state or session of 10,000 that are over is kept in memory."""
        runtime = Runtime([counting])

        def turns(first: int, last: int) -> None:
            for number in range(first, last):
                with runtime.turn(session_id=f"s{number}", task_id=f"k{number}") as turn:
                    turn.intercept_tool_call("t", {"n": number})

        turns(0, 200)
        gc.collect()
        tracemalloc.start()
        try:
            turns(200, 400)
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            turns(400, 10_400)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Ten bytes for each, less than any object; frames that a watchdog has read stay with it.
        assert after - before < 100_000
        assert open_turn_count() == 0


class TestSessionState:
    def test_kept_over_turns_and_restarts(self, tmp_path: Path) -> None:
        """A conversation's state outlives turns and runtimes with the same home, and no other."""
        seen = []
        for _ in range(2):
            runtime = Runtime([remembering], home=tmp_path)
            for conversation in ("c1", "c1", "c2"):
                with runtime.turn(session_id="s", conversation_id=conversation) as turn:
                    seen.append(turn.intercept_tool_call("t", {}).blocked)
            runtime.close()
        assert seen == [False, False, False, True, True, False]
        assert runtime.session_state("c1", "test_runtime")["calls"] == 4
        runtime.close()

    def test_private_to_each_extension(self, tmp_path: Path) -> None:
        """Two extensions count apart, by argument and by function, from any of their modules."""
        source = (
            "@register_hook('intercept_tool_call')\n"
            "def look(session_state):\n"
            "    get_session_state()['by-function'] = '{0}'\n"
            "    session_state['by-argument'] = '{0}'\n"
        )
        home = home_with(tmp_path, one=source.format("one"), two=source.format("two"))
        runtime = Runtime.from_config(home=home, cwd=tmp_path)
        with runtime.turn(session_id="s") as turn:
            outcome = turn.intercept_tool_call("t", {})
        assert not outcome.errors
        for name in ("one", "two"):
            expected = {"by-argument": name, "by-function": name}
            assert dict(runtime.session_state("s", name)) == expected
        runtime.close()

    def test_outside_of_a_handler(self) -> None:
        """Called where no extension's code runs in a turn, it raises with a hint."""
        with pytest.raises(StateError, match="session_state"):
            get_session_state()


# -- from the user's configuration --------------------------------------------------------------

GUARD = (
    "@register_hook('intercept_tool_call', guard=True)\n"
    "def check(tool_name, config):\n"
    "    return HookResult.block(config['why']) if tool_name == 'terminal' else None\n"
)


class TestFromConfig:
    def test_a_global_extension_with_settings(self, tmp_path: Path) -> None:
        """What lies in the home is loaded, gets its settings, and its outcome names it."""
        home = home_with(tmp_path, "extensions: {no-shell: {why: Ask me first.}}", no_shell=GUARD)
        runtime = Runtime.from_config(home=home, cwd=tmp_path)
        outcome = judged(runtime, "terminal")
        assert (outcome.blocked_by, outcome.message) == ("no-shell", "Ask me first.")
        assert [r.status for r in runtime.records if r.name == "no-shell"] == ["enabled"]
        assert runtime.problems == ()
        assert runtime.rules.who_must_see_tools() == ("no-shell",)
        runtime.close()

    def test_a_broken_one_is_a_record(self, tmp_path: Path) -> None:
        """An extension that cannot be imported is a record with the reason; others work."""
        home = home_with(
            tmp_path, "extensions: {no-shell: {why: No.}}", broken="1/0\n", no_shell=GUARD
        )
        runtime = Runtime.from_config(home=home, cwd=tmp_path)
        (record,) = [record for record in runtime.records if record.name == "broken"]
        assert record.status == "load-error"
        assert "ZeroDivisionError" in record.reason
        assert runtime.refusal is None
        assert judged(runtime, "terminal").blocked
        assert not judged(runtime, "read_file").blocked
        runtime.close()

    async def test_a_required_one_that_is_missing(self, tmp_path: Path) -> None:
        """Without a required extension every tool call is refused with the reason."""
        home = home_with(tmp_path, "extensions: {required: [no-shell]}")
        runtime = Runtime.from_config(home=home, cwd=tmp_path)
        assert runtime.refusal is not None
        assert "no-shell" in runtime.refusal
        assert not runtime.idle
        with runtime.turn(session_id="s") as turn:
            assert not turn.transform_user_input("hello").blocked
            for outcome in (
                turn.intercept_tool_call("t", {}),
                await turn.aintercept_tool_call("t", {}),
            ):
                assert outcome.message == runtime.refusal
                assert outcome.blocked_by == "hermes-ext"
        runtime.close()

    def test_an_observed_one(self, tmp_path: Path) -> None:
        """An observed extension's verdict is recorded as what it would have done, and no more."""
        config = "extensions: {observe: [no-shell], log: steps, no-shell: {why: No.}}"
        home = home_with(tmp_path, config, no_shell=GUARD)
        runtime = Runtime.from_config(home=home, cwd=tmp_path)
        outcome = judged(runtime, "terminal")
        assert not outcome.blocked
        (step,) = (step for step in outcome.steps if step.extension != "hermes-ext")
        assert (step.observed, step.action, step.reason) == (True, Action.BLOCK, "No.")
        runtime.close()
        (line,) = logged(home)
        assert line["action"] == "pass"
        assert [each["observed"] for each in line["steps"] if "observed" in each] == [True]

    def test_an_empty_home(self, tmp_path: Path) -> None:
        """Without a configuration there is nothing to do, and nothing is written."""
        runtime = Runtime.from_config(home=tmp_path / "none", cwd=tmp_path)
        assert runtime.idle
        judged(runtime)
        runtime.close()
        assert not (tmp_path / "none").exists() or not any((tmp_path / "none").iterdir())


def test_slips_of_who_makes_a_runtime(tmp_path):
    """One function instead of a list is told as that; a home may be a text."""
    check = handler("before_llm_call", lambda: None)
    with pytest.raises(TypeError, match=r"takes a list of handlers, not one: write Runtime\(\["):
        Runtime(check)
    assert Runtime.from_config(home=str(tmp_path), cwd=str(tmp_path)).handlers == ()


def test_what_is_in_force_cannot_be_set():
    """It is looked at; setting it is an error and no silent nothing. What a host sets, it sets."""
    runtime = Runtime([handler("before_llm_call", lambda: None)])
    with pytest.raises(AttributeError, match="manager"):
        runtime.manager = None
    runtime.approver = lambda request: True
    assert runtime.services.approver is runtime.approver


def test_facts_that_are_told_by_functions_are_asked_for_by_handlers_alone() -> None:
    """A host can leave it to `turn` whether somebody wants to know what takes long to find out."""
    seen: list[Any] = []
    asked: list[str] = []

    @register_hook("transform_user_input")
    def wants(interactive: bool | None) -> None:
        seen.append(interactive)

    def interactive() -> bool:
        asked.append("interactive")
        return True

    def project_root() -> Path | None:
        asked.append("project_root")
        return None

    for runtime in (Runtime([]), Runtime([wants])):
        with runtime.turn(
            session_id="s", interactive=interactive, project_root=project_root
        ) as turn:
            turn.transform_user_input("hello")
    assert (seen, asked) == ([True], ["interactive"])
