"""A program in Python: what it announces by name, and whether anything else could happen.

Nothing else happens if every name in it is known to change nothing, whatever it is given, or stands
where it is called and the call says what it changes. A value that a program can get hold of is then
harmless, and so is calling it, whichever way it came there.
"""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from hermes_ext.effects._python import names
from hermes_ext.effects._python.calls import Calls
from hermes_ext.effects._python.values import PATH_CLASSES, Program, Values
from hermes_ext.effects._record import TooMuch
from hermes_ext.effects._spelling import homes_of
from hermes_ext.effects._words import Word

if TYPE_CHECKING:
    from hermes_ext.effects._programs.call import Shell

_LONGEST: Final = 1_000_000  # characters
_MOST_NODES: Final = 200_000  # 30,000 statements that print a word have 150,001
_MOST_REASONS: Final = 3
_MOST_TEXTS: Final = 5_000


def read_code(
    code: str, shell: Shell, *, looks_for_modules: bool = False, folders: Sequence[str] = ()
) -> None:
    """Announce what the text of a Python program does.

    Args:
        code: the program.
        shell: starts what the program starts; its recorder is told what happens.
        looks_for_modules: whether the interpreter looks for modules where the shell stands.
        folders: where it looks instead.
    """
    recorder = shell.rec
    if len(code) > _LONGEST:
        raise TooMuch(_LONGEST, "characters of Python code")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that Python warns of
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        recorder.unknown("the code is not understood as Python", code)
        return
    program = Program(tree, _MOST_NODES, names.with_tools(recorder.machine.tools))
    if len(program.nodes) > _MOST_NODES:
        raise TooMuch(_MOST_NODES, "parts of Python code")
    reading = _Reading(program, shell)
    if looks_for_modules:
        reading.look_for_modules(folders or recorder.cwd)
    try:
        reading.read()
    except RecursionError:
        recorder.unknown("the code is nested too deeply", code)


class _Reading(ast.NodeVisitor):
    """One program. Each node is visited by itself, not with what stands in it."""

    def __init__(self, program: Program, shell: Shell) -> None:
        self._program = program
        self._rec = rec = shell.rec
        self._values = Values(program, homes_of(rec.machine), rec.variables)
        self._calls = Calls(program, self._values, shell)
        self._doubt = self._calls.doubt
        self._sets_attributes = any(
            isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
            for node in program.nodes
        )

    def look_for_modules(self, folders: Sequence[str]) -> None:
        """Files in the working directory stand in for modules of the same name."""
        if not folders or not self._rec.machine.local:
            self._rec.unknown("where Python looks for modules is not known")
        for directory in folders:
            made = (each.partition(".")[0] for each in self._rec.made_below(directory))
            found = _modules_in(directory, self._may_import)
            for name in (*found, *filter(self._may_import, made)):
                self._rec.unknown(f"Python takes the module {name} from {directory!r}", directory)

    def _may_import(self, name: str) -> bool:
        """Whether a module of this name may be imported by one that the program imports."""
        return (
            name in sys.stdlib_module_names
            or name in self._program.modules
            or name == "tzdata"
            or name.startswith("_sysconfigdata")
        )

    def read(self) -> None:
        self._calls.move()
        for node in self._program.nodes:
            self.visit(node)
        if self._calls.reasons:
            for reason in list(self._calls.reasons)[:_MOST_REASONS]:
                self._rec.unknown(reason)
            self._mention()

    def _mention(self) -> None:
        """What is not understood may do something to whatever it speaks of."""
        texts: dict[Word, None] = {}
        for node in self._program.nodes:
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call):
                for word in self._values.of(node):
                    if isinstance(word, str) or word.prefix or word.suffix:
                        texts[word] = None
            elif isinstance(node, ast.keyword) and node.arg:
                texts[node.arg] = None
            elif isinstance(node, ast.ImportFrom):
                texts |= {f"{node.module}.{alias.name}": None for alias in node.names}
        if len(texts) > _MOST_TEXTS:
            raise TooMuch(_MOST_TEXTS, "texts in Python code that is not understood")
        for word in texts:
            self._rec.mention(word)

    # -- nodes ------------------------------------------------------------------------------------

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, _HARMLESS_NODES):
            self._doubt(f"{type(node).__name__} is not known")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in self._program.modules:
                self._doubt(f"importing {alias.name} may do anything")
        self._named(node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module not in self._program.modules:
            self._doubt(f"importing {node.module or 'what is near'} may do anything")
        elif any(alias.name == "*" for alias in node.names):
            self._doubt(f"which names come from {node.module} is not known")
        self._named(node.names)

    def _named(self, aliases: list[ast.alias]) -> None:
        if any((alias.asname or "").startswith("__") for alias in aliases):
            self._doubt("a name that Python uses itself is set")

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            if node.id.startswith("__") and node.id not in names.OWN_DUNDERS:
                self._doubt(f"{node.id} is set")
        elif node.id in self._program.mixed:
            self._doubt(f"what {node.id} stands for is not known")
        elif node.id in self._program.imported:
            self._imported(node, self._program.imported[node.id])
        elif node.id in self._program.bound:
            if node.id in _POWERFUL:  # in another scope it is the built-in one
                self._doubt(f"what {node.id} stands for is not known")
        elif node.id not in names.BUILTINS:
            if not self._calls.explains(node, f"builtins.{node.id}"):
                self._doubt(f"{node.id} may do anything")
        elif node.id == "type" and not self._only_names_types(node):
            self._doubt("what a class is used for is not known")

    def _only_names_types(self, node: ast.Name) -> bool:
        """Whether `type` is asked what something is: a class that is called may open a file."""
        call = self._program.parent(node)
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            return self._is_checked_against(node)
        use = self._program.parent(call)
        if isinstance(use, ast.Attribute):
            return use.attr in ("__name__", "__qualname__")
        if isinstance(use, ast.Call) and isinstance(use.func, ast.Name):
            return (
                use.func.id in ("print", "repr", "str") and use.func.id not in self._program.bound
            )
        return isinstance(use, ast.Compare | ast.FormattedValue)

    def _is_checked_against(self, node: ast.AST) -> bool:
        """Whether a class is an argument of `isinstance`, or an annotation."""
        parent = self._program.parent(node)
        if isinstance(parent, ast.Tuple):
            parent = self._program.parent(parent)
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            bound = parent.func.id in self._program.bound
            return parent.func.id in ("isinstance", "issubclass") and not bound
        return isinstance(parent, ast.arg | ast.AnnAssign) and parent.annotation is node

    def _imported(self, node: ast.Name | ast.Attribute, target: str) -> None:
        """A use of something that was imported."""
        parent = self._program.parent(node)
        if target in self._program.modules:
            if not isinstance(parent, ast.Attribute) and not self._calls.only_shown(node):
                self._doubt(f"the module {target} is handed on")
            return
        module, _, name = target.rpartition(".")
        if module not in self._program.modules:
            self._doubt(f"{target} may do anything")
        elif self._program.is_pure(module, name):
            if (
                self._sets_attributes
                and target in PATH_CLASSES
                and not self._is_used_as_class(node)
            ):
                self._doubt("attributes of classes may be set")
        elif not self._calls.explains(node, target):
            self._doubt(f"{target} may do anything")

    def _is_used_as_class(self, node: ast.AST) -> bool:
        parent = self._program.parent(node)
        of_a_call = self._program.is_called(node) or isinstance(parent, ast.Attribute)
        return of_a_call or self._is_checked_against(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = self._program.target(node.value)
        if not isinstance(node.ctx, ast.Load):
            self._set(node, owner)
        elif owner in self._program.modules:
            if node.attr not in names.OF_ANY_MODULE:
                self._imported(node, f"{owner}.{node.attr}")
        elif not self._is_harmless(node):
            self._doubt(f"what .{node.attr} does is not known")

    def _is_harmless(self, node: ast.Attribute) -> bool:
        if node.attr == "__init__":
            return self._is_of_super(node.value)
        if self._calls.knows_method(node.attr):
            return self._program.is_called(node)
        if node.attr in names.ATTRIBUTES:
            return True
        own = node.attr in self._program.own_attributes and not node.attr.startswith("__")
        return own and node.attr not in names.LEADS_AWAY

    def _is_of_super(self, node: ast.expr) -> bool:
        """Called again, `__init__` of some objects opens a file, or starts a program."""
        called = node.func if isinstance(node, ast.Call) else None
        return isinstance(called, ast.Name) and called.id == "super"

    def _set(self, node: ast.Attribute, owner: str | None) -> None:
        own = isinstance(node.value, ast.Name) and node.value.id in self._program.bound
        if owner is not None or not own or node.attr.startswith("__"):
            self._doubt(f"the attribute {node.attr} is set")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if node.name.startswith("__"):
            self._doubt(f"{node.name} is set")
        if any(self._program.target(each.value) != "abc.ABCMeta" for each in node.keywords):
            self._doubt(f"how the class {node.name} is made is not known")
        if self._sets_attributes and any(
            self._program.target(base) in PATH_CLASSES for base in node.bases
        ):
            self._doubt("attributes of classes may be set")

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        plain = isinstance(node.cls, ast.Name) and node.cls.id in _PLAIN_CLASSES
        if not plain or node.kwd_attrs:
            self._doubt("a pattern asks for attributes")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        stored = not isinstance(node.ctx, ast.Load)
        if stored and self._program.target(node.value) == "os.environ":
            for word in self._values.of(node.slice):
                if isinstance(word, str):
                    self._rec.variable(word)

    def visit_Call(self, node: ast.Call) -> None:
        self._calls.read(node)


_POWERFUL: Final = frozenset(
    {
        "__build_class__", "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint",
        "compile", "copyright", "credits", "delattr", "eval", "exec", "getattr", "globals", "help",
        "license", "locals", "open", "setattr", "vars",
    }
)  # fmt: skip
"""Built-in names that a program which binds them itself may mean as well."""

_PLAIN_CLASSES: Final = frozenset(
    {"bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
)

_HARMLESS_NODES: Final = (
    ast.AnnAssign, ast.Assert, ast.Assign, ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith,
    ast.AugAssign, ast.Await, ast.BinOp, ast.BoolOp, ast.Break, ast.Compare, ast.Constant,
    ast.Continue, ast.Delete, ast.Dict, ast.DictComp, ast.ExceptHandler, ast.Expr,
    ast.FormattedValue, ast.FunctionDef, ast.GeneratorExp, ast.Global, ast.For, ast.If, ast.IfExp,
    ast.JoinedStr, ast.Lambda, ast.List, ast.ListComp, ast.Match, ast.MatchAs, ast.MatchMapping,
    ast.MatchOr, ast.MatchSequence, ast.MatchSingleton, ast.MatchStar, ast.MatchValue, ast.Module,
    ast.NamedExpr, ast.Nonlocal, ast.Pass, ast.Raise, ast.Return, ast.Set, ast.SetComp, ast.Slice,
    ast.Starred, ast.Subscript, ast.Try, ast.TryStar, ast.Tuple, ast.UnaryOp, ast.While, ast.With,
    ast.Yield, ast.YieldFrom, ast.alias, ast.arg, ast.arguments, ast.boolop, ast.cmpop,
    ast.comprehension, ast.expr_context, ast.keyword, ast.match_case, ast.operator, ast.unaryop,
    ast.withitem,
)  # fmt: skip


def _modules_in(directory: str, wanted: Callable[[str], bool]) -> Iterator[str]:
    """Modules of these names that a directory has its own of."""
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return
    for entry in entries:
        name, dot, kind = entry.name.partition(".")
        if name in names.NEVER_IMPORTED or not wanted(name):
            continue
        a_file = kind in ("py", "pyc", "pyd") or kind.endswith("so")
        if a_file if dot else os.path.isfile(os.path.join(entry.path, "__init__.py")):
            yield name
