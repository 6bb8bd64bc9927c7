"""Events to run again: samples, those of a file, and those that the decision log has recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from yaml.nodes import MappingNode, Node, SequenceNode

from hermes_ext._problems import did_you_mean
from hermes_ext._text import printable
from hermes_ext._values import Factory, frozen
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hooks.payloads import EVENT_OF, SCOPE_FACTS, SCOPE_IDS, Event
from hermes_ext.hooks.table import EVERYWHERE, TABLE, HookName, complete
from hermes_ext.hosts.default import default_host
from hermes_ext.settings.names import HOOKS
from hermes_ext.settings.yaml_nodes import (
    Unreadable,
    described,
    items_of,
    line_of,
    plain,
    read_document,
)
from hermes_ext.turns.decisions.canonical import canonical_digest
from hermes_ext.turns.decisions.recorded import recorded_context, recorded_event

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


def samples() -> tuple[Recorded, ...]:
    """One or a few events of each hook, each in a turn of its own."""
    of_host = default_host().samples()
    found = {name: row.samples or of_host.get(name, ()) for name, row in TABLE.items()}
    events = [
        EVENT_OF[hook].from_arguments(named)
        for hook, samples in complete("sample", found, HookName).items()
        for named in samples
    ]
    return tuple(
        Recorded(event, f"sample: {event.title}", {"turn_id": f"sample-{number}"})
        for number, event in enumerate(events, 1)
    )


_OF_THE_TURN: Final = (*SCOPE_IDS, *SCOPE_FACTS)
_OF_NO_HANDLER: Final = {HookName.INTERCEPT_TOOL_CALL: ("read_only",)}
"""What an event has that no handler asks for by its name."""

_TYPES: Final = {
    one.name: one.type.removesuffix(" | None")
    for row in TABLE.values()
    for one in (*row.arguments, *EVERYWHERE)
} | {"read_only": "bool"}
_WRITTEN: Final[Mapping[str, tuple[type, str]]] = {
    "str": (str, "a text"),
    "Path": (str, "a text"),
    "int": (int, "a whole number"),
    "float": (int, "a whole number"),
    "bool": (bool, "true or false"),
    "dict": (dict, "a mapping"),
    "list": (list, "a list"),
    "list[dict[str, Any]]": (list, "a list of mappings"),
}
"""How values of each type stand in a file."""


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
        told = f"found {described(node)}, expected a mapping"
        raise EventError(told, path=file, line=line_of(node), hint=_EXAMPLE)
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
    row = TABLE[hook]
    own = [*(one.name for one in row.arguments), *_OF_NO_HANDLER.get(hook, ())]
    allowed = ("hook", *own, *_OF_THE_TURN)
    for key, value in given.items():
        if key not in allowed:
            near = did_you_mean(key, allowed) or f"{hook} has {', '.join(own)}"
            raise wrong(key, "is not a key of this hook's events", near)
        if key != "hook":
            _check(key, value, wrong)
    for one in row.arguments:
        keys = (one.name, *one.instead)
        if one.needed and all(given.get(key) is None for key in keys):
            raise wrong(one.name, f"is needed for {' or '.join([hook, *one.instead])}")
    context = {key: given[key] for key in _OF_THE_TURN if given.get(key) is not None}
    for key in {"cwd", "project_root"} & context.keys():
        context[key] = Path(context[key]).expanduser().absolute()
    context = {"turn_id": f"events of {file.name}"} | context
    named = {key: given[key] for key in own if given.get(key) is not None}
    event = EVENT_OF[hook].from_arguments(named)
    return Recorded(event, f"{printable(file.name)}:{line_of(node)}", context)


def _hook_of(given: Mapping[str, Any], wrong: Any) -> HookName:
    named = given.get("hook")
    listed = f"Hooks: {', '.join(HOOKS)}"
    if named is None:
        raise wrong("hook", "is missing", listed)
    hook = str(named).replace("-", "_")
    if hook not in HOOKS:
        told = f'no hook is called "{printable(str(named))}"'
        raise wrong("hook", told, did_you_mean(hook, HOOKS) or listed)
    return HookName(hook)


def _check(key: str, value: Any, wrong: Any) -> None:
    wanted = _TYPES[key]
    kind, expected = _WRITTEN.get(wanted) or _WRITTEN[wanted.partition("[")[0]]
    if value is None:
        return
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise wrong(key, f"found {type(value).__name__}, expected {expected}")
    mappings = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    if wanted.startswith("list[dict") and not mappings:
        raise wrong(key, f"expected {expected}")
