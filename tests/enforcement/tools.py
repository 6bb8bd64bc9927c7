"""Every path by which a tool can run: each leads through the gate."""

from __future__ import annotations

from tests.enforcement.table import Group, Way

_PLUGIN = """
import __main__

def tool_execution(tool_name, args, next_call, **context):
    door = __main__.how.pop('door', None)
    result = next_call(args)
    if door is not None:
        __main__.through(door)
    return result

def post_tool_call(tool_name, args, **context):
    door = __main__.how.pop('after', None)
    if door is not None:
        __main__.through(door)

def register(ctx):
    __main__.ctx = ctx
    ctx.register_middleware('tool_execution', tool_execution)
    ctx.register_hook('post_tool_call', post_tool_call)
"""

_PROLOGUE = """
from tools.registry import registry
from tools import delegate_tool
import contextvars, inspect, model_tools
OPTIONS['enabled_toolsets'] = ['stage', 'file', 'todo', 'memory', 'terminal', 'code_execution',
                               'delegation', 'mcp-far']
EVIL = {'text': 'evil', 'n': 1}

def far(args, **_):
    Path('far').write_text(args['text'])
    return '{}'
registry.register(name='mcp_far_put', toolset='mcp-far', handler=far, schema={
    'name': 'mcp_far_put', 'description': 'A far tool', 'parameters': {
        'type': 'object', 'properties': {'text': {'type': 'string'}}}})

def through(door):
    if door == 'registry':
        return registry.dispatch('jot', dict(EVIL))
    if door == 'dispatch_tool':
        return ctx.dispatch_tool('jot', dict(EVIL))
    if door == 'function_call':
        return model_tools.handle_function_call('jot', dict(EVIL), task_id='t', session_id='s')
    if door == 'unchecked':
        return model_tools.handle_function_call(
            'jot', dict(EVIL), skip_pre_tool_call_hook=True, skip_tool_request_middleware=True)
    return model_tools.handle_function_call(
        'tool_call', {'name': 'mcp_far_put', 'arguments': {'text': 'evil'}})

behind = []
def leave(args, **context):
    # A thread that a tool leaves behind, once with what it knows of the turn and once without.
    for run in (contextvars.copy_context().run, lambda call: call()):
        def work(run=run):
            over.wait(60)
            run(lambda: through('registry'))
        behind.append(threading.Thread(target=work))
        behind[-1].start()
    return '{}'
over = threading.Event()
registry.register(name='leave', toolset='stage', handler=leave, schema={
    'name': 'leave', 'description': 'x', 'parameters': {'type': 'object', 'properties': {}}})

"""

_DOORS = {
    "registry": "the registry's `dispatch`",
    "dispatch_tool": "`ctx.dispatch_tool`",
    "function_call": "`handle_function_call`",
    "unchecked": "`handle_function_call` without its hooks",
    "bridge": "the bridge to tools that are searched for",
}

_CODE = """
call = ToolUse('execute_code', {'code': (
    "from hermes_tools import write_file, terminal\\n"
    "write_file('a', 'ev' + 'il')\\nterminal('echo ev' + 'il > b')\\n")})
return stage.use(agent, call)
"""

CHILD = """
def script(request):
    if request.last_user.startswith('zebra'):
        if not request.tool_results:
            return Reply(tool_calls=(write('a', 'evil'),))
        done.set()
        return Reply('Written.')
    if not request.tool_results:
        return Reply(tool_calls=(ToolUse('delegate_task', {'goal': 'zebra'}),))
    return Reply('Done.')
done = threading.Event()
stage.script = script
told = agent.run_conversation('go')
assert done.wait(60)
return told
"""

_CHILD_IN_FRONT = """
def delegate(args, **_):
    from tools.delegate_tool import delegate_task
    return delegate_task(goal='zebra', background=False, parent_agent=agent)
registry.register(name='delegate_now', toolset='stage', handler=delegate, schema={
    'name': 'delegate_now', 'description': 'x', 'parameters': {'type': 'object', 'properties': {}}})
agent = stage.agent(**OPTIONS)
def script(request):
    if request.last_user.startswith('zebra') and not request.tool_results:
        return Reply(tool_calls=(write('a', 'evil'), jot('evil')))
    return Reply('Done.') if request.tool_results else Reply(tool_calls=(ToolUse('delegate_now'),))
stage.script = script
return agent.run_conversation('go')
"""

# The child waits with its call until its parent's turn is over, and is waited for then.
_CHILD_BEHIND = """
parent_over, child_over = threading.Event(), threading.Event()
def script(request):
    if request.last_user.startswith('zebra'):
        if request.tool_results:
            child_over.set()
            return Reply('Written.')
        assert parent_over.wait(60)
        return Reply(tool_calls=(write('a', 'evil'), jot('evil')))
    if request.tool_results or request.last_user != 'go':
        return Reply('Done.')
    return Reply(tool_calls=(ToolUse('delegate_task', {'goal': 'zebra'}),))
stage.script = script
if 'background' not in inspect.signature(delegate_tool.delegate_task).parameters:
    parent_over.set()  # a Hermes in which every parent waits
told = agent.run_conversation('go')
parent_over.set()
assert child_over.wait(60)
return told
"""

_REVIEW = """
for path in Path(os.environ['HERMES_HOME']).rglob('MEMORY.md'):
    path.unlink()
reviewed = []
def auxiliary(request):
    if not request.tools:
        return Reply('A summary.')
    reviewed.append(request)
    if request.tool_results:
        return Reply('Saved.')
    call = {'action': 'add', 'target': 'memory', 'content': 'evil review'}
    return Reply(tool_calls=(ToolUse('memory', call),))
stage.auxiliary = auxiliary
def join_review():
    for thread in threading.enumerate():
        if thread.name == 'bg-review':
            thread.join(60)
def script(request):
    join_review()
    return Reply('Done.')
stage.script = script
agent._spawn_background_review(
    [{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': 'Hi.'}],
    review_memory=True)
if hasattr(agent, '_background_review_run'):
    join_review()  # the next turn would end it
told = agent.run_conversation('again')
assert len(reviewed) == 2, reviewed
for path in Path(os.environ['HERMES_HOME']).rglob('MEMORY.md'):
    Path('memory').write_text(path.read_text())
return told
"""

GROUP = Group(
    "tools",
    "Every path by which a tool runs",
    [
        Way(
            "one call",
            "return stage.use(agent, jot('evil'))",
            how="the model calls a tool of the test",
        ),
        Way(
            "several calls at once",
            "return stage.use(agent, write('a', 'evil'), write('b', 'x'))",
            how="the model calls `write_file` twice in one reply",
        ),
        Way(
            "calls that run in parallel",
            "import agent.tool_dispatch_helpers as helpers\n"
            "helpers._PARALLEL_SAFE_TOOLS |= {'jot'}\n"
            "return stage.use(agent, jot('evil', 1), jot('evil', 2), jot('fine', 3))",
            how="three calls of a tool that Hermes takes for safe to run so",
        ),
        Way(
            "a tool that is registered as those of MCP servers are",
            "return stage.use(agent, ToolUse('mcp_far_put', EVIL))",
            how="without a server; with one, see the next table",
        ),
        Way(
            "a tool of the agent itself (`memory`)",
            "call = {'action': 'add', 'target': 'memory', 'content': 'evil fact'}\n"
            "stage.use(agent, ToolUse('memory', call))\n"
            "for path in Path(os.environ['HERMES_HOME']).rglob('MEMORY.md'):\n"
            "    Path('memory').write_text(path.read_text())",
            how="the model calls it; `MEMORY.md` is read",
        ),
        Way(
            "the terminal",
            "return stage.use(agent, ToolUse('terminal', {'command': 'echo evil > a'}))",
            how="the model runs `echo`",
        ),
        Way("calls back from `execute_code`", _CODE, how="a script that puts the words together"),
        Way("a subagent", CHILD, how="the model calls `delegate_task`"),
        Way(
            "a subagent that its parent waits for",
            _CHILD_IN_FRONT,
            how="a tool calls `delegate_task` with `background=False`",
        ),
        Way(
            "a subagent that outlives its parent's turn",
            _CHILD_BEHIND,
            how="it calls only when that turn is over",
        ),
        Way(
            "the review in the background, beside the next turn",
            _REVIEW,
            how="started as Hermes does; `MEMORY.md` is read",
        ),
        *(
            Way(
                f"{what}, inside a call",
                f"how['door'] = {door!r}\nreturn stage.use(agent, jot('x'))",
                how="another plugin, in `tool_execution`",
            )
            for door, what in _DOORS.items()
        ),
        *(
            Way(
                f"{what}, after a call",
                f"how['after'] = {door!r}\nreturn stage.use(agent, jot('x'))",
                how="another plugin, in `post_tool_call`",
            )
            for door, what in _DOORS.items()
        ),
        *(
            Way(
                f"{what}, outside of turns",
                f"return through({door!r})",
                how="code of the process",
            )
            for door, what in _DOORS.items()
        ),
        Way(
            "a thread that a tool has left behind, when its turn is over",
            "over.clear()\nbehind.clear()\nstage.use(agent, ToolUse('leave'))\nover.set()\n"
            "for thread in behind:\n    thread.join()",
            how="with a copy of the context, and without",
        ),
        Way(
            "the same, while the next turn of the session is open",
            "over.clear()\nbehind.clear()\nstage.use(agent, ToolUse('leave'))\n"
            "def script(request):\n"
            "    over.set()\n"
            "    for thread in behind:\n        thread.join()\n"
            "    return Reply('Done.')\n"
            "stage.script = script\nreturn agent.run_conversation('again')",
            how="the same",
        ),
        Way(
            "after Hermes has discovered its plugins anew in mid-session",
            "from hermes_cli.plugins import discover_plugins\ndiscover_plugins(force=True)\n"
            "return stage.use(agent, jot('evil'), write('a', 'evil'))",
            how="`discover_plugins(force=True)` between two turns",
        ),
        Way(
            "in a turn of a session that another agent is in, too",
            # A newer Hermes lets one turn at a time into a session: there the second comes behind.
            "other = stage.agent(session_id=agent.session_id)\n"
            "inside = threading.Event()\n"
            "inner = threading.Thread(target=other.run_conversation, args=('inner',))\n"
            "def script(request):\n"
            "    if request.last_user == 'inner':\n"
            "        inside.set()\n"
            "    elif not request.tool_results:\n"
            "        inner.start()\n"
            "        inside.wait(3)\n"
            "    calls = () if request.tool_results else (jot('evil'),)\n"
            "    return Reply('Done.', tool_calls=calls)\n"
            "stage.script = script\n"
            "told = agent.run_conversation('outer')\n"
            "inner.join()\nreturn told",
            how="one turn inside the other",
        ),
        Way(
            "after the provider has failed once",
            "from hermes_ext.testing.model_server import Reply as R\n"
            "failed = []\n"
            "def script(request):\n"
            "    if not failed:\n"
            "        failed.append(1)\n"
            "        return R(status=500)\n"
            "    return R('Done.') if request.tool_results else R(tool_calls=(jot('evil'),))\n"
            "stage.script = script\nreturn agent.run_conversation('go')",
            how="status 500, then a reply",
        ),
    ],
    prologue=_PROLOGUE,
    plugins={"doors": _PLUGIN},
)
