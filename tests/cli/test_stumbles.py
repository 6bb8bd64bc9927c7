"""What a new user meets: each thing that is wrong is told once, with what to do about it."""

from __future__ import annotations

import os
import sys

import pytest
from tests.cli.conftest import GOOD
from tests.harness.terminal import terminal

NEEDS = """
name: reporter
config:
  type: object
  additionalProperties: false
  required: [webhook, level]
  properties:
    webhook: {type: string, examples: ["https://example.org/hook"]}
    level: {enum: [low, high]}
    limit: {type: integer, default: 3}
"""


def test_a_setting_that_is_missing_is_told_with_an_example(home):
    """`list` and `info` say what to write, and where; `info` lists the setting among the others."""
    home.add("reporter", manifest=NEEDS)

    told = home.run("info", "reporter", "--json").json
    missing = {each["key"]: each["from"] for each in told["settings"] if each["value"] is None}
    assert missing["webhook"] == 'missing; write, say, webhook: "https://example.org/hook"'
    assert missing["level"] == 'missing; write, say, level: "low"'
    listed = " ".join(home.run("list").out.split())
    assert 'Write, say, `level: "low"` below `extensions.reporter`' in listed

    home.write_config('extensions:\n  reporter: {webhook: "x", level: low}\n')
    assert "missing;" not in home.run("info", "reporter").out


def test_each_fault_of_settings_has_its_line(home):
    """Several faults are several lines, and `info` tells them once."""
    home.add("reporter", manifest=NEEDS)
    home.write_config("extensions:\n  reporter: {webhook: 3, level: lo, limit: x}\n")

    lines = [line for line in home.run("list").out.splitlines() if "extensions.reporter." in line]
    assert len(lines) == 3
    told = home.run("info", "reporter").out
    assert "config-error: 3 problems, see below" in told
    assert told.count("found the number 3, expected text") == 1


def test_a_required_one_that_is_off(home):
    """`list` finds it wrong without loading anything, and says what turns it on."""
    home.add("alpha")
    home.write_config("extensions:\n  required: [alpha, budget]\n  disabled: [alpha]\n")

    output = home.run("list")

    assert output.code == 1
    assert "Every tool call is refused: a required extension is not loaded: alpha" in output.out
    assert "To turn it on: hermes-ext enable alpha" in output.out.replace(
        f" --home {home.path}", ""
    )
    for name in ("alpha", "budget"):
        home.run("enable", name)
    assert home.run("list").code == 0


def test_a_folder_that_is_no_extension_yet(home):
    """One without `__init__.py` and one without anything are each told once."""
    for name, file in (("empty", None), ("half", "rules.py")):
        folder = home.path / "extensions" / name
        folder.mkdir(parents=True)
        if file:
            (folder / file).touch()

    told = home.run("list").out

    assert told.count("has no __init__.py; add one") == 2
    assert "empty is not an extension: it is empty" in told
    assert "warning:" not in told


def test_a_hook_of_one_that_is_off_is_no_use(home):
    """`enable --hook` says what turns the extension itself on, of whatever source it is."""
    home.add("alpha")
    home.run("disable", "alpha")

    for name in ("alpha", "budget"):
        told = home.run("enable", name, "--hook", "intercept_tool_call").out
        assert "the whole extension is off as well; turn it on with: hermes-ext enable" in told


def test_enabling_what_cannot_be_loaded_is_told_in_words(home):
    """Not in the names of statuses."""
    home.add("reporter", manifest=NEEDS)
    home.run("disable", "reporter")

    told = home.run("enable", "reporter").out

    assert "Note: it is not loaded, because its settings are wrong: " in told


def test_loading_says_what_made_the_exit_code(home):
    """Below a long list, as below `--order`."""
    home.add("broken", "raise RuntimeError('x')\n")
    home.add("fine")

    output = home.run("list", "--load")

    assert output.code == 1
    assert output.out.rstrip().endswith("Something is wrong (exit code 1): broken")
    assert home.run("list", "--load", "--json").json["broken"] == ["broken"]


def test_too_short_a_deadline(home):
    """What was given up for it says that there is a longer one."""
    home.add("slow", "import time\ntime.sleep(60)\n" + GOOD)

    told = home.run("list", "--load", "--deadline", "1").out

    assert "--deadline SECONDS gives it longer" in told


def test_nobody_knows_what_is_on_where_the_configuration_cannot_be_read(home):
    """Nothing is called enabled then."""
    home.add("alpha")
    home.run("list", "--load")
    home.write_config("extensions: [\n")

    for argv in (["list"], ["info", "alpha"]):
        output = home.run(*argv)
        assert output.code == 1
        assert "unknown" in output.out
        assert "enabled" not in output.out.replace("plugins.enabled", "")
        assert not home.run(*argv, "--json").json["readable"]


def test_hooks_of_before_a_change_are_called_so(home):
    """`info` shows what the last load recorded, and says that it changed since."""
    path = home.add("alpha")
    home.run("list", "--load")
    assert "before it changed" not in home.run("info", "alpha").out

    (path / "__init__.py").write_text(GOOD + "\n# changed\n")

    told = home.run("info", "alpha").out
    assert "as it was last loaded, before it changed:" in told
    assert "intercept_tool_call: check" in told


def test_a_home_that_is_a_file(home):
    """What was meant is told, and no folder of that name is made."""
    home.write_config("")
    for told, path in (("is a file", home.config), ("has no name", "")):
        output = home.run("install", "--home", str(path))
        assert output.code == 2
        assert told in output.err
    missing = home.path / "elsewhere" / "config.yaml"
    assert home.run("install", "--home", str(missing)).code == 2
    assert not missing.parent.exists()


@pytest.mark.hermes
def test_a_slash_command_that_hermes_has(home):
    """It is told as soon as the extension has been loaded."""
    source = "from hermes_ext import register_command\n"
    source += "".join(
        f"@register_command('{name}')\ndef {name}_it(args): return ''\n"
        for name in ("help", "planning")
    )
    home.add("talk", source)

    (talk,) = [
        each
        for each in home.run("list", "--load", "--json").json["extensions"]
        if each["name"] == "talk"
    ]

    assert talk["warnings"] == ["/help is a command of Hermes itself, so this one is never called"]


def test_what_takes_long_says_so_in_a_terminal(home):
    """A person sees what is being waited for, and then the answer without it."""
    go_on = home.path / "go-on"
    waiting = f"""
import os, time
while not os.path.exists({str(go_on)!r}):
    time.sleep(0.05)
"""
    home.add("slow", waiting + GOOD)
    line = [sys.executable, "-m", "hermes_ext.cli", "list", "--load", "--home", str(home.path)]
    with terminal(line, env={**os.environ}, cwd=home.path) as person:
        person.wait("Loading the extensions")
        go_on.touch()
        assert "Loading the extensions" not in person.wait("intercept_tool_call 40")
