"""`extensions.effects`: what the user says of commands and tools, for `hermes_ext.effects`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final

from yaml.nodes import MappingNode, Node, SequenceNode

from hermes_ext._problems import did_you_mean
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

__all__ = ["read_effects"]

Tell = Callable[[Node, str, str, str | None], None]
"""Told of a problem: where, the key below `extensions`, what, and what to do."""

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
            tell(
                key_node, f"effects.{key}", "is not a key of this section", did_you_mean(key, _KEYS)
            )
    return values


def _commands(node: Node, tell: Tell) -> MappingProxyType[str, Any]:
    from hermes_ext.effects._commands import problems

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
