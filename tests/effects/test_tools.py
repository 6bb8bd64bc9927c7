"""Each tool of Hermes says what it touches; a tool that nobody knows may do anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes_ext import ToolCall, ToolResult
from hermes_ext.effects import Effects, Machine, effects_of


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tools").resolve()
    for name in ("src/a.py", "b.txt", "home/.hermes/x", "docs/index.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    (root / "link").symlink_to("src/a.py")
    return root


def machine_at(place: Path, **options: Any) -> Machine:
    return Machine(**{"cwd": place, "homes": (str(place / "home"),), "environ": {}, **options})


def effects(place: Path, tool: str, args: Mapping[str, Any], **options: Any) -> Effects:
    return effects_of(ToolCall(tool, dict(args)), machine=machine_at(place, **options))


def changes(found: Effects, place: Path) -> set[tuple[str, str]]:
    return {(os.path.relpath(each.path, place), each.kind.value) for each in found.changes}


def below(paths: frozenset[Path], place: Path) -> set[str]:
    return {os.path.relpath(each, place) for each in paths}


WRITES: list[tuple[str, dict[str, Any], set[tuple[str, str]]]] = [
    ("write_file", {"path": "b.txt", "content": "y"}, {("b.txt", "write")}),
    ("write_file", {"path": "new/c.txt", "content": "y"}, {("new/c.txt", "create")}),
    ("write_file", {"path": "./src//../b.txt", "content": "y"}, {("b.txt", "write")}),
    ("write_file", {"path": "~/c", "content": "y"}, {("home/c", "create")}),
    ("write_file", {"path": "link", "content": "y"}, {("link", "write"), ("src/a.py", "write")}),
    ("write_file", {"file_path": "b.txt", "content": "y"}, {("b.txt", "write")}),
    ("write_file", {"filePath": "b.txt", "content": "y"}, {("b.txt", "write")}),
    ("write_file", {"paths": ["b.txt", "c"], "content": ""}, {("b.txt", "write"), ("c", "create")}),
    (" Write ", {"path": "b.txt", "content": "y"}, {("b.txt", "write")}),
    ("edit", {"path": "b.txt", "old_string": "x", "new_string": "y"}, {("b.txt", "write")}),
    ("patch", {"path": "b.txt", "old_string": "x", "new_string": "y"}, {("b.txt", "write")}),
    ("terminal", {"command": "echo x > c"}, {("c", "create")}),
    ("terminal", {"command": "echo x > c", "workdir": "src"}, {("src/c", "create")}),
    ("terminal", {"command": "echo x > c", "workdir": "~/x"}, {("home/x/c", "create")}),
    ("terminal", {"command": "echo x > c", "background": True, "pty": True}, {("c", "create")}),
    ("execute_code", {"code": "open('c', 'w')"}, {("c", "create")}),
    ("memory", {"action": "add", "target": "user", "content": "x"},
     {("home/.hermes/memories/USER.md", "create")}),
    ("skill_manage", {"action": "create", "name": "x", "content": "y"},
     {("home/.hermes/skills", "write")}),
    ("tool_call", {"name": "write_file", "arguments": {"path": "c", "content": ""}},
     {("c", "create")}),
    ("tool_call", {"name": "write_file", "arguments": '{"path": "c", "content": ""}'},
     {("c", "create")}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    WRITES,
    ids=[f"{each[0].strip()}-{i}" for i, each in enumerate(WRITES)],
)
def test_what_a_tool_writes_is_named_in_full(
    place: Path, tool: str, args: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    found = effects(place, tool, args)
    assert changes(found, place) == expected
    assert found.exact
    assert found.may_write


READS: list[tuple[str, dict[str, Any], set[str], set[str]]] = [
    ("read_file", {"path": "b.txt", "offset": 1, "limit": 2}, {"b.txt"}, set()),
    ("read_file", {"path": "link"}, {"src/a.py"}, set()),
    ("search_files", {"pattern": "x"}, {"."}, {"."}),
    ("search_files", {"pattern": "x", "path": "src", "target": "files"}, {"src"}, {"src"}),
    ("search_files", {"pattern": "x", "path": "b.txt", "context": 2}, {"b.txt"}, set()),
    ("search_files", {"pattern": "-*.py", "target": "files"}, {"."}, {"."}),
    ("vision_analyze", {"image_url": "file:///a%20b.png", "question": "?"}, {"/a b.png"}, set()),
    ("vision_analyze", {"image_url": "https://a.b/c.png", "question": "?"}, set(), set()),
    ("browser_navigate", {"url": "file:///etc/hosts"}, {"/etc/hosts"}, set()),
    ("browser_navigate", {"url": "https://a.b/c"}, set(), set()),
    ("kanban_complete", {"task_id": "1", "artifacts": ["b.txt"]}, {"b.txt"}, set()),
    ("process", {"action": "poll", "session_id": "1"}, set(), set()),
    ("cronjob", {"action": "list"}, set(), set()),
    ("delegate_task", {"goal": "write b.txt", "tasks": [{"goal": "rm b.txt"}]}, set(), set()),
    ("todo", {"todos": [{"content": "write b.txt"}]}, set(), set()),
    ("clarify", {"question": "Shall I rm -rf / ?"}, set(), set()),
    ("web_search", {"query": "-x"}, set(), set()),
]


@pytest.mark.parametrize(
    ("tool", "args", "reads", "searches"),
    READS,
    ids=[f"{each[0]}-{i}" for i, each in enumerate(READS)],
)
def test_a_tool_that_only_reads_surely_writes_nothing(
    place: Path, tool: str, args: dict[str, Any], reads: set[str], searches: set[str]
) -> None:
    found = effects(place, tool, args)
    assert found.exact
    assert not found.may_write
    assert {str(path) for path in found.reads} == {
        os.path.join(place, p).rstrip("/.") for p in reads
    }
    assert below(found.searches, place) == searches


UNKNOWN: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"content": "x"}),
    ("write_file", {"path": "a", "content": "x", "also": "b"}),
    ("write_file", {"path": {"a": 1}, "content": "x"}),
    ("write_file", {"path": "~-/x", "content": "x"}),
    ("patch", {"mode": "replace", "old_string": "a", "new_string": "b"}),
    ("search_files", {"pattern": "--pre=sh"}),
    ("search_files", {"pattern": "x", "path": "--pre=sh"}),
    ("search_files", {"pattern": "x", "context": "1; touch y"}),
    ("terminal", {"command": None}),
    ("terminal", {"command": "ls", "shell": "/tmp/own"}),
    ("terminal", {"command": "echo x > y", "workdir": "-"}),
    ("terminal", {"command": "echo x > y", "workdir": "nowhere", "background": True}),
    ("process", {"action": "submit", "session_id": "1", "data": "rm b.txt"}),
    ("process", {"action": ["poll"]}),
    ("execute_code", {}),
    ("execute_code", {"code": "import foo"}),
    ("delegate_task", {"goal": "x", "acp_command": "/tmp/own"}),
    ("delegate_task", {"tasks": [{"goal": "x", "acp_command": "/tmp/own"}]}),
    ("delegate_task", {"tasks": '[{"goal": "x"}]'}),
    ("browser_navigate", {"url": "--state /etc/passwd"}),
    ("browser_click", {"ref": "@e1"}),
    ("browser_cdp", {"method": "Page.navigate"}),
    ("computer_use", {"action": "click"}),
    ("ha_call_service", {"domain": "shell_command", "service": "x"}),
    ("cronjob", {"action": "create", "prompt": "x", "schedule": "1h"}),
    ("kanban_create", {"title": "x"}),
    ("skill_manage", {"action": "edit", "name": "x", "content": "y"}),
    ("skill_manage", {"action": "create", "name": "../x", "content": "y"}),
    ("image_generate", {"prompt": "x"}),
    ("text_to_speech", {"text": "x", "output_path": "x.mp3"}),
    ("tool_call", {"name": "tool_call", "arguments": {}}),
    ("tool_call", {"name": "write_file", "arguments": "{"}),
    ("mcp_files_read_file", {"path": "b.txt"}),
    ("mcp_docs_search", {"query": "x"}),
    ("no_such_tool", {}),
    ("", {}),
]


@pytest.mark.parametrize(
    ("tool", "args"), UNKNOWN, ids=[f"{each[0]}-{i}" for i, each in enumerate(UNKNOWN)]
)
def test_what_is_not_understood_may_write(place: Path, tool: str, args: dict[str, Any]) -> None:
    found = effects(place, tool, args)
    assert found.may_write
    assert not found.exact
    assert found.unknown


def test_a_fed_program_may_be_a_shell(place: Path) -> None:
    found = effects(place, "process", {"action": "submit", "session_id": "1", "data": "rm b.txt"})
    assert ("b.txt", "delete") in changes(found, place)


# -- tools that nobody knows ----------------------------------------------------------------------

NAMED: list[tuple[str, dict[str, Any], set[tuple[str, str]]]] = [
    ("mcp_fs_write_file", {"path": "b.txt", "content": "/etc/passwd"}, {("b.txt", "write")}),
    ("mcp_fs_create_directory", {"path": "new"}, {("new", "create")}),
    ("mcp_fs_edit_file", {"path": "b.txt", "edits": [{"oldText": "c", "newText": "d"}]},
     {("b.txt", "write")}),
    ("mcp_fs_move_file", {"source": "b.txt", "destination": "c.txt"},
     {("b.txt", "delete"), ("c.txt", "create")}),
    ("mcp_fs_delete", {"id": "./src"}, {("src", "delete")}),
    ("mcp_ide_save", {"uri": "file:///nowhere/a%20b.py"}, {("/nowhere/a b.py", "create")}),
    ("mcp_fs_writeFiles", {"files": {"b.txt": "x", "c.txt": "y"}},
     {("b.txt", "write"), ("c.txt", "create")}),
    ("mcp_sh_run", {"command": "echo x > c"}, {("c", "create")}),
    ("mcp_sh_run", {"command": "rm", "args": ["-rf", "src"]}, {("src", "delete")}),
    ("mcp_py_run", {"code": "open('c', 'w')"}, {("c", "create")}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch"},
     {("b.txt", "delete")}),
    ("mcp_fs_call", {"arguments": '{"command": "rm b.txt"}'}, {("b.txt", "delete")}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "args", "expected"), NAMED, ids=[each[0] for each in NAMED])
def test_what_an_unknown_tool_is_told_to_change_is_listed(
    place: Path, tool: str, args: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    found = effects(place, tool, args)
    there = {(os.path.relpath(os.path.join(place, path), place), kind) for path, kind in expected}
    assert there <= changes(found, place)
    assert not found.exact


def test_what_an_unknown_tool_is_told_to_read_is_listed_and_it_may_write_all_the_same(
    place: Path,
) -> None:
    found = effects(place, "mcp_fs_directory_tree", {"path": "src"})
    assert below(found.searches, place) == {"src"}
    assert not found.changes
    assert not found.exact


def test_every_place_that_an_unknown_tool_hears_of_is_mentioned(place: Path) -> None:
    args = {"x": ["b.txt", {"deep": "src/a.py"}], "src/k.py": 1, "spec": {"docs/index.md": "1"}}
    mentions = below(effects(place, "mcp_any_thing", args).mentions, place)
    assert {"b.txt", "src/a.py", "docs/index.md"} <= mentions


def test_what_is_written_into_a_file_is_no_place_that_is_meant(place: Path) -> None:
    args = {"path": "b.txt", "content": "see docs/index.md and\nsrc/a.py"}
    mentions = below(effects(place, "mcp_fs_write_file", args).mentions, place)
    assert "b.txt" in mentions
    assert not {"src/a.py", "docs/index.md"} & mentions


SCHEMA = {
    "type": "object",
    "properties": {
        "thing": {"type": "string", "description": "Path to the file to write"},
        "where": {"type": "string", "format": "uri"},
        "many": {"type": "array", "items": {"type": "string", "format": "path"}},
        "name": {"type": "string"},
    },
    "annotations": {"readOnlyHint": True},
}


def test_a_schema_says_which_arguments_are_paths(place: Path) -> None:
    args = {"thing": "b.txt", "where": "file:///nowhere/x", "many": ["c.txt"], "name": "d.txt"}
    found = effects(place, "mcp_any_write", args, schema=SCHEMA)
    assert {path for path, _ in changes(found, place)} == {
        "b.txt",
        "c.txt",
        os.path.relpath("/nowhere/x", place),
    }


def test_what_a_server_says_of_itself_is_not_believed(place: Path) -> None:
    schema = {**SCHEMA, "readOnlyHint": True, "annotations": {"readOnlyHint": True}}
    assert effects(place, "mcp_any_read", {"name": "x"}, schema=schema).may_write


def test_the_user_says_which_tools_only_read(place: Path) -> None:
    options = {"read_only_tools": ("mcp_docs_*",)}
    found = effects(place, "mcp_docs_get", {"path": "b.txt"}, **options)
    assert found.exact
    assert not found.may_write
    assert below(found.reads, place) == {"b.txt"}
    assert effects(place, "mcp_other_get", {"path": "b.txt"}, **options).may_write


def test_no_setting_makes_a_tool_that_writes_one_that_reads(place: Path) -> None:
    found = effects(place, "write_file", {"path": "c", "content": ""}, read_only_tools=("*",))
    assert changes(found, place) == {("c", "create")}


def test_without_a_directory_relative_paths_are_not_known() -> None:
    machine = Machine(cwd=None, homes=(), environ={})
    for path in ("a.py", "~/a.py"):
        call = ToolCall("write_file", {"path": path, "content": ""})
        assert not effects_of(call, machine=machine).exact


def test_a_result_has_the_effects_of_its_call(place: Path) -> None:
    args = {"path": "b.txt"}
    result = ToolResult("read_file", args, result="x")
    assert effects_of(result, machine=machine_at(place)) == effects(place, "read_file", args)


@pytest.mark.parametrize(
    "value", [None, 1, 1.5, True, [], {}, [[["a"]]], {"a": {"b": "c"}}, "\0", "\ud800"]
)
@pytest.mark.parametrize(
    "tool",
    ["write_file", "patch", "read_file", "search_files", "terminal", "process", "execute_code",
     "delegate_task", "memory", "mcp_a_write", "skill_manage", "tool_call", "vision_analyze"],
)  # fmt: skip
def test_no_argument_makes_it_fail(place: Path, tool: str, value: Any) -> None:
    keys = ("path", "command", "code", "patch", "action", "data", "tasks", "name", "arguments",
            "pattern", "workdir", "target", "image_url", "content")  # fmt: skip
    for key in keys:
        found = effects(place, tool, {key: value})
        assert not any("cannot be understood" in why for why in found.unknown), found.unknown
