"""The pages that lead from nothing to something: each is walked through, from top to bottom.

A block goes into the file that the paragraph before it names. Shell lines are run, and a text block
is what the last of them must have printed: its lines in their order, with `…` for anything.
`pip install` and `hermes -z` are stood in for, except in the first extension, which runs the real
Hermes; the tests that the how-to pages write are run in one process.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from attrs import evolve
from tests.harness.home import HermesHome
from tests.pages import DOCS, WALKS, Block, blocks_of

from hermes_ext import Runtime
from hermes_ext.cli import main
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

HOW_TO = [page for page in WALKS if page.parent.name == "how-to"]
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:asyncio", "-p", "no:cacheprovider"]
NAMED = re.compile(r"`([^`\s]+\.(?:py|yaml|toml))`")

# What the model wants to run in the turn of a page; where it has none, before the page begins.
WANTED = {
    "introduce-a-rule": "pip install requests && pytest",
    "find-out-why": "kubectl get pods",
}


class Walk:
    """One person, at a shell, in a home of their own.

    page: what they follow. base: what `~` is. run: runs a line that is no command of this package,
    and returns what it printed.
    """

    def __init__(
        self,
        page: Path,
        base: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        run: Callable[[Walk, str, list[str]], str],
    ) -> None:
        self.page = page
        self.base = self.cwd = base
        self.home = base / ".hermes"
        self.told = ""
        self._capsys = capsys
        self._run = run
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("HOME", str(base))
        monkeypatch.setenv("COLUMNS", "2000")
        monkeypatch.delenv("HERMES_HOME", raising=False)
        monkeypatch.chdir(base)

    def through(self) -> None:
        """Do all that the page says."""
        for block in blocks_of(self.page):
            if block.language == "sh":
                told = [self.line(line) for line in block.text.splitlines()]
                self.told = "".join(told)
            elif block.language == "text":
                assert_told(block, self.told)
            else:
                put(block, self.base, self.cwd)

    def line(self, line: str) -> str:
        """Run one line; it must succeed, or find nothing wrong."""
        words = shlex.split(line)
        if words[0] == "cd":
            self.cwd = (self.cwd / Path(words[1].replace("~", str(self.base), 1))).resolve()
            self._monkeypatch.chdir(self.cwd)
            return ""
        if words[:2] == ["hermes", "extensions"] or words[0] == "hermes-ext":
            return self.command(words[2:] if words[0] == "hermes" else words[1:])
        return self._run(self, line, words)

    def command(self, words: list[str]) -> str:
        self._capsys.readouterr()
        code = main(words)
        out, err = self._capsys.readouterr()
        assert code == 0, f"{words}\n{out}\n{err}"
        return out


def put(block: Block, base: Path, cwd: Path) -> None:
    """Write a block into the file that is named before it; into `config.yaml` it is merged."""
    names = NAMED.findall(block.lead)
    assert names, f"{block}: into which file?"
    file = cwd / names[-1].replace("~", str(base), 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = block.text
    if file.name == "config.yaml" and file.exists():
        text = yaml.safe_dump(
            merged(yaml.safe_load(file.read_text()) or {}, yaml.safe_load(text)), sort_keys=False
        )
    file.write_text(text, encoding="utf-8")


def merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {key: merged(below.get(key), value) for key, value in above.items()}


def assert_told(block: Block, told: str) -> None:
    """What was printed has the block's lines, in their order."""
    at = 0
    for line in block.text.splitlines():
        parts = [re.sub(r"(\\ )+", r"\\s+", re.escape(part.strip())) for part in line.split("…")]
        found = re.compile(".*?".join(parts)).search(told, at)
        assert found, f"{block}: {line!r} is not in\n{told}"
        at = found.end()


def in_place(walk: Walk, line: str, words: list[str]) -> str:
    """Runs what costs little; a turn is the runtime's, with the call that the page is about."""
    if words[0] == "pytest":  # all of them are run by test_the_tests_of_the_how_to_pages
        return ""
    if words[:2] == ["hermes", "-z"]:
        turn(walk)
        return ""
    if words[:2] == ["pip", "install"]:
        install(walk)
        return ""
    assert words[0] in {"mkdir", "git"}, line
    return shell(line, walk.cwd)


def turn(walk: Walk) -> None:
    command = WANTED[walk.page.stem]
    runtime = Runtime.from_config(home=walk.home, cwd=walk.cwd)
    with runtime.turn(session_id="s1", cwd=walk.cwd) as running:
        running.intercept_tool_call("terminal", {"command": command})
    runtime.close()


def install(walk: Walk) -> None:
    """What pip does with a wheel: its files stand on the path, with its entry points."""
    wheels, site = walk.base / "wheels", walk.base / "site"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(build, cwd=walk.cwd, check=True, capture_output=True, timeout=120)
    (wheel,) = wheels.glob("*.whl")
    shell(f"{shlex.quote(sys.executable)} -m zipfile -e {wheel} {site}", walk.cwd)
    walk._monkeypatch.syspath_prepend(site)
    walk._monkeypatch.setenv("PYTHONPATH", str(site))


def shell(line: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    child = subprocess.run(
        ["bash", "-c", line], cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True,
        text=True, timeout=240, check=False,
    )  # fmt: skip
    assert child.returncode == 0, f"{line}\n{child.stdout}\n{child.stderr}"
    return child.stdout


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_how_to(
    page: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a how-to page says is done, and comes to what it says."""
    walk = Walk(page, tmp_path, capsys, monkeypatch, in_place)
    walk.command(["install"])
    if page.stem == "find-out-why":
        put_no_deploys(walk.home)
        turn(walk)
    walk.through()


def put_no_deploys(home: Path) -> None:
    """The extension of another page, as somebody installed it."""
    folder = home / "extensions" / "no-deploys"
    for block in blocks_of(DOCS / "how-to" / "publish-a-package.md"):
        if "src/no_deploys" in block.lead:
            put(evolve(block, lead=block.lead.replace("src/no_deploys/", "")), home, folder)


def test_the_tests_of_the_how_to_pages(tmp_path: Path) -> None:
    """Each test that a page writes passes, in the extension that the page writes."""
    folders = []
    for page in HOW_TO:
        base = tmp_path / page.stem
        base.mkdir()
        for block in blocks_of(page):
            if block.language not in ("sh", "text"):
                put(block, base, base)
        folders += [each.parent for each in base.rglob("tests")]
    told = run_tests_in(folders, tmp_path)
    written = sum(block.text.count("def test_") for page in HOW_TO for block in blocks_of(page))
    assert f"{written + 3} passed" in told  # one has four cases


def run_tests_in(folders: Sequence[Path], cwd: Path) -> str:
    line = [*PYTEST, "-q", "-p", "hermes_ext.testing.plugin", "--import-mode=importlib", *folders]
    return shell(shlex.join(map(str, line)), cwd)


@pytest.mark.hermes
def test_the_first_extension(
    tmp_path: Path,
    hermes: Callable[..., HermesHome],
    model_factory: Callable[..., ScriptedModel],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From nothing to a rule that is in force in the real Hermes, as the page tells it."""
    push = ToolUse("terminal", {"command": "cd app && git push"})
    model = model_factory([Reply(tool_calls=(push,)), Reply("It has to wait.")])
    installed = hermes(model, plugins=())
    base = tmp_path / "person"
    base.mkdir()
    (base / ".hermes").symlink_to(installed.home)
    asked: list[str] = []

    def really(walk: Walk, line: str, words: list[str]) -> str:
        if words[0] == "pytest":
            return run_tests_in([walk.cwd], walk.cwd)
        if words[:2] == ["hermes", "-z"]:
            asked.append(words[2])
            return installed.oneshot(words[2]).check().stdout
        assert words[:3] == ["pip", "install", "hermes-agent"], line
        return ""

    Walk(DOCS / "first-extension.md", base, capsys, monkeypatch, really).through()
    assert asked == [model.main_requests[0].last_user]
    ((_, result),) = model.main_requests[1].tool_results
    assert "[office-hours] git push is for weekdays" in result


@pytest.mark.hermes
def test_a_home_without_a_real_model(tmp_path: Path, hermes: Callable[..., HermesHome]) -> None:
    """The script and the section `model` that a page shows are all that Hermes needs."""
    page = [*blocks_of(DOCS / "how-to" / "test-an-extension.md")]
    (script,) = [block for block in page if "ScriptedModel(" in block.text]
    (section,) = [block for block in page if block.text.startswith("model:")]
    put(script, tmp_path, tmp_path)
    with subprocess.Popen(
        [sys.executable, "model.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as model:  # fmt: skip
        assert model.stdin is not None
        assert model.stdout is not None
        address = model.stdout.readline().strip()
        settings = yaml.safe_load(re.sub(r"http://\S+", address, section.text))
        home = hermes(None, config=settings)
        assert home.oneshot("What is here?").check().stdout.strip() == "That is all."
        model.stdin.write("\n")
    assert model.returncode == 0
