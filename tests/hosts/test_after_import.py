"""Acting on a module when its import has ended, whoever imports it and however it goes."""

from __future__ import annotations

import importlib
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hermes_ext.hosts.hermes.adapter.state import state
from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on `sys.path`; what is imported from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    state.awaited.clear()
    importlib.invalidate_caches()


def write(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name.replace('.', '/')}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    importlib.invalidate_caches()


def values(seen: list[int], module: ModuleType) -> None:
    seen.append(module.value)


def test_a_module_that_is_there(modules: Path) -> None:
    """A module that is imported already is acted on at once."""
    write(modules, "there", "value = 1\n")
    importlib.import_module("there")
    seen: list[int] = []
    when_imported("there", lambda module: values(seen, module))
    assert seen == [1]


def test_a_module_that_comes_later(modules: Path) -> None:
    """It is not imported by us; once it is, completely, each action is called once, in order."""
    write(modules, "pack.__init__", "")
    write(modules, "pack.later", "value = 1\nvalue = 2\n")
    seen: list[int] = []
    when_imported("pack.later", lambda module: values(seen, module))
    when_imported("pack.later", lambda module: seen.append(-module.value))
    assert "pack.later" not in sys.modules
    importlib.import_module("pack.later")
    importlib.import_module("pack.later")
    assert seen == [2, -2]
    assert type(sys.modules["pack.later"].__spec__) is importlib.machinery.ModuleSpec


def test_a_module_that_is_being_imported(modules: Path) -> None:
    """Asked half-way through the module's own import, the action waits for its end."""
    write(
        modules,
        "halfway",
        "value = 1\nimport asker\nvalue = 2\n",
    )
    write(
        modules,
        "asker",
        "from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported\n"
        "seen = []\n"
        "when_imported('halfway', lambda module: seen.append(module.value))\n"
        "assert seen == []\n",
    )
    importlib.import_module("halfway")
    assert sys.modules["asker"].seen == [2]


def test_an_import_that_fails_and_is_tried_again(modules: Path) -> None:
    """A failed import is no import: the action waits for one that succeeds."""
    write(modules, "flaky", "import flag\nvalue = flag.value\n")
    seen: list[int] = []
    when_imported("flaky", lambda module: values(seen, module))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("flaky")
    assert seen == []
    write(modules, "flag", "value = 3\n")
    importlib.import_module("flaky")
    assert seen == [3]


def test_no_such_module(modules: Path) -> None:
    """Waiting for a module that does not exist changes nothing about its absence."""
    when_imported("not_there_at_all", lambda module: None)
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        importlib.import_module("not_there_at_all")


def test_an_action_that_fails(modules: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What an action raises is logged; the import and the other actions go on."""
    write(modules, "fine", "value = 1\n")
    seen: list[int] = []

    def broken(module: ModuleType) -> None:
        raise RuntimeError("broken action")

    when_imported("fine", broken)
    when_imported("fine", lambda module: values(seen, module))
    with caplog.at_level(logging.ERROR, "hermes_ext"):
        importlib.import_module("fine")
    assert seen == [1]
    assert "could not attach to fine" in caplog.text


def test_two_threads_that_import(modules: Path) -> None:
    """Two threads that import at once see the module acted on, and the action is called once."""
    write(modules, "slow", "import gate\ngate.wait()\nvalue = 1\n")
    write(modules, "gate", "import threading\nevent = threading.Event()\nwait = event.wait\n")
    gate = importlib.import_module("gate")
    seen: list[str] = []

    def act(module: ModuleType) -> None:
        module.acted = True

    when_imported("slow", act)
    when_imported("slow", lambda module: seen.append("once"))

    def load() -> None:
        seen.append(str(importlib.import_module("slow").acted))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.event.set()
    for thread in threads:
        thread.join(30)
    assert sorted(seen) == ["True", "True", "True", "True", "once"]
