"""What may be done in which folder, and when the model is told its rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ext.testing import (
    LoadExtension,
    assert_asked,
    assert_blocked,
    assert_injected,
    assert_passed,
)

EXTENSION = Path(__file__).parents[1]
RULES: list[dict[str, Any]] = [
    {"folder": "vendor", "do": "block"},
    {"folder": "deploy", "do": "ask"},
    {"folder": "migrations", "say": "Never edit an old one."},
]
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: vendor/a.py\n"


def write(path: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": ""}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        write("vendor/x.py"),
        write("src/../vendor/x.py"),
        write("link/x.py"),
        ("patch", {"mode": "patch", "patch": PATCH}),
        ("terminal", {"command": "cd vendor && rm x.py"}),
        ("terminal", {"command": "rm -r ../project/vendor"}),
        ("terminal", {"command": "make", "workdir": "vendor"}),
        ("terminal", {"command": "python x.py vendor/x.py"}),
        ("execute_code", {"code": "open('vendor/x.py', 'w')"}),
        ("mcp_files_write", {"path": "vendor/x.py"}),
    ],
)
def test_a_closed_folder_is_closed_to_every_tool(
    load_extension: LoadExtension, tmp_path: Path, tool: str, args: dict[str, Any]
) -> None:
    """Also through a link, and in calls of which not all is known."""
    project = tmp_path / "project"
    (project / "vendor").mkdir(parents=True)
    (project / "link").symlink_to("vendor")
    extension = load_extension(
        EXTENSION, config={"rules": RULES}, project_root=project, approver=True
    )
    assert_blocked(extension.call(tool, args), by="folder_rules", match="vendor")
    assert extension.questions == []
    assert_passed(extension.call("read_file", {"path": "vendor/x.py"}))
    assert_passed(extension.call(*write("vendored/x.py")))


def test_a_person_is_asked(load_extension: LoadExtension) -> None:
    """About a folder, and about what nobody knows; without a person it is a block."""
    extension = load_extension(EXTENSION, config={"rules": RULES}, approver=[True, False])
    assert_asked(extension.call(*write("deploy/x.yaml")), match="deploy", approved=True)
    assert_asked(extension.call("terminal", {"command": "make"}), match="not known", approved=False)
    alone = load_extension(EXTENSION, config={"rules": RULES})
    assert alone.call("terminal", {"command": "make"}).blocked
    lenient = load_extension(EXTENSION, config={"rules": RULES, "unknown": "pass"})
    assert_passed(lenient.call("terminal", {"command": "make"}))
    assert lenient.call(*write("deploy/x.yaml")).blocked


def test_the_model_knows_a_folders_rules_before_it_writes_there(
    load_extension: LoadExtension,
) -> None:
    """Once a turn, by the next request; parallel calls all wait for it."""
    extension = load_extension(EXTENSION, config={"rules": RULES})
    change = write("migrations/7.sql")
    with extension.turn() as turn:
        assert_passed(turn.request())
        assert all(outcome.blocked for outcome in turn.parallel([change, change]))
        assert_injected(turn.request(), "migrations: Never edit an old one", where="user")
        assert_passed(turn.call(*change))
        assert_passed(turn.request())
    with extension.turn() as turn:
        assert_passed(turn.call("read_file", {"path": "migrations/6.sql"}))
        assert_injected(turn.request(), "Never edit")
        assert_passed(turn.call(*change))
    assert_blocked(extension.call(*change, session_id="other"), match="rules, which follow")


def test_without_rules_nothing_happens(load_extension: LoadExtension) -> None:
    """As it comes, it leaves everything as it is."""
    assert_passed(load_extension(EXTENSION).call("terminal", {"command": "make"}))
