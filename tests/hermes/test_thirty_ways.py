"""Ways to change a source file without a plan: with workflow-guard on, none leads there.

Each way is tried in the real Hermes twice. Without a plan it is refused, and no file outside of the
plans has changed by a byte; with a plan it goes through, so that what was refused would have
worked.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.harness.home import HermesHome
from tests.harness.warm import warm_start
from tests.hermes.once import tried_once
from tests.hermes.stage import play

from hermes_ext.testing.model_server import Reply, ToolUse

pytestmark = pytest.mark.hermes

Call = tuple[str, dict[str, Any]]

OLD, NEW = "word = 'old'\n", "word = 'new'\n"
PLAN = "plans/active/plan.md"


class Way(NamedTuple):
    """Calls that the model makes one after the other.

    PROCESS in an argument stands for a shell that waits for input, SESSION for the process that the
    call before has started, ROOT for the project. needs: programs that have to be installed.
    """

    calls: tuple[Call, ...]
    needs: tuple[str, ...] = ()


def tool(name: str, **args: Any) -> Way:
    return Way(((name, args),))


def shell(*commands: str, needs: str = "") -> Way:
    calls = tuple(("terminal", {"command": command}) for command in commands)
    return Way(calls, tuple(needs.split()))


def code(text: str) -> Way:
    return tool("execute_code", code=text)


def v4a(*lines: str) -> Way:
    return tool(
        "patch", mode="patch", patch="\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    )


def write(path: str) -> Way:
    return tool("write_file", path=path, content=NEW)


def steps(*ways: Way) -> Way:
    return Way(tuple(call for way in ways for call in way.calls))


SED = "sed -i s/old/new/ src/app.py"
IN_BASE64 = base64.b64encode(SED.encode()).decode()

WAYS = {
    # The tools for files.
    "write_file": write("src/app.py"),
    "write_file, a new file": write("src/more.py"),
    "write_file, absolute": write("ROOT/src/app.py"),
    "write_file, there and back": write("plans/../src/app.py"),
    "write_file, up and down": write("../project/src//./app.py"),
    "write_file, a link": write("link.py"),
    "write_file, a link among the plans": write("plans/link.md"),
    "write_file, behind a link": write("plans/folder/app.py"),
    "write_file, a second name": write("second.py"),
    "write_file, a name of another case": Way((("Write_File", write("src/app.py").calls[0][1]),)),
    "write_file, a name in camel case": Way((("WriteFile", write("src/app.py").calls[0][1]),)),
    "write_file, a name with spaces": Way(((" write_file ", write("src/app.py").calls[0][1]),)),
    "patch, replace": tool(
        "patch", mode="replace", path="src/app.py", old_string="old", new_string="new"
    ),
    "patch, update": v4a("*** Update File: src/app.py", "@@", "-word = 'old'", "+word = 'new'"),
    "patch, update behind a plan": v4a(
        "*** Add File: plans/note.md",
        "+x",
        "*** Update File: src/app.py",
        "@@",
        "-word = 'old'",
        "+word = 'new'",
    ),
    "patch, add": v4a("*** Add File: src/more.py", "+word = 'new'"),
    "patch, delete": v4a("*** Delete File: src/app.py"),
    "patch, move": v4a("*** Move File: src/app.py -> plans/app.md"),
    "a tool of an MCP server": tool("mcp_files_put", path="src/app.py", text=NEW),
    "a subagent": tool("delegate_task", goal="zebra: write src/app.py"),
    # Redirections and programs that write.
    "redirection": shell("echo new > src/app.py"),
    "appending": shell("echo new >> src/app.py"),
    "redirection in spite of noclobber": shell("set -C; echo new >| src/app.py"),
    "redirection to a second name among the plans": shell("echo new > plans/second.md"),
    "redirection of a file descriptor": shell("exec 5> src/app.py; echo new >&5"),
    "redirection of nothing": shell("> src/app.py"),
    "here-document": shell("cat > src/app.py <<'EOF'\nnew\nEOF"),
    "tee": shell("echo new | tee src/app.py"),
    "cp": shell("cp other.py src/app.py"),
    "cp to a folder": shell("cp -t src plans/app.py"),
    "mv": shell("mv other.py src/app.py"),
    "mv away": shell("mv src/app.py plans/app.md"),
    "rm": shell("rm src/app.py"),
    "ln": shell("ln -sf ../other.py src/app.py"),
    "touch": shell("touch src/more.py"),
    "mkdir": shell("mkdir more && echo new > more/app.py"),
    "truncate": shell("truncate -s 0 src/app.py"),
    "dd": shell("dd if=other.py of=src/app.py status=none"),
    "install": shell("install -m 600 other.py src/app.py"),
    "sort": shell("sort -o src/app.py other.py"),
    "sed": shell(SED),
    "sed, its own w": shell("sed -n 'w src/app.py' other.py"),
    "perl": shell("perl -pi -e s/old/new/ src/app.py", needs="perl"),
    "awk": shell("""awk '{ print > "src/app.py" }' other.py"""),
    "ed": shell("printf '%s\\n' ,s/old/new/ w q | ed -s src/app.py", needs="ed"),
    "patch, the program": shell("patch -s -p1 < change.patch", needs="patch"),
    "rsync": shell("rsync -aI other.py src/app.py", needs="rsync"),
    "tar": shell("tar -xf bundle.tar"),
    "unzip": shell("unzip -qo bundle.zip", needs="unzip"),
    "git apply": shell("git apply change.patch"),
    "git checkout": shell("git checkout -q before -- src/app.py"),
    "git checkout of a branch": shell("git checkout -q before"),
    "git restore": shell("git restore --source before src/app.py"),
    "git reset": shell("git reset -q --hard before"),
    "git stash pop": shell("git stash pop -q"),
    "git clean": shell("git clean -qfd"),
    "git with an alias": shell(f"git -c alias.x='!{SED}' x"),
    # Programs that start others.
    "find -exec": shell("find src -name '*.py' -exec sed -i s/old/new/ {} +"),
    "find -delete": shell("find src -name app.py -delete"),
    "xargs": shell("ls src/app.py | xargs sed -i s/old/new/"),
    "env": shell(f"env A=1 {SED}"),
    "timeout": shell(f"timeout 9 nice {SED}"),
    "sh in bash": shell(f'bash -c "sh -c \\"{SED}\\""'),
    "python -c": shell("python3 -c \"open('src/app.py', 'w').write('new')\""),
    "python, from here": shell("python3 - <<'EOF'\nopen('src/app.py', 'w').write('new')\nEOF"),
    "base64": shell(f"echo {IN_BASE64} | base64 -d | sh"),
    "make": shell("make -s", needs="make"),
    # The shell itself.
    "variable": shell('f=src/app.py; echo new > "$f"'),
    "parts of a name": shell("a=src/a b=pp.py; echo new > $a$b"),
    "a command in a variable": shell(f"c='{SED}'; $c"),
    "braces": shell("{sed,-i,s/old/new/,src/app.py}"),
    "a pattern": shell("sed -i s/old/new/ sr?/*.py"),
    "quotes": shell("s'e'd -\"i\" s/old/new/ src/a\\pp.py"),
    "substitution": shell("$(echo cp) other.py src/app.py"),
    "backticks": shell(f"echo `{SED}`"),
    "process substitution": shell("echo new | tee >(cat > src/app.py) | cat; wait"),
    "function": shell(f"ls() {{ {SED}; }}; ls"),
    "eval": shell(f"eval '{SED}'"),
    "trap": shell(f"trap '{SED}' EXIT"),
    "behind what reads": shell(f"git status; ls && {SED}"),
    "a loop": shell("for f in src/*.py; do sed -i s/old/new/ $f; done"),
    "after cd": shell("(cd src && echo new > app.py)"),
    "after cd, in the next call": shell("cd src", "echo new > app.py"),
    "in the background": shell(f"coproc {SED}; wait"),
    "a process in the background": Way(
        (
            ("terminal", {"command": SED, "background": True}),
            ("process", {"action": "wait", "session_id": "SESSION"}),
        )
    ),
    "what a process reads": Way(
        (
            ("process", {"action": "submit", "session_id": "PROCESS", "data": SED}),
            ("process", {"action": "submit", "session_id": "PROCESS", "data": "exit"}),
        )
    ),
    # In several steps, of which the first may be allowed.
    "a script among the plans": steps(
        tool("write_file", path="plans/run.md", content=SED), shell("sh plans/run.md")
    ),
    "a script among the plans, sourced": steps(
        tool("write_file", path="plans/run.md", content=SED), shell(". plans/run.md")
    ),
    "a link among the plans": steps(shell("ln -s ../src plans/more"), write("plans/more/app.py")),
    "a link with a plan's name": steps(
        shell("ln -s ../src/app.py plans/more.md"), write("plans/more.md")
    ),
    "a second name with a plan's name": shell(
        "ln src/app.py plans/more.md", "echo new > plans/more.md"
    ),
    "a link and through it, in one": shell("ln -s ../src plans/more; echo new > plans/more/app.py"),
    # Code.
    "code, open": code("open('src/app.py', 'w').write('new')"),
    "code, Path": code("from pathlib import Path\nPath('src', 'app.py').write_text('new')"),
    "code, os": code("import os\nos.remove('src/app.py')"),
    "code, subprocess": code(f"import subprocess\nsubprocess.run({SED!r}, shell=True)"),
    "code, a tool called back": code(
        f"from hermes_tools import write_file\nwrite_file('src/app.py', {NEW!r})"
    ),
    "code, a name made up": code("getattr(__builtins__, 'op' + 'en')('src/app.py', 'w').write('')"),
}

# What is refused above is not refused for its program alone.
READING = (
    "ls -la src",
    "git diff HEAD~1 -- src/app.py | head -5",
    "git log --oneline | wc -l",
    "grep -rn word src",
    "find . -name '*.py' | sort",
    "cat src/app.py && sed -n 1p src/app.py",
    "cd src && cat app.py; cd ..",
    # Among the plans is a file with a second name outside: no command can write there.
    "echo note > handoff/note.md",
    "mkdir -p handoff/old && cp plans/first.md handoff/old/first.md",
)

DRIVER = r"""
import re, shutil
os.environ['HERMES_YOLO_MODE'] = '1'
project, template = Path.cwd(), Path(TEMPLATE)

from tools.process_registry import process_registry
from tools.registry import registry
import tools.terminal_tool as terminals

def put(args, **_):
    Path(args['path']).write_text(args['text'])
    return '{}'
texts = {name: {'type': 'string'} for name in ('path', 'text')}
registry.register(name='mcp_files_put', toolset='mcp-files', handler=put, schema={
    'name': 'mcp_files_put', 'description': 'Puts a text somewhere.',
    'parameters': {'type': 'object', 'properties': texts}})

child_told, child_done, asked = [], threading.Event(), {}
def script(request):
    if request.last_user.startswith('zebra'):
        if not request.tool_results:
            return Reply(tool_calls=(write('src/app.py', NEW),))
        child_told.append(request.tool_results[-1][1])
        child_done.set()
        return Reply('Written.')
    for name, args in asked.get(request.last_user, ()):
        if 'SESSION' in args.values():
            told = request.tool_results[-1][1]
            args['session_id'] = ''.join(re.findall(r'"session_id": "(\w+)"', told)[:1])
        return Reply(tool_calls=(ToolUse(named(agent, name), args),))
    return Reply('Done.')
stage.script = script
agent = stage.agent(enabled_toolsets=[
    'file', 'terminal', 'code_execution', 'delegation', 'mcp-files'])

def files():
    return {str(path.relative_to(project)): os.readlink(path) if path.is_symlink()
            else path.read_text('latin-1') for path in sorted(project.rglob('*'))
            if (path.is_symlink() or path.is_file()) and '.git' not in path.parts}

def prepare(planned):
    for path in project.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    shutil.copytree(template, project, symlinks=True, dirs_exist_ok=True)
    os.link('lib/twin.py', 'second.py')
    os.link('lib/twin.py', 'plans/second.md')
    if planned:
        Path(PLAN).parent.mkdir(parents=True)
        Path(PLAN).write_text('Change it.\n')

clean = {}
def tried(number, calls, planned):
    if clean != {'planned': planned, 'files': files()}:
        prepare(planned)
        clean.update(planned=planned, files=files())
    for environment in terminals._active_environments.values():
        environment.cwd = str(project)
    text, process = json.dumps(calls).replace('ROOT', str(project)), None
    if 'PROCESS' in text:
        process = process_registry.spawn_local('sh', cwd=str(project), use_pty=True)
        text = text.replace('PROCESS', process.id)
    prompt = f'call {number}'
    asked[prompt] = iter(json.loads(text))
    told = results_of(agent.run_conversation(prompt))
    assert len(told) == len(calls)
    if calls[0][0] == 'delegate_task':
        assert child_done.wait(30)
        child_done.clear()
        told += child_told
        child_told.clear()
    if process:
        if planned:
            process_registry.wait(process.id, 10)
        process_registry.kill_process(process.id)
    before, after = clean['files'], files()
    return {'told': told, 'changed': [
        path for path in sorted({*before, *after})
        if before.get(path) != after.get(path) and not path.startswith(('plans/', 'handoff/'))]}

def tried_all(ways, planned):
    return {name: tried(f'{number} {planned}', calls, planned)
            for number, (name, calls) in enumerate(ways.items())}

report(
    without=tried_all(WAYS, False),
    planned=tried_all(WAYS, True),
    reading=tried_all({one: [['terminal', {'command': one}]] for one in READING}, False),
)
"""


def template(folder: Path) -> Path:
    """A repository with what the ways need: an archive, a patch, a stash, links."""

    def put(path: str, text: str) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)

    def git(*args: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.templateDir=")
        command = ("git", *who, *args)
        return subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True
        ).stdout

    put("src/app.py", NEW)
    git("init", "-q", ".")
    git("add", ".")
    git("commit", "-qm", "before")
    git("branch", "before")
    put("src/app.py", OLD)
    git("commit", "-qam", "after")
    put("src/app.py", NEW)
    (folder / "change.patch").write_text(git("diff"))
    with tarfile.open(folder / "bundle.tar", "w") as tar:
        tar.add(folder / "src/app.py", "src/app.py")
    with zipfile.ZipFile(folder / "bundle.zip", "w") as archive:
        archive.write(folder / "src/app.py", "src/app.py")
    git("stash", "-q")
    git("gc", "-q")
    put("other.py", NEW)
    put("lib/twin.py", OLD)
    put("Makefile", f"all:\n\t@{SED}\n")
    put("plans/first.md", "A thought.\n")
    put("handoff/first.md", "A thought.\n")
    put("plans/app.py", NEW)
    (folder / "link.py").symlink_to("src/app.py")
    (folder / "plans/link.md").symlink_to("../src/app.py")
    (folder / "plans/folder").symlink_to("../src")
    return folder


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of every way, without and with a plan, in one process."""
    return tried_once(tmp_path_factory, "ways", try_all)


def try_all(base: Path) -> dict[str, Any]:
    home = HermesHome(base, None, extensions={"on": ["workflow-guard"]}, start=warm_start)
    given = {
        "TEMPLATE": str(template(base / "template")),
        "WAYS": {name: way.calls for name, way in WAYS.items() if is_here(way)},
        "READING": READING,
        "PLAN": PLAN,
        "NEW": NEW,
    }
    names = "\n".join(f"{name} = {value!r}" for name, value in given.items())
    # Newer Hermes refuses to overwrite what it has not read.
    return play(home, f"{names}\n{DRIVER}", timeout=240, HERMES_DISABLE_FILE_STATE_GUARD="1")


def is_here(way: Way) -> bool:
    return all(map(shutil.which, way.needs))


@pytest.mark.parametrize("name", WAYS)
def test_a_way(tried: dict[str, Any], name: str) -> None:
    """Without a plan it is refused and every file is as it was; with a plan it changes one."""
    if not is_here(WAYS[name]):
        pytest.skip(f"needs {' and '.join(WAYS[name].needs)}")
    without, planned = tried["without"][name], tried["planned"][name]
    assert without["changed"] == [], without
    assert any("[workflow-guard] " in told and "no plan yet" in told for told in without["told"])
    assert not any("[workflow-guard]" in told for told in planned["told"]), planned
    assert planned["changed"], planned


@pytest.mark.parametrize("command", READING)
def test_reading_and_planning_pass(tried: dict[str, Any], command: str) -> None:
    """Without a plan, commands that only read, or that write notes among the plans, run."""
    facts = tried["reading"][command]
    assert json.loads(facts["told"][0])["exit_code"] == 0, facts
    assert facts["changed"] == []


CALLED_BACK = """\
from hermes_tools import terminal, write_file
for path in ("src/app.py", "src/more.py"):
    print(write_file(path, "new"))
print(terminal("echo new > src/app.py"))
"""


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        (("terminal", {"command": SED}), {}),
        # The script itself runs; what it calls back is judged all the same.
        (("execute_code", {"code": CALLED_BACK}), {"allowed_tools": ["execute_code"]}),
    ],
    ids=["sed", "called back"],
)
def test_in_one_shot(
    model_factory: Callable[..., Any],
    hermes: Callable[..., HermesHome],
    call: Call,
    settings: dict[str, Any],
) -> None:
    """`hermes -z` holds to it too."""
    model = model_factory([Reply(tool_calls=(ToolUse(*call),)), Reply("Done.")])
    extensions = {"on": ["workflow-guard"], "workflow-guard": settings}
    home = hermes(model, extensions=extensions, config={"agent": {"verify_on_stop": False}})
    (home.project / "src").mkdir()
    app = home.project / "src/app.py"
    app.write_text(OLD)
    home.oneshot("go").check()
    told = model.main_requests[-1].tool_results[-1][1]
    refused = 3 if settings else 1
    # Newer Hermes tells the errors of tools that a program called a second time.
    output = told.partition('"tool_errors"')[0]
    assert output.count("[workflow-guard] There is no plan yet") == refused, told
    assert app.read_text() == OLD
    assert list(app.parent.iterdir()) == [app]
