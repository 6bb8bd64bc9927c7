"""Acting on a module once it is completely imported, whoever imports it and whenever.

The plugin is registered while Hermes is still importing itself: `import run_agent` discovers
plugins half-way through its own body. Importing `run_agent` from there would be circular, importing
it earlier changes how one-shot mode approves. So we wait: a module's spec says through
`_initializing` when its import has ended, and that is watched, for modules that are not imported
yet as well as for those whose import is on the stack below us.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from hermes_ext._log import logger
from hermes_ext.hosts.hermes.adapter.state import state

Action = Callable[[ModuleType], None]


class _WatchedSpec(ModuleSpec):
    """A spec that tells when its module is ready; only the class of the real one is exchanged."""

    @property
    def _initializing(self) -> bool:
        return bool(self.__dict__.get("_initializing", False))

    @_initializing.setter
    def _initializing(self, value: bool) -> None:
        was = self.__dict__.get("_initializing", False)
        self.__dict__["_initializing"] = value
        if was and not value:
            self.__class__ = ModuleSpec  # type: ignore[assignment]
            module = sys.modules.get(self.name)
            # An import that failed has left sys.modules: whoever tries again is watched again.
            if module is not None and getattr(module, "__spec__", None) is self:
                _run(self.name, module)


class _Finder:
    """Finds nothing itself: has the others find, and puts the spec under watch."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname not in state.awaited or getattr(state.being_found, "name", None) == fullname:
            return None
        state.being_found.name = fullname
        try:
            spec = _found_by_others(fullname, path, target)
        finally:
            state.being_found.name = None
        if spec is not None:
            _watch(spec)
        return spec


def _found_by_others(fullname: str, path: Sequence[str] | None, target: Any) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is _Finder or find is None:
            continue
        spec = find(fullname, path, target)
        if isinstance(spec, ModuleSpec):
            return spec
    return None


def _watch(spec: ModuleSpec) -> None:
    if type(spec) is ModuleSpec:
        spec.__class__ = _WatchedSpec


def _run(name: str, module: ModuleType) -> None:
    with state.lock:
        actions = state.awaited.pop(name, [])
    for action in actions:
        try:
            action(module)
        except Exception:  # the host's import must not fail because of us
            logger.exception("hermes-ext could not attach to %s", name)


def when_imported(name: str, action: Action) -> None:
    """Call `action(module)` once `name` is completely imported: now, if it is.

    That is in the thread that finishes the import. What it raises is logged.
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    ready = module is not None and not getattr(spec, "_initializing", False)
    with state.lock:
        state.awaited.setdefault(name, []).append(action)
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)
    if ready and module is not None:
        _run(name, module)
    elif module is not None and isinstance(spec, ModuleSpec):
        _watch(spec)
        if not getattr(spec, "_initializing", False):  # it ended while we looked
            _run(name, module)
