"""Calls in Python code that change files, read them, or start programs, and what they touch."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from attrs import Factory, evolve, frozen

from hermes_ext.effects._python.names import ATTRIBUTES
from hermes_ext.effects._python.values import Program, Values, Words
from hermes_ext.effects._table import Tool, ToolKind
from hermes_ext.effects._words import Hole, Word, beginning

if TYPE_CHECKING:
    from hermes_ext.effects._programs.call import Shell

_MOST: Final = 24  # ways in which one call may be made


@frozen
class Signature:
    """The arguments of a function: by their places, by their names, and those that matter not."""

    positional: tuple[str, ...]
    named: Mapping[str, str]
    others: frozenset[str]


@frozen
class Call:
    """A call whose arguments are known by their names.

    by: what is called, for messages. on: the value that a method is asked of.
    """

    by: str
    node: ast.Call
    given: Mapping[str, ast.expr] = Factory(dict)
    on: ast.expr | None = None


class Calls:
    """Reads the calls of a program.

    Attributes:
        reasons: why something else may happen than what was announced.
    """

    def __init__(self, program: Program, values: Values, shell: Shell) -> None:
        self._program = program
        self._values = values
        self._rec = shell.rec
        self._shell = shell
        self.reasons: dict[str, None] = {}

    def doubt(self, why: str) -> None:
        """Something else may happen, too."""
        self.reasons[why] = None

    # -- what is known ----------------------------------------------------------------------------

    def explains(self, node: ast.expr, target: str) -> bool:
        """Whether a name is used in a way that says what happens: it is called, or only read."""
        if target in _FUNCTIONS or self._tool_at(target):
            return self._program.is_called(node)
        return target in _LOOKED_AT and self._is_looked_at(node)

    def knows_method(self, name: str) -> bool:
        """Whether a method's name may be one that changes files."""
        return name in _METHODS

    def only_shown(self, node: ast.expr) -> bool:
        """Whether a module is given to something that makes a text of it."""
        call = self._program.parent(node)
        if not isinstance(call, ast.Call) or node not in call.args:
            return False
        if isinstance(call.func, ast.Name) and call.func.id not in self._program.bound:
            return call.func.id in {"dir", "hasattr", "print", "repr", "str"}
        target = self._program.target(call.func) or ""
        return target.startswith("inspect.get")

    def _is_looked_at(self, node: ast.expr) -> bool:
        """Whether what is kept in a variable of a module is only read from."""
        parent = self._program.parent(node)
        if isinstance(parent, ast.Attribute):
            return parent.attr in ("get", "items", "keys", "values") and self._program.is_called(
                parent
            )
        if isinstance(parent, ast.Subscript):
            return parent.value is node and isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            copies = parent.func.id not in self._program.bound and parent.func.id in _COPIES
            return copies and node in parent.args
        if isinstance(parent, ast.Call):
            return isinstance(parent.func, ast.Attribute) and parent.func.attr == "join"
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node
        return isinstance(parent, ast.Compare | ast.FormattedValue)

    # -- calls ------------------------------------------------------------------------------------

    def move(self) -> None:
        """Directories that the program changes to: its relative paths may start there as well."""
        for node in self._program.nodes:
            if not isinstance(node, ast.Call) or self._program.target(node.func) != "os.chdir":
                continue
            for word in self._values.of(node.args[0] if len(node.args) == 1 else None):
                if isinstance(word, str) and word.startswith("/"):
                    self._rec.cwd = tuple(dict.fromkeys((*self._rec.cwd, word)))
                else:
                    self.doubt("the directory that the code changes to is not known")

    def read(self, node: ast.Call) -> None:
        """Announce what a call does."""
        func = node.func
        target = self._program.target(func) or ""
        if not target and isinstance(func, ast.Name):
            if func.id in self._program.bound or func.id in self._program.imported:
                return
            target = f"builtins.{func.id}"
        if target in _FUNCTIONS:
            self._announce(Call(target.removeprefix("builtins."), node), _FUNCTIONS[target])
        elif tool := self._tool_at(target):
            entry = _takes(tool.parameters or ""), partial(Calls.tool, tool=tool)
            self._announce(Call(target, node), entry)
        elif target in _READING_FUNCTIONS:
            given: dict[str, ast.expr] = {"path": node.args[0]} if node.args else {}
            _READING_FUNCTIONS[target](self, Call(target, node, given))
        elif (
            isinstance(func, ast.Attribute)
            and self._program.target(func.value) not in self._program.modules
        ):
            call = Call(f"Path.{func.attr}", node, on=func.value)
            if func.attr in _METHODS:
                self._announce(call, _METHODS[func.attr])
            elif func.attr in _READING_METHODS:
                _READING_METHODS[func.attr](self, call)

    def _announce(self, call: Call, entry: _Entry) -> None:
        signature, announce = entry
        given = _given(call.node, signature)
        if given is None:
            self.doubt(f"what {call.by} is given is not known")
        else:
            announce(self, evolve(call, given=given))

    # -- files ------------------------------------------------------------------------------------

    def _words(self, call: Call, name: str) -> Words:
        return self._values.of(call.given.get(name))

    def _target(self, call: Call) -> Words:
        """The path that a call is about: its first argument, or what a method is asked of."""
        return self._words(call, "path") if call.on is None else self._values.of(call.on)

    def _targets(self, call: Call) -> Iterator[str]:
        return self._known(self._target(call), call)

    def write(self, call: Call) -> None:
        """Creates or changes a file."""
        for path in self._targets(call):
            self._rec.write(path, call.by)

    def delete(self, call: Call, *, tree: bool = False) -> None:
        """Takes a name away."""
        for path in self._targets(call):
            self._rec.delete(path, call.by, tree=tree)

    def make_directory(self, call: Call) -> None:
        """Makes a directory, and those above it that are missing."""
        for path in self._targets(call):
            self._make_directories(path, call.by)

    def _make_directories(self, path: str, by: str) -> None:
        for each in _with_those_above(path):
            if self._rec.is_directory(each) is not True:
                self._rec.create(each, by)
                self._rec.made_directory(each)

    def open(self, call: Call) -> None:
        """Opens a file, by its mode to read or to write."""
        mode = call.given.get("mode")
        modes: Words = ("r",) if mode is None else self._values.of(mode)
        writes = any(
            isinstance(each, Hole) or set(re.split("[:|]", each)[0]) & set("wax+") for each in modes
        )
        path = call.given.get("path")
        standard = isinstance(path, ast.Constant) and path.value in (0, 1, 2)
        if call.on is None and standard:
            return
        if writes:
            self.write(call)
        else:
            self.read_file(call)

    def read_file(self, call: Call) -> None:
        """Reads a file or directory."""
        for word in self._target(call) if call.on or call.given else (".",):
            self._rec.read(word)

    def search(self, call: Call) -> None:
        """Goes through all that is below a directory."""
        for word in self._target(call):
            self._rec.search(word)

    def glob(self, call: Call) -> None:
        """Finds the names that match a pattern."""
        for word in self._words(call, "path"):
            text = beginning(word)
            before = text.partition("*")[0].partition("?")[0].partition("[")[0]
            self._rec.search(Hole(before))

    def copy_file(self, call: Call) -> None:
        """Copies a file, or the link itself where links are not followed."""
        follow = call.given.get("follow_symlinks")
        follows = follow is None or (isinstance(follow, ast.Constant) and follow.value is True)
        self._two_paths(call, Calls._copied if follows else Calls._copied_link)

    def _two_paths(self, call: Call, announce: Callable[[Calls, str, Word, str], None]) -> None:
        source = self._words(call, "source") if call.on is None else self._values.of(call.on)
        to = self._words(call, "to")
        for each, there in islice(product(source, to), _MOST):
            for path in self._known((there,), call):
                announce(self, path, each, call.by)
        if len(source) * len(to) > _MOST:
            self.doubt(f"what {call.by} is given is not known")

    def _renamed(self, to: str, source: Word, by: str) -> None:
        tree = self._rec.is_directory(source) is not False
        if isinstance(source, Hole):
            self.doubt(f"what {by} takes away is not known")
        else:
            self._rec.delete(source, by, tree=tree)
        self._rec.write(to, by, tree=tree)
        self._rec.taint(to, source)

    def _moved(self, to: str, source: Word, by: str) -> None:
        tree = self._rec.is_directory(source) is not False
        for place in self._inside(to, source):
            if tree:  # copied where it cannot be renamed, and then those above are made
                self._make_directories(os.path.dirname(place), by)
            self._renamed(place, source, by)

    def _copied(self, to: str, source: Word, by: str) -> None:
        self._rec.read(source)
        for place in self._inside(to, source):
            self._rec.write(place, by)

    def _copied_link(self, to: str, source: Word, by: str) -> None:
        self._copied(to, source, by)
        for place in self._inside(to, source):
            self._rec.taint(place, source)

    def _copied_tree(self, to: str, source: Word, by: str) -> None:
        self._rec.search(source)
        self._make_directories(os.path.dirname(to), by)
        self._rec.write(to, by, tree=True)
        self._rec.taint(to, source)

    def _inside(self, to: str, source: Word) -> Iterator[str]:
        """The file that is written where `to` may be the directory that it comes to lie in."""
        there = self._rec.is_directory(to)
        if there is not True:
            yield to
        if there is not False:
            if isinstance(source, Hole):
                self.doubt(f"the name that something gets in {to!r} is not known")
            else:
                yield os.path.join(to, os.path.basename(source.rstrip("/")))

    def link(self, call: Call) -> None:
        """Makes a symbolic link."""
        if call.on is not None:
            names, targets = self._values.of(call.on), self._words(call, "to")
        else:
            names, targets = self._words(call, "to"), self._words(call, "source")
        for name, target in islice(product(names, targets), _MOST):
            for path in self._known((name,), call):
                self._rec.link(path, target, call.by)

    def hard_link(self, call: Call) -> None:
        """Gives a file one more name."""
        names = self._words(call, "to") if call.on is None else self._values.of(call.on)
        for path in self._known(names, call):
            self._rec.write(path, call.by)
        self.doubt("what is written under the name that a file gets is not known")

    def nothing(self, call: Call) -> None:
        """Is looked at elsewhere, or changes nothing."""

    def _known(self, words: Iterable[Word], call: Call) -> Iterator[str]:
        """The paths that are known; a doubt for each that is not."""
        for word in words:
            if isinstance(word, Hole):
                self.doubt(f"what {call.by} changes is not known before it runs")
                self._rec.mention(word)
            else:
                yield word

    # -- methods that several types have ----------------------------------------------------------

    def replace(self, call: Call) -> None:
        """`str.replace(old, new)`, `date.replace(day=…)` or `Path.replace(target)`."""
        if len(call.node.args) > 1 or (not call.node.args and "to" not in call.given):
            return
        _RENAME(self, call)

    def attribute(self, call: Call) -> None:
        """`getattr` with a name that stands there is like the name behind a dot."""
        name = call.given.get("name")
        known = isinstance(name, ast.Constant) and name.value in ATTRIBUTES
        if not known:
            self.doubt("which attribute getattr gives is not known")

    def find_module(self, call: Call) -> None:
        """Looks for a module; of one in a package, the package is imported."""
        name = call.given.get("name")
        if not isinstance(name, ast.Constant) or "." in str(name.value):
            self.doubt("find_spec may import something")

    # -- programs ---------------------------------------------------------------------------------

    def shell_text(self, call: Call) -> None:
        """Runs a text in a shell."""
        for word in self._words(call, "path"):
            self._run(("sh", "-c", word), call)

    def process(self, call: Call) -> None:
        """Runs a program, by its words or by a text for the shell."""
        in_shell = call.given.get("shell")
        stdin = call.given.get("stdin")
        if stdin is not None and self._program.target(stdin) != "subprocess.DEVNULL":
            self.doubt(f"what {call.by} reads is not known")
        if in_shell is not None and not isinstance(in_shell, ast.Constant):
            self.doubt(f"whether {call.by} starts a shell is not known")
        elif isinstance(in_shell, ast.Constant) and in_shell.value:
            self.shell_text(call)
        else:
            items = self._values.of_list(call.given["path"]) if "path" in call.given else None
            if items is None:
                items = [self._words(call, "path")]
            combined = list(islice(product(*items), _MOST + 1))
            if len(combined) > _MOST:
                self.doubt(f"what {call.by} starts is not known")
            for words in combined[:_MOST]:
                self._run(words, call)

    def _run(self, words: Sequence[Word], call: Call) -> None:
        stdin = call.given.get("input")
        texts: Iterable[Word | None] = self._values.of(stdin) if stdin is not None else (None,)
        where = call.given.get("cwd")
        places: Iterable[Word | None] = self._values.of(where) if where is not None else (None,)
        for text, place in product(texts, places):
            self._shell.run(words, cwd=place, stdin=text)

    # -- tools that are called back ---------------------------------------------------------------

    def _tool_at(self, target: str) -> Tool | None:
        """The tool of the host that a function calls, if it is not one that changes nothing."""
        tools = self._rec.machine.tools
        module, _, name = target.rpartition(".")
        found = tools.get(name) if tools is not None and module == tools.module else None
        if found is None or found.name != name or found.parameters is None:
            return None
        return None if found.kind is ToolKind.HARMLESS else found

    def tool(self, call: Call, tool: Tool) -> None:
        """A tool of the host, called out of code: judged by itself, and here as well."""
        args: dict[str, Any] = {}
        for key, node in call.given.items():
            values = self._values.of(node)
            if isinstance(node, ast.Constant):
                args[key] = node.value
            elif key in _ONLY_CONTENT:
                args[key] = ""
            elif len(values) == 1 and isinstance(values[0], str):
                args[key] = values[0]
            elif key == "pattern" and not any(_may_be_an_option(each) for each in values):
                args[key] = "…"
            else:
                self.doubt(f"what {tool.name} is given is not known")
        tool.does.announce(tool.name, args, self._rec)


def _may_be_an_option(word: Word) -> bool:
    return word.may_begin_with("-") if isinstance(word, Hole) else word.startswith("-")


_ONLY_CONTENT: Final = frozenset({"content", "new_string", "old_string"})
_COPIES: Final = frozenset({"dict", "enumerate", "len", "list", "print", "sorted", "str", "tuple"})
_LOOKED_AT: Final = frozenset({"os.environ", "sys.path"})


def _given(node: ast.Call, signature: Signature) -> dict[str, ast.expr] | None:
    """The arguments of a call by their names; None if they are not all known."""
    names = signature.positional
    if len(node.args) > len(names) or any(isinstance(each, ast.Starred) for each in node.args):
        return None
    given = dict(zip(names, node.args, strict=False))
    for each in node.keywords:
        if each.arg is None:
            return None
        if each.arg in signature.named:
            given[signature.named[each.arg]] = each.value
        elif each.arg not in signature.others:
            return None
    return given


def _with_those_above(path: str) -> Iterator[str]:
    """A path, behind all directories that it lies in."""
    parts = path.rstrip("/").split("/")
    for place in range(1, len(parts) + 1):
        above = "/".join(parts[:place])
        if above.strip("./"):
            yield above


def _takes(positional: str, named: str = "", others: str = "") -> Signature:
    """A signature out of texts: `path/file mode` for a path that may be given as `file=`."""
    places = [each.split("/") for each in positional.split()]
    by_name = [each.split("/") for each in named.split()]
    return Signature(
        tuple(names[0] for names in places),
        {name: names[0] for names in (*places, *by_name) for name in names if name != "_"},
        frozenset(others.split()),
    )


_OPEN: Final = _takes("path/file mode _ _ _ _ _", "", "buffering encoding errors newline closefd")
_OPEN_PACKED: Final = _takes(
    "path/filename/name/file mode _ _ _ _",
    "",
    "allowZip64 buffering compression compresslevel encoding errors newline preset",
)
_PATH: Final = _takes("path/name")
_PATH_AND_VALUES: Final = _takes(
    "path/name _ _", "", "exist_ok follow_symlinks gid length mode ns times uid"
)
_TWO_PATHS: Final = _takes("source/src to/dst", "", "follow_symlinks target_is_directory")
_COPIED: Final = _takes("source/src to/dst", "follow_symlinks")
_TREES: Final = _takes(
    "source/src to/dst", "", "dirs_exist_ok ignore ignore_dangling_symlinks symlinks"
)
_RMTREE: Final = _takes("path _", "", "ignore_errors onerror onexc")
_TEXT: Final = _takes("path/command/cmd", "", "encoding errors")
_PROCESS: Final = _takes(
    "path/args",
    "cwd input shell stdin",
    "bufsize capture_output check close_fds encoding errors start_new_session stderr stdout text"
    " timeout universal_newlines",
)

_RENAME: Final = partial(Calls._two_paths, announce=Calls._renamed)
_Announce: TypeAlias = Callable[[Calls, Call], None]
_Entry: TypeAlias = tuple[Signature, _Announce]
_T = TypeVar("_T")


def _by_name(table: Mapping[str, _T]) -> dict[str, _T]:
    return {name: entry for names, entry in table.items() for name in names.split()}


_FUNCTIONS: Final[Mapping[str, _Entry]] = _by_name(
    {
        "builtins.getattr": (_takes("object name _"), Calls.attribute),
        "builtins.open io.open": (_OPEN, Calls.open),
        "bz2.open codecs.open gzip.open lzma.open tarfile.open zipfile.ZipFile": (
            _OPEN_PACKED,
            Calls.open,
        ),
        "functools.wraps": (_takes("wrapped"), Calls.nothing),  # with more, it sets any attribute
        "importlib.util.find_spec": (_takes("name"), Calls.find_module),
        "os.chdir": (_PATH, Calls.nothing),
        "os.chmod os.chown os.mkfifo os.truncate os.utime": (_PATH_AND_VALUES, Calls.write),
        "os.link": (_TWO_PATHS, Calls.hard_link),
        "os.makedirs os.mkdir": (_PATH_AND_VALUES, Calls.make_directory),
        "os.popen": (_takes("path/cmd _"), Calls.shell_text),
        "os.remove os.rmdir os.unlink": (_PATH, Calls.delete),
        "os.rename os.replace": (_TWO_PATHS, _RENAME),
        "os.symlink": (_TWO_PATHS, Calls.link),
        "os.system subprocess.getoutput subprocess.getstatusoutput": (_TEXT, Calls.shell_text),
        "shutil.copy shutil.copy2 shutil.copyfile": (_COPIED, Calls.copy_file),
        "shutil.copytree": (_TREES, partial(Calls._two_paths, announce=Calls._copied_tree)),
        "shutil.move": (_TWO_PATHS, partial(Calls._two_paths, announce=Calls._moved)),
        "shutil.rmtree": (
            _takes("path _", "", "ignore_errors onerror onexc"),
            partial(Calls.delete, tree=True),
        ),
        "subprocess.Popen subprocess.call subprocess.check_call subprocess.check_output"
        " subprocess.run": (_PROCESS, Calls.process),
    }
)

_DATES: Final = "count day fold hour microsecond minute month second tzinfo year"
_TEXT_FILE: Final = _takes("_ _ _ _", "", "data encoding errors newline")

_METHODS: Final[Mapping[str, _Entry]] = {
    "chmod": (_takes("_", "", "mode follow_symlinks"), Calls.write),
    "communicate": (_takes("", "", "timeout"), Calls.nothing),
    "copy": (_takes(""), Calls.nothing),  # of a path, it has an argument
    "hardlink_to": (_takes("to/target"), Calls.hard_link),
    "lchmod": (_takes("_", "", "mode"), Calls.write),
    "mkdir": (_takes("_ _ _", "", "mode parents exist_ok"), Calls.make_directory),
    "open": (_takes("mode _ _ _ _", "", "buffering encoding errors newline"), Calls.open),
    "rename": (_takes("to/target"), _RENAME),
    "replace": (_takes("to/target _ _", "", _DATES), Calls.replace),
    "rmdir": (_takes(""), Calls.delete),
    "symlink_to": (_takes("to/target _", "", "target_is_directory"), Calls.link),
    "touch": (_takes("_ _", "", "mode exist_ok"), Calls.write),
    "unlink": (_takes("_", "", "missing_ok"), Calls.delete),
    "write_bytes": (_takes("_", "", "data"), Calls.write),
    "write_text": (_TEXT_FILE, Calls.write),
}

# These change nothing, but what they read is worth telling.
_READING_FUNCTIONS: Final[Mapping[str, _Announce]] = _by_name(
    {
        "glob.glob glob.iglob": Calls.glob,
        "linecache.getlines os.listdir os.scandir": Calls.read_file,
        "os.walk": Calls.search,
    }
)
_READING_METHODS: Final[Mapping[str, _Announce]] = _by_name(
    {"glob rglob walk": Calls.search, "iterdir read_bytes read_text": Calls.read_file}
)
