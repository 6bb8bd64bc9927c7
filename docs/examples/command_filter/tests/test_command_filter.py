"""Which commands go through the filter; no filter, no extension."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext.testing import (
    ExtensionNotLoadedError,
    LoadExtension,
    assert_blocked,
    assert_passed,
    assert_rewritten,
)

EXTENSION = Path(__file__).parents[1]
NO_GIT = """
from hermes_ext import HookResult, register_hook
from hermes_ext.effects import effects_of

@register_hook("intercept_tool_call", guard=True)
def no_git(event):
    if any(command.name == "git" for command in effects_of(event).commands):
        return HookResult.block("There is no git here.")
"""


@pytest.fixture
def rtk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter on the PATH."""
    program = tmp_path / "rtk"
    program.write_text('#!/bin/sh\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_it_is_skipped_without_the_filter(
    load_extension: LoadExtension, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the reason, and without an error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExtensionNotLoadedError, match="skipped: rtk is not on PATH") as raised:
        load_extension(EXTENSION)
    assert raised.value.record is not None
    assert raised.value.record.status == "skipped"


@pytest.mark.usefixtures("rtk")
def test_long_output_is_filtered(load_extension: LoadExtension) -> None:
    """All other arguments stay."""
    extension = load_extension(EXTENSION)
    args = {"command": " git diff HEAD~3 ", "timeout": 5}
    wanted = {"command": "rtk git diff HEAD~3", "timeout": 5}
    assert_rewritten(extension.call("terminal", args), wanted)
    assert_passed(extension.call("read_file", {"path": "git diff"}))


@pytest.mark.usefixtures("rtk")
@pytest.mark.parametrize(
    "command",
    [
        "git push", "git commit -m x", "git diff > out.txt", "git diff | wc -l", "ls; ls", "ls &",
        "cat a.py", "/usr/bin/git diff", "LANG=C ls", "ls $(rm x)", "rtk git diff", "$x", "",
        "ls 2>/dev/null", "(ls)", "find . -delete", "grep x <<< y", "ls '",
        "ls # x", "ls\nls", "! ls", "[",
    ],
)  # fmt: skip
def test_what_stays_as_it_is(load_extension: LoadExtension, command: str) -> None:
    """What may change something, is no single command, or is not known to the filter."""
    assert_passed(load_extension(EXTENSION).call("terminal", {"command": command}))


@pytest.mark.usefixtures("rtk")
def test_guards_can_read_what_is_rewritten(load_extension: LoadExtension, tmp_path: Path) -> None:
    """With the setting that the extension's head names, effects know what the filter runs."""
    other = tmp_path / "no-git"
    other.mkdir()
    (other / "__init__.py").write_text(NO_GIT)
    call = ("terminal", {"command": "rtk git diff"})
    assert_passed(load_extension(other).call(*call))
    known = {"effects": {"commands": {"rtk": {"runs": 0}}}}
    assert_blocked(load_extension(other, extensions_config=known).call(*call), match="no git here")
