"""Judges Python text: whether it may change what is protected.

Texts are put together as far as that can be done without running anything: sums, f-strings, joins,
parts of paths, names that are given such values. Code that speaks of something protected must then
be code that only reads: every call in it is one that is known to.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Final, TypeAlias

from attrs import Factory, define, field

from hermes_ext._guard.commands import Refused
from hermes_ext._guard.look import Look
from hermes_ext._guard.mentions import Mention, loosened, mention_in
from hermes_ext._guard.places import ANY
from hermes_ext._guard.words import Values

JudgeShell: TypeAlias = Callable[[str, Values], bool]
JudgeWords: TypeAlias = Callable[[Sequence[str], Values], bool]

_MOST: Final = 24  # values of one expression; beyond, it counts as unknown
_DEPTH: Final = 60
_LONGEST: Final = 300_000  # characters; what is longer counts as code that nobody can read

# Modules whose import does nothing, and out of which only calls that are listed below are made.
_READING_MODULES: Final = frozenset(
    {
        "__future__", "abc", "ast", "bisect", "collections", "configparser", "csv", "dataclasses",
        "datetime", "decimal", "difflib", "enum", "fnmatch", "fractions", "functools", "glob",
        "hashlib", "heapq", "itertools", "json", "math", "operator", "os", "os.path", "pathlib",
        "platform", "pprint", "random", "re", "stat", "statistics", "string", "sys", "textwrap",
        "time", "tomllib", "typing", "unicodedata", "yaml",
    }
)  # fmt: skip

# Functions and methods that change nothing outside of the program, by their last name.
_READING_CALLS: Final = frozenset(
    {
        "abs", "abspath", "absolute", "add", "all", "any", "append", "as_posix", "ascii", "asdict",
        "basename", "bool", "bytes", "capitalize", "casefold", "ceil", "chr", "clear", "compile",
        "copy", "count", "cwd", "dedent", "deque", "dict", "digest", "dirname", "divmod", "encode",
        "decode", "defaultdict", "Counter", "OrderedDict", "endswith", "enumerate", "exists",
        "expanduser", "expandvars", "extend", "filter", "find", "findall", "finditer", "float",
        "floor", "fnmatch", "format", "frozenset", "fromisoformat", "fromtimestamp", "fsum",
        "fullmatch", "get", "getcwd", "getmtime", "getpid", "getsize", "glob", "group", "groups",
        "groupdict", "hash", "hex", "hexdigest", "home", "id", "iglob", "index", "insert", "int",
        "is_dir", "is_file", "is_symlink", "isabs", "isalnum", "isalpha", "isdigit", "isdir",
        "isfile", "isinstance", "islink", "isoformat", "isspace", "issubclass", "items", "iter",
        "iterdir", "join", "joinpath", "keys", "len", "list", "listdir", "literal_eval", "ljust",
        "log", "lower", "lstat", "lstrip", "map", "match", "max", "md5", "min",
        "most_common", "next", "normpath", "now", "oct", "ord", "partition", "Path",
        "PurePath", "PosixPath", "pop", "popitem", "pow", "pprint", "print", "range", "read",
        "read_bytes", "read_text", "readline", "readlines", "readlink", "realpath", "relative_to",
        "relpath", "remove_suffix", "removeprefix", "removesuffix", "replace", "repr", "resolve",
        "reversed", "rfind", "rglob", "rjust", "round", "rpartition", "rsplit", "rstrip",
        "safe_load", "samefile", "scandir", "search", "set", "setdefault", "sha1", "sha256",
        "sha512", "slice", "sort", "sorted", "split", "splitext", "splitlines", "sqrt", "st_mode",
        "startswith", "stat", "str", "strftime", "strip", "strptime", "sub", "subn", "sum",
        "title", "today", "total_seconds", "translate", "tuple", "type", "union", "update",
        "upper", "values", "walk", "with_name", "with_suffix", "zfill", "zip", "dumps",
        "DictReader", "reader", "intersection", "difference", "is_relative_to", "fromkeys",
        "sha224", "sha384", "blake2b", "perf_counter", "namedtuple", "dataclass", "lru_cache",
        "read_file", "search_files",
    }
)  # fmt: skip

_HARMLESS_LOADERS: Final = frozenset({"json", "tomllib"})

# Of the names above, those that change files when they are called on a path.
_ON_PATHS: Final = frozenset({"replace"})

_SHELL_CALLS: Final = frozenset(
    {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell", "terminal"}
)
_PROCESS_CALLS: Final = frozenset(
    {"run", "call", "check_call", "check_output", "Popen", "create_subprocess_exec"}
)
_PROCESS_MODULES: Final = frozenset({"subprocess", "sp", "asyncio", "sh"})
_WHOLE_FOLDERS: Final = frozenset(
    {"rmtree", "removedirs", "rename", "renames", "move", "replace", "copytree"}
)
_DYNAMIC: Final = frozenset(
    {"__import__", "compile", "eval", "exec", "import_module", "run_module", "run_path"}
)


def judge_python(text: str, cwd: Values, look: Look, shell: JudgeShell, words: JudgeWords) -> bool:
    """Judge the text of a Python program.

    Args:
        text: the program.
        cwd: the directories that its relative paths may start from.
        look: at the disk.
        shell: judges shell text that it runs.
        words: judges a program that it runs, with its arguments.

    Returns:
        Whether it changes nothing.

    Raises:
        Refused: it may change what is protected.
    """
    if len(text) > _LONGEST:
        raise Refused(Mention("command", "more code than can be looked at"), "python")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that Python warns of
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _refuse_mentions((text, loosened(text)), cwd, look, "python")
        return False
    try:
        return _Reading(text, look, shell, words, cwd).judged(tree)
    except RecursionError:
        raise Refused(Mention("command", "code that is nested too deeply"), "python") from None


def _refuse_mentions(texts: Iterable[str], bases: Values, look: Look, by: str) -> None:
    for each in texts:
        mention = mention_in(each, bases, look)
        if mention is not None and mention.kind != "home":
            raise Refused(mention, by)


@define
class _Reading:
    """One program, read: what its texts may be, and what it calls."""

    text: str
    look: Look
    shell: JudgeShell
    words: JudgeWords
    bases: Values
    names: dict[str, Values] = Factory(dict)
    modules: dict[str, str] = Factory(dict)
    lists: dict[str, ast.AST] = Factory(dict)
    depth: int = 0
    cached: dict[int, Values] = field(factory=dict)

    def judged(self, tree: ast.Module) -> bool:
        nodes = list(ast.walk(tree))
        self._name(nodes)
        self._go(nodes)
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        changes = [
            what for node in nodes if (what := self._changes(node, id(node) in called)) is not None
        ]
        self._check_calls(nodes)
        if not changes:
            return True
        for text in self._said(nodes):
            mention = mention_in(text, self.bases, self.look)
            if mention is not None:
                raise Refused(mention, changes[0])
        return False

    # -- what texts are -------------------------------------------------------------------------

    def _name(self, nodes: Sequence[ast.AST]) -> None:
        """What names stand for: twice, because one may be made of another further down."""
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.modules[alias.asname or alias.name] = alias.name
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for name, value in _assignments(nodes):
            if isinstance(value, ast.List | ast.Tuple):
                self.lists[name] = value
            elif isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
                owner = self.modules.get(value.value.id)
                if owner is not None:  # a function under another name
                    self.modules[name] = f"{owner}.{value.attr}"
        for _ in range(3):
            self.cached.clear()
            found: dict[str, Values] = {}
            for name, value in _assignments(nodes):
                found[name] = _bounded((*found.get(name, ()), *self.values(value)))
            self.names = found
        self.cached.clear()

    def _go(self, nodes: Sequence[ast.AST]) -> None:
        """Directories that the program changes to: relative paths may start there as well."""
        for node in nodes:
            if isinstance(node, ast.Call) and _last(node.func) in ("chdir", "fchdir") and node.args:
                reached = tuple(
                    os.path.join(base, each)
                    for each, base in product(self.values(node.args[0]), self.bases)
                )
                self.bases = _bounded((*self.bases, *reached))

    def values(self, node: ast.AST) -> Values:
        """What an expression may be as a text; holes where that is not known."""
        known = self.cached.get(id(node))
        if known is None:
            self.depth += 1
            known = (ANY,) if self.depth > _DEPTH else _bounded(self._values(node))
            self.depth -= 1
            self.cached[id(node)] = known
        return known

    def _values(self, node: ast.AST) -> Iterable[str]:  # noqa: PLR0911 - one form each
        if isinstance(node, ast.Constant):
            return _text_of(node.value)
        if isinstance(node, ast.Name):
            return self.names.get(node.id, (ANY,))
        if isinstance(node, ast.JoinedStr):
            return self._joined([self.values(part) for part in node.values], "")
        if isinstance(node, ast.FormattedValue):
            return self.values(node.value)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.IfExp):
            return (*self.values(node.body), *self.values(node.orelse))
        if isinstance(node, ast.BoolOp):
            return (each for value in node.values for each in self.values(value))
        if isinstance(node, ast.NamedExpr):
            return self.values(node.value)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        return (ANY,)

    def _joined(self, parts: Sequence[Values], between: str) -> Iterable[str]:
        return (between.join(each) for each in islice(product(*parts), _MOST + 1))

    def _binary(self, node: ast.BinOp) -> Iterable[str]:
        left, right = self.values(node.left), self.values(node.right)
        if isinstance(node.op, ast.Add):
            return self._joined((left, right), "")
        if isinstance(node.op, ast.Div):
            return self._paths((left, right))
        if isinstance(node.op, ast.Mod):
            return (_with_holes(each) for each in left)
        if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Constant):
            times = node.right.value
            known = isinstance(times, int) and times in range(1, 9)
            return (each * int(times) for each in left) if known else (ANY,)  # type: ignore[arg-type]
        return (ANY,)

    def _paths(self, parts: Sequence[Values]) -> Iterable[str]:
        return (os.path.join(*each) for each in islice(product(*parts), _MOST + 1))

    def _called(self, node: ast.Call) -> Iterable[str]:  # noqa: PLR0911 - one form each
        name = self._name_of(node.func)
        on = node.func.value if isinstance(node.func, ast.Attribute) else None
        args = [self.values(each) for each in node.args]
        if name == "join" and on is not None and not _is_module(on, "path"):
            return self._listed(on, node.args)
        if name in {"join", "joinpath", "Path", "PurePath", "PosixPath", "PurePosixPath"}:
            before = [self.values(on)] if name == "joinpath" and on is not None else []
            return self._paths([*before, *args]) if before or args else ("",)
        if name in {"home"} or (name == "expanduser" and not args and on is None):
            return self.look.protected.user_homes
        if name in _SAME:
            source = args[0] if args else self.values(on) if on is not None else (ANY,)
            return (self._homely(each) for each in source)
        if name in {"format", "format_map"} and on is not None:
            return (_with_holes(each) for each in self.values(on))
        if name == "replace" and on is not None and len(args) > 1:
            return (
                text.replace(old, new)
                for text, old, new in islice(product(self.values(on), *args[:2]), _MOST + 1)
            )
        if name in {"with_name", "with_suffix"} and on is not None and args:
            return (
                os.path.join(os.path.dirname(path), new)
                for path, new in product(self.values(on), args[0])
                if name == "with_name"
            )
        if name == "get_hermes_home":
            return (self.look.protected.hermes_home,)
        if name in {"getenv", "get", "setdefault", "pop"} and args:
            return (*(each for key in args[0] for each in self._variable(key)), *_second(args))
        if name in {"getcwd", "cwd"}:
            return self.bases
        if name == "fromhex" and args:
            return (_unhexed(each) for each in args[0])
        if name == "chr" and node.args and isinstance(node.args[0], ast.Constant):
            value = node.args[0].value
            return (chr(value),) if isinstance(value, int) and value in range(1, 0x11000) else ()
        return (ANY,)

    def _listed(self, between: ast.AST, args: Sequence[ast.AST]) -> Iterable[str]:
        """`"".join([…])`, in any order that its parts may have been put into."""
        if len(args) != 1 or not isinstance(args[0], ast.List | ast.Tuple):
            return (ANY,)
        parts = [self.values(each) for each in args[0].elts]
        return (each for one in self.values(between) for each in self._joined(parts, one))

    def _item(self, node: ast.Subscript) -> Iterable[str]:
        keys = () if isinstance(node.slice, ast.Slice) else self.values(node.slice)
        if "HERMES_HOME" in keys or _last(node.value) in {"environ", "environb"}:
            return (each for key in keys for each in self._variable(key))
        whole = self.values(node.value)
        step = node.slice.step if isinstance(node.slice, ast.Slice) else None
        if isinstance(step, ast.UnaryOp):  # "lmay.gifnoc"[::-1]
            return (each[::-1] for each in whole)
        return (ANY,)

    def _attribute(self, node: ast.Attribute) -> Iterable[str]:
        if node.attr == "parent":
            return (os.path.dirname(each) for each in self.values(node.value))
        return {"sep": ("/",), "curdir": (".",), "pardir": ("..",)}.get(node.attr, (ANY,))

    def _variable(self, name: str) -> Values:
        protected = self.look.protected
        if name == "HERMES_HOME":
            return (protected.hermes_home,)
        return protected.user_homes if name in {"HOME", "USERPROFILE"} else (ANY,)

    def _homely(self, path: str) -> str:
        homes = self.look.protected.user_homes
        return f"{homes[0]}{path[1:]}" if path == "~" or path.startswith("~/") else path

    def _said(self, nodes: Sequence[ast.AST]) -> Iterator[str]:
        """All texts that are made in the program, and its own."""
        yield self.text
        for node in nodes:
            if isinstance(node, ast.expr):
                for text in self.values(node):
                    if text and text != ANY:
                        yield text
            elif isinstance(node, ast.keyword) and node.arg:
                yield f"{node.arg}="

    # -- what is done ---------------------------------------------------------------------------

    def _changes(self, node: ast.AST, called: bool) -> str | None:  # noqa: PLR0911 - one form each
        """What in a node may change something, by its name; None if nothing does.

        called: whether the node is the function of a call, which is looked at as a whole.
        """
        if isinstance(node, ast.Import):
            found = (a.name for a in node.names if a.name not in _READING_MODULES)
            return next(found, None)
        if isinstance(node, ast.ImportFrom):
            read_only = node.module in _READING_MODULES or node.module == "hermes_tools"
            return None if read_only and not node.level else str(node.module)
        if isinstance(node, ast.Delete):
            return next((_last(t) for t in node.targets if _is_environ(t)), None)
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return next(("environ" for each in targets if _is_environ(each)), None)
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            return node.attr
        if isinstance(node, ast.Name) and node.id in _NEVER_NAMED:
            return node.id
        if not isinstance(node, ast.Call):
            return None if called else self._handed_on(node)
        name = self._name_of(node.func)
        if name == "open":
            return self._opened(node)
        if name in _ON_PATHS and not self._on_a_text(node):
            return name
        if name in {"load", "loads"}:
            return None if self._module(node.func) in _HARMLESS_LOADERS else name
        if isinstance(node.func, ast.Name) and node.func.id in self.names:
            return None if self._is_own(node.func.id) else node.func.id
        if isinstance(node.func, ast.Attribute) and _last(node.func.value) == "environ":
            return None if name in {"get", "items", "keys", "copy"} else name
        to_the_terminal = name in {"write", "flush"} and _is_output(node.func)
        return None if name in _READING_CALLS or to_the_terminal else name or "a call"

    def _on_a_text(self, node: ast.Call) -> bool:
        """Whether it is `str.replace`, and not a path's or the module's of that name."""
        function = node.func
        if not isinstance(function, ast.Attribute) or len(node.args) < 2:
            return False
        return _last(function.value) != "os" and not (
            isinstance(function.value, ast.Name) and function.value.id in self.modules
        )

    def _handed_on(self, node: ast.AST) -> str | None:
        """A function that changes things and is used without a call: `map(os.remove, …)`."""
        name = self._name_of(node) if isinstance(node, ast.Attribute | ast.Name) else ""
        of_os = isinstance(node, ast.Attribute) and _last(node.value) == "os"
        changes = name in _CHANGING_NAMES or name == "open" or (of_os and name == "replace")
        return name if changes else None

    def _name_of(self, function: ast.AST) -> str:
        """The last name of a function, as it is called where it was imported from."""
        name = _last(function)
        if isinstance(function, ast.Name) and name in self.modules:
            return self.modules[name].rpartition(".")[2]
        return name

    def _opened(self, node: ast.Call) -> str | None:
        path_first = isinstance(node.func, ast.Name) or not self._on_a_path(node)
        place = 1 if path_first else 0
        mode = next((k.value for k in node.keywords if k.arg == "mode"), None)
        if mode is None and len(node.args) > place:
            mode = node.args[place]
        if any(k.arg in (None, "opener") for k in node.keywords):
            return "open"
        if mode is None:
            return None
        return None if all(not set(text) - set("rbtU") for text in self.values(mode)) else "open"

    def _on_a_path(self, node: ast.Call) -> bool:
        on = node.func.value if isinstance(node.func, ast.Attribute) else None
        return not (isinstance(on, ast.Name) and on.id in self.modules)

    def _is_own(self, name: str) -> bool:
        """Whether it is a function that the program defines itself, whose body is read too."""
        return name in self.names and name not in self.modules and self.names[name] == ("",)

    def _check_calls(self, nodes: Sequence[ast.AST]) -> None:
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            name = self._name_of(node.func)
            if name in _SHELL_CALLS:
                self._check_shell(node)
            elif (
                name in _PROCESS_CALLS
                or (self._module(node.func) in _PROCESS_MODULES)
                or (name.startswith(("exec", "spawn")) and self._module(node.func) == "os")
            ):
                self._check_process(node)
            elif name in _DYNAMIC:
                for text in self._arguments(node):
                    if text != ANY and name not in {"compile"}:
                        self._nested(text)
            elif name in _WHOLE_FOLDERS:
                self._check_folders(node, name)

    def _nested(self, text: str) -> None:
        judge_python(text, self.bases, self.look, self.shell, self.words)

    def _check_shell(self, node: ast.Call) -> None:
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg in {"command", "cmd"})]
        bases = self._started_in(node)
        for value in given:
            for text in self.values(value):
                if text != ANY:
                    self.shell(text.replace(ANY, "${__unknown}"), bases)

    def _check_process(self, node: ast.Call) -> None:
        bases = self._started_in(node)
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "args")]
        for one in given:
            value = self.lists.get(one.id, one) if isinstance(one, ast.Name) else one
            if isinstance(value, ast.List | ast.Tuple):
                listed = [self.values(each) for each in value.elts]
                for words in islice(product(*listed), _MOST):
                    self.words(words, bases)
                continue
            for text in self.values(value):
                if text != ANY:
                    self.shell(text.replace(ANY, "${__unknown}"), bases)
        plain = [self.values(each) for each in node.args]
        if len(plain) > 1 and all(isinstance(each, ast.Constant) for each in node.args):
            for words in islice(product(*plain), _MOST):
                self.words(words, bases)

    def _started_in(self, node: ast.Call) -> Values:
        given = [k.value for k in node.keywords if k.arg in {"cwd", "workdir"}]
        found = [
            os.path.join(base, each)
            for value in given
            for each, base in product(self.values(value), self.bases)
            if each != ANY
        ]
        return _bounded(found) if found else self.bases

    def _check_folders(self, node: ast.Call, name: str) -> None:
        on = node.func.value if isinstance(node.func, ast.Attribute) else None
        given = [k.value for k in node.keywords if k.arg in {"path", "src"}]
        values = [self.values(each) for each in (*node.args[:1], *given)]
        if on is not None and name in {"rename", "replace", "rmtree"}:
            values.append(self.values(on))
        for value in values:
            for text, base in product(value, self.bases):
                covered = self.look.covers(text, base) if ANY not in text else None
                if covered is not None:
                    raise Refused(Mention("place", covered), name)

    def _module(self, function: ast.AST) -> str:
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return self.modules.get(function.value.id, function.value.id)
        if isinstance(function, ast.Name):
            return self.modules.get(function.id, "").rpartition(".")[0]
        return ""

    def _arguments(self, node: ast.Call) -> Iterator[str]:
        for value in node.args:
            yield from self.values(value)


_FIELD: Final = re.compile(r"%(?:\(\w*\))?[-+ #0\d.]*[a-zA-Z]|\{[^{}]*\}")
_NEVER_NAMED: Final = frozenset({"__builtins__", "getattr", "globals", "locals", "vars", "setattr"})
_SAME: Final = frozenset(
    {"abspath", "absolute", "as_posix", "bytes", "decode", "encode", "expanduser", "expandvars",
     "fspath", "fsdecode", "fsencode", "normpath", "realpath", "resolve", "str", "strip", "rstrip",
     "lstrip", "dedent", "repr", "format"}
)  # fmt: skip
_CHANGING_NAMES: Final = frozenset(
    {"remove", "unlink", "rename", "rmtree", "system", "popen", "write_text", "write_bytes",
     "symlink", "link", "truncate", "renames", "mkfifo", "execv", "execvp", "execve", "spawnv",
     "spawnvp", "posix_spawn", "move", "copyfile", "copy2", "copytree", "run", "call",
     "Popen", "check_call", "check_output", "chmod", "chown", "mkdir", "makedirs", "rmdir", "touch",
     "symlink_to", "hardlink_to"}
)  # fmt: skip


def _assignments(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Names and what they are given; a function of the program is given the empty text."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            yield from _pairs(node.target, node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, ast.BinOp(node.target, node.op, node.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, ast.Constant("")
            if not isinstance(node, ast.ClassDef):
                yield from _defaults(node.args)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            if isinstance(node.iter, ast.List | ast.Tuple | ast.Set):
                for each in node.iter.elts:
                    yield from _pairs(node.target, each)
            else:
                yield from _pairs(node.target, ast.Constant(None))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from _pairs(node.optional_vars, node.context_expr)


def _defaults(args: ast.arguments) -> Iterator[tuple[str, ast.AST]]:
    positional = [*args.posonlyargs, *args.args]
    for argument, default in zip(reversed(positional), reversed(args.defaults), strict=False):
        yield argument.arg, default
    for each in (*positional, *args.kwonlyargs):
        yield each.arg, ast.Constant(None)


def _pairs(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        many = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for place, each in enumerate(target.elts):
            yield from _pairs(each, value.elts[place] if many else ast.Constant(None))  # type: ignore[attr-defined]


def _text_of(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bytes):
        return (value.decode("utf-8", "replace"),)
    return (ANY,) if value is None or value is Ellipsis else (str(value),)


def _with_holes(text: str) -> str:
    """A format with a hole in each place that is filled in."""
    return _FIELD.sub(ANY, text)


def _unhexed(text: str) -> str:
    try:
        return bytes.fromhex(text).decode("utf-8", "replace")
    except ValueError:
        return ANY


def _second(args: Sequence[Values]) -> Values:
    return args[1] if len(args) > 1 else ()


def _bounded(values: Iterable[str]) -> Values:
    found = tuple(dict.fromkeys(islice(values, _MOST + 1)))
    return found if 0 < len(found) <= _MOST else (ANY,)


def _last(node: ast.AST) -> str:
    """The last name of what is called: `os.path.join` is `join`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_module(node: ast.AST, name: str) -> bool:
    return _last(node) in {name, "posixpath", "ntpath", "osp"}


def _is_output(node: ast.AST) -> bool:
    """Whether it is a method of `sys.stdout` or `sys.stderr`."""
    return isinstance(node, ast.Attribute) and _last(node.value) in {"stdout", "stderr"}


def _is_environ(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and _last(node.value) == "environ"
