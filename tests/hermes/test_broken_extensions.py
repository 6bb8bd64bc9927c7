"""Broken extensions in the real Hermes: one clear line each, and the agent starts and answers."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome

from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

HEAD = "from hermes_ext import HookResult, register_hook\n\n\n"

# What each is, and what its line must say.
BROKEN = {
    "bad-syntax": ("def broken(:\n", "__init__.py:1"),
    "bad-import": ("import no_such_library\n", "no_such_library"),
    "exits": ("import sys\n\nsys.exit(9)\n", "exit"),
    "endless": ("import threading\n\nthreading.Event().wait()\n", "did not finish"),
    "wrong-hook": (
        HEAD + "@register_hook('intercept_tool_cal')\ndef f(tool_name): ...\n",
        "intercept_tool_call",
    ),
    "wrong-argument": (
        HEAD + "@register_hook('intercept_tool_call')\ndef f(tool): ...\n",
        "tool_name",
    ),
}
EMPTY = "def intercept_tool_call(tool_name): ...\n"
STRING = HEAD + "@register_hook('intercept_tool_call')\ndef judge(tool_name):\n    return 'block'\n"
GOOD = (
    HEAD
    + "@register_hook('before_llm_call')\n"
    + "def rule():\n    return HookResult.inject_system('RULE-ONE applies.')\n"
)


def test_each_costs_a_line(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Whatever is wrong with the others, the good one works, and every fault is told by name."""
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    model = model_factory([Reply(tool_calls=(write,)), Reply("Done.")])
    home = hermes(model)
    for name, (source, _) in BROKEN.items():
        home.extension(name, source)
    home.extension("empty", EMPTY)
    home.extension("stringly", STRING)
    home.extension("good", GOOD)

    run = home.oneshot("go").check()
    assert run.stdout == "Done.\n"
    first, second = model.main_requests
    assert first.system.endswith("RULE-ONE applies.")
    [(_, refused)] = second.tool_results
    assert "[stringly]" in refused
    assert not (home.project / "a.txt").exists()
    # One-shot mode turns all logs off; what failed in the turn is told even so, where it stands.
    line, blocked = [line for line in run.stderr.splitlines() if "stringly" in line]
    assert line.startswith("hermes-ext: ")
    assert blocked.startswith("hermes-ext: stringly blocked write_file: ")
    assert "stringly/__init__.py" in line
    assert "returned 'block'" in line
    for name, (_, told) in BROKEN.items():
        said = f" {name} is not in force"
        [line] = [line for line in run.stderr.splitlines() if said in line]
        assert told in line

    listed = home.cli("extensions", "list", "--load", "--deadline", "14")
    assert listed.returncode == 1
    rows = {line.split()[0]: line for line in listed.stdout.splitlines() if line.strip()}
    for name in BROKEN:
        assert "load-error" in rows[name], listed
    assert "enabled" in rows["good"]
    examined = home.cli("extensions", "doctor", "--no-canary", "--deadline", "14")
    assert examined.returncode == 1
    for name in (*BROKEN, "empty", "stringly"):
        assert name in examined.stdout, examined
    for output in (listed.stdout, examined.stdout):
        for _, told in BROKEN.values():
            assert told in output
        assert "Traceback" not in output


def test_what_is_not_an_extension_neither_hangs_nor_hides(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """Pipes, nested folders and bytecode cost a line each: Hermes starts, answers, and the good
    extension holds; every command ends.
    """
    model = model_factory([Reply("Done.")])
    home = hermes(model)
    home.extension("good", GOOD)
    root = home.home / "extensions"
    os.mkfifo(root / "pipe.py")
    os.mkfifo(root / "plain-pipe")
    (root / "nested/nested").mkdir(parents=True)
    (root / "nested/nested/__init__.py").write_text(STRING)
    (root / "old.pyc").touch()
    (root / "README.md").touch()

    run = home.oneshot("go").check()

    assert run.stdout == "Done.\n"
    [request] = model.main_requests
    assert request.system.endswith("RULE-ONE applies.")
    for name, told in (
        ("pipe", "it is a named pipe"),
        ("plain-pipe", "it is a named pipe"),
        ("nested", f"the extension seems to be {root / 'nested/nested'}"),
        ("old.pyc", "bytecode without its source"),
    ):
        said = f" {name} is not in force (not-an-extension)"
        [line] = [line for line in run.stderr.splitlines() if said in line]
        assert told in line
    assert "README" not in run.stderr
    for command in (["list"], ["list", "--load"], ["doctor", "--no-canary"], ["disable", "good"]):
        assert home.cli("extensions", *command).returncode in {0, 1}
    assert home.cli("extensions", "doctor", "--no-canary").returncode == 1


@pytest.mark.parametrize(
    "name",
    [
        "config.yaml",
        "cache/hermes-ext/last-load.json",
        "cache/hermes-ext/manifests.json",
        "cache/hermes-ext/lost-hooks.json",
        "cache/hermes-ext/not-taken/1-a.json",
    ],
)
def test_a_pipe_for_a_file_of_ours_is_not_waited_for(hermes: HomeFactory, name: str) -> None:
    """Commands end where a file in the home that they read is a pipe."""
    home = hermes()
    home.extension("good", GOOD)
    file = home.home / name
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(file)
    for command in (["list"], ["info", "good"], ["disable", "good"]):
        run = home.python("from hermes_ext.cli import main; main()", *command, timeout=30)
        assert run.returncode in {0, 1}
        assert "Traceback" not in run.stderr


def test_a_pipe_for_a_folder_of_extensions_refuses_the_required(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """Where `extensions` itself is a pipe, Hermes answers, one line says so, and with a required
    guard no tool runs.
    """
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    model = model_factory([Reply(tool_calls=(write,)), Reply("Done.")])
    home = hermes(model)
    root = home.home / "extensions"
    if root.exists():
        root.rmdir()
    os.mkfifo(root)
    home.write_config({"extensions": {"required": ["guard"]}})

    run = home.oneshot("go").check()

    assert not (home.project / "a.txt").exists()
    assert "it is a named pipe, not a folder" in run.stderr


def test_a_guard_that_can_match_no_tool_costs_a_line(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """A guard for a tool that this Hermes does not have is called out at the start, with the name
    that was probably meant; one for a tool that it has is not.
    """
    model = model_factory([Reply("Done.")])
    home = hermes(model)
    for name, tool in (("dead", "Bash"), ("alive", "terminal")):
        guard = f"@register_hook('intercept_tool_call', guard=True, tools=['{tool}'])\n"
        home.extension(name, HEAD + guard + "def check(tool_name): ...\n")

    run = home.oneshot("go").check()

    [line] = [line for line in run.stderr.splitlines() if "not in force here" in line]
    assert "extension dead" in line
    assert 'Did you mean "terminal"?' in line
