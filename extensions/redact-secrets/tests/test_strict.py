"""Through several turns, with the strict mode looking on."""

from __future__ import annotations

from hermes_ext.testing import LoadExtension, assert_passed, assert_rewritten

KEY = "glpat-" + "aB3dE6gH9jK2mN5pQ8rS"


def test_a_key_is_replaced_wherever_it_comes_from(load_extension: LoadExtension) -> None:
    """In what the user types and in what tools give; other text stays as it is."""
    extension = load_extension("redact-secrets")
    for outcome in (
        extension.result("terminal", {"command": "cat notes.txt"}, f"the key: {KEY}\n"),
        extension.input(f"Why is {KEY} refused?"),
    ):
        assert_rewritten(outcome)
        assert KEY not in str(outcome.value)
        assert "[redacted: GitLab Token" in str(outcome.value)
    assert_passed(extension.result("terminal", {"command": "ls"}, "notes.txt\n"))
