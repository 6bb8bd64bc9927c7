"""Shell text is followed as bash runs it: what it writes is named, or it is said that more may be.

Whether bash does the same is what the oracle beside this finds out; here stands what is named.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shell")
    for name in ("src/a.py", "src/b c.py", "src/.hidden.py", "plans/x.md", "-f", "docs/sub/y.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    (root / "link").symlink_to("src")
    (root / "user").mkdir()
    return root


def effects(place: Path, command: str) -> Effects:
    machine = Machine(cwd=place, homes=(str(place / "user"),), environ={})
    return effects_of(ToolCall("terminal", {"command": command}), machine=machine)


def named(place: Path, command: str) -> set[str]:
    return {os.path.relpath(path, place) for path in effects(place, command).writes}


EXACT: list[tuple[str, ...]] = [
    # redirections
    ("echo a > x", "x"),
    ("echo a >> x 2>&1", "x"),
    ("echo a >| 'x y'", "x y"),
    ("echo a &> x", "x"),
    ("echo a 2>/dev/null >&2",),
    ("> x", "x"),
    ("echo a > link/new.py", "src/new.py"),
    ("{ echo a; echo b; } > x", "x"),
    ("for f in 1 2; do echo $f; done > x", "x"),
    ("cd src && echo a > x", "src/x"),
    ("cd src && cat a.py > x | cat; echo > y", "src/x", "src/y"),
    ("f() { echo; } > \"$1\"; f x", "x"),
    # what is in quotes
    ("touch 'a b' \"c d\" e\\ f", "a b", "c d", "e f"),
    ("touch a'b'\"c\"\\d", "abcd"),
    ("touch $'a\\x41' \"it's\"", "aA", "it's"),
    ("touch r\\\nx", "rx"),
    # variables
    ("x=src; touch $x/a.py", "src/a.py"),
    ("x='a b'; touch $x", "a", "b"),
    ("x='a b'; touch \"$x\"", "a b"),
    ("x=a.txt; touch ${x%.txt}.py ${x#a}", "a.py", ".txt"),
    ("x=a; x+=b; touch $x", "ab"),
    ("x=(a 'b c'); touch \"${x[@]}\"", "a", "b c"),
    ("set -- a b; touch \"$2\"", "b"),
    ("if ls; then x=a; else x=b; fi; touch $x", "a", "b"),
    ("touch ~/x $HOME/y", "user/x", "user/y"),
    # A tilde before what is quoted, or no name, is one; a user's name is the whole word's.
    ("touch ~$ ~\\$ '~'x ~\"a\"", "~$", "~$", "~x", "~a"),
    ('mkdir ~""', "~"),
    ("touch ~no$", "~no$"),
    ("mkdir {~,b}/x", "user/x", "b/x"),
    ("f() { local x=in; touch $x; }; x=out; f; touch $x", "in", "out"),
    ("f() { touch \"$1\"; }; f a; f b", "a", "b"),
    # patterns and braces
    ("rm src/*.py", "src/a.py", "src/b c.py"),
    ("rm src/[ab].py", "src/a.py"),
    ("rm no*match", "no*match"),
    ("touch {a,b}{1..2}", "a1", "a2", "b1", "b2"),
    ("touch q1 && rm q*", "q1"),
    # what runs in what
    ("echo $(touch a) `touch b` \"$(touch c)\"", "a", "b", "c"),
    ("cat <(touch a)", "a"),
    ("cat <<EOF\n$(touch a) `touch b`\nEOF", "a", "b"),
    ("cat <<'EOF'\n$(touch a)\nEOF",),
    ("true || touch a; false && touch b; ! touch c", "a", "b", "c"),
    ("(cd src; touch x); touch y", "src/x", "y"),
    ("touch a & touch b | touch c", "a", "b", "c"),
    ("case $x in a) touch a;; *) touch b;; esac", "a", "b"),
    ("while touch a; do touch b; done", "a", "b"),
    ("eval 'touch a'; eval touch b", "a", "b"),
    ("eval cd src; touch a", "src/a"),
    ("touch $(echo a)", "a"),
    # where it stands
    ("cd src; touch x", "src/x"),
    ("cd missing; touch x", "missing/x", "x"),
    ("cd missing || exit 1; touch x", "missing/x"),
    ("cd src && cd .. && touch x", "x"),
    ("cd src; cd -; touch x", "x"),
    ("pushd src; touch x; popd; touch y", "src/x", "y"),
    ("cd link/../docs; touch x", "docs/x"),
]  # fmt: skip


@pytest.mark.parametrize("row", EXACT, ids=[row[0] for row in EXACT])
def test_what_is_written_is_named(place: Path, row: tuple[str, ...]) -> None:
    """All that is written and nothing else, and nothing stays open."""
    command, *names = row
    assert named(place, command) == set(names)
    assert effects(place, command).unknown == ()


OPEN = [
    "rm $x",
    "rm \"$(cat list)\"",
    "echo a > $x",
    "$x a",
    "read x; rm $x",
    "source ./script",
    ". script",
    "./script",
    "/tmp/cat a",
    "make",
    "export PATH=/tmp:$PATH",
    "HOME=src; ls",
    "env -i sh -c 'mkdir ~/a'",
    "env -u HOME sh -c 'mkdir ~/a'",
    "exec -c sh -c 'mkdir ~/a'",
    # dash takes what a variable holds for one name, with its spaces.
    "dash -c 'x=\"a b\"; echo a > $x'",
    "IFS=,; ls",
    "alias ls=rm",
    "shopt -s globstar",
    "ls() { rm x; }; ls",
    "trap 'rm x' EXIT",
    "coproc rm x",
    "eval $x",
    "echo $((x))",
    "[[ $x -eq 1 ]]",
    "test -v 'a[$(rm x)]'",
    "echo ${x@P}",
    "[ a > b ]",
    "if ls; then",
    "cat <<EOF\n$(rm x",
    "rm a\r",
    "cat <(cat) > /proc/self/cwd/x",
    "set -f; rm *",
    "declare -n x=y; x=a",
    "cd $x && rm a",
    "while cd ..; do rm a; done",
    "f() { f; }; f",
    "rm !(a)",
]  # fmt: skip


@pytest.mark.parametrize("command", OPEN)
def test_what_cannot_be_followed_may_write(place: Path, command: str) -> None:
    found = effects(place, command)
    assert found.may_write
    assert not found.exact
    assert all(isinstance(each, str) and each for each in found.unknown)


def test_links_that_the_text_makes_are_followed(place: Path) -> None:
    """What is written through a link of the same text is what the link leads to."""
    assert "src/a.py" in named(place, "ln -s ../src plans/l; echo > plans/l/a.py")
    assert "src/a.py" in named(place, "ln -s src/a.py q; echo > q")


def test_a_file_with_several_names_is_not_exact(place: Path, tmp_path: Path) -> None:
    os.link(place / "src" / "a.py", place / "plans" / "hard.md")
    try:
        assert not effects(place, "echo > plans/hard.md").exact
    finally:
        (place / "plans" / "hard.md").unlink()


def test_commands_are_listed_with_what_is_in_them(place: Path) -> None:
    """Those of substitutions and of other shells too, with the variables that are set for them."""
    found = effects(place, "cd src && A=1 env git push -f \"$x\" | bash -c 'rm -rf y'")
    listed = {(each.name, each.args) for each in found.commands}
    assert ("git", ("push", "-f", None)) in listed
    assert ("rm", ("-rf", "y")) in listed
    env = next(each for each in found.commands if each.name == "env")
    assert env.variables == ("A",)
    assert env.cwd == place / "src"


@pytest.mark.parametrize(
    ("command", "name", "args"),
    [
        ("$TOOL apply", None, ("apply",)),
        ("$(which x) apply", None, ("apply",)),
        ("/opt/$V/bin/kubectl get", None, ("get",)),
        ("kubectl $VERB -f x", "kubectl", (None, "-f", "x")),
        ("x=kubectl; $x apply", "kubectl", ("apply",)),
    ],
)
def test_what_is_not_known_is_none(
    place: Path, command: str, name: str | None, args: tuple[str | None, ...]
) -> None:
    """The name of a program and an argument alike."""
    assert (name, args) in {(each.name, each.args) for each in effects(place, command).commands}


def test_deep_and_long_texts_end(place: Path) -> None:
    """What is too much to look at may touch everything, and is answered soon."""
    links = "; ".join(f"ln -s a{number} b" for number in range(100))
    paths = ("mkdir -p " + "a/b/" * 2_000, "echo > " + "../" * 9_000, links + "; touch b")
    shells = ("$(" * 200 + ")" * 200, "f() { f; f; }; f", "rm x; " * 6_000, "{a,b}" * 40)
    doubled = ("x=a; " + "x=$x$x; " * 40 + "rm $x", "x=a; " + "x+=$x; " * 40 + "rm $x")
    for command in (*paths, *shells, *doubled):
        found = effects(place, command)
        assert found.may_write
        assert not found.exact


def test_where_the_directory_is_gone_what_is_above_it_counts_too(place: Path) -> None:
    """Commands start in what is left of the directory then."""
    machine = Machine(cwd=place / "plans" / "gone" / "too", homes=(), environ={})
    found = effects_of(ToolCall("terminal", {"command": "echo > ../a.md"}), machine=machine)
    assert {place / "a.md", place / "plans" / "gone" / "a.md"} <= found.writes


def test_where_the_tools_run_elsewhere_names_are_all_there_is(place: Path) -> None:
    machine = Machine(cwd=Path("/work"), homes=("/root",), environ={}, local=False)
    call = ToolCall("terminal", {"command": "cd sub && rm a.py ~/b"})
    found = effects_of(call, machine=machine)
    assert {str(each) for each in found.writes} == {"/work/sub/a.py", "/root/b"}


@pytest.mark.parametrize(
    "command",
    ["bash -c 'touch \"$0\"'", "nice sh -c 'touch \"${0##*/}\"'", "echo 'touch $0' | bash"],
)
def test_what_a_shell_is_called_by_is_not_known(place: Path, command: str) -> None:
    """Without a word for it, `$0` is the shell's own name, as whoever starts it gives it."""
    assert not effects(place, command).exact
