"""Numbers of turns: in one conversation they only go up, and none comes twice."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.chains import handler

from hermes_ext import HookResult, Runtime, register_hook


class Talk:
    """A runtime whose handler notes the number of its turn."""

    def __init__(self, home: Path | None = None) -> None:
        self.seen: list[int | None] = []

        @register_hook("transform_user_input")
        def note(turn_number: int | None) -> None:
            self.seen.append(turn_number)

        self.runtime = Runtime([note], home=home)

    def turns(self, *conversations: str, **options: Any) -> list[int | None]:
        """The numbers of turns in these conversations, one after the other."""
        self.seen.clear()
        for conversation in conversations:
            with self.runtime.turn(session_id="s", conversation_id=conversation, **options) as turn:
                turn.transform_user_input("hi")
        return list(self.seen)


def test_each_conversation_counts_for_itself() -> None:
    talk = Talk()
    assert talk.turns("a", "a", "b", "a", "b") == [1, 2, 1, 3, 2]


def test_the_host_may_know_better() -> None:
    talk = Talk()
    assert talk.turns("a", turn_number=7) == [7]
    assert talk.turns("a") == [1]


def test_a_conversation_that_is_older_than_its_counter(tmp_path: Path) -> None:
    """Counting starts from what the host knows, which later may be less: after `/undo`, say."""
    talk = Talk(tmp_path)
    assert talk.turns("a", turns_before=10) == [11]
    assert talk.turns("a", turns_before=3) == [12]
    assert talk.turns("a", turns_before=40) == [13]
    talk.runtime.close()


def test_it_goes_on_in_the_next_process(tmp_path: Path) -> None:
    code = (
        "import json, sys\nfrom pathlib import Path\nfrom tests.turns.test_numbers import Talk\n"
        "talk = Talk(Path(sys.argv[1]))\nprint(json.dumps(talk.turns('a', 'a')))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    told = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    ]
    assert told == [[1, 2], [3, 4]]


def test_turns_that_begin_at_once(tmp_path: Path) -> None:
    """In threads, and in two runtimes as in two processes."""
    talks = [Talk(tmp_path), Talk(tmp_path)]
    with ThreadPoolExecutor(8) as pool:
        for number in range(40):
            talk = talks[number % 2]
            pool.submit(lambda talk=talk: talk.runtime.turn(session_id="s").close())
    numbers = sorted(n for talk in talks for n in talk.turns("s"))
    assert numbers == [41, 42]
    for talk in talks:
        talk.runtime.close()


def take_away(home: Path) -> None:
    """The file, and whoever wants to make it again."""
    for file in home.iterdir():
        file.unlink()
    (home / "extensions-state.db").mkdir()


def test_while_the_store_is_away(tmp_path: Path) -> None:
    """There are none, in no process; turns that began meanwhile have used up theirs."""
    talk = Talk(tmp_path)
    assert talk.turns("a", "a") == [1, 2]
    talk.runtime.close()
    take_away(tmp_path)
    assert talk.turns("a", "a", "b", turns_before=5) == []
    (tmp_path / "extensions-state.db").rmdir()
    assert talk.turns("a", "b") == [8, 7]
    talk.runtime.close()


def test_whoever_asks_for_one_that_is_not_there_fails(tmp_path: Path) -> None:
    """As for session state: a guard closes, unless it says otherwise or can do without."""

    def outcome_of(function: Any, **options: Any) -> Any:
        runtime = Runtime([handler(function, **options)], home=home)
        with runtime.turn(session_id="s") as turn:
            return turn.intercept_tool_call("terminal", {})

    def first_only(turn_number: int) -> Any:
        return HookResult.block("later") if turn_number != 1 else None

    async def awaited(turn_number: int) -> Any:
        return first_only(turn_number)

    def can_do_without(turn_number: int = 0) -> Any:
        return HookResult.block("counted") if turn_number else None

    def takes_all(**values: Any) -> Any:
        return HookResult.block("counted") if "turn_number" in values else None

    home = tmp_path / "home"
    home.mkdir()
    take_away(home)
    for guard in (first_only, awaited):
        outcome = outcome_of(guard, guard=True)
        assert outcome.blocked
        assert "the turn has no number: session state is unavailable" in str(outcome.errors[0])
        assert not outcome_of(guard, guard=True, on_store_error="pass").blocked
    assert outcome_of(first_only).blocked
    for function in (can_do_without, takes_all):
        assert not outcome_of(function, guard=True).errors


@pytest.mark.parametrize("asked", [False, True])
def test_nothing_is_written_for_what_nobody_asks(tmp_path: Path, asked: bool) -> None:
    def some(user_message: str) -> None: ...
    def all_of_it(**kwargs: Any) -> None: ...

    handler = register_hook("transform_user_input")(all_of_it if asked else some)
    runtime = Runtime([handler], home=tmp_path)
    runtime.turn(session_id="s").close()
    runtime.close()
    assert (tmp_path / "extensions-state.db").exists() is asked


def test_an_id_that_utf_8_cannot_hold(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    assert talk.turns("caf\udce9", "caf\udce9") == [1, 2]
    talk.runtime.close()
