"""Hermes's plugin host (`plugins.isolation: host`), which the package cannot work from.

There, plugins run in a process beside Hermes. A wrap would sit in a copy of Hermes that runs no
agent, so every request to the model and every tool call is refused instead, by what crosses to
Hermes: a middleware and a hook. Raising would not do: Hermes drops what a failed plugin registered
and goes on without it.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, Final

_REASON: Final = (
    "[hermes-ext] No extension is in force: this Hermes runs plugins in a separate process"
    " (plugins.isolation: host), where hermes-ext cannot work. The agent's requests and tool calls"
    " are refused. Set plugins.isolation to in_process in config.yaml, or run"
    " `hermes plugins disable hermes-ext`."
)


def is_remote(ctx: Any) -> bool:
    """Whether this process is a plugin host, and not the Hermes that the context belongs to.

    A Hermes that a plugin starts from there inherits the variable, and has a context of its own.
    """
    in_host = os.environ.get("HERMES_PLUGIN_HOST_PROCESS") == "1"
    return in_host and type(ctx).__module__ != "hermes_cli.plugins"


def refuse(ctx: Any) -> None:
    """Refuse every request and tool call, with the reason; `/extensions` gives it too."""
    ctx.register_hook("pre_tool_call", _refuse_call)
    ctx.register_middleware("llm_execution", _answer)
    ctx.register_command("extensions", handler=_explain, description="Why no extension is in force")


def _refuse_call(**call: Any) -> dict[str, str]:
    return {"action": "block", "message": _REASON}


def _answer(request: Any, next_call: Any, **context: Any) -> Any:
    from hermes_ext.hosts.hermes.adapter.requests.forms import form_of

    answer = form_of(context.get("api_mode")).answer(_REASON, str(context.get("model") or ""))
    return _crossing(answer)


def _explain(raw_args: str) -> str:
    return _REASON


class _Crossing(SimpleNamespace):
    """Attributes that arrive in Hermes as attributes: it takes this method for pydantic's."""

    def model_dump(self) -> dict[str, Any]:
        return vars(self)


def _crossing(value: Any) -> Any:
    if isinstance(value, SimpleNamespace):
        return _Crossing(**{name: _crossing(each) for name, each in vars(value).items()})
    return [_crossing(each) for each in value] if isinstance(value, list) else value
