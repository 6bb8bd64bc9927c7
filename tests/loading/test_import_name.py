"""`_import_name`: `agent.extension_hooks` in hosts with and without a package `agent`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REQUEST = """\
from agent.extension_hooks import register_hook, HookResult
from agent.extension_hooks import get_turn_state

@register_hook("transform_user_input", priority=10)
def my_input_hook(user_message, **kwargs):
    if is_implementation_request(user_message) and not has_valid_plan():
        return HookResult("rewrite", f"/start-feature {user_message}")
    return HookResult("pass")
"""


NO_HOST = """\
import sys
from importlib.machinery import PathFinder

class WithoutAgent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.split(".")[0] == "agent" else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutAgent
"""


def run(program: str, host: Path | None = None) -> str:
    """Run in a fresh interpreter, since imports are per process.

    host: a folder for sys.path; without it there is no package `agent`, be Hermes installed or not.
    """
    program = (
        f"from hermes_ext.loading.imports import import_name; import_name.install()\n{program}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program if host else f"{NO_HOST}{program}"],
        env=os.environ | {"PYTHONPATH": str(host or ""), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr[-500:]


@pytest.fixture
def host(tmp_path):
    """A host with a package `agent`, as Hermes has."""
    package = tmp_path / "agent"
    package.mkdir()
    (package / "__init__.py").write_text("HOST = True\n")
    (package / "loop.py").write_text("LOOP = True\n")
    return tmp_path


@pytest.mark.parametrize("with_host", [True, False])
def test_the_feature_requests_lines_run(host, with_host):
    """They import and mark, whether the host has a package `agent` or not."""
    program = f"{REQUEST}\nfrom hermes_ext.hooks.registration import marks_of\n"
    assert (
        run(f"{program}print(marks_of(my_input_hook)[0].priority)", host if with_host else None)
        == "10\n"
    )


def test_the_hosts_package_stays_the_hosts(host):
    """`agent` and its other modules are the host's own."""
    program = "import agent.extension_hooks, agent.loop\nprint(agent.HOST, agent.loop.LOOP)"
    assert run(program, host) == "True True\n"


def test_the_hosts_own_module_wins(host):
    """A host that brings `agent.extension_hooks` itself is not overruled."""
    (host / "agent/extension_hooks.py").write_text("OWN = True\n")
    assert run("import agent.extension_hooks as it; print(it.OWN)", host) == "True\n"


def test_all_public_names_are_offered():
    """The module has the names of hermes_ext, the very same objects, and no others."""
    program = (
        "import hermes_ext, agent.extension_hooks as it\n"
        "print(it.__all__ == hermes_ext.__all__, dir(it) == sorted(hermes_ext.__all__))\n"
        "print(all(getattr(it, n) is getattr(hermes_ext, n) for n in it.__all__))\n"
        "print(hasattr(it, 'nonsense'))\n"
        "exec('from agent.extension_hooks import *'); print(register_hook is it.register_hook)"
    )
    assert run(program) == "True True\nTrue\nFalse\nTrue\n"


def test_a_wrong_name_is_an_import_error():
    """A misspelt import says which name is not there."""
    told = run("from agent.extension_hooks import registerhook")
    assert "cannot import name 'registerhook' from 'agent.extension_hooks'" in told


def test_installing_twice_and_taking_away():
    """The finder stands once, at the end, and can be taken away."""
    program = (
        "import sys; before = list(sys.meta_path); import_name.install()\n"
        "print(sys.meta_path == before, sys.meta_path[-1].__module__)\n"
        "sys.meta_path.pop()\n"
        "import agent.extension_hooks"
    )
    told = run(program)
    assert told.startswith("True hermes_ext.loading.imports.import_name\n")
    assert "No module named 'agent'" in told
