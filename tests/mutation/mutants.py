"""Small faults put into source text: where one can be put, and how it is put there.

A mutant is known by its function and by the text of the lines that it changes, not by their
numbers, so that it is found again where the function has moved to.
"""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

__all__ = ["Mutant", "mutants_of", "place_of", "sample"]

_COMPARISONS: Final = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_ARITHMETIC: Final = {ast.Add: (r"\+", "-"), ast.Sub: ("-", "+"), ast.Mult: (r"\*", "//")}
_EXITS: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
# Their removal changes types or names only, or fails at import.
_KEPT_DECORATORS: Final = ("property", "classmethod", "staticmethod", "overload", "define")


@frozen
class Mutant:
    """A change of some lines of one function.

    Attributes:
        file: below the root.
        line: the first line that it changes, from 1.
        function: the qualified name, "" for what is in no function or class.
        operator: what kind of change it is.
        old: the lines that it changes, dedented.
        new: what stands in their place, dedented.
        nth: which of the equal lines of the function these are, from 0.
    """

    file: str
    line: int
    function: str
    operator: str
    old: str
    new: str
    nth: int = 0

    @property
    def name(self) -> str:
        return "|".join((self.function, str(self.nth), self.operator, self.old, self.new))

    def applied(self, text: str) -> str:
        """The text of the file with the change in it."""
        lines = text.splitlines(keepends=True)
        count = len(self.old.splitlines())
        replaced = lines[self.line - 1 : self.line - 1 + count]
        indent = replaced[0][: len(replaced[0]) - len(replaced[0].lstrip())]
        lines[self.line - 1 : self.line - 1 + count] = [textwrap.indent(self.new, indent) + "\n"]
        return "".join(lines)


def sample(root: Path, folders: Iterable[str], *, count: int, seed: int) -> list[Mutant]:
    """Some mutants of the modules in these folders (or files), at most one to a line."""
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for file in sorted({file for each in folders for file in _modules(root / each)}):
        name = file.relative_to(root).as_posix()
        for mutant in mutants_of(file.read_text(encoding="utf-8"), name):
            by_line.setdefault((mutant.file, mutant.line), []).append(mutant)
    chance = random.Random(seed)
    lines = chance.sample(sorted(by_line), min(count, len(by_line)))
    return [chance.choice(by_line[line]) for line in lines]


def _modules(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def mutants_of(text: str, file: str) -> list[Mutant]:
    """All mutants of a module, in the order of its text."""
    module = _Module(text, file)
    found = [made for node, function in module.nodes() for made in module.changes(node, function)]
    return sorted(found, key=lambda each: (each.line, each.operator, each.new))


def place_of(mutant: Mutant, texts: dict[str, str]) -> Mutant | None:
    """The same change where the function is now; None where the function has no such lines.

    Args:
        mutant: of an earlier state of the code.
        texts: the modules of today, by file.
    """
    first = mutant.old.splitlines()[0].strip()
    places = [
        evolve(mutant, file=file, line=line, function=function)
        for file, text in texts.items()
        if first in text
        for function, line in _Module(text, file).places(mutant)
    ]
    stem = Path(mutant.file).name
    places.sort(key=lambda each: (each.function != mutant.function, Path(each.file).name != stem))
    return places[0] if places else None


class _Module:
    """The text of a module, its tree, and which function each of its nodes belongs to."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self.spans: dict[str, list[tuple[int, int]]] = {"": [(1, len(self.lines))]}

    def nodes(self) -> Iterator[tuple[ast.AST, str]]:
        yield from self._below(self.tree, "")

    def _below(self, node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "type_params"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or _is_skipped(child):
                    continue
                inner = function
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    inner = f"{function}.{child.name}".lstrip(".")
                    span = (child.lineno, child.end_lineno or child.lineno)
                    self.spans.setdefault(inner, []).append(span)
                yield child, inner
                yield from self._below(child, inner)

    def changes(self, node: ast.AST, function: str) -> Iterator[Mutant]:
        for operator, start, end, new in _edits(self, node):
            first, last = start[0], end[0]
            old = self.lines[first - 1 : last]
            head = _cut(self.lines[first - 1], 0, start[1])
            tail = _cut(self.lines[last - 1], end[1], None)
            changed = (head + new + tail).rstrip()
            if not changed.strip():
                continue
            indent = len(old[0]) - len(old[0].lstrip())
            before = "\n".join(_outdented(line, indent) for line in old)
            after = "\n".join(_outdented(line, indent) for line in changed.splitlines())
            lines = self._equal_lines(function, before)
            nth = lines.index(first) if first in lines else 0
            yield Mutant(self.file, first, function, operator, before, after, nth)

    def _equal_lines(self, function: str, old: str) -> list[int]:
        """Where in a function these lines are, nested functions included."""
        wanted = [line.strip() for line in old.splitlines()]
        found = []
        for first, last in self.spans.get(function, ()):
            for line in range(first, last - len(wanted) + 2):
                here = self.lines[line - 1 : line - 1 + len(wanted)]
                if [each.strip() for each in here] == wanted:
                    found.append(line)
        return found

    def places(self, mutant: Mutant) -> Iterator[tuple[str, int]]:
        """(function, line) of the functions of this name, or of its last part, with these lines.

        A function that became private is the same one.
        """
        for _ in self.nodes():  # fills the spans
            pass
        last = _last(mutant.function)
        for function in self.spans:
            lines = self._equal_lines(function, mutant.old)
            if lines and _last(function) == last:
                yield function, lines[min(mutant.nth, len(lines) - 1)]

    def text(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        lines = self.lines[start[0] - 1 : end[0]]
        lines[-1] = _cut(lines[-1], 0, end[1])
        lines[0] = _cut(lines[0], start[1], None)
        return "\n".join(lines)


def _last(function: str) -> str:
    return function.rpartition(".")[2].lstrip("_")


_Edit = tuple[str, tuple[int, int], tuple[int, int], str]


def _edits(module: _Module, node: ast.AST) -> Iterator[_Edit]:
    """(operator, start, end, new text) of each change at this node."""
    yield from _of_conditions(module, node)
    yield from _of_constants(node)
    yield from _of_statements(node)


def _of_conditions(module: _Module, node: ast.AST) -> Iterator[_Edit]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for before, kind, after in zip([left, *others], ops, others, strict=False):
                yield from _between(module, "comparison", before, after, *_COMPARISONS[type(kind)])
        case ast.BoolOp(op=ast.And(), values=values):
            yield from _between(module, "and-or", values[-2], values[-1], "and", "or")
        case ast.BoolOp(op=ast.Or(), values=values):
            yield from _between(module, "and-or", values[-2], values[-1], "or", "and")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            if not _is_text(left) and not _is_text(right):
                yield from _between(module, "arithmetic", left, right, *_ARITHMETIC[type(op)])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negation", _start(node), _end(node), _source(module, operand)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield "negation", _start(test), _end(test), f"not ({_source(module, test)})"


def _of_constants(node: ast.AST) -> Iterator[_Edit]:
    match node:
        case ast.Constant(value=bool() as value):
            yield "constant", _start(node), _end(node), str(not value)
        case ast.Constant(value=int() as value):
            yield "off-by-one", _start(node), _end(node), str(value + 1)
        case ast.Constant(value=str() as value) if re.fullmatch(r"[\w.-]+", value):
            yield "constant", _start(node), _end(node), repr(f"{value}_")


def _of_statements(node: ast.AST) -> Iterator[_Edit]:
    match node:
        case ast.If(
            test=test, body=[*_, ast.Return() | ast.Raise() | ast.Continue() | ast.Break()]
        ):
            yield "guard", _start(test), _end(test), "False"
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "return", _start(node), _end(node), "return None"
        case ast.Raise():
            yield "raise", _start(node), _end(node), "pass"
        case (
            ast.Expr(value=ast.Call() | ast.Await())
            | ast.AugAssign()
            | ast.Delete()
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
        ):
            yield "statement", _start(node), _end(node), "pass"
        case ast.Break():
            yield "loop", _start(node), _end(node), "continue"
        case ast.Continue():
            yield "loop", _start(node), _end(node), "break"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            for each in node.decorator_list:
                if not any(kept in ast.unparse(each) for kept in _KEPT_DECORATORS):
                    start = (each.lineno, each.col_offset - 1)
                    yield "decorator", start, _end(each), "# no decorator"


def _between(
    module: _Module, operator: str, left: ast.expr, right: ast.expr, old: str, new: str
) -> Iterator[_Edit]:
    """The operator between two operands, parentheses and comments beside it left as they are."""
    text = module.text(_end(left), _start(right))
    word = rf"\b{old}\b" if old[0].isalpha() else old
    code = re.sub(r"#.*", lambda comment: " " * len(comment[0]), text)
    found = re.search(word, code)
    if found is not None:
        changed = text[: found.start()] + new + text[found.end() :]
        yield operator, _end(left), _start(right), changed


def _source(module: _Module, node: ast.expr) -> str:
    return module.text(_start(node), _end(node))


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _cut(line: str, start: int, end: int | None) -> str:
    """Columns of a tree are of UTF-8."""
    return line.encode()[start:end].decode()


def _outdented(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip())) :]


def _is_text(node: ast.expr) -> bool:
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, ast.JoinedStr)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_skipped(node: ast.AST) -> bool:
    """What no test can see, or only the type checker does."""
    match node:
        case (
            ast.JoinedStr()
            | ast.Assert()
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.Expr(value=ast.Constant())
            | ast.Call(func=ast.Attribute(value=ast.Name(id="logger")))
        ):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name in {"__all__", "logger", "__tracebackhide__"}
        case ast.FunctionDef(name=name, decorator_list=decorators):
            is_overload = any("overload" in ast.unparse(each) for each in decorators)
            return is_overload or name in {"__repr__", "__hash__"}
        case _:
            return False
