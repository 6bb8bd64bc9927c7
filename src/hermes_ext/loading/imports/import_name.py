"""The name in the host's own package under which extensions may import the API.

A finder at the end of `sys.meta_path` answers for it, so a host's own module of that name wins.
Inside the host its package is real and only the submodule is ours; where there is no such package
at all, the finder provides an empty one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from hermes_ext.hosts.default import default_host

MODULE: Final = default_host().import_name
PACKAGE: Final = MODULE.partition(".")[0]


def install() -> None:
    """Make the name importable in this process. Calling it again does nothing."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


class _Finder:
    """A meta path finder and the loader of what it finds."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader: Any = self  # a loader by shape; the abstract class costs an import
        if fullname == MODULE:
            return ModuleSpec(MODULE, loader, origin="hermes_ext")
        if fullname == PACKAGE:
            return ModuleSpec(PACKAGE, loader, origin="hermes_ext", is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == MODULE:
            module.__doc__ = "The public names of hermes_ext."
            # Looked up when asked for, because hermes_ext itself imports most of them lazily.
            module.__dict__["__getattr__"] = _public
            module.__dict__["__dir__"] = _names


def _api() -> ModuleType:
    # By name: the package imports everything, this module too.
    return import_module("hermes_ext")


def _names() -> list[str]:
    return [*_api().__all__]


def _public(name: str) -> Any:
    if name == "__all__":
        return _names()
    if name in _api().__all__:
        return getattr(_api(), name)
    raise AttributeError(f"module {MODULE!r} has no attribute {name!r}")


_FINDER: Any = _Finder()
