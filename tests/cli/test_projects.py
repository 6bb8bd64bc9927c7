"""`list`, `info`, `enable` and `disable` where the work is in a project."""

from __future__ import annotations

import shutil

import pytest
import yaml
from tests.projects import GOOD, GUARD, Place

from hermes_ext import Runtime
from hermes_ext.cli import slash
from hermes_ext.trust.store import TrustStore

# -- list, in a terminal and in a chat ------------------------------------------------------------


def test_list_begins_with_the_project(home, repo):
    """The first line names the project, whether it is trusted, and what to do."""
    repo.add("rules", "broken(\n")

    before = home.run("list")
    listed = home.run("list", "--json").json["extensions"]
    (row,) = [each for each in listed if each["name"] == "rules"]
    home.run("trust")
    after = home.run("list")

    first = before.out.splitlines()[0]
    assert str(repo.hermes) in first
    assert "rules" in first
    assert f"hermes-ext trust {repo.root}" in first
    assert (row["source"], row["status"]) == ("project", "untrusted")
    assert row["reason"] == "you have not trusted them"
    assert after.out.splitlines()[0] == f"Project {repo.root} is trusted."
    assert before.code == after.code == 0


def test_all_projects_that_apply_are_listed(home, repo, monkeypatch):
    """The outermost first, by `list`, `info` and `doctor` alike, whatever lies in between."""
    repo.add("outer", GUARD)
    repo.trust()
    inner = Place(repo.root, "packages/inner", home.path)
    inner.add("inner", GUARD)
    inner.trust()
    monkeypatch.chdir(inner.root)

    roots = [str(repo.root), str(inner.root)]
    assert home.run("list").out.splitlines()[:2] == [f"Project {e} is trusted." for e in roots]
    for argv in (["list"], ["info", "outer"], ["doctor"]):
        told = home.run(*argv, "--json").json
        assert [each["root"] for each in told["projects"]] == roots
        assert told["project"]["root"] == roots[1]
    rows = {e["name"]: e["status"] for e in home.run("list", "--json").json["extensions"]}
    assert (rows["outer"], rows["inner"]) == ("enabled", "enabled")


def test_trust_finds_what_was_trusted_before_from_below_a_repository(home, repo, monkeypatch):
    """Where a line says that it changed, a command without a path is about the same project."""
    repo.add("outer", GUARD)
    repo.trust()
    below = repo.root / "vendor"
    (below / ".git").mkdir(parents=True)
    monkeypatch.chdir(below)
    repo.add("outer", GOOD)

    (line,) = home.run("list", "--json").json["notices"]
    assert str(repo.root) in line
    assert home.run("trust", "--json").json["root"] == str(repo.root)
    assert home.run("list").out.splitlines()[0] == f"Project {repo.root} is trusted."
    assert home.run("untrust", "--json").json["root"] == str(repo.root)


def test_new_data_is_reported_alike(home, repo):
    """`list`, `trust --list` and `doctor` call it trusted and name the file."""
    folder = repo.add("rules", GUARD)
    repo.trust()
    assert "trusted; nothing has changed" in home.run("trust", "--list").out
    (folder / "audit.log").touch()

    (line,) = home.run("list", "--json").json["notices"]
    (row,) = home.run("trust", "--list", "--json").json["projects"]
    found = {e["code"]: e["message"] for e in home.run("doctor", "--json").json["findings"]}
    for text in (line, row["reason"], found["new-data"]):
        assert "extensions/rules/audit.log" in text
    assert row["standing"] == "trusted"
    assert "nothing has changed" not in home.run("trust", "--list").out


def test_an_extension_of_a_linked_work_tree_is_tried_like_the_main_ones(home, repo, tmp_path):
    """By its path, where what it is is trusted in the main work tree."""
    repo.add("rules", GUARD)
    repo.trust()
    tree = tmp_path.resolve() / "feature"
    shutil.copytree(repo.hermes, tree / ".hermes")
    admin = repo.root / ".git" / "worktrees" / "feature"
    admin.mkdir(parents=True)
    (admin / "commondir").write_text("../..\n")
    (tree / ".git").write_text(f"gitdir: {admin}\n")

    tried = home.run("test", str(tree / ".hermes" / "extensions" / "rules"))
    assert "not trusted" not in tried.out + tried.err
    assert tried.code == 0
    (tree / ".git").unlink()
    assert home.run("test", str(tree / ".hermes" / "extensions" / "rules")).code == 1


def test_an_extension_that_is_tried_writes_nothing_that_stays(home, repo):
    """Its `data_dir` is then a temporary folder."""
    repo.add(
        "rules",
        "from hermes_ext import register_hook\n"
        '@register_hook("intercept_tool_call")\n'
        "def check(data_dir):\n"
        '    (data_dir / "note").touch()\n',
    )
    repo.trust()
    assert home.run("test", "rules").code == 0
    assert not (home.path / "extensions-data").exists()


def test_names_cannot_take_over_the_first_line(home, repo):
    """Five at most, each cut, in quotes where they are not plain, and only what may be a name."""
    repo.hermes.mkdir()
    (repo.hermes / "extensions").mkdir()
    names = ["0 (trusted). All is well", "0: run this", *(f"{n}{'a' * 200}" for n in range(10, 50))]
    for name in names:
        (repo.hermes / "extensions" / f"{name}.py").touch()

    (line,) = home.run("list", "--json").json["notices"]

    assert "'0 (trusted). All is well', 10aaa" in line
    assert "run this" not in line
    assert "a" * 39 not in line
    assert "and 37 more" in line
    assert len(line) - 2 * len(str(repo.root)) < 500


def test_a_chat_sees_the_project_and_cannot_trust_it(home, repo):
    """`/extensions` shows the session's project; `trust` needs a terminal."""
    repo.add("rules")

    listed = slash("list", home=home.path, cwd=repo.root / ".git")
    assert "not trusted them" in " ".join(listed.split())
    assert "untrusted" in slash("info rules", home=home.path, cwd=repo.root)
    for asked in ("trust", "trust .", "untrust", "trust --yes"):
        assert "In a terminal: hermes extensions" in slash(asked, home=home.path, cwd=repo.root)
    assert not TrustStore(home.path).folder.exists()


def test_a_chat_sees_what_of_a_changed_project_is_in_force(home, repo):
    """What was trusted and loaded stays; its rows and a line say that the files are others now."""
    home.run("install")
    repo.add("rules")
    (repo.hermes / "extensions" / "style.py").write_text(GOOD)
    repo.trust()
    live = Runtime.from_config(home=home.path, cwd=repo.root)
    assert "changed" not in slash("list", home=home.path, cwd=repo.root, live=live)

    for path in repo.hermes.rglob("*.py"):
        path.write_text("raise SystemExit\n")
    shown = slash("list", home=home.path, cwd=repo.root, live=live)

    told = " ".join(shown.split())
    assert "What you trusted stays in force in this process" in told
    for name in ("rules", "style"):
        assert f"{name} - project enabled changed since: takes effect" in told
    live.close()


def test_load_runs_what_is_trusted(home, repo):
    """`list --load` loads the trusted project, and shows its hooks; the order has them too."""
    repo.add("rules", GUARD)
    repo.trust()

    loading = home.run("list", "--order", "intercept_tool_call", "--json")

    assert loading.code == 0
    (row,) = [each for each in loading.json["extensions"] if each["name"] == "rules"]
    assert row["loaded"]
    assert [each["extension"] for each in loading.json["order"]["handlers"]] == [
        "hermes-ext",
        "rules",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_long_paths_keep_to_the_width(home, tmp_path, monkeypatch, width):
    """Neither long paths nor odd names break the lines of `list`, `info` and `trust --list`."""
    monkeypatch.setenv("COLUMNS", str(width))
    root = tmp_path / ("deep-" * 12) / "repo"
    for name in ("a-name-that-is-rather-long-for-one", "odd\x1b[31m\n", "short"):
        folder = root / ".hermes" / "extensions" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    monkeypatch.chdir(root)

    for trusted in (False, True):
        for argv in (("list",), ("info", "short"), ("trust", "--list")):
            output = home.run(*argv)
            assert max(map(len, output.out.splitlines())) <= width
            assert "\x1b" not in output.out
        if not trusted:
            home.run("trust")
    assert "odd\\x1b[31m\\n" in home.run("list").out


# -- info -----------------------------------------------------------------------------------------

SCHEMA = """\
config:
  properties:
    depth: {type: integer, default: 3}
    words:
      properties:
        first: {type: string, default: a}
        second: {type: string, default: b}
        api_token: {type: string}
"""


def test_info_tells_where_each_setting_is_from(home, repo):
    """Nested settings are told by leaf, with default, user's line or project's line."""
    repo.add("style", {"__init__.py": GOOD, "extension.yaml": SCHEMA})
    repo.settings("style:\n  words:\n    second: mine\n    api_token: tell-nobody\n")
    home.write_config("extensions:\n  style:\n    words: {first: user}\n")
    repo.trust()

    output = home.run("info", "style", "--json")

    assert {each["key"]: (each["value"], each["from"]) for each in output.json["settings"]} == {
        "depth": (3, "default"),
        "words.first": ("user", "config.yaml:3"),
        "words.second": ("mine", ".hermes/extensions.yaml:3"),
        "words.api_token": ("[redacted]", ".hermes/extensions.yaml:4"),
    }
    shown = home.run("info", "style").out
    assert "from .hermes/extensions.yaml:3" in shown
    assert "tell-nobody" not in output.out + shown


def test_info_tells_what_a_project_may_not_set(home, repo):
    """What the project says of a guard is shown as ignored, with the key that would let it."""
    home.add("strict", GUARD)
    repo.settings("strict:\n  stop: 1\n  open: 2\n")
    home.write_config("extensions:\n  project_may_set: [strict.open]\n")
    repo.trust()

    output = home.run("info", "strict", "--json")

    (ignored,) = output.json["ignored"]
    assert (ignored["line"], ignored["key"]) == (2, "strict.stop")
    assert [each["key"] for each in output.json["settings"]] == ["open"]
    shown = home.run("info", "strict").out
    assert "Said by the project, and ignored" in shown
    assert "strict.stop" in shown
    assert "project_may_set" in shown


def test_info_of_an_untrusted_one_reads_nothing_of_it(home, repo):
    """Name, place, status and what to do; neither its manifest nor the project's settings."""
    repo.add("style", {"__init__.py": GOOD, "extension.yaml": "version: '9'\n" + SCHEMA})
    repo.settings("style: {depth: 7}\n")
    home.write_config("extensions:\n  style: {depth: 4}\n")

    output = home.run("info", "style", "--json")

    assert output.code == 0
    extension = output.json["extension"]
    assert (extension["status"], extension["version"]) == ("untrusted", None)
    assert output.json["settings"] == [{"key": "depth", "value": 4, "from": "config.yaml:2"}]
    shown = home.run("info", "style").out
    assert f"hermes-ext trust {repo.root}" in shown
    assert "nothing of it is read before you trust it" in shown


def test_info_names_the_others_of_a_name(home, repo):
    """The one that is used is shown, and what else has the name, with why it is not used."""
    home.add("rules")
    repo.add("rules")

    before = home.run("info", "rules", "--json").json
    repo.trust()
    home.run("list", "--load")
    after = home.run("info", "rules", "--json").json

    assert (before["extension"]["source"], before["others"][0]["status"]) == (
        "global",
        "untrusted",
    )
    assert (after["extension"]["source"], after["others"][0]["status"]) == ("project", "shadowed")
    assert "other:" in home.run("info", "rules").out


# -- enable, disable ------------------------------------------------------------------------------


def section(home):
    read = (yaml.safe_load(home.config.read_text()) or {}).get("extensions", {})
    return {"on" if key is True else key: value for key, value in read.items()}


def test_a_project_one_is_turned_off_and_on_by_the_disabled_list(home, repo):
    """`disable` writes the user's `disabled`, never into the project; an untrusted one stays so."""
    repo.add("rules")

    home.run("disable", "rules")
    assert section(home) == {"disabled": ["rules"]}
    output = home.run("enable", "rules")

    assert section(home) == {}
    assert "Note: it is untrusted: you have not trusted them" in output.out
    assert f"hermes-ext trust {repo.root}" in output.out
    repo.trust()
    assert "Note" not in home.run("enable", "rules").out


def test_a_folder_in_a_project_does_not_keep_a_bundled_one_off(home, repo):
    """What is called like a bundled extension, trusted or not, changes nothing about `enable`."""
    repo.add("workflow-guard")

    first = home.run("enable", "workflow-guard")

    assert section(home) == {"on": ["workflow-guard"]}
    assert "this project's own" in first.out
    assert "untrusted" in first.out
    repo.trust()
    again = home.run("enable", "workflow-guard")
    assert "nothing was changed" in again.out
    assert "is shadowed" in again.out


def test_disabling_a_name_of_two_is_told(home, repo):
    """Both are off, and the answer says which; so it does for one hook."""
    home.add("rules")
    repo.add("rules")
    repo.trust()

    output = home.run("disable", "rules")

    assert "Note: 2 extensions have this name, and all of them are off" in output.out
    assert "the global one" in output.out
    assert "this project's own" in output.out
    rows = home.run("list", "--json").json["extensions"]
    assert {row["status"] for row in rows if row["name"] == "rules"} == {"disabled"}
    one = home.run("disable", "rules", "--hook", "before_llm_call")
    assert "before_llm_call is off for all of them" in one.out


def test_a_name_of_another_trusted_project_is_known(home, repo, monkeypatch, tmp_path):
    """What is in a project elsewhere can be turned off and on from here, once that is trusted."""
    repo.add("rules")
    monkeypatch.chdir(tmp_path / "work")
    assert home.run("disable", "rules").code == 2
    repo.trust()

    assert home.run("disable", "rules").code == 0
    assert section(home) == {"disabled": ["rules"]}
    assert home.run("enable", "rules").code == 0
    assert section(home) == {}
