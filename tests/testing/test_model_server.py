"""The scripted model, each form read by the client that its provider gives out."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import boto3
import openai
import pytest
from botocore.config import Config
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from hermes_ext.testing.model_server import (
    EXHAUSTED_TEXT,
    Form,
    ModelRequest,
    Reply,
    ScriptedModel,
    ToolUse,
    Usage,
)
from hermes_ext.testing.model_server.converse import frame

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FORMS: list[Form] = ["chat", "responses", "anthropic", "converse"]
_REFUSED = ("anthropic", True)
LONG = "A text of more than one piece, with ✓ and 漢字.\nAnd a second line."


@dataclass
class Told:
    """What a client made of an answer."""

    text: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    usage: tuple[int, int] | None = None
    stopped: str | None = None


@dataclass(frozen=True)
class Failed:
    """What a client made of an error."""

    status: int
    message: str
    code: str | None = None


def _args(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class Client:
    """A provider's own client, asking one question."""

    def __init__(self, model: ScriptedModel, form: Form, stream: bool) -> None:
        self.stream = stream
        self._ask: Callable[[], Told] = getattr(self, f"_{form}")
        self._model = model

    def ask(self) -> Told | Failed:
        try:
            return self._ask()
        except (openai.APIStatusError, anthropic.APIStatusError) as error:
            return Failed(error.status_code, str(error))
        except ClientError as error:
            told = error.response
            code, message = told["Error"]["Code"], told["Error"]["Message"]
            return Failed(told["ResponseMetadata"]["HTTPStatusCode"], message, code)

    def _chat(self) -> Told:
        client = openai.OpenAI(base_url=self._model.base_url, api_key="k", max_retries=0)
        function = {"name": "weather", "description": "Tell.", "parameters": SCHEMA}
        messages: Any = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Rome?"},
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            {"role": "user", "content": "And Oslo?"},
        ]
        tools: Any = [{"type": "function", "function": function}]
        given: Any = {"model": "m", "messages": messages, "tools": tools}
        with client:
            if not self.stream:
                answer = client.chat.completions.create(**given)
                (choice,) = answer.choices
                calls = choice.message.tool_calls or []
                told = [(c.id, c.function.name, _args(c.function.arguments)) for c in calls]
                usage = answer.usage
                counts = usage and (usage.prompt_tokens, usage.completion_tokens)
                return Told(choice.message.content or "", told, counts, choice.finish_reason)
            with client.chat.completions.stream(
                **given, stream_options={"include_usage": True}
            ) as stream:
                final: Any = stream.get_final_completion()
            (choice,) = final.choices
            calls = choice.message.tool_calls or []
            told = [(c.id, c.function.name, _args(c.function.arguments)) for c in calls]
            usage = final.usage
            counts = usage and (usage.prompt_tokens, usage.completion_tokens)
            return Told(choice.message.content or "", told, counts, choice.finish_reason)

    def _responses(self) -> Told:
        client = openai.OpenAI(base_url=self._model.base_url, api_key="k", max_retries=0)
        given: Any = {
            "model": "m",
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Rome?"}]},
                {"role": "assistant", "content": "Let me see."},
                {
                    "type": "function_call",
                    "call_id": "c1",
                    "name": "weather",
                    "arguments": '{"city": "Rome"}',
                },
                {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
                {"role": "user", "content": "And Oslo?"},
            ],
            "tools": [
                {
                    "type": "function",
                    "name": "weather",
                    "description": "Tell.",
                    "parameters": SCHEMA,
                    "strict": False,
                }
            ],
        }
        with client:
            if self.stream:
                with client.responses.stream(**given) as stream:
                    answer: Any = stream.get_final_response()
            else:
                answer = client.responses.create(**given)
        calls = [i for i in answer.output if i.type == "function_call"]
        told = [(c.call_id, c.name, _args(c.arguments)) for c in calls]
        usage = answer.usage
        counts = usage and (usage.input_tokens, usage.output_tokens)
        return Told(answer.output_text, told, counts, answer.status)

    def _anthropic(self) -> Told:
        client = anthropic.Anthropic(base_url=self._model.root_url, api_key="k", max_retries=0)
        use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}
        given: Any = {
            "model": "m",
            "max_tokens": 9,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": "Rome?"},
                {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, use]},
                {"role": "user", "content": [result, {"type": "text", "text": "And Oslo?"}]},
            ],
            "tools": [{"name": "weather", "description": "Tell.", "input_schema": SCHEMA}],
        }
        with client:
            if self.stream:
                with client.messages.stream(**given) as stream:
                    answer: Any = stream.get_final_message()
            else:
                answer = client.messages.create(**given)
        text = "".join(b.text for b in answer.content if b.type == "text")
        calls = [(b.id, b.name, b.input) for b in answer.content if b.type == "tool_use"]
        counts = (answer.usage.input_tokens, answer.usage.output_tokens)
        return Told(text, calls, counts, answer.stop_reason)

    def _converse(self) -> Told:
        client = _bedrock(self._model.root_url)
        use = {"toolUseId": "c1", "name": "weather", "input": {"city": "Rome"}}
        result = {"toolUseId": "c1", "content": [{"text": "sunny"}]}
        spec = {"name": "weather", "description": "Tell.", "inputSchema": {"json": SCHEMA}}
        given: Any = {
            "modelId": "vendor.model-v1:0",
            "system": [{"text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"text": "Rome?"}]},
                {"role": "assistant", "content": [{"text": "Let me see."}, {"toolUse": use}]},
                {"role": "user", "content": [{"toolResult": result}, {"text": "And Oslo?"}]},
            ],
            "toolConfig": {"tools": [{"toolSpec": spec}]},
        }
        if self.stream:
            return _of_events(client.converse_stream(**given)["stream"])
        answer = client.converse(**given)
        content = answer["output"]["message"]["content"]
        text = "".join(block.get("text", "") for block in content)
        uses = [block["toolUse"] for block in content if "toolUse" in block]
        calls = [(use["toolUseId"], use["name"], use["input"]) for use in uses]
        return Told(text, calls, _counts(answer), answer["stopReason"])


@functools.cache
def _bedrock(url: str) -> Any:
    """A client costs a quarter of a second."""
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )


def _of_events(stream: Any) -> Told:
    told, texts = Told(), []
    for event in stream:
        ((kind, value),) = event.items()
        if kind == "contentBlockStart":
            use = value["start"]["toolUse"]
            told.calls.append((use["toolUseId"], use["name"], ""))
        elif kind == "contentBlockDelta" and "text" in value["delta"]:
            texts.append(value["delta"]["text"])
        elif kind == "contentBlockDelta":
            call_id, name, so_far = told.calls[-1]
            told.calls[-1] = (call_id, name, so_far + value["delta"]["toolUse"]["input"])
        elif kind == "messageStop":
            told.stopped = value["stopReason"]
        elif kind == "metadata":
            told.usage = _counts(value)
    told.text = "".join(texts)
    told.calls = [(call_id, name, _args(text)) for call_id, name, text in told.calls]
    return told


def _counts(answer: Any) -> tuple[int, int] | None:
    usage = answer.get("usage")
    return usage and (usage["inputTokens"], usage["outputTokens"])


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[ScriptedModel, list[Reply]]]:
    """One server for all: its replies are put into the list."""
    replies: list[Reply] = []

    def reply(request: ModelRequest) -> Reply:
        return replies.pop(0)

    with ScriptedModel(reply) as model:
        yield model, replies
        _bedrock(model.root_url).close()


@pytest.fixture
def asked(
    scripted: tuple[ScriptedModel, list[Reply]], form: Form, stream: bool
) -> Callable[[Reply], tuple[Told | Failed, ModelRequest]]:
    """Asks in a form; returns what the client understood and what the server recorded."""
    model, replies = scripted

    def ask(reply: Reply) -> tuple[Told | Failed, ModelRequest]:
        replies[:] = [reply]
        told = Client(model, form, stream).ask()
        return told, model.requests[-1]

    return ask


every_form = pytest.mark.parametrize("form", FORMS)
streamed_or_not = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@every_form
@streamed_or_not
def test_text(asked: Any, form: Form, stream: bool) -> None:
    """A text arrives as it is in the script, with its usage; an empty one as empty."""
    told, _ = asked(Reply(LONG, usage=Usage(7, 3)))
    assert (told.text, told.calls, told.usage) == (LONG, [], (7, 3))
    ended = {"chat": "stop", "responses": "completed"}
    assert told.stopped == ended.get(form, "end_turn")
    told, _ = asked(Reply(""))
    assert (told.text, told.calls) == ("", [])


@every_form
@streamed_or_not
def test_tool_calls(asked: Any, form: Form, stream: bool) -> None:
    """Parallel calls arrive in order, each with its own arguments and the id of the script."""
    odd = "an id: é/|+" if form != "converse" else "an-id_2"
    calls = (
        ToolUse("weather", {"city": "Rome", "why": LONG}, "same"),
        ToolUse("weather", {"city": "Oslo"}, "same"),
        ToolUse("weather", {}, odd),
        ToolUse("weather", {"city": None}),
    )
    told, _ = asked(Reply("Two.", calls))
    assert told.text == "Two."
    ids = [call_id for call_id, _, _ in told.calls]
    assert ids[:3] == ["same", "same", odd]
    assert ids[3].startswith("call_")
    expected = [{"city": "Rome", "why": LONG}, {"city": "Oslo"}, {}, {"city": None}]
    assert [args for _, _, args in told.calls] == expected
    ended = {"chat": "tool_calls", "responses": "completed"}
    assert told.stopped == ended.get(form, "tool_use")


@every_form
@streamed_or_not
def test_empty_id(asked: Any, form: Form, stream: bool) -> None:
    """An empty id is sent as an empty id."""
    told, _ = asked(Reply(tool_calls=(ToolUse("weather", {}, ""),)))
    assert told.calls == [("", "weather", {})]
    assert told.text == ""


@pytest.mark.parametrize(
    ("form", "stream"),
    # Anthropic's client breaks off such a stream.
    [(form, stream) for form in FORMS for stream in (True, False) if (form, stream) != _REFUSED],
)
def test_malformed_arguments(asked: Any, form: Form, stream: bool) -> None:
    """Arguments that are no JSON arrive as they stand."""
    told, _ = asked(Reply(tool_calls=(ToolUse("weather", '{"city": '),)))
    assert [args for _, _, args in told.calls] == ['{"city": ']


@every_form
@streamed_or_not
@pytest.mark.parametrize("status", [400, 429, 500])
def test_errors(asked: Any, form: Form, stream: bool, status: int) -> None:
    """An error has its status and its message; one of Bedrock the name that belongs to it."""
    told, _ = asked(Reply(status=status, error="not today"))
    assert told.status == status
    assert "not today" in told.message
    codes = {400: "ValidationException", 429: "ThrottlingException"}
    expected = codes.get(status, "InternalServerException") if form == "converse" else None
    assert told.code == expected


@every_form
@streamed_or_not
def test_no_usage(asked: Any, form: Form, stream: bool) -> None:
    """A reply without usage has none, or zeros where the form must have it."""
    told, _ = asked(Reply("x", usage=None))
    assert told.usage == ((0, 0) if form == "anthropic" else None)


@every_form
@streamed_or_not
def test_what_was_asked(asked: Any, form: Form, stream: bool) -> None:
    """A request is told in the terms of chat completions whatever its form."""
    _, request = asked(Reply("x"))
    assert (request.form, request.stream, request.is_main) == (form, stream, True)
    assert request.system == "Be brief."
    assert request.tool_names == ("weather",)
    (tool,) = request.tools
    assert tool["function"]["parameters"] == SCHEMA
    roles = [message["role"] for message in request.messages]
    assert roles == ["user", "assistant", "tool", "user"]
    user, assistant, _, _ = request.messages
    assert (user["content"], assistant["content"]) == ("Rome?", "Let me see.")
    (call,) = assistant["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("c1", "weather")
    assert json.loads(call["function"]["arguments"]) == {"city": "Rome"}
    assert request.tool_results == (("c1", "sunny"),)
    assert request.last_user == "And Oslo?"
    assert request.contains("And Oslo?")


def test_end_of_the_script() -> None:
    """The end of a script is told as an answer."""
    with ScriptedModel([]) as model:
        for form in FORMS[:-1]:
            told = Client(model, form, stream=False).ask()
            assert isinstance(told, Told)
            assert told.text == EXHAUSTED_TEXT
        assert model.exhausted == len(FORMS) - 1
        assert model.other_paths == []


@given(
    kind=st.text(min_size=1, max_size=20),
    value=st.dictionaries(st.text(), st.text() | st.integers() | st.none()),
)
def test_frames(kind: str, value: dict[str, Any]) -> None:
    """AWS's own decoder reads two frames in a row, and checks their sums."""
    buffer = EventStreamBuffer()
    buffer.add_data(frame(kind, value) + frame("second", {}))
    first, second = buffer
    assert first.headers[":event-type"] == kind
    assert json.loads(first.payload) == value
    assert second.headers[":event-type"] == "second"


def test_needs_nothing_but_python() -> None:
    """Importing the server imports no client of a provider."""
    program = "import sys, hermes_ext.testing; print(*{m.split('.')[0] for m in sys.modules})"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True
    )
    loaded = set(run.stdout.split())
    assert loaded.isdisjoint({"boto3", "botocore", "openai", "anthropic", "httpx", "urllib3"})
