"""What a handler is given: what it names, of its own, and nothing that is not known."""

from __future__ import annotations

import functools
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler, outcome_of

from hermes_ext import HookResult, LLMRequest, ToolCall, ToolResult, UserInput
from hermes_ext.chain.fold import run
from hermes_ext.hooks.payloads import NAMED_ONLY, UNKNOWN, Scope
from hermes_ext.hooks.table import TABLE

FULL = Scope(
    session_id="s",
    conversation_id="c",
    turn_id="t",
    turn_number=3,
    task_id="task",
    platform="cli",
    origin="cron",
    interactive=False,
    model="m",
    cwd=Path("/work"),
    project_root=Path("/work/root"),
    is_subagent=True,
    parent_session_id="p",
    sender_id="me",
    chat_id="room",
    state={"n": 1},
    session_state_of=lambda extension: {"of": extension},
)
FULL_EVENTS = {
    "transform_user_input": UserInput("hi", [{"type": "text", "text": "hi"}], "skill"),
    "before_llm_call": LLMRequest([{"role": "user"}], "system", 2, "r1"),
    "intercept_tool_call": ToolCall("terminal", {"a": 1}, "c1"),
    "transform_tool_result": ToolResult("terminal", {"a": 1}, "c1", "out", "ok", 12.5),
}
EVERYWHERE = {
    "session_id": "s",
    "conversation_id": "c",
    "turn_id": "t",
    "turn_number": 3,
    "task_id": "task",
    "platform": "cli",
    "origin": "cron",
    "interactive": False,
    "model": "m",
    "cwd": Path("/work"),
    "project_root": Path("/work/root"),
    "is_subagent": True,
    "parent_session_id": "p",
    "sender_id": "me",
    "chat_id": "room",
    "state": {"n": 1},
    "session_state": {"of": "ext"},
    "config": {"setting": 1},
    "metadata": {},
}
OWN = {
    "transform_user_input": {
        "user_message": "hi",
        "user_content": [{"type": "text", "text": "hi"}],
        "command": "skill",
    },
    "before_llm_call": {
        "messages": [{"role": "user"}],
        "system_prompt": "system",
        "api_call_count": 2,
        "request_id": "r1",
    },
    "intercept_tool_call": {"tool_name": "terminal", "tool_args": {"a": 1}, "tool_call_id": "c1"},
    "transform_tool_result": {
        "tool_name": "terminal",
        "tool_args": {"a": 1},
        "tool_call_id": "c1",
        "result": "out",
        "status": "ok",
        "duration_ms": 12.5,
    },
}


def given_to(function, hook, scope=FULL, event=None, **options):
    """What a handler was called with; the function puts it into its `seen`."""
    one = handler(function, hook, config={"setting": 1}, **options)
    outcome = run(chain(one, origin="user"), event or FULL_EVENTS[hook], scope)
    assert outcome.errors == ()


@pytest.mark.parametrize("hook", EVENTS)
def test_everything(hook):
    """`**kwargs` gets every argument of the hook, and `event`; not what leaves a folder behind."""
    seen = {}

    def take_all(**kwargs):
        seen.update(kwargs)

    given_to(take_all, hook)
    event = seen.pop("event")
    assert seen == EVERYWHERE | OWN[hook]
    assert event == FULL_EVENTS[hook]
    assert {*seen, "event"} == set(TABLE[hook].names) - NAMED_ONLY


@pytest.mark.parametrize("hook", EVENTS)
def test_one_at_a_time(hook):
    """Each argument can be named alone, by position or as a keyword-only parameter."""
    for name, value in (EVERYWHERE | OWN[hook]).items():
        seen = []
        namespace = {"seen": seen}
        exec(
            f"def by_position({name}): seen.append({name})\n"
            f"def by_keyword(*, {name}): seen.append({name})\n",
            namespace,
        )
        given_to(namespace["by_position"], hook)
        given_to(namespace["by_keyword"], hook)
        assert seen == [value, value], name


def test_order_and_mixtures():
    """Parameters may stand in any order, with and without defaults, in front of `**kwargs`."""
    seen = []

    def mixed(session_id, tool_name, *, tool_args, platform="none", **rest):
        seen.append((session_id, tool_name, tool_args, platform, rest["cwd"]))

    given_to(mixed, "intercept_tool_call")
    assert seen == [("s", "terminal", {"a": 1}, "cli", Path("/work"))]


def test_what_is_not_known():
    """What is unknown is None, or left out: of parameters with a default and of `**kwargs`."""
    seen = []

    def without(platform, model):
        seen.append((platform, model))

    def with_default(platform="anywhere", session_id="none"):
        seen.append((platform, session_id))

    def take_all(**kwargs):
        seen.append("platform" in kwargs)

    scope = FULL.replace(platform=UNKNOWN, model=UNKNOWN)
    for function in (without, with_default, take_all):
        given_to(function, "intercept_tool_call", scope)
    assert seen == [(None, None), ("anywhere", "s"), False]


def test_what_an_event_does_not_know():
    """The optional parts of an event follow the same rule."""
    seen = []

    def with_default(status="unknown", duration_ms=0):
        seen.append((status, duration_ms))

    given_to(with_default, "transform_tool_result", event=ToolResult("t", {}, "c", "out"))
    assert seen == [("unknown", 0)]


def test_positional_and_wrapped_calls_agree():
    """A wrapper that takes only keywords is called by keyword, whatever signature it shows."""
    seen = []

    def inner(tool_name, session_id):
        seen.append((tool_name, session_id))

    @functools.wraps(inner)
    def wrapper(**kwargs):
        return inner(**kwargs)

    given_to(wrapper, "intercept_tool_call")
    given_to(inner, "intercept_tool_call")
    assert seen == [("terminal", "s")] * 2


def test_a_partials_own_argument_wins():
    """What a partial has bound is the author's, even if the hook has an argument of that name."""
    seen = []

    def inner(tool_name, config):
        seen.append(config)

    given_to(functools.partial(inner, config="mine"), "intercept_tool_call")
    assert seen == ["mine"]


def test_session_state_is_per_extension():
    """Two extensions get two session states."""
    seen = []

    def look(session_state):
        seen.append(session_state["of"])

    run(
        chain(handler(look, extension="a"), handler(look, extension="b")),
        EVENTS["intercept_tool_call"],
        FULL,
    )
    assert seen == ["a", "b"]


def test_session_state_that_cannot_be_had_is_that_handlers_failure():
    """A disk error while the state is opened fails the handler that named it, and is told."""

    def broken(extension):
        raise OSError("disk full")

    def look(session_state):
        raise AssertionError("must not be called")

    def other(tool_name):
        return None

    outcome = outcome_of(
        handler(other),
        handler(look, on_error="pass"),
        handler(other),
        scope=SCOPE.replace(session_state_of=broken),
    )
    assert [str(step.error or "") != "" for step in outcome.steps] == [False, True, False]
    assert "disk full" in str(outcome.steps[1].error)


def test_state_is_shared_as_it_is():
    """The turn's state is the one thing that handlers share by reference."""
    state: dict = {}

    def count(state):
        state["n"] = state.get("n", 0) + 1

    outcome_of(handler(count), handler(count), scope=SCOPE.replace(state=state))
    assert state == {"n": 2}


def mutate_everything(**kwargs):
    """Changes in place all it can reach, and says nothing."""
    for name in ("tool_args", "messages", "user_content"):
        value = kwargs.get(name)
        if isinstance(value, dict):
            value["env"] = "changed"
            value.clear()
        elif isinstance(value, list):
            value[0]["content"] = "changed"
            value[0]["text"] = "changed"
            value.append({"new": 1})
    event = kwargs["event"]
    if isinstance(event, (ToolCall, ToolResult)):
        event.tool_args["command"] = "changed"
        event.tool_args.get("env", {}).clear()
    elif isinstance(event, LLMRequest):
        event.messages[0]["content"] = "changed"
        event.messages.clear()
    elif event.content:
        event.content[0]["text"] = "changed"
    for value in kwargs["metadata"].values():
        value.append("changed")


@pytest.mark.parametrize("hook", EVENTS)
def test_changes_in_place_change_nothing_for_anyone(hook):
    """What a handler changes in place, at any depth, neither host nor the next one sees."""
    event = FULL_EVENTS[hook]
    before = event.lend()
    seen = []

    def first(session_id):
        return HookResult.pass_(metadata={"list": [1]})

    def last(event, metadata):
        seen.append((event, metadata["list"]))

    outcome = outcome_of(
        handler(first, hook),
        handler(mutate_everything, hook, on_error="block"),
        handler(last, hook),
        event=event,
        scope=FULL,
    )
    assert outcome.errors == ()
    assert seen == [(before, [1])]
    assert event == before
    assert outcome.metadata == {"list": [1]}
    assert not outcome.changed


def test_what_was_returned_is_not_aliased():
    """A handler that keeps what it returned and changes it later changes nothing."""
    kept = {}

    def rewrite(tool_args):
        kept["args"] = {"env": {"A": "2"}}
        return HookResult.rewrite(kept["args"])

    def change(tool_name):
        kept["args"]["env"]["A"] = "3"

    outcome = outcome_of(handler(rewrite), handler(change))
    assert outcome.value == {"env": {"A": "2"}}
    kept["args"]["env"]["A"] = "4"
    assert outcome.value == {"env": {"A": "2"}}


def test_metadata_is_read_only():
    """`metadata` cannot be assigned to: `.pass_(metadata=…)` adds to it."""
    seen = []

    def add(tool_name):
        return HookResult.pass_(metadata={"a": 1})

    def look(metadata):
        seen.append(metadata)

    outcome_of(handler(add), handler(look))
    assert isinstance(seen[0], MappingProxyType)
    assert dict(seen[0]) == {"a": 1}
