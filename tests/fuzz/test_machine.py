"""A runtime under any sequence of what can be done with it, against a small model of it.

`HERMES_EXT_FUZZ_EXAMPLES=2000 pytest tests/fuzz/test_machine.py` runs it for longer, each time with
other sequences.
"""

from __future__ import annotations

import copy
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from attrs import define, field
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.chains import handler

from hermes_ext import HookResult, Runtime, get_turn_state
from hermes_ext._chain.manager import HookManager
from hermes_ext._hooks.results import ALLOWED, VERDICTS, Action, HookName
from hermes_ext._hooks.source import Source
from hermes_ext._turns.approval import Approval, ApprovalRequest
from hermes_ext._turns.state import open_turn_count
from hermes_ext.exceptions import TurnEndedError

CALL: Final = HookName.INTERCEPT_TOOL_CALL
REQUEST: Final = HookName.BEFORE_LLM_CALL
FAILURES: Final = frozenset({"raise", "exit", "garbage", "late"})
DOES: Final = (
    "none", "pass", "meta", "rewrite", "answer", "block", "ask", "inject_system", "inject_user",
    "raise", "exit", "garbage", "late",
)  # fmt: skip
SESSIONS: Final = ("s1", "s2")
TOOLS: Final = ("terminal", "mcp_x")
_LATE: Final = 0.01  # seconds that are given to what never returns

_asked_for = int(os.environ.get("HERMES_EXT_FUZZ_EXAMPLES", "0"))


def bounded(examples: int, steps: int) -> settings:
    """The same sequences in each run, or as many others as the environment asks for."""
    return settings(
        max_examples=_asked_for or examples,
        stateful_step_count=steps,
        derandomize=not _asked_for,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


# -- the model ------------------------------------------------------------------------------------


@define(eq=False)
class Player:
    """A handler: what it is registered with, and what it does each time. failed: in a row."""

    name: str
    hook: HookName
    does: str
    guard: bool
    priority: int
    source: Source
    policy: str | None
    tools: list[str] | None
    is_async: bool
    failed: int = 0

    @property
    def rank(self) -> tuple[Any, ...]:
        return self.guard, self.priority, self.source.rank, self.name

    @property
    def on_error(self) -> str:
        closed = self.guard or self.hook is CALL
        return self.policy or ("block" if closed else "pass")

    def is_for(self, hook: HookName, tool: str) -> bool:
        if hook is not self.hook:
            return False
        return (
            self.tools is None or tool in self.tools or (tool == "mcp_x" and "mcp_*" in self.tools)
        )

    @property
    def fails(self) -> bool:
        if self.does in FAILURES:
            return True
        allowed = VERDICTS[self.hook] if self.guard else ALLOWED[self.hook]
        return Action({"none": "pass", "meta": "pass"}.get(self.does, self.does)) not in allowed


def changed(hook: HookName, value: Any, name: str) -> Any:
    """What a rewriting handler makes of a value."""
    if hook is CALL:
        return {**value, "by": [*value.get("by", []), name]}
    if hook is REQUEST:
        first = {**value[0], "content": f"{value[0]['content']}+{name}"}
        return [first, *value[1:]]
    return f"{value}+{name}"


@define
class Expected:
    """What comes of a chain."""

    action: Action = Action.PASS
    value: Any = None
    by: str | None = None
    metadata: dict[str, Any] = field(factory=dict)
    asks: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    called: tuple[str, ...] = ()

    def raised_to(self, action: Action) -> None:
        if action.severity > self.action.severity:
            self.action = action


def expected(players: list[Player], hook: HookName, tool: str, value: Any) -> Expected:
    """The contract, read by the model. Counts the failures."""
    told = Expected(value=copy.deepcopy(value))
    for player in sorted((one for one in players if one.is_for(hook, tool)), key=lambda p: p.rank):
        if player.failed >= 5 and player.on_error == "pass":
            continue  # suspended
        told.called += (player.name,)
        does = player.does
        player.failed = player.failed + 1 if player.fails else 0
        if player.fails:
            does = {"block": "block", "ask": "ask", "pass": "none"}[player.on_error]
        if does in ("none", "pass"):
            continue
        if does == "meta":
            told.metadata |= {player.name: 1, "last": player.name}
            continue
        told.raised_to(Action(does))
        if does == "rewrite":
            told.value = changed(hook, told.value, player.name)
        elif does == "ask":
            told.asks += (player.name,)
        elif does == "inject_system":
            told.system += (player.name,)
        elif does == "inject_user":
            told.user += (player.name,)
        elif does in ("answer", "block"):
            told.by = player.name
            break
    return told


ANSWERS: Final = ("yes", "no", "garbage", "raise", "message", "nobody")


def settle(told: Expected, answers: list[str]) -> None:
    """What the person's answers make of it: all must say yes."""
    before = Action.REWRITE if any_rewrite(told) else Action.PASS
    for name, answer in zip(told.asks, answers, strict=False):
        if answer != "yes":
            told.action, told.by = Action.BLOCK, name
            return
    told.action = before


def any_rewrite(told: Expected) -> bool:
    return bool(told.value.get("by"))


# -- the real thing -------------------------------------------------------------------------------


@define(eq=False)
class Open:
    """An open turn, and how often each handler was called in it."""

    turn: Any
    counts: dict[str, int]


class RuntimeMachine(RuleBasedStateMachine):
    """Handlers come and go, turns open and close in any order, hooks are called from anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.before = open_turn_count()
        self.players: list[Player] = []
        self.handlers: dict[str, Any] = {}
        self.names = (f"e{number:03}" for number in itertools.count())
        self.turns: list[Open] = []
        self.closed: list[Any] = []
        self.called: list[tuple[str, str]] = []
        self.other_state: list[str] = []
        self.release = threading.Event()
        self.answers: list[str] = []
        self.asked: list[ApprovalRequest] = []
        self.runtime = Runtime([], approver=self.approve)

    def teardown(self) -> None:
        self.release.set()
        for one in self.turns:
            one.turn.close()
        self.runtime.close()
        assert open_turn_count() == self.before

    # -- what handlers and the person do

    def approve(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        answer = self.answers[len(self.asked) - 1]
        if answer == "raise":
            raise RuntimeError("the terminal is gone")
        if answer == "message":
            return Approval(approved=False, message="not today")
        return {"yes": True, "no": False, "garbage": "yes"}[answer]

    def played(self, player: Player) -> Any:
        def plays(value: Any, state: Any, turn_id: str) -> Any:
            self.called.append((turn_id, player.name))
            state.count(player.name)
            if get_turn_state() is not state:
                self.other_state.append(player.name)
            if player.does == "late":
                self.release.wait()
            if player.does == "raise":
                raise ValueError(player.name)
            if player.does == "exit":
                raise SystemExit(player.name)
            return returned(player, value)

        return wanting(player, plays)

    def swap(self) -> None:
        self.runtime.manager = HookManager(list(self.handlers.values()), self.runtime.manager)
        for player in self.players:
            player.failed = 0

    # -- rules

    @rule(
        hook=st.sampled_from([CALL, CALL, *HookName]),
        does=st.sampled_from(DOES),
        guard=st.booleans(),
        priority=st.integers(-1, 1),
        source=st.sampled_from(list(Source)),
        policy=st.sampled_from([None, None, "pass", "block", "ask"]),
        tools=st.sampled_from([None, None, ["terminal"], ["mcp_*"]]),
        is_async=st.sampled_from([False, False, False, True]),
    )
    def register(self, hook: HookName, tools: Any, policy: Any, does: str, **options: Any) -> None:
        if hook not in (CALL, HookName.TRANSFORM_TOOL_RESULT):
            tools = None
        if policy == "ask" and hook is not CALL:
            policy = None
        if does == "late":
            options["is_async"] = False
        player = Player(next(self.names), hook, does, tools=tools, policy=policy, **options)
        self.players.append(player)
        self.handlers[player.name] = handler(
            self.played(player),
            hook,
            extension=player.name,
            source=player.source,
            priority=player.priority,
            guard=player.guard,
            timeout=_LATE if does == "late" else 0,
            **({} if policy is None else {"on_error": policy}),
            **({} if tools is None else {"tools": tools}),
        )
        self.swap()

    @precondition(lambda self: self.players)
    @rule(place=st.integers(0, 99))
    def unregister(self, place: int) -> None:
        player = self.players.pop(place % len(self.players))
        del self.handlers[player.name]
        self.swap()

    @rule(session=st.sampled_from(SESSIONS))
    def open(self, session: str) -> None:
        self.turns.append(Open(self.runtime.turn(session_id=session), {}))

    @precondition(lambda self: self.turns)
    @rule(place=st.integers(0, 99))
    def close(self, place: int) -> None:
        one = self.turns.pop(place % len(self.turns))
        one.turn.close()
        assert dict(one.turn.state) == {}
        self.closed.append(one.turn)

    @precondition(lambda self: self.closed)
    @rule(place=st.integers(0, 99))
    def call_after_the_end(self, place: int) -> None:
        turn = self.closed[place % len(self.closed)]
        with pytest.raises(TurnEndedError):
            turn.intercept_tool_call("terminal", {})
        assert not self.called

    @precondition(lambda self: self.turns)
    @rule(
        place=st.integers(0, 99),
        hook=st.sampled_from([CALL, CALL, *HookName]),
        tool=st.sampled_from(TOOLS),
        answers=st.lists(st.sampled_from(["yes", "yes", *ANSWERS]), min_size=30, max_size=30),
        in_thread=st.booleans(),
    )
    def call(
        self, place: int, hook: HookName, tool: str, answers: list[str], in_thread: bool
    ) -> None:
        one = self.turns[place % len(self.turns)]
        nobody = answers[0] == "nobody"
        self.answers = ["no" if each == "nobody" else each for each in answers]
        self.asked.clear()
        self.runtime.approver = None if nobody else self.approve
        told = expected(self.players, hook, tool, VALUES[hook])
        if told.action is Action.ASK:
            settle(told, ["no"] * 30 if nobody else self.answers)
        if in_thread:
            with ThreadPoolExecutor(1) as pool:
                outcome = pool.submit(self.ask, one, hook, tool).result()
        else:
            outcome = self.ask(one, hook, tool)
        self.compare(one, told, outcome, hook)

    def ask(self, one: Open, hook: HookName, tool: str) -> Any:
        value = copy.deepcopy(VALUES[hook])
        if hook is HookName.TRANSFORM_USER_INPUT:
            outcome = one.turn.transform_user_input(value)
        elif hook is REQUEST:
            outcome = one.turn.before_llm_call(value, "system")
        elif hook is CALL:
            outcome = one.turn.intercept_tool_call(tool, value, tool_call_id="c")
        else:
            outcome = one.turn.transform_tool_result(tool, {"command": "ls"}, value)
        assert value == VALUES[hook]
        return outcome

    def compare(self, one: Open, told: Expected, outcome: Any, hook: HookName) -> None:
        assert [name for _, name in self.called] == list(told.called)
        self.compare_outcome(told, outcome, hook)
        self.counted(one, told.called)
        self.called.clear()
        assert not self.other_state

    def compare_outcome(self, told: Expected, outcome: Any, hook: HookName) -> None:
        assert outcome.action is told.action
        assert outcome.blocked_by == (told.by if told.action is Action.BLOCK else None)
        if told.action is Action.ANSWER:
            assert outcome.value == told.by
        elif told.action is not Action.BLOCK:
            assert outcome.final(VALUES[hook]) == told.value
        assert dict(outcome.metadata) == told.metadata
        assert tuple(ask.extension for ask in outcome.asks) == told.asks
        assert tuple(map(str, outcome.system_injections)) == told.system
        assert tuple(map(str, outcome.user_injections)) == told.user

    def counted(self, one: Open, called: tuple[str, ...]) -> None:
        for name in called:
            one.counts[name] = one.counts.get(name, 0) + 1
        assert dict(one.turn.state) == one.counts

    @precondition(lambda self: len(self.turns) > 1 and not any(may_be_left_out(self.players)))
    @rule(tool=st.sampled_from(TOOLS))
    def call_in_threads_at_once(self, tool: str) -> None:
        """Each turn's calls are its own, whatever the others do."""
        self.runtime.approver = None
        told = expected(self.players, CALL, tool, VALUES[CALL])
        if told.action is Action.ASK:
            settle(told, ["no"] * 30)
        chosen = self.turns[:3]
        ready = threading.Barrier(len(chosen))

        def one_call(one: Open) -> Any:
            ready.wait()
            return self.ask(one, CALL, tool)

        with ThreadPoolExecutor(len(chosen)) as pool:
            outcomes = list(pool.map(one_call, chosen))
        for one, outcome in zip(chosen, outcomes, strict=True):
            self.compare_outcome(told, outcome, CALL)
            mine = [name for turn, name in self.called if turn == one.turn.uid]
            assert mine == list(told.called)
            self.counted(one, told.called)
        self.called.clear()
        assert not self.other_state

    @precondition(lambda self: self.turns)
    @rule(inner=st.sampled_from(SESSIONS))
    def nest(self, inner: str) -> None:
        """A turn in a turn has a state of its own; the outer one is found again behind it."""
        outer = self.turns[-1].turn
        with self.runtime.turn(session_id="outer") as around:
            around.state["mine"] = 1
            with self.runtime.turn(session_id=inner) as within:
                assert get_turn_state() is within.state
                assert dict(within.state) == {}
            assert get_turn_state() is around.state
            assert around.state["mine"] == 1
        assert around.closed
        assert within.closed
        assert not outer.closed


VALUES: Final[dict[HookName, Any]] = {
    HookName.TRANSFORM_USER_INPUT: "hello",
    REQUEST: [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}],
    CALL: {"command": "ls", "deep": {"list": [1]}},
    HookName.TRANSFORM_TOOL_RESULT: "a.py",
}


def may_be_left_out(players: list[Player]) -> Any:
    """Handlers whose failures are counted: which call comes first would then matter."""
    return (player.fails and player.on_error == "pass" for player in players)


def returned(player: Player, value: Any) -> Any:
    """What a handler of this kind returns; what it was given is its own, so it breaks it."""
    does, name = player.does, player.name
    if does in ("none", "late"):
        _break(value)
        return None
    if does == "garbage":
        return {"action": "block"}
    if does == "meta":
        return HookResult.pass_(metadata={name: 1, "last": name})
    if does == "pass":
        return HookResult.pass_()
    if does == "rewrite":
        result = HookResult.rewrite(changed(player.hook, value, name))
        _break(value)
        return result
    return HookResult(does, name)


def _break(value: Any) -> None:
    if isinstance(value, dict):
        value.setdefault("deep", {}).setdefault("list", []).append("broken")
        value["new"] = "broken"
    elif isinstance(value, list):
        value[0] = {"role": "user", "content": "broken"}


def wanting(player: Player, plays: Any) -> Any:
    """A handler, awaited or not."""

    def at_once(event: Any, state: Any, turn_id: Any) -> Any:
        return plays(event.value, state, turn_id)

    async def later(event: Any, state: Any, turn_id: Any) -> Any:
        return plays(event.value, state, turn_id)

    return later if player.is_async else at_once


TestRuntime = RuntimeMachine.TestCase
TestRuntime.settings = bounded(40, 30)
