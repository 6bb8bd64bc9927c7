"""Programs that are known to write, and to paths that are not, are told from unknown programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "w/d").mkdir(parents=True)
    (tmp_path / "w/a.txt").write_text("x")
    return Machine(cwd=tmp_path / "w", homes=(str(tmp_path),), environ={})


def _effects(command: str, machine: Machine) -> Effects:
    return effects_of(ToolCall("terminal", {"command": command}), machine=machine)


# A command, and of each open change: kind, what does it, the directory it is in, how its name ends.
_OPEN = {
    'rm "$f"': "delete rm * *",
    "ls | xargs rm": "delete rm * *",
    "xargs -L2 rm < a.txt": "delete rm * *",
    "cat a.txt | xargs sed -i s/a/b/": "write sed-i * *",
    "patch -p0 < a.txt": "write patch * *",
    'mkdir -p "$d"': "create mkdir * *",
    'echo > "$d/x.txt"': "write > * x.txt",
    'echo > "$d/./x.txt"': "write > * x.txt",
    'echo > "$d/../x.txt"': "write > * *",
    'echo > "$d.."': "write > * *",
    'echo > "$f.txt"': "write > * .txt",
    "echo > $f.txt": "write > * *",
    'echo > "d/$f"': "write > d *",
    'echo > "d/../$f"': "write > . *",
    'echo > "x$f"': "write > . *",
    "echo > d/$f": "write > * *",
    'cd "$d" && rm x.txt': "delete rm * x.txt",
    'cp a.txt "$d/"': "write cp * a.txt; write cp * *",
    "f=$(mktemp -d ./d/XXXX); touch \"$f\"": "write touch * *",
    "awk '{print > $1}' a.txt": "write awk * *",
}  # fmt: skip


@pytest.mark.parametrize("command", _OPEN)
def test_what_is_known_of_a_path_is_told(machine: Machine, command: str) -> None:
    """And it is a reason why the effects are not exact."""
    effects = _effects(command, machine)
    assert machine.cwd is not None
    told = {
        f"{each.kind} {each.by.replace(' ', '')} "
        f"{each.below.relative_to(machine.cwd) if each.below else '*'} {each.ends or '*'}"
        for each in effects.open_changes
    }
    assert told == set(_OPEN[command].split("; "))
    assert not effects.exact


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "./script",
        "$program",
        'grep -r x "$d"',
        'make "$f"',
        "rm a.txt",
        "for f in *.txt; do rm $f; done",
    ],
)
def test_other_calls_have_none(machine: Machine, command: str) -> None:
    """Programs that nobody knows, those that read, and those that write where it is known."""
    assert _effects(command, machine).open_changes == ()


def test_a_directory_that_changes_with_all_below_it(machine: Machine) -> None:
    """Whether more than the one path goes is known, though the path is not."""
    assert [each.tree for each in _effects('rm -r "$d"', machine).open_changes] == [True]
    assert [each.tree for each in _effects('rm "$d"', machine).open_changes] == [False]


def test_what_mktemp_makes_is_where_such_files_are(machine: Machine, tmp_path: Path) -> None:
    """By its template or `TMPDIR`; where the command sets that variable, nobody says where."""
    template = tmp_path / "x.XXXXXX"
    (change,) = _effects(f'f=$(mktemp {template}); touch "$f"', machine).open_changes
    assert change.below == tmp_path
    (change,) = _effects('TMPDIR=d; f=$(mktemp); touch "$f"', machine).open_changes
    assert change.below is None
    (change,) = _effects('f=$(TMPDIR=d mktemp); touch "$f"', machine).open_changes
    assert change.below is None


def test_very_many_are_not_told_one_by_one(machine: Machine) -> None:
    """What a guard has to look at stays little: beyond some, any path may be meant."""
    text = "\n".join(f'touch "$d/{number}"' for number in range(1_000))
    found = _effects(text, machine).open_changes
    assert len(found) < 100
    assert any(each.below is None and not each.ends for each in found)
