"""What programs are fed: which take it for data, and what is told where they may run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext.effects import Effects, Machine, effects_of_command
from hermes_ext.effects._input import may_run_input, takes_for_data
from hermes_ext.effects._knowledge import Knowledge

_RUN_IT = {"htop", "mariadb", "mysql", "openssl", "psql", "redis-cli", "sqlite3", "top"}


def effects(tmp_path: Path, command: str) -> Effects:
    return effects_of_command(command, machine=Machine(cwd=tmp_path, homes=("/home/me",)))


def test_each_known_program_is_in_a_list_or_may_run_its_input() -> None:
    """A program that is added to the data may run what it is fed until somebody says otherwise."""
    known = Knowledge.bundled()
    names = {name for name in known if (entry := known.get(name)) and not entry.unknown}
    assert {name for name in names if may_run_input(name)} == _RUN_IT


@pytest.mark.parametrize("name", sorted(_RUN_IT))
def test_what_a_known_program_may_run_is_in_doubt(tmp_path: Path, name: str) -> None:
    assert not effects(tmp_path, f"echo 'drop table x' | {name}").exact, name
    assert "drop table x" in "".join(effects(tmp_path, f"{name} <<< 'drop table x'").texts)


@pytest.mark.parametrize(
    ("program", "data"),
    [("awk", True), ("sed", True), ("curl", True), ("git", True), ("perl", False), ("sh", False)],
)
def test_a_program_that_takes_its_commands_from_a_file_may_be_fed_them(
    program: str, data: bool
) -> None:
    assert takes_for_data(program, [program, "x"]) is data
    if program in ("awk", "sed", "curl"):
        assert not takes_for_data(program, [program, "-f", "-"])


@pytest.mark.parametrize(
    "command",
    [
        "perl <<'E'\nunlink 'x';\nE",
        "perl <<< \"unlink 'x';\"",
        "echo \"unlink 'x';\" | perl",
        "cat <<'E' | sudo -u me perl\nunlink 'x';\nE",
        "perl < <(echo \"unlink 'x';\")",
        "echo \"unlink 'x';\" > a; perl < a",
        "echo \"unlink 'x';\" > a; perl a",
        "ssh host perl <<'E'\nunlink 'x';\nE",
    ],
)
def test_texts_have_what_a_program_is_fed(tmp_path: Path, command: str) -> None:
    assert "unlink 'x';" in {text.strip() for text in effects(tmp_path, command).texts}


def test_what_is_known_of_a_text_is_there(tmp_path: Path) -> None:
    found = effects(tmp_path, "d=/srv; ssh host <<E\nrm $d/a $UNKNOWN\nE")
    assert "rm /srv/a \ufffd\n" in found.texts


@pytest.mark.parametrize(
    "command",
    [
        "cat <<'E'\nrm -rf /\nE",
        "git commit -F - <<'E'\nno rm -rf /\nE",
        "make test; cat <<< 'rm -rf /'",
        "cat > notes.md <<'E'\nrm -rf /\nE\nmake test",
    ],
)
def test_data_is_no_text(tmp_path: Path, command: str) -> None:
    assert not any("rm -rf" in text for text in effects(tmp_path, command).texts)


@pytest.mark.parametrize(
    ("command", "listed"),
    [
        ("ls -d sub/* | xargs rm", "sub/a"),
        ("for f in $(ls sub/a); do rm $f; done", "sub/a"),
        ("ls sub | while read -r f; do rm sub/$f; done", "sub"),
        ("ls sub > l; xargs rm < l", "sub"),
        ("cd sub && rm $(ls)", "sub"),
        ("x=$(find sub); tool $x", "sub"),
    ],
)
def test_listed_has_what_names_come_from(tmp_path: Path, command: str, listed: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").touch()
    found = effects(tmp_path, command)
    assert tmp_path / listed in found.listed
    assert not found.exact


@pytest.mark.parametrize(
    "command",
    ["ls sub; rm a", "x=$(cat sub/a); rm b$x", "ls sub | wc -l", "n=$(ls sub | wc -l); rm $n"],
)
def test_names_that_are_not_used_are_not_listed(tmp_path: Path, command: str) -> None:
    assert tmp_path / "sub" not in effects(tmp_path, command).listed


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("cat > t.sh <<'E'\ntouch a\nE\nbash t.sh", {"t.sh", "a"}),
        ("printf '#!/bin/sh\\ntouch a\\n' > t.sh; chmod +x t.sh; ./t.sh", {"t.sh", "a"}),
        ("set -- a; echo 'touch $1' > t.sh; . ./t.sh", {"t.sh", "a"}),
        ('echo \'open("a", "w")\' > t.py; python3 t.py', {"t.py", "a"}),
        ("d=$(cd sub && pwd); touch $d/a", {"sub/a"}),
        ("echo a > l; xargs touch < l", {"l", "a"}),
        ("f() { echo a; }; touch $(f)", {"a"}),
    ],
)
def test_what_is_certain_stays_exact(tmp_path: Path, command: str, written: set[str]) -> None:
    (tmp_path / "sub").mkdir()
    found = effects(tmp_path, command)
    assert found.exact, found.unknown
    assert found.writes == {tmp_path / name for name in written}
