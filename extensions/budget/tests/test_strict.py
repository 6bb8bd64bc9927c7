"""Through several turns and parallel calls, with the strict mode looking on."""

from __future__ import annotations

from hermes_ext.testing import LoadExtension, assert_answered, assert_blocked, assert_passed


def test_the_limits_of_turns_and_sessions(load_extension: LoadExtension) -> None:
    """Each turn begins at zero; parallel calls are counted exactly; the last request is the end."""
    extension = load_extension(
        "budget", config={"per_turn": {"tool_calls": 3, "requests": 2}, "warn_at": None}
    )
    for session in ("one", "one", "two"):
        with extension.turn(session) as turn:
            turn.request()
            outcomes = turn.parallel([("read_file", {"path": str(n)}) for n in range(5)])
            assert sum(outcome.blocked for outcome in outcomes) == 2
            turn.request()
            last = turn.request()
            (assert_answered if last.answered else assert_blocked)(last, match="budget")
    assert_passed(extension.call("read_file", {"path": "a"}))
