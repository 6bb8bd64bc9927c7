"""The provider forms as such: what counts as being in a request, and what is put back."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ext.hosts.hermes.adapter.requests.forms import form_of, is_known, keep_cache_key

CALL = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
REQUESTS: dict[str, dict[str, Any]] = {
    "chat_completions": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "RULE and NOTE"},
        ]
    },
    "anthropic_messages": {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "t"}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "RULE and NOTE"}
                ],
            },
        ],
    },
    "codex_responses": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "go"},
            {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "RULE and NOTE"},
        ],
    },
    "bedrock_converse": {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "go"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "t"}}]},
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c", "content": [{"text": "RULE and NOTE"}]}}
                ],
            },
        ],
    },
}
every_form = pytest.mark.parametrize("mode", REQUESTS)


@every_form
def test_put_back(mode: str) -> None:
    """Texts that only a tool's result has are missing; put back they are there, once."""
    form, request = form_of(mode), REQUESTS[mode]
    before = repr(request)
    assert form.missing(request, ["RULE"], ["NOTE"]) == (["RULE"], ["NOTE"])
    restored = form.restore(request, ["RULE"], ["NOTE"])
    assert restored is not None
    assert form.missing(restored, ["RULE"], ["NOTE"]) == ([], [])
    assert repr(restored).count("NOTE") == 2
    assert repr(request) == before


@every_form
def test_spaces_at_the_ends(mode: str) -> None:
    """A text is there though the host has taken the spaces off its ends."""
    form = form_of(mode)
    restored = form.restore(REQUESTS[mode], ["RULE"], ["NOTE"])
    assert restored is not None
    assert form.missing(restored, ["RULE\n"], [" NOTE "]) == ([], [])


@every_form
def test_empty_request(mode: str) -> None:
    """A request that another plugin has emptied lacks everything."""
    assert form_of(mode).missing({}, ["RULE"], ["NOTE"]) == (["RULE"], ["NOTE"])


def test_converse_roles() -> None:
    """What is put back never makes two messages of one role in a row."""
    form = form_of("bedrock_converse")
    last = {"role": "assistant", "content": [{"text": "Hm."}]}
    request = {"messages": [*REQUESTS["bedrock_converse"]["messages"], last]}
    restored = form.restore(request, [], ["NOTE"])
    assert restored is not None
    assert [one["role"] for one in restored["messages"]] == ["user", "assistant"] * 2 + ["user"]


def test_unknown_form() -> None:
    """In a form that is not known nothing is put in; what is found anywhere is there."""
    assert not is_known("novel")
    assert all(map(is_known, [None, "", *REQUESTS]))
    form = form_of("novel")
    request = {"parts": ["RULE"], "tools": ["NOTE"]}
    assert form.missing(request, ["RULE"], ["NOTE"]) == ([], ["NOTE"])
    assert form.restore(request, [], ["NOTE"]) is None


def test_tools_of_the_provider() -> None:
    """They are told from functions, and taken out with all that is said of tools."""
    form = form_of("codex_responses")
    function = {"type": "function", "name": "jot"}
    request = {"tools": [function, {"type": "web_search"}], "tool_choice": "auto", "input": []}
    assert form.run_elsewhere(request) == ["web_search"]
    assert form.without_tools(request, ["web_search"]) == {**request, "tools": [function]}
    assert form.without_tools({**request, "tools": [{"type": "web_search"}]}, ["web_search"]) == {
        "input": []
    }
    assert form.run_elsewhere({"input": []}) == []


@pytest.mark.parametrize("key", ["a key of somebody's own", None])
def test_a_key_that_is_not_made_of_the_prompt(key: str | None) -> None:
    """Another key to cache by stays as it is."""
    pytest.importorskip("agent.transports.codex")
    request = {"instructions": "Be brief.\n\nRULE", "prompt_cache_key": key}
    keep_cache_key(request, ["RULE"])
    assert request["prompt_cache_key"] == key
