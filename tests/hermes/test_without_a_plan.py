"""Commands without a plan in the real Hermes: they run, and the kernel keeps the project as it is.

Each command is run three times, in a project made anew: with a plan, which is a bare run; without
one; and without one where nothing can be confined.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.harness.home import HermesHome
from tests.harness.warm import warm_start
from tests.hermes.once import tried_once
from tests.hermes.stage import play
from tests.hermes.without_a_plan import READS, WRITES, put_programs, put_project

pytestmark = pytest.mark.hermes

# By the first word; what is not named is a script of the tests, or on every machine with Hermes.
NEEDS = {
    "curl": "curl",
    "sqlite3": "sqlite3",
    "npm": "npm",
    "npx": "npx",
    "perl": "perl",
    "node": "node",
    "make": "make",
    "ruff": "ruff",
    "mypy": "mypy",
}

DRIVER = r"""
import hashlib, shutil, stat, subprocess
from functools import partial
os.environ['HERMES_YOLO_MODE'] = '1'
project, user, template = Path.cwd(), Path(os.environ['HOME']), Path(TEMPLATE)

from hermes_ext import confine
import tools.terminal_tool as terminals

agent = stage.agent(enabled_toolsets=['file', 'terminal', 'code_execution'])
process = named(agent, 'process')

def looked_at():
    'Everything in the project and the home, but for what may be written.'
    found = {}
    for top in (project, user):
        for path in sorted(top.rglob('*')):
            below = path.relative_to(top).parts
            if top == project and below[0] in ('plans', '.pytest_cache'):
                continue
            mode = path.lstat().st_mode
            what = os.readlink(path) if stat.S_ISLNK(mode) else (
                hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else '')
            found[str(path)] = f'{mode:o} {what}'
    return found

def emptied(folder):
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

def prepare():
    emptied(project)
    emptied(user)
    shutil.copytree(template, project, symlinks=True, dirs_exist_ok=True)
    (user / 'notes').mkdir()
    (user / 'notes/a.txt').write_text('a')
    (user / '.npm').mkdir()
    # The shells of an administrator begin with a PATH of their own.
    for name in ('.profile', '.bashrc'):
        (user / name).write_text(f"export PATH='{os.environ['PATH']}'\n")
    return looked_at()

def use(tool, **args):
    [text] = stage.use(agent, ToolUse(tool, args))
    return json.loads(text)

clean = {}
def tried(command):
    if clean.get('files') != looked_at():
        clean['files'] = prepare()
    for environment in terminals._active_environments.values():
        environment.cwd = str(project)
    told = use('terminal', command=command)
    after, before = looked_at(), clean['files']
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return {'told': told, 'changed': changed}

def tried_all(planned=False):
    PLAN.write_text('Change it.\n') if planned else PLAN.unlink(missing_ok=True)
    return {command: tried(command) for command in COMMANDS}

PLAN = Path(PLAN_PATH)
bare = tried_all(planned=True)
without = tried_all()
"""

KEPT = r"""
def output(command, **options):
    told = use('terminal', command=command, **options)
    return told.get('output', told)

def in_turn(*commands):
    replies = [Reply(tool_calls=[ToolUse('terminal', {'command': each})]) for each in commands]
    return [json.loads(text)['output'] for text in results_of(stage.say(agent, 'go', *replies))]

def served():
    started = use('terminal', command='python server.py', background=True)
    port = ''
    while not port:
        seen = use(process, action='poll', session_id=started['session_id'])
        assert seen['status'] == 'running', seen
        port = ''.join(each for each in seen.get('output_preview', '').split() if each.isdigit())
    fetched = output(f'python fetch.py {port}')
    use(process, action='kill', session_id=started['session_id'])
    return fetched

before = prepare()
Path('plans/swapped').mkdir()
facts = dict(
    stays=in_turn('cd src', 'pwd', 'cd ..', 'pwd'),
    below=in_turn('cd src', 'sh ../hook.sh'),
    late=use('terminal', command='sleep 60', timeout=1),
    served=served(),
    written=use('terminal', command='echo note > plans/note.md; cat plans/note.md'),
    file=use('write_file', path='plans/new/x.md', content='x'),
    code=use('execute_code', code=CODE),
    linked=output('python link.py ../src plans/linked'),
    behind=use('write_file', path='plans/linked/new.md', content='x'),
    swapped=use('write_file', path='plans/swapped/new.md', content='x'),
    changed=[path for path, what in looked_at().items() if before.get(path) != what],
    is_link=Path('plans/swapped').is_symlink(),
)

# Where nothing can be confined.
none = frozenset({'namespaces', 'landlock', 'bubblewrap'})
confine.support = partial(confine.support, without=none)
nothing = tried_all()
facts['file_unconfined'] = use('write_file', path='plans/new/y.md', content='x')
report(bare=bare, without=without, nothing=nothing, **facts)
"""

# Makes a link of a folder when workflow-guard has looked at it, and before it is written to.
SWAPS = """\
import os
from hermes_ext import register_hook

@register_hook('intercept_tool_call', guard=True, after=['workflow-guard'])
def swap(tool_args):
    if tool_args.get('path') == 'plans/swapped/new.md':
        os.rmdir('plans/swapped')
        os.symlink('../src', 'plans/swapped')
"""

CODE = """\
import subprocess
from hermes_tools import terminal
print('of its own:', subprocess.run(['sh', 'hook.sh'], capture_output=True, text=True).stderr)
print('called:', terminal('sh hook.sh')['output'])
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of every command, tried in one process."""
    return tried_once(tmp_path_factory, "without-a-plan", try_all)


def try_all(base: Path) -> dict[str, Any]:
    plan, programs = base / "plan.md", base / "programs"
    put_programs(programs)
    extensions = {"on": ["workflow-guard"], "workflow-guard": {"plan_path": str(plan)}}
    home = HermesHome(base, None, extensions=extensions, git=True, start=warm_start)
    put_project(base / "template")
    in_git(base / "template")
    commands = [each for each in (*WRITES.values(), *READS) if missing(each) is None]
    home.extension("swaps", SWAPS)
    given = {
        "TEMPLATE": str(base / "template"),
        "COMMANDS": commands,
        "PLAN_PATH": str(plan),
        "CODE": CODE,
    }
    names = "\n".join(f"{name} = {value!r}" for name, value in given.items())
    path = os.pathsep.join((str(programs), home.env()["PATH"]))
    return play(home, f"{names}\n{DRIVER}{KEPT}", timeout=400, PATH=path)


def in_git(folder: Path) -> None:
    """A repository with a change that is not committed."""
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.templateDir=")
    for args in (["init", "-q", "."], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *who, *args], cwd=folder, check=True)
    (folder / "src/more.py").write_text("MORE = 2\n")


def missing(command: str) -> str | None:
    """The program that a command needs and that is not installed."""
    needed = NEEDS.get(command.split(maxsplit=1)[0])
    beside = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return needed if needed and shutil.which(needed, path=beside) is None else None


def skip_without_its_program(command: str) -> None:
    needed = missing(command)
    if needed:
        pytest.skip(f"needs {needed}")


@pytest.mark.parametrize("name", WRITES)
def test_the_kernel_keeps_the_project(tried: dict[str, Any], name: str) -> None:
    """What changes something in a bare run changes nothing without a plan."""
    skip_without_its_program(WRITES[name])
    bare, without = (tried[kind][WRITES[name]] for kind in ("bare", "without"))
    assert bare["changed"], bare
    assert without["changed"] == [], without


@pytest.mark.parametrize("command", READS)
def test_the_same_as_a_bare_run(tried: dict[str, Any], command: str) -> None:
    """Tests, linters and what only reads give the same status and output without a plan."""
    skip_without_its_program(command)
    bare, without = (tried[kind][command] for kind in ("bare", "without"))
    assert without["changed"] == []
    assert without["told"]["exit_code"] == bare["told"]["exit_code"], without
    assert plain(without["told"]["output"]) == plain(bare["told"]["output"])


@pytest.mark.parametrize("name", WRITES)
def test_where_nothing_can_be_confined(tried: dict[str, Any], name: str) -> None:
    """The same is refused with the reason, and nothing of it runs."""
    skip_without_its_program(WRITES[name])
    found = tried["nothing"][WRITES[name]]
    assert found["changed"] == [], found
    assert "[workflow-guard] " in found["told"]["error"]
    assert "no plan yet" in found["told"]["error"]


def test_reading_where_nothing_can_be_confined(tried: dict[str, Any]) -> None:
    """What is known to change nothing runs as ever, and no test or linter runs."""
    told = {command: tried["nothing"][command]["told"] for command in READS if not missing(command)}
    run = {command for command, each in told.items() if each["error"] is None}
    assert {"git status", "git log", "git diff", "git stash list", "exit 3"} <= run
    assert not {
        each for each in run if re.search("pytest|unittest|npm|make|ruff|mypy|python", each)
    }
    assert tried["file_unconfined"].get("bytes_written") == 1
    blocked = told["python -m unittest"]["error"]
    assert "no plan yet, and terminal cannot be confined: " in blocked
    assert "First write the plan to " in blocked


def test_the_shell_goes_on_as_before(tried: dict[str, Any]) -> None:
    """`cd` persists, a command ends in time, and a server in the background can be asked."""
    assert [Path(each).name for each in tried["stays"]] == ["", "src", "", "project"]
    assert tried["late"]["exit_code"] == 124
    assert tried["served"] == "200"


def test_below_the_root_paths_are_absolute(tried: dict[str, Any]) -> None:
    """`plans/` would be read as a folder of where the shell is."""
    root = tried["stays"][3]
    assert tried["below"][1].endswith(f"the project read-only except {root}/plans/: no plan yet")


def test_the_plans_can_be_written(tried: dict[str, Any]) -> None:
    """By a command and by a tool for files, which makes folders too."""
    assert tried["written"] == {**tried["written"], "output": "note", "exit_code": 0}
    assert tried["file"]["bytes_written"] == 1


def test_links_among_the_plans_are_no_way(tried: dict[str, Any]) -> None:
    """Neither one that a program makes, nor one that is made while a call is looked at."""
    assert tried["linked"] == ""
    assert (
        "[workflow-guard] There is no plan yet, so write_file must not change 'src/new.md'"
        in (tried["behind"]["error"])
    )
    assert tried["is_link"]
    assert "Read-only file system" in tried["swapped"]["error"]


def test_code_is_confined_with_what_it_calls(tried: dict[str, Any]) -> None:
    """The processes of a script, and the tools that it calls."""
    told = json.dumps(tried["code"])
    for each in ("of its own: ", "called: "):
        assert f"{each}touch: cannot touch 'pwn': Read-only file system" in told
    line = "[workflow-guard] this command ran with the project read-only except plans/"
    assert told.count(line) == 1
    assert tried["changed"] == []


def plain(text: str) -> str:
    """An output without durations, and without pytest's place for its cache."""
    return re.sub(r"\d+\.\d+ ?m?s|cachedir: .*\n", "", text)
