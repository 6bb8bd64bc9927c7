"""What is too long or too deep to be read says so; what is only long is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext import Runtime, ToolCall
from hermes_ext.effects import Effects, Machine, effects_of

WORDS = 30_000
PRINTS = "print('word')\n" * WORDS


def read(tool: str, key: str, text: str, cwd: Path) -> Effects:
    machine = Machine(cwd=cwd, homes=("/h",), environ={})
    return effects_of(ToolCall(tool, {key: text}), machine=machine)


@pytest.mark.parametrize(
    ("tool", "key", "text"),
    [
        ("terminal", "command", f"python3 - <<'EOF'\nprint('''{'word ' * WORDS}''')\nEOF\n"),
        ("terminal", "command", f"cat <<'EOF'\n{'word ' * WORDS}\nEOF\n"),
        ("terminal", "command", f"echo {'word ' * WORDS}"),
        ("execute_code", "code", f"print('''{'word ' * WORDS}''')"),
        ("execute_code", "code", PRINTS),
    ],
    ids=["heredoc of Python", "heredoc", "words", "one text", "statements"],
)
def test_what_only_prints_is_read(tool: str, key: str, text: str, tmp_path: Path) -> None:
    """30,000 words are no reason to take a call for anything."""
    found = read(tool, key, text, tmp_path)
    assert found.unread is None
    assert not found.may_write


def test_what_is_long_is_read_to_its_end(tmp_path: Path) -> None:
    """Nothing is skipped: the last statement counts as the first does."""
    found = read("execute_code", "code", f"{PRINTS}open('x', 'w')\n", tmp_path)
    assert found.writes == {tmp_path / "x"}
    found = read("terminal", "command", f"echo {'word ' * WORDS} > x", tmp_path)
    assert found.writes == {tmp_path / "x"}


TOO_MUCH = [
    ("terminal", "command", "echo " + "word " * 500_000, "2,000,000 bytes of shell text"),
    ("terminal", "command", "echo " + "a b " * 60_000, "100,000 words and operators"),
    ("terminal", "command", "echo a; " * 6_000, "5,000 commands, reads and changes"),
    ("terminal", "command", "echo " + "$(" * 3_000 + ")" * 3_000, "too deeply"),
    ("terminal", "command", "f() { f; }; f", "inside each other"),
    ("execute_code", "code", "print('''" + "word " * 300_000 + "''')", "1,000,000 characters"),
    ("execute_code", "code", PRINTS * 2, "200,000 parts of Python code"),
    ("execute_code", "code", "import x\n" + "".join(f"x.y('{n}')\n" for n in range(6000)), "5,000"),
]


@pytest.mark.parametrize(("tool", "key", "text", "limit"), TOO_MUCH, ids=[x[3] for x in TOO_MUCH])
def test_what_is_too_long_says_so(
    tool: str, key: str, text: str, limit: str, tmp_path: Path
) -> None:
    """Which limit, how long the text is, and what to do; a refusal does not speak of an attack."""
    found = read(tool, key, text, tmp_path)
    assert found.unread is not None
    assert found.unread == found.unknown[0]
    assert not found.exact
    assert found.change_of(tmp_path / "x") is not None
    assert limit in found.unread
    assert f"{len(text):,} characters" in found.unread
    assert "Split it" in found.unread

    rule = "from hermes_ext import register_hook\n@register_hook('before_llm_call')\ndef f(): ...\n"
    (tmp_path / "extensions").mkdir()
    (tmp_path / "extensions" / "any.py").write_text(rule, encoding="utf-8")
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    with runtime.turn(session_id="s", cwd=tmp_path) as turn:
        refused = turn.intercept_tool_call(tool, {key: text})
    runtime.close()
    assert refused.blocked
    assert refused.message == f"{found.unread}."
