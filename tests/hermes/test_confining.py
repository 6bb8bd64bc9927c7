"""Confined calls in the real Hermes: what they may change, what works as before, what is told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, pip_plugin, play

from hermes_ext.confine import support
from hermes_ext.hosts.hermes.home.lost_hooks import lost_hooks

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

HomeFactory = Callable[..., HermesHome]

# Whether a call is confined is up to a file, so that one process has both kinds.
CONFINES = (
    HEAD
    + """
from pathlib import Path

@register_hook('intercept_tool_call', guard=True)
def hold(tool_name, tool_args):
    if Path('free').exists():
        return None
    return HookResult.confine(writable=['plans'], reason='no plan yet')
"""
)

PROLOGUE = """
import time
os.environ['TERMINAL_CWD'] = os.getcwd()
agent = stage.agent(enabled_toolsets=['stage', 'terminal', 'code_execution', 'file', 'delegation'])
Path('plans').mkdir()
Path('kept').write_text('kept')
process = named(agent, 'process')

def terminal(command, **options):
    [text] = stage.use(agent, ToolUse('terminal', {'command': command, **options}))
    return json.loads(text)

def in_turn(*commands):
    replies = [Reply(tool_calls=[ToolUse('terminal', {'command': each})]) for each in commands]
    told = results_of(stage.say(agent, 'go', *replies))
    return [json.loads(text)['output'] for text in told]

def typed(action, **options):
    [text] = stage.use(agent, ToolUse(process, {'action': action, **options}))
    return json.loads(text)

def said(session, text):
    for _ in range(200):
        told = typed('log', session_id=session)
        if text in told['output']:
            break
        time.sleep(0.05)
    return told['output']

def code(text):
    [text] = stage.use(agent, ToolUse('execute_code', {'code': text}))
    return json.loads(text)
"""
HANDLER_OF_TERMINAL = (
    PROLOGUE
    + """
from tools.registry import registry
entry = registry.get_entry('terminal')
kept = entry.handler
"""
)
LINE = "[hold] this command ran with the project read-only except plans/: no plan yet"


def confined_home(hermes: HomeFactory, **options: object) -> HermesHome:
    home = hermes(**options)
    home.extension("hold", CONFINES)
    return home


def test_commands(hermes: HomeFactory) -> None:
    """A command changes its writable paths and no others; all else of it is as without."""
    home = confined_home(hermes)
    facts = play(
        home,
        PROLOGUE
        + """
report(
    outside=terminal('echo x > kept; echo $?'),
    inside=terminal('echo plan > plans/a.md && cat plans/a.md'),
    temporary=terminal('f=$(mktemp) && echo x > $f && cat $f'),
    status=terminal('exit 7'),
    stays=in_turn('cd plans', 'pwd', 'cd ..; pwd', 'pwd'),
    exported=in_turn('export A=1 PATH=/nowhere; echo $A', 'echo "<$A>"; ls kept'),
    long=len(terminal('head -c 200000 /dev/zero | tr "\\\\0" x')['output']),
    late=terminal('sleep 60', timeout=1),
    kept=Path('kept').read_text(),
    gone=Path('plans').rename('old') and terminal('echo x > kept'),
)
""",
    )
    assert facts["outside"]["output"].splitlines()[-1] == LINE
    left_out = "read-only (plans is not writable: it does not exist): no plan yet"
    assert facts["gone"]["output"].splitlines()[-1].endswith(left_out)
    assert facts["inside"] == {**facts["inside"], "output": "plan", "exit_code": 0}
    assert facts["temporary"]["output"] == "x"
    assert facts["status"]["exit_code"] == 7
    stays = [one.rpartition("/")[2] for one in facts["stays"]]
    assert stays == ["", "plans", "project", "project"]
    assert facts["exported"] == ["1", "<>\nkept"]
    assert facts["long"] > 40_000
    assert facts["late"]["exit_code"] == 124
    assert facts["kept"] == "kept"
    assert f"the kernel ({support().rung})" in home.cli("extensions", "why").check().stdout


def test_processes_in_the_background(hermes: HomeFactory) -> None:
    """They are confined while they run, pipe or terminal; a server works, and outlives its call."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
import socket, urllib.request

def background(command, **options):
    told = terminal(command, background=True, **options)
    return told['session_id']

def ended(session):
    for _ in range(20):
        told = typed('wait', session_id=session, timeout=3)
        if told['status'] == 'exited':
            return told
    return told

writes = 'echo x > kept; echo plan > plans/b.md; echo $?'
piped, in_terminal = background(writes), background(f'tty; {writes}; read end', pty=True)
facts = {'piped': ended(piped), 'pty': said(in_terminal, '\\n0')}
facts['log'] = typed('log', session_id=piped)
facts['ended'] = typed('submit', session_id=in_terminal, data='')['status']
with socket.socket() as free:
    free.bind(('127.0.0.1', 0))
    port = free.getsockname()[1]
server = background(f'exec {sys.executable} -m http.server {port} --bind 127.0.0.1')
for _ in range(200):
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/kept') as answer:
            facts['served'] = answer.read().decode()
        break
    except OSError:
        time.sleep(0.05)
facts['seen by a later call'] = terminal(f'curl -s http://127.0.0.1:{port}/kept')
facts['killed'] = typed('kill', session_id=server)['status']
report(**facts, kept=Path('kept').read_text(), plan=Path('plans/b.md').read_text())
""",
    )
    for output in (facts["piped"]["output"], facts["pty"]):
        assert output.splitlines()[-2:] == ["0", LINE]
    assert "/dev/" in facts["pty"]
    assert facts["ended"] == "ok"
    assert facts["log"]["output"].count(LINE) == 1
    assert facts["served"] == facts["seen by a later call"]["output"] == "kept"
    assert facts["killed"] == "killed"
    assert (facts["kept"], facts["plan"]) == ("kept", "plan\n")


def test_a_command_that_goes_on_in_the_background(hermes: HomeFactory) -> None:
    """Newer Hermes moves it there when the person writes: it stays confined, and known as that."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
try:
    from tools.interrupt import request_yield
except ImportError:
    report()
    raise SystemExit from None

def write_to_it():
    while not Path('plans/started').exists():
        time.sleep(0.05)
    for each in threading.enumerate():
        request_yield(each.ident)

os.mkfifo('go')
threading.Thread(target=write_to_it).start()
moved = terminal('echo > plans/started; read a < go; echo x > kept; echo $a > plans/f')
Path('go').write_text('later\\n')
ended = typed('wait', session_id=moved['session_id'], timeout=10)
report(ended=ended, kept=Path('kept').read_text(), plan=Path('plans/f').read_text())
""",
    )
    if not facts:
        pytest.skip("this Hermes moves no command to the background")
    assert facts["ended"]["output"].endswith(LINE)
    assert (facts["kept"], facts["plan"]) == ("kept", "later\n")


def test_input(hermes: HomeFactory) -> None:
    """Input goes to what was started confined, and to nothing that was started without."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
def shell():
    return terminal('exec bash --norc --noprofile', background=True, pty=True)['session_id']

confined = shell()
Path('free').write_text('')
free = shell()
Path('free').unlink()
facts = {}
for action in ('write', 'submit', 'close'):
    facts[action] = typed(action, session_id=free, data='echo x > kept')
facts['nobody'] = typed('submit', session_id='proc_none', data='x')
facts['looked'] = typed('poll', session_id=free)
facts['taken'] = typed('submit', session_id=confined, data='echo x > kept; echo do''ne')
facts['said'] = said(confined, 'done\\n')
Path('free').write_text('')
facts['unconfined'] = typed('submit', session_id=free, data='echo by hand > kept; echo do''ne')
said(free, 'done\\n')
report(**facts, kept=Path('kept').read_text())
""",
    )
    for action in ("write", "submit", "close"):
        assert "[hold] no plan yet, and process" in facts[action]["error"]
        assert "input to a process that was started unconfined" in facts[action]["error"]
    assert "Hermes knows no process with this session_id" in facts["nobody"]["error"]
    assert facts["looked"]["status"] == "running"
    assert facts["taken"]["status"] == "ok"
    assert facts["said"].endswith(LINE)
    assert facts["kept"] == "by hand\n"


SCRIPT = """\
import json, os, sys, tempfile
from hermes_tools import patch, read_file, terminal, write_file
told = {'read': read_file('kept')['content'], 'cwd': os.getcwd()}
try:
    open('kept', 'w')
except OSError as error:
    told['own'] = str(error)
told['command'] = terminal('echo x > kept; echo plan > plans/c.md')['output']
told['written'] = write_file('kept', 'x')
told['plan'] = write_file('plans/d.md', 'a plan')
with tempfile.NamedTemporaryFile('w') as file:
    file.write('x')
print(json.dumps(told))
"""


def test_scripts(hermes: HomeFactory) -> None:
    """A script is confined, and what it calls as it is, also where nobody confines such calls."""
    home = hermes()
    home.extension(
        "hold",
        CONFINES.replace("if Path('free')", "if tool_name != 'execute_code' or Path('free')"),
    )
    facts = play(
        home,
        PROLOGUE
        + f"""
script = {SCRIPT!r}
"""
        + """
first, second = code(script), code('print(open("kept").read())')
Path('free').write_text('')
free = code('open("free", "w").write("written")\\nprint(open("free").read())')
Path('free').unlink()
again = code('open("kept", "w")')
report(first=first, second=second, free=free, again=again, kept=Path('kept').read_text(),
       plans=sorted(path.name for path in Path('plans').iterdir()))
""",
    )
    told = json.loads(facts["first"]["output"].splitlines()[0])
    assert "kept" in told["read"]
    assert "Read-only file system" in told["own"]
    assert told["command"].endswith(LINE)
    assert "[hold] no plan yet" in told["written"]["error"]
    assert "error" not in told["plan"]
    assert facts["second"]["output"].strip() == "kept"
    assert facts["free"]["output"].strip() == "written"
    assert facts["again"]["output"].endswith(LINE)
    assert (facts["kept"], facts["plans"]) == ("kept", ["c.md", "d.md"])


def test_subagents(hermes: HomeFactory) -> None:
    """A subagent's calls are judged on their own, and run as they are judged."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
WRITES = 'echo x > kept; echo p > plans/e'
def script(request):
    last = request.messages[-1]
    text = json.dumps(request.messages)
    if 'child goal' in text and 'delegate' not in text:
        if last['role'] == 'tool':
            return Reply('The child is done.')
        return Reply(tool_calls=[ToolUse('terminal', {'command': WRITES})])
    if last['role'] == 'tool':
        return Reply('Done.')
    return Reply(tool_calls=[ToolUse('delegate_task', {'goal': 'child goal', 'context': 'none'})])
stage.script = script
stage.say(agent, 'go')
for _ in range(400):
    if Path('plans/e').exists():
        break
    time.sleep(0.05)
results = [m['content'] for request in stage.model.requests for m in request.messages
           if m['role'] == 'tool' and 'exit_code' in str(m['content'])]
report(kept=Path('kept').read_text(), plan=Path('plans/e').exists(), results=results)
""",
    )
    assert (facts["kept"], facts["plan"]) == ("kept", True)


def test_variables_of_the_user(hermes: HomeFactory, tmp_path: Path) -> None:
    """What the user has set leads neither out of the private folder, nor into later commands."""
    mine = tmp_path / "mine"
    mine.mkdir()
    home = confined_home(hermes)
    (home.user / ".bashrc").write_text(f"export TMPDIR={mine}\n")
    facts = play(
        home,
        PROLOGUE
        + """
told = in_turn('echo $TMPDIR $RUFF_CACHE_DIR; mktemp', 'echo $TMPDIR')
options = in_turn('echo $PYTEST_ADDOPTS')
snapshots = [path for path in os.listdir(os.environ['TMPDIR']) if path.startswith('hermes-snap')]
poison = [terminal(f'echo echo poisoned >> {os.environ["TMPDIR"]}/{each}') for each in snapshots]
background = terminal('echo $TMPDIR', background=True)['session_id']
told.append(typed('wait', session_id=background, timeout=5)['output'])
Path('free').write_text('')
report(told=told, options=options, snapshots=snapshots, poison=poison,
       after=terminal("echo $RUFF_CACHE_DIR"))
""",
        TMPDIR=str(mine),
        RUFF_CACHE_DIR=str(mine / "ruff"),
        PYTEST_ADDOPTS="--color=no",
    )
    assert facts["options"][0].startswith("--color=no -o cache_dir=")
    words = [word for text in facts["told"] for word in text.split() if word.startswith("/")]
    assert len(words) == 5
    assert all("/hermes-ext-confined-" in word for word in words)
    assert all(one["output"].endswith(LINE) for one in facts["poison"])
    assert len(facts["snapshots"]) == 1
    assert facts["after"]["output"] == str(mine / "ruff")


def test_what_cannot_be_confined(hermes: HomeFactory) -> None:
    """A set-up that fails is a refusal, and the log has it: nothing ran, and nothing is retried."""
    home = confined_home(hermes)
    facts = play(
        home,
        PROLOGUE
        + """
import tempfile
first = terminal('echo fine')
for helper in Path(tempfile.gettempdir()).glob(f'hermes-ext-confined-{os.getpid()}-*/helper.pyc'):
    helper.write_bytes(b'none')
begun = time.monotonic()
failed = [terminal('touch plans/f'), terminal('touch plans/f', background=True),
          terminal('touch plans/f', background=True, pty=True), code('open("plans/f", "w")')]
report(first=first, failed=failed, took=time.monotonic() - begun, plans=os.listdir('plans'))
""",
    )
    assert facts["first"]["output"] == "fine"
    for one in facts["failed"]:
        assert one["error"].startswith("[hold] no plan yet, and this call was stopped"), one
    assert facts["took"] < 5
    assert facts["plans"] == []
    told = json.loads(home.cli("extensions", "why", "last", "--json").check().stdout)
    [decision] = told["decisions"]
    assert decision["says"] == "hold blocked execute_code"
    assert "it could not be confined" in decision["reason"]


def test_a_private_folder_that_is_gone(hermes: HomeFactory) -> None:
    """What cleans temporary folders ends no confinement; a forked process has its own folder."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
import shutil, tempfile
from tools.registry import registry
folders = [terminal('echo $TMPDIR')['output']]
for each in Path(tempfile.gettempdir()).glob(f'hermes-ext-confined-{os.getpid()}-*'):
    shutil.rmtree(each)
folders.append(terminal('echo $TMPDIR; touch $TMPDIR/a')['output'])
child = os.fork()
if not child:
    try:
        told = registry.dispatch('terminal', {'command': 'echo $TMPDIR'})
        Path('forked').write_text(json.loads(told)['output'])
    finally:
        os._exit(0)
os.waitpid(child, 0)
report(folders=folders, forked=Path('forked').read_text(), pid=os.getpid(), child=child)
""",
    )
    for folder in facts["folders"]:
        assert f"hermes-ext-confined-{facts['pid']}-" in folder
        assert "\n" not in folder
    assert f"hermes-ext-confined-{facts['child']}-" in facts["forked"]


@pytest.mark.parametrize("unavailable", ["block", "ask"])
def test_what_runs_elsewhere(hermes: HomeFactory, unavailable: str) -> None:
    """Commands of another backend, and tools without a process, are refused or asked about."""
    yes = {"confine_unavailable": unavailable, "ask_without_human": "approve"}
    home = confined_home(hermes)
    home.write_config({"extensions": yes})
    facts = play(
        home,
        PROLOGUE
        + """
facts = {'jot': stage.use(agent, jot('a line'))[0], 'jots': stage.jots}
os.environ['TERMINAL_ENV'] = 'docker'
facts['command'] = terminal('echo x > kept') if sys.argv[1:] else None
report(**facts)
""".replace("sys.argv[1:]", str(unavailable == "block")),
    )
    if unavailable == "block":
        assert "jot cannot be confined" in facts["jot"]
        assert (
            "Hermes runs commands elsewhere (terminal.backend: docker)" in facts["command"]["error"]
        )
    assert len(facts["jots"]) == (unavailable == "ask")


SSH = """\
#!/bin/sh
while [ "${1#*@}" = "$1" ]; do shift; done
shift
[ $# = 0 ] || HOME=$FAR exec sh -c "$*"
"""


def test_what_still_runs_elsewhere(hermes: HomeFactory, tmp_path: Path) -> None:
    """A session keeps the machine that its commands run on, whatever the setting says since."""
    programs, far = tmp_path / "bin", tmp_path / "far"
    far.mkdir()
    programs.mkdir()
    for name in ("ssh", "scp"):
        (programs / name).write_text(SSH)
        (programs / name).chmod(0o755)
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
from hermes_cli.config import reload_env
Path('free').write_text('')
before = terminal('echo $HOME')
reload_env()  # what `/reload` does: the setting is `local` again
Path('free').unlink()
ran = [terminal('echo x > plans/a'), terminal('echo x > plans/a', background=True),
       terminal('echo x > plans/a', background=True, pty=True),
       code('open("plans/a", "w")')]
report(before=before, ran=ran, plans=os.listdir('plans'))
""",
        PATH=f"{programs}:{os.environ['PATH']}",
        FAR=str(far),
        TERMINAL_ENV="ssh",
        TERMINAL_SSH_HOST="far",
        TERMINAL_SSH_USER="me",
    )
    assert facts["before"]["output"] == str(far)
    for one in facts["ran"]:
        assert "commands of this session still run elsewhere (SSHEnvironment)" in one["error"], one
    assert facts["plans"] == []


def test_what_starts_out_of_sight(hermes: HomeFactory) -> None:
    """Where a confined command started no process that was seen, nothing is confined any more."""
    facts = play(
        confined_home(hermes),
        HANDLER_OF_TERMINAL
        + """
import threading, subprocess

def elsewhere(args, **kwargs):  # another plugin's way of running commands, in a thread of its own
    box = []
    def run():
        box.append(subprocess.run(args['command'], shell=True, capture_output=True, text=True))
    thread = threading.Thread(target=run)
    thread.start(), thread.join()
    return json.dumps({'output': box[0].stdout, 'exit_code': box[0].returncode, 'error': None})

entry.handler = elsewhere
unseen = terminal('echo ran')
entry.handler = kept
report(unseen=unseen, later=[terminal('echo ran'), code('print(1)')])
""",
    )
    assert facts["unseen"]["output"].strip() == "ran"
    for later in facts["later"]:
        assert "This Hermes cannot confine calls any more; restart it" in later["error"]


def test_a_refusal_of_hermes_itself(hermes: HomeFactory) -> None:
    """A command that Hermes refuses by itself started nothing, and shows nothing about Hermes."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
report(refused=terminal('true', workdir='/tmp;x'), later=terminal('echo fine'))
""",
    )
    assert facts["refused"]["error"]
    assert facts["later"]["output"] == "fine"


def test_a_terminal_that_cannot_start(hermes: HomeFactory) -> None:
    """Where ptyprocess would go on as a second Hermes in its child, and wait for that."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + """
told = terminal('echo a\\0b', background=True, pty=True)
report(told=told, later=terminal('echo fine'))
""",
    )
    assert facts["told"]["error"]
    assert facts["later"]["output"] == "fine"


def test_checkpoints(hermes: HomeFactory) -> None:
    """Hermes's own git starts a program that a repository among the plans names: confined, too."""
    facts = play(
        confined_home(hermes, git=True),
        PROLOGUE
        + """
import subprocess
agent = stage.agent(enabled_toolsets=['terminal', 'file'], checkpoints_enabled=True)
git = 'git -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m x'
Path('hook.sh').write_text(f'#!/bin/sh\\necho ran >> {os.getcwd()}/kept\\n')
Path('hook.sh').chmod(0o755)
subprocess.run(f'git add -A && {git}', shell=True, check=True)
made = terminal(f'mkdir plans/r && cd plans/r && git init -q && {git} &&'
                f' git config core.fsmonitor {os.getcwd()}/hook.sh')
for name in ('plans/a.md', 'plans/b.md', 'plans/c.md'):
    stage.use(agent, write(name))
store = next(Path(os.environ['HERMES_HOME'], 'checkpoints').rglob('objects')).parent
refs = subprocess.run(['git', '--git-dir', str(store), 'for-each-ref'], capture_output=True)
report(made=made, kept=Path('kept').read_text(), refs=refs.stdout.decode())
""",
    )
    assert facts["made"]["exit_code"] == 0
    assert facts["kept"] == "kept"
    assert facts["refs"]


HINTS = """
from types import SimpleNamespace as Tool
from tools import mcp_tool
from tools.registry import registry

def serve(server, tool, hint, toolset=None):
    name = f'mcp__{server}__{tool}'
    annotations = None if hint is None else Tool(readOnlyHint=hint)
    found = mcp_tool._servers.setdefault(server, Tool(name=server, _tools=[]))
    found._tools.append(Tool(name=tool, annotations=annotations))
    registry.register(name=name, toolset=toolset or f'mcp-{server}', schema={
        'name': name, 'description': 'x', 'parameters': {'type': 'object', 'properties': {}}},
        handler=lambda args, **_: json.dumps({'ran': name}))
    return name
"""


def test_what_servers_say_of_their_tools(hermes: HomeFactory) -> None:
    """A tool whose server says that it only reads runs; another does not, whatever its name."""
    facts = play(
        confined_home(hermes),
        PROLOGUE
        + HINTS
        + """
names = [serve('far', 'look', True), serve('far', 'read_only', None), serve('far', 'put', False),
         serve('near', 'look', True, toolset='stage')]
agent = stage.agent(enabled_toolsets=['stage', 'mcp-far'])
report(told=[stage.use(agent, ToolUse(name, {}))[0] for name in names])
""",
    )
    look, unsaid, put, foreign = facts["told"]
    assert '{"ran": "mcp__far__look"}' in look
    for told in (unsaid, put, foreign):
        assert "[hold] no plan yet" in told
        assert '"ran"' not in told


def test_a_place_that_is_lost(hermes: HomeFactory) -> None:
    """Without a function that confinement needs nothing is confined, and everybody says so."""
    home = confined_home(hermes)
    facts = play(
        home,
        PROLOGUE
        + """
from tools.process_registry import ProcessRegistry
ProcessRegistry.spawn_local = lambda self, *args, **kwargs: None
report(told=terminal('echo ran'))
""",
    )
    why = "tools.process_registry.ProcessRegistry.spawn_local was taken"
    assert why in facts["told"]["error"]
    assert why in "".join(lost_hooks(home.home))


CHANGER = """
def pre_tool_call(tool_name, args, **context):
    if 'later' in args.get('command', ''):
        args['command'] = 'echo x > kept; echo plan > plans/g.md'

def register(ctx):
    ctx.register_hook('pre_tool_call', pre_tool_call)
"""


def test_a_call_that_a_plugin_changes(hermes: HomeFactory) -> None:
    """What another plugin makes of a call that nobody confined is not run unconfined."""
    home = hermes()
    home.extension(
        "hold",
        CONFINES.replace("if Path('free')", "if 'later' in str(tool_args) or Path('free')"),
    )
    site = pip_plugin(home, "changer", CHANGER)
    facts = play(
        home,
        PROLOGUE + "report(told=terminal('echo later'), kept=Path('kept').read_text())\n",
        later=[site],
    )
    assert facts["kept"] == "kept"
    assert "[hold]" in json.dumps(facts["told"])


OBSERVER = """
import os, subprocess

def transform_terminal_output(output, **context):
    os.system('echo system >> seen')
    subprocess.run('echo subprocess >> seen', shell=True)
    return output.rstrip() + ' and seen'

def register(ctx):
    ctx.register_hook('transform_terminal_output', transform_terminal_output)
"""


def test_a_hook_of_a_plugin(hermes: HomeFactory) -> None:
    """What another plugin's hook does in a confined call is not confined, and stops nothing."""
    home = confined_home(hermes)
    site = pip_plugin(home, "observer", OBSERVER)
    facts = play(
        home,
        PROLOGUE + "report(told=terminal('echo ran'), seen=Path('seen').read_text())\n",
        later=[site],
    )
    assert facts["told"]["output"] == "ran and seen"
    assert facts["seen"] == "system\nsubprocess\n"


def test_what_is_stopped_beside_a_command(hermes: HomeFactory) -> None:
    """Where a command ran, its result stays, with what could not be confined beside it."""
    facts = play(
        confined_home(hermes),
        HANDLER_OF_TERMINAL
        + """

def counting(args, **kwargs):  # another plugin's, around Hermes's own
    told = kept(args, **kwargs)
    try:
        os.system('echo x > kept')
    except Exception as error:
        seen.append(str(error))
    return told

entry.handler = counting
report(told=terminal('echo ran'), seen=seen, kept=Path('kept').read_text())
""",
    )
    assert facts["told"]["output"] == (
        "ran\n[hermes-ext] one process of this call was not started: "
        "os.system starts a process that cannot be confined"
    )
    assert facts["kept"] == "kept"
