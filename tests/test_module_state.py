"""Modules hold no state, but for what there is once in a process: the list, with the reasons.

What `functools.cache` keeps of a function without side effects is no state: clearing it changes
nothing.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "hermes_ext"

_MAKES_STATE = {
    "ContextVar",
    "Counter",
    "Lock",
    "OrderedDict",
    "RLock",
    "WeakKeyDictionary",
    "WeakSet",
    "WeakValueDictionary",
    "count",
    "defaultdict",
    "deque",
    "dict",
    "list",
    "local",
    "set",
}
_CHANGES = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "move_to_end",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "update",
}

ALL_LOCKS = "a fork leaves every lock of the process, wherever it is, to be made anew"
CONTEXT = "what is true of the context that runs, which only a context variable can follow"
THREADS = "threads and loops belong to the process, and their limits hold for all sessions together"
TURNS = "a tool call finds its turn by the ids that a host gives with it, and by nothing else"
IMPORTS = "Python has one import system, and its modules are the process's"
COLLECTOR = (
    "a process has one garbage collector, which is off for as long as anybody looks at stacks"
)
FILES = "whoever writes one file in a process shares one lock"
UNIQUE = "a number or name that does not repeat in a process"
AUDIT = "an audit hook cannot be taken away, so there is one, which asks who listens"
BEFORE = "a host sets what is told before code of extensions runs; imports are the process's"
MACHINE = "what a machine offers is the same for everybody in a process"
PATCHED = "a host calls wraps with nothing of ours: here, and only here, they leave something"

STATE = {
    "_forks._known": ALL_LOCKS,
    "chain.aio.loops": THREADS,
    "chain.at_work._no_collection": COLLECTOR,
    "chain.calls.inside": CONTEXT,
    "chain.calls.waiting": THREADS,
    "chain.threads.threads": THREADS,
    "chain.timeouts.workers": THREADS,
    "confine._inside._in_popen": CONTEXT,
    "confine._inside._run": CONTEXT,
    "confine._support._known": MACHINE,
    "hooks.commands._collected": CONTEXT,
    "hooks.registration._collected": CONTEXT,
    "hosts.hermes.adapter.state.state": PATCHED,
    "loading.imports.from_tree._served": IMPORTS,
    "loading.imports.importing._numbers": UNIQUE,
    "loading.imports.importing._packages": IMPORTS,
    "loading.imports.importing.before_code": BEFORE,
    "replay.touching._audit": AUDIT,
    "turns.decisions.log._logs": FILES,
    "turns.session_state._locks": FILES,
    "turns.slow.watchdog": THREADS,
    "turns.sqlite_store._stores": FILES,
    "turns.state._current": CONTEXT,
    "turns.state.open_turns": TURNS,
    "turns.state._rejudging": CONTEXT,
    "turns.state._serials": UNIQUE,
}


def _is_made(value: ast.expr) -> str | None:
    """The name of what makes state, where an expression at the top of a module does."""
    if isinstance(value, ast.Call):
        called = value.func.value if isinstance(value.func, ast.Subscript) else value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name if name in _MAKES_STATE else None
    return None


def _own_classes(tree: ast.Module) -> set[str]:
    """Classes of a module whose instances can change: those that set attributes of themselves."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(
            isinstance(each, ast.Attribute)
            and isinstance(each.ctx, ast.Store)
            and isinstance(each.value, ast.Name)
            and each.value.id == "self"
            for each in ast.walk(node)
        )
    }


def _is_change(node: ast.Subscript | ast.Attribute) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _CHANGES
    return not isinstance(node.ctx, ast.Load)


def _changed(tree: ast.Module) -> set[str]:
    """The names of a module that its own code changes in place, or sets anew."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, ast.Subscript | ast.Attribute) and _is_change(node):
            found.add(getattr(node.value, "id", ""))
    return found


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield getattr(target, "id", ""), node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield getattr(node.target, "id", ""), node.value


def state_of(text: str) -> set[str]:
    """The names at the top of a module that hold what can change."""
    tree = ast.parse(text)
    changed, classes = _changed(tree), _own_classes(tree)
    return {
        name
        for name, value in _assigned(tree)
        if name
        and (
            name in changed
            or _is_made(value) is not None
            or (isinstance(value, ast.Call) and getattr(value.func, "id", "") in classes)
        )
    }


def set_from_outside(text: str, modules: set[str]) -> set[str]:
    """The names of other modules that a module sets anew."""
    tree = ast.parse(text)
    imported = {
        each.asname or each.name: f"{node.module}.{each.name}".removeprefix("hermes_ext.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    return {
        f"{imported[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and imported.get(node.value.id) in modules
    }


@functools.cache
def _in_the_package() -> frozenset[str]:
    modules = {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts): file.read_text(encoding="utf-8")
        for file in SOURCE.rglob("*.py")
    }
    found: set[str] = set()
    for module, text in modules.items():
        found |= {f"{module}.{name}" for name in state_of(text)}
        found |= set_from_outside(text, set(modules))
    return frozenset(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A = {}\ndef f(): A['x'] = 1", {"A"}),
        ("A: list[int] = []\ndef f(): A.append(1)", {"A"}),
        ("A = {'x': 1}\ndef f(): return A['x']", set()),
        ("A = 0\ndef f():\n global A\n A = 1", {"A"}),
        ("A = ContextVar[int]('a')", {"A"}),
        ("class C:\n def f(self): self.x = 1\nA = C()", {"A"}),
        ("class C:\n def f(self): return 1\nA = C()", set()),
        ("A.x = {}", set()),
    ],
)
def test_what_is_state(text: str, expected: set[str]) -> None:
    """A table that nobody changes is none."""
    assert state_of(text) == expected


def test_what_another_module_sets_is_state() -> None:
    """What is set of an imported object is that object's."""
    text = "from hermes_ext.a import b\nfrom hermes_ext.a.b import c\nb.x = 1\nc.y = 2"
    assert set_from_outside(text, {"a.b"}) == {"a.b.x"}


def test_state_stands_on_the_list() -> None:
    """Everything else belongs to an object: a runtime, its services, a turn."""
    assert _in_the_package() - STATE.keys() == set()


def test_of_hermes_it_is_in_one_place() -> None:
    """What patching Hermes needs is one object, and what knows Hermes has nothing else."""
    of_hermes = {name for name in _in_the_package() if name.startswith("hosts.")}
    assert of_hermes == {"hosts.hermes.adapter.state.state"}


def test_the_list_is_not_stale() -> None:
    """What is gone from the code is gone from the list."""
    assert STATE.keys() - _in_the_package() == set()
