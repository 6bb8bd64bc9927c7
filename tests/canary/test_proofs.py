"""What is made of a turn: each thing that can go wrong, in the proof of its own hook alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from attrs import evolve

from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.wraps.seams import CALLED
from hermes_ext.hosts.hermes.canary import marks
from hermes_ext.hosts.hermes.canary.proofs import Proof, Status, judge
from hermes_ext.hosts.hermes.canary.turn import Player, Seen
from hermes_ext.testing.model_server import ModelRequest, ToolUse

READ, TODO, WRITE, RUN = "read_file", "todo", "write_file", "terminal"
IDS = {READ: "canary-read", TODO: "canary-todo", WRITE: "canary-write", RUN: "canary-confined"}
GOOD = {
    READ: f"1|{marks.GIVEN}{marks.SEEN}",
    TODO: f'{{"content": "{marks.GIVEN}{marks.SEEN}"}}',
    WRITE: f'{{"error": "[canary] {marks.REFUSAL}"}}',
    RUN: f'{{"output": "{marks.HELD}{marks.SEEN}"}}',
}


def request(
    results: Mapping[str, str], *, user: str = marks.REWRITTEN, system: str = marks.NOTE
) -> ModelRequest:
    """One that tells the model these results."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": user}]
    for call, text in results.items():
        messages.append({"role": "tool", "tool_call_id": IDS[call], "content": text})
    return ModelRequest(
        "/v1/chat/completions",
        {"messages": messages},
        "chat",
        tuple(messages),
        f"You are an agent.\n\n{system}",
        tuple({"function": {"name": call}} for call in GOOD),
        True,
        True,
    )


def healthy(
    results: Mapping[str, str] = GOOD, user: str = marks.REWRITTEN, system: str = marks.NOTE
) -> Seen:
    """A turn of five requests, each with one more result."""
    told = list(results.items())
    requests = tuple(request(dict(told[:n]), user=user, system=system) for n in range(5))
    fired = Counter(
        [
            ("transform_user_input", "the input"),
            *(("before_llm_call", f"request {n}") for n in range(1, 6)),
            *(("intercept_tool_call", f"{call} ({IDS[call]})") for call in GOOD),
            *(("transform_tool_result", f"{call} ({IDS[call]})") for call in (READ, TODO, RUN)),
        ]
    )
    return Seen(fired, requests, made(GOOD), False, (), (), None)


def made(names: Iterable[str]) -> tuple[ToolUse, ...]:
    """The model's calls."""
    return tuple(ToolUse(name, {}, IDS[name]) for name in names)


def more(seen: Seen, hook: str, event: str, by: int) -> Seen:
    """The same with one event told so many times more."""
    return evolve(seen, fired=Counter(seen.fired) + Counter({(hook, event): by}))


def less(seen: Seen, hook: str, event: str | None = None) -> Seen:
    """The same without a hook, or without one of its events."""
    kept = {
        key: times
        for key, times in seen.fired.items()
        if key[0] != hook or event not in (None, key[1])
    }
    return evolve(seen, fired=kept)


def faults(seen: Seen) -> dict[str, tuple[Status, str]]:
    """What is wrong, by hook."""
    proofs = judge("chat", seen)
    assert [proof.hook for proof in proofs] == list(CALLED)
    return {str(p.hook): (p.status, str(p.detail)) for p in proofs if p.failed}


def test_nothing_is_wrong() -> None:
    """The turn that the others change is a good one."""
    assert faults(healthy()) == {}


@pytest.mark.parametrize(
    ("hook", "event", "count"),
    [
        ("transform_user_input", "the input", 3),
        ("before_llm_call", "request 2", 2),
        ("intercept_tool_call", "todo (canary-todo)", 2),
        ("transform_tool_result", "read_file (canary-read)", 2),
    ],
)
def test_it_fires_more_than_once(hook: str, event: str, count: int) -> None:
    """Once too often for one event is told with the event, however right the rest is."""
    told = faults(more(healthy(), hook, event, count - 1))
    assert told == {hook: (Status.REPEATED, f"it fired {count} times for {event}")}


@pytest.mark.parametrize(
    ("hook", "event"),
    [
        ("before_llm_call", "request 5"),
        ("intercept_tool_call", "write_file (canary-write)"),
        ("transform_tool_result", "todo (canary-todo)"),
    ],
)
def test_it_misses_one_event(hook: str, event: str) -> None:
    """That it fired for the others does not make it good."""
    told = faults(less(healthy(), hook, event))
    assert told == {hook: (Status.NOT_REACHED, f"it did not fire for {event}")}


@pytest.mark.parametrize("hook", list(CALLED))
def test_it_never_fires(hook: HookName) -> None:
    """A hook without any record is not reached."""
    assert faults(less(healthy(), hook)) == {hook: (Status.NOT_REACHED, "it did not fire")}


@pytest.mark.parametrize(
    ("seen", "hook", "words"),
    [
        (healthy(user=marks.TYPED), "transform_user_input", "what was typed"),
        (healthy(user="something"), "transform_user_input", "did not see"),
        (healthy(system=""), "before_llm_call", "0 times"),
        (healthy(system=marks.NOTE * 2), "before_llm_call", "2 times"),
        (evolve(healthy(), written=True), "intercept_tool_call", "although it was blocked"),
        (
            healthy({**GOOD, READ: f"{marks.ASKED}{marks.SEEN}"}),
            "intercept_tool_call",
            "with what the model asked",
        ),
        (
            healthy({**GOOD, TODO: f"{marks.GIVEN}{marks.RAW}"}),
            "transform_tool_result",
            "as the tool gave it",
        ),
    ],
)
def test_it_is_not_honoured(seen: Seen, hook: str, words: str) -> None:
    """It fired, and the model or the disk says something else."""
    ((found, (status, detail)),) = faults(seen).items()
    assert (found, status) == (hook, Status.NOT_HONOURED)
    assert words in detail


def test_another_plugin_refuses_the_call() -> None:
    """What the model saw instead is told."""
    told = faults(healthy({**GOOD, READ: '{"error": "no reading on Sundays"}'}))
    assert set(told) == {"intercept_tool_call", "transform_tool_result"}
    for _, detail in told.values():
        assert "no reading on Sundays" in detail


def test_a_turn_that_fails() -> None:
    """Why the turn failed is the reason of all that was not reached."""
    failure = "Hermes ended with exit code 1"
    nothing = Seen({}, (), (), False, (), (), failure)
    assert faults(nothing) == {str(hook): (Status.NOT_REACHED, failure) for hook in CALLED}
    late = evolve(healthy(), failure=failure)
    assert faults(late) == {str(hook): (Status.NOT_HONOURED, failure) for hook in CALLED}


@pytest.mark.parametrize(
    ("missing", "hook"),
    [
        ({WRITE}, "intercept_tool_call"),
        ({READ, TODO, RUN}, "transform_tool_result"),
    ],
)
def test_tools_that_are_not_offered(missing: set[str], hook: str) -> None:
    """Where nothing could be blocked, or had a result, nothing is proven."""
    results = {call: text for call, text in GOOD.items() if call not in missing}
    told = faults(evolve(healthy(results), made=made(results)))
    assert hook in told
    assert "Hermes offers the model" in told[hook][1]


def test_the_model_calls_what_it_is_offered(tmp_path: Any) -> None:
    """One call for each request, none twice, none of a tool that is not there."""
    player = Player(tmp_path)
    offered = request({})
    offered = ModelRequest(
        offered.path,
        offered.body,
        offered.form,
        offered.messages,
        offered.system,
        ({"function": {"name": "write_file"}}, {"function": {"name": "read_file"}}),
        True,
        True,
    )
    (first,) = player(offered).tool_calls
    (again,) = player(offered).tool_calls
    assert first == again
    assert player.made == [first]
    assert first.name == "read_file"


def test_suspects_are_those_of_the_hook() -> None:
    """Only what the hook needs and what does not stand as it should; the worst comes first."""

    def row(seam: str, status: str, hooks: list[str], **whose: str) -> dict[str, Any]:
        return {
            "seam": seam,
            "status": status,
            "hooks": hooks,
            "plugin": None,
            "place": None,
            "told": f"told of {seam}",
            **whose,
        }

    hook = "before_llm_call"
    seams = (
        row("a.behind", "attached", [hook], plugin="Outer", place="outer, line 3"),
        row("a.fine", "attached", [hook]),
        row("a.later", "waiting", [hook]),
        row("a.gone", "missing", [hook]),
        row("a.other", "taken", ["transform_user_input"]),
        row("a.bare", "bare", [hook]),
        row("a.odd", "unfit", [hook]),
        row("a.own", "taken", [hook]),
        row("a.mine", "taken", [hook], place="thing, line 9"),
    )
    proof: Proof = judge("chat", evolve(less(healthy(), hook), seams=seams))[1]
    assert [str(suspect) for suspect in proof.suspects] == [
        "told of a.own",
        "told of a.mine",
        "told of a.gone",
        "told of a.odd",
        "told of a.bare",
        "told of a.behind",
    ]
    assert all(each.suspects == () for each in judge("chat", evolve(healthy(), seams=seams)))


def test_a_confined_command() -> None:
    """That it wrote is a fault, and that it did not run is one as well."""
    escaped = faults(evolve(healthy(), escaped=True))
    assert escaped == {
        "intercept_tool_call": (
            Status.NOT_HONOURED,
            "a command wrote a file although it was confined",
        )
    }
    told = faults(healthy({**GOOD, RUN: f'{{"error": "no bash{marks.SEEN}"}}'}))
    assert list(told) == ["intercept_tool_call"]
    assert "a confined command did not run" in told["intercept_tool_call"][1]
