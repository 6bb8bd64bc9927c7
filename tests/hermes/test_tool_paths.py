"""Every path that Hermes has for a tool call leads through the same gate."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]

# What is done with a call is in its arguments, wherever they have text.
JUDGE = (
    HEAD
    + """
import json

@register_hook('transform_user_input')
def put(user_message, state):
    state['mark'] = user_message

@register_hook('intercept_tool_call')
def judge(tool_name, tool_args, state, session_id, turn_id):
    __main__.seen.append([tool_name, tool_args, dict(state), session_id, turn_id])
    text = json.dumps(tool_args)
    if 'block' in text:
        return HookResult.block('not this')
    if 'answer' in text:
        return HookResult.answer('made up')
    if 'rewrite' in text:
        return HookResult.rewrite(json.loads(text.replace('rewrite', 'written anew')))

@register_hook('transform_tool_result')
def result(tool_name, result):
    if tool_name != 'execute_code':
        return HookResult.rewrite('looked at: ' + result)
"""
)


def test_tools_of_the_agent_itself(hermes: HomeFactory) -> None:
    """todo, memory and the like can be blocked, answered and rewritten, alone or in a batch."""
    home = hermes()
    home.extension("judge", JUDGE)
    facts = play(
        home,
        """
        import inspect
        from tools.clarify_tool import clarify_tool
        several = 'questions' in inspect.signature(clarify_tool).parameters  # from 0.21 on
        asked = []
        def person(question, choices=None):
            asked.extend([one['question'] for one in question] if several else [question])
            return {'answers': {}, 'outcome': 'answered'} if several else 'yes'
        agent = stage.agent(
            enabled_toolsets=['todo', 'memory', 'clarify', 'session_search', 'file'],
            clarify_callback=person)
        todo = named(agent, 'todo')
        def calls(text):
            return (
                ToolUse(todo, {'todos': [{'id': text, 'content': text, 'status': 'pending'}]}),
                ToolUse('memory', {'action': 'add', 'target': 'memory', 'content': text + ' fact'}),
                ToolUse('clarify', {'questions': [{'question': text + '?'}]} if several
                        else {'question': text + '?'}),
                ToolUse('session_search', {'query': text}),
                ToolUse('session_search', {'query': text + ' too'}),
            )
        facts = {}
        for text in ('fine', 'block', 'answer', 'rewrite'):
            seen.clear(), asked.clear()
            alone = [stage.use(agent, call)[-1] for call in calls(text)[:3]]
            together = stage.use(agent, *calls(text + ' 2'))
            todos = [item['content'] for item in agent._todo_store.read()]
            facts[text] = [alone, together, todos, asked[:], [one[0] for one in seen]]
        report(**facts, todo=todo)
        """,
        timeout=240,
    )
    memory = "".join(path.read_text() for path in home.home.rglob("MEMORY.md"))
    for text in ("fine", "block", "answer", "rewrite"):
        alone, together, todos, asked, seen = facts[text]
        results = alone + together
        first = [facts["todo"], "memory", "clarify"]
        assert seen == [*first, *first, "session_search", "session_search"]
        if text == "block":
            assert all("[judge] not this" in one for one in results)
        if text == "answer":
            assert [one.split("\n")[0] for one in results] == ["looked at: made up"] * 8
        if text in ("block", "answer"):
            assert (todos, asked, text in memory) == (["fine 2"], [], False)
    assert facts["fine"][2:4] == [["fine 2"], ["fine?", "fine 2?"]]
    assert "fine fact" in memory
    assert facts["rewrite"][2:4] == [["written anew 2"], ["written anew?", "written anew 2?"]]
    assert "written anew fact" in memory
    assert "rewrite" not in memory


def test_the_bridge_of_tool_search(hermes: HomeFactory) -> None:
    """A tool called through the bridge is judged under its own name; the bridge's own are too."""
    home = hermes(config={"tools": {"tool_search": {"enabled": "on"}}})
    home.extension("judge", JUDGE)
    facts = play(
        home,
        """
        from tools import tool_search
        from tools.registry import registry
        names = []
        for n in range(3):
            def run(args, name=f'mcp_far_{n}', **_):
                Path(name + '-' + args['text']).write_text('x')
                return json.dumps({'ran': name})
            names.append(f'mcp_far_{n}')
            registry.register(name=names[-1], toolset='mcp-far', handler=run, schema={
                'name': names[-1], 'description': 'A far tool', 'parameters': {
                    'type': 'object', 'properties': {'text': {'type': 'string'}}}})
        agent = stage.agent(enabled_toolsets=['stage', 'mcp-far'])
        def through(n, text):
            return ToolUse('tool_call', {'name': names[n], 'arguments': {'text': text}})
        facts = {'deferred': sorted(agent.valid_tool_names)}
        from model_tools import handle_function_call
        for text in ('fine', 'block', 'answer', 'rewrite'):
            seen.clear()
            several = [through(n, text) for n in (1, 2)]
            results = [stage.use(agent, call)[-1] for call in (
                through(0, text), ToolUse('tool_search', {'query': 'far ' + text}),
                ToolUse('tool_describe', {'name': names[0], 'why': text}))]
            results += stage.use(agent, *several)
            direct = handle_function_call(
                'tool_call', {'name': names[0], 'arguments': {'text': 'direct ' + text}})
            facts[text] = [results, direct, [one[0] for one in seen]]
        report(**facts)
        """,
        timeout=240,
    )
    assert "tool_call" in facts["deferred"]
    for text in ("fine", "block", "answer", "rewrite"):
        results, direct, seen = facts[text]
        bridge = ["tool_search", "tool_describe"]
        assert seen == ["mcp_far_0", *bridge, "mcp_far_1", "mcp_far_2", "mcp_far_0"]
        for one in (*results, direct):
            if text == "block":
                assert "[judge] not this" in one
            else:
                assert one.startswith("looked at: ")
                assert one.startswith("looked at: made up") == (text == "answer")
    assert sorted(path.name for path in home.project.iterdir()) == sorted(
        f"mcp_far_{n}-{text}"
        for text in ("fine", "written anew")
        for n, text in ((0, text), (1, text), (2, text), (0, f"direct {text}"))
    )


# The judge sees the script too, and would find the words in it.
SCRIPT = """
import json
from hermes_tools import write_file, terminal
names = ("fi", "ne"), ("bl", "ock"), ("ans", "wer"), ("rew", "rite")
told = [write_file(a + b, "x") for a, b in names]
told.append(terminal("touch bl" + "ock-by-shell"))
print(json.dumps(told))
"""


def test_calls_back_from_execute_code(hermes: HomeFactory) -> None:
    """A tool that a script calls back is judged in the turn, with its state."""
    home = hermes()
    home.extension("judge", JUDGE)
    facts = play(
        home,
        """
        agent = stage.agent(enabled_toolsets=['code_execution', 'file', 'terminal'])
        call = ToolUse('execute_code', {'code': SCRIPT})
        result = stage.say(agent, 'first mark', Reply(tool_calls=(call,)))
        report(seen=seen, results=results_of(result), session=agent.session_id)
        """.replace("SCRIPT", repr(SCRIPT)),
    )

    assert sorted(path.name for path in home.project.iterdir()) == ["fine", "written anew"]
    seen = facts["seen"]
    assert [one[0] for one in seen] == ["execute_code"] + ["write_file"] * 4 + ["terminal"]
    assert {json.dumps(one[2]) for one in seen} == {'{"mark": "first mark"}'}
    assert {one[3] for one in seen} == {facts["session"]}
    assert len({one[4] for one in seen}) == 1
    # Newer Hermes tells the errors of tools that a program called a second time.
    output = facts["results"][0].partition('"tool_errors"')[0]
    assert output.count("[judge] not this") == 2
    assert "looked at: made up" in output


WHERE = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def where(tool_name, tool_args, cwd, project_root):
    __main__.seen.append([tool_name, str(cwd), str(project_root)])
    if tool_name == 'write_file' and 'infra' in str(cwd / tool_args['path']):
        return HookResult.block('infra is not for agents')
"""
)


def test_paths_start_where_the_tools_work(hermes: HomeFactory) -> None:
    """After a `cd` in the terminal, and in a folder of an editor's, guards see the right place."""
    home = hermes(git=True)
    home.extension("where", WHERE)
    (home.project / "infra").mkdir()
    other = home.base / "other"
    other.mkdir()
    facts = play(
        home,
        f"""
        from tools.terminal_tool import register_task_env_overrides
        agent = stage.agent(enabled_toolsets=['terminal', 'file'])
        stage.say(agent, 'go', Reply(tool_calls=(ToolUse('terminal', {{'command': 'cd infra'}}),)),
                  Reply(tool_calls=(write('prod.tf'),)), task_id='t1')
        moved, _ = list(seen), seen.clear()
        register_task_env_overrides('t2', {{'cwd': {str(other)!r}}})
        edited = stage.agent(enabled_toolsets=['file'])
        stage.say(edited, 'go', Reply(tool_calls=(write('a.txt'),)), task_id='t2')
        edited_calls, _ = list(seen), seen.clear()
        from model_tools import handle_function_call
        handle_function_call('write_file', {{'path': 'b.txt', 'content': 'x'}}, task_id='t2')
        report(moved=moved, edited=edited_calls, outside=seen)
        """,
    )
    project = str(home.project)
    assert facts["moved"] == [
        ["terminal", project, project],
        ["write_file", str(home.project / "infra"), project],
    ]
    assert list((home.project / "infra").iterdir()) == []
    assert facts["edited"] == [["write_file", str(other), str(other)]]
    assert (other / "a.txt").exists()
    # A call from outside of any turn that names its task starts there too.
    assert facts["outside"] == [["write_file", str(other), str(other)]]
    assert (other / "b.txt").exists()


def test_a_search_that_would_run_programs(hermes: HomeFactory) -> None:
    """An option for the search program in place of a pattern is refused whatever extensions say."""
    home = hermes()
    home.extension("passing", HEAD + "@register_hook('intercept_tool_call')\ndef f():\n    pass\n")
    (home.project / "notes.md").write_text("touch ran-by-search\n")
    facts = play(
        home,
        """
        results = [
            stage.use(stage.agent(), ToolUse('search_files', {'pattern': pattern, 'path': '.'}))[0]
            for pattern in ('--pre=sh', '[-]-pre=sh')
        ]
        report(results=results)
        """,
    )
    assert "[hermes-ext] search_files with pattern" in facts["results"][0]
    assert "hermes-ext" not in facts["results"][1]
    assert not (home.project / "ran-by-search").exists()
