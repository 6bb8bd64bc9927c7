"""`HookResult`: what cannot be right cannot be made."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import attrs
import pytest

from hermes_ext import Action, HookResult
from hermes_ext.exceptions import HermesExtError, ResultError
from hermes_ext.hooks.bounds import Bounds
from hermes_ext.hooks.table import TABLE, HookName


class Text(str):
    """A str subclass, as a template engine or an enum would return."""


@pytest.mark.parametrize(
    ("made", "action", "value"),
    [
        (HookResult.pass_(), Action.PASS, None),
        (HookResult.rewrite({"a": 1}), Action.REWRITE, {"a": 1}),
        (HookResult.rewrite("text"), Action.REWRITE, "text"),
        (HookResult.rewrite([{"role": "user"}]), Action.REWRITE, [{"role": "user"}]),
        (HookResult.block("no"), Action.BLOCK, "no"),
        (HookResult.answer("42"), Action.ANSWER, "42"),
        (HookResult.answer(""), Action.ANSWER, ""),
        (HookResult.ask("sure?"), Action.ASK, "sure?"),
        (HookResult.confine(reason="r"), Action.CONFINE, Bounds((), "host", "r")),
        (
            HookResult.confine(["a", Path("b")], "none", reason="r"),
            Action.CONFINE,
            Bounds(("a", "b"), "none", "r"),
        ),
        (
            HookResult("confine", {"writable": ("a",), "reason": "r"}),
            Action.CONFINE,
            Bounds(["a"], "host", "r"),
        ),
        (HookResult("confine", Bounds(reason="r")), Action.CONFINE, Bounds(reason="r")),
        (HookResult.inject_system("plan"), Action.INJECT_SYSTEM, "plan"),
        (HookResult.inject_user("plan"), Action.INJECT_USER, "plan"),
        (HookResult("block", "no"), Action.BLOCK, "no"),
        (HookResult(Action.BLOCK, "no"), Action.BLOCK, "no"),
        (HookResult("pass"), Action.PASS, None),
    ],
    ids=str,
)
def test_constructors_make_what_they_say(made, action, value):
    """Each constructor, and the action by name or enum, gives that action with that value."""
    assert made.action is action
    assert made.value == value
    assert made.metadata == {}


def test_pass_ignores_a_value():
    """The value of a pass is dropped: it could only be taken for a rewrite."""
    assert HookResult("pass", {"command": "evil"}).value is None


@pytest.mark.parametrize(
    ("action", "meant"),
    [("deny", "block"), ("BLOCK", "block"), ("Rewrite", "rewrite"), ("injectsystem", "inject_s")],
)
def test_an_unknown_action_names_the_one_that_was_meant(action, meant):
    """A misspelt action raises where it is made, with a did-you-mean."""
    with pytest.raises(ResultError, match=rf"{action}.*Did you mean '{meant}"):
        HookResult(action, "text")


@pytest.mark.parametrize("action", [None, True, 1, "", b"block", ...], ids=repr)
def test_an_action_of_a_wrong_type_raises(action):
    """What is no action at all raises, and the message lists the actions."""
    with pytest.raises(ResultError, match="inject_system"):
        HookResult(action)


@pytest.mark.parametrize("action", ["block", "ask", "inject_system", "inject_user"])
@pytest.mark.parametrize("value", [None, "", "  \n", 5, b"x", ["x"], {"x": 1}], ids=repr)
def test_a_text_must_be_a_text(action, value):
    """Blocks, asks and injections need a text that is not blank."""
    told = "the text is empty" if isinstance(value, str) else "got "
    with pytest.raises(ResultError, match=rf"'{action}' needs a text, {told}"):
        HookResult(action, value)


@pytest.mark.parametrize("value", [None, 5, {"ok": True}, ["x"]], ids=repr)
def test_an_answer_must_be_a_str(value):
    """An answer is what the user or the model reads; structured data is dumped by the author."""
    with pytest.raises(ResultError, match=r"json\.dumps"):
        HookResult.answer(value)


@pytest.mark.parametrize("value", [None, 123, b"x", True, ("a",), {1: "a"}], ids=repr)
def test_a_rewrite_must_be_something_that_flows(value):
    """A rewrite is a str, a list, or a dict with str keys."""
    with pytest.raises(ResultError, match="rewrite"):
        HookResult.rewrite(value)


@pytest.mark.parametrize("metadata", ["x", [("a", 1)], {1: "a"}, 5], ids=repr)
def test_metadata_must_be_a_mapping_of_names(metadata):
    """Metadata has str keys, and is copied from what the author passed."""
    with pytest.raises(ResultError, match="metadata"):
        HookResult.pass_(metadata=metadata)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HookResult("block", "no", keep="turn"),
        lambda: HookResult.inject_user("x", keep="forever"),
        lambda: HookResult("block", "no", key="k"),
        lambda: HookResult.ask("sure?", key=""),
        lambda: HookResult.ask("sure?", key=5),
    ],
    ids=["keep-of-block", "keep-unknown", "key-of-block", "key-blank", "key-number"],
)
def test_options_belong_to_their_actions(make):
    """`keep=` is for injections and `key=` for asks."""
    with pytest.raises(ResultError):
        make()


def test_options_are_kept():
    """An injection may stay for the turn, an ask may say what a yes covers."""
    assert HookResult.inject_system("x", keep="turn").keep == "turn"
    assert HookResult.ask("sure?", "git-push").key == "git-push"


def test_subclasses_of_str_become_plain():
    """A str subclass is accepted and does not travel on."""
    assert type(HookResult.rewrite(Text("a")).value) is str
    assert type(HookResult.block(Text("a")).value) is str


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: HookResult.confine("plans", reason="r"),
            r"got one str\. Write writable=\['plans'\]",
        ),
        (lambda: HookResult.confine(Path("a"), reason="r"), r"got one PosixPath\. Write writable"),
        (lambda: HookResult.confine(None, reason="r"), r"got None\. Write writable=\['plans/'\]"),
        (lambda: HookResult.confine({"a"}, reason="r"), r"list of paths, got set"),
        (lambda: HookResult.confine({"a": 1}, reason="r"), r"list of paths, got dict"),
        (lambda: HookResult.confine(["a", 1], reason="r"), r"writable\[1\].*needs a path, got int"),
        (lambda: HookResult.confine([b"a"], reason="r"), r"writable\[0\].*got bytes"),
        (lambda: HookResult.confine(["a", ""], reason="r"), r"writable\[1\].*empty path.*'\.'"),
        (lambda: HookResult.confine([" "], reason="r"), r"writable\[0\].*empty path"),
        (lambda: HookResult.confine(["a\0"], reason="r"), r"writable\[0\].*is not a path"),
        (lambda: HookResult.confine(network="off", reason="r"), r"'off'\. Write network='host'"),
        (lambda: HookResult.confine(network=None, reason="r"), r"is None\. Write network='host'"),
        (lambda: HookResult.confine(reason=" \n"), r"reason is empty\. Write reason="),
        (lambda: HookResult.confine(reason=None), r"got None\. Write reason="),
        (lambda: HookResult.confine(reason="r", or_exact=1), r"True or False, got int"),
        (lambda: HookResult.confine(reason="r", advice=None), r"needs a text, got None"),
        (lambda: HookResult.confine(writable=5), r"missing.*'reason'\. Write .*reason='no plan"),
        (
            lambda: HookResult.confine(writeable=["a"], newtork="none", reason="r"),
            r"'writeable'\. Did you mean \"writable\"\?",
        ),
        (lambda: HookResult.confine([], "host", "r"), r"reason= has to be named\. Write .*reason="),
        (lambda: HookResult("confine"), r"needs Bounds or a dict, got None\. Write HookResult"),
        (lambda: HookResult("confine", "no plan"), r"needs Bounds or a dict, got str"),
        (lambda: HookResult("confine", {}), r"reason is empty"),
        (lambda: HookResult("confine", {"writeable": []}), r'Did you mean "writable"\?'),
        (lambda: HookResult("confine", {"x": [], "reason": "r"}), r"It takes writable, network"),
    ],
)
def test_bounds_that_cannot_be_right(make, told):
    """Each mistake raises where the author made it, and says what to write."""
    with pytest.raises(ResultError, match=told) as raised:
        make()
    assert raised.traceback[1].path == Path(__file__)


def test_bounds_are_plain():
    """Texts of other classes do not travel on, nor does a surrogate in the reason."""
    bounds = HookResult.confine([Text("a")], Text("none"), reason=Text("r\ud800")).value
    assert [type(each) for each in (*bounds.writable, bounds.network, bounds.reason)] == [str] * 3
    assert bounds.reason == "r\ufffd"
    assert HookResult.confine(reason="r", advice=" do this\n").value.advice == "do this"
    mine = ["a"]
    result = HookResult.confine(mine, reason="r")
    mine.append("b")
    assert result.value.writable == ("a",)


def test_a_result_is_frozen():
    """No attribute of a result can be set."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        HookResult.block("no").value = "yes"


def test_metadata_is_not_the_authors_own_dict():
    """What an author does to the dict later does not reach the result."""
    mine = {"a": 1}
    result = HookResult.block("no", metadata=mine)
    mine["a"] = 2
    assert result.metadata == {"a": 1}


def test_results_can_be_compared_copied_and_pickled():
    """Test suites of authors do all three."""
    result = HookResult.ask("sure?", "k", metadata={"a": [1]})
    assert result == HookResult.ask("sure?", "k", metadata={"a": [1]})
    assert copy.deepcopy(result) == result
    assert pickle.loads(pickle.dumps(result)) == result


def test_errors_are_value_errors_too():
    """`except ValueError` and `except HermesExtError` both catch a wrong result."""
    with pytest.raises(ValueError, match="deny") as caught:
        HookResult("deny")
    assert isinstance(caught.value, HermesExtError)


def test_severity_is_fixed():
    """block > answer > ask > confine > rewrite > injections > pass."""
    ranked = sorted(Action, key=lambda action: -action.severity)
    assert [action.value for action in ranked] == [
        "block",
        "answer",
        "ask",
        "confine",
        "rewrite",
        "inject_system",
        "inject_user",
        "pass",
    ]


def test_guards_only_judge():
    """A guard of any hook may pass or block, and ask about tool calls or confine them."""
    for hook in HookName:
        judging = {Action.PASS, Action.BLOCK}
        if hook is HookName.INTERCEPT_TOOL_CALL:
            judging |= {Action.ASK, Action.CONFINE}
        assert TABLE[hook].verdicts == judging
        assert TABLE[hook].verdicts <= TABLE[hook].actions


def test_bounds_as_plain_data():
    """What may change is told; that exact calls may run only where it is so."""
    made = HookResult("confine", {"reason": "r", "or_exact": True, "advice": "do this"}).value
    assert made.to_json() == {"writable": [], "network": "host", "or_exact": True}
    assert Bounds(["a"], "none", "r").to_json() == {"writable": ["a"], "network": "none"}
