"""Beside guard and trace plugins of others: who sees what, and whose verdict is the last."""

from __future__ import annotations

import importlib.util

import pytest
from tests.neighbors.conftest import FENCE, LATITUDE, NEIGHBORS, TENUO, Beside, Session

_MODULES = ("agentsfence", "hermes_tenuo", "latitude_telemetry_hermes")
_ABSENT = [name for name in _MODULES if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.hermes,
    pytest.mark.skipif(
        bool(_ABSENT),
        reason=f"not installed: {', '.join(_ABSENT)}; `nox -s neighbors` installs and runs them",
    ),
]

# Alone with us, in pairs that start together, and all at once.
COMPANIES = [(FENCE,), (TENUO,), (LATITUDE,), (TENUO, LATITUDE), NEIGHBORS]
GUARDS = [(FENCE,), (TENUO,), (TENUO, LATITUDE)]  # whose blocks are their own

in_any_company = pytest.mark.parametrize("names", COMPANIES, ids="+".join)


def verdicts(session: Session, call: str) -> list[str]:
    """What AgentsFence and Tenuo decided about a call, in that order, each verdict once."""
    rows = [*session.fence.get(call, ()), *session.tenuo.get(call, ())]
    return list(dict.fromkeys(row["decision"] for row in rows))


@in_any_company
def test_our_block_stands(beside: Beside, names: tuple[str, ...]) -> None:
    """A guard's block is what the model gets, before and after plugins are discovered again."""
    results = beside(*names).results

    assert "[house] NOT HERE" in results["forbidden"]
    assert "[house] NOT HERE" in results["forbidden-again"]


@in_any_company
def test_our_answer_stands(beside: Beside, names: tuple[str, ...]) -> None:
    """An answer of an extension is the tool's result, whatever another plugin says."""
    assert beside(*names).results["answer"] == "made up"


@in_any_company
def test_input_and_instructions_reach_the_model(beside: Beside, names: tuple[str, ...]) -> None:
    """The model gets the rewritten input and the injected instructions in each request."""
    for request in beside(*names).requests:
        assert "RULE OF THE HOUSE" in request.system
        assert "hunter2" not in str(request.messages)


@in_any_company
def test_every_call_is_evaluated_once(beside: Beside, names: tuple[str, ...]) -> None:
    """A guard is asked once about each call, with the arguments that the tool would get."""
    assert beside(*names).asked == [
        "plain.txt",
        "rewritten.txt",
        "forbidden.txt",
        "write.txt",
        "rediscover.txt",
        "forbidden-again.txt",
        "again.txt",
    ]


@in_any_company
def test_no_other_machine_is_reached(beside: Beside, names: tuple[str, ...]) -> None:
    """The other plugins look up and connect to nothing outside this machine in these tests."""
    assert beside(*names).reached == []


@pytest.mark.parametrize(
    "names", [(FENCE,), (TENUO,), (LATITUDE,), (TENUO, LATITUDE)], ids="+".join
)
def test_what_all_allow_runs(beside: Beside, names: tuple[str, ...]) -> None:
    """A call that nobody objects to runs, and its result is redacted."""
    results = beside(*names).results

    assert "plain [hidden]" in results["plain"]
    assert "rewritten [hidden]" in results["rewrite"]


@pytest.mark.parametrize("names", GUARDS, ids="+".join)
def test_their_block_stands(beside: Beside, names: tuple[str, ...]) -> None:
    """A call that an extension lets pass is refused by theirs, after rediscovery too."""
    session = beside(*names)

    for call in ("write", "write-again"):
        assert verdicts(session, call) == (["BLOCK"] if FENCE in names else ["DENY"])
        assert "write_file" in session.results[call]
        assert "bytes_written" not in session.results[call]


@pytest.mark.parametrize("names", GUARDS, ids="+".join)
def test_they_evaluate_what_runs(beside: Beside, names: tuple[str, ...]) -> None:
    """The policies of the others get the rewritten arguments, not those of the model."""
    session = beside(*names)

    rows = [*session.fence.get("rewrite", ()), *session.tenuo.get("rewrite", ())]
    assert rows
    assert {(row.get("arguments") or row.get("args"))["path"] for row in rows} == {"rewritten.txt"}


def test_fence_does_not_see_what_we_end(beside: Beside) -> None:
    """AgentsFence decides nothing about a call that an extension blocks or answers."""
    session = beside(FENCE)

    assert session.fence.keys() == {"plain", "rewrite", "write", "rediscover", "write-again"}


def test_fence_does_not_find_us_in_the_way(beside: Beside) -> None:
    """AgentsFence, which refuses all calls beside another pre_tool_call hook, lets ours run."""
    assert verdicts(beside(FENCE), "plain") == ["ALLOW"]


def test_fence_refuses_other_company(beside: Beside) -> None:
    """With Tenuo and Latitude on, AgentsFence refuses what reaches it, and names them."""
    session = beside(*NEIGHBORS)

    for call in ("plain", "rewrite", "write"):
        assert "incompatible another pre_tool_call hook" in session.results[call]
        assert "hermes_tenuo" in session.results[call]
        assert "latitude_telemetry_hermes" in session.results[call]


def test_tenuo_records_what_we_end_as_allowed(beside: Beside) -> None:
    """Tenuo's log has ALLOW, post-dispatch, for a call that an extension blocked or answered."""
    session = beside(TENUO)

    for call in ("answer", "forbidden"):
        (row,) = session.tenuo[call]
        assert (row["decision"], row["reason"]) == ("ALLOW", "post-dispatch")


def test_latitude_traces_what_ran(beside: Beside) -> None:
    """Latitude's span of a call has the rewritten arguments and the redacted result."""
    span = beside(LATITUDE).span_of("rewrite")

    assert span is not None
    assert "rewritten.txt" in span["gen_ai.tool.call.arguments"]
    assert "[hidden]" in span["gen_ai.tool.call.result"]
    assert "SECRET" not in span["gen_ai.tool.call.result"]


def test_latitude_has_no_span_for_what_we_end(beside: Beside) -> None:
    """A call that an extension blocked or answered has no span; the next request has its result."""
    session = beside(LATITUDE)

    assert session.span_of("forbidden") is None
    assert session.span_of("answer") is None
    inputs = " ".join(span.get("gen_ai.input.messages", "") for span in session.spans)
    assert "[house] NOT HERE" in inputs
    assert "made up" in inputs


def test_latitude_sees_instructions_and_rewritten_input(beside: Beside) -> None:
    """Latitude's spans have the injected instructions, and the input as it was rewritten."""
    spans = beside(LATITUDE).spans
    requests = [span for span in spans if span["name"] == "llm_request"]

    assert requests
    assert all("RULE OF THE HOUSE" in span["gen_ai.system_instructions"] for span in requests)
    assert "hunter2" not in str(spans)
