"""What is too long or too deep to be read gets an answer without being read: it may do anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of
from hermes_ext.effects._shell.words import WordReader
from hermes_ext.effects._tools import Text

MACHINE = Machine(cwd=Path("/w"), homes=("/h",), environ={})


def _effects(tool: str, args: dict[str, Any]) -> Effects:
    return effects_of(ToolCall(tool, args), machine=MACHINE)


_LONG: dict[str, tuple[str, dict[str, Any]]] = {
    "words": ("terminal", {"command": "echo " + "word " * 200_000}),
    "commands": ("terminal", {"command": "echo a; " * 50_000}),
    "assignments": ("terminal", {"command": "a=1 " * 50_000}),
    "a text in a text": ("terminal", {"command": f"sh -c 'ls {'word ' * 200_000}'"}),
    "the same text again and again": (
        "terminal",
        {"command": f"x='ls {'word ' * 500}'; {'eval $x; ' * 200}"},
    ),
    "values": ("mcp_a_b", {"rows": [f"value {number}" for number in range(100_000)]}),
    "names": ("mcp_a_b", {f"name {number}": "x" for number in range(100_000)}),
    "paths in a text": ("mcp_a_b", {"x": " ".join(f"a/{number}" for number in range(100_000))}),
}


@pytest.mark.parametrize(("tool", "args"), _LONG.values(), ids=_LONG)
def test_what_is_too_long_may_do_anything(tool: str, args: dict[str, Any]) -> None:
    effects = _effects(tool, args)
    assert effects.unread is not None
    assert effects.unread.startswith(f"{tool} is given ")
    assert "cannot be checked: more than " in effects.unread
    assert effects.change_of(Path("/any/file")) is not None


def test_what_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the words of a shell text nor the values of a tool."""
    read: list[object] = []
    monkeypatch.setattr(WordReader, "values", lambda *_args, **_more: read.append(1) or ("x",))
    monkeypatch.setattr(Text, "words", lambda _: read.append(1) or ())
    _effects("terminal", {"command": "echo a"})
    _effects("mcp_a_b", {"rows": ["a"]})
    assert read
    read.clear()
    for name in ("words", "values", "names"):
        _effects(*_LONG[name])
    assert read == []


def test_what_is_usual_is_read() -> None:
    """Some thousands of words, long texts in a here-document, and a table of values."""
    files = [f"f{number}" for number in range(2_000)]
    assert len(_effects("terminal", {"command": f"touch {' '.join(files)}"}).writes) == 2_000
    text = "cat > x <<'EOF'\n" + "some text, in words\n" * 20_000 + "EOF\n"
    assert _effects("terminal", {"command": text}).exact
    effects = _effects("mcp_a_b", {"rows": [{"id": each, "x": "y"} for each in files]})
    assert effects.unknown == ("what mcp_a_b does is not known",)


@pytest.mark.parametrize(
    "command",
    ["time " * 5_000 + "ls", "(" * 5_000 + "ls" + ")" * 5_000, "$(" * 3_000 + "ls" + ")" * 3_000],
    ids=["time", "parentheses", "substitutions"],
)
def test_what_is_nested_too_deeply_is_told_in_words(command: str) -> None:
    effects = _effects("terminal", {"command": command})
    (why,) = [each for each in effects.unknown if "terminal" in each]
    assert why == effects.unread
    assert "nested too deeply to be read" in why
    assert effects.change_of(Path("/any/file")) is not None
