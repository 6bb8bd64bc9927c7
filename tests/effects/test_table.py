"""A host says what its tools do in a table, and everything that judges calls follows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from tests.bundled import Bundled

from hermes_ext import ToolCall
from hermes_ext.doctor import examine
from hermes_ext.effects import (
    Does,
    Effects,
    Machine,
    Tool,
    ToolKind,
    ToolTable,
    effects_of,
    effects_of_command,
)
from hermes_ext.effects.readings import (
    calls_tool,
    edits,
    feeds,
    harmless,
    harmless_for,
    reads,
    runs_python,
    runs_shell,
    searches,
    writes,
)
from hermes_ext.hosts.default import default_host
from hermes_ext.loading.loader import load

TABLE = ToolTable(
    (
        Tool("Write", writes(), synonyms="store"),
        Tool("Edit", edits(others="all"), words="sed"),
        Tool("Read", reads(others="limit"), parameters="file_path limit"),
        Tool("Grep", searches(numbers="n"), words="rg"),
        Tool("Bash", runs_shell(cwd="dir", others="timeout"), aliases="Shell"),
        Tool("Run", runs_python("source")),
        Tool("Job", harmless_for("list", feeds("text"), argument="verb")),
        Tool("Ask", harmless()),
        Tool("Call", calls_tool("tool", "input")),
        Tool("Mark", Does(lambda name, args, rec: rec.write("marks", name))),
    ),
    families="mcp_",
    module="tools",
    functions="pause",
    host="Other",
)


@frozen
class Call:
    """A call as another host has it; it keeps nothing."""

    tool_name: str
    tool_args: dict[str, Any]
    machine: Machine
    tools: ToolTable = TABLE

    def remembered(self, what: str, find: Any) -> Effects:
        return find(self.tool_args)


def effects(place: Path, tool: str, args: dict[str, Any]) -> Effects:
    return effects_of(Call(tool, args, Machine(cwd=place, homes=(str(place),), environ={})))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    (root / "a.py").write_text("x\n")
    return root


WRITES: list[tuple[str, dict[str, Any], str]] = [
    ("Write", {"file_path": "b.py", "content": "x"}, "b.py"),
    ("write", {"file_path": "b.py", "content": "x"}, "b.py"),
    ("store", {"file_path": "b.py", "content": "x"}, "b.py"),
    ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y", "all": True}, "a.py"),
    ("Bash", {"command": "touch b.py", "timeout": 1}, "b.py"),
    ("Shell", {"command": "touch b.py", "dir": "."}, "b.py"),
    ("Run", {"source": "open('b.py', 'w')"}, "b.py"),
    ("Call", {"tool": "Bash", "input": {"command": "touch b.py"}}, "b.py"),
    ("Mark", {}, "marks"),
]


@pytest.mark.parametrize(
    ("tool", "args", "written"), WRITES, ids=[f"{each[0]}-{i}" for i, each in enumerate(WRITES)]
)
def test_a_row_says_what_a_tool_writes(
    place: Path, tool: str, args: dict[str, Any], written: str
) -> None:
    """Names, aliases and synonyms of a row lead to its reading, and that is exact."""
    found = effects(place, tool, args)

    assert found.writes == {place / written}
    assert found.exact


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Read", {"file_path": "a.py", "limit": 1}),
        ("Grep", {"pattern": "x", "n": 3}),
        ("Job", {"verb": "list"}),
        ("Ask", {"question": "rm -rf /"}),
        ("Run", {"source": "from tools import Read, pause\nRead('a.py', limit=2)\npause(1)"}),
        ("Run", {"source": "import tools\ntools.Read(file_path='a.py')"}),
    ],
)
def test_a_row_says_what_only_reads(place: Path, tool: str, args: dict[str, Any]) -> None:
    """What a reading knows to change nothing is exact and writes nothing, in code too."""
    found = effects(place, tool, args)

    assert found.exact
    assert not found.may_write


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Write", {"content": "x"}),
        ("Write", {"file_path": "b.py", "append": True}),
        ("Bash", {"cmd": "ls"}),
        ("Run", {"source": "import hermes_tools"}),
        ("Run", {"source": "import tools\ntools.Bash('ls')"}),
        ("Job", {"verb": "type", "text": "ls"}),
        ("terminal", {"command": "ls"}),
        ("write_file", {"path": "b.py", "content": "x"}),
        ("sed", {"file_path": "a.py"}),
    ],
)
def test_what_no_row_explains_may_write(place: Path, tool: str, args: dict[str, Any]) -> None:
    """Arguments that a row does not know, and tools of other hosts, may do anything."""
    found = effects(place, tool, args)

    assert found.may_write
    assert not found.exact


def test_a_machine_says_whose_tools_they_are(place: Path) -> None:
    """The machine's table counts before the event's."""
    call = Call("terminal", {"command": "ls"}, Machine(cwd=place, tools=default_host().tools()))

    assert effects_of(call).exact


def test_a_command_is_read_without_a_tool(place: Path) -> None:
    """`effects_of_command` reads shell text, with no tool and no event."""
    found = effects_of_command("rm a.py", machine=Machine(cwd=place))

    assert found.writes == {place / "a.py"}


def test_a_table_is_asked_for_tools() -> None:
    """By name, by kind, and for what was probably meant."""
    assert TABLE.get(" BASH ") is TABLE.get("shell")
    assert "store" in TABLE
    assert "store" not in TABLE.names
    assert "sed" not in TABLE
    assert [row.name for row in TABLE.of("write", ToolKind.EDIT)] == ["Write", "Edit"]
    assert TABLE.kind_of("job") is ToolKind.INPUT
    assert TABLE.kind_of("nothing") is ToolKind.OTHER
    assert TABLE.matches("Shell", ["bash"])
    assert TABLE.matches(" BASH", ["b*"])
    assert not TABLE.matches("Shell", ["b*", "sed"])
    near = {"sed": "Edit", "store": "Write", "stroe": "Write", "Bsah": "Bash", "zzz": None}
    assert {name: TABLE.nearest(name) for name in near} == near


def test_no_name_is_in_a_table_twice() -> None:
    """Two rows of one name would hide one of them."""
    with pytest.raises(ValueError, match="'run': Run, Bash"):
        ToolTable((Tool("Run", harmless()), Tool("Bash", runs_shell(), aliases="run")))


def test_a_table_without_tools_knows_none() -> None:
    """A host without tools is not taken for Hermes."""
    machine = Machine(tools=ToolTable(()))

    assert ToolCall("read_file", {"path": "a"}, machine=machine).tools is machine.tools
    assert not effects_of(ToolCall("read_file", {"path": "a"}, machine=machine)).exact


# -- who follows the table ------------------------------------------------------------------------


def on(base: Path, name: str, **settings: Any) -> Bundled:
    bundled = Bundled(base, name, **settings)
    bundled.runtime.machine = evolve(bundled.runtime.machine, tools=TABLE)
    return bundled


def test_protected_paths_follow_the_table(tmp_path: Path) -> None:
    """A protected file is kept from the tools of any host."""
    rules = on(tmp_path, "protected-paths", paths=["secret.txt"])

    assert rules.judged("Write", {"file_path": "secret.txt", "content": "x"}).blocked
    assert rules.judged("Bash", {"command": "rm secret.txt"}).blocked
    assert not rules.judged("Write", {"file_path": "other.txt", "content": "x"}).blocked


def test_workflow_guard_follows_the_table(tmp_path: Path) -> None:
    """Without a plan only the plan is written, and the refusal names the host's own tools."""
    guard = on(tmp_path, "workflow-guard", blocked_tools=["store", "Mark", "Bash"])

    refused = guard.judged("Write", {"file_path": "src/a.py", "content": "x"})
    assert refused.blocked
    assert "with Write" in str(refused.value)
    assert not guard.judged("Write", {"file_path": "plans/x.md", "content": "x"}).blocked
    assert not guard.judged("Read", {"file_path": "src/a.py"}).blocked
    assert "Mark is blocked" in str(guard.judged("Mark", {}).value)
    assert "Shell is blocked" in str(guard.judged("Shell", {"command": "ls"}).value)
    unclear = guard.judged("Run", {"source": "import foo"})
    assert "Read, Grep" in str(unclear.value)


def test_doctor_follows_the_table(tmp_path: Path) -> None:
    """A guard whose patterns no tool of the host can match is named, with what was meant."""
    folder = tmp_path / "extensions" / "rules"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "from hermes_ext import register_hook\n"
        "@register_hook('intercept_tool_call', guard=True, tools=['rg'])\n"
        "def dead(tool_name): ...\n"
        "@register_hook('intercept_tool_call', guard=True, tools=['bash', 'mcp_*'])\n"
        "def alive(tool_name): ...\n"
    )

    found = examine(tmp_path, None, load(tmp_path), table=TABLE)

    (dead,) = [each for each in found if each.code == "matches-nothing"]
    assert "can match no tool of Other" in dead.message
    assert '"Grep"' in dead.message
