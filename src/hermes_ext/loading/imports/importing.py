"""Importing one extension so that it can neither meet another's modules nor stop the process.

Each becomes a package of its own under a private, unused name, with its real folder as `__path__`:
relative imports work whatever the folder is called, submodules of the same name never meet, and
`import util` never finds a sibling file, because no extension's folder is on `sys.path`. Bytecode
is neither read nor written: what runs is the source as it is now, also if it changed within the
clock tick of its timestamp. A project's modules come out of its verified files (see `from_tree`).

The code runs in another thread, so that an import that never ends costs its deadline and not the
agent; one thread takes all extensions, until one holds it up. What needs the main thread
(`signal.signal`, a GUI) therefore fails at import; objects bound to their thread (a sqlite3
connection) belong in the handler that uses them. Where the caller is itself inside an import, the
code runs in the caller's thread, without a deadline: a thread would wait for modules that the
caller is still importing.
"""

from __future__ import annotations

import contextvars
import importlib
import itertools
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from hermes_ext._regular import Signature, read_regular, signature
from hermes_ext._text import printable
from hermes_ext._values import define, frozen
from hermes_ext.chain.threads import threads
from hermes_ext.loading.imports.source_code import compiled

if TYPE_CHECKING:
    from hermes_ext.trust.tree import Tree

PREFIX = "_hermes_ext_x"

IMPORT_SECONDS = 20.0

T = TypeVar("T")

_numbers = itertools.count(1)

before_code: Callable[[], None] = lambda: None  # noqa: E731 - hosts set another
"""Called before code of an extension is imported."""


@define
class _Package:
    """A private package.

    file: its first. tree: where its modules come from; None: the disk. files: how those on the disk
    looked when it was loaded. forgotten: what is left of it, in a thread say, imports no more.
    """

    file: str
    tree: Tree | None = None
    files: Mapping[str, Signature] | None = None
    forgotten: bool = False


_packages: dict[str, _Package] = {}


class EndlessImport(Exception):  # noqa: N818 - reads as the reason it becomes
    """It did not finish within its deadline."""


@frozen
class Imported:
    """One imported extension. package: the name below which all its modules stand."""

    module: ModuleType
    package: str
    seconds: float


def private_name(name: str) -> str:
    """A module name that nothing has yet, for an extension of this name."""
    slug = re.sub(r"\W", "_", name)
    return f"{PREFIX}.{slug}_{next(_numbers)}"


def import_file(package: str, file: Path, tree: Tree | None = None) -> Imported:
    """Import `__init__.py` as a package, or a single file, under a name from `private_name`.

    tree: the verified files that it and its submodules come from; None: the disk.

    Raises whatever its code raises; none of its modules is then left in `sys.modules`.
    """
    before_code()
    adopt(package, str(file), tree)
    spec = _main_spec(package)
    assert spec.loader is not None
    begun = time.perf_counter()
    module = module_from_spec(spec)
    sys.modules[package] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        forget(package)
        raise
    return Imported(module, package, time.perf_counter() - begun)


def adopt(
    package: str,
    file: str,
    tree: Tree | Mapping[str, Any] | None,
    files: Mapping[str, Signature] | None = None,
) -> None:
    """Make a private package importable by its name; the arguments are those that `carried` gives.

    tree: the verified files, or what is needed to make them; None: the disk. files: how its files
    looked when it was loaded, None where that does not matter.
    """
    _install_finder()
    made = _Package(file, files=files)
    if tree is not None:
        from hermes_ext.loading.imports.from_tree import serve
        from hermes_ext.trust.tree import Tree

        made.tree = tree if isinstance(tree, Tree) else Tree.unpacked(tree)
        serve(made.tree)
    _packages[package] = made


def carried() -> list[tuple[Any, ...]]:
    """What a child process needs to import the packages that are loaded now: see `adopt`."""
    return [
        (name, each.file, each.tree and each.tree.packed(), _files_of(each))
        for name, each in list(_packages.items())
        if not each.forgotten
    ]


def _files_of(package: _Package) -> dict[str, Signature] | None:
    if package.files is None:
        return None
    file = Path(package.file)
    top = str(file.parent if file.name == "__init__.py" else file)
    return {path: each for path, each in package.files.items() if path.startswith(top)}


def _main_spec(package: str) -> ModuleSpec:
    """The spec of a package's first file."""
    file, tree = _packages[package].file, _packages[package].tree
    loader: SourceFileLoader = _SourceLoader(package, file)
    if tree is not None:
        from hermes_ext.loading.imports.from_tree import TreeLoader

        loader = TreeLoader(package, file, tree)
    spec = spec_from_file_location(package, file, loader=loader, submodule_search_locations=[])
    assert spec is not None
    if os.path.basename(file) != "__init__.py":
        spec.submodule_search_locations = []  # without places, or its neighbours would be in it
    return spec


def import_entry_point(value: str) -> Imported:
    """Import what an entry point names, `package.module` or with `:attribute`, by its own name.

    After a failure the modules of its package that this import brought are gone again.
    """
    name, _, attribute = (part.strip() for part in value.partition(":"))
    root = name.partition(".")[0]
    before_code()
    before = set(sys.modules)
    begun = time.perf_counter()
    try:
        module = importlib.import_module(name)
        for part in filter(None, attribute.split(".")):
            getattr(module, part)
    except BaseException:
        forget(root, keep=before)
        raise
    return Imported(module, root, time.perf_counter() - begun)


def hold(package: str, files: Mapping[str, Signature]) -> None:
    """Have no module of a package imported from now on whose file is another than it was.

    files: how each looked, by its path.
    """
    if (known := _packages.get(package)) is not None:
        known.files = files


def modules_of(package: str) -> list[str]:
    """The names in `sys.modules` that belong to a package."""
    return [each for each in list(sys.modules) if each == package or each.startswith(f"{package}.")]


def forget(package: str, keep: set[str] | frozenset[str] = frozenset()) -> None:
    """Take a package's modules out of `sys.modules`, except those in `keep`."""
    for name in modules_of(package):
        if name not in keep:
            sys.modules.pop(name, None)
    known = _packages.pop(package, None)
    if known is not None and (known.tree is not None or known.forgotten):
        _packages[package] = _Package(known.file, forgotten=True)


def one_by_one(
    calls: Sequence[tuple[str, Callable[[], T]]], seconds: float
) -> Iterator[T | EndlessImport]:
    """Make calls in another thread, one after the other; yields what each returned.

    One hand-over for all of them: for each alone it costs as much as a small import. Each has a
    label, which becomes the thread's name. A call that takes longer than `seconds` is left behind,
    and becomes an EndlessImport. What a call raises is raised here, and the rest are not made.
    """
    if _inside_import():
        yield from (call() for _, call in calls)
        return
    left = [(label, partial(contextvars.copy_context().run, call)) for label, call in calls]
    while left:
        series: _Series[T] = _Series(left, seconds)
        threads.make(f"hermes-ext import {left[0][0]}", series.make)
        try:
            done = series.wait()
        except BaseException:
            series.give_up()  # a person's Ctrl-C
            raise
        left = left[len(done) :]
        for how in done:
            yield how()


class _Series(Generic[T]):
    """Calls, and what became of them."""

    def __init__(self, calls: Sequence[tuple[str, Callable[[], T]]], seconds: float) -> None:
        self._calls = calls
        self._seconds = seconds
        self._done: list[Callable[[], T | EndlessImport]] = []
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._is_over = False
        self._ended = threading.Lock()  # which is what an Event is made of, and faster
        self._ended.acquire()

    def make(self) -> Callable[[], None]:
        """Make the calls, until one raises or takes too long; what lets go whoever waits."""
        thread = threading.current_thread()
        for label, call in self._calls:
            thread.name = f"hermes-ext import {label}"
            if not self._call(call):
                break
        return self._ended.release

    def _call(self, call: Callable[[], T]) -> bool:
        """Whether the next is to be made."""
        try:
            value = call()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self._put(partial(_raise, error))
            return False
        return self._put(lambda: value)

    def _put(self, how: Callable[[], T]) -> bool:
        with self._lock:
            if not self._is_over:
                self._done.append(how)
                self._began = time.monotonic()
            return not self._is_over

    def give_up(self) -> None:
        """Drop whatever comes of the call that is being made, and make no other."""
        with self._lock:
            self._is_over = True

    def wait(self) -> Sequence[Callable[[], T | EndlessImport]]:
        """What became of those that were made; the last may be one that took too long."""
        while not self._ended.acquire(timeout=max(0.001, self._left())):
            with self._lock:
                self._is_over = self._left() <= 0 and len(self._done) < len(self._calls)
            if self._is_over:
                return [*self._done, self._endless]
        return self._done

    def _endless(self) -> EndlessImport:
        return EndlessImport(f"did not finish within {self._seconds:g} s")

    def _left(self) -> float:
        return self._began + self._seconds - time.monotonic()


def _raise(error: BaseException) -> NoReturn:
    raise error


def place_of(error: BaseException, folder: Path) -> str:
    """`file:line` of the innermost line below `folder` that an error went through, or ""."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{printable(error.filename)}:{error.lineno or 1}"
    root = os.path.join(os.path.realpath(folder), "") if folder.is_dir() else ""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        file = os.path.realpath(trace.tb_frame.f_code.co_filename)
        if file == os.path.realpath(folder) or (root and file.startswith(root)):
            found = f"{printable(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


class _SourceLoader(SourceFileLoader):
    """Compiles the source that is there, past all bytecode."""

    def get_data(self, path: Any) -> bytes:
        """The content of a file. Raises OSError for a pipe or device instead of waiting for it."""
        return read_regular(path)

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return compiled(self.get_data(path), path)


_LOADERS: tuple[Any, ...] = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (_SourceLoader, SOURCE_SUFFIXES),
)


class _Finder:
    """Finds the submodules of extensions, for which the ordinary finder would use bytecode."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not fullname.startswith(f"{PREFIX}."):
            return None
        spec = self._found(fullname, path)
        if spec is None:  # the ordinary finder, which comes next, would take bytecode
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec

    def _found(self, fullname: str, path: Sequence[str]) -> ModuleSpec | None:
        root = ".".join(fullname.split(".", 2)[:2])
        package = _packages.get(root)
        if package is not None and package.forgotten:
            return None
        if package is not None and fullname == root:  # in a child; here it is imported already
            return self._unchanged(root, _main_spec(root))
        if package is not None and package.tree is not None:
            from hermes_ext.loading.imports.from_tree import find_in_tree

            return find_in_tree(fullname, path, package.tree)
        portions: list[str] = []
        for place in path:
            # A new one each time: a FileFinder that is kept misses files added within a clock tick.
            spec = FileFinder(place, *_LOADERS).find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return self._unchanged(root, spec)
            portions += (spec and spec.submodule_search_locations) or ()
        if not portions:
            return None
        folder = ModuleSpec(fullname, None, is_package=True)
        folder.submodule_search_locations = portions
        return folder

    def _unchanged(self, root: str, spec: ModuleSpec) -> ModuleSpec:
        """The same; ImportError where its file is another than when its package was loaded."""
        file = str(spec.origin)
        package = _packages.get(root)
        files = None if package is None else package.files
        if files is not None and signature(file) != files.get(file):
            raise ImportError(
                f"{printable(file)} has changed since its extension was loaded, and the two are "
                "not mixed: import it at the top of the module, not in a handler",
                name=spec.name,
                path=file,
            )
        return spec


_FINDER: Any = _Finder()


def _install_finder() -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    if PREFIX not in sys.modules:
        parent = ModuleType(PREFIX, "Holds the extensions that are loaded.")
        parent.__path__ = []
        sys.modules[PREFIX] = parent


def _inside_import() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_find_and_load" and "importlib._bootstrap" in code.co_filename:
            return True
        frame = frame.f_back
    return False
