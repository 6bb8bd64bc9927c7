"""Through several turns, with the strict mode looking on."""

from __future__ import annotations

from hermes_ext.testing import LoadExtension, assert_blocked, assert_passed


def test_no_tool_changes_a_protected_file(load_extension: LoadExtension) -> None:
    """Not by a tool and not through the shell; reading it is free."""
    extension = load_extension("protected-paths", config={"paths": ["*.lock"]})
    extension.write("uv.lock")
    with extension.turn() as turn:
        outcomes = turn.parallel(
            [
                ("write_file", {"path": "uv.lock", "content": "x"}),
                ("terminal", {"command": "sed -i s/1/2/ uv.lock"}),
            ]
        )
        for outcome in outcomes:
            assert_blocked(outcome, by="protected-paths", match=r"uv\.lock")
    assert_passed(extension.call("terminal", {"command": "cat uv.lock"}))
    assert_passed(extension.call("write_file", {"path": "a.py", "content": "x"}))
