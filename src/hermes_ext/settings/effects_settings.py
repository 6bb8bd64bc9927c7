"""`extensions.effects`: what the user says of commands and tools, for `hermes_ext.effects`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final

from yaml.nodes import MappingNode, Node, SequenceNode

from hermes_ext._problems import did_you_mean
from hermes_ext._text import as_name
from hermes_ext.settings.yaml_nodes import (
    Unreadable,
    described,
    is_null,
    items_of,
    kind_of,
    node_at,
    plain,
    text_of,
)

Tell = Callable[[Node | int | None, str, str, str | None], None]
"""Told of a problem: the node or line, the key below `extensions`, what, and what to do."""

_KEYS: Final = ("commands", "read_only_tools")


def read_effects(node: Node, tell: Tell) -> dict[str, Any]:
    """The values of the section, by their names in `ExtensionsConfig`.

    What is wrong is told and left out: then less is known, and more may write.
    """
    if not isinstance(node, MappingNode):
        tell(node, "effects", f"found {described(node)}, expected a mapping; not used", None)
        return {}
    values: dict[str, Any] = {}
    for key, key_node, value in items_of(node):
        if key == "commands" and not is_null(value):
            values["commands"] = _commands(value, tell)
        elif key == "read_only_tools" and not is_null(value):
            values["read_only_tools"] = _names(value, tell)
        elif key not in _KEYS:
            told, hint = "is not a key of this section", did_you_mean(key, _KEYS)
            tell(key_node, f"effects.{key}", told, hint)
    return values


def _commands(node: Node, tell: Tell) -> MappingProxyType[str, Any]:
    if not isinstance(node, MappingNode):
        told = f"found {described(node)}, expected a mapping of commands; not used"
        tell(node, "effects.commands", told, None)
        return MappingProxyType({})
    try:
        found = plain(node)
    except Unreadable as error:
        tell(node, "effects.commands", f"cannot be read: {error}; not used", None)
        return MappingProxyType({})
    wrong: set[str] = set()
    for keys, key_node in _odd_keys(node):
        wrong.add(keys[0])
        what = f"found {described(key_node)} as a name, expected text"
        shown = ".".join(("effects.commands", *keys))
        told = f"{what}; what is said of `{keys[0]}` is not used"
        tell(key_node, shown, told, "Write it in quotes")
    for path, told in problems(found):
        wrong.add(str(path[0]))
        place = node_at(node, path) or node
        shown = ".".join(("effects.commands", *map(str, path)))
        tell(place, shown, f"{told}; what is said of `{path[0]}` is not used", None)
    return MappingProxyType({name: each for name, each in found.items() if name not in wrong})


def problems(mapping: object) -> list[tuple[tuple[str, ...], str]]:
    """What is wrong with what a user says of commands: the path of keys, and why."""
    from jsonschema import Draft202012Validator

    from hermes_ext.effects._knowledge import schema

    found = Draft202012Validator(schema()).iter_errors(mapping)
    return sorted((_path_of(each), _in_words(each)) for each in found)


def _path_of(error: Any) -> tuple[str, ...]:
    path = tuple(map(str, error.absolute_path))
    # Of a name that is none, the path ends above it.
    named = "propertyNames" in error.absolute_schema_path
    return (*path, str(error.instance)) if named and not path else path


def _in_words(error: Any) -> str:
    shown = as_name(str(error.instance), 60)
    kind = str(error.validator)
    if kind == "additionalProperties":
        known = error.schema["properties"]
        extra = next(key for key in error.instance if key not in known)
        return f"{as_name(str(extra), 60)} is not known here; there are {', '.join(sorted(known))}"
    if "propertyNames" in error.absolute_schema_path:
        return f"{shown} is neither a name nor several names with one space between them"
    if kind == "not":
        return "has both `value` and `optional`; it takes one of them"
    expected = _expected(kind, error.validator_value)
    return f"found {shown}, expected {expected}" if expected else str(error.message)


def _expected(kind: str, wanted: Any) -> str:
    from hermes_ext.effects._knowledge import DEEDS, OPTIONS

    if kind == "type":
        words = wanted if isinstance(wanted, str) else " or ".join(wanted)
        return _TYPES.get(words, words)
    if wanted == OPTIONS:
        return "options, such as: -q --quiet"
    if kind in _EXPECTED:
        among = wanted if kind == "enum" else DEEDS
        return f"{_EXPECTED[kind]} {', '.join(map(str, among))}"
    return ""


_EXPECTED: Final = {
    "anyOf": "`flag`, or what is done with its value: one of",
    "enum": "one of",
    "pattern": "words, with one space between them, of",
}
_TYPES: Final = {
    "object or null": "a mapping",
    "object": "a mapping",
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
}


def _odd_keys(node: Node, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Keys that are no text, with those above them: a program that saves the file changes them."""
    for key, key_node, value in items_of(node) if isinstance(node, MappingNode) else ():
        if kind_of(key_node) != "str":
            yield (*above, key), key_node
        yield from _odd_keys(value, (*above, key))


def _names(node: Node, tell: Tell) -> tuple[str, ...]:
    if not isinstance(node, SequenceNode):
        told = f"found {described(node)}, expected a list of tools; so all may write"
        tell(node, "effects.read_only_tools", told, None)
        return ()
    names: list[str] = []
    for index, item in enumerate(node.value):
        text = text_of(item)
        if text and text.strip():
            names.append(text.strip())
        else:
            told = f"found {described(item)}, expected the name of a tool; not used"
            tell(item, f"effects.read_only_tools[{index}]", told, None)
    return tuple(names)
