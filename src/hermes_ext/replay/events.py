"""Events to run again: samples, those of a file, and those that the decision log has recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import Factory, frozen
from yaml.nodes import MappingNode, Node, SequenceNode

from hermes_ext._problems import did_you_mean
from hermes_ext._text import printable, text_of
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hooks.payloads import (
    SCOPE_FACTS,
    SCOPE_IDS,
    Event,
    LLMRequest,
    ToolCall,
    ToolResult,
    UserInput,
)
from hermes_ext.hooks.results import HookName
from hermes_ext.settings.names import HOOKS
from hermes_ext.settings.yaml_nodes import (
    Unreadable,
    described,
    items_of,
    line_of,
    plain,
    read_document,
)
from hermes_ext.turns.decisions import canonical_digest, recorded_context, recorded_event

TOO_OLD: Final = "written without payloads"
LONGEST_RECORDED: Final = 50_000_000  # bytes of a line of the log, and of a file of events


class EventError(HermesExtError):
    """A file of events has something in it that cannot be one."""


class NotReplayableError(ValueError):
    """A line of the decision log from which its event cannot be made; says why."""


@frozen
class Recorded:
    """An event, and what its turn knew.

    Attributes:
        event: as no handler has had it yet.
        label: what to call it, for people.
        context: arguments of `Runtime.turn`; those that are not known are left out.
        cwd: where the paths of a tool call begin, if not in the turn's directory.
        line: the line of the decision log that it is from; None: it is from no log.
    """

    event: Event
    label: str
    context: Mapping[str, Any] = Factory(dict)
    cwd: Path | None = None
    line: Mapping[str, Any] | None = None


# -- of the log -----------------------------------------------------------------------------------


def of_line(line: Mapping[str, Any]) -> Recorded:
    """The event that a line of the decision log tells of.

    Raises:
        NotReplayableError: it tells of none, or not enough.
    """
    if "hook" not in line or "digests" not in line:
        raise NotReplayableError("not a decision")
    if line["hook"] not in HOOKS:
        raise NotReplayableError(f"of a hook that is not known here ({printable(line['hook'])})")
    if "too_long" in line:
        raise NotReplayableError(f"longer than {LONGEST_RECORDED:,} bytes")
    if not all(isinstance(line.get(key), Mapping) for key in ("payloads", "event", "context")):
        raise NotReplayableError(TOO_OLD)
    if canonical_digest(line["payloads"].get("in")) != line["digests"].get("in"):
        # Nested too deeply to be read back, or somebody edited the log.
        raise NotReplayableError("what is recorded is not what there was")
    try:
        event, context = recorded_event(line), recorded_context(line)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NotReplayableError("the line is damaged") from error
    own = line["context"].get("cwd")
    cwd = Path(own) if own is not None and own != line.get("cwd") else None
    return Recorded(event, f"{line.get('time')} turn {line.get('turn')}", context, cwd, line)


# -- samples --------------------------------------------------------------------------------------

_FILE: Final = "src/app.py"
_CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("write_file", {"path": _FILE, "content": "print('hello')\n"}),
    ("terminal", {"command": "git push --force"}),
    ("terminal", {"command": "ls -la"}),
    ("read_file", {"path": "README.md"}),
)
# In two parts, so that nothing takes it for a key that somebody forgot here.
_KEY: Final = "AKIA" + "IOSFODNN7EXAMPLE"
_RESULT: Final = f'{{"output": "AWS_ACCESS_KEY_ID={_KEY}\\n", "exit_code": 0}}'


def samples() -> tuple[Recorded, ...]:
    """One or a few events of each hook, each in a turn of its own."""
    return tuple(
        Recorded(event, f"sample: {_title(event)}", {"turn_id": f"sample-{number}"})
        for number, event in enumerate(_sample_events(), 1)
    )


def _sample_events() -> Iterator[Event]:
    yield UserInput(text="Fix the bug in src/app.py, then push my branch.")
    yield UserInput(text="thanks")
    yield LLMRequest(
        messages=[{"role": "user", "content": "Fix the bug in src/app.py, then push my branch."}],
        system_prompt="You are a helpful agent.",
        api_call_count=1,
        request_id="sample-request",
    )
    for number, (tool, args) in enumerate(_CALLS, 1):
        yield ToolCall(tool_name=tool, tool_args=args, tool_call_id=f"sample-call-{number}")
    command = {"command": "cat .env"}
    yield ToolResult("terminal", command, "sample-call-5", _RESULT, status="ok", duration_ms=12)
    yield ToolResult(
        tool_name="read_file",
        tool_args={"path": "README.md"},
        tool_call_id="sample-call-6",
        result='{"error": "File not found: README.md"}',
        status="error",
        duration_ms=3,
    )


def _title(event: Event) -> str:
    if isinstance(event, ToolCall):
        return f"a call of {event.tool_name}"
    if isinstance(event, ToolResult):
        return f"a result of {event.tool_name}"
    return "an input" if isinstance(event, UserInput) else "a request"


# -- a file ---------------------------------------------------------------------------------------

_TOOL: Final = ("tool_name", "tool_args", "tool_call_id")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "transform_user_input": ("user_message", "user_content", "command"),
    "before_llm_call": ("messages", "system_prompt", "api_call_count", "request_id"),
    "intercept_tool_call": _TOOL,
    "transform_tool_result": (*_TOOL, "result", "status", "duration_ms"),
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "before_llm_call": ("messages",),
    "intercept_tool_call": ("tool_name",),
    "transform_tool_result": ("tool_name", "result"),
}
_OF_THE_TURN: Final = (*SCOPE_IDS, *SCOPE_FACTS)
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(
        ("user_message", "command", "system_prompt", "request_id", "tool_name", "tool_call_id",
         "result", "status", "task_id", "platform", "origin", "model", "cwd", "project_root",
         "parent_session_id", "sender_id", "chat_id", *SCOPE_IDS),
        (str, "a text"),
    ),
    "messages": (list, "a list of messages"),
    "user_content": (list, "a list of parts"),
    "tool_args": (dict, "a mapping"),
    "api_call_count": (int, "a whole number"),
    "turn_number": (int, "a whole number"),
    "duration_ms": (int, "a whole number"),
    "interactive": (bool, "true or false"),
    "is_subagent": (bool, "true or false"),
}  # fmt: skip


def of_file(file: Path, shown: Path | None = None) -> tuple[Recorded, ...]:
    """The events that a JSON or YAML file holds: one, or a list of them.

    Those without a `turn_id` of their own are of one turn, in their order.

    Args:
        file: what is read.
        shown: how messages name it; None: as what it is.

    Raises:
        EventError: with file, line and key.
    """
    document = read_document(file, LONGEST_RECORDED)
    shown = shown or file
    if not document.exists:
        raise EventError("there is no such file", path=shown, hint="--event takes a file of events")
    if document.fault is not None:
        raise EventError(f"the file {document.fault.message}", path=shown, line=document.fault.line)
    root = document.root
    listed = root.value if isinstance(root, SequenceNode) else [] if root is None else [root]
    if not listed:
        raise EventError("the file has no events", path=shown, hint=_EXAMPLE)
    return tuple(_of_node(node, shown, number) for number, node in enumerate(listed, 1))


_EXAMPLE: Final = (
    'Write one as {"hook": "intercept_tool_call", "tool_name": "terminal", '
    '"tool_args": {"command": "ls"}}, or a list of such'
)


def _of_node(node: Node, file: Path, number: int) -> Recorded:
    if not isinstance(node, MappingNode):
        raise EventError(
            f"found {described(node)}, expected a mapping", path=file, line=line_of(node),
            hint=_EXAMPLE,
        )  # fmt: skip
    try:
        given: dict[str, Any] = plain(node)
    except Unreadable as error:
        raise EventError(str(error), path=file, line=error.line or line_of(node)) from None
    if "payloads" in given and "digests" in given:  # a line of the log
        try:
            return of_line(given)
        except NotReplayableError as error:
            raise EventError(str(error), path=file, line=line_of(node)) from None
    lines = {key: line_of(key_node) for key, key_node, _ in items_of(node)}

    def wrong(key: str, message: str, hint: str | None = None) -> EventError:
        at = lines.get(key, line_of(node))
        return EventError(message, path=file, line=at, key=printable(key), hint=hint)

    hook = _hook_of(given, wrong)
    allowed = ("hook", *_KEYS[hook], *_OF_THE_TURN)
    for key, value in given.items():
        if key not in allowed:
            near = did_you_mean(key, allowed) or f"{hook} has {', '.join(_KEYS[hook])}"
            raise wrong(key, "is not a key of this hook's events", near)
        if key != "hook":
            _check(key, value, wrong)
    for key in _NEEDED.get(hook, ()):
        if given.get(key) is None:
            raise wrong(key, f"is needed for {hook}")
    if hook == "transform_user_input" and not {"user_message", "user_content"} & given.keys():
        raise wrong("user_message", f"is needed for {hook}, or user_content")
    context = {key: given[key] for key in _OF_THE_TURN if given.get(key) is not None}
    for key in {"cwd", "project_root"} & context.keys():
        context[key] = Path(context[key]).expanduser().absolute()
    context = {"turn_id": f"events of {file.name}"} | context
    return Recorded(_event_of(hook, given), f"{printable(file.name)}:{line_of(node)}", context)


def _hook_of(given: Mapping[str, Any], wrong: Any) -> str:
    named = given.get("hook")
    listed = f"Hooks: {', '.join(HOOKS)}"
    if named is None:
        raise wrong("hook", "is missing", listed)
    hook = str(named).replace("-", "_")
    if hook not in HOOKS:
        told = f'no hook is called "{printable(str(named))}"'
        raise wrong("hook", told, did_you_mean(hook, HOOKS) or listed)
    return hook


def _check(key: str, value: Any, wrong: Any) -> None:
    kind, expected = _TYPES[key]
    if value is not None and (
        not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    ):
        raise wrong(key, f"found {type(value).__name__}, expected {expected}")
    if isinstance(value, list) and any(not isinstance(each, dict) for each in value):
        raise wrong(key, f"expected {expected}, each a mapping")


def _event_of(hook: str, given: Mapping[str, Any]) -> Event:
    named = {key: given[key] for key in _KEYS[hook] if given.get(key) is not None}
    name = HookName(hook)
    if name is HookName.TRANSFORM_USER_INPUT:
        content = named.get("user_content")
        text = named.get("user_message", text_of(content or ""))
        return UserInput(text=text, content=content, command=named.get("command"))
    if name is HookName.BEFORE_LLM_CALL:
        return LLMRequest(**named)
    named = {"tool_args": {}, "tool_call_id": ""} | named
    return ToolCall(**named) if name is HookName.INTERCEPT_TOOL_CALL else ToolResult(**named)
