"""A scripted language model on 127.0.0.1, for tests that run the real Hermes Agent.

`ScriptedModel` answers from a script of `Reply` values, streamed or not, and records every request.
It speaks four provider forms: OpenAI chat completions (`POST /v1/chat/completions`) and Responses
(`POST /v1/responses`), Anthropic messages (`POST /v1/messages`), and Bedrock converse
(`POST /model/MODEL/converse` and `/converse-stream`). Standard library only.

    with ScriptedModel([Reply(tool_calls=(ToolUse("todo", {}),)), Reply("done")]) as model:
        ...  # point Hermes at model.base_url
    assert len(model.main_requests) == 2

Requests that Hermes makes beside the conversation (session titles, compression, approval,
background review) consume no step of the script; they get `auxiliary` and are recorded with
`is_main=False`.
"""

from hermes_ext.testing.model_server.script import (
    MAX_DELAY_SECONDS,
    MODEL_NAME,
    Form,
    Json,
    ModelRequest,
    Reply,
    ToolUse,
    Usage,
    is_main_request,
)
from hermes_ext.testing.model_server.server import EXHAUSTED_TEXT, Script, ScriptedModel

__all__ = [
    "EXHAUSTED_TEXT",
    "MAX_DELAY_SECONDS",
    "MODEL_NAME",
    "Form",
    "Json",
    "ModelRequest",
    "Reply",
    "Script",
    "ScriptedModel",
    "ToolUse",
    "Usage",
    "is_main_request",
]
