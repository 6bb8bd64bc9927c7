"""Random chains against a reference model of a dozen lines."""

from __future__ import annotations

import asyncio
import copy
import itertools
import random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.chains import SCOPE, handler

from hermes_ext import HookResult, ToolCall
from hermes_ext.chain.fold import arun, run
from hermes_ext.chain.manager import HookManager
from hermes_ext.hooks.source import Source

HOOK = "intercept_tool_call"
SEVERITY = ["pass", "rewrite", "confine", "ask", "answer", "block"]

BEHAVIOURS = st.sampled_from(
    [
        "none",
        "pass",
        "rewrite",
        "mutate",
        "confine",
        "ask",
        "answer",
        "block",
        "raise",
        "garbage",
        "meta",
    ]
)
PLAYERS = st.lists(
    st.fixed_dictionaries(
        {
            "does": BEHAVIOURS,
            "priority": st.integers(-2, 2),
            "source": st.sampled_from(list(Source)),
            "guard": st.booleans(),
            "on_error": st.sampled_from(["pass", "block", "ask", None]),
            "observe": st.sampled_from([False, False, False, True]),
            "is_async": st.booleans(),
        }
    ),
    max_size=8,
)


def play(does: str, name: str, args: dict, guard: bool):
    """What a player of this kind answers, given (its own copy of) the args."""
    if does == "rewrite" and not guard:
        return HookResult.rewrite({**args, "by": [*args.get("by", []), name]})
    if does == "mutate":
        args["by"] = "mutated"
        args["deep"]["list"].append("mutated")
    texts = {"ask": HookResult.ask, "block": HookResult.block, "answer": HookResult.answer}
    if does in texts and not (guard and does == "answer"):
        return texts[does](name)
    if does == "confine":
        return HookResult.confine([name], reason=name, metadata={name: "confines"})
    if does == "meta":
        return HookResult.pass_(metadata={name: 1, "last": name})
    if does in ("raise", "garbage") or (guard and does in ("rewrite", "answer")):
        raise ValueError(name)
    return HookResult("pass", "ignored") if does == "pass" else None


def model(players: list[dict], args: dict):
    """The contract in a dozen lines: action, value, called names, metadata, asks, confines."""
    action, value, called, metadata, asks, confines = "pass", None, [], {}, [], []
    rank = lambda p: (p["guard"], p["priority"], p["source"].rank, p["name"])  # noqa: E731
    for player in sorted(players, key=rank):
        called.append(player["name"])
        try:
            result = play(player["does"], player["name"], copy.deepcopy(args), player["guard"])
        except ValueError:
            policy = player["on_error"] or "block"
            result = {"block": HookResult.block, "ask": HookResult.ask}.get(policy, lambda _: None)(
                player["name"]
            )
        if result is None or player["observe"]:
            continue
        metadata |= result.metadata
        args = result.value if result.action == "rewrite" else args
        value = args if "rewrite" in (action, result.action) or value is not None else None
        asks += [player["name"]] if result.action == "ask" else []
        confines += [player["name"]] if result.action == "confine" else []
        action = max(action, result.action.value, key=SEVERITY.index)
        if action in ("answer", "block"):
            break
    return action, value, called, metadata, asks, confines


def build(players: list[dict], called: list[str]) -> HookManager:
    return HookManager([_handler_of(player, called) for player in players])


def _handler_of(player: dict, called: list[str]):
    name, does, guard = player["name"], player["does"], player["guard"]

    def answer(tool_args):
        called.append(name)
        if does == "garbage":
            return {"action": "block"}
        return play(does, name, tool_args, guard)

    async def answer_later(tool_args):
        await asyncio.sleep(0)
        return answer(tool_args)

    return handler(
        answer_later if player["is_async"] else answer,
        extension=name,
        priority=player["priority"],
        source=player["source"],
        guard=guard,
        on_error=player["on_error"],
        observe=player["observe"],
        timeout=0,
    )


def named(players: list[dict]) -> list[dict]:
    return [{**player, "name": f"ext-{place}"} for place, player in enumerate(players)]


ARGS = {"command": "ls", "deep": {"list": [1]}}


def check(players, outcome, called):
    action, value, expected, metadata, asks, confines = model(players, copy.deepcopy(ARGS))
    assert called == expected
    assert outcome.action.value == action
    if action in ("pass", "rewrite", "confine", "ask"):
        assert outcome.final(ARGS) == (ARGS if value is None else value)
    elif action == "answer":
        assert outcome.value in called
    else:
        assert outcome.blocked_by == called[-1]
    assert dict(outcome.metadata) == metadata
    assert [ask.extension for ask in outcome.asks] == asks
    assert [one.extension for one in outcome.confines] == confines
    assert [one.bounds.writable for one in outcome.confines] == [(name,) for name in confines]
    steps = [outcome.steps[one.step] for one in (*outcome.asks, *outcome.confines)]
    assert [step.extension for step in steps] == [*asks, *confines]
    skipped = [step.extension for step in outcome.steps if step.skipped == "ended"]
    assert [step.extension for step in outcome.steps] == called + skipped


@settings(deadline=None)
@given(PLAYERS)
def test_sync_chains_agree_with_the_model(players):
    """Order, chaining, short-circuit, severity, isolation, policy and metadata are the model's."""
    players = named(players)
    called: list[str] = []
    event = ToolCall("terminal", ARGS, "c1")
    outcome = run(build(players, called).chain(HOOK, "terminal"), event, SCOPE)
    check(players, outcome, called)
    assert event.tool_args == ARGS


@settings(deadline=None)
@given(PLAYERS)
def test_async_chains_agree_with_the_model(players):
    """`arun` gives what `run` gives."""
    players = named(players)
    called: list[str] = []
    manager = build(players, called)
    event = ToolCall("terminal", ARGS, "c1")
    outcome = asyncio.run(arun(manager.chain(HOOK, "terminal"), event, SCOPE))
    check(players, outcome, called)


@settings(deadline=None)
@given(PLAYERS, st.randoms(use_true_random=False))
def test_the_order_of_loading_does_not_matter(players, shuffler: random.Random):
    """Any order of handlers gives the same chain."""
    players = named(players)
    shuffled = list(players)
    shuffler.shuffle(shuffled)
    orders = [
        [row.extension for row in build(some, []).order(HOOK)] for some in (players, shuffled)
    ]
    assert orders[0] == orders[1]


@settings(deadline=None)
@given(PLAYERS)
def test_a_chain_can_be_run_again(players):
    """A second run of the same chain is as the first: nothing of a run stays in it."""
    players = [{**player, "on_error": player["on_error"] or "block"} for player in named(players)]
    called: list[str] = []
    chain = build(players, called).chain(HOOK, "terminal")
    event = ToolCall("terminal", ARGS, "c1")
    first = run(chain, event, SCOPE).to_json()
    again = run(chain, event, SCOPE).to_json()
    first.pop("duration_ns")
    again.pop("duration_ns")
    assert first == again


NAMES = st.sampled_from(["ext-0", "ext-1", "ext-2", "ext-3", "ext-4", "absent"])


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-2, 2), st.sets(NAMES, max_size=2), st.sets(NAMES, max_size=2)),
        min_size=1,
        max_size=5,
    )
)
@example(
    # Two wish the same of each other, and beside them two go round.
    [
        (0, set(), set()),
        (0, {"ext-0"}, {"ext-4"}),
        (0, {"ext-3"}, set()),
        (0, {"ext-2"}, set()),
        (0, {"ext-1"}, set()),
    ]
)
def test_wishes_are_kept_or_a_cycle_is_named(wishes):
    """Every `before` and `after` holds in the order, or the error's members really go round."""
    from hermes_ext.exceptions import OrderCycleError

    def passing(tool_name):
        return None

    handlers, edges = [], set()
    for place, (priority, all_before, all_after) in enumerate(wishes):
        name = f"ext-{place}"
        before, after = all_before - {name}, all_after - {name}
        edges |= {(name, other) for other in before} | {(other, name) for other in after}
        handlers.append(
            handler(
                passing,
                extension=name,
                priority=priority,
                before=sorted(before),
                after=sorted(after),
            )
        )
    present = {one.extension for one in handlers}
    edges = {(a, b) for a, b in edges if {a, b} <= present}
    try:
        order = [row.extension for row in HookManager(handlers).order(HOOK)]
    except OrderCycleError as error:
        ring = [*error.members, error.members[0]]
        assert all(pair in edges for pair in itertools.pairwise(ring))
    else:
        assert sorted(order) == sorted(one.extension for one in handlers)
        assert all(order.index(a) < order.index(b) for a, b in edges)
