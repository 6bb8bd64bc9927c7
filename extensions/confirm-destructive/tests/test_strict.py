"""Through several turns, with the strict mode looking on."""

from __future__ import annotations

from hermes_ext.testing import LoadExtension, assert_asked, assert_passed


def test_a_person_is_asked_and_decides(load_extension: LoadExtension) -> None:
    """Yes lets it run, no refuses it; what can be undone asks nobody."""
    extension = load_extension("confirm-destructive", approver=[True, False])
    extension.write("src/a.py")
    delete = {"command": "rm -rf src"}
    assert_asked(extension.call("terminal", delete), match="src", approved=True)
    refused = extension.call("terminal", {"command": "git push --force"})
    assert_asked(refused, match="force", approved=False)
    assert refused.blocked_by == "confirm-destructive"
    assert_passed(extension.call("terminal", {"command": "ls -la src"}))
    assert len(extension.questions) == 2


def test_nobody_is_there(load_extension: LoadExtension) -> None:
    """Then it does not run."""
    extension = load_extension("confirm-destructive")
    extension.write("src/a.py")
    assert extension.call("terminal", {"command": "rm -rf src"}).blocked
