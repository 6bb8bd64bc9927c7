"""A trusted project's guard in the real Hermes, whatever appears below it, and in work trees."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import play

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

NO_B = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def no(tool_args):
    return HookResult.block('not b') if tool_args['path'].endswith('b.txt') else None
"""

LOGS = """\
from pathlib import Path
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def no(tool_args):
    with Path(__file__).with_name('audit.log').open('a') as file:
        file.write('called\\n')
    return HookResult.block('not b') if tool_args['path'].endswith('b.txt') else None
"""

KEEPS = LOGS.replace("def no(tool_args)", "def no(tool_args, data_dir)").replace(
    "Path(__file__).with_name('audit.log')", "(data_dir / 'audit.log')"
)


def writes_b(request: ModelRequest) -> Reply:
    """A model that writes `b.txt` where it works, and then ends."""
    if request.messages[-1]["role"] == "tool":
        return Reply("Done.")
    return Reply(tool_calls=(ToolUse("write_file", {"path": "b.txt", "content": "x"}),))


def git(folder: Path, *argv: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@x")
    subprocess.run(["git", *who, *argv], cwd=folder, check=True, capture_output=True)


class Site:
    """A home whose project is a repository, git-ignores `.hermes` and has a trusted guard in it.

    model: what its sessions talk to.
    """

    def __init__(self, home: HermesHome, model: ScriptedModel) -> None:
        self.home, self.model, self.project = home, model, home.project
        git(self.project, "init", "-q")
        (self.project / ".gitignore").write_text(".hermes\n.worktrees/\n")
        git(self.project, "add", ".gitignore")
        git(self.project, "commit", "-qm", "one")
        self.trust(NO_B)

    def trust(self, source: str) -> None:
        """Have this as the project's guard, and trust it."""
        self.home.extension("no-b", source, project=True)
        self.home.cli("extensions", "trust", "--yes").check()

    def assert_refused(self, cwd: Path, *argv: str, told: str | None = None) -> str:
        """The guard's words reach the model, the file is not written, and one line says `told`.

        Returns what the model got.
        """
        before = len(self.model.main_requests)
        run = self.home.cli(*(argv or ("-z", "write b")), cwd=cwd).check()
        sent = json.dumps([each.body for each in self.model.main_requests[before:]])
        assert "[no-b] not b" in sent, (run, sent)
        assert not (cwd / "b.txt").exists()
        ours = [line for line in run.stderr.splitlines() if line.startswith("hermes-ext:")]
        lines = [line for line in ours if "no-b blocked write_file" not in line]
        assert len(lines) == (told is not None), lines
        assert (told or "") in "".join(lines)
        return sent


@pytest.fixture
def site(model_factory: ModelFactory, hermes: HomeFactory) -> Site:
    model = model_factory(writes_b)
    return Site(hermes(model), model)


@pytest.mark.parametrize("what", ["git init", "an empty file", "the moved one"])
def test_a_git_below_takes_no_rule_away(site: Site, what: str) -> None:
    """`git init` in the folder that Hermes starts in, an empty `.git`, `mv ../.git ../x`."""
    sub = site.project / "sub"
    sub.mkdir()
    if what == "git init":
        git(sub, "init", "-q")
    elif what == "an empty file":
        (sub / ".git").touch()
    else:
        (site.project / ".git").rename(site.project / "x")
    site.assert_refused(sub)


def test_git_worktree_add(site: Site) -> None:
    """The rules of the main work tree, where git does not know of them."""
    tree = site.home.base / "feature"
    git(site.project, "worktree", "add", "-q", str(tree))
    assert not (tree / ".hermes").exists()
    site.assert_refused(tree)


def test_a_work_tree_with_rules_of_its_own(site: Site) -> None:
    """The same are used; others are not, and a line says so."""
    git(site.project, "add", "-f", ".hermes")
    git(site.project, "commit", "-qm", "rules")
    tree = site.home.base / "feature"
    git(site.project, "worktree", "add", "-q", str(tree))
    site.assert_refused(tree)
    (tree / ".hermes" / "extensions" / "no-b" / "__init__.py").write_text(
        NO_B.replace("b.txt", "c.txt")
    )
    site.assert_refused(tree, told=f"{tree.resolve()}/.hermes are not loaded: no-b")


@pytest.mark.parametrize("committed", [False, True], ids=["ignored", "committed"])
def test_hermes_w(site: Site, committed: bool) -> None:
    """Hermes makes a work tree with a new name at each start; no trust is asked for."""
    if committed:
        git(site.project, "add", "-f", ".hermes")
        git(site.project, "commit", "-qm", "rules")
    for _ in range(2):
        sent = site.assert_refused(site.project, "chat", "-w", "-q", "write b")
        assert ".worktrees/hermes-" in sent


def test_a_guard_that_writes_beside_its_own_file(hermes: HomeFactory) -> None:
    """It holds in the second turn of a process and in the second process; the line names the file
    and what to do, once in each.
    """
    home = hermes(git=True)
    folder = home.extension("no-b", LOGS, project=True)
    home.cli("extensions", "trust", "--yes").check()
    driver = """
        agent = stage.agent()
        report(results=[stage.use(agent, write('b.txt')) for _ in range(3)])
    """
    lines = []
    for _ in range(2):
        facts = play(home, driver)
        assert len(facts["results"]) == 3
        assert all("[no-b] not b" in text for (text,) in facts["results"])
        log = (home.home / "logs" / "agent.log").read_text()
        lines.append([line for line in log.splitlines() if "audit.log" in line])
    assert not (home.project / "b.txt").exists()
    assert (folder / "audit.log").read_text().count("called") == 6
    assert [len(each) for each in lines] == [1, 2]
    assert "extensions/no-b/audit.log" in lines[0][0]
    assert "write to their data_dir" in lines[0][0]


def test_a_guard_that_writes_into_its_data_dir(site: Site) -> None:
    """Nothing is to be said, and what it wrote is there at the next start."""
    site.trust(KEEPS)
    for _ in range(2):
        site.assert_refused(site.project)
    (log,) = site.home.home.glob("extensions-data/projects/*/no-b/audit.log")
    assert log.read_text() == "called\ncalled\n"
