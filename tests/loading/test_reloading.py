"""Reloading: what a person changes between turns is in force at the next one, or none of it is."""

from __future__ import annotations

import contextvars
import gc
import json
import os
import shutil
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.chains import handler
from tests.projects import Place

from hermes_ext import Runtime, Turn
from hermes_ext.loading.finding import discovery
from hermes_ext.loading.imports.importing import PREFIX
from hermes_ext.loading.reloading import in_force, look
from hermes_ext.turns import state
from hermes_ext.turns.state import current_turn, open_turn_count

SAYS = """\
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_args):
    return HookResult.block({says!r})
"""

NOTE = """\
from hermes_ext import HookResult, register_hook

@register_hook("before_llm_call")
def note():
    return HookResult.inject_system({says!r})
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing bundled, and `sys.modules` as before, without what other tests have left there."""
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(discovery, "bundled_dir", lambda: tmp_path / "bundled")
    monkeypatch.delenv("HERMES_EXT_TRUST", raising=False)
    monkeypatch.setattr(look, "MAX_ENTRIES", 200)
    for name in modules():
        monkeypatch.delitem(sys.modules, name)
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.startswith((PREFIX, "agent")):
            del sys.modules[name]


class Kept(Place):
    """A home whose runtime lives on; what it says of a call is its guard's text."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.folder = self.home / "extensions"
        self.file = self.folder / "rule" / "__init__.py"
        self.told: list[str] = []

    def guard(self, says: str, name: str = "rule") -> Path:
        return self.add(name, SAYS.format(says=says), to_home=True)

    def start(self, cwd: Path | None = None) -> Runtime:
        self.runtime = Runtime.from_config(home=self.home, cwd=cwd or self.root)
        self.runtime.on_not_taken = self.told.append
        return self.runtime

    def turn(self, work: Callable[[], object] = lambda: None) -> str | None:
        """What a turn says of a call, after the agent did its work in it."""
        with self.runtime.turn(session_id="s") as turn:
            work()
            return turn.intercept_tool_call("jot", {}).message


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    place = Kept(tmp_path)
    yield place
    place.runtime.close()


def in_time(work: Callable[[], object]) -> object:
    """What it gives; an error where it never ends, as where it waits for a pipe."""
    given: list[object] = []
    thread = threading.Thread(target=lambda: given.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    assert given, "it failed, or waits for ever"
    return given[0]


def modules() -> set[str]:
    return {name for name in sys.modules if name.startswith(f"{PREFIX}.")}


# -- what is taken --------------------------------------------------------------------------------


def test_an_edit_between_turns_is_in_force_at_the_next(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    assert kept.turn() == "one"
    kept.guard("two")
    assert kept.turn() == "two"
    assert kept.told == []
    assert kept.runtime.not_taken is None


def test_a_running_turn_keeps_what_it_began_with(kept: Kept) -> None:
    """Also when another session's turn begins; its own next turn has it no more than that one."""
    kept.guard("one")
    kept.start()
    with kept.runtime.turn(session_id="a") as turn:
        kept.guard("two")
        with kept.runtime.turn(session_id="b") as other:
            assert other.intercept_tool_call("jot", {}).message == "one"
        assert turn.intercept_tool_call("jot", {}).message == "one"


def test_new_removed_and_renamed_extensions_are_seen(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    kept.add("note", NOTE.format(says="n"), to_home=True)
    (kept.folder / "single.py").write_text(NOTE.format(says="s"))
    kept.turn()
    here = kept.runtime.for_directory(None)
    assert {each.name for each in here.records if each.loaded} == {"rule", "note", "single"}
    shutil.rmtree(kept.folder / "note")
    (kept.folder / "single.py").rename(kept.folder / "other.py")
    kept.turn()
    here = kept.runtime.for_directory(None)
    assert {each.name for each in here.records if each.loaded} == {"rule", "other"}


def test_a_submodule_and_a_data_file_count(kept: Kept) -> None:
    source = {
        "__init__.py": "import pathlib\nfrom .inner.part import SAYS\n"
        + SAYS.format(says="x").replace("'x'", "SAYS + TEXT")
        + "TEXT = pathlib.Path(__file__).with_name('rules.txt').read_text()\n",
        "inner/part.py": "SAYS = 'one'\n",
        "rules.txt": ":a",
    }
    folder = kept.add("rule", source, to_home=True)
    kept.start()
    assert kept.turn() == "one:a"
    (folder / "inner" / "part.py").write_text("SAYS = 'two'\n")
    assert kept.turn() == "two:a"
    (folder / "rules.txt").write_text(":b")
    assert kept.turn() == "two:b"


def test_settings_switches_and_modes_come_along(kept: Kept) -> None:
    kept.add(
        "rule",
        SAYS.format(says="x").replace("tool_args", "config").replace("'x'", "config['says']"),
        to_home=True,
    )
    kept.config("  rule: {says: one}\n")
    kept.start()
    assert kept.turn() == "one"
    kept.config("  rule: {says: two}\n  ask_without_human: approve\n  log: 'off'\n")
    assert kept.turn() == "two"
    assert kept.runtime.approve_without_human
    assert kept.runtime.log is not None
    assert not kept.runtime.log.on
    kept.config("  disabled: [rule]\n")
    assert kept.turn() is None
    assert not kept.runtime.approve_without_human
    kept.config("  rule: {says: three}\n")
    assert kept.turn() == "three"


def test_code_that_is_the_same_is_not_run_again(kept: Kept) -> None:
    """One that starts a thread at import does not get two because another file changed."""
    kept.guard("one")
    (kept.folder / "rule" / "__init__.py").write_text(
        f"with open({str(kept.home / 'runs')!r}, 'a') as f: f.write('x')\n"
        + SAYS.format(says="one")
    )
    kept.start()
    kept.guard("other", "zother")
    kept.config("  state_days: 3\n")
    assert kept.turn() == "one"
    assert len(kept.runtime.for_directory(None).records) == 2
    assert (kept.home / "runs").read_text() == "x"


def test_reload_false_turns_it_off(kept: Kept) -> None:
    kept.guard("one")
    kept.config("  reload: false\n")
    kept.start()
    kept.guard("two")
    assert kept.turn() == "one"


def test_slash_commands_and_session_state_come_along(kept: Kept) -> None:
    command = """\
from hermes_ext import register_command

@register_command("plan", help="x")
def plan(session_state):
    return {says!r} + str(session_state.count("n"))
"""
    kept.add("rule", command.format(says="one"), to_home=True)
    kept.start()
    assert kept.runtime.command("plan", session_id="s") == "one1"
    kept.add("rule", command.format(says="two"), to_home=True)
    kept.turn()
    assert kept.runtime.command("plan", session_id="s") == "two2"


def test_failure_counts_go_on(kept: Kept) -> None:
    """A handler that was suspended is called again when its code has changed; what failed before
    is still counted, and failures in a row begin anew.
    """
    fails = NOTE.format(says="x").replace("return", "raise ValueError; return")
    kept.add("note", fails, to_home=True)
    kept.start()

    def request() -> tuple[str, ...]:
        with kept.runtime.turn(session_id="s") as turn:
            return tuple(turn.before_llm_call([]).system_injections)

    for _ in range(6):
        assert request() == ()
    kept.add("note", NOTE.format(says="mended"), to_home=True)
    assert request() == ("mended",)
    (row,) = kept.runtime.for_directory(None).manager.failures
    assert (row.extension, row.count, row.in_a_row, row.suspended) == ("note", 5, 0, False)
    kept.add("note", fails, to_home=True)
    assert request() == ()
    (row,) = kept.runtime.for_directory(None).manager.failures
    assert (row.count, row.in_a_row) == (6, 1)


def test_failure_counts_go_on_after_a_reload_that_was_not_taken(kept: Kept) -> None:
    """What cannot be loaded changes no count: the old handlers go on, and so do their counts."""
    fails = NOTE.format(says="x").replace("return", "raise ValueError; return")
    kept.add("note", fails, to_home=True)
    kept.start()

    def request() -> int:
        with kept.runtime.turn(session_id="s") as turn:
            turn.before_llm_call([])
        (row,) = kept.runtime.for_directory(None).manager.failures
        return row.count

    assert request() == 1
    kept.add("note", "import nothing_of_this_name\n", to_home=True)
    assert request() == 2
    kept.add("note", fails + "# again\n", to_home=True)
    assert request() == 3


def test_a_config_that_was_broken_at_the_start_is_taken_when_mended(kept: Kept) -> None:
    kept.guard("one")
    (kept.home / "config.yaml").write_text("extensions: [\n")
    assert kept.start().refusal is not None
    kept.config("  enabled: true\n")
    assert kept.turn() == "one"
    assert kept.runtime.for_directory(None).refusal is None


# -- what is not taken ----------------------------------------------------------------------------


def broken_code(kept: Kept) -> None:
    kept.file.write_text("def (:\n")


def raising_code(kept: Kept) -> None:
    kept.file.write_text("import sys\nsys.exit('no')\n")


def skipping(kept: Kept) -> None:
    kept.file.write_text("from hermes_ext import SkipExtension\nraise SkipExtension('away')\n")


def emptied(kept: Kept) -> None:
    kept.file.write_text("")


def no_guard(kept: Kept) -> None:
    kept.file.write_text(SAYS.format(says="x").replace("guard=True", "guard=False"))


def removed(kept: Kept) -> None:
    shutil.rmtree(kept.folder / "rule")


def renamed(kept: Kept) -> None:
    (kept.folder / "rule").rename(kept.folder / "_rule")


def all_removed(kept: Kept) -> None:
    shutil.rmtree(kept.folder)


def swapped_for_a_link(kept: Kept) -> None:
    other = kept.home / "elsewhere"
    other.mkdir()
    (other / "__init__.py").write_text(NOTE.format(says="x"))
    shutil.rmtree(kept.folder / "rule")
    (kept.folder / "rule").symlink_to(other)


def link_to_nothing(kept: Kept) -> None:
    shutil.rmtree(kept.folder / "rule")
    (kept.folder / "rule").symlink_to(kept.home / "nowhere")


def link_to_itself(kept: Kept) -> None:
    kept.file.unlink()
    kept.file.symlink_to(kept.file)


def named_pipe(kept: Kept) -> None:
    kept.file.unlink()
    os.mkfifo(kept.file)


def device(kept: Kept) -> None:
    kept.file.unlink()
    kept.file.symlink_to("/dev/zero")


def folder_for_file(kept: Kept) -> None:
    kept.file.unlink()
    kept.file.mkdir()


def file_for_folder(kept: Kept) -> None:
    shutil.rmtree(kept.folder / "rule")
    (kept.folder / "rule").write_text("x")


def not_readable(kept: Kept) -> None:
    kept.file.write_text("x")  # root reads what it likes
    kept.file.chmod(0)


def huge(kept: Kept) -> None:
    with kept.file.open("ab") as file:
        file.truncate(50_000_000)


def null_bytes(kept: Kept) -> None:
    kept.file.write_bytes(b"\0" * 10)


def too_many_files(kept: Kept) -> None:
    for number in range(210):
        (kept.folder / "rule" / f"f{number}").touch()
    kept.file.write_text("")


def config_half_written(kept: Kept) -> None:
    (kept.home / "config.yaml").write_text("extensions:\n  disabled: [rule")


def config_truncated(kept: Kept) -> None:
    (kept.home / "config.yaml").write_text("")


def config_gone(kept: Kept) -> None:
    (kept.home / "config.yaml").unlink()


def config_of_a_wrong_type(kept: Kept) -> None:
    (kept.home / "config.yaml").write_text("extensions: disabled\n")


def config_pipe(kept: Kept) -> None:
    (kept.home / "config.yaml").unlink()
    os.mkfifo(kept.home / "config.yaml")


def other_global_dir(kept: Kept) -> None:
    (kept.home / "empty").mkdir()
    kept.config(f"  global_dir: {kept.home / 'empty'}\n")


def broken_settings(kept: Kept) -> None:
    schema = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
    (kept.folder / "rule" / "extension.yaml").write_text(f"config: {schema}\n")
    kept.config("  rule: {a: text}\n")


def broken_manifest(kept: Kept) -> None:
    (kept.folder / "rule" / "extension.yaml").write_text("requires_hermes_ext: '>=99'\n")


def shadowed(kept: Kept) -> None:
    removed(kept)
    (kept.folder / "rule.py").write_text(NOTE.format(says="x"))


ATTACKS = [
    broken_code,
    raising_code,
    skipping,
    emptied,
    no_guard,
    removed,
    renamed,
    all_removed,
    swapped_for_a_link,
    link_to_nothing,
    link_to_itself,
    named_pipe,
    device,
    folder_for_file,
    file_for_folder,
    not_readable,
    huge,
    null_bytes,
    too_many_files,
    config_half_written,
    config_truncated,
    config_gone,
    config_of_a_wrong_type,
    config_pipe,
    other_global_dir,
    broken_settings,
    broken_manifest,
    shadowed,
]


LATER = """\
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_args):
    from .{module} import SAYS
    return HookResult.block(SAYS)
"""


@pytest.mark.parametrize("module", ["rules", "deep.rules"])
@pytest.mark.parametrize("reload", ["true", "false"])
def test_a_module_that_is_imported_later_is_as_it_was(kept: Kept, module: str, reload: str) -> None:
    """Its first import may be in the middle of a turn: what changed by then is not mixed in."""
    folder = kept.add("rule", LATER.format(module=module), to_home=True)
    rules = folder / f"{module.replace('.', '/')}.py"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("SAYS = 'one'\n")
    kept.config(f"  reload: {reload}\n")

    kept.start()
    with kept.runtime.turn(session_id="s") as turn:
        rules.write_text("SAYS = 'bad'\n")
        outcome = turn.intercept_tool_call("jot", {})
    assert outcome.blocked
    assert f"{rules} has changed since its extension was loaded" in str(outcome.errors[0])
    kept.runtime.close()

    rules.write_text("SAYS = 'one'\n")
    kept.start()
    assert kept.turn() == "one"
    rules.write_text("SAYS = 'two'\n")
    assert kept.turn() == ("two" if reload == "true" else "one")


def test_a_module_that_comes_later_in_the_place_of_another(kept: Kept) -> None:
    """A package goes before a file of the same name; it was not there when the guard was loaded."""
    folder = kept.add("rule", LATER.format(module="rules"), to_home=True)
    (folder / "rules.py").write_text("SAYS = 'one'\n")
    kept.start()
    with kept.runtime.turn(session_id="s") as turn:
        (folder / "rules").mkdir()
        (folder / "rules" / "__init__.py").write_text("SAYS = 'bad'\n")
        outcome = turn.intercept_tool_call("jot", {})
    assert outcome.blocked
    assert "has changed since its extension was loaded" in str(outcome.errors[0])


def test_what_an_extension_writes_while_it_is_loaded_can_be_imported_later(kept: Kept) -> None:
    """Once, as a table that it makes for itself."""
    write = """\
from pathlib import Path
rules = Path(__file__).with_name("rules.py")
if not rules.exists():
    rules.write_text("SAYS = 'one'")
"""
    kept.add("rule", write + LATER.format(module="rules"), to_home=True)
    kept.start()
    assert kept.turn() == "one"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_edit_gets_a_guard_off(kept: Kept, attack: Callable[[Kept], None]) -> None:
    """It stays as it was, one line says why, once, and nothing of what was tried stays loaded."""
    kept.guard("one")
    kept.guard("other", "zother")
    kept.config("  state_days: 7\n")
    kept.start()
    assert kept.turn() == "one"
    before = modules()
    attack(kept)
    (kept.folder.parent / "extensions").mkdir(exist_ok=True)
    assert in_time(lambda: [kept.turn() for _ in range(3)]) == ["one"] * 3
    assert len(kept.told) == 1
    assert kept.told == [kept.runtime.not_taken]
    assert "rule" in kept.told[0] or "config.yaml" in kept.told[0]
    assert modules() == before


def test_the_line_names_extension_file_and_line_and_comes_again(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    for _ in range(2):
        kept.file.write_text("\n\nx = nothing\n")
        kept.turn()
        assert kept.told[-1].count("rule") >= 1
        assert f"{kept.file}:3" in kept.told[-1]
        kept.guard("one")
        assert kept.turn() == "one"
        assert kept.runtime.not_taken is None
    assert len(kept.told) == 2


def test_one_that_is_broken_keeps_all_the_others_as_they_were(kept: Kept) -> None:
    """All or nothing: two files that belong together are never in force one without the other."""
    kept.guard("one", "a")
    kept.guard("one")
    kept.start()
    kept.guard("two", "a")
    broken_code(kept)
    assert kept.turn() == "one"
    kept.guard("two")
    assert kept.turn() == "two"


def test_a_new_one_that_is_broken_keeps_nothing_back(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    kept.guard("two")
    kept.add("new", "def (:\n", to_home=True)
    assert kept.turn() == "two"
    kept.guard("three")
    assert kept.turn() == "three"


def test_what_the_person_turns_off_is_off(kept: Kept) -> None:
    for section in ("  disabled: [rule]\n", "  enabled: false\n"):
        kept.config("  state_days: 7\n")
        kept.guard("one")
        kept.start()
        assert kept.turn() == "one"
        kept.config(section)
        assert kept.turn() is None
        kept.runtime.close()


def test_a_guard_whose_files_are_gone_can_be_turned_off(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    removed(kept)
    assert kept.turn() == "one"
    kept.config("  disabled: [rule]\n")
    assert kept.turn() is None


@pytest.mark.parametrize("same_size", [True, False])
def test_an_edit_cannot_be_hidden(kept: Kept, same_size: bool) -> None:
    """The time of change set back, of one size, in the same file: it is seen all the same."""
    kept.guard("one")
    kept.start()
    before = kept.file.stat()
    assert kept.turn() == "one"
    text = kept.file.read_text().replace("one", "two" if same_size else "three")
    kept.file.write_text(text)
    os.utime(kept.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kept.turn() == ("two" if same_size else "three")


# -- the agent's hands ----------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [False, True])
def test_what_changes_in_a_turn_is_never_taken(kept: Kept, hidden: bool) -> None:
    """Not then, not when a person edits another file, not when the time of change is set back."""
    kept.guard("one")
    kept.guard("one", "zother")
    kept.start()
    before = kept.file.stat()

    def edit() -> None:
        kept.file.write_text(kept.file.read_text().replace("one", "bad"))
        if hidden:
            os.utime(kept.file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert kept.turn(edit) == "one"
    assert kept.turn() == "one"
    kept.guard("two", "zother")
    assert kept.turn() == "one"
    assert len(kept.told) == 1
    assert str(kept.file) in kept.told[0]
    assert "start Hermes anew" in kept.told[0]
    kept.runtime.close()
    kept.start()
    assert kept.turn() == "bad"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_edit_in_a_turn_gets_a_guard_off(kept: Kept, attack: Callable[[Kept], None]) -> None:
    kept.guard("one")
    kept.config("  state_days: 7\n")
    kept.start()
    assert in_time(lambda: kept.turn(lambda: attack(kept))) == "one"
    assert in_time(lambda: [kept.turn() for _ in range(2)]) == ["one"] * 2
    assert kept.runtime.not_taken


def test_turning_a_guard_off_in_a_turn_does_nothing(kept: Kept) -> None:
    kept.guard("one")
    kept.config("  state_days: 7\n")
    kept.start()
    kept.turn(lambda: kept.config("  disabled: [rule]\n"))
    assert kept.turn() == "one"
    assert "config.yaml" in kept.told[0]
    kept.config("  state_days: 7\n")  # as it was: nothing of the agent's is left
    assert kept.turn() == "one"
    assert kept.runtime.not_taken is None
    kept.guard("two")
    assert kept.turn() == "two"


def test_hermes_writes_other_sections_in_a_turn(kept: Kept) -> None:
    """As it does for a model or an "always": ours is the same, and a person's edit counts."""
    kept.guard("one")
    kept.config("  state_days: 7\n")
    kept.start()
    file = kept.home / "config.yaml"
    kept.turn(lambda: file.write_text("model: {name: x}\n" + file.read_text()))
    kept.guard("two")
    assert kept.turn() == "two"
    assert kept.told == []


def test_what_comes_and_goes_in_a_turn_does_no_harm(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    extra = kept.folder / "rule" / "extra.py"

    def come_and_go() -> None:
        extra.write_text("x")
        extra.unlink()

    kept.turn(come_and_go)
    kept.guard("two")
    assert kept.turn() == "two"


def test_what_changes_while_the_agents_process_runs_is_not_taken(kept: Kept) -> None:
    """Between turns too, also when it has ended before the next one begins."""
    running = [True]
    kept.guard("one")
    kept.start().agent_at_work = lambda: running[0]
    kept.turn()
    kept.guard("bad")
    running[0] = False
    assert kept.turn() == "one"
    assert str(kept.file) in kept.told[0]


def test_a_turn_of_another_home_counts(kept: Kept, tmp_path: Path) -> None:
    """An agent is an agent, whatever home it works for."""
    kept.guard("one")
    kept.start()
    other = Runtime([])
    with other.turn(session_id="x"):
        kept.guard("bad")
        assert kept.turn() == "one"
    assert kept.turn() == "one"
    assert kept.told


# -- turns that are never ended -------------------------------------------------------------------


@pytest.fixture
def left(kept: Kept) -> Iterator[Turn]:
    """A turn that its host leaves open, and holds on to."""
    kept.guard("one")
    kept.start()
    turn = kept.runtime.turn(session_id="left")
    turn.transform_user_input("hello")
    yield turn
    turn.close()


def hours_pass(turn: Turn, hours: float = 1.1) -> None:
    """Nothing has happened in it for so long."""
    turn.used_at -= hours * 3600


def test_a_turn_that_is_dropped_is_over(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    """What a person changes after it is taken at once; the log says what the host does."""
    kept.guard("one")
    kept.start()
    for number in range(3):
        kept.runtime.turn(session_id="dropped").intercept_tool_call("jot", {})
        kept.guard(f"edit {number}")
        assert kept.turn() == f"edit {number}"
    assert open_turn_count() == 0
    assert kept.told == []


def test_what_changes_in_a_turn_that_is_dropped_is_not_taken(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    turn = kept.runtime.turn(session_id="dropped")
    kept.guard("bad")
    turn.intercept_tool_call("jot", {})
    del turn
    assert kept.turn() == "one"
    assert str(kept.file) in kept.told[0]


def test_one_that_is_left_open_keeps_its_rules_and_others_have_the_new(
    kept: Kept, left: Turn
) -> None:
    """Also where it imports a part of itself only then; its modules go with it."""
    late = SAYS.format(says="x").replace("return", "from .part import S; return")
    kept.add("rule", {"__init__.py": late.replace("'x'", "S"), "part.py": "S = 'a'"}, to_home=True)
    assert kept.turn() == "one"  # it was used just now: it may have changed that
    hours_pass(left)
    assert kept.turn() == "a"
    again = kept.runtime.turn(session_id="again")
    hours_pass(again)
    kept.guard("two")
    assert kept.turn() == "two"
    assert left.intercept_tool_call("jot", {}).message == "one"
    assert again.intercept_tool_call("jot", {}).message == "a"
    assert kept.runtime.not_taken is None
    lines = [line for line in kept.told if "has not ended" in line]
    assert len(lines) == 2
    assert "'left'" in lines[0]
    for turn in (left, again):
        turn.close()
    kept.turn()
    assert len([name for name in modules() if ".rule_" in name]) == 1


def test_what_waits_for_it_is_said_at_once(kept: Kept, left: Turn) -> None:
    kept.guard("two")
    assert kept.turn() == "one"
    assert kept.turn() == "one"
    [line] = kept.told
    assert str(kept.file) in line
    hours_pass(left)
    assert kept.turn() == "two"


def test_what_was_changed_in_it_is_not_taken_later_either(
    kept: Kept, left: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long ago the last happened in it."""
    kept.guard("bad")
    left.intercept_tool_call("jot", {})
    monkeypatch.setattr(state, "_LEFT_IDLE", 0.0)  # an hour passes, for the file too
    assert kept.turn() == "one"
    assert str(kept.file) in kept.told[0]


def test_what_another_turn_changes_beside_it_is_not_taken(kept: Kept, left: Turn) -> None:
    """The other is the last one at work, or it ends while this one still counts."""
    hours_pass(left)
    assert kept.turn(lambda: kept.guard("bad")) == "one"
    assert kept.turn() == "one"
    assert str(kept.file) in kept.told[0]


def test_what_another_turn_changed_before_it_was_left(kept: Kept, left: Turn) -> None:
    assert kept.turn(lambda: kept.guard("bad")) == "one"
    hours_pass(left)
    assert kept.turn() == "one"
    assert str(kept.file) in kept.told[0]


def test_a_call_that_is_running_keeps_its_turn_at_work(kept: Kept) -> None:
    """For a day; and no longer than until its result has come."""
    kept.add("rule", NOTE.format(says="one"), to_home=True)
    kept.start()
    turn = kept.runtime.turn(session_id="s")
    turn.intercept_tool_call("jot", {}, tool_call_id="c1")
    hours_pass(turn)
    kept.guard("two")
    assert kept.turn() is None
    turn.transform_tool_result("jot", {}, "done", tool_call_id="c1")
    assert not turn.running
    turn.intercept_tool_call("jot", {}, tool_call_id="c2")
    hours_pass(turn, 25)
    assert not state.open_turns.any_at_work()
    turn.close()


def test_one_that_was_left_is_at_work_while_its_next_chain_runs() -> None:
    """However long nothing happened in it before."""
    at_work: list[bool] = []

    def look() -> None:
        at_work.append(state.open_turns.any_at_work())

    with Runtime([handler(look)]).turn(session_id="left") as turn:
        hours_pass(turn, 25)
        look()
        turn.intercept_tool_call("jot", {})
    assert at_work == [False, True]


def test_one_that_its_host_ends_for_certain_is_at_work(kept: Kept, left: Turn) -> None:
    """However long nothing happens in it."""
    left.attended = True
    hours_pass(left, 1000)
    kept.guard("bad")
    assert kept.turn() == "one"
    left.close()
    assert kept.turn() == "one"


def test_turns_that_are_never_left_hold_nothing(kept: Kept) -> None:
    """Neither those before them, nor any that is nested in them."""
    kept.guard("one")
    kept.start()

    def many() -> int:
        alive = []
        for _ in range(50):
            turn = kept.runtime.turn(session_id="s")
            turn.__enter__()
            alive.append(weakref.ref(turn))
            assert kept.turn() == "one"
            assert current_turn() is turn
        del turn
        gc.collect()
        return sum(each() is not None for each in alive)

    assert contextvars.copy_context().run(many) == 1
    gc.collect()
    assert open_turn_count() == 0


# -- projects -------------------------------------------------------------------------------------


def test_a_project_keeps_what_was_trusted_over_a_reload(kept: Kept) -> None:
    """Its changed code does not run, and its guard does not go, because a global file changed."""
    kept.add("theirs", SAYS.format(says="project"))
    kept.trust()
    last = SAYS.replace("guard=True", "guard=True, priority=200")
    kept.add("other", last.format(says="one"), to_home=True)
    kept.start()
    assert kept.turn() == "project"
    kept.add("theirs", NOTE.format(says="changed"))
    kept.add("other", last.format(says="two"), to_home=True)
    assert kept.turn() == "project"
    here = kept.runtime.for_directory(kept.root)
    assert any("no longer as it was" in text for text in here.notices)
    with kept.runtime.turn(session_id="s", cwd=kept.home) as turn:
        assert turn.intercept_tool_call("jot", {}).message == "two"


def test_a_project_trusted_again_is_in_force_at_the_next_turn(kept: Kept) -> None:
    kept.add("theirs", SAYS.format(says="one"))
    kept.trust()
    kept.start()
    assert kept.turn() == "one"
    kept.add("theirs", SAYS.format(says="two"))
    assert kept.turn() == "one"
    kept.trust()
    assert kept.turn() == "two"


# -- threads and memory ---------------------------------------------------------------------------


def test_one_turn_loads_and_others_go_on_with_the_old(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    gate = threading.Event()
    begun = threading.Event()
    sys.modules["agent_reload_gate"] = gate_module = type(sys)("agent_reload_gate")
    gate_module.wait = lambda: (begun.set(), gate.wait(30))  # type: ignore[attr-defined]
    kept.file.write_text("import agent_reload_gate as g\ng.wait()\n" + SAYS.format(says="two"))
    said: list[str | None] = []
    loading = threading.Thread(target=lambda: said.append(kept.turn()))
    loading.start()
    assert begun.wait(30)
    assert kept.turn() == "one"
    gate.set()
    loading.join(30)
    assert said == ["two"]


def test_an_agent_that_edits_while_another_turn_loads_changes_nothing(kept: Kept) -> None:
    kept.guard("one")
    kept.start()
    gate = threading.Event()
    begun = threading.Event()
    sys.modules["agent_reload_gate"] = gate_module = type(sys)("agent_reload_gate")
    gate_module.wait = lambda: (begun.set(), gate.wait(30))  # type: ignore[attr-defined]
    kept.file.write_text(
        "import agent_reload_gate as g\ng.wait()\nfrom .part import SAYS\n"
        + SAYS.format(says="x").replace("'x'", "SAYS")
    )
    part = kept.file.with_name("part.py")
    part.write_text("SAYS = 'two'\n")
    said: list[str | None] = []
    loading = threading.Thread(target=lambda: said.append(kept.turn()))
    loading.start()
    assert begun.wait(30)
    assert kept.turn(lambda: part.write_text("SAYS = 'bad'\n")) == "one"
    gate.set()
    loading.join(30)
    assert said == ["one"]
    assert kept.turn() == "one"


def test_old_modules_go_when_the_last_turn_that_uses_them_ends(kept: Kept) -> None:
    """Till then what they import late is found."""
    late = SAYS.format(says="x").replace("return", "from .part import S; return")
    kept.add("rule", {"__init__.py": late.replace("'x'", "S"), "part.py": "S = 'a'"}, to_home=True)
    kept.start()
    gate = threading.Event()
    begun = threading.Event()
    sys.modules["agent_reload_gate"] = gate_module = type(sys)("agent_reload_gate")
    gate_module.wait = lambda: (begun.set(), gate.wait(30))  # type: ignore[attr-defined]
    (kept.folder / "zgate.py").write_text("import agent_reload_gate as g\ng.wait()\n")
    kept.file.write_text(kept.file.read_text() + "# changed\n")
    loading = threading.Thread(target=kept.turn)
    loading.start()
    assert begun.wait(30)
    with kept.runtime.turn(session_id="other") as turn:
        gate.set()
        loading.join(30)
        assert turn.intercept_tool_call("jot", {}).message == "a"
        assert len([name for name in modules() if ".rule_" in name and "part" not in name]) == 2
    assert len([name for name in modules() if ".rule_" in name and "part" not in name]) == 1


def test_fifty_reloads_leave_nothing_behind(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_force, "SETTLED_SECONDS", 0.0)
    kept.guard("0")
    kept.start()
    kept.turn()
    seen: list[weakref.ref[object]] = []
    for number in range(1, 51):
        kept.guard(str(number) * (1 + number % 2))
        assert kept.turn() == str(number) * (1 + number % 2)
        seen.append(weakref.ref(kept.runtime.for_directory(kept.home)))
    gc.collect()
    assert sum(each() is not None for each in seen) <= 2
    assert len([name for name in modules() if ".rule_" in name]) == 1


# -- any sequence ---------------------------------------------------------------------------------

NAMES = ("a", "b")
GONE = ("gone", 0)


class AnySequence(RuleBasedStateMachine):
    """A person and an agent edit two guards and switch them; a small model tells what is in force.

    It knows when something changed, and not who did it: what differs from one look to the next is
    a person's exactly if no turn was open in between.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.place = Kept(Path(self.folder.name))
        self.serial = 0
        self.disk: dict[str, Any] = {"config": set()}
        for name in NAMES:
            self._write(name)
        self.place.start()
        self.seen = dict(self.disk)
        self.taken = dict(self.disk)
        self.spoilt: set[str] = set()
        self.open: list[tuple[Any, dict[str, str | None]]] = []

    def teardown(self) -> None:
        for turn, _ in self.open:
            turn.close()
        self.place.runtime.close()
        self.folder.cleanup()

    def _write(self, name: str) -> None:
        self.serial += 1
        source = SAYS.format(says=f"{name}{self.serial}")
        source = source.replace("guard=True", f"guard=True, tools=[{name!r}]")
        # Each of another size: the clock of the disk may stand still between two edits.
        self.place.add(name, source + "#" * self.serial, to_home=True)
        self.disk[name] = ("works", self.serial)

    @rule(name=st.sampled_from(NAMES))
    def edit(self, name: str) -> None:
        if self.disk[name][0] != "works":
            shutil.rmtree(self.place.folder / name, ignore_errors=True)
        self._write(name)

    @rule(name=st.sampled_from(NAMES), how=st.sampled_from(["syntax", "gone", "empty"]))
    def spoil(self, name: str, how: str) -> None:
        self.edit(name)
        file = self.place.folder / name / "__init__.py"
        if how == "gone":
            shutil.rmtree(file.parent)
            self.disk[name] = GONE
            return
        file.write_text(("def (:\n" if how == "syntax" else "#") + "#" * self.serial)
        self.disk[name] = (how, self.serial)

    @rule(names=st.sets(st.sampled_from(NAMES)))
    def switch(self, names: set[str]) -> None:
        self.serial += 1
        text = f"  disabled: {json.dumps(sorted(names))} {'#' * self.serial}\n"
        self.place.config(text)
        self.disk["config"] = names | {"there"}

    def _changed(self, since: dict[str, Any]) -> set[str]:
        return {what for what, now in self.disk.items() if now != since[what]}

    def _works(self, name: str, state: dict[str, Any]) -> bool:
        return state[name][0] == "works" and name not in state["config"]

    @rule()
    def begin(self) -> None:
        if not self.open:
            self.seen = dict(self.disk)
            self.spoilt &= self._changed(self.taken)
            lost = [
                name
                for name in NAMES
                if self._works(name, self.taken)
                and name not in self.disk["config"]
                and self.disk[name][0] != "works"
            ]
            if not self.spoilt and not lost:
                self.taken = dict(self.disk)
        turn = self.place.runtime.turn(session_id=f"s{len(self.open)}")
        in_force = {
            name: f"{name}{self.taken[name][1]}" if self._works(name, self.taken) else None
            for name in NAMES
        }
        self.open.append((turn, in_force))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        turn, _ = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        turn.close()
        if not self.open:
            self.spoilt |= self._changed(self.seen)
            self.seen = dict(self.disk)

    @invariant()
    def each_turn_has_what_it_began_with(self) -> None:
        for turn, expected in self.open:
            said = {name: turn.intercept_tool_call(name, {}).message for name in NAMES}
            assert said == expected


def test_any_sequence_of_edits_and_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_force, "SETTLED_SECONDS", 0.0)
    run_state_machine_as_test(
        AnySequence,
        settings=settings(
            max_examples=40,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
