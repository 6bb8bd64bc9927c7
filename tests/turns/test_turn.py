"""Turns and their state: found by any of their ids, shared by threads, gone when they end."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hermes_ext import get_turn_state
from hermes_ext.turns import state as _turn
from hermes_ext.turns.state import TurnCore, TurnState, find_turn, judging_again, open_turn_count


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a turn open."""
    yield
    assert open_turn_count() == 0


def begun(session: str = "s", turn: str | None = None, task: str | None = None) -> TurnCore:
    made = TurnCore(session, turn, task)
    _turn.begin(made)
    return made


class TestState:
    def test_count_is_exact_over_threads(self) -> None:
        """2,000 additions from each of four threads are all counted."""
        state = TurnState()

        def add() -> None:
            for _ in range(2000):
                state.count("calls")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: add(), range(4)))
        assert state["calls"] == 8000

    def test_iterating_while_another_thread_inserts(self) -> None:
        """Plain use never raises because of another thread."""
        state = TurnState()
        done = threading.Event()

        def insert() -> None:
            for number in range(20_000):
                state[str(number)] = number
            done.set()

        thread = threading.Thread(target=insert)
        thread.start()
        while not done.is_set():
            assert len(list(state)) <= len(state.keys())
            sum(state.values())
            copy.copy(state)
        thread.join()
        state.clear()
        assert state == {}

    def test_a_call_that_is_judged_twice_counts_once(self) -> None:
        """While judging again, `count` returns the number as it stands."""
        state = TurnState()
        assert state.count("calls") == 1
        with judging_again():
            assert state.count("calls") == 1
        assert state.count("calls", by=2) == 3

    def test_deep_copy_has_a_lock_of_its_own(self) -> None:
        """State can be copied, although a lock cannot."""
        state = TurnState(a=[1])
        other = copy.deepcopy(state)
        assert other == {"a": [1]}
        assert other.lock is not state.lock


class TestFinding:
    @pytest.mark.parametrize("how", ["turn_id", "task_id", "session_id"])
    def test_by_each_id(self, how: str) -> None:
        """A turn is found by its turn, task or session id, from a thread that knows nothing."""
        turn = begun("s1", "t1", "k1")
        value = {"turn_id": "t1", "task_id": "k1", "session_id": "s1"}[how]
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(find_turn, **{how: value}).result() is turn
        _turn.end(turn)
        assert find_turn(**{how: value}) is None

    def test_session_with_two_turns_is_ambiguous(self) -> None:
        """A session id finds a turn only where exactly one of that session is open."""
        first, second = begun("s1"), begun("s1")
        assert find_turn(session_id="s1") is None
        _turn.end(second)
        assert find_turn(session_id="s1") is first
        _turn.end(first)

    def test_one_that_its_host_drops_hides_no_other(self) -> None:
        """It is over as soon as nobody has it."""
        first, second = begun("s1"), begun("s1")
        assert find_turn(session_id="s1") is None
        del first
        assert find_turn(session_id="s1") is second
        _turn.end(second)

    def test_a_host_that_drops_its_turns_is_told_once(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for known in ("drops_turns", "to_be_told"):
            monkeypatch.setattr(_turn.open_turns, known, False)
        _turn.end(begun("s1"))
        assert caplog.messages == []
        for _ in range(3):
            begun("s1")
            assert find_turn(session_id="s1") is None  # which notices it as well
        (told,) = caplog.messages
        assert told.startswith("the host drops turns without ending them")

    def test_a_context_of_an_ended_turn_finds_no_other(self) -> None:
        """What belongs to a turn that is over does not slip into the session's next turn."""
        old = begun("s1", "t1")
        with _turn.entered(old):
            _turn.end(old)
            new = begun("s1", "t2")
            assert find_turn(session_id="s1") is None
            assert find_turn(turn_id="t1", session_id="s1") is None
            assert find_turn(turn_id="t2") is new
        assert find_turn(turn_id="t1", session_id="s1") is None
        _turn.end(new)

    def test_session_id_that_changes_in_mid_turn(self) -> None:
        """After compression the old and the new session id name the same turn, until it ends."""
        turn = begun("a", "t1")
        turn.state["plan"] = True
        turn.bind(session_id="b")
        assert find_turn(session_id="a") is turn
        assert find_turn(session_id="b") is turn
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(get_turn_state, "b").result() == {"plan": True}
        _turn.end(turn)
        assert find_turn(session_id="b") is None


class TestGetTurnState:
    def test_nested_turn_has_its_own(self) -> None:
        """A subagent's turn inside a tool call does not touch its parent's state."""
        parent = begun("p")
        with _turn.entered(parent):
            get_turn_state("p")["key"] = "parent"
            child = begun("c")
            with _turn.entered(child):
                assert get_turn_state() == {}
                get_turn_state("c")["key"] = "child"
            _turn.end(child)
            assert get_turn_state() == {"key": "parent"}
        _turn.end(parent)

    def test_no_turn(self, caplog: pytest.LogCaptureFixture) -> None:
        """Without a turn the state is empty, belongs to nothing, and a warning says so."""
        with caplog.at_level(logging.WARNING, logger="hermes_ext"):
            state = get_turn_state("nowhere")
        state["a"] = 1
        assert get_turn_state("nowhere") == {}
        assert "no open turn" in caplog.text

    def test_raw_threads_of_two_sessions(self) -> None:
        """2 sessions with 8 raw threads and 500 calls each, found by id: each counts in its own."""
        turns = {name: begun(name) for name in ("a", "b")}

        def work(name: str) -> None:
            for _ in range(500):
                get_turn_state(name).count("n")

        threads = [threading.Thread(target=work, args=(name,)) for name in turns for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {name: turn.state["n"] for name, turn in turns.items()} == {"a": 4000, "b": 4000}
        for turn in turns.values():
            _turn.end(turn)

    def test_state_is_empty_after_the_end(self) -> None:
        """Whoever kept a reference to the state finds it empty when the turn is over."""
        turn = begun()
        turn.state["a"] = 1
        kept = turn.state
        _turn.end(turn)
        assert kept == {}
