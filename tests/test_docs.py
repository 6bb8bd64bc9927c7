"""README and docs are true: every code block in them is run, and every link leads somewhere.

Python is run as a script where it makes a `Runtime`, else loaded as an extension; YAML is read as
configuration or manifest; shell lines are run in a scratch home. Pages that are one
walk from top to bottom are in test_walks.py.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown.extensions.toc import slugify
from tests.harness.home import HermesHome
from tests.pages import ROOT, WALKS, Block, blocks_of
from tests.unloading import unload

from hermes_ext import Runtime
from hermes_ext.confine import support
from hermes_ext.hooks.table import HookName
from hermes_ext.loading.loader import load
from hermes_ext.replay.events import of_file
from hermes_ext.settings.config import read_config
from hermes_ext.settings.manifest import read_manifest
from hermes_ext.settings.project_settings import read_project_settings
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What test_walks.py does not walk through.
ALONE = [page for page in PAGES if page not in WALKS]
BLOCKS = [block for page in ALONE for block in blocks_of(page)]


def blocks(wanted: Callable[[Block], bool]) -> Any:
    """A parametrization over some of the blocks."""
    return pytest.mark.parametrize("block", list(filter(wanted, BLOCKS)), ids=str)


def is_runtime_script(block: Block) -> bool:
    marks = ("Runtime(", "Runtime.", "Machine(")
    return block.language == "python" and any(mark in block.text for mark in marks)


def is_hermes_script(block: Block) -> bool:
    return block.language == "python" and "ScriptedModel(" in block.text


def is_pytest(block: Block) -> bool:
    return (
        block.language == "python"
        and "from hermes_ext.testing import" in block.text
        and ("load_extension" in block.text or "hermes_session" in block.text)
    )


def is_confining_script(block: Block) -> bool:
    return block.language == "python" and "from hermes_ext.confine import" in block.text


def is_extension(block: Block) -> bool:
    others = (is_runtime_script, is_hermes_script, is_pytest, is_confining_script)
    return block.language == "python" and not any(is_other(block) for is_other in others)


def is_config(block: Block) -> bool:
    return block.language == "yaml" and block.text.startswith("extensions:")


def is_of_a_project(block: Block) -> bool:
    return block.language == "yaml" and block.text.startswith("# .hermes/extensions.yaml")


def is_events(block: Block) -> bool:
    return block.language == "yaml" and block.text.startswith("- hook:")


def is_manifest(block: Block) -> bool:
    others = (is_config, is_of_a_project, is_events)
    return block.language == "yaml" and not any(each(block) for each in others)


def neighbour(block: Block, wanted: Callable[[Block], bool]) -> Block | None:
    """The first block of the same section that is `wanted`."""
    near = (b for b in BLOCKS if (b.page, b.section) == (block.page, block.section) and wanted(b))
    return next(near, None)


# -- the blocks ---------------------------------------------------------------------------------


def test_every_block_is_run() -> None:
    """There is no block of a language that no test here knows."""
    assert {block.language for block in BLOCKS} == {"python", "yaml", "sh", "text"}


@blocks(is_runtime_script)
def test_scripts(block: Block, tmp_path: Path) -> None:
    """A script runs to its end, its assertions hold, and so do the tests that it defines."""
    run_script(block, tmp_path)


@pytest.mark.hermes
@blocks(is_hermes_script)
def test_scripts_that_start_hermes(block: Block, tmp_path: Path) -> None:
    """A script that starts the real Hermes, in what the other scripts of its section left."""
    for other in BLOCKS:
        if (other.page, other.section) == (block.page, block.section) and is_runtime_script(other):
            run_script(other, tmp_path)
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    run_script(block, tmp_path, {"PATH": scripts, "HERMES_BUNDLED_SKILLS": str(tmp_path / "none")})


def run_script(block: Block, tmp_path: Path, settings: dict[str, str] | None = None) -> None:
    script = tmp_path / "script.py"
    calls = "".join(f"{name}()\n" for name in re.findall(r"^def (test_\w+)\(", block.text, re.M))
    script.write_text(f"{block.text}\n{calls}", encoding="utf-8")
    run_child([sys.executable, "-W", "error", str(script)], tmp_path, settings)


@blocks(is_events)
def test_events(block: Block, tmp_path: Path) -> None:
    """A file of events is one, and has an event of each hook."""
    file = tmp_path / "events.yaml"
    file.write_text(block.text, encoding="utf-8")

    assert {each.event.hook for each in of_file(file)} == {*HookName}


@blocks(is_confining_script)
def test_confining_scripts(block: Block, tmp_path: Path) -> None:
    """What a page shows of confinement runs, and is as the page says."""
    if support().rung is None:
        pytest.skip(support().why)
    subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, check=True)


@blocks(is_extension)
def test_extensions(block: Block, tmp_path: Path) -> None:
    """An extension loads as it stands, and none of its handlers fails on ordinary events."""
    manifest, config = neighbour(block, is_manifest), neighbour(block, is_config)
    name = yaml.safe_load(manifest.text)["name"] if manifest and config else "from-the-docs"
    folder = tmp_path / "extensions" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(block.text, encoding="utf-8")
    if manifest and config and "config[" in block.text:
        (folder / "extension.yaml").write_text(manifest.text, encoding="utf-8")
        (tmp_path / "config.yaml").write_text(config.text, encoding="utf-8")
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    (record,) = [each for each in runtime.records if each.path == folder]
    assert (record.status, record.reason, record.warnings) == ("enabled", "", ())
    assert record.hooks
    for outcome in driven(runtime):
        assert outcome.errors == ()
    runtime.close()


def driven(runtime: Runtime) -> Iterator[Any]:
    """The outcomes of all hooks on ordinary events."""
    with runtime.turn(session_id="s", cwd=Path("/"), origin="user") as turn:
        for message in ("todo: mend it", "", [{"type": "text", "text": "look"}]):
            yield turn.transform_user_input(message)
        yield turn.before_llm_call([{"role": "user", "content": "x"}], "base", api_call_count=1)
        for tool, args in (
            ("terminal", {"command": "git push --force"}),
            ("write_file", {"path": "LICENSE", "content": ""}),
            ("mcp_x", {}),
        ):
            yield turn.intercept_tool_call(tool, args)
            yield turn.transform_tool_result(tool, args, "done")


@pytest.mark.hermes
def test_tests(tmp_path: Path) -> None:
    """The tests of testing.md pass, for the extension that the page begins with."""
    page = [block for block in BLOCKS if block.page.name == "testing.md"]
    manifest = next(filter(is_manifest, page))
    folder = tmp_path / yaml.safe_load(manifest.text)["name"]
    (folder / "tests").mkdir(parents=True)
    (folder / "extension.yaml").write_text(manifest.text, encoding="utf-8")
    code = next(filter(is_extension, page)).text
    (folder / "__init__.py").write_text(code, encoding="utf-8")
    for number, block in enumerate(filter(is_pytest, page)):
        (folder / "tests" / f"test_{number}.py").write_text(block.text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "hermes_ext.testing.plugin"]
    told = run_child([*command, "-p", "no:asyncio", "-p", "no:cacheprovider"], folder).stdout
    assert "3 passed" in told


@blocks(is_config)
def test_configurations(block: Block, tmp_path: Path) -> None:
    """A configuration has no problem; where it turns on what is bundled, that loads."""
    (tmp_path / "config.yaml").write_text(block.text, encoding="utf-8")
    assert read_config(tmp_path).problems == ()
    loaded = load(tmp_path, tmp_path)
    bundled = {r.name: r.status for r in loaded.records if r.source == "bundled"}
    for name in loaded.config.on:
        assert bundled[name] == "enabled"
    unload(loaded)


@blocks(is_of_a_project)
def test_settings_of_projects(block: Block) -> None:
    """Settings that a project brings along have no problem."""
    assert read_project_settings(block.page, block.text.encode()).problems == ()


@blocks(is_manifest)
def test_manifests(block: Block, tmp_path: Path) -> None:
    """A manifest has neither problems nor unknown keys."""
    (tmp_path / "extension.yaml").write_text(block.text, encoding="utf-8")
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest.problems, manifest.warnings) == ((), ())


@pytest.mark.hermes
@pytest.mark.parametrize("page", ALONE, ids=lambda page: page.name)
def test_shell_lines(page: Path, tmp_path: Path) -> None:
    """The shell lines of a page work, in their order, in a home with the README's extension, which
    has blocked something.
    """
    home = tmp_path / ".hermes"
    home.mkdir()
    if page.name != "README.md":
        put_readme_extension(home)
        runtime = Runtime.from_config(home=home, cwd=tmp_path)
        with runtime.turn(session_id="s1") as turn:
            assert turn.intercept_tool_call("terminal", {"command": "git push --force"}).blocked
        runtime.close()
    for block in BLOCKS:
        if block.page == page and block.language == "sh":
            for line in block.text.splitlines():
                run_line(line, tmp_path)
                if line.startswith("mkdir"):  # what the README says to put there
                    put_readme_extension(home)


def run_line(line: str, home: Path) -> None:
    words = shlex.split(line)
    settings = {}
    while "=" in words[0]:
        name, _, settings[name] = words.pop(0).partition("=")
    if words[0] == "make":
        run_child(["make", "-n", "-C", str(ROOT), *words[1:]], home)
    elif words[:2] == ["hermes", "extensions"]:
        run_child([sys.executable, "-m", "hermes_ext.cli", *words[2:]], home, settings)
    elif words[0] == "hermes-ext":
        # Hermes is started by tests/canary.
        words += ["--no-canary"] if words[1] == "doctor" else []
        run_child([sys.executable, "-m", "hermes_ext.cli", *words[1:]], home, settings)
    elif words[0] == "mkdir":
        run_child(["bash", "-c", line], home)
    elif words[0] == "cp":
        run_child(["bash", "-c", f"cd {shlex.quote(str(ROOT))} && {line}"], home)
    else:
        # These are run by test_the_first_extension_works_as_told, and by whoever made this venv.
        assert line.startswith(("hermes -z ", "pip install hermes-agent .")), line


def run_child(
    command: list[str], home: Path, settings: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", **(settings or {})}
    env.pop("HERMES_HOME", None)
    child = subprocess.run(
        command, cwd=home, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert child.returncode == 0, f"{command}\n{child.stdout}\n{child.stderr}"
    return child


def put_readme_extension(home: Path) -> Path:
    (block,) = [b for b in BLOCKS if b.page.name == "README.md" and b.language == "python"]
    folder = home / "extensions" / "no-force-push"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(block.text, encoding="utf-8")
    return folder


@pytest.mark.hermes
def test_the_first_extension_works_as_told(
    model_factory: Callable[..., ScriptedModel], hermes: Callable[..., HermesHome]
) -> None:
    """The README's extension blocks the command in the real Hermes, with the text that it tells."""
    push = ToolUse("terminal", {"command": "git push --force"})
    model = model_factory([Reply(tool_calls=(push,)), Reply("It was refused.")])
    home = hermes(model)
    put_readme_extension(home.home)
    assert home.oneshot("Push my branch, with force if need be").check().stdout
    ((_, result),) = model.main_requests[1].tool_results
    told = "[no-force-push] Force pushes are not allowed here."
    assert told in result
    assert f"`{told}`" in PAGES[0].read_text(encoding="utf-8")
    listed = home.cli("extensions", "list").check().stdout
    assert "intercept_tool_call 100 guard" in listed


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("git push --force", True),
        ("git push origin main --force", True),
        ("git push -f", True),
        ("git push -uf origin main", True),
        ("git push --force-with-lease=main origin", True),
        ("git push origin +main", True),
        ("cd x && git push origin main \\\n  --force; ls", True),
        ("bash -c 'git push --force'", True),
        ("git push origin my-fix", False),
        ("git push --follow-tags", False),
        ("git push && rm -f build.log", False),
        ("git push\nrm -f build.log", False),
        ("grep -f patterns push.txt", False),
        ("echo don't", False),
    ],
)
def test_the_first_extension_knows_the_ways_to_force(
    command: str, refused: bool, tmp_path: Path
) -> None:
    """The README's rule refuses forced pushes, however they are written, and nothing else."""
    put_readme_extension(tmp_path)
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    with runtime.turn(session_id="s") as turn:
        outcome = turn.intercept_tool_call("terminal", {"command": command})
    runtime.close()
    assert outcome.blocked is refused
    assert outcome.errors == ()


# -- the pages ----------------------------------------------------------------------------------


def test_the_references_are_fresh() -> None:
    """docs/hooks.md is what the hook specs say, docs/command-reference.md what commands take.

    docs/files.md has each module with what its docstring says.
    """
    command = [sys.executable, str(ROOT / "docs/generate_reference.py"), "--check"]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    """Links between files lead to files that are there, and to headings that are in them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target, heading in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text):
        if target.startswith("https://"):
            continue
        file = page.parent / target if target else page
        assert file.is_file(), target
        assert not heading or heading in anchors_of(file), target


def test_every_page_is_in_the_site_and_can_be_found() -> None:
    """Each page of the docs is in the navigation, once, and README or the first page lead to it."""
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    there = sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES[1:])
    assert sorted(pages_in(site["nav"])) == there
    led_to = {"index.md"}
    for page, above in ((PAGES[0], "docs/"), (ROOT / "docs/index.md", "")):
        targets = re.findall(r"\]\(([^)#]+\.md)", page.read_text(encoding="utf-8"))
        led_to |= {target.removeprefix(above) for target in targets if target.startswith(above)}
    assert set(there) - led_to == set()


def pages_in(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_in(each)


def anchors_of(page: Path) -> set[str]:
    """The anchors that the site makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {slugify(heading.replace("`", ""), "-") for heading in headings}


def test_problem_text_in_the_docs(tmp_path: Path) -> None:
    """The problem that configuration.md shows is told in these words."""
    (block,) = [b for b in BLOCKS if b.page.name == "configuration.md" and b.language == "text"]
    (tmp_path / "config.yaml").write_text("\n\nextensions:\n  log: dicisions\n")
    (problem,) = read_config(tmp_path).problems
    assert str(problem).removeprefix(f"{tmp_path}{os.sep}") == block.text.strip()


def test_configuration_keys_are_all_told() -> None:
    """configuration.md names every reserved key of the section."""
    from hermes_ext.settings.names import RESERVED_KEYS

    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert [key for key in RESERVED_KEYS if f"`{key}`" not in text] == []


def test_configuration_defaults_are_true(tmp_path: Path) -> None:
    """What configuration.md says of a key's default is what a home without configuration has."""
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", text, flags=re.M)
    config = read_config(tmp_path)
    values = {key: yaml.safe_load(default) for key, default in told if key != "effects"}
    assert len(values) > 10
    for key, value in values.items():
        real = getattr(config, key)
        assert (list(real) if isinstance(real, tuple) else real) == value, key
    assert (dict(config.commands), config.read_only_tools) == ({}, ())


def test_commands_are_all_told() -> None:
    """commands.md and the README name every command."""
    from hermes_ext.cli._commands import COMMANDS

    for page in (ROOT / "docs/commands.md", PAGES[0]):
        text = page.read_text(encoding="utf-8")
        assert [name for name in COMMANDS if not re.search(rf"(`|## .*){name}\b", text)] == []


def test_options_are_all_told() -> None:
    """authoring.md names every option of `register_hook` and every constructor of `HookResult`."""
    from hermes_ext.hooks.handler import HookMark
    from hermes_ext.hooks.table import Action

    text = (ROOT / "docs/authoring.md").read_text(encoding="utf-8")
    options = [each.name for each in HookMark.__attrs_attrs__ if each.name != "hook"]
    assert [option for option in options if f"`{option}`" not in text] == []
    actions = [action.value for action in Action if action is not Action.PASS]
    assert [action for action in actions if f"`.{action}(" not in text] == []
    assert all(f"`{hook.value}`" in text for hook in HookName)


def test_the_architecture_names_what_is_there() -> None:
    """architecture.md names every room, only files that are there, and the layers as checked."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src/hermes_ext"
    rooms = [f"{room.name}/" for room in package.iterdir() if (room / "__init__.py").is_file()]
    assert [room for room in rooms if f"`{room}" not in text] == []
    for path in re.findall(r"[\w/]+/\w+\.py", text):
        assert (package / path).is_file() or (ROOT / path).is_file(), path
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = pyproject["tool"]["importlinter"]["contracts"][0]["layers"]
    (picture,) = [b for b in BLOCKS if b.page.name == "architecture.md" and " exceptions" in b.text]
    told = [line.split() for line in picture.text.splitlines()]
    assert told == [layer.replace("hermes_ext.", "").split(" | ") for layer in layers]


# -- what pages say that their rules catch ------------------------------------------------------

# By page: commands that its rule refuses or asks about, and commands that it lets pass. A rule
# that names a program or a word of it says what it does about those that are not known.
CLAIMS = {
    "block-a-command.md": (
        ("kubectl apply -f x", "cd x && sudo terraform apply", "bash -c 'helm x'", "$TOOL apply"),
        ("echo kubectl", "grep kubectl README.md"),
    ),
    "ask-a-person.md": (("git tag v1.0", "cd x && git tag v1.0"), ("git status", "echo git tag")),
    "confine-a-command.md": (
        ("make", "gmake all", "sh build.sh", "$TOOL all"),
        ("ls", "mkdir build"),
    ),
    "introduce-a-rule.md": (
        ("pip install x", "cd a && npm install", "bash -c 'pip install x'"),
        ("pip list", "echo pip install"),
    ),
    "publish-a-package.md": (("kubectl apply", "sudo kubectl apply"), ("echo kubectl",)),
    "README.md": (
        (
            "git push -f",
            "cd x && git push -uf o b",
            "git $WORD",
            "$GIT push --force",
            "git push $F",
        ),
        ("git push", "echo git push -f", "$X build"),
    ),
    "pi.md": (("rm -r build", "rm -fr x", "rm $f", "rm $OPTIONS x"), ("rm a", "echo rm -r build")),
    "first-extension.md": (("git push", "cd x && git push", "git $WORD"), ("git status",)),
    "testing.md": (("rm x", "sudo rm -r x"), ("ls", "echo rm")),
}


def rules_of(page: Path) -> list[Block]:
    """The extensions of a page that look at the commands of a call."""
    listed = (each for each in blocks_of(page) if is_extension(each))
    looks = re.compile(r"effects_of\((?s:.*)\.commands|effects_of\(event\)\.exact")
    return [each for each in listed if looks.search(each.text)]


def test_each_rule_about_commands_has_claims() -> None:
    """No page has a rule about commands whose examples nobody runs; settings.md runs git."""
    with_rules = {page.name for page in PAGES if rules_of(page)} - {"settings.md"}
    assert with_rules == {*CLAIMS}


@pytest.mark.parametrize("name", CLAIMS)
def test_rules_do_what_their_page_says(name: str, tmp_path: Path) -> None:
    """Each command is run through the rule as the page has it."""
    (page,) = [each for each in PAGES if each.name == name]
    (rule,) = rules_of(page)
    manifests = [b for b in blocks_of(page) if is_manifest(b) and "config:" in b.text]
    folder = tmp_path / "extensions" / "rule"
    folder.mkdir(parents=True)
    code = rule.text
    if name == "first-extension.md":  # its clock stands still where the rule applies
        code = code.replace("return datetime.now()", "return datetime(2026, 1, 3)")
    (folder / "__init__.py").write_text(code, encoding="utf-8")
    for manifest in manifests[:1]:
        given = yaml.safe_load(manifest.text) | {"name": "rule"}
        (folder / "extension.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    caught, passing = CLAIMS[name]
    with runtime.turn(session_id="s", cwd=tmp_path) as turn:
        for command in (*caught, *passing):
            outcome = turn.intercept_tool_call("terminal", {"command": command})
            assert outcome.errors == ()
            assert outcome.blocked is (command in caught), command
    runtime.close()
