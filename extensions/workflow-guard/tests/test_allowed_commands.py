"""Which commands run unconfined without a plan, because the user says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Guard = Callable[..., Any]

PATTERNS = ["python -m pytest*", ".venv/bin/ruff *", "npm run lint", "make check?"]

UNCONFINED = [
    "npm run lint",
    "'npm' run \"lint\"",
    "python -m pytest",
    "python -m pytest tests/test_a.py -q",
    "python -m pytest-3",
    "python -m pytest 'a file.py' '*'",
    ".venv/bin/ruff",
    ".venv/bin/ruff check src",
    "make checks",
    "cd src && python -m pytest 2>&1 | tail -5",
    "npm run lint; git status && python -m pytest > /dev/null",
    "timeout 60 python -m pytest",
    'python -m pytest "$(echo tests)"',
    "python -m pytest src/*.py",
    "python -m pytest -xvs --lf src/a.py::test_a -k 'a or b' -W error::UserWarning --tb=short",
    "python -m pytest --base-url=http://localhost:80/plans tests/plans/test_a.py",
    "cd src && python -m pytest ../tests",
    "if npm run lint; then echo good; fi",
]

CONFINED = {
    "another word": "npm run lint:fix",
    "one word more": "npm run lint --fix",
    "one word less": "npm run",
    "no wildcard in it": "make check",
    "two words in one": "'npm run lint'",
    "words in a word": "python '-m pytest'",
    "a blank in a word": "python -m 'pytest -q'x; python '-m' ' pytest'",
    "an empty word": "npm '' run lint",
    "another program of that name": "plans/npm run lint",
    "another place of the program": "../.venv/bin/ruff check",
    "another command beside": "npm run lint; make",
    "another command behind": "npm run lint && ./deploy.sh",
    "another in a pipe": "npm run lint | sh",
    "another in the background": "make & npm run lint",
    "a substitution": "python -m pytest $(cat x)",
    "a substitution that runs another": 'python -m pytest "$(make)"',
    "a word that is not known": 'python -m pytest "$FILE"',
    "words that can be written": "python -m pytest plans/*",
    "a process substitution": "python -m pytest <(make)",
    "a variable": "PYTEST_ADDOPTS=-x python -m pytest",
    "a harmless variable": "CI=1 npm run lint",
    "a variable before": "export NODE_OPTIONS=-rx; npm run lint",
    "a variable of the shell": "x=1; npm run lint",
    "by env": "env A=1 npm run lint",
    "input": "python -m pytest <<< x",
    "piped input": "cat x | python -m pytest",
    "a function": "npm() { make; }; npm run lint",
    "an alias": "alias npm=make; npm run lint",
    "a directory that can be written": "cd plans && npm run lint",
    "a directory elsewhere": "cd /var/tmp && npm run lint",
    "a directory that is not known": 'cd "$D" && npm run lint',
    "a file that can be written": "python -m pytest plans/test_x.py",
    "an option with one": "python -m pytest --rootdir=plans/x",
    "letters of options before one": "python -m pytest -qcplans/x.md",
    "as another user": "sudo npm run lint",
    "a scratch path": "python -m pytest coverage/test_x.py",
    "a short option with one": "python -m pytest -xcplans/x.md",
    "a module in one": "python -m pytest -p plans.x",
    "a file that is included": "python -m pytest @plans/x.md",
    "a temporary file": "python -m pytest /tmp/x.py",
    "a short option with a temporary file": "python -m pytest -c/tmp/x.ini",
    "an option with a temporary file": "python -m pytest --confcutdir=/tmp/x",
    "a variable with a temporary file": "python -m pytest -o testpaths=/tmp/x",
    "the folder of another process": "python -m pytest /proc/1/cwd/x.py",
    "an open file": "python -m pytest /dev/fd/0",
    "a file of the home": "python -m pytest ~/x.py",
    "a file beside the project": "python -m pytest ../x.py",
    "from another folder": "cd src && python -m pytest ../plans/x.md",
    "the shell of another": "sh -c 'make; npm run lint'",
    "a program that is not known": '"$NPM" run lint',
    "evaluated": 'eval "$x"; npm run lint',
}


@pytest.mark.parametrize("command", UNCONFINED)
def test_named_commands_run_unconfined(guarded: Guard, command: str) -> None:
    """Where each command is by a pattern, or known to write nothing but what it may."""
    guard = guarded(allowed_commands=PATTERNS)
    guard.write("src/a.py")
    (guard.root / "plans").mkdir()
    outcome = guard.call("terminal", {"command": command})
    assert outcome.action == "pass", outcome.message
    assert (
        guarded(confines=False, allowed_commands=PATTERNS)
        .call("terminal", {"command": command})
        .action
        == "pass"
    )
    assert guarded().call("terminal", {"command": command}).action in ("confine", "block")


@pytest.mark.parametrize("command", CONFINED.values(), ids=CONFINED)
def test_all_else_stays_confined(guarded: Guard, command: str) -> None:
    """And writes nothing in the project, because it could be run by what is unconfined."""
    guard = guarded(allowed_commands=PATTERNS)
    for path in ("src/a.py", "src/b.py", "plans/x.md", "coverage/x"):
        guard.write(path)
    outcome = guard.call("terminal", {"command": command})
    assert outcome.action == "confine", outcome.message
    assert outcome.confinement.writable == ()


@pytest.mark.parametrize(
    "code", [">>> touch()\n", "```python\ntouch()\n```\n", ".. testcode::\n\n   touch()\n"]
)
def test_documents_that_tests_run(guarded: Guard, code: str) -> None:
    """pytest runs the examples of `test*.txt` by itself, and anybody may write one."""
    guard = guarded(allowed_commands=PATTERNS, plan={"headings": ["Goal"]})
    call = {"command": "python -m pytest"}
    guard.write("plans/test_x.txt", "A text.\n```sh\nls\n```\n")
    assert guard.call("terminal", call).action == "pass"
    for path in ("plans/new/test_x.txt", "plans/active/plan.md"):
        file = guard.write(path, f"A text.\n{code}")
        assert guard.call("terminal", call).action == "confine"
        file.unlink()


@pytest.mark.parametrize(
    "command",
    [
        "npm run lint > app.py",
        "npm run lint; rm app.py",
        "cp x app.py && npm run lint",
        "npm run lint > plans/lint.txt",
        "echo '>>> x()' > plans/test_x.txt; python -m pytest",
    ],
)
def test_what_is_known_to_write_is_refused(guarded: Guard, command: str) -> None:
    """Whatever runs beside it; a document too, which the tests could run."""
    guard = guarded(allowed_commands=PATTERNS)
    (guard.root / "plans").mkdir()
    assert "terminal must not change" in guard.call("terminal", {"command": command}).message


def test_a_directory_of_the_call(guarded: Guard) -> None:
    """The tool's own argument counts as `cd` does."""
    guard = guarded(allowed_commands=PATTERNS)
    (guard.root / "plans").mkdir()
    call = {"command": "npm run lint", "workdir": str(guard.root / "plans")}
    assert guard.call("terminal", call).action == "confine"
    assert guard.call("terminal", call | {"workdir": str(guard.root)}).action == "pass"


def test_code_and_blocked_tools_stay_as_they_are(guarded: Guard) -> None:
    """The patterns are for commands of a shell, and open no tool that is blocked."""
    guard = guarded(allowed_commands=["npm run lint"], blocked_tools=["terminal"])
    assert guard.call("terminal", {"command": "npm run lint"}).blocked
    code = {"code": "import os\nos.system('npm run lint')"}
    assert guard.call("execute_code", code).action == "confine"
