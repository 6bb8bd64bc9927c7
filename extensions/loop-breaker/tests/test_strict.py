"""Through several turns, with the strict mode looking on."""

from __future__ import annotations

from hermes_ext.testing import LoadExtension, assert_blocked, assert_passed


def test_the_same_call_again_and_again(load_extension: LoadExtension) -> None:
    """The third is refused; another turn, and another session's, begins anew."""
    extension = load_extension("loop-breaker")
    same = ("terminal", {"command": "cat build.log"})
    for session in ("one", "one", "two"):
        with extension.turn(session) as turn:
            for _ in range(2):
                assert_passed(turn.call(*same))
                turn.result(*same, "no such file")
            assert_blocked(turn.call(*same), by="loop-breaker", match="call number 3")
