"""What of Hermes is wrapped, and why: one row for each function.

A wrap of the function itself survives `discover_plugins(force=True)`, which forgets every plugin's
hooks in mid-session, and it works the same for all call sites. Where a Hermes publishes a way that
holds as well, `unless` names what shows that it does, and nothing is wrapped. Each wrap passes
straight through while no extension is on. `attaching` does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hermes_ext._values import frozen
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.gate import starting, tools
from hermes_ext.hosts.hermes.adapter.person import approvals, commands, host_questions
from hermes_ext.hosts.hermes.adapter.requests import requests
from hermes_ext.hosts.hermes.adapter.turns import api_store, silence, titles, turns

_INPUT: Final = (HookName.TRANSFORM_USER_INPUT,)
_REQUEST: Final = (HookName.BEFORE_LLM_CALL,)
_CALL: Final = (HookName.INTERCEPT_TOOL_CALL,)
_RESULT: Final = (HookName.TRANSFORM_TOOL_RESULT,)

# In a Hermes that has it, plugins' `pre_tool_call` hooks run inside of the step that is the gate.
_HOOKS_INSIDE: Final = "hermes_cli.plugins:_dispatch_pre_tool_call_hooks"


@frozen
class Seam:
    """One function of the host that is wrapped.

    Attributes:
        module: where it is.
        name: the function, or `Class.method`; the class may inherit it.
        wrapper: called as `wrapper(original, *args, **kwargs)`.
        purpose: what it is wrapped for, as the docs say it.
        why: why nothing that Hermes publishes serves instead.
        rule: whether a rule is weaker without it; what is else is for convenience.
        takes: its leading parameters, after `self`, where the wrapper relies on them.
        by_name: whether the wrapper looks for those by name, however they are passed.
        unless: `module:name` of what another Hermes has instead; nothing is wrapped there.
        newer: whether only a newer Hermes has it, or needs it, so that no other one lacks it.
        surface: whether its module is one of many ways to talk to the agent, which nothing but a
            person who uses it needs to import.
        hooks: those that do not fire, or are not honored, without it; others are no worse off.
        confines: whether it is for calls that the kernel confines. The wrapper is called in those
            only, and without the wrap, where it is not `newer`, no call can be confined.
    """

    module: str
    name: str
    wrapper: Callable[..., Any]
    purpose: str = ""
    why: str = ""
    rule: bool = True
    takes: tuple[str, ...] = ()
    by_name: bool = False
    unless: str | None = None
    newer: bool = False
    surface: bool = False
    hooks: tuple[HookName, ...] = ()
    confines: bool = False

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def needed(self) -> bool:
        """Whether a hook cannot be held without it."""
        return bool(self.hooks)


_NO_INPUT_HOOK: Final = "no hook may change what the user said"
_LAST: Final = "plugins' middleware runs inside of each other; only this is inside of all of them"
_SUMMARY: Final = "no middleware is around this request"
_NOT_HERMES: Final = "no hook is called before another program is handed the turn"
_NO_START: Final = "no hook is called where a process is started"

SEAMS: Final = (
    Seam(
        "run_agent",
        "AIAgent.run_conversation",
        turns.run_conversation,
        "the turn, and the input",
        _NO_INPUT_HOOK,
        takes=("user_message",),
        by_name=True,
        hooks=_INPUT + _REQUEST + _CALL + _RESULT,
    ),
    Seam("run_agent", "AIAgent.steer", turns.steer, "text for a running turn", _NO_INPUT_HOOK),
    Seam(
        "run_agent",
        "AIAgent.redirect",
        turns.steer,
        "text that turns a running turn around",
        _NO_INPUT_HOOK,
        newer=True,
    ),
    Seam(
        "run_agent",
        "AIAgent._run_codex_app_server_turn",
        turns.codex_turn,
        "a turn whose tools nobody can check is refused",
        _NOT_HERMES,
    ),
    Seam(
        "agent.copilot_acp_client",
        "CopilotACPClient._run_prompt",
        turns.copilot_prompt,
        "a program that runs its own tools is refused while a guard is on",
        _NOT_HERMES,
    ),
    Seam(
        "run_agent",
        "AIAgent._build_api_kwargs",
        requests.build_api_kwargs,
        "requests, whatever the provider",
        "`llm_request` middleware gets each provider's own form, and not every request",
        takes=("api_messages",),
        hooks=_REQUEST,
    ),
    Seam(
        "run_agent",
        "AIAgent._handle_max_iterations",
        requests.handle_max_iterations,
        "the summary after the iteration limit",
        _SUMMARY,
        takes=("messages",),
        hooks=_REQUEST,
    ),
    Seam(
        "run_agent",
        "AIAgent._drop_thinking_only_and_merge_users",
        requests.last_look_at_messages,
        "the messages of that summary, in any provider's form",
        _SUMMARY,
        hooks=_REQUEST,
    ),
    Seam(
        "run_agent",
        "AIAgent._has_content_after_think_block",
        silence.has_content,
        "an answer without text is not taken for a model that failed",
        "no hook is asked whether an answer is complete",
        takes=("content",),
        rule=False,
    ),
    Seam(
        "hermes_cli.middleware",
        "run_llm_execution_middleware",
        requests.run_llm_execution,
        "what was injected is still there; answers without the model",
        _LAST,
        takes=("request", "next_call"),
        hooks=_REQUEST,
    ),
    Seam(
        "hermes_cli.middleware",
        "apply_tool_request_middleware",
        tools.apply_tool_request,
        "the verdict on a tool call",
        unless=_HOOKS_INSIDE,
    ),
    Seam(
        "hermes_cli.plugins",
        "resolve_pre_tool_block",
        tools.pre_tool_block,
        "the block that observers see",
        unless=_HOOKS_INSIDE,
        newer=True,
    ),
    Seam(
        "hermes_cli.plugins",
        "get_pre_tool_call_block_message",
        tools.pre_tool_block,
        "the block that observers see, in 0.17",
        unless="hermes_cli.plugins:resolve_pre_tool_block",
    ),
    Seam(
        "hermes_cli.plugins",
        "_dispatch_pre_tool_call_hooks",
        tools.pre_tool_hooks,
        "arguments that a plugin's `modify` changes after the gate are checked again",
        "a plugin's own hook does not see what the plugins after it change",
        newer=True,
    ),
    Seam(
        "hermes_cli.middleware",
        "run_tool_execution_middleware",
        tools.run_tool_execution,
        "the last gate",
        _LAST,
        takes=("tool_name", "args", "next_call"),
        hooks=_CALL + _RESULT,
    ),
    Seam(
        "tools.registry",
        "ToolRegistry.dispatch",
        tools.dispatch,
        "the same gate for calls that come another way",
        "a plugin's direct dispatch goes past every hook and middleware",
        takes=("name", "args"),
        hooks=_CALL + _RESULT,
    ),
    Seam(
        "run_agent",
        "AIAgent._invoke_tool",
        tools.invoke_tool,
        "which of two ways a call takes",
        rule=False,
        unless=_HOOKS_INSIDE,
    ),
    Seam(
        "tools.tool_search",
        "dispatch_tool_search",
        tools.search_catalog,
        "a tool that looks other tools up, outside of every middleware",
        unless=_HOOKS_INSIDE,
    ),
    Seam(
        "tools.tool_search",
        "dispatch_tool_describe",
        tools.describe_tool,
        "the same",
        unless=_HOOKS_INSIDE,
    ),
    Seam(
        "tools.environments.base",
        "BaseEnvironment.execute",
        starting.execute,
        "a confined command runs on no other machine",
        "a session keeps what runs its commands, whatever the setting says since",
        confines=True,
    ),
    Seam(
        "tools.environments.managed_modal",
        "ManagedModalEnvironment.execute",
        starting.execute,
        "the same, where a command is sent to a service",
        "it does not run the base class's",
        newer=True,
        confines=True,
    ),
    Seam(
        "tools.environments.local",
        "LocalEnvironment.init_session",
        starting.of_its_own,
        "the login shell's variables are read unconfined",
        _NO_START,
        confines=True,
    ),
    Seam(
        "tools.environments.local",
        "LocalEnvironment._wrap_command",
        starting.wrap_command,
        "the private folder of a confined command; what it exports stays its own",
        _NO_START,
        takes=("command", "cwd"),
        confines=True,
    ),
    Seam(
        "tools.environments.local",
        "LocalEnvironment._run_bash",
        starting.run_bash,
        "a command that cannot be confined is not started, and not tried again",
        _NO_START,
        confines=True,
    ),
    Seam(
        "tools.process_registry",
        "ProcessRegistry.spawn_local",
        starting.spawn_local,
        "which processes in the background were started confined",
        _NO_START,
        takes=("command",),
        confines=True,
    ),
    Seam(
        "tools.process_registry",
        "ProcessRegistry.adopt_local",
        starting.adopt_local,
        "the same, where a command goes on in the background",
        _NO_START,
        newer=True,
        confines=True,
    ),
    Seam(
        "tools.process_registry",
        "_systemd_run_user_scope_available",
        starting.no_scope,
        "a confined process is started without systemd, which it does not reach",
        _NO_START,
        newer=True,
        confines=True,
    ),
    Seam(
        "ptyprocess",
        "PtyProcess.spawn",
        starting.spawn_in_terminal,
        "a confined process in a pseudo terminal",
        "it starts its process past `subprocess`",
        takes=("argv", "cwd", "env"),
        newer=True,
        confines=True,
    ),
    Seam(
        "tools.checkpoint_manager",
        "CheckpointManager.ensure_checkpoint",
        starting.of_its_own,
        "what Hermes keeps of a project is written unconfined",
        _NO_START,
        newer=True,
        confines=True,
    ),
    Seam(
        "tools.checkpoint_manager",
        "_run_git",
        starting.checkpoint,
        "what git starts for a repository that a confined command has left changes nothing",
        _NO_START,
        takes=("args", "store"),
        newer=True,
    ),
    Seam(
        "tools.code_kernel",
        "execute_in_session_kernel",
        starting.run_cell,
        "a Python that stays is confined as the call is that it runs",
        _NO_START,
        newer=True,
        confines=True,
    ),
    Seam(
        "tools.approval",
        "_await_gateway_decision",
        approvals.gateway_decision,
        "an answer from a chat that Hermes does not offer is a no, to our own questions; a person "
        "is asked once about a command that Hermes would ask about too",
        "Hermes takes every answer but `deny` for a yes, and its hooks only observe",
        takes=("session_key", "notify_cb", "approval_data"),
    ),
    Seam(
        "tools.approval",
        "prompt_dangerous_approval",
        host_questions.prompt,
        "the same at a terminal",
        "the same",
        rule=False,
        takes=("command", "description"),
    ),
    Seam(
        "tools.delegate_tool",
        "_build_child_agent",
        turns.build_child_agent,
        "a subagent works in its parent's project",
        "the hook `subagent_start` names ids, and a parent's may be gone by then",
    ),
    Seam(
        "gateway.platforms.api_server",
        "ResponseStore.put",
        api_store.put,
        "what the API server keeps of a turn that did not end has no message",
        "no hook is called for what the API server stores",
    ),
    Seam(
        "gateway.platforms.api_server",
        "APIServerAdapter._build_response_conversation_history",
        api_store.build_history,
        "what the API server keeps of an input is what it became",
        "no hook is called for what the API server stores",
    ),
    Seam(
        "agent.title_generator",
        "maybe_auto_title",
        titles.maybe_auto_title,
        "no title from a withheld input",
        unless="agent.title_generator:apply_instant_title",
    ),
    Seam(
        "hermes_cli.plugins",
        "get_plugin_command_handler",
        commands.command_handler,
        "slash commands of extensions are among the plugins'",
        "`register_command` has one set of commands for all projects of a process",
        rule=False,
    ),
    Seam(
        "hermes_cli.plugins",
        "get_plugin_commands",
        commands.all_commands,
        "the same, where Hermes lists and completes them",
        "the same",
        rule=False,
    ),
    Seam(
        "cli",
        "HermesCLI.process_command",
        commands.in_command_line,
        "in which session a slash command was typed",
        "the hook `pre_command` names a key, and not the session",
        rule=False,
        surface=True,
    ),
    Seam(
        "gateway.run",
        "GatewayRunner._handle_message",
        commands.in_gateway,
        "the same in chats; `tui_gateway.server` too",
        "the same",
        rule=False,
        surface=True,
    ),
)

CALLED: Final = tuple(hook for hook in HookName if any(hook in seam.hooks for seam in SEAMS))
"""The hooks that Hermes calls. A handler on any other is not in force there, and says so."""
