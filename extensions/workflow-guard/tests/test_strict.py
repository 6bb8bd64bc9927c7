"""Through several turns, with the strict mode looking on."""

from __future__ import annotations

from hermes_ext.testing import LoadExtension, assert_blocked, assert_injected, assert_passed

WRITE = ("write_file", {"path": "app.py", "content": "x = 1\n"})


def test_no_change_without_a_plan(load_extension: LoadExtension) -> None:
    """Refused, by tool and by shell, until the plan is there; the model is told which it is."""
    extension = load_extension("workflow-guard")
    with extension.turn() as turn:
        assert_injected(turn.request("fix it", "Base."), "no plan", where="system")
        assert_blocked(turn.call(*WRITE), by="workflow-guard", match="plan")
        assert_blocked(turn.call("terminal", {"command": "sed -i s/a/b/ app.py"}), match="plan")
    extension.write("plans/active/plan.md", "# Plan\n\nWrite app.py.\n")
    with extension.turn() as turn:
        assert_injected(turn.request("fix it", "Base."), r"plans/active/plan\.md", where="system")
        assert_passed(turn.call(*WRITE))
