"""What the names and expressions of a program stand for, as far as no run is needed to tell."""

from __future__ import annotations

import ast
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from hermes_ext.effects._python.names import MODULES
from hermes_ext.effects._words import Hole, Word

Words: TypeAlias = tuple[Word, ...]
_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_MOST: Final = 24  # values of one expression
_DEPTH: Final = 80
_LARGEST: Final = 10**18
_UNKNOWN: Final[Words] = (Hole(),)
_NUMBER: Final = re.compile(r"-?\d+\Z")


class Program(ast.NodeVisitor):
    """The names of a program: what binds them, and where the imported ones come from.

    Attributes:
        nodes: all nodes, in the order in which they are written.
        imported: names that imports bind, and the one thing they stand for.
        bound: the other names, and the expressions they are given; None for what is not known.
        mixed: names that are bound in more than one of these ways.
        own_attributes: attributes that its classes and objects are given.
        modules: those whose import changes nothing, with the names that change nothing either.
    """

    def __init__(
        self, tree: ast.Module, most: int, modules: Mapping[str, frozenset[str]] = MODULES
    ) -> None:
        self.modules = modules
        self.imported: dict[str, str] = {}
        self.bound: dict[str, list[ast.expr | None]] = {}
        self.mixed: set[str] = set()
        self.own_attributes: set[str] = set()
        self._parents: dict[int, ast.AST] = {}
        self._asked: set[str] = set()
        self.nodes = self._ordered(tree, most)
        for node in self.nodes:
            self.visit(node)
        self.mixed.update(self.imported.keys() & self.bound.keys())

    def _ordered(self, tree: ast.Module, most: int) -> list[ast.AST]:
        nodes: list[ast.AST] = []
        ahead: list[ast.AST] = [tree]
        while ahead and len(nodes) <= most:
            node = ahead.pop()
            nodes.append(node)
            children = list(ast.iter_child_nodes(node))
            for child in children:
                self._parents[id(child)] = node
            ahead.extend(reversed(children))
        return nodes

    def is_pure(self, module: str, name: str) -> bool:
        """Whether a name of a module changes nothing, whatever it is given."""
        names = self.modules[module]
        if "*" in names:
            return not name.startswith("_")
        return name in names

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that a node stands in."""
        return self._parents.get(id(node))

    def is_called(self, node: ast.AST) -> bool:
        """Whether a node is the function of a call."""
        parent = self.parent(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def target(self, node: ast.AST) -> str | None:
        """What an expression stands for by its imports: `os.path.join`."""
        if isinstance(node, ast.Name):
            if node.id in self.mixed:
                return None
            return self.imported.get(node.id) or self._other_name(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.target(node.value)
            return f"{owner}.{node.attr}" if owner in self.modules else None
        return None

    def _other_name(self, name: str) -> str | None:
        """What a name stands for that is given one value, which is another name."""
        given = self.bound.get(name, ())
        value = given[0] if len(given) == 1 else None
        if not isinstance(value, ast.Name | ast.Attribute) or name in self._asked:
            return None
        self._asked.add(name)
        try:
            return self.target(value)
        finally:
            self._asked.discard(name)

    # -- bindings ---------------------------------------------------------------------------------

    def generic_visit(self, node: ast.AST) -> None:
        """Binds nothing; what stands in it is visited by itself."""

    def _import(self, name: str, what: str) -> None:
        if self.imported.setdefault(name, what) != what:
            self.mixed.add(name)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._import(alias.asname or top, alias.name if alias.asname else top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._import(alias.asname or alias.name, f"{node.module}.{alias.name}")

    def visit_FunctionDef(self, node: _Definition) -> None:
        self._give(node.name, None)
        if isinstance(self.parent(node), ast.ClassDef):
            self.own_attributes.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815
    visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_arg(self, node: ast.arg) -> None:
        self._give(node.arg, None)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign | ast.NamedExpr) -> None:
        self._assign(node.target, node.value)

    visit_NamedExpr = visit_AnnAssign  # noqa: N815

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._assign(node.target, None)

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        elements = self._elements(node.iter)
        for each in elements or (None,):
            self._assign(node.target, each)

    visit_AsyncFor = visit_For  # noqa: N815
    visit_comprehension = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        if node.optional_vars is not None:
            self._assign(node.optional_vars, None)

    def visit_ExceptHandler(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self._give(node.name, None)

    visit_MatchAs = visit_ExceptHandler  # noqa: N815
    visit_MatchStar = visit_ExceptHandler  # noqa: N815

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._give(node.rest, None)

    def visit_Call(self, node: ast.Call) -> None:
        """Attributes of objects that are made with keywords, or by the names of their fields."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name == "SimpleNamespace":
            self.own_attributes.update(each.arg for each in node.keywords if each.arg)
        elif name == "namedtuple":
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    self.own_attributes.update(each.value.replace(",", " ").split())

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._give(target.id, value)
            if isinstance(self.parent(self.parent(target) or target), ast.ClassDef):
                self.own_attributes.add(target.id)
        elif isinstance(target, ast.Attribute):
            self.own_attributes.add(target.attr)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, None)
        elif isinstance(target, ast.Tuple | ast.List):
            values: Sequence[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
                values = values if starred else value.elts
            for each, its in zip(target.elts, values, strict=True):
                self._assign(each, its)

    def _give(self, name: str, value: ast.expr | None) -> None:
        self.bound.setdefault(name, []).append(value)

    def _elements(self, node: ast.expr) -> list[ast.expr] | None:
        """What a loop over a display goes through."""
        if not isinstance(node, ast.List | ast.Tuple | ast.Set):
            return None
        return None if any(isinstance(each, ast.Starred) for each in node.elts) else node.elts


class Values(ast.NodeVisitor):
    """What expressions of a program may be as texts; a path counts as its text."""

    def __init__(
        self, program: Program, homes: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> None:
        self._program = program
        self._environ = environ or {}
        self._homes = tuple(homes) or _UNKNOWN
        self._known: dict[int, Words] = {}
        self._asked: set[int] = set()

    def of(self, node: ast.expr | None) -> Words:
        """All texts that an expression may be; a hole in it for what is not known."""
        if node is None:
            return _UNKNOWN
        key = id(node)
        found = self._known.get(key)
        if found is None:
            # A name that is made of itself, or an expression that is nested beyond reason.
            if key in self._asked or len(self._asked) > _DEPTH:
                return _UNKNOWN
            self._asked.add(key)
            found = self._known[key] = _bounded(self.visit(node))
            self._asked.remove(key)
        return found

    def of_list(self, node: ast.expr) -> list[Words] | None:
        """The items of a list; None if it is not known how many there are."""
        if isinstance(node, ast.Name):
            given = self._program.bound.get(node.id, ())
            if len(given) != 1 or given[0] is None or node.id in self._program.imported:
                return None
            if isinstance(given[0], ast.List) and self._is_passed_on(node.id):
                return None
            node = given[0]
        if isinstance(node, ast.List | ast.Tuple):
            if any(isinstance(each, ast.Starred) for each in node.elts):
                return None
            return [self.of(each) for each in node.elts]
        return None

    def _is_passed_on(self, name: str) -> bool:
        """Whether a list could be changed: it is used for more than once to be read."""
        uses = [
            node
            for node in self._program.nodes
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]
        return len(uses) > 1

    def generic_visit(self, node: ast.AST) -> Iterable[Word]:
        """Nothing is known of other expressions."""
        return _UNKNOWN

    def visit_Constant(self, node: ast.Constant) -> Iterable[Word]:
        value = node.value
        if isinstance(value, str):
            return (value,)
        small = isinstance(value, int) and abs(value) < _LARGEST
        return (str(value),) if small else _UNKNOWN

    def visit_Name(self, node: ast.Name) -> Iterable[Word]:
        program = self._program
        target = program.target(node)
        if target is not None:
            return self._fixed(target)
        given = program.bound.get(node.id)
        if not given or node.id in program.mixed:
            return _UNKNOWN
        return (each for value in given for each in self.of(value))

    def _fixed(self, target: str) -> Words:
        fixed = {"os.sep": "/", "os.path.sep": "/", "os.curdir": ".", "os.pardir": ".."}
        return (fixed[target],) if target in fixed else _UNKNOWN

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Iterable[Word]:
        return _each(_concatenated, [self.of(part) for part in node.values])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Iterable[Word]:
        plain = node.format_spec is None and node.conversion in (-1, ord("s"))
        return self.of(node.value) if plain else _UNKNOWN

    def visit_BinOp(self, node: ast.BinOp) -> Iterable[Word]:
        left, right = self.of(node.left), self.of(node.right)
        # A number is kept as its text here, and is not added to another as texts are.
        if any(isinstance(each, str) and _NUMBER.match(each) for each in (*left, *right)):
            return _UNKNOWN
        if isinstance(node.op, ast.Add):
            return _each(_concatenated, [left, right])
        if isinstance(node.op, ast.Div):
            return _each(_path, [left, right])
        if isinstance(node.op, ast.Mod):
            return (_cut(each, "%") for each in left)
        return _UNKNOWN

    def visit_IfExp(self, node: ast.IfExp) -> Iterable[Word]:
        return (*self.of(node.body), *self.of(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> Iterable[Word]:
        return (each for value in node.values for each in self.of(value))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Iterable[Word]:
        return self.of(node.value)

    def visit_Attribute(self, node: ast.Attribute) -> Iterable[Word]:
        target = self._program.target(node)
        if target is not None:
            return self._fixed(target)
        if node.attr == "parent":
            on = self.of(node.value)
            return (str(PurePosixPath(e).parent) if isinstance(e, str) else Hole() for e in on)
        return _UNKNOWN

    def visit_Subscript(self, node: ast.Subscript) -> Iterable[Word]:
        if self._program.target(node.value) == "os.environ":
            return self._variable([self.of(node.slice)])
        if isinstance(node.slice, ast.Slice):
            cut = _edges(node.slice)
            if cut is not None:
                return (e[cut] if isinstance(e, str) else Hole() for e in self.of(node.value))
        return _UNKNOWN

    def _variable(self, args: Sequence[Words]) -> Words:
        name = args[0][0] if args and len(args[0]) == 1 else None
        if name == "HOME":
            return self._homes
        known = self._environ.get(name) if isinstance(name, str) else None
        return _UNKNOWN if known is None else (known,)

    def visit_Call(self, node: ast.Call) -> Iterable[Word]:
        if any(isinstance(each, ast.Starred) for each in node.args) or node.keywords:
            return _UNKNOWN
        args = [self.of(each) for each in node.args]
        target = self._program.target(node.func)
        if target is not None:
            return self._function(target, args)
        if isinstance(node.func, ast.Name):
            own = node.func.id in self._program.bound or len(args) != 1
            if node.func.id == "chr" and not own:
                codes = [int(each) for each in args[0] if isinstance(each, str) and each.isdigit()]
                return tuple(chr(each) for each in codes if each < sys.maxunicode) or _UNKNOWN
            return args[0] if node.func.id == "str" and not own else _UNKNOWN
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, args)
        return _UNKNOWN

    def _function(  # noqa: PLR0911 - one form each
        self, target: str, args: Sequence[Words]
    ) -> Iterable[Word]:
        if target in PATH_CLASSES:
            return _each(_path, args or [(".",)])
        if target == "os.path.join" and args:
            return _each(_joined, args)
        if target in ("os.getcwd", "pathlib.Path.cwd"):
            return (".",)
        if target == "pathlib.Path.home":
            return self._homes
        if target in ("os.getenv", "os.environ.get"):
            return self._variable(args)
        if target == "os.path.expanduser" and args:
            return self._at_home(args[0])
        if target in ("os.fspath", "os.path.realpath") and args:
            return args[0]
        if target in ("os.path.normpath", "os.path.abspath") and args:
            return (os.path.normpath(e) if isinstance(e, str) else Hole() for e in args[0])
        if target == "os.path.dirname" and args:
            return (os.path.dirname(e) if isinstance(e, str) else Hole() for e in args[0])
        return _UNKNOWN

    def _method(  # noqa: PLR0911 - one form each
        self, node: ast.Call, func: ast.Attribute, args: Sequence[Words]
    ) -> Iterable[Word]:
        owner = self._program.target(func.value)
        if owner is not None:
            return self._function(f"{owner}.{func.attr}", args)
        # In another encoding it would be another text.
        data = _bytes_of(func.value) if func.attr == "decode" and not args else None
        if data is not None:
            return (data.decode("utf-8", "replace"),)
        on = self.of(func.value)
        if func.attr == "join" and len(node.args) == 1:
            items = self.of_list(node.args[0])
            return _UNKNOWN if items is None or len(on) > 1 else _each(_between(on[0]), items)
        if func.attr == "joinpath":
            return _each(_path, [on, *args])
        if func.attr in ("resolve", "absolute", "as_posix") and not args:
            return on
        if func.attr == "expanduser":
            return self._at_home(on)
        if func.attr == "format":
            return (_cut(_cut(each, "{"), "}") for each in on)
        if func.attr in _ON_TEXTS and not args:
            return (getattr(e, func.attr)() if isinstance(e, str) else Hole() for e in on)
        return _UNKNOWN

    def _at_home(self, paths: Words) -> Iterable[Word]:
        for path in paths:
            if isinstance(path, str) and path.startswith("~"):
                name, _, rest = path.partition("/")
                for home in self._homes:
                    known = name == "~" and isinstance(home, str)
                    yield os.path.join(str(home), rest) if known else Hole()
            else:
                yield path


def _edges(part: ast.Slice) -> slice | None:
    """A slice of numbers that stand there; None where they are not known."""
    try:
        numbers = [
            None if each is None else operator.index(ast.literal_eval(each))
            for each in (part.lower, part.upper, part.step)
        ]
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    return None if numbers[2] == 0 else slice(*numbers)


def _bytes_of(node: ast.expr) -> bytes | None:
    """Bytes that stand there, or that `bytes.fromhex` makes of what stands there."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
        return node.value
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return None
    text = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
    if not isinstance(text, str) or ast.unparse(node.func) != "bytes.fromhex":
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


PATH_CLASSES: Final = tuple(
    f"pathlib.{name}" for name in ("Path", "PosixPath", "PurePath", "PurePosixPath")
)
_ON_TEXTS: Final = frozenset({"lower", "lstrip", "rstrip", "strip", "upper"})


def _each(make: Callable[[Sequence[Word]], Word], parts: Sequence[Words]) -> Iterator[Word]:
    """What is made of the parts, for all they may be."""
    return (make(chosen) for chosen in islice(product(*parts), _MOST + 1))


def _concatenated(parts: Sequence[Word]) -> Word:
    text: Word = ""
    for part in parts:
        if isinstance(text, Hole):
            after = part.suffix if isinstance(part, Hole) else text.suffix + part
            text = Hole(text.prefix, suffix=after)
        elif isinstance(part, Hole):
            text = Hole(text + part.prefix, suffix=part.suffix)
        else:
            text += part
    return text


def _between(separator: Word) -> Callable[[Sequence[Word]], Word]:
    def join(parts: Sequence[Word]) -> Word:
        between = [each for part in parts for each in (separator, part)]
        return _concatenated(between[1:])

    return join


def _joined(parts: Sequence[Word]) -> Word:
    """Parts of a path; one that is absolute begins anew."""
    path = ""
    for place, part in enumerate(parts):
        if isinstance(part, Hole):
            after = _end_of(parts[place + 1 :], part.suffix)
            # Without a beginning that is known, it may be absolute.
            return Hole(os.path.join(path, part.prefix) if part.prefix else "", suffix=after)
        path = os.path.join(path, part)
    return path


def _end_of(parts: Sequence[Word], end: str) -> str:
    for part in parts:
        end = part.suffix if isinstance(part, Hole) else os.path.join(end, part)
    return end


def _path(parts: Sequence[Word]) -> Word:
    """The same as `pathlib` writes it."""
    joined = _joined(parts)
    if isinstance(joined, Hole):
        shown = str(PurePosixPath(joined.prefix)) if joined.prefix else ""
        return Hole(shown, suffix=joined.suffix)
    return str(PurePosixPath(joined))


def _cut(text: Word, mark: str) -> Word:
    """A text whose rest, from a mark on, is filled in."""
    if isinstance(text, Hole):
        return Hole(text.prefix.partition(mark)[0])
    before, found, _ = text.partition(mark)
    return Hole(before) if found else text


def _bounded(values: Iterable[Word]) -> Words:
    found = tuple(dict.fromkeys(islice(values, _MOST + 1)))
    return found if 0 < len(found) <= _MOST else _UNKNOWN
