from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.projects import GOOD, GUARD

from hermes_ext._prog import Prog
from hermes_ext.cli._commands import trust
from hermes_ext.cli._request import Request
from hermes_ext.trust.place import Project
from hermes_ext.trust.store import Standing, TrustStore, judge

SENTINEL = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"


def standing(home, repo):
    return judge(Project(repo.root), home.path).standing


def as_digest(repo):
    """The digest as the contract tells it."""
    files = [path for path in sorted(repo.hermes.rglob("*")) if path.is_file()]
    lines = [
        b"%s\0%s\n"
        % (
            os.fsencode(path.relative_to(repo.hermes)),
            hashlib.sha256(path.read_bytes()).hexdigest().encode(),
        )
        for path in files
    ]
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


# -- trust ----------------------------------------------------------------------------------------


def test_trust_shows_what_it_records(home, repo):
    """Root, names, files with sizes, digest and settings are shown; then it is trusted."""
    repo.add("plan-rules")
    repo.add("style", {"__init__.py": GOOD, "words.txt": "x" * 1500})
    repo.settings("style: {indent: tabs, deep: {er: 1}}\n")

    output = home.run("trust")

    assert output.code == 0
    for told in (
        str(repo.root),
        "plan-rules, style",
        "4 files",
        "1.5 kB  extensions/style/words.txt",
        as_digest(repo),
        'style.indent: "tabs"',
        "style.deep.er: 1",
        "Trusted.",
        f"untrust {repo.root}",
    ):
        assert told in output.out
    assert standing(home, repo) is Standing.TRUSTED
    again = home.run("trust")
    assert again.code == 0
    assert "nothing has changed" in again.out


def test_nothing_of_a_project_runs_before_it_is_trusted(home, repo):
    """No command imports untrusted code, parses its manifest or believes its settings."""
    path = repo.add("workflow-guard", {"__init__.py": SENTINEL, "extension.yaml": "{ not: [yaml"})
    repo.settings("workflow-guard: {blocked_tools: []}\nextensions: {enabled: false}\n")
    home.run("install")

    for argv in (
        ("list",),
        ("list", "--load"),
        ("info", "workflow-guard"),
        ("enable", "workflow-guard"),
        ("doctor",),
        ("trust", "--diff", "--full"),
        ("trust", "--digest"),
        ("untrust",),
        ("trust",),
    ):
        output = home.run(*argv, "--json")
        assert output.json is not None
        assert not (path / "__init__.ran").exists(), argv
        told = json.dumps(output.json.get("problems")) if argv[0] == "list" else ""
        assert "extension.yaml" not in told
    assert standing(home, repo) is Standing.TRUSTED


def test_what_changed_is_shown(home, repo):
    """Of a project that was trusted, the changed lines are shown; binary files by name."""
    path = repo.add("rules", {"__init__.py": "a = 1\nb = 2\n", "old.py": "gone = True\n"})
    home.run("trust")
    (path / "__init__.py").write_text("a = 1\nb = 3\x1b[31m\u202e\n")
    (path / "old.py").unlink()
    (path / "new.bin").write_bytes(b"\0\1")

    output = home.run("trust", "--diff")

    assert output.code == 1
    for line in (
        "-b = 2",
        "+b = 3\\x1b[31m\\u202e",
        "-gone = True",
        "    added    extensions/rules/new.bin",
        "    removed  extensions/rules/old.py",
        "extensions/rules/new.bin: added; no text, so no lines to show",
    ):
        assert line in output.out.splitlines()
    assert "\x1b" not in output.out
    kinds = {each["path"]: each["kind"] for each in home.run("trust", "--json").json["changes"]}
    assert kinds == {
        "extensions/rules/__init__.py": "changed",
        "extensions/rules/new.bin": "added",
        "extensions/rules/old.py": "removed",
    }
    assert home.run("trust", "--diff").code == 0


def test_no_line_of_the_page_is_a_projects(home, repo):
    """What its files say, in keys, values, complaints and names, begins no line of its own."""
    repo.add("nice")
    repo.settings(
        'nice: {a: "x\\L\\PFORGED 1\\NFORGED 2\\nFORGED 3"}\n'
        '"bad\\nFORGED 4\\LFORGED 5": 1\n'
        '"twice\\NFORGED 6": {}\n"twice\\NFORGED 6": {}\n'
    )
    (repo.hermes / "extensions" / "b\nFORGED 7.py").touch()

    for argv in (("--diff", "--full"), ()):
        output = home.run("trust", *argv)
        assert "FORGED 5" in output.out
        assert not [line for line in output.out.splitlines() if line.strip().startswith("FORGED")]
        assert "\u2028" not in output.out
    for problem in home.run("trust", "--diff", "--json").json["problems"]:
        assert problem["key"].isprintable()
        assert problem["message"].isprintable()


def test_only_the_expected_digest_is_recorded(home, repo):
    """With `--expect`, what is not the named content is not trusted, and both digests are told."""
    repo.add("rules")
    other = "0" * 64

    output = home.run("trust", "--expect", other)
    assert output.code == 1
    assert other in output.err
    assert as_digest(repo) in output.err
    assert other in home.run("trust", "--expect", other, "--json").json["error"]
    assert home.run("trust", "--expect", "abc").code == 2
    assert standing(home, repo) is Standing.UNTRUSTED
    assert home.run("trust", "--expect", as_digest(repo).upper()).code == 0
    assert standing(home, repo) is Standing.TRUSTED
    assert home.run("trust", "--expect", other).code == 1


def test_a_diff_that_takes_too_long_says_so(home, repo, monkeypatch):
    """Nothing is left out: what stayed is shown as removed and added, unless `--full` is given."""
    path = repo.add("rules", "a = 1\nsame = 1\nb = 1\n")
    home.run("trust")
    (path / "__init__.py").write_text("a = 2\nsame = 1\nb = 2\n")
    monkeypatch.setattr(trust, "_DIFF_SECONDS", -1.0)

    hurried, full = home.run("trust", "--diff"), home.run("trust", "--diff", "--full")

    assert "-same = 1" in hurried.out
    assert "+same = 1" in hurried.out
    assert "--full takes the time" in hurried.out
    assert " same = 1" in full.out.splitlines()
    assert "--full takes the time" not in full.out


def test_diff_records_nothing(home, repo):
    """`--diff` and `--digest` write nothing at all."""
    repo.add("rules")

    assert home.run("trust", "--diff").code == 1
    assert home.run("trust", "--digest").out == f"{as_digest(repo)}\n"
    assert home.run("trust", "--digest", "--json").json == {
        "root": str(repo.root),
        "digest": as_digest(repo),
    }

    assert not TrustStore(home.path).folder.exists()


def test_a_long_diff_is_cut_and_says_so(home, repo):
    """Beyond some lines a diff is cut with a line about `--full`, which cuts nothing."""
    path = repo.add("rules", "")
    home.run("trust")
    (path / "__init__.py").write_text("".join(f"number_{n} = {n}\n" for n in range(500)))
    (path / "wide.py").write_text("x" * 5000)

    cut, full = home.run("trust", "--diff"), home.run("trust", "--diff", "--full")

    assert "more lines; --full shows all" in cut.out
    assert "number_499" not in cut.out
    assert "number_499" in full.out
    assert "x" * 5000 in full.out
    assert "--full" not in full.out
    assert "number_499" in json.dumps(home.run("trust", "--diff", "--json").json["changes"])


def test_all_of_a_new_project_can_be_read_first(home, repo):
    """Of what was never trusted, `--diff --full` shows every line, and `--diff` says so."""
    repo.add("rules", "secret_plan = 1\n")

    assert "trust --diff --full" in home.run("trust", "--diff").out
    assert "+secret_plan = 1" in home.run("trust", "--diff", "--full").out


def test_what_was_shown_is_what_is_recorded(home, repo):
    """Files that change while the question stands are not trusted: the tree is not read again."""
    path = repo.add("rules", "before = 1\n")
    shown = []

    def ask(payload):
        shown.append(payload["digest"])
        (path / "__init__.py").write_text("after = 1\n")
        return True

    result = trust.work(Request(home.path, repo.root, Prog(), ask=ask))

    assert result.exit_code == 0
    (entry,) = TrustStore(home.path).entries()
    assert [entry.digest] == shown
    assert standing(home, repo) is Standing.CHANGED


def test_no_is_no(home, repo):
    """What a person does not agree to is not recorded, and is exit code 1."""
    repo.add("rules")

    result = trust.work(Request(home.path, repo.root, Prog(), ask=lambda payload: False))

    assert result.exit_code == 1
    assert standing(home, repo) is Standing.UNTRUSTED


@pytest.mark.parametrize(
    "named", [".", "src/deep", ".hermes", ".hermes/extensions", ".hermes/extensions.yaml", "link"]
)
def test_any_folder_of_a_project_means_the_project(home, repo, named):
    """A path within the project, or to it by a link, trusts the project as a whole."""
    repo.add("rules")
    repo.settings("rules: {}\n")
    (repo.root / "src" / "deep").mkdir(parents=True)
    (repo.root / "link").symlink_to(repo.root / "src")

    assert home.run("trust", named, "--json").json["root"] == str(repo.root)
    assert home.run("untrust", named).code == 0


def test_a_project_without_a_repository_is_one_folder(home, tmp_path):
    """Without a repository only the folder itself counts, or what is in its `.hermes`."""
    inside = tmp_path / "plain" / ".hermes" / "extensions" / "rules"
    inside.mkdir(parents=True)
    (inside / "__init__.py").touch()
    (tmp_path / "plain" / "sub").mkdir()

    below = home.run("trust", str(tmp_path / "plain" / "sub"))
    assert below.code == 1
    assert f"hermes-ext trust {tmp_path / 'plain'}" in below.err
    assert home.run("trust", str(inside)).code == 0


def _link_out(repo):
    (repo.add("rules") / "data").symlink_to("/etc")


def _pipe(repo):
    os.mkfifo(repo.add("rules") / "pipe")


def _linked_folder(repo):
    other = repo.root.parent / "elsewhere"
    other.mkdir()
    (other / "rules.py").touch()
    repo.hermes.mkdir()
    (repo.hermes / "extensions").symlink_to(other)


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        (lambda repo: None, "there is no project with extensions"),
        (_link_out, "rules/data"),
        (_pipe, "rules/pipe"),
        (_linked_folder, "outside of the project"),
    ],
    ids=["none", "link that leaves", "pipe", "linked folder"],
)
def test_what_cannot_be_trusted_is_refused_with_the_reason(home, repo, prepare, told):
    """Exit code 1, the reason with the path, JSON where that was asked for; nothing is written."""
    prepare(repo)

    for argv in ((), ("--diff",), ("--digest",)):
        output = home.run("trust", *argv)
        assert output.code == 1
        assert told in output.err
        assert told in home.run("trust", *argv, "--json").json["error"]
    assert not TrustStore(home.path).folder.exists()


@pytest.mark.parametrize("command", ["trust", "untrust"])
def test_a_path_that_is_not_there(home, command):
    """A mistyped path is told and is exit code 1."""
    output = home.run(command, "nowhere")

    assert output.code == 1
    assert "nowhere" in output.out + output.err


def test_the_home_folder_is_no_project(home, tmp_path):
    """Extensions in `~/.hermes` are the user's own; they are never trusted as a project's."""
    (tmp_path / ".hermes" / "extensions").mkdir(parents=True)

    assert home.run("trust", str(tmp_path)).code == 1
    assert home.run("trust", str(home.path)).code == 1


@pytest.mark.parametrize(
    "argv", [("--diff", "--list"), ("--diff", "--digest"), ("a", "b"), ("--list", "x", "y")]
)
def test_trust_usage(home, argv):
    """What contradicts itself is wrong usage."""
    assert home.run("trust", *argv).code == 2


# -- what is trusted ------------------------------------------------------------------------------


def test_the_list_of_trusted_projects(home, repo, tmp_path):
    """`--list` has each trusted project, and whether it still is what was trusted."""
    assert "No project is trusted" in home.run("trust", "--list").out
    repo.add("rules")
    home.run("trust")
    for name in ("gone", "changed"):
        folder = tmp_path / name / ".hermes" / "extensions" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        home.run("trust", str(tmp_path / name))
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "changed" / ".hermes" / "extensions" / "new.py").touch()

    listed = home.run("trust", "--list", "--json").json["projects"]

    assert {Path(each["root"]).name: each["standing"] for each in listed} == {
        "repo": "trusted",
        "gone": "gone",
        "changed": "changed",
    }
    shown = home.run("trust", "--list")
    assert shown.code == 0
    for told in ("nothing has changed", "gone: the folder", "new.py"):
        assert told in shown.out


def test_untrust_takes_it_out(home, repo):
    """Once taken out it is untrusted; doing it again says so and is exit code 1."""
    repo.add("rules")
    home.run("trust")

    output = home.run("untrust", "--json")

    assert (output.code, output.json["removed"], output.json["names"]) == (0, True, ["rules"])
    assert standing(home, repo) is Standing.UNTRUSTED
    again = home.run("untrust")
    assert again.code == 1
    assert "was not trusted" in again.out


def test_untrust_of_a_folder_that_is_gone(home, repo, monkeypatch, tmp_path):
    """The path as it was is enough, also one below it, and another project's entry stays."""
    repo.add("rules")
    other = tmp_path / "repo-two" / ".hermes" / "extensions"
    other.mkdir(parents=True)
    (other / "rules.py").touch()
    home.run("trust")
    home.run("trust", str(other))
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(repo.root)

    assert home.run("untrust", "repo/src").code == 0

    (entry,) = TrustStore(home.path).entries()
    assert entry.path == tmp_path / "repo-two"


def test_a_project_within_a_trusted_one_is_another(home, repo):
    """`untrust` in an untrusted project below a trusted one leaves the trusted one alone."""
    repo.add("rules")
    home.run("trust")
    inner = repo.root / "vendored"
    (inner / ".git").mkdir(parents=True)
    (inner / ".hermes" / "extensions").mkdir(parents=True)
    (inner / ".hermes" / "extensions" / "rules.py").touch()

    assert home.run("untrust", str(inner)).code == 1
    assert standing(home, repo) is Standing.TRUSTED


def test_a_pinned_digest(home, repo, monkeypatch):
    """`HERMES_EXT_TRUST` is told wherever it is the reason, and `untrust` says that it stays."""
    repo.add("rules")
    monkeypatch.setenv("HERMES_EXT_TRUST", home.run("trust", "--digest").out.strip())

    assert "HERMES_EXT_TRUST" in home.run("trust", "--diff").out
    assert home.run("trust", "--diff").code == 0
    assert "is trusted by $HERMES_EXT_TRUST" in home.run("list").out
    assert as_digest(repo) in home.run("trust", "--list").out
    assert home.run("trust", "--json").json["recorded"]
    assert "it stays trusted" in home.run("untrust").out


def test_a_moved_project_is_told(home, repo, tmp_path, monkeypatch):
    """The same content elsewhere is not trusted, and it is said where it is."""
    repo.add("rules")
    home.run("trust")
    repo.root.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")

    output = home.run("trust", "--diff")

    assert output.code == 1
    assert f"The very same content is trusted at {repo.root}" in output.out


def test_a_damaged_list_is_set_aside(home, repo):
    """`trust` begins a new list where the old one is damaged; the others say that it is."""
    repo.add("rules")
    home.run("trust")
    file = TrustStore(home.path).file
    file.write_text("{")

    assert "damaged" in home.run("list").out
    for argv in (("trust", "--list"), ("untrust",)):
        assert "damaged" in home.run(*argv, "--json").json["error"]
        assert home.run(*argv).code == 1
    output = home.run("trust")
    assert output.code == 0
    assert "damaged" in output.out
    assert standing(home, repo) is Standing.TRUSTED
    assert (file.parent / "trusted.json.damaged-1").read_text() == "{"


def test_a_list_that_others_may_write_is_refused(home, repo):
    """Nothing is trusted by it, and nothing is added to it."""
    repo.add("rules")
    home.run("trust")
    TrustStore(home.path).file.chmod(0o666)

    assert standing(home, repo) is Standing.UNTRUSTED
    output = home.run("trust", "--json")
    assert output.code == 1
    assert "chmod go-w" in output.json["hint"]


def test_a_home_that_others_may_write_is_told(home, repo):
    """`trust` and `list` say why nothing is trusted."""
    repo.add("rules")
    home.run("trust")
    home.path.chmod(0o777)

    told = "others may write the Hermes home; no project is trusted"
    assert told in home.run("trust").err
    assert told in home.run("list").out


def test_a_doctor_tells_of_a_list_behind_a_link(home, repo):
    """What a project may have put there trusts nothing, and `doctor` says so."""
    repo.add("rules")
    home.run("trust")
    folder = TrustStore(home.path).folder
    folder.rename(repo.root / "store")
    folder.symlink_to(repo.root / "store")

    findings = home.run("doctor", "--json").json["findings"]
    (told,) = [each["message"] for each in findings if each["code"] == "trust-store"]
    assert "is a link; no project is trusted" in told


def test_what_still_stands_in_the_way_is_told(home, repo):
    """After trusting, what is off, or may not take another's place, is said at once."""
    home.add("kept", GUARD)
    repo.add("kept")
    repo.add("quiet")
    home.write_config("extensions:\n  disabled: [quiet]\n  project_local: false\n")
    assert "project_local is false" in home.run("trust", "--diff").out
    home.write_config("extensions:\n  disabled: [quiet]\n")

    output = home.run("trust")

    assert "Note: quiet is disabled" in output.out
    assert "Note: kept is shadowed" in output.out
    assert "extensions.overridable" in output.out


# -- in a terminal --------------------------------------------------------------------------------


# Makes the terminal the process's own, so that ctrl-c reaches it; where the tests run in the
# background, a shell has had interrupts ignored.
OWN_TERMINAL = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0);"
    "signal.signal(signal.SIGINT, signal.SIG_DFL);"
    "os.execv(sys.executable, [sys.executable, '-m', 'hermes_ext.cli', *sys.argv[1:]])"
)


INTERRUPT = b"\x03"


def in_terminal(*argv, answer=None, streams=None, **env):
    """A command in a real terminal of 80 columns; `answer` is typed where it asks."""
    terminal, other = os.openpty()
    streams = {"stdin": other, "stdout": other, "stderr": other} | (streams or {})
    environ = {**os.environ, "TERM": "xterm-256color", **env}
    environ.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *argv],
        **streams,
        env=environ,
        start_new_session=True,
    )
    os.close(other)
    output = b""
    presses = 0
    while data := read(terminal, INTERRUPT if 0 < presses < 20 else b""):
        output += data
        if answer is not None and output.endswith(b"[y/N] "):
            os.write(terminal, answer)
            presses, answer = int(answer == INTERRUPT), None
        elif presses:
            presses += 1
    os.close(terminal)
    return process.wait(), output.decode()


def read(terminal, again=b""):
    """What comes next; nothing when the other side is closed, or does not go on.

    again: pressed each second that nothing comes. An interrupt that arrives between the question
    and the wait for its answer is noticed only at the next one.
    """
    for _ in range(60):
        if select.select([terminal], [], [], 1)[0]:
            break
        os.write(terminal, again)
    else:
        return b""
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side is closed
        return b""


@pytest.mark.parametrize(
    ("answer", "argv", "code"),
    [
        (b"y\n", (), 0),
        (b"\n", (), 1),
        (b"\x04", (), 1),
        (b"\x03", (), 130),
        (None, ("--yes",), 0),
        (b"n\n", ("--json",), 1),
    ],
    ids=["yes", "enter", "ctrl-d", "ctrl-c", "--yes", "--json"],
)
def test_a_terminal_is_asked(home, repo, answer, argv, code):
    """In a terminal a person is asked, and only `y` and `yes` are a yes."""
    repo.add("rules")

    ended, output = in_terminal("trust", *argv, answer=answer)

    assert ended == code, output
    assert ("Trust this? [y/N] " in output) == (answer is not None)
    assert str(repo.root).replace(os.environ["HOME"], "~") in output
    expected = Standing.TRUSTED if code == 0 else Standing.UNTRUSTED
    assert standing(home, repo) is expected


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_half_a_terminal_is_no_consent(home, repo, stream):
    """In front of a pager, or with an input that is no person, nothing is recorded."""
    repo.add("rules")
    half = {"streams": {stream: subprocess.DEVNULL}}

    ended, output = in_terminal("trust", "--full", **half)

    assert ended == 1
    if stream == "stdin":
        assert "nothing was recorded" in output
        assert "--yes" in output
    assert standing(home, repo) is Standing.UNTRUSTED
    assert in_terminal("trust", "--yes", **half)[0] == 0
    assert standing(home, repo) is Standing.TRUSTED


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}], ids=["colour", "NO_COLOR"])
def test_a_diff_has_colours_where_they_are_wanted(home, repo, env):
    """In a terminal, added and removed lines are coloured, unless `NO_COLOR` is set."""
    path = repo.add("rules", "a = 1\n")
    home.run("trust")
    (path / "__init__.py").write_text("a = 2\n")

    _, output = in_terminal("trust", "--diff", **env)

    assert ("\x1b[32m+a = 2" in output) == (not env)
    assert ("\x1b[31m-a = 1" in output) == (not env)
    assert "+a = 2" in output
