"""Events and what keeps their contents apart: copies, lazy message lists, the scope."""

from __future__ import annotations

import copy
import json
import operator
import pickle
import sys
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ext import LLMRequest, ToolCall, ToolResult, UserInput
from hermes_ext.hooks.isolation import Messages, identical, own_copy
from hermes_ext.hooks.payloads import UNKNOWN, Scope

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _containers(value):
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _containers(item)
    elif isinstance(value, list):
        yield value
        for item in list.__iter__(value):
            yield from _containers(item)


@given(JSON)
def test_a_copy_is_the_same_and_shares_nothing(value):
    """A copy equals its original, and no dict or list is in both."""
    copied = own_copy(value)
    assert identical(copied, value)
    assert not {id(one) for one in _containers(value)} & {id(one) for one in _containers(copied)}


def test_subclasses_become_plain():
    """Subclasses of dict, list and str are accepted anywhere and end as plain ones."""

    class Dict(dict):
        pass

    class List(list):
        pass

    class Text(str):
        pass

    copied = own_copy(Dict({Text("a"): List([Text("b"), Dict(c=1)])}))
    assert copied == {"a": ["b", {"c": 1}]}
    assert [type(one) for one in _containers(copied)] == [dict, list, dict]
    assert type(next(iter(copied))) is str
    assert type(copied["a"][0]) is str


def test_nesting_deeper_than_the_stack_is_copied():
    """A model can send arguments of any depth; they are copied all the same."""
    deep: dict = {}
    inner = deep
    for _ in range(sys.getrecursionlimit() * 2):
        inner["a"] = {"b": [1]}
        inner = inner["a"]

    copied = own_copy(deep)

    assert copied["a"]["b"] == [1]
    assert copied["a"] is not deep["a"]


def test_what_contains_itself_is_copied():
    """A value that contains itself comes out as one that contains itself, and nothing hangs."""
    value: dict = {"a": [1]}
    value["a"].append(value)

    copied = own_copy(value)

    assert copied is not value
    assert copied["a"][1] is copied


def test_what_cannot_be_copied_is_shared():
    """An object that refuses to be copied is handed on as it is."""

    class Stubborn:
        def __deepcopy__(self, memo):
            raise TypeError("no")

    one = Stubborn()
    assert own_copy({"a": one})["a"] is one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        ([1], [True]),
        ({"a": 0}, {"a": False}),
        ("a", "b"),
        ([], {}),
        ({}, None),
    ],
    ids=repr,
)
def test_values_that_python_calls_equal_can_differ(one, other):
    """`1` and `True` are different arguments for a tool."""
    assert not identical(one, other)


@given(JSON, JSON)
def test_identical_is_equality_of_the_json_text(one, other):
    """Two values are the same if and only if JSON writes them alike, but for the order of keys."""
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert identical(one, other) == same


class TestMessages:
    """The list that copies messages when they are looked at."""

    @pytest.fixture
    def host(self):
        return [
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": "b", "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "c"},
        ]

    def test_it_is_a_list_of_dicts(self, host):
        """It is, prints, compares and iterates as a list of dicts."""
        mine = Messages(host)
        assert isinstance(mine, list)
        assert mine == host
        assert host == mine
        assert list(mine) == host
        assert [type(message) for message in mine] == [dict, dict, dict]
        assert len(mine) == 3
        assert repr(mine) == repr(host)
        assert mine[-1]["role"] == "tool"
        assert mine[1:] == host[1:]
        assert host[0] in mine
        assert mine.index(host[1]) == 1

    @pytest.mark.parametrize(
        "look",
        [
            lambda mine: mine[0],
            lambda mine: next(iter(mine)),
            lambda mine: mine[:1].pop(),
            lambda mine: list(mine)[-3],
            lambda mine: [*mine][-3],
            lambda mine: mine.__add__([])[0],
            lambda mine: operator.add([], mine)[0],
            lambda mine: (mine * 1)[0],
            lambda mine: list(reversed(mine))[-1],
            lambda mine: mine.copy()[0],
            lambda mine: copy.copy(mine)[0],
            lambda mine: copy.deepcopy(mine)[0],
            lambda mine: pickle.loads(pickle.dumps(mine))[0],
            lambda mine: mine.pop(0),
            lambda mine: sorted(mine, key=lambda message: message["role"] != "user")[0],
            lambda mine: mine.sort(key=lambda message: message["role"] != "user") or mine[0],
            lambda mine: next(filter(None, mine)),
            lambda mine: dict(enumerate(mine))[0],
            lambda mine: max(*mine, key=lambda message: message["role"] == "user"),
        ],
    )
    def test_whatever_is_reached_is_a_copy(self, host, look):
        """Whichever way a message is reached, changing it at any depth changes nothing outside."""
        before = copy.deepcopy(host)
        message = look(Messages(host))
        message["content"][0]["text"] = "changed"
        message["new"] = True
        assert host == before

    def test_changes_stay(self, host):
        """Within the list, a message that was changed stays changed."""
        mine = Messages(host)
        mine[0]["content"] = "changed"
        mine.append({"role": "user", "content": "new"})
        mine[-1]["content"] = "newer"
        mine.insert(0, {"role": "system", "content": "s"})
        mine += [{"role": "user", "content": "last"}]
        mine[2:3] = [{"role": "assistant", "content": "other"}]
        del mine[3]
        assert [message["content"] for message in mine] == [
            "s",
            "changed",
            "other",
            "newer",
            "last",
        ]
        assert len(host) == 3

    def test_a_message_put_in_keeps_its_identity(self, host):
        """What a handler appends and changes afterwards is what is in the list."""
        mine = Messages(host)
        added = {"role": "user"}
        mine.append(added)
        added["content"] = "later"
        assert mine[-1] is added

    def test_c_code_sees_the_messages(self, host):
        """Code that reads the list's storage directly finds the messages too."""
        assert json.loads(json.dumps(Messages(host))) == host
        assert list.__getitem__(Messages(host), slice(None)) == host

    def test_unread_messages_are_not_copied(self, host):
        """Looking at one message copies that one."""
        mine = Messages(host)
        assert mine[1]["content"] == "b"
        stored = list.__getitem__(mine, slice(None))
        assert stored[0] is host[0]
        assert stored[2] is host[2]
        assert stored[1] is not host[1]

    def test_a_rewrite_shares_what_was_left_alone(self, host):
        """Rewritten messages share those that the handler did not touch, and own the others."""
        request = LLMRequest(host)
        mine = Messages(request.messages)
        mine[1]["content"] = "changed"

        after = list.__getitem__(request.rewritten(mine).messages, slice(None))

        assert after[0] is host[0]
        assert after[1]["content"] == "changed"
        mine[1]["content"] = "changed again"
        assert after[1]["content"] == "changed"


def test_events_are_frozen_and_do_not_alias():
    """An event owns its contents: what the host or an author does later does not reach it."""
    args = {"env": {"A": "1"}}
    call = ToolCall("terminal", args, "c1")
    args["env"]["A"] = "2"
    assert call.tool_args == {"env": {"A": "1"}}
    lent = call.lend()
    lent.tool_args["env"]["A"] = "3"
    assert call.tool_args == {"env": {"A": "1"}}
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        call.tool_name = "other"


def test_what_a_server_says_of_a_tool_stays_with_the_call():
    """`read_only` is False unless the host says so, and a rewrite keeps it."""
    assert ToolCall("t", {}).read_only is False
    call = ToolCall("t", {"a": 1}, "c1", read_only=True)
    for other in (call, call.lend(), call.rewritten({"a": 2}), pickle.loads(pickle.dumps(call))):
        assert other.read_only is True
    assert call != ToolCall("t", {"a": 1}, "c1")


@pytest.mark.parametrize("args", [None, "", {}], ids=repr)
def test_absent_arguments_are_an_empty_dict(args):
    """A call without arguments has a dict all the same."""
    assert ToolCall("t", args).tool_args == {}


@pytest.mark.parametrize("args", ["{}", [1], 5, '{"a":1}{"a":1}'], ids=repr)
def test_malformed_arguments_are_left_to_the_host(args):
    """What is no dict raises a TypeError before any handler sees it."""
    with pytest.raises(TypeError, match="tool_args must be a dict"):
        ToolCall("t", args)


PARTS = [
    {"type": "image", "url": "i1"},
    {"type": "text", "text": "a"},
    {"type": "image", "url": "i2"},
    {"type": "text", "text": "b"},
]


class TestUserInput:
    """Text and parts of an input stay consistent."""

    def test_a_str_replaces_the_text_and_keeps_the_other_parts(self):
        """The new text stands where the first text stood; other parts keep their order."""
        after = UserInput("a\nb", PARTS).rewritten("new")
        assert after.text == "new"
        assert after.content == [PARTS[0], {"type": "text", "text": "new"}, PARTS[2]]
        assert after.value is after.content

    def test_a_str_for_parts_without_text_comes_first(self):
        """An input of images only gets a text part."""
        after = UserInput("", [PARTS[0]]).rewritten("look")
        assert after.content == [{"type": "text", "text": "look"}, PARTS[0]]

    def test_no_parts_at_all(self):
        """An empty list of parts is an input too, and gets the text as its only part."""
        event = UserInput("", [])
        assert event.value == []
        assert event.rewritten("look").content == [{"type": "text", "text": "look"}]

    def test_a_list_replaces_all(self):
        """The text then is that of the new parts."""
        after = UserInput("a").rewritten([PARTS[0], {"type": "text", "text": "x"}])
        assert after.text == "x"
        assert after.value == [PARTS[0], {"type": "text", "text": "x"}]

    def test_the_text_is_that_of_the_parts(self):
        """Also where parts are of classes that say one thing and hold another."""

        class Part(dict):
            def get(self, key, default=None):
                return "harmless"

        class Parts(list):
            def __iter__(self):
                return iter([{"type": "text", "text": "harmless"}])

        for value in ([Part(type="text", text="held")], Parts([{"type": "text", "text": "held"}])):
            event = UserInput("a").rewritten(value)
            assert event.content == [{"type": "text", "text": event.text}]

    def test_plain_text_stays_plain(self):
        """Without parts, the value is the text, and the command is kept."""
        after = UserInput("a", None, "skill").rewritten("b")
        assert (after.value, after.content, after.command) == ("b", None, "skill")


@pytest.mark.parametrize(
    ("event", "value", "problem"),
    [
        (UserInput("a"), 5, "int"),
        (UserInput("a"), ["x"], r"a list with str at \[0\]"),
        (LLMRequest([]), "x", "str"),
        (LLMRequest([]), [{}, 5], r"a list with int at \[1\]"),
        (ToolCall("t", {}), "ls", "str"),
        (ToolCall("t", {}), [1], "list"),
        (ToolResult("t", {}), {"a": 1}, "dict"),
    ],
    ids=repr,
)
def test_what_cannot_flow_is_named(event, value, problem):
    """An event says what is wrong with a value that it cannot be rewritten to."""
    assert event.problem(value) == problem.replace("\\", "")


def test_scope_knows_what_it_does_not_know():
    """Unknown values read as None and are listed; replacing one makes it known."""
    scope = Scope(session_id="s", model=UNKNOWN, cwd=Path("/x"))
    assert scope.model is None
    assert {"model", "platform"} <= scope.unknown
    assert "session_id" not in scope.unknown
    other = scope.replace(model="m", session_id=UNKNOWN)
    assert other.model == "m"
    assert "model" not in other.unknown
    assert "session_id" in other.unknown
    assert scope.session_id == "s"


def test_scope_refuses_names_that_it_does_not_have():
    """A misspelt name is an error of the host, not an argument that silently never comes."""
    with pytest.raises(TypeError, match="sesion_id"):
        Scope(sesion_id="s")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ('{"output": "", "exit_code": 0, "error": null}', 0),
        (' {"exit_code": -9}\n\n[a note]', -9),
        ('{"output": "{\\"exit_code\\": 0}", "exit_code": 1}', 1),
        ('{"output": "exit_code: 0"}', None),
        ('{"exit_code": true}', None),
        ('{"exit_code": "0"}', None),
        ('[{"exit_code": 0}]', None),
        ("exit_code 0", None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_exit_codes_are_those_that_the_tool_tells(result, code):
    """Not what the program's own output says; no number is no success."""
    assert ToolResult("terminal", {}, result=result).exit_code == code
