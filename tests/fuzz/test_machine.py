"""A runtime under any sequence of what can be done with it, against a small model of it.

`HERMES_EXT_FUZZ_EXAMPLES=2000 pytest tests/fuzz/test_machine.py` runs it for longer, each time with
other sequences.
"""

from __future__ import annotations

import copy
import itertools
import logging
import math
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import define, field
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.chains import handler
from tests.projects import Place

from hermes_ext import HookResult, Runtime, get_turn_state
from hermes_ext.chain.manager import HookManager
from hermes_ext.exceptions import TurnEndedError
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import TABLE, Action, HookName
from hermes_ext.loading.switches import UnknownExtensionError, disable, enable
from hermes_ext.rules import Rulebook, Rules
from hermes_ext.settings.config import read_config
from hermes_ext.turns.approval import Approval, ApprovalRequest
from hermes_ext.turns.state import open_turn_count

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
        # Making a failing sequence shorter takes minutes: that is for the long run.
        phases=list(Phase) if _asked_for else [Phase.generate],
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
        row = TABLE[self.hook]
        allowed = row.verdicts if self.guard else row.actions
        return Action({"none": "pass", "meta": "pass"}.get(self.does, self.does)) not in allowed


_CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "hook": (CALL, CALL, CALL, *HookName),
    "does": ("rewrite", "meta", "rewrite", "ask", "none", "rewrite", "ask", *DOES),
    "guard": (False, False, True),
    "priority": (0, -1, 1),
    "source": tuple(Source),
    "policy": (None, "pass", "ask", None, "pass", "block"),
    "tools": (None, None, ["terminal"], ["mcp_*"]),
    "is_async": (False, False, False, True),
}
_KINDS: Final = math.prod(map(len, _CHOICES.values()))


def player_of(number: int, name: str) -> Player:
    """One number for all that is chosen: drawing each for itself leaves little for the calls."""
    chosen: dict[str, Any] = {}
    for key, values in _CHOICES.items():
        number, place = divmod(number, len(values))
        chosen[key] = values[place]
    if chosen["hook"] not in (CALL, HookName.TRANSFORM_TOOL_RESULT):
        chosen["tools"] = None
    if chosen["policy"] == "ask" and chosen["hook"] is not CALL:
        chosen["policy"] = None
    if chosen["does"] == "late":
        chosen["is_async"] = False
    return Player(name, **chosen)


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
        if player.does != "late":  # it may have begun, or waited for a thread
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
        logging.getLogger("hermes_ext").setLevel(logging.CRITICAL)  # thousands of failures
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
        logging.getLogger("hermes_ext").setLevel(logging.NOTSET)
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
            if player.does == "late":
                self.release.wait()
                return None
            self.called.append((turn_id, player.name))
            state.count(player.name)
            if get_turn_state() is not state:
                self.other_state.append(player.name)
            if player.does == "raise":
                raise ValueError(player.name)
            if player.does == "exit":
                raise SystemExit(player.name)
            return returned(player, value)

        return wanting(player, plays)

    def swap(self) -> None:
        manager = HookManager(list(self.handlers.values()), self.runtime.manager)
        rules = Rules(manager)
        self.runtime._book = Rulebook(rules)
        for one in self.turns:  # which keep what they began with; so each meets more handlers
            one.turn.rules = rules
        for player in self.players:
            player.failed = 0

    # -- rules

    @initialize(numbers=st.lists(st.integers(0, _KINDS - 1), min_size=3, max_size=6))
    def begin(self, numbers: list[int]) -> None:
        self.register(numbers)
        self.open("s1")

    @rule(numbers=st.lists(st.integers(0, _KINDS - 1), min_size=1, max_size=4))
    def register(self, numbers: list[int]) -> None:
        for number in numbers:
            player = player_of(number, next(self.names))
            self.players.append(player)
            self.handlers[player.name] = handler(
                self.played(player),
                player.hook,
                extension=player.name,
                source=player.source,
                priority=player.priority,
                guard=player.guard,
                timeout=_LATE if player.does == "late" else 0,
                **({} if player.policy is None else {"on_error": player.policy}),
                **({} if player.tools is None else {"tools": player.tools}),
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
        answers=st.lists(st.sampled_from(ANSWERS), max_size=2),
        in_thread=st.booleans(),
        times=st.sampled_from([1, 1, 1, 3, 7]),
    )
    def call(self, times: int, **how: Any) -> None:
        """Several times, because what fails five times in a row is left out."""
        for _ in range(times):
            self.call_once(**how)

    def call_once(
        self, place: int, hook: HookName, tool: str, answers: list[str], in_thread: bool
    ) -> None:
        one = self.turns[place % len(self.turns)]
        nobody = answers[:1] == ["nobody"]
        self.answers = ["no" if each == "nobody" else each for each in answers] + ["yes"] * 99
        self.asked.clear()
        self.runtime.approver = None if nobody else self.approve
        told = expected(self.players, hook, tool, VALUES[hook])
        if told.action is Action.ASK:
            settle(told, ["no"] if nobody else self.answers)
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
            settle(told, ["no"])
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
        result = HookResult.rewrite(changed(player.hook, copy.deepcopy(value), name))
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
TestRuntime.settings = bounded(120, 25)


# -- the disk -------------------------------------------------------------------------------------

_EXTENSION: Final = """\
from hermes_ext import HookResult, register_hook

@register_hook("transform_user_input")
def at_input(user_message):
    return HookResult.rewrite(user_message + "+{tag}")

@register_hook("intercept_tool_call")
def at_call(tool_args):
    return HookResult.rewrite({{**tool_args, "by": [*tool_args.get("by", []), "{tag}"]}})
"""
_CONFIG: Final = """\
# mine
model: {default: m}
extensions:
  log: off  # quiet
  reload: false  # by its rule only
"""
_HOOKS: Final = (HookName.TRANSFORM_USER_INPUT, CALL)
_GLOBAL: Final = ("alpha", "beta")
_OF_PROJECT: Final = {"p": "gamma", "q": "alpha"}
"""The extension that each project has. A trusted one replaces a global one of its name."""


class DiskMachine(RuleBasedStateMachine):
    """The user enables, disables, trusts, changes files and starts anew, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.before = open_turn_count()
        self.folder = tempfile.TemporaryDirectory()
        base = Path(self.folder.name).resolve()
        self.places = {name: Place(base, name, base / "home") for name in (*_OF_PROJECT, "none")}
        self.home = base / "home"
        (self.home / "config.yaml").write_text(_CONFIG)
        for name in _GLOBAL:
            self.places["p"].add(name, _EXTENSION.format(tag=name), to_home=True)
        self.version = dict.fromkeys(_OF_PROJECT, 0)
        self.trusted: dict[str, int | None] = dict.fromkeys(_OF_PROJECT)
        for project in _OF_PROJECT:
            self.change(project)
        self.disabled: set[str] = set()
        self.runtime: Any = None
        self.start()

    def teardown(self) -> None:
        self.runtime.close()
        self.folder.cleanup()
        assert open_turn_count() == self.before

    @rule()
    def start(self) -> None:
        """What the configuration says now is in force from here on."""
        if self.runtime is not None:
            self.runtime.close()
        self.runtime = Runtime.from_config(home=self.home, cwd=self.places["none"].root)
        self.off = set(self.disabled)
        self.loaded: dict[str, int | None] = dict.fromkeys(_OF_PROJECT)

    @rule(project=st.sampled_from(sorted(_OF_PROJECT)))
    def change(self, project: str) -> None:
        """Somebody changes a file of the project."""
        self.version[project] += 1
        name = _OF_PROJECT[project]
        source = _EXTENSION.format(tag=f"{name}{self.version[project]}")
        self.places[project].add(name, source)

    @rule(project=st.sampled_from(sorted(_OF_PROJECT)))
    def trust(self, project: str) -> None:
        self.places[project].trust()
        self.trusted[project] = self.version[project]

    @rule(project=st.sampled_from(sorted(_OF_PROJECT)))
    def untrust(self, project: str) -> None:
        if self.trusted[project] is not None:
            self.places[project].untrust()
            self.trusted[project] = None

    @rule(
        name=st.sampled_from(["alpha", "beta", "gamma", "Beta", "delta"]),
        hook=st.sampled_from([None, None, *_HOOKS]),
        on=st.booleans(),
    )
    def switch(self, name: str, hook: HookName | None, on: bool) -> None:
        """`enable` and `disable`, of one that is there or not."""
        file = self.home / "config.yaml"
        before = file.read_text()
        cwd = self.places["p"].root
        try:
            switched = (enable if on else disable)(self.home, cwd, name, hook=hook)
        except UnknownExtensionError:
            assert name in ("delta", "gamma")
            assert file.read_text() == before
            return
        assert name != "delta"
        entry = f"{name.lower()}:{hook}" if hook else name.lower()
        assert switched.changed is (on is (entry in self.disabled))
        (self.disabled.discard if on else self.disabled.add)(entry)
        config = read_config(self.home)
        assert {*map(str.lower, config.disabled)} == {n for n in self.disabled if ":" not in n}
        assert not config.problems
        assert file.read_text().startswith(_CONFIG[: _CONFIG.index("extensions")])
        assert "# quiet" in file.read_text()

    @rule(where=st.sampled_from([*_OF_PROJECT, "none"]), in_thread=st.booleans())
    def turn(self, where: str, in_thread: bool) -> None:
        """A turn in a directory has what is in force there, in its order, and nothing else."""
        if in_thread:
            with ThreadPoolExecutor(1) as pool:
                text, args = pool.submit(self.played, where).result()
        else:
            text, args = self.played(where)
        expected_tags = [self.tags(where, hook) for hook in _HOOKS]
        assert text == "+".join(["hi", *expected_tags[0]])
        assert args.get("by", []) == expected_tags[1]

    def played(self, where: str) -> tuple[str, dict[str, Any]]:
        with self.runtime.turn(session_id="s", cwd=self.places[where].root) as turn:
            text = turn.transform_user_input("hi").final("hi")
            args: dict[str, Any] = {"path": "a.py"}
            outcome = turn.intercept_tool_call("read_file", args)
            assert not outcome.blocked, outcome.message
            return text, outcome.final(args)

    def tags(self, where: str, hook: HookName) -> list[str]:
        names = {name: name for name in _GLOBAL}
        if where in _OF_PROJECT:
            self.settle(where)
            if self.loaded[where] is not None and _OF_PROJECT[where] not in self.off:
                own = _OF_PROJECT[where]
                names.pop(own, None)
                names[own] = f"{own}{self.loaded[where]}"  # behind the global ones
        off = {each.partition(":")[0] for each in self.off if each.endswith(f":{hook}")}
        return [tag for name, tag in names.items() if name not in self.off | off]

    def settle(self, project: str) -> None:
        """What of a project is in force once a turn begins in it."""
        if self.trusted[project] == self.version[project]:
            self.loaded[project] = self.version[project]
        elif self.trusted[project] != self.loaded[project]:
            self.loaded[project] = None  # the user trusts another state of it, or none


TestDisk = DiskMachine.TestCase
TestDisk.settings = bounded(12, 20)
