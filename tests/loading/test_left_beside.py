"""What a project's extension writes beside its own code, and where it should: its `data_dir`."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.projects import GUARD, Place

from hermes_ext import HookResult, Runtime, register_command, register_hook
from hermes_ext.doctor import examine
from hermes_ext.exceptions import CommandError
from hermes_ext.loading.finding import discovery
from hermes_ext.loading.imports.importing import PREFIX

LOGS = """\
from pathlib import Path
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_args):
    with Path(__file__).with_name("audit.log").open("a") as file:
        file.write("called\\n")
    return HookResult.block("from the guard")
"""

KEEPS = """\
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def check(data_dir):
    with (data_dir / "audit.log").open("a") as file:
        file.write("called\\n")
    return HookResult.block(str(data_dir))
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing bundled, and `sys.modules` as before."""
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(discovery, "bundled_dir", lambda: tmp_path / "bundled")
    monkeypatch.delenv("HERMES_EXT_TRUST", raising=False)
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.startswith((PREFIX, "agent")):
            del sys.modules[name]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def start(place: Place) -> Runtime:
    """A new process in the project."""
    return Runtime.from_config(home=place.home, cwd=place.root)


def call(runtime: Runtime, cwd: Path | None = None) -> str | None:
    """What comes of a call; None where it may run."""
    with runtime.turn(session_id="s", cwd=cwd) as turn:
        outcome = turn.intercept_tool_call("jot", {"stop": True})
    return outcome.message if outcome.blocked else None


# -- beside its own code --------------------------------------------------------------------------


def test_a_guard_that_writes_beside_itself_stays_in_force(place: Place) -> None:
    """Turn by turn and in the next process; one line names the file and what to do."""
    folder = place.add("guard", LOGS)
    place.trust()
    runtime = start(place)
    assert runtime.notices == ()
    for _ in range(3):
        assert call(runtime) == "from the guard"
    for _ in range(2):
        runtime = start(place)
        assert call(runtime) == "from the guard"
        (line,) = runtime.for_directory(place.root).notices
        assert "extensions/guard/audit.log" in line
        assert "The trusted version stays in force" in line
        assert "data_dir" in line
        assert f"trust {place.root}" in line
    assert (folder / "audit.log").read_text().count("called") == 5
    found = {each.code: each for each in examine(place.home, place.root)}
    assert "audit.log" in found["new-data"].message
    assert "untrusted" not in found
    assert "changed" not in found


@pytest.mark.parametrize(
    "name", ["audit.log", "LOG", "state.json", "seen.yaml", "state.db", "logs/2026/01.txt", ".lock"]
)
def test_a_guard_may_have_left_any_kind_of_data(place: Place, name: str) -> None:
    """Also what it rewrites each time, since nobody trusted any of it."""
    folder = place.add("guard", GUARD)
    place.trust()
    for content in (b"one", b"\0\xff"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        runtime = start(place)
        assert call(runtime) == "from the guard"
        (line,) = runtime.notices
        assert f"extensions/guard/{name}" in line


def test_a_log_that_was_trusted_may_grow(place: Place) -> None:
    """Who trusted it once more, with the log beside it, has not to do so after each call."""
    place.add("guard", LOGS)
    place.trust()
    call(start(place))
    place.trust()
    assert start(place).notices == ()
    assert call(start(place)) == "from the guard"
    (line,) = start(place).notices
    assert "audit.log" in line
    assert call(start(place)) == "from the guard"


def test_the_line_goes_with_its_reason(place: Place) -> None:
    """Within a process: the file is removed, or trusted."""
    folder = place.add("guard", GUARD)
    place.trust()
    runtime = start(place)
    (folder / "notes.txt").write_text("x")
    assert call(runtime) == "from the guard"
    assert runtime.for_directory(place.root).notices != ()
    (folder / "notes.txt").unlink()
    assert call(runtime) == "from the guard"
    assert runtime.for_directory(place.root).notices == ()


def test_the_data_of_the_guard_is_what_was_trusted(place: Place) -> None:
    """What grew on the disk is not what `importlib.resources` gives."""
    source = "import pkgutil\nfrom hermes_ext import HookResult, register_hook\n" + (
        '@register_hook("intercept_tool_call", guard=True)\n'
        "def check():\n"
        '    return HookResult.block(pkgutil.get_data(__name__, "words.txt").decode())\n'
    )
    folder = place.add("guard", {"__init__.py": source, "words.txt": "trusted"})
    place.trust()
    with (folder / "words.txt").open("a") as file:
        file.write(" and more")
    assert call(start(place)) == "trusted"


NOT_BESIDE: dict[str, Callable[[Path], object]] = {
    "code that changed": lambda f: (f / "__init__.py").write_text(GUARD + "#"),
    "code that grew": lambda f: (f / "helper.py").write_text("X = 1\nY = 2\n"),
    "code that is new": lambda f: (f / "new.py").touch(),
    "code of another extension": lambda f: (f.parent / "planted.py").touch(),
    "code in capitals": lambda f: (f / "NEW.PY").touch(),
    "a native module": lambda f: (f / "fast.so").touch(),
    "a script": lambda f: (f / "check.sh").touch(),
    "a script by its first line": lambda f: (f / "check").write_text("#!/bin/sh\n"),
    "a program that grew": lambda f: (f / "run").write_text("#!/bin/sh\nexit\nrm -rf /\n"),
    "a manifest": lambda f: (f / "extension.yaml").write_text("name: x\n"),
    "settings": lambda f: (f.parents[1] / "extensions.yaml").write_text("guard: {}\n"),
    "data that was rewritten": lambda f: (f / "data.txt").write_text("others"),
    "data that was cut": lambda f: (f / "data.txt").write_text("dat"),
    "data that is gone": lambda f: (f / "data.txt").unlink(),
}


@pytest.mark.parametrize("case", NOT_BESIDE)
def test_what_may_be_run_ends_the_trust(place: Place, case: str) -> None:
    """And what no log does: nothing of the project runs in the next process, and a line says so."""
    files = {
        "__init__.py": GUARD,
        "helper.py": "X = 1\n",
        "data.txt": "data",
        "run": "#!/bin/sh\nexit\n",
    }
    folder = place.add("guard", files)
    place.trust()
    running = start(place)
    NOT_BESIDE[case](folder)
    assert call(running) == "from the guard"
    runtime = start(place)
    assert call(runtime) is None
    (line,) = runtime.notices
    assert "changed since you trusted them" in line


def test_a_tree_without_a_copy_is_untrusted_as_ever(place: Place) -> None:
    """What was trusted is not known any more."""
    folder = place.add("guard", GUARD)
    place.trust()
    for each in (place.home / "extensions-trust" / "copies").iterdir():
        each.unlink()
    (folder / "audit.log").touch()
    assert call(start(place)) is None
    assert len(start(place).notices) == 1


# -- data_dir -------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_data_dir_is_private_and_outside_of_every_tree(place: Place) -> None:
    """It is made by the first call, stays over processes, and ends no trust."""
    place.add("guard", KEEPS)
    place.trust()
    runtime = start(place)
    assert not (place.home / "extensions-data").exists()
    told = call(runtime)
    folder = Path(str(told))
    assert folder.is_relative_to(place.home / "extensions-data")
    assert not folder.is_relative_to(place.root)
    assert {mode(each) for each in (folder, *folder.parents[:2])} == {0o700}
    assert call(start(place)) == told
    assert (folder / "audit.log").read_text() == "called\ncalled\n"
    assert start(place).notices == ()


def test_each_project_has_its_own(place: Place) -> None:
    """Two of one name, and the user's own of that name, share none."""
    other = Place(place.root.parent, "other/repo", place.home)
    place.add("guard", KEEPS), other.add("guard", KEEPS)
    place.trust(), other.trust()
    runtime = start(place)
    here, there = call(runtime, place.root), call(runtime, other.root)
    place.add("guard", KEEPS, to_home=True)
    everywhere = call(Runtime.from_config(home=place.home, cwd=place.home))
    assert len({here, there, everywhere}) == 3


def test_it_is_the_same_after_an_upgrade(place: Place) -> None:
    """Another version of the code, trusted anew, finds what the old one wrote."""
    folder = place.add("guard", KEEPS)
    place.trust()
    before = call(start(place))
    (folder / "__init__.py").write_text(KEEPS + "# 2.0\n")
    place.trust()
    assert call(start(place)) == before


def test_it_is_made_only_for_handlers_that_name_it(tmp_path: Path) -> None:
    """`**kwargs` does not."""
    seen: list[str] = []

    @register_hook("intercept_tool_call")
    def takes_all(**kwargs: object) -> None:
        seen.extend(kwargs)

    call(Runtime([takes_all], home=tmp_path))
    assert "tool_name" in seen
    assert "data_dir" not in seen
    assert not (tmp_path / "extensions-data").exists()


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    @register_hook("intercept_tool_call")
    def look(data_dir: Path) -> None:
        (data_dir / "x").touch(exist_ok=False)
        (data_dir / "x").unlink()
        data_dir.rmdir()

    runtime = Runtime([look], home=tmp_path)
    assert [call(runtime), call(runtime)] == [None, None]


def test_without_a_home_it_is_temporary() -> None:
    """The same folder for all turns of the runtime, and gone with it."""
    seen: list[Path] = []

    @register_hook("intercept_tool_call")
    def look(data_dir: Path) -> None:
        seen.append(data_dir)

    runtime = Runtime([look])
    call(runtime), call(runtime)
    assert len(set(seen)) == 1
    assert seen[0].is_dir()
    del runtime
    import gc

    gc.collect()
    assert not seen[0].exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.touch(),
        lambda data: (data / "home").mkdir(parents=True) or (data / "home" / "x").touch(),
        lambda data: (data / "home").mkdir(parents=True) or (data / "home" / "x").symlink_to("/"),
    ],
    ids=["a file in its way", "a file in its place", "a link in its place"],
)
def test_a_guard_closes_where_it_cannot_be_had(
    tmp_path: Path, spoil: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    """Like any failure of a guard; the message names the folder and what to do."""
    source = KEEPS.replace("return HookResult.block(str(data_dir))", "return None")
    place = Place(tmp_path)
    place.add("x", source, to_home=True)
    spoil(place.home / "extensions-data")
    assert "so this call is refused" in str(call(start(place)))
    assert "data_dir of 'x' cannot be used" in caplog.text
    assert str(place.home / "extensions-data") in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="owners are a matter of POSIX")
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody else could write what the guard keeps."""
    place = Place(tmp_path)
    place.add("x", KEEPS, to_home=True)
    folder = Path(str(call(start(place))))
    os.chown(folder, 12345, -1)
    assert "so this call is refused" in str(call(start(place)))
    assert "belongs to another user (uid 12345)" in caplog.text


def test_a_command_gets_the_folder_of_its_extension(tmp_path: Path) -> None:
    """The same that its handlers have; a folder that cannot be had is the user's to know."""

    @register_hook("intercept_tool_call")
    def note(data_dir: Path) -> HookResult:
        (data_dir / "note").write_text("noted")
        return HookResult.block("no")

    @register_command("notes")
    def notes(data_dir: Path) -> str:
        return (data_dir / "note").read_text()

    runtime = Runtime([note, notes], home=tmp_path)
    call(runtime)
    assert runtime.command("notes", session_id="s") == "noted"
    (tmp_path / "other" / "extensions-data").parent.mkdir()
    (tmp_path / "other" / "extensions-data").touch()
    with pytest.raises(CommandError, match="cannot be used"):
        Runtime([notes], home=tmp_path / "other").command("notes", session_id="s")


def test_the_agents_own_tools_do_not_write_there(place: Place) -> None:
    """A guard may count by what it keeps; who could write it could forge the count."""
    place.add("guard", GUARD, to_home=True)
    file = place.home / "extensions-data" / "home" / "guard" / "count"
    with start(place).turn(session_id="s") as turn:
        for outcome in (
            turn.intercept_tool_call("write_file", {"path": str(file), "content": "0"}),
            turn.intercept_tool_call("terminal", {"command": f"echo 0 > {file}"}),
            turn.intercept_tool_call("terminal", {"command": f"rm -r {file.parents[2]}"}),
        ):
            assert outcome.blocked
            assert outcome.blocked_by == "hermes-ext"
