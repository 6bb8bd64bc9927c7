"""Modules of a project, out of the files that were verified.

A project's tree is read once, hashed and kept; what runs is compiled from those bytes. So it does
not matter what happens to the files afterwards, and bytecode is neither read nor written. Native
modules cannot be run from memory, and are refused.
"""

from __future__ import annotations

import io
import linecache
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.resources.abc import Traversable, TraversableResources
from importlib.util import decode_source, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from hermes_ext._text import printable
from hermes_ext.loading.imports.source_code import compiled
from hermes_ext.trust.place import HERMES
from hermes_ext.trust.tree import Tree


class TreeLoader(SourceFileLoader):
    """Loads one module out of a verified tree; tracebacks and `__file__` name the path."""

    def __init__(self, fullname: str, path: str, tree: Tree) -> None:
        super().__init__(fullname, path)
        self.tree = tree

    def get_data(self, path: Any) -> bytes:
        """The verified content of a file. Raises as `Tree.read`."""
        return self.tree.read(relative_to(self.tree, path))

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        data = self.get_data(path)
        code = compiled(data, path)
        # Without it tracebacks and `inspect.getsource` show whatever lies at the path by then. What
        # has no time of change is never compared with the disk.
        lines = decode_source(data).splitlines(keepends=True)
        linecache.cache[path] = (len(data), None, lines, path)
        return code

    def get_resource_reader(self, name: str | None = None) -> Any:
        """What `importlib.resources` reads a package's data files by."""
        return _Resources(self.tree, relative_to(self.tree, Path(self.path).parent))


def find_in_tree(fullname: str, places: Sequence[str], tree: Tree) -> ModuleSpec | None:
    """The spec of a submodule whose package has `places` as its path. Raises for a native one."""
    name = fullname.rpartition(".")[2]
    portions: list[str] = []
    for place in places:
        folder = relative_to(tree, place)
        for relative, package in ((f"{name}/__init__.py", True), (f"{name}.py", False)):
            if f"{folder}/{relative}" in tree.files:
                return spec_in_tree(fullname, Path(place, relative), tree, package=package)
        _refuse_native(fullname, folder, name, tree)
        if any(each.startswith(f"{folder}/{name}/") for each in tree.files):
            portions.append(os.path.join(place, name))
    if not portions:
        return None
    namespace = ModuleSpec(fullname, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def spec_in_tree(fullname: str, file: Path, tree: Tree, *, package: bool) -> ModuleSpec:
    """The spec of a module whose file is in the tree."""
    spec = spec_from_file_location(
        fullname,
        file,
        loader=TreeLoader(fullname, str(file), tree),
        submodule_search_locations=[str(file.parent)] if package else None,
    )
    assert spec is not None
    return spec


def serve(tree: Tree) -> None:
    """Have imports from the tree's folders that go by `sys.path` come out of the tree too.

    An extension may put its own folder there; its files, and bytecode that somebody planted beside
    them, would be taken from the disk unseen.
    """
    folder = str(tree.root / HERMES)
    _served[folder] = tree
    if _path_hook not in sys.path_hooks:
        sys.path_hooks.insert(0, _path_hook)
    for known in list(sys.path_importer_cache):
        if f"{os.path.realpath(known)}{os.sep}".startswith(f"{folder}{os.sep}"):
            sys.path_importer_cache.pop(known, None)


# By `.hermes` folder, the tree that was loaded last.
_served: dict[str, Tree] = {}


def _path_hook(path: str) -> _PathFinder:
    real = os.path.realpath(path)
    for folder, tree in _served.items():
        if f"{real}{os.sep}".startswith(f"{folder}{os.sep}"):
            return _PathFinder(tree, real)
    raise ImportError(f"{path!r} is in no project", path=path)


class _PathFinder:
    """Finds modules in one folder of a tree; what `sys.path` asks for it."""

    def __init__(self, tree: Tree, folder: str) -> None:
        self._tree = tree
        self._folder = folder

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return find_in_tree(fullname, [self._folder], self._tree)

    def invalidate_caches(self) -> None:
        """Nothing is cached."""


def relative_to(tree: Tree, path: str | os.PathLike[str]) -> str:
    """A path's name in the tree; one outside of it has a name that no file of a tree has."""
    return os.path.relpath(os.fspath(path), tree.root / HERMES).replace(os.sep, "/")


def _refuse_native(fullname: str, folder: str, name: str, tree: Tree) -> None:
    for suffix in EXTENSION_SUFFIXES:
        native = f"{folder}/{name}{suffix}"
        if native in tree.files:
            raise ImportError(
                f"{printable(tree.root / HERMES / native)} is a native module, which no project "
                "extension can bring: install it as a package",
                name=fullname,
            )


class _Resources(TraversableResources):
    def __init__(self, tree: Tree, folder: str) -> None:
        self._files = _Node(tree, folder)

    def files(self) -> Traversable:
        return self._files


class _Node(Traversable):
    """A file or folder of the tree, as `importlib.resources` walks them."""

    def __init__(self, tree: Tree, relative: str) -> None:
        self._tree = tree
        self._relative = relative

    @property
    def name(self) -> str:
        return self._relative.rpartition("/")[2]

    def iterdir(self) -> Iterator[Traversable]:
        before = f"{self._relative}/"
        inside = (each[len(before) :] for each in self._tree.files if each.startswith(before))
        for name in sorted({each.partition("/")[0] for each in inside}):
            yield self / name

    def is_dir(self) -> bool:
        return any(each.startswith(f"{self._relative}/") for each in self._tree.files)

    def is_file(self) -> bool:
        return self._relative in self._tree.files

    def joinpath(self, *descendants: str | os.PathLike[str]) -> Traversable:
        joined = "/".join((self._relative, *(os.fspath(each) for each in descendants)))
        return _Node(self._tree, os.path.normpath(joined).replace(os.sep, "/"))

    def read_bytes(self) -> bytes:
        return self._tree.read(self._relative)

    def read_text(self, encoding: str | None = None, *args: Any) -> str:
        return self.read_bytes().decode(encoding or "utf-8", *args)

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        content = io.BytesIO(self.read_bytes())
        return content if "b" in mode else io.TextIOWrapper(content, *args, **kwargs)
