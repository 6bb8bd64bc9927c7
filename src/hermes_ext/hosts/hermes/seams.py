"""What of Hermes is wrapped: each function once, after its module's own import.

A wrap of the function itself survives `discover_plugins(force=True)`, which forgets every plugin's
hooks in mid-session, and it works the same for all call sites. Each wrap passes straight through
while no extension is on.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, Literal

from attrs import frozen

from hermes_ext._hooks.specs import HookName
from hermes_ext.hosts.hermes import (
    api_store,
    approvals,
    commands,
    inbound_log,
    requests,
    titles,
    tools,
    turns,
)
from hermes_ext.hosts.hermes.after_import import when_imported

logger = logging.getLogger("hermes_ext")

_MARK: Final = "__hermes_ext_seam__"

# In the module: what of it is wrapped. A plugin may have wrapped our wrap since, and hides it.
_DONE: Final = "__hermes_ext_wrapped__"

SeamStatus = Literal["attached", "waiting", "missing"]
Standing = Literal["attached", "waiting", "missing", "bare", "taken"]

_INPUT: Final = (HookName.TRANSFORM_USER_INPUT,)
_REQUEST: Final = (HookName.BEFORE_LLM_CALL,)
_CALL: Final = (HookName.INTERCEPT_TOOL_CALL,)
_RESULT: Final = (HookName.TRANSFORM_TOOL_RESULT,)


@frozen
class Seam:
    """One function of the host that we wrap.

    Attributes:
        module: where it is.
        name: the function, or `Class.method`.
        wrapper: called as `wrapper(original, *args, **kwargs)`.
        needed: whether guards cannot be held without it.
        instead_of: a name in the same module that another Hermes has instead.
        surface: whether its module is one of many ways to talk to the agent, which nothing but a
            person who uses it needs to import.
        hooks: those that do not fire, or are not honoured, without it.
    """

    module: str
    name: str
    wrapper: Callable[..., Any]
    needed: bool = True
    instead_of: str | None = None
    surface: bool = False
    hooks: tuple[HookName, ...] = ()

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


SEAMS: Final = (
    Seam(
        "run_agent",
        "AIAgent.run_conversation",
        turns.run_conversation,
        hooks=_INPUT + _REQUEST + _CALL + _RESULT,
    ),
    Seam("run_agent", "AIAgent.steer", turns.steer, needed=False),
    Seam("run_agent", "AIAgent._run_codex_app_server_turn", turns.codex_turn, needed=False),
    Seam("run_agent", "AIAgent._build_api_kwargs", requests.build_api_kwargs, hooks=_REQUEST),
    Seam("run_agent", "AIAgent._handle_max_iterations", requests.handle_max_iterations),
    Seam(
        "run_agent",
        "AIAgent._drop_thinking_only_and_merge_users",
        requests.last_look_at_messages,
        hooks=_REQUEST,
    ),
    Seam("run_agent", "AIAgent._invoke_tool", tools.invoke_tool, hooks=_CALL),
    Seam(
        "hermes_cli.middleware",
        "run_llm_execution_middleware",
        requests.run_llm_execution,
        hooks=_REQUEST,
    ),
    Seam(
        "hermes_cli.middleware",
        "apply_tool_request_middleware",
        tools.apply_tool_request,
        hooks=_CALL,
    ),
    Seam(
        "hermes_cli.middleware",
        "run_tool_execution_middleware",
        tools.run_tool_execution,
        hooks=_CALL + _RESULT,
    ),
    Seam("hermes_cli.plugins", "resolve_pre_tool_block", tools.pre_tool_block, hooks=_CALL),
    Seam(
        "hermes_cli.plugins",
        "get_pre_tool_call_block_message",
        tools.pre_tool_block,
        instead_of="resolve_pre_tool_block",
        hooks=_CALL,
    ),
    Seam("tools.registry", "ToolRegistry.dispatch", tools.dispatch, hooks=_CALL + _RESULT),
    Seam("tools.tool_search", "dispatch_tool_search", tools.search_catalog, needed=False),
    Seam("tools.tool_search", "dispatch_tool_describe", tools.describe_tool, needed=False),
    Seam("tools.approval", "_await_gateway_decision", approvals.gateway_decision, needed=False),
    Seam("tools.delegate_tool", "_build_child_agent", turns.build_child_agent),
    Seam("gateway.platforms.api_server", "ResponseStore.put", api_store.put, needed=False),
    Seam(
        "gateway.platforms.api_server",
        "APIServerAdapter._build_response_conversation_history",
        api_store.build_history,
        needed=False,
    ),
    Seam(
        "agent.copilot_acp_client",
        "CopilotACPClient._run_prompt",
        turns.copilot_prompt,
        needed=False,
    ),
    Seam("agent.title_generator", "maybe_auto_title", titles.maybe_auto_title, needed=False),
    Seam(
        "hermes_cli.plugins",
        "get_plugin_command_handler",
        commands.command_handler,
        needed=False,
    ),
    Seam("hermes_cli.plugins", "get_plugin_commands", commands.all_commands, needed=False),
    Seam(
        "cli",
        "HermesCLI.process_command",
        commands.in_command_line,
        needed=False,
        surface=True,
    ),
    Seam(
        "gateway.run",
        "GatewayRunner._handle_message",
        commands.in_gateway,
        needed=False,
        surface=True,
    ),
)


def attach() -> None:
    """Wrap everything, now or when its module has been imported. Doing it again changes nothing."""
    for module in dict.fromkeys(seam.module for seam in SEAMS):
        when_imported(module, _attach_module)
    when_imported("tui_gateway.server", commands.in_tui)
    for module in inbound_log.LINES:
        when_imported(module, inbound_log.attach)


def _attach_module(module: ModuleType) -> None:
    for seam in SEAMS:
        if seam.module == module.__name__:
            _wrap(module, seam)


def _wrap(module: ModuleType, seam: Seam) -> None:
    if _has_a_twin(module, seam):
        return
    owner, name = _owner(module, seam)
    # Wherever Python finds it: a class may inherit the function from one of its bases.
    raw = None if owner is None else inspect.getattr_static(owner, name, None)
    if raw is None:
        logger.log(
            logging.WARNING if seam.needed else logging.INFO,
            "this Hermes has no %s, so hermes-ext cannot attach there",
            seam,
        )
        return
    static = isinstance(raw, staticmethod)
    original = raw.__func__ if static else raw
    done: set[str] = module.__dict__.setdefault(_DONE, set())
    if seam.name in done:
        return
    done.add(seam.name)
    wrapped = _wrapped(original, seam)
    setattr(owner, name, staticmethod(wrapped) if static else wrapped)


def _owner(module: ModuleType, seam: Seam) -> tuple[Any, str]:
    owner_name, _, name = seam.name.rpartition(".")
    return (getattr(module, owner_name, None) if owner_name else module), name


def _wrapped(original: Callable[..., Any], seam: Seam) -> Callable[..., Any]:
    wrapper = seam.wrapper

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(call, _MARK, seam.name)
    return call


def seam_report() -> dict[str, SeamStatus]:
    """Each seam's status in this process, by its full name.

    `attached`; `waiting` for its module to be imported; `missing` from a module that is there
    (the other of two names for the same thing is left out).
    """
    report: dict[str, SeamStatus] = {}
    for seam in SEAMS:
        module = sys.modules.get(seam.module)
        if module is None:
            report[str(seam)] = "waiting"
            continue
        if not _has_a_twin(module, seam):
            report[str(seam)] = _status(module, seam)
    return report


def _has_a_twin(module: ModuleType, seam: Seam) -> bool:
    """Whether this Hermes has the function under the other of its two names."""
    owner, name = _owner(module, seam)
    twins = [other for other in SEAMS if other.instead_of == seam.name]
    if seam.instead_of is not None:
        return hasattr(module, seam.instead_of)
    return not hasattr(owner, name) and any(hasattr(module, other.name) for other in twins)


def standings() -> tuple[tuple[Seam, Standing, Any], ...]:
    """Each seam of this process, how it stands, and the function that a caller meets there.

    `attached`, `waiting` and `missing` as in `seam_report`, but `taken` where the package's wrap
    was there and is reached no more, and `bare` where it never was. The function is None where
    there is none, and where it is the package's own.
    """
    return tuple(
        (seam, *_standing(seam))
        for seam in SEAMS
        if seam.module not in sys.modules or not _has_a_twin(sys.modules[seam.module], seam)
    )


def _standing(seam: Seam) -> tuple[Standing, Any]:
    module = sys.modules.get(seam.module)
    if module is None:
        return "waiting", None
    owner, name = _owner(module, seam)
    outermost = getattr(owner, name, None)
    if outermost is None:
        return "missing", None
    if _is_reached(outermost, seam):
        return "attached", None if _is_wrap(outermost) else outermost
    done: set[str] = vars(module).get(_DONE, set())
    return ("taken" if seam.name in done else "bare"), outermost


def _is_wrap(function: Any) -> bool:
    """Whether a function is a wrap of ours, and not one that has copied its attributes."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename == _wrapped.__code__.co_filename


def _is_reached(found: Any, seam: Seam) -> bool:
    # Another plugin may have wrapped what we wrapped: follow its `__wrapped__`.
    while found is not None and getattr(found, _MARK, None) != seam.name:
        found = getattr(found, "__wrapped__", None)
    return found is not None


def _status(module: ModuleType, seam: Seam) -> SeamStatus:
    owner, name = _owner(module, seam)
    return "attached" if _is_reached(getattr(owner, name, None), seam) else "missing"
