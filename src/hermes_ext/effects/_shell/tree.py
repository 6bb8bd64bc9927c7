"""Shell text as a syntax tree, by tree-sitter's grammar of bash.

The grammar is made for editors: it is lenient, and it groups `&&`, `|` and redirections otherwise
than bash does. So the order of what stands in a line is taken from the tree, and its grouping is
done here; and text that belongs to no part of the tree is an answer too: it was not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import define, field

if TYPE_CHECKING:
    from tree_sitter import Node as _Node
    from tree_sitter import Parser

Node: TypeAlias = "_Node"

# A line's end behind a backslash joins what it stands between, unless there are blanks too.
_BLANK: Final = re.compile(rb"(?:[ \t\n]|\\\n[ \t]|[ \t]\\\n)(?:[ \t\n]|\\\n)*\Z|\Z")
_JOINT: Final = re.compile(rb"(?:\\.)*\Z", re.DOTALL)
LONGEST: Final = 2_000_000  # bytes


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class Source:
    """A text and its tree."""

    def __init__(self, text: str) -> None:
        self.bytes = text.encode("utf-8", "replace")
        self.too_long = len(self.bytes) > LONGEST
        self.root: Node = _parser().parse(b"" if self.too_long else self.bytes).root_node

    def text(self, node: Node) -> str:
        """What stands there."""
        return self.between(node.start_byte, node.end_byte)

    def between(self, begin: int, end: int) -> str:
        """What stands between two places."""
        return self.bytes[begin:end].decode("utf-8", "replace")

    def joint(self, one: Node, other: Node) -> str | None:
        """What stands between two neighbours that are parts of one word; None if they are not."""
        between = self.bytes[one.end_byte : other.start_byte]
        return between.decode("utf-8", "replace") if _JOINT.match(between) else None

    def gaps(self, node: Node, *, words: bool = False) -> Iterator[str]:
        """What stands between the parts of a node and is neither blank nor a part.

        words: what joins two parts to one word (see `joint`) may stand there too.
        """
        place = node.start_byte
        for child in node.children:
            if child.start_byte > place:
                gap = self.bytes[place : child.start_byte]
                if not (_BLANK.match(gap) or (words and _JOINT.match(gap))):
                    yield gap.decode("utf-8", "replace")
            place = max(place, child.end_byte)
        if not _BLANK.match(self.bytes[place : node.end_byte]):
            yield self.between(place, node.end_byte)


@define
class Item:
    """A command of a line, of any kind, with the redirections behind it.

    words: further arguments, which stand behind a redirection. dash: whether a `-` stands before
    `<<`, which the grammar leaves out. mixed: whether `|&` stands behind it.
    """

    node: Node | None
    redirects: list[Node] = field(factory=list)
    words: list[Node] = field(factory=list)
    dash: bool = False
    mixed: bool = False


@define
class Line:
    """A pipeline. operator: what stands before it: "", "&&" or "||"."""

    operator: str
    items: list[Item] = field(factory=list)
    negated: bool = False
    strange: list[Node] = field(factory=list)


def pipelines_of(node: Node) -> list[Line]:
    """The pipelines that stand in a statement, with `&&` and `||` between them."""
    lines = [Line("")]
    _arrange(node, lines)
    return lines


def _arrange(node: Node, lines: list[Line]) -> None:
    kind = node.type
    if kind in ("list", "pipeline"):
        for child in node.children:
            _arrange(child, lines) if child.is_named else _operator(child, lines)
    elif kind == "negated_command":
        lines[-1].negated = not lines[-1].negated
        for child in node.named_children:
            _arrange(child, lines)
    elif kind == "redirected_statement":
        _arrange_redirected(node, lines)
    elif kind.endswith("_redirect"):  # `$(< file)`
        lines[-1].items.append(Item(None, [node]))
    elif kind != "comment":
        lines[-1].items.append(Item(node))


def _operator(node: Node, lines: list[Line]) -> None:
    if node.type in ("&&", "||"):
        lines.append(Line(node.type))
    elif node.type == "|&":
        lines[-1].items[-1].mixed = True
    elif node.type not in ("|", "\n"):
        lines[-1].strange.append(node)


def _arrange_redirected(node: Node, lines: list[Line]) -> None:
    body = node.child_by_field_name("body")
    if body is not None:
        _arrange(body, lines)
    if body is None or not lines[-1].items:
        lines[-1].items.append(Item(None))
    last = lines[-1].items[-1]
    text = node.text or b""
    for one, other in pairwise(node.children):
        gap = text[one.end_byte - node.start_byte : other.start_byte - node.start_byte]
        if gap.strip() == b"-":
            last.dash = True
        elif not _BLANK.match(gap):
            lines[-1].strange.append(node)
    for redirect in node.children:
        if redirect == body:
            continue
        last.redirects.append(redirect)
        if redirect.type == "heredoc_redirect":
            _arrange_behind(redirect, last, lines)
        elif redirect.type == "file_redirect":
            # In `> a b` the second word is an argument of the command.
            last.words += destinations_of(redirect)[1]


def destinations_of(redirect: Node) -> tuple[list[Node], list[Node]]:
    """The parts of the word that a redirection is to, and the words behind it.

    Several parts: the grammar ends a word where a quoted one ends.
    """
    found = redirect.children_by_field_name("destination")
    text = redirect.text or b""
    count = min(1, len(found))
    while count < len(found):
        begin, end = found[count - 1].end_byte, found[count].start_byte
        if not _JOINT.match(text[begin - redirect.start_byte : end - redirect.start_byte]):
            break
        count += 1
    return found[:count], found[count:]


def _arrange_behind(redirect: Node, last: Item, lines: list[Line]) -> None:
    """What stands on a line behind `<<EOF`, which the grammar puts into the here-document."""
    for child in redirect.children:
        if child.type == "file_redirect":
            last.redirects.append(child)
            last.words += destinations_of(child)[1]
        elif child.type == "pipeline" or child.type in ("&&", "||"):
            _arrange(child, lines) if child.is_named else _operator(child, lines)
        elif child.is_named and child.type not in HereDocument.PARTS:
            if redirect.child_by_field_name("right") == child:
                _arrange(child, lines)
            else:
                last.words.append(child)


class HereDocument:
    """The text of a here-document.

    Attributes:
        text: as it is written; None if its end was not found where it is to be.
        quoted: whether it is taken to the letter.
        indented: whether tabs at the start of its lines are left out.
        body: its part of the tree, where there is something to expand.
        begin, end: where it begins and ends in the source.
    """

    PARTS: Final = frozenset({"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"})

    def __init__(self, source: Source, redirect: Node) -> None:
        start = next((each for each in redirect.children if each.type == "heredoc_start"), None)
        end = next((each for each in redirect.children if each.type == "heredoc_end"), None)
        self.body = next((each for each in redirect.children if each.type == "heredoc_body"), None)
        self.text: str | None = None
        self.quoted = False
        self.indented = False
        self.begin = self.end = 0
        if start is None or end is None:
            return
        written = source.text(start)
        self.quoted = any(each in written for each in "'\"\\")
        delimiter = re.sub(r"['\"\\]", "", written)
        self.indented = any(each.type == "<<-" for each in redirect.children)
        behind = [each for each in redirect.children if each.type not in HereDocument.PARTS]
        newline = source.bytes.find(b"\n", max([start.end_byte, *(e.end_byte for e in behind)]))
        self.begin = newline + 1
        text = source.between(self.begin, end.end_byte)
        lines = text.split("\n")
        self.end = end.end_byte - len(lines[-1].encode("utf-8", "replace"))
        bare = [line.lstrip("\t") for line in lines] if self.indented else lines
        if newline < 0 or delimiter not in bare or bare.index(delimiter) != len(lines) - 1:
            return
        self.text = "".join(f"{line}\n" for line in bare[:-1])
