"""What happens to calls that create new modules, with a plan too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Guard = Callable[..., Any]


def write(path: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": "x"}


def shell(command: str) -> tuple[str, dict[str, Any]]:
    return "terminal", {"command": command}


NEW = {
    "the first source file of a folder": write("src/new/app.py"),
    "in a folder of other files": write("docs/conf.py"),
    "a manifest": write("tools/package.json"),
    "by the shell": shell("mkdir src/new && echo x > src/new/app.py"),
    "a patch": ("patch", {"mode": "patch", "patch": "*** Add File: lib/a.ts\n+x"}),
    "a copied folder": shell("cp -r src/old src/copy"),
    "a moved folder": shell("mv src/old src/moved"),
    "code": ("execute_code", {"code": "open('new/app.py', 'w').write('x')"}),
    "a command that is not understood": shell("make-module new/app.py"),
}

OLD = {
    "beside others": write("src/old/more.py"),
    "what is there": write("src/old/app.py"),
    "no source": write("notes/today.md"),
    "a folder alone": shell("mkdir -p src/new"),
    "reading": shell("cat new/app.py"),
    "deleting": shell("rm src/old/app.py"),
    "what is not understood": shell("make all"),
    "elsewhere": write("/var/tmp/new/app.py"),
}


def project(guarded: Guard, **settings: Any) -> Any:
    guard = guarded(**settings)
    for path in ("src/old/app.py", "docs/index.rst", "plans/active/plan.md"):
        guard.write(path)
    return guard


@pytest.mark.parametrize("call", NEW.values(), ids=NEW)
def test_new_modules(guarded: Guard, call: tuple[str, dict[str, Any]]) -> None:
    """They pass, need a person or are blocked, as the setting says; a plan is no excuse."""
    assert project(guarded).call(*call).action == "pass"
    blocked = project(guarded, new_modules="block").call(*call)
    assert blocked.blocked
    assert f"{call[0]} creates a new module:" in blocked.message
    assert blocked.metadata["setting"] == "extensions.workflow-guard.new_modules"
    asking = project(guarded, new_modules="ask")
    assert asking.call(*call).blocked  # nobody is there
    asking.runtime.approver = lambda request: True
    assert asking.call(*call).approved


@pytest.mark.parametrize("call", OLD.values(), ids=OLD)
def test_the_rest(guarded: Guard, call: tuple[str, dict[str, Any]]) -> None:
    """What is no new module is left alone."""
    assert project(guarded, new_modules="block").call(*call).action == "pass"


def test_own_patterns(guarded: Guard) -> None:
    """What a module is made of can be set."""
    guard = project(guarded, new_modules="block", module_files=["*.zig", "build.zig*"])
    assert guard.call(*write("src/new/app.py")).action == "pass"
    assert guard.call(*write("src/new/app.zig")).blocked


def test_without_a_plan_nobody_is_asked(guarded: Guard) -> None:
    """A call that is blocked for want of a plan is not put to a person."""
    guard = guarded(new_modules="ask")
    guard.runtime.approver = lambda request: pytest.fail("asked")
    assert "There is no plan yet" in guard.call(*write("src/new/app.py")).message
