"""Lists of names in the text of a YAML file: where they stand, and the text after a change.

The text is never dumped again, because no dumper gives a file back byte for byte. ruamel.yaml says
where each thing stands, and only the characters of one entry are put in or taken out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from hermes_ext._values import define, evolve, frozen

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_DASH = re.compile(r"\s*-\s+")
_COLON = re.compile(r"[ \t]*:")
_NULLS = {"", "~", "null", "Null", "NULL"}

Kind = Literal["map", "list", "scalar", "alias"]


class TextRefusedError(Exception):
    """The text cannot be changed safely. `line` counts from 1; `key` is dotted, None for none."""

    def __init__(self, reason: str, *, line: int | None = None, key: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.line, self.key = reason, line, key


@frozen
class _Node:
    """A piece of the text. `items` are a list's items, or a mapping's keys and values in turn;
    `target` is what an alias stands for."""

    kind: Kind
    start: int
    end: int
    line: int
    value: str = ""
    style: str | None = None
    anchor: str | None = None
    flow: bool = False
    items: tuple[_Node, ...] = ()
    target: _Node | None = None

    @property
    def pairs(self) -> list[tuple[_Node, _Node]]:
        return list(zip(self.items[::2], self.items[1::2], strict=True))

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.style is None and self.value in _NULLS

    @property
    def found(self) -> str:
        """What it is, for a message: `text "a"`, `a list`."""
        if self.kind == "map":
            return "a mapping"
        if self.kind == "list":
            return "a list"
        if self.kind == "alias":
            return f"the alias *{self.value}"
        return "nothing" if self.is_null else f'the single value "{self.value}"'

    @property
    def resolved(self) -> _Node:
        return self.target or self

    def refused(self, reason: str, key: str | None = None) -> TextRefusedError:
        return TextRefusedError(reason, line=self.line, key=key)

    def unusual(self, key: str | None) -> TextRefusedError:
        told = "it is written in a way that cannot be changed without touching the rest"
        return self.refused(told, key)

    @property
    def last_leaf(self) -> _Node:
        return self if self.flow or not self.items else self.items[-1].last_leaf


@define
class _Reader:
    """Builds the tree from ruamel's events, which unlike its nodes keep where an alias stands."""

    text: str
    events: Iterator[Any]
    anchors: dict[str, _Node]

    def document(self) -> _Node | None:
        roots: list[_Node] = []
        for event in self.events:
            if type(event).__name__ == "DocumentStartEvent":
                if roots:
                    line = event.start_mark.line + 1
                    raise TextRefusedError("a second YAML document starts here", line=line)
                roots.append(self.node(next(self.events)))
        return roots[0] if roots else None

    def node(self, event: Any) -> _Node:
        start = event.start_mark
        where = {"start": start.index, "line": start.line + 1}
        name = type(event).__name__
        if name == "AliasEvent":
            target = self.anchors.get(event.anchor)
            if target is None:
                raise TextRefusedError(f"no anchor &{event.anchor} before this", line=where["line"])
            return _Node(
                "alias", end=event.end_mark.index, value=event.anchor, target=target, **where
            )
        if name == "ScalarEvent":
            node = _Node(
                "scalar", end=event.end_mark.index, value=event.value, style=event.style,
                anchor=event.anchor, **where,
            )  # fmt: skip
        else:
            items, end = self.children()
            node = _Node(
                "map" if name == "MappingStartEvent" else "list", end=end, items=tuple(items),
                flow=bool(event.flow_style), anchor=event.anchor, **where,
            )  # fmt: skip
            if node.kind == "map":
                _refuse_duplicates(node)
                node = self.with_empty_values_placed(node)
        if node.anchor:
            self.anchors[node.anchor] = node
        return node

    def with_empty_values_placed(self, mapping: _Node) -> _Node:
        """Moves values left empty to behind the colon; events put them at the next token."""
        items: list[_Node] = []
        for key, value in mapping.pairs:
            colon = _COLON.match(self.text, key.end)
            empty = value.is_null and value.start == value.end and colon
            at = colon.end() if colon else value.start
            items += key, evolve(value, start=at, end=at, line=key.line) if empty else value
        return evolve(mapping, items=tuple(items))

    def children(self) -> tuple[list[_Node], int]:
        items: list[_Node] = []
        for event in self.events:
            if type(event).__name__ in {"MappingEndEvent", "SequenceEndEvent"}:
                return items, event.end_mark.index
            items.append(self.node(event))
        raise TextRefusedError("the file ends in the middle of a list or mapping")


def _refuse_duplicates(mapping: _Node) -> None:
    seen: dict[str, int] = {}
    for key, _ in mapping.pairs:
        if key.kind == "scalar":
            if key.value in seen:
                told = f"the key {key.value!r} stands twice, first in line {seen[key.value]}"
                raise key.refused(told, key.value)
            seen[key.value] = key.line


@frozen
class YamlText:
    """A YAML text (no byte-order mark) and where its keys stand. Made by `YamlText.parse`."""

    text: str
    _root: _Node | None
    _newline: str

    @classmethod
    def parse(cls, text: str) -> YamlText:
        """Raises TextRefusedError for what is no YAML, has several documents or a key twice."""
        reader = _Reader(text, iter(YAML(typ="safe", pure=True).parse(text)), {})
        try:
            root = reader.document()
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            told = str(error.problem or error.context or "not YAML")
            raise TextRefusedError(told, line=mark.line + 1 if mark else None) from None
        except YAMLError as error:
            position = getattr(error, "position", None)
            line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
            raise TextRefusedError(str(error).splitlines()[0], line=line) from None
        except RecursionError:
            raise TextRefusedError("the file is nested too deeply") from None
        return cls(text, root, "\r\n" if "\r\n" in text else "\n")

    def entries(self, section: str, key: str) -> tuple[str, ...]:
        """The list at `section.key` as it is written, () where there is none.

        Raises TextRefusedError where something else than a list of names stands there.
        """
        return self._entries(self._list(section, key), f"{section}.{key}")

    def _entries(self, node: _Node | None, dotted: str) -> tuple[str, ...]:
        if node is None or node.is_null:
            return ()
        items = [item.resolved for item in node.resolved.items]
        for item in items:
            if item.kind != "scalar":
                raise item.refused(f"found {item.found} among the names", dotted)
        return tuple(item.value for item in items)

    def _section(self, section: str) -> tuple[_Node, _Node] | None:
        """The section's key and value, None where the file has no such section."""
        if self._root is None or self._root.is_null:
            return None
        if self._root.kind != "map":
            raise self._root.refused(f"found {self._root.found}, expected a mapping of sections")
        pair = _pair(self._root, section)
        if pair and not pair[1].is_null and pair[1].resolved.kind != "map":
            raise pair[1].refused(f"found {pair[1].found}, expected a mapping", section)
        return pair

    def _list(self, section: str, key: str) -> _Node | None:
        found = self._section(section)
        if found is None or found[1].is_null:
            return None
        mapping = found[1].resolved
        pair = _pair(mapping, key) or self._merged(mapping, key)
        if pair is None:
            return None
        value = pair[1].resolved
        if value.kind != "list" and not value.is_null:
            told = f"found {value.found}, expected a list of names"
            raise pair[1].refused(told, f"{section}.{key}")
        return pair[1]

    def _merged(self, mapping: _Node, key: str) -> tuple[_Node, _Node] | None:
        """The pair that `<<: *base` brings in."""
        merge = _pair(mapping, "<<")
        if merge is None:
            return None
        base = merge[1].resolved
        for source in base.items if base.kind == "list" else (base,):
            resolved = source.resolved
            pair = _pair(resolved, key) if resolved.kind == "map" else None
            if pair:
                return pair
        return None

    def adding(self, section: str, key: str, name: str) -> YamlText:
        """The text with `name` as the list's last entry; makes list and section if need be."""
        node = self._list(section, key)
        pair = self._own_pair(section, key)
        if pair is None:
            names = [*self._entries(node, f"{section}.{key}"), name]
            return self._with_key(section, key, _flow(names, self._quote))
        value = pair[1]
        if value.kind == "alias":
            names = [*self._entries(node, f"{section}.{key}"), name]
            return self._replaced(value.start, value.end, _flow(names, self._quote))
        if value.is_null:
            blank = "" if value.end > value.start else " "
            return self._replaced(value.start, value.end, f"{blank}[{_written(name, '')}]")
        text = _written(name, _shared_style(value.items))
        if value.flow:
            return self._with_flow_item(value, text)
        if not value.items:
            raise value.unusual(f"{section}.{key}")
        column = self._dash_column(value.items[0], f"{section}.{key}")
        indent = self._line(value.items[0].start)[:column]
        return self._line_after(value, f"{indent}- {text}")

    def removing(self, section: str, key: str, gone: Callable[[str], bool]) -> YamlText:
        """The text without the first entry of the list for which `gone(entry)` is true."""
        pair = self._own_pair(section, key)
        names = self.entries(section, key)
        index = next(number for number, name in enumerate(names) if gone(name))
        kept = [name for number, name in enumerate(names) if number != index]
        if pair is None:
            return self._with_key(section, key, _flow(kept, self._quote))
        node = pair[1]
        if node.kind == "alias":
            return self._replaced(node.start, node.end, _flow(kept, self._quote))
        if node.flow:
            return self._without_flow_item(node, index)
        self._dash_column(node.items[index], f"{section}.{key}")
        return self._without_block_item(pair, index, f"{section}.{key}")

    def without_empty(self, section: str, key: str) -> YamlText:
        """The text without a list that has come to be empty, where that takes away whole lines.

        A section that had nothing else goes too. What has a comment, or stands among other things
        in its line, stays.
        """
        found, pair = self._section(section), self._own_pair(section, key)
        if found is None or pair is None or found[1].flow or pair[1].kind != "list":
            return self
        head, body = found
        line = self._line(pair[0].start)
        if pair[1].items or not re.fullmatch(r" *[\"']?[a-z]+[\"']?: *\[ *\] *", line):
            return self
        start, end = self._line_start(pair[0].start), self._next_line(pair[1].end)
        if len(body.pairs) == 1:
            alone = self._line(head.start).rstrip() == f"{section}:"
            if not alone or self._next_line(head.end) != start:
                return self
            start = self._line_start(head.start)
        return self._replaced(start, end, "")._without_new_end(self)

    def _own_pair(self, section: str, key: str) -> tuple[_Node, _Node] | None:
        """The pair as it stands in the section itself; a section that is an alias is refused."""
        found = self._section(section)
        if found and found[1].kind == "alias":
            told = f"the section is {found[1].found}, which other parts of the file share"
            raise found[1].refused(told, section)
        return _pair(found[1], key) if found and found[1].kind == "map" else None

    def _with_key(self, section: str, key: str, value: str) -> YamlText:
        entry = f"{self._key(key)}: {value}"
        found = self._section(section)
        if found is None:
            return self._with_section(section, entry)
        head, body = found
        if body.kind == "map" and body.items:
            if body.flow:
                return self._with_flow_item(body, entry)
            return self._line_after(_neighbour(body), self._indent(body.items[0]) + entry)
        if self._root is not None and self._root.flow:
            blank = "" if body.end > body.start else " "
            return self._replaced(body.start, body.end, f"{blank}{{{entry}}}")
        line = f"{self._indent(head)}  {entry}"
        if body.end == body.start:
            return self._line_after(body, line)
        # An empty `{}` or `null` gives way to a block, which the next entries are easier to add to.
        if "#" in self.text[body.start : body.end]:
            raise body.unusual(section)
        start = len(self.text[: body.start].rstrip(" "))
        cut = self._replaced(start, body.end, "")
        return cut._line_after(evolve(body, items=(), start=start, end=start), line)

    def _with_section(self, section: str, entry: str) -> YamlText:
        root = self._root
        if root is not None and root.kind == "map" and root.flow:
            if root.items:
                return self._with_flow_item(root, f"{self._key(section)}: {{{entry}}}")
            return self._replaced(root.start, root.end, f"{section}:{self._newline}  {entry}")
        if root is not None and root.is_null and root.end > root.start:
            return self._replaced(root.start, root.end, f"{section}:{self._newline}  {entry}")
        indent = self._indent(root.items[0]) if root is not None and root.items else ""
        lines = f"{indent}{section}:{self._newline}{indent}  {entry}"
        if root is not None and root.items and re.search(r"^\.\.\.", self.text, re.MULTILINE):
            return self._line_after(root, lines)
        ends = self.text.endswith(("\n", "\r")) or not self.text
        tail = self._newline if ends else ""
        added = f"{'' if ends else self._newline}{lines}{tail}"
        return self._replaced(len(self.text), len(self.text), added)

    def _with_flow_item(self, node: _Node, item: str) -> YamlText:
        if not node.items:
            return self._replaced(node.end - 1, node.end - 1, item)
        last = node.items[-1]
        rest = self.text[last.end : node.end - 1]
        if "\n" not in rest:
            return self._replaced(last.end, last.end, f", {item}")
        # One item a line: a line of its own, behind whatever comment the last one has.
        comma = rest.lstrip(" \t").startswith(",")
        first = node.items[-2] if node.kind == "map" else last
        column = re.match(r"[ \t]*", self._line(first.start))
        end = self._line_end(last.end)
        added = f"{self._newline}{column[0] if column else ''}{item}{',' if comma else ''}"
        between = self.text[last.end : end]
        return self._replaced(last.end, end, f"{'' if comma else ','}{between}{added}")

    def _without_flow_item(self, node: _Node, index: int) -> YamlText:
        item = node.items[index]
        start, end = self._line_start(item.start), self._line_end(item.end)
        around = self.text[start : item.start], self.text[item.end : end]
        own_line = not around[0].strip() and re.fullmatch(r"[ \t]*,?[ \t]*(#.*)?", around[1])
        if own_line and end < node.end:
            return self._replaced(start, self._next_line(end), "")
        if index + 1 < len(node.items):
            return self._replaced(item.start, node.items[index + 1].start, "")
        if index:
            return self._replaced(node.items[index - 1].end, item.end, "")
        comma = re.match(r"\s*,", self.text[item.end : node.end])
        return self._replaced(item.start, item.end + (comma.end() if comma else 0), "")

    def _without_block_item(self, pair: tuple[_Node, _Node], index: int, dotted: str) -> YamlText:
        key, node = pair
        item = node.items[index]
        start, end = self._line_start(item.start), self._next_line(self._line_end(item.end))
        left = self._replaced(start, end, "")
        if len(node.items) == 1:
            colon = _COLON.match(self.text, key.end)
            if colon is None or node.anchor:
                raise node.unusual(dotted)
            left = left._replaced(colon.end(), colon.end(), " []")
        return left._without_new_end(self)

    def _without_new_end(self, before: YamlText) -> YamlText:
        """Takes the last newline off again where the file had none at its end."""
        if before.text.endswith("\n") or not self.text.endswith(self._newline):
            return self
        return self._replaced(len(self.text) - len(self._newline), len(self.text), "")

    @property
    def _quote(self) -> str:
        """A double quote in a file that is JSON, so that it stays JSON."""
        return _shared_style(self._root.items[::2]) if self._root and self._root.flow else ""

    def _key(self, key: str) -> str:
        return f"{self._quote}{key}{self._quote}"

    def _replaced(self, start: int, end: int, text: str) -> YamlText:
        """The text with a piece replaced. Positions are those of the old text: parse it anew."""
        return YamlText(self.text[:start] + text + self.text[end:], self._root, self._newline)

    def _line_after(self, node: _Node, line: str) -> YamlText:
        """Puts a line behind the node's last one and behind the comment there."""
        leaf = node.last_leaf
        is_block = leaf.kind == "scalar" and leaf.style in {"|", ">"}
        if is_block and self.text[: leaf.end].endswith("\n"):
            return self._replaced(leaf.end, leaf.end, line + self._newline)
        at = self._line_end(leaf.end)
        return self._replaced(at, at, self._newline + line)

    def _line_start(self, position: int) -> int:
        return self.text.rfind("\n", 0, position) + 1

    def _line_end(self, position: int) -> int:
        """Where the line's text ends: before its line break."""
        end = self.text.find("\n", position)
        if end < 0:
            return len(self.text)
        return end - 1 if self.text[position:end].endswith("\r") else end

    def _next_line(self, end: int) -> int:
        return self.text.find("\n", end) + 1 or len(self.text)

    def _line(self, position: int) -> str:
        return self.text[self._line_start(position) : self._line_end(position)]

    def _indent(self, node: _Node) -> str:
        indent = self.text[self._line_start(node.start) : node.start]
        if indent.strip(" "):
            raise node.unusual(None)
        return indent

    def _dash_column(self, item: _Node, dotted: str) -> int:
        before = self.text[self._line_start(item.start) : item.start]
        if not _DASH.fullmatch(before) or item.style in {"|", ">"}:
            raise item.unusual(dotted)
        return before.index("-")


def is_key(written: str, key: str, *, plain: bool) -> bool:
    """Whether a key of the file is the one meant.

    A bare `on` is the boolean true to YAML 1.1: a program that saves the file makes it `true`.
    """
    return written == key or (key == "on" and plain and written.lower() == "true")


def _pair(mapping: _Node, key: str) -> tuple[_Node, _Node] | None:
    found = [
        pair
        for pair in mapping.pairs
        if pair[0].kind == "scalar" and is_key(pair[0].value, key, plain=not pair[0].style)
    ]
    return next((pair for pair in found if pair[0].value == key), found[0] if found else None)


def _neighbour(section: _Node) -> _Node:
    """The value to stand behind: a switch of the same kind, else the section's last."""
    for key in ("disabled", "on", "enabled"):
        pair = _pair(section, key)
        if pair and pair[1].kind != "map":
            return pair[1]
    return section


def _shared_style(items: Sequence[_Node]) -> str:
    """The quote that every entry has, else none."""
    styles = {item.style or "" for item in items}
    style = styles.pop() if len(styles) == 1 else ""
    return style if style in {"'", '"'} else ""


def _flow(names: Sequence[str], style: str) -> str:
    return f"[{', '.join(_written(name, style) for name in names)}]"


def _written(name: str, style: str) -> str:
    """A name as YAML: plain where every reader takes it for text, else in quotes."""
    if style == "'" and name.isprintable():
        return "'" + name.replace("'", "''") + "'"
    plain = not style and _PLAIN.fullmatch(name) and yaml.safe_load(name) == name
    return name if plain else json.dumps(name, ensure_ascii=False)
