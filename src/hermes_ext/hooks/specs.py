"""The four hooks, as pluggy specs and as documentation: the hook reference is made from these."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pluggy

from hermes_ext.hooks.payloads import ARGUMENTS, LLMRequest, ToolCall, ToolResult, UserInput
from hermes_ext.hooks.results import (
    ALLOWED,
    VERDICTS,
    Action,
    CallResult,
    HookName,
    InputResult,
    RequestResult,
    ToolOutputResult,
)

__all__ = ["ALLOWED", "ARGUMENTS", "PROJECT", "VERDICTS", "Action", "HookName", "HookSpecs"]

PROJECT = "hermes_ext"

_spec = pluggy.HookspecMarker(PROJECT)


class HookSpecs:
    """The control-flow hooks. A handler names the arguments it wants, or takes `**kwargs` for all.

    Arguments of every hook:

    - `event`: the frozen, typed event.
    - `session_id`, `conversation_id` (survives compression, resume and restart; shared by
      subagents and branches), `turn_id`, `turn_number`, `task_id`: `str`, the number `int`.
      Numbers are counted for the conversation, subagents' turns included: 1 is the first, none
      comes twice, and they never go back, whatever becomes of the history. While session state is
      unavailable there is none, and a handler that needs it fails.
    - `platform`: where the user is, `str`. `origin`: where the turn came from: `user`, `api`,
      `cron`, `batch`, `subagent`, `background` (a review that Hermes begins by itself), `steer` or
      `extension`.
    - `interactive`: whether a person is there. `model`: its name.
    - `cwd`, `project_root`: `Path`.
    - `is_subagent`: `bool`; `parent_session_id`, `sender_id`, `chat_id`: `str`.
    - `state`: the dict of this turn, shared by all extensions.
    - `session_state`: what this extension keeps for the conversation (JSON values). While it cannot
      be read or stored, using it raises `StateError`; `on_store_error=` decides what that does.
    - `config`: this extension's own validated settings.
    - `data_dir`: a private folder of this extension for its files, `Path`. It exists, lies outside
      of every tree, and stays over restarts and upgrades. `**kwargs` does not hold it: it is made
      when a handler that names it is first called.
    - `metadata`: what earlier handlers of this chain added; read-only.

    What the runtime does not know is None; a parameter that has a default is then left out.
    Whatever a handler is given is its own: changing it changes nothing for anyone, except `state`
    and `session_state`, which are there for that.
    """

    @_spec
    def transform_user_input(
        self,
        user_message: str,
        user_content: list[dict[str, Any]] | None,
        command: str | None,
        event: UserInput,
        session_id: str | None,
        conversation_id: str | None,
        turn_id: str | None,
        turn_number: int | None,
        task_id: str | None,
        platform: str | None,
        origin: str | None,
        interactive: bool | None,
        model: str | None,
        cwd: Path | None,
        project_root: Path | None,
        is_subagent: bool | None,
        parent_session_id: str | None,
        sender_id: str | None,
        chat_id: str | None,
        state: MutableMapping[str, Any],
        session_state: MutableMapping[str, Any],
        config: Any,
        data_dir: Path,
        metadata: Mapping[str, Any],
    ) -> InputResult:
        """Look at what the user wrote, before messages are built from it.

        Fires once per turn, also for input without text, and for text that steers a running turn
        (`origin` is `steer`). Not for background reviews, unless `origins=` names `background`.

        Args:
            user_message: the text that the person typed. A skill's expansion is reduced to it.
            user_content: the parts, where the message is a list; None where it is plain text.
            command: the skill whose slash command the text came with.

        Returns:
            None or `pass`: no opinion. `rewrite`: a `str` replaces the text and keeps the other
            parts and the host's own prefixes; a list replaces all parts. `answer`: the reply to the
            user, without the model; "" for none. `block`: refused, with the text that the user
            sees. A guard returns `pass` or `block`.

        A failure passes with the input unchanged; a guard's failure blocks. `on_error=` changes it.
        """

    @_spec
    def before_llm_call(
        self,
        messages: list[dict[str, Any]],
        system_prompt: str,
        api_call_count: int | None,
        request_id: str | None,
        event: LLMRequest,
        session_id: str | None,
        conversation_id: str | None,
        turn_id: str | None,
        turn_number: int | None,
        task_id: str | None,
        platform: str | None,
        origin: str | None,
        interactive: bool | None,
        model: str | None,
        cwd: Path | None,
        project_root: Path | None,
        is_subagent: bool | None,
        parent_session_id: str | None,
        sender_id: str | None,
        chat_id: str | None,
        state: MutableMapping[str, Any],
        session_state: MutableMapping[str, Any],
        config: Any,
        data_dir: Path,
        metadata: Mapping[str, Any],
    ) -> RequestResult:
        """Look at a request to the model, before it is sent.

        Fires once per request of the main loop and for the iteration-limit summary. A retry is the
        same request and does not fire again.

        Args:
            messages: in chat-completions form whatever the provider speaks, with what earlier
                handlers injected for the user at the end.
            system_prompt: the system prompt, with what earlier handlers injected at its end.
            api_call_count: 1 for the turn's first request.
            request_id: the host's id of the request.

        Returns:
            None or `pass`: no opinion. `inject_system`: text for the end of the system prompt.
            `inject_user`: text behind everything else. `rewrite`: other messages (injections are
            added to them all the same). `answer`: the reply to the user, without the model; ""
            for none. `block`: the model is not asked; the text is what the user sees. A guard
            returns `pass` or `block`. What is injected or rewritten is not saved in the session;
            the text of an answer or block is, as the reply that it is.

        A failure passes with the request unchanged; a guard's failure blocks.
        """

    @_spec
    def intercept_tool_call(
        self,
        tool_name: str,
        tool_args: dict[str, Any],
        tool_call_id: str,
        event: ToolCall,
        session_id: str | None,
        conversation_id: str | None,
        turn_id: str | None,
        turn_number: int | None,
        task_id: str | None,
        platform: str | None,
        origin: str | None,
        interactive: bool | None,
        model: str | None,
        cwd: Path | None,
        project_root: Path | None,
        is_subagent: bool | None,
        parent_session_id: str | None,
        sender_id: str | None,
        chat_id: str | None,
        state: MutableMapping[str, Any],
        session_state: MutableMapping[str, Any],
        config: Any,
        data_dir: Path,
        metadata: Mapping[str, Any],
    ) -> CallResult:
        """Look at a tool call, before it runs.

        Fires once per tool call, on every path that leads to a tool.

        Args:
            tool_name: the tool. `tools=` limits a handler to some of them.
            tool_args: its arguments, after the host's own coercion of types.
            tool_call_id: never empty, unique in its turn.

        Returns:
            None or `pass`: no opinion. `rewrite`: other arguments (a dict with `str` keys that the
            tool's schema allows). `answer`: the tool's result, without running it. `ask`: a person
            decides; without a person the call is blocked. `block`: the call does not run and the
            model gets the text as an error. A guard returns `pass`, `ask` or `block`.

        A failure blocks the call, guard or not; `on_error="pass"` or `"ask"` changes that.
        """

    @_spec
    def transform_tool_result(
        self,
        tool_name: str,
        tool_args: dict[str, Any],
        tool_call_id: str,
        result: str,
        status: str | None,
        duration_ms: float | None,
        event: ToolResult,
        session_id: str | None,
        conversation_id: str | None,
        turn_id: str | None,
        turn_number: int | None,
        task_id: str | None,
        platform: str | None,
        origin: str | None,
        interactive: bool | None,
        model: str | None,
        cwd: Path | None,
        project_root: Path | None,
        is_subagent: bool | None,
        parent_session_id: str | None,
        sender_id: str | None,
        chat_id: str | None,
        state: MutableMapping[str, Any],
        session_state: MutableMapping[str, Any],
        config: Any,
        data_dir: Path,
        metadata: Mapping[str, Any],
    ) -> ToolOutputResult:
        """Look at a tool's result, before the model sees it.

        Fires once per tool result.

        Args:
            tool_name: the tool. `tools=` limits a handler to some of them.
            tool_args: the arguments that it ran with.
            tool_call_id: as in `intercept_tool_call`.
            result: all of its text that any model may get. Of a result with images: text parts,
                captions and the summary for models without vision, one per line, each once.
            status: how the call ended, in the host's words.
            duration_ms: how long it ran, in milliseconds.

        Returns:
            None or `pass`: no opinion. `rewrite`: another text in place of all of it; images stay.
            `block`: the result is withheld from the model, images too, and the text is what the
            model gets. A guard returns `pass` or `block`.

        A failure passes with the result unchanged; a guard's failure blocks.
        """
