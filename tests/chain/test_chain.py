"""The chain: what each action and each failure does to the outcome."""

from __future__ import annotations

import gc
import weakref
from time import perf_counter_ns

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler, outcome_of

from hermes_ext import Action, ChainOutcome, HookResult, LLMRequest, ToolCall, UserInput
from hermes_ext.chain.fold import run
from hermes_ext.exceptions import HandlerError

CALL = EVENTS["intercept_tool_call"]


def returning(result):
    """A function that returns the same thing, for any hook."""

    def answer(session_id):
        return result

    return answer


def rewriting_to_the_same(tool_args):
    return HookResult.rewrite(tool_args)


def raising(error):
    """A function that raises."""

    def fail(session_id):
        raise error

    return fail


def actions(outcome):
    return [step.action.value for step in outcome.steps]


class TestPassing:
    """Nobody has anything to say."""

    def test_everyone_passes(self):
        """All chains in which everyone passed share one outcome, without a value."""
        both = chain(handler(returning(None)), handler(returning(HookResult.pass_())))
        outcome = run(both, CALL, SCOPE)
        assert outcome is run(both, CALL, SCOPE)
        assert (outcome.action, outcome.value, outcome.changed) == (Action.PASS, None, False)
        assert outcome.final("mine") == "mine"
        assert actions(outcome) == ["pass", "pass"]
        assert outcome.as_tool_result() is None
        assert not outcome.blocked

    def test_no_handlers(self):
        """An empty chain passes."""
        empty = chain(handler(returning(None), tools=["other"]))
        assert not empty
        assert run(empty, CALL, SCOPE).action is Action.PASS
        assert run(empty, CALL, SCOPE).steps == ()

    @pytest.mark.parametrize("later", [None, HookResult.pass_(), HookResult("pass", {"e": "vil"})])
    def test_a_later_pass_keeps_a_rewrite(self, later):
        """A handler without an opinion does not wipe what an earlier one rewrote."""
        outcome = outcome_of(
            handler(returning(HookResult.rewrite({"command": "ls -la"})), priority=10),
            handler(returning(later), priority=20),
        )
        assert outcome.value == {"command": "ls -la"}


class TestRewriting:
    """Rewrites chain."""

    def test_each_sees_what_the_one_before_left(self):
        """The second rewriter gets the first one's value, and the host gets the last."""

        def first(tool_args):
            return HookResult.rewrite({**tool_args, "seen": ["first"]})

        def second(tool_args):
            tool_args["seen"].append("second")
            return HookResult.rewrite(tool_args)

        outcome = outcome_of(handler(first), handler(second))
        assert outcome.value["seen"] == ["first", "second"]
        assert outcome.final({}) == outcome.value
        assert outcome.action is Action.REWRITE
        assert [step.changed for step in outcome.steps] == [True, True]
        assert outcome.event == ToolCall("terminal", outcome.value, "c1")

    def test_a_guard_sees_the_final_value(self):
        """However high its priority, a guard judges what will run, and the trace tells who."""

        def guard(tool_args):
            return HookResult.block("no") if "/" in tool_args["command"] else None

        def rewrite(tool_args):
            return HookResult.rewrite({"command": "rm -rf /"})

        outcome = outcome_of(
            handler(guard, guard=True, priority=10, extension="guard", timeout=0),
            handler(rewrite, priority=50, extension="rewriter"),
            event=ToolCall("terminal", {"command": "rm -rf build"}),
        )
        assert outcome.blocked_by == "guard"
        assert [(step.extension, step.changed) for step in outcome.steps] == [
            ("rewriter", True),
            ("guard", False),
        ]

    def test_a_rewrite_to_the_same_is_no_change(self):
        """Returning what one was given is a rewrite that changed nothing."""
        outcome = outcome_of(handler(rewriting_to_the_same))
        assert outcome.action is Action.REWRITE
        assert not outcome.changed
        assert not outcome.steps[0].changed

    def test_true_is_not_one(self):
        """Python's `1 == True` does not hide a change of type."""
        outcome = outcome_of(
            handler(returning(HookResult.rewrite({"n": True}))), event=ToolCall("t", {"n": 1})
        )
        assert outcome.changed
        assert outcome.final({"n": 1})["n"] is True

    def test_text_and_parts_of_an_input(self):
        """A str rewrite reaches the next handler as text and as parts."""
        seen = []

        def look(user_message, user_content, event):
            seen.append((user_message, user_content, event.text))

        image = {"type": "image"}
        outcome = outcome_of(
            handler(returning(HookResult.rewrite("new")), "transform_user_input"),
            handler(look, "transform_user_input"),
            event=UserInput("old", [{"type": "text", "text": "old"}, image]),
        )
        parts = [{"type": "text", "text": "new"}, image]
        assert seen == [("new", parts, "new")]
        assert outcome.value == parts
        assert outcome.event.text == "new"

    def test_subclasses_flow_as_plain_values(self):
        """A dict subclass is accepted, and what flows is a plain dict."""

        class Args(dict):
            pass

        outcome = outcome_of(handler(returning(HookResult.rewrite(Args(a=1)))))
        assert type(outcome.value) is dict


class TestEnding:
    """Block and answer end the chain."""

    @pytest.mark.parametrize("result", [HookResult.block("no"), HookResult.answer("42")], ids=str)
    def test_nobody_is_called_afterwards(self, result):
        """Later handlers of both phases are not called, and their steps say so."""
        outcome = outcome_of(
            handler(returning(result), priority=1),
            handler(raising(AssertionError("called")), priority=2),
            handler(raising(AssertionError("called")), guard=True, timeout=0),
        )
        assert outcome.action is result.action
        assert [step.skipped for step in outcome.steps] == [None, "ended", "ended"]
        assert outcome.errors == ()

    def test_a_block(self):
        """A block says who and why, and becomes the tool's error."""
        outcome = outcome_of(handler(returning(HookResult.block("no «x»")), extension="guard"))
        assert (outcome.blocked, outcome.blocked_by, outcome.message) == (True, "guard", "no «x»")
        assert outcome.value == "no «x»"
        assert outcome.as_tool_result() == (
            '{"error": "no «x»", "blocked_by_extension": true, "extension": "guard"}'
        )
        assert outcome.steps[0].reason == "no «x»"

    def test_an_answer(self):
        """An answer is the reply, or the tool's result."""
        outcome = outcome_of(handler(returning(HookResult.answer("42"))))
        assert outcome.answered
        assert outcome.as_tool_result() == "42"
        assert outcome.message is None

    def test_an_answer_after_a_rewrite(self):
        """The answer is the value; that the args were rewritten no longer matters."""
        outcome = outcome_of(
            handler(returning(HookResult.rewrite({"a": 1})), priority=1),
            handler(returning(HookResult.answer("42")), priority=2),
        )
        assert (outcome.action, outcome.value) == (Action.ANSWER, "42")

    @pytest.mark.parametrize("hook", ["transform_user_input", "before_llm_call"])
    def test_an_empty_reply_is_an_answer(self, hook):
        """Someone who only listens says nothing, and the model is not asked."""
        outcome = outcome_of(handler(returning(HookResult.answer("")), hook))
        assert (outcome.action, outcome.value) == (Action.ANSWER, "")
        assert outcome.answered

    def test_an_empty_tool_result_is_allowed(self):
        """A tool may well have nothing to say."""
        assert outcome_of(handler(returning(HookResult.answer("")))).as_tool_result() == ""


class TestAsking:
    """Asks join and do not end the chain."""

    def test_asks_join(self):
        """Several asks are all kept, in order, and later handlers are called."""
        outcome = outcome_of(
            handler(returning(HookResult.ask("one")), extension="a"),
            handler(returning(HookResult.rewrite({"x": 1})), extension="b"),
            handler(returning(HookResult.ask("two", "k")), guard=True, extension="c", timeout=0),
        )
        assert outcome.action is Action.ASK
        assert [(a.extension, a.reason, a.key) for a in outcome.asks] == [
            ("a", "one", None),
            ("c", "two", "k"),
        ]
        assert outcome.final({}) == {"x": 1}

    @pytest.mark.parametrize(
        ("result", "action"),
        [(HookResult.block("no"), "block"), (HookResult.answer("4"), "answer")],
    )
    def test_more_severe_actions_win(self, result, action):
        """Block and answer outweigh an ask."""
        outcome = outcome_of(handler(returning(HookResult.ask("?"))), handler(returning(result)))
        assert outcome.action.value == action
        assert len(outcome.asks) == 1

    def test_a_yes(self):
        """After a yes the call goes on, with what was rewritten."""
        outcome = outcome_of(
            handler(returning(HookResult.ask("?"))),
            handler(returning(HookResult.rewrite({"x": 1}))),
        ).resolved(approved=True, by="person")
        assert (outcome.action, outcome.approved) == (Action.REWRITE, True)
        assert outcome.final({}) == {"x": 1}
        assert outcome.to_json()["decided_by"] == "person"

    def test_a_no(self):
        """After a no it is a block of the extension that asked."""
        outcome = outcome_of(handler(returning(HookResult.ask("sure?")), extension="asker"))
        refused = outcome.resolved(approved=False, by="nobody")
        assert (refused.blocked, refused.blocked_by) == (True, "asker")
        assert "sure?" in refused.message
        assert outcome.resolved(approved=False, message="later").message == "later"
        assert not refused.approved

    @pytest.mark.parametrize(
        "hook", ["transform_user_input", "before_llm_call", "transform_tool_result"]
    )
    def test_only_tool_calls_can_be_asked_about(self, hook):
        """Elsewhere an ask is what the hook does not allow: that handler's failure."""
        outcome = outcome_of(handler(returning(HookResult.ask("?")), hook))
        assert outcome.asks == ()
        assert "may return" in str(outcome.errors[0])


class TestConfining:
    """Confinements join and do not end the chain."""

    def test_confinements_join(self):
        """All are kept, in order, with who wants them; the value goes on to later handlers."""
        outcome = outcome_of(
            handler(returning(HookResult.confine(["a"], reason="one")), extension="a"),
            handler(returning(HookResult.rewrite({"x": 1})), extension="b"),
            handler(returning(HookResult.confine(reason="two")), guard=True, extension="c"),
        )
        assert outcome.action is Action.CONFINE
        assert [(one.extension, one.bounds.writable) for one in outcome.confines] == [
            ("a", ("a",)),
            ("c", ()),
        ]
        assert outcome.final({}) == {"x": 1}
        assert outcome.as_tool_result() is None
        assert outcome.confinement is None  # the turn makes it

    def test_its_steps_say_what_may_change(self):
        """The reason is the step's; its JSON has the bounds, and the outcome's has who confines."""
        outcome = outcome_of(handler(returning(HookResult.confine(["a"], "none", reason="why"))))
        (step,) = outcome.steps
        assert (step.action, step.reason) == (Action.CONFINE, "why")
        bounds = {"writable": ["a"], "network": "none"}
        assert step.to_json()["bounds"] == bounds
        assert outcome.to_json()["confines"] == [
            {"extension": "ext", "handler": "answer", "reason": "why", **bounds}
        ]

    def test_a_yes_leaves_it_confined(self):
        """What was asked about and confined is confined after a yes."""
        outcome = outcome_of(
            handler(returning(HookResult.ask("?"))),
            handler(returning(HookResult.confine(reason="why"))),
        )
        assert outcome.action is Action.ASK
        assert outcome.resolved(approved=True).action is Action.CONFINE

    def test_bounds_that_were_exchanged(self):
        """A result that was changed after it was made is a failure."""

        def exchanged(tool_name):
            result = HookResult.confine(reason="why")
            result.__dict__["value"] = {"writable": ["/"]}
            return result

        assert "changed after it was made" in str(outcome_of(handler(exchanged)).errors[0])

    @pytest.mark.parametrize(
        "hook", ["transform_user_input", "before_llm_call", "transform_tool_result"]
    )
    def test_only_tool_calls_can_be_confined(self, hook):
        """Elsewhere it is what the hook does not allow: that handler's failure."""
        outcome = outcome_of(handler(returning(HookResult.confine(reason="why")), hook))
        assert outcome.confines == ()
        assert "may return" in str(outcome.errors[0])


class TestInjecting:
    """Texts for a request."""

    def test_injections_chain(self):
        """Later handlers and guards see what was injected; the host gets the texts in order."""
        seen = []

        def look(messages, system_prompt):
            seen.append((system_prompt, [message["content"] for message in messages]))

        outcome = outcome_of(
            handler(returning(HookResult.inject_system("one", keep="turn")), "before_llm_call"),
            handler(look, "before_llm_call"),
            handler(returning(HookResult.inject_user("two")), "before_llm_call"),
            handler(returning(HookResult.inject_system("three")), "before_llm_call"),
            handler(look, "before_llm_call", guard=True, timeout=0),
        )
        assert seen == [
            ("You are helpful.\n\none", ["hello"]),
            ("You are helpful.\n\none\n\nthree", ["hello", "two"]),
        ]
        assert outcome.action is Action.INJECT_SYSTEM
        assert outcome.system_injections == ("one", "three")
        assert outcome.user_injections == ("two",)
        assert [text.keep for text in outcome.system_injections] == ["turn", "request"]
        written = outcome.to_json()
        assert [each["text"] for each in written["system_injections"]] == ["one", "three"]
        assert [each["text"] for each in written["user_injections"]] == ["two"]
        assert not outcome.changed
        assert outcome.value is None

    def test_a_rewrite_after_an_injection(self):
        """Rewritten messages hold no injected text: it is added to them all the same, once."""

        def shorten(messages):
            messages[0]["content"] = "short"
            return HookResult.rewrite(messages)

        seen = []

        def look(messages):
            seen.extend(messages)

        outcome = outcome_of(
            handler(returning(HookResult.inject_user("extra")), "before_llm_call"),
            handler(shorten, "before_llm_call"),
            handler(look, "before_llm_call"),
        )
        assert outcome.value == [{"role": "user", "content": "short"}]
        assert outcome.user_injections == ("extra",)
        assert [message["content"] for message in seen] == ["short", "extra"]

    def test_a_megabyte_is_shared(self):
        """Changing one message shares all the others with the host, and changes none of its own."""
        host = [{"role": "user", "content": "x" * 1000} for _ in range(1000)]

        def change_one(messages):
            messages[500]["content"] = "changed"
            return HookResult.rewrite(messages)

        outcome = outcome_of(handler(change_one, "before_llm_call"), event=LLMRequest(host))
        assert type(outcome.value) is list
        assert sum(mine is theirs for mine, theirs in zip(outcome.value, host, strict=True)) == 999
        assert host[500]["content"] == "x" * 1000


def test_metadata_merges_left_to_right():
    """Later handlers see earlier metadata, the same key is overwritten, the host gets it all."""
    seen = []

    def look(metadata):
        seen.append(dict(metadata))
        return HookResult.rewrite({"x": 1}, metadata={"b": 2, "a": 3})

    outcome = outcome_of(
        handler(returning(HookResult.pass_(metadata={"a": 1}))),
        handler(look),
    )
    assert seen == [{"a": 1}]
    assert outcome.metadata == {"a": 3, "b": 2}
    with pytest.raises(TypeError):
        outcome.metadata["c"] = 1


class BrokenText(Exception):
    """An exception whose text cannot be read."""

    def __str__(self):
        raise ValueError("broken")


FAILURES = [
    ValueError("v"),
    AssertionError("a"),
    RecursionError("r"),
    MemoryError(),
    SystemExit(9),
    GeneratorExit(),
    StopIteration(),
    BrokenText(),
    BaseException("base"),
]


def recursing(session_id):
    return recursing(session_id)


class TestFailing:
    """A failure is one class, and the handler's policy decides."""

    @pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
    @pytest.mark.parametrize("hook", EVENTS)
    @pytest.mark.parametrize("guard", [False, True], ids=["transformer", "guard"])
    def test_policy_by_default(self, hook, guard, error):
        """Any exception blocks a tool call and a guard's chain, and passes elsewhere."""
        outcome = outcome_of(
            handler(raising(error), hook, guard=guard, extension="broken", priority=1),
            handler(returning(None), hook, guard=guard, priority=2),
        )
        (failure,) = outcome.errors
        assert failure.kind == "exception"
        assert failure.cause is error
        assert type(error).__name__ in str(failure)
        if guard or hook == "intercept_tool_call":
            assert outcome.blocked_by == "broken"
            assert type(error).__name__ in outcome.message
            assert outcome.message != "v"
        else:
            assert outcome.action is Action.PASS
            assert not outcome.changed
            assert actions(outcome) == ["pass", "pass"]

    def test_real_recursion(self):
        """A handler that recurses for ever fails like any other."""
        outcome = outcome_of(handler(recursing))
        assert outcome.blocked
        assert isinstance(outcome.errors[0].cause, RecursionError)

    @pytest.mark.parametrize("hook", ["transform_user_input", "before_llm_call"])
    def test_the_others_go_on(self, hook):
        """Where a failure passes, later handlers still rewrite."""
        value = "new" if hook == "transform_user_input" else [{"role": "user", "content": "new"}]
        outcome = outcome_of(
            handler(raising(ValueError("x")), hook, priority=10),
            handler(returning(HookResult.rewrite(value)), hook, priority=20),
        )
        assert outcome.value == value
        assert len(outcome.errors) == 1

    def test_what_a_failed_handler_changed_is_lost(self):
        """A handler that rewrites in place and then fails leaves the value as it was."""

        def half(tool_args):
            tool_args["command"] = "changed"
            raise ValueError

        outcome = outcome_of(handler(half, on_error="pass"))
        assert not outcome.changed

    def test_ask_as_policy(self):
        """With `on_error="ask"` a person decides about the call."""
        outcome = outcome_of(handler(raising(ValueError("secret")), on_error="ask"))
        assert outcome.action is Action.ASK
        (ask,) = outcome.asks
        assert "ValueError" in ask.reason
        assert "secret" not in ask.reason

    def test_pass_as_policy(self):
        """With `on_error="pass"` even a guard's failure lets the call go on, without a reason."""
        outcome = outcome_of(handler(raising(ValueError()), guard=True, on_error="pass", timeout=0))
        assert outcome.action is Action.PASS
        assert [(step.action, step.reason) for step in outcome.steps] == [(Action.PASS, None)]

    def test_the_error_says_everything(self):
        """Extension, hook, handler, file and line are in the message; the traceback can be read."""
        outcome = outcome_of(handler(raising(ValueError("why")), extension="my-ext"))
        (error,) = outcome.errors
        assert isinstance(error, HandlerError)
        assert (error.extension, error.hook) == ("my-ext", "intercept_tool_call")
        assert error.path.name == "test_chain.py"
        assert "fail raised ValueError: why" in str(error)
        assert "my-ext, intercept_tool_call" in str(error)
        assert error.traceback.splitlines()[-1] == "ValueError: why"
        assert "raise error" in error.traceback
        assert "fold.py" not in error.traceback

    def test_an_error_without_a_text(self):
        """Its class is all that there is to say."""

        def fail(session_id):
            raise ValueError

        one = chain(handler(fail, on_error="pass"))
        (step,) = [each for each in run(one, CALL, SCOPE).steps if each.error]
        assert "fail raised ValueError" in str(step.error)
        assert "ValueError:" not in str(step.error)

    def test_the_traceback_shows_the_cause(self):
        """An exception that was raised because of another shows both."""

        def fail(session_id):
            try:
                raise KeyError("inner")
            except KeyError as error:
                raise ValueError("outer") from error

        (error,) = outcome_of(handler(fail)).errors
        assert error.traceback.index("KeyError: 'inner'") < error.traceback.index("ValueError")

    def test_no_frames_are_kept(self):
        """An outcome with a failure keeps none of the handler's local objects alive."""

        class Local:
            pass

        seen = []

        def fail(session_id):
            local = Local()
            seen.append(weakref.ref(local))
            raise ValueError

        gc.disable()
        try:
            outcome = outcome_of(handler(fail))
            assert outcome.blocked
            assert seen[0]() is None
        finally:
            gc.enable()


INVALID = [
    "block",
    True,
    0,
    {"action": "block"},
    ("block", "x"),
    ["block"],
    HookResult,
    object(),
    Action.BLOCK,
    b"block",
]


async def _coroutine():
    return HookResult.block("no")


class TestInvalidResults:
    """What is no `HookResult` is a failure, never a silent pass."""

    @pytest.mark.parametrize("result", INVALID, ids=lambda result: str(type(result).__name__))
    @pytest.mark.parametrize("hook", EVENTS)
    def test_a_wrong_return_is_a_failure(self, hook, result):
        """The message names extension, hook, handler, place, what came and what is expected."""
        outcome = outcome_of(handler(returning(result), hook, extension="my-ext"))
        (error,) = outcome.errors
        assert error.kind == "invalid-result"
        text = str(error)
        for part in ("my-ext", hook, "answer returned", "test_chain.py:", "HookResult"):
            assert part in text
        assert type(result).__name__ in text
        assert outcome.blocked is (hook == "intercept_tool_call")

    @pytest.mark.parametrize("action", ["deny", "BLOCK"])
    def test_a_misspelt_action_is_a_failure(self, action):
        """A `HookResult` that cannot be made raises in the handler, and that counts as failure."""

        def deny(tool_name):
            return HookResult(action, "no")

        outcome = outcome_of(handler(deny))
        assert outcome.blocked
        assert outcome.errors[0].kind == "invalid-result"
        assert "Did you mean 'block'" in str(outcome.errors[0])

    def test_coroutines_and_generators(self):
        """An un-awaited coroutine is a failure without a warning, as is a generator."""

        def generate():
            yield HookResult.block("no")

        for make in (_coroutine, generate):
            outcome = outcome_of(handler(lambda tool_name, _make=make: _make()))
            assert outcome.blocked
            assert outcome.errors[0].kind == "invalid-result"

    @pytest.mark.parametrize(
        ("hook", "result"),
        [
            ("transform_user_input", HookResult.inject_user("x")),
            ("transform_user_input", HookResult.rewrite({"a": 1})),
            ("transform_user_input", HookResult.rewrite(["a"])),
            ("before_llm_call", HookResult.rewrite("x")),
            ("before_llm_call", HookResult.rewrite([{}, 5])),
            ("intercept_tool_call", HookResult.rewrite("ls")),
            ("intercept_tool_call", HookResult.rewrite([{}])),
            ("intercept_tool_call", HookResult.inject_system("x")),
            ("transform_tool_result", HookResult.rewrite({"a": 1})),
            ("transform_tool_result", HookResult.answer("x")),
        ],
        ids=str,
    )
    def test_what_the_hook_does_not_allow(self, hook, result):
        """A wrong action or type keeps the original and is told, with what is expected."""
        seen = []

        def look(event):
            seen.append(event)

        outcome = outcome_of(
            handler(returning(result), hook, on_error="pass"),
            handler(look, hook),
        )
        assert seen == [EVENTS[hook]]
        assert not outcome.changed
        assert outcome.errors[0].kind == "invalid-result"
        assert "expected" in str(outcome.errors[0]) or "may return" in str(outcome.errors[0])

    @pytest.mark.parametrize(
        "result",
        [
            HookResult.rewrite({"a": 1}),
            HookResult.answer("x"),
            HookResult.inject_system("x"),
            HookResult.inject_user("x"),
        ],
        ids=str,
    )
    def test_guards_only_judge(self, result):
        """A guard that returns anything but a verdict has failed, so the call is blocked."""
        outcome = outcome_of(handler(returning(result), guard=True))
        assert outcome.blocked
        assert "guards of intercept_tool_call may return pass, confine, ask, block" in str(
            outcome.errors[0]
        )

    def test_an_object_that_cannot_be_shown(self):
        """A returned object whose repr raises is told by its type."""

        class Hidden:
            def __repr__(self):
                raise ValueError

        assert "a Hidden" in str(outcome_of(handler(returning(Hidden()))).errors[0])

    def test_a_rewrite_that_the_tools_schema_refuses(self):
        """Rewritten args are checked where the host gives a schema; breaking it is a failure."""
        scope = SCOPE.replace(
            check_tool_args=lambda tool, args: None if "command" in args else f"{tool}: no command"
        )
        good = handler(returning(HookResult.rewrite({"command": "x"})), on_error="pass")
        bad = handler(returning(HookResult.rewrite({"cmd": "x"})), on_error="pass")
        assert outcome_of(good, scope=scope).value == {"command": "x"}
        outcome = outcome_of(bad, scope=scope)
        assert not outcome.changed
        assert "terminal: no command" in str(outcome.errors[0])

    def test_a_schema_check_that_fails(self):
        """A check that raises must not let unchecked args through."""

        def broken(tool, args):
            raise RuntimeError("no schema")

        outcome = outcome_of(
            handler(returning(HookResult.rewrite({"a": 1})), on_error="pass"),
            scope=SCOPE.replace(check_tool_args=broken),
        )
        assert not outcome.changed
        assert outcome.errors

    @pytest.mark.parametrize(
        ("hook", "make"),
        [
            ("transform_user_input", lambda: HookResult.rewrite(123)),
            ("transform_user_input", lambda: HookResult.rewrite(None)),
            ("transform_user_input", lambda: HookResult.rewrite(b"x")),
            ("before_llm_call", lambda: HookResult.inject_system(None)),
            ("before_llm_call", lambda: HookResult("inject_user", 5)),
        ],
        ids=["rewrite-int", "rewrite-None", "rewrite-bytes", "inject-None", "inject-int"],
    )
    def test_what_cannot_be_made_is_told(self, hook, make):
        """The original is kept, the chain goes on, and one error names everything."""
        seen = []

        def wrong(session_id):
            return make()

        def look(event):
            seen.append(event)

        outcome = outcome_of(handler(wrong, hook, extension="my-ext"), handler(look, hook))
        assert seen == [EVENTS[hook]]
        (error,) = outcome.errors
        assert (error.extension, error.hook, error.kind) == ("my-ext", hook, "invalid-result")
        assert "needs a" in str(error)


class TestCalling:
    """Who is called, and how often."""

    @pytest.mark.parametrize(
        "result",
        [
            None,
            HookResult.pass_(metadata={"a": 1}),
            HookResult.rewrite({"x": 1}),
            HookResult.ask("?"),
            HookResult.answer("42"),
            HookResult.block("no"),
            "invalid",
            ValueError("x"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("options", [{}, {"timeout": 5}, {"guard": True}], ids=str)
    def test_each_handler_once(self, result, options):
        """Whatever it says and wherever it runs, a handler is called once in a run."""
        calls = []

        def count(session_id):
            calls.append(1)
            if isinstance(result, Exception):
                raise result
            return result

        outcome_of(handler(returning(None), priority=1), handler(count, priority=2, **options))
        assert len(calls) == 1


class TestObserving:
    """`extensions.observe`: recorded as "would have", without effect."""

    @pytest.mark.parametrize(
        ("result", "changed"),
        [
            (HookResult.block("no"), False),
            (HookResult.rewrite({"x": 1}), True),
            (HookResult.ask("?"), False),
            (HookResult.answer("42"), False),
            (HookResult.pass_(metadata={"a": 1}), False),
        ],
        ids=str,
    )
    def test_verdicts_are_only_recorded(self, result, changed):
        """The step says what would have been; value, chain and metadata go on as without it."""
        seen = []

        def look(tool_args, metadata):
            seen.append((tool_args, dict(metadata)))

        outcome = outcome_of(handler(returning(result), observe=True), handler(look))
        assert seen == [(CALL.tool_args, {})]
        assert outcome.action is Action.PASS
        assert (outcome.changed, outcome.asks, outcome.metadata) == (False, (), {})
        step = outcome.steps[0]
        assert (step.observed, step.action, step.changed) == (True, result.action, changed)

    def test_failures_are_only_recorded(self):
        """An observed guard that fails blocks nothing; its step has the error."""
        outcome = outcome_of(handler(raising(ValueError()), guard=True, observe=True))
        assert outcome.action is Action.PASS
        (step,) = outcome.steps
        assert (step.observed, step.action, step.error.kind) == (True, Action.BLOCK, "exception")


class TestSuspending:
    """Five failures in a row."""

    def test_a_handler_that_may_fail_is_suspended(self):
        """After five failures in a row it is not called, and its step says so."""
        calls = []

        def fail(session_id):
            calls.append(1)
            raise ValueError

        two = chain(handler(fail, on_error="pass"), handler(returning(None)))
        for _ in range(8):
            outcome = run(two, CALL, SCOPE)
        assert len(calls) == 5
        assert [step.skipped for step in outcome.steps] == ["suspended", None]

    def test_one_success_starts_the_count_anew(self):
        """Only failures in a row count."""
        calls = []

        def sometimes(session_id):
            calls.append(1)
            if len(calls) % 5:
                raise ValueError

        one = chain(handler(sometimes, on_error="pass"))
        for _ in range(20):
            run(one, CALL, SCOPE)
        assert len(calls) == 20

    @pytest.mark.parametrize("way", ["a result", "a crash", "a wait", "a long chain"])
    def test_a_success_counts_wherever_the_chain_ends(self, way):
        """A pass starts the count anew also where a later handler acts, crashes or is awaited."""
        broken = [True]

        def sometimes(session_id):
            if broken[0]:
                raise ValueError

        async def awaited(session_id):
            return None

        def crash(session_id):
            if not broken[0]:
                raise ValueError

        def act(session_id):
            return None if broken[0] else HookResult.ask("?")

        last = {"a crash": crash, "a wait": awaited}.get(way, act)
        between = 20 if way == "a long chain" else 0
        fill = [handler(returning(None), priority=2) for _ in range(between)]
        one = chain(
            handler(sometimes, on_error="pass", priority=1), *fill, handler(last, priority=3)
        )
        for _ in range(3):
            for broken[0] in (True, True, True, True, False):
                run(one, CALL, SCOPE)
        assert not one.suspended
        assert one.handlers[0] not in one.ailing

    def test_a_handler_that_closes_stays_closed(self):
        """A handler whose failure blocks is called again and again, and goes on blocking."""
        calls = []

        def fail(session_id):
            calls.append(1)
            raise ValueError

        one = chain(handler(fail))
        assert all(run(one, CALL, SCOPE).blocked for _ in range(8))
        assert len(calls) == 8


class TestExamining:
    """Strict and timed runs, for tests and doctors."""

    def test_strict_runs_report_changes_in_place(self):
        """A handler that changes its copy and says nothing is found, at any depth."""

        def nested(tool_args):
            tool_args["env"]["K"] = "v"

        def through_the_event(event):
            del event.tool_args["command"]

        def honest(tool_args):
            tool_args["x"] = 1
            return HookResult.rewrite(tool_args)

        outcome = outcome_of(
            handler(nested),
            handler(through_the_event),
            handler(returning(None)),
            handler(honest),
            strict=True,
        )
        assert [step.mutated for step in outcome.steps] == [True, True, False, False]
        assert outcome.value == {**CALL.tool_args, "x": 1}

    def test_messages_that_were_only_read(self):
        """Reading messages is no change, changing one is."""

        def read(messages):
            assert [message["role"] for message in messages] == ["user"]

        def change(messages):
            messages[0]["content"] = "changed"

        outcome = outcome_of(
            handler(read, "before_llm_call"), handler(change, "before_llm_call"), strict=True
        )
        assert [step.mutated for step in outcome.steps] == [False, True]

    @pytest.mark.parametrize("does", [returning(HookResult.block("no")), raising(ValueError())])
    def test_each_run_is_measured(self, does):
        """From its begin to its outcome."""
        began = perf_counter_ns()
        outcome = outcome_of(handler(does))
        assert 0 < outcome.duration_ns <= perf_counter_ns() - began

    def test_timed_runs_measure_each_handler(self):
        """Every handler that was called has its own duration."""
        outcome = outcome_of(
            handler(returning(None)), handler(returning(HookResult.block("x"))), timed=True
        )
        assert all(step.duration_ns > 0 for step in outcome.steps)
        assert outcome.duration_ns >= sum(step.duration_ns for step in outcome.steps)

    def test_steps_have_no_duration_otherwise(self):
        """Measuring costs more than the handlers, so it is not done unasked."""
        outcome = outcome_of(handler(returning(HookResult.block("x"))))
        assert outcome.steps[0].duration_ns is None
        assert outcome.steps[0].mutated is None


def test_a_refusal_by_the_runtime():
    """A host can make a block of its own, for what no handler judged."""
    outcome = ChainOutcome.refused("the turn is over", by="hermes-ext")
    assert (outcome.blocked, outcome.blocked_by) == (True, "hermes-ext")
    assert outcome.steps == outcome.errors == outcome.asks == ()
    assert outcome.to_json()["message"] == "the turn is over"


def test_an_outcome_as_json():
    """Everything but payloads is in it, as plain data."""
    import json

    outcome = outcome_of(
        handler(returning(HookResult.rewrite({"secret": "s3cr3t"})), extension="a"),
        handler(raising(ValueError("x")), on_error="pass", extension="b"),
        handler(returning(HookResult.ask("sure?", "k")), extension="c"),
    )
    data = json.loads(json.dumps(outcome.to_json()))
    assert data["action"] == "ask"
    assert data["asks"] == [{"extension": "c", "handler": "answer", "reason": "sure?", "key": "k"}]
    assert [step["action"] for step in data["steps"]] == ["rewrite", "pass", "ask"]
    assert data["steps"][1]["error"]["kind"] == "exception"
    assert "s3cr3t" not in json.dumps(data)


def test_outcomes_are_frozen():
    """Nobody downstream can change a verdict."""
    import attrs

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        outcome_of(handler(returning(HookResult.block("x")))).action = Action.PASS
