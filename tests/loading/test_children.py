"""Processes that a handler starts by `spawn` and `forkserver` import the extension's modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.projects import Place

METHODS = [
    "spawn",
    pytest.param(
        "forkserver",
        marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows has no forkserver"),
    ),
]

# Starts children in every way, with functions, classes and exceptions of the extension.
RULES = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from hermes_ext import HookResult, register_hook
from .parts.work import Answer, Failure, Worker, fail, nested, work
import os

def beside(text):
    return Answer(f"{text} {os.getpid()}")

@register_hook("intercept_tool_call", guard=True, timeout=90)
def check(tool_name):
    context = multiprocessing.get_context(METHOD)
    queue = context.Queue()
    worker = Worker(queue) if METHOD == "spawn" else context.Process(target=work, args=("p", queue))
    worker.start()
    told = [queue.get(timeout=60).text]
    worker.join()
    with context.Pool(1) as pool:
        told.append(pool.apply(beside, ("pool",)).text.split()[0])
        try:
            pool.apply(fail)
        except Failure as error:
            told.append(f"failure {error}")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        told.append(pool.submit(nested, METHOD).result().text)
    return HookResult.block(" | ".join(told))
"""
WORK = """
import multiprocessing
from dataclasses import dataclass

@dataclass
class Answer:
    text: str

class Failure(Exception):
    pass

def fail():
    raise Failure("told")

def work(text, queue):
    queue.put(Answer(text))

class Worker(multiprocessing.get_context("spawn").Process):
    def __init__(self, queue):
        super().__init__()
        self.queue = queue

    def run(self):
        self.queue.put(Answer("p"))

def nested(method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=work, args=("grandchild", queue))
    child.start()
    answer = queue.get(timeout=60)
    child.join()
    return answer
"""
TOLD = "p | pool | failure told | grandchild"

DRIVER = """
import json, sys
from pathlib import Path

def main(home, cwd):
    from hermes_ext import Runtime
    runtime = Runtime.from_config(home=home, cwd=cwd)
    with runtime.turn(session_id="s1", cwd=Path(cwd)) as turn:
        {before}
        outcome = turn.intercept_tool_call("terminal", {{"command": "ls"}}, tool_call_id="c1")
    print(json.dumps(json.loads(outcome.as_tool_result())))

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def call(tmp_path: Path, home: Path, cwd: Path, before: str = "pass") -> dict[str, Any]:
    """The result of one tool call that the extensions of a home and directory judge."""
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER.format(before=before))
    run = subprocess.run(
        [sys.executable, str(driver), str(home), str(cwd)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told: dict[str, Any] = json.loads(run.stdout)
    return told


def rules(method: str) -> dict[str, str]:
    return {
        "__init__.py": f"METHOD = {method!r}\n{RULES}",
        "parts/__init__.py": "",
        "parts/work.py": WORK,
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("to_home", [True, False], ids=["global", "project"])
def test_children_import_the_extension(tmp_path: Path, method: str, to_home: bool) -> None:
    """Functions, classes, exceptions and results of an extension cross to its children and back,
    in a process, a pool and an executor, and to children of children.
    """
    place = Place(tmp_path)
    place.add("process-rules", rules(method), to_home=to_home)
    if not to_home:
        place.trust()

    assert call(tmp_path, place.home, place.root)["error"] == TOLD


@pytest.mark.parametrize("method", METHODS)
def test_a_single_file_is_imported_too(tmp_path: Path, method: str) -> None:
    """The functions of an extension that is one file are found, and so is its API by its other
    name, while its neighbors are not part of it.
    """
    place = Place(tmp_path)
    (place.home / "extensions/alone.py").write_text(
        dedent(
            f"""
            import multiprocessing
            from agent.extension_hooks import HookResult, register_hook

            def work(text):
                return text.upper()

            @register_hook("intercept_tool_call", timeout=90)
            def check(tool_name):
                with multiprocessing.get_context({method!r}).Pool(1) as pool:
                    return HookResult.block(pool.apply(work, ("alone",)))
            """
        )
    )

    assert call(tmp_path, place.home, place.root)["error"] == "ALONE"


CHANGED = "Path({file!r}).write_text(Path({file!r}).read_text().replace('grandchild', 'CHANGED'))"


def test_a_projects_children_run_what_was_verified(tmp_path: Path) -> None:
    """A project's file that changes after it was loaded is not what its children run: they get
    the verified files themselves.
    """
    place = Place(tmp_path)
    folder = place.add("process-rules", rules("spawn"))
    place.trust()
    before = CHANGED.format(file=str(folder / "parts/work.py"))

    assert call(tmp_path, place.home, place.root, before)["error"] == TOLD
    assert "CHANGED" in (folder / "parts/work.py").read_text()


def test_children_of_a_changed_global_extension_fail(tmp_path: Path) -> None:
    """A global extension's file that changes while a turn runs is not run by a child; the guard
    fails, and so blocks, with the reason.
    """
    place = Place(tmp_path)
    place.add(
        "one-rule",
        {
            "__init__.py": (
                "from concurrent.futures import ProcessPoolExecutor\n"
                "import multiprocessing\n"
                "from hermes_ext import HookResult, register_hook\n"
                "from .work import work\n"
                "@register_hook('intercept_tool_call', guard=True, timeout=90)\n"
                "def check(tool_name):\n"
                "    process = multiprocessing.get_context('spawn').Process(target=work)\n"
                "    process.start()\n"
                "    process.join()\n"
                "    return HookResult.block(f'exit code {process.exitcode}')\n"
            ),
            "work.py": "def work():\n    'grandchild'\n",
        },
        to_home=True,
    )
    file = place.home / "extensions/one-rule/work.py"

    assert call(tmp_path, place.home, place.root)["error"] == "exit code 0"
    changed = call(tmp_path, place.home, place.root, CHANGED.format(file=str(file)))
    assert changed["error"] == "exit code 1"


def test_other_processes_start_as_ever(tmp_path: Path) -> None:
    """A child that has nothing to do with extensions starts, also in another Python than this."""
    place = Place(tmp_path)
    place.add("quiet", "from hermes_ext import register_hook\n", to_home=True)
    before = (
        "import multiprocessing, os, sys; "
        "from multiprocessing import spawn; "
        "other = Path(sys.argv[0]).with_name('python'); "
        "other.symlink_to(sys.executable); "
        "spawn.set_executable(str(other)); "
        "pool = multiprocessing.get_context('spawn').Pool(1); "
        "assert pool.apply(abs, (-3,)) == 3; pool.terminate()"
    )
    place.add(
        "block",
        "from hermes_ext import HookResult, register_hook\n"
        "@register_hook('intercept_tool_call')\n"
        "def check(tool_name): return HookResult.block('blocked')\n",
        to_home=True,
    )

    assert call(tmp_path, place.home, place.root, before)["error"] == "blocked"
