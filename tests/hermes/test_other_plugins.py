"""Beside other plugins: no leave lifts a block, and every handler and observer is told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, evaluated_last, pip_plugin, play, plugin

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]

# Verdicts by the text of the call; every judgement is noted.
JUDGE = (
    HEAD
    + """
@register_hook('intercept_tool_call')
def judge(tool_name, tool_args):
    text = tool_args.get('text') or tool_args.get('path') or tool_args.get('query') or ''
    __main__.seen.append(['judge', tool_name, text])
    if 'block' in text:
        return HookResult.block('not this')
    if 'answer' in text:
        return HookResult.answer('made up')
    if 'rewrite' in text and 'rewritten' not in text:
        key = 'text' if 'text' in tool_args else 'path'
        return HookResult.rewrite({**tool_args, key: 'rewritten'})

@register_hook('intercept_tool_call', guard=True)
def look(tool_name, tool_args):
    text = tool_args.get('text') or tool_args.get('path') or tool_args.get('query') or ''
    __main__.seen.append(['look', tool_name, text])

@register_hook('transform_tool_result')
def result(tool_name, result):
    __main__.seen.append(['result', tool_name, result])
    return HookResult.rewrite(result.replace('hush', '----'))
"""
)

# Uses every tool hook of Hermes; `__main__.says` is what pre_tool_call returns.
NEIGHBOUR = """
import __main__

def note(kind):
    def handler(tool_name, args, **context):
        text = args.get('text') or args.get('path') or args.get('query') or ''
        __main__.seen.append([kind, tool_name, text, context.get('status')])
        if kind == 'pre' and getattr(__main__, 'says', None):
            return __main__.says()
    return handler

def execution(tool_name, args, next_call, **context):
    __main__.seen.append(['execution', tool_name, args.get('text') or args.get('path') or '', None])
    if getattr(__main__, 'instead', None):
        return __main__.instead
    return next_call(args)

def register(ctx):
    ctx.register_hook('pre_tool_call', note('pre'))
    ctx.register_hook('post_tool_call', note('post'))
    ctx.register_middleware('tool_request', note('request'))
    ctx.register_middleware('tool_execution', execution)
"""


def test_approval_and_blocks_of_others(hermes: HomeFactory) -> None:
    """A plugin's `approve` never lifts our block, and our pass never lifts a plugin's block."""
    home = hermes()
    home.extension("judge", JUDGE)
    plugin(home, "neighbour", NEIGHBOUR)
    facts = play(
        home,
        """
        from tools.terminal_tool import set_approval_callback
        asked = []
        set_approval_callback(lambda command, text, **_: asked.append(text) or 'once')
        def raising():
            raise RuntimeError('broken plugin')
        answers = {
            'approve': lambda: {'action': 'approve', 'message': 'sure?', 'rule_key': 'k'},
            'block': lambda: {'action': 'block', 'message': 'theirs'},
            'raising': raising,
            'garbage': lambda: ['Block', object()],
        }
        agent = stage.agent()
        facts = {}
        for name, says in answers.items():
            facts[name] = [stage.use(agent, jot('fine'), jot('block')), stage.jots]
        from tools import approval
        gate = hasattr(approval, 'request_tool_approval')
        import hermes_cli.plugins
        # Newer Hermes takes a plugin's error for a block.
        fine = [] if 'hermes_cli.plugins_dispatch' in sys.modules else ['fine 1']
        report(facts=facts, asked=asked, gate=gate, fine_if_raising=fine)
        """,
        HERMES_INTERACTIVE="1",
    )
    outcomes = facts["facts"]
    for name in ("approve", "raising", "garbage"):
        results, jots = outcomes[name]
        assert jots == (facts["fine_if_raising"] if name == "raising" else ["fine 1"]), name
        assert "[judge] not this" in results[1], name
    assert bool(facts["asked"]) == facts["gate"]
    results, jots = outcomes["block"]
    assert jots == []
    assert "theirs" in results[0]


@pytest.mark.parametrize("kind", ["folder", "package"])
def test_everybody_is_told_once(hermes: HomeFactory, kind: str) -> None:
    """One call is evaluated and reported once: run, blocked, rewritten, answered or unknown."""
    home = hermes()
    home.extension("judge", JUDGE)
    later = [pip_plugin(home, "neighbour", NEIGHBOUR)] if kind == "package" else []
    if kind == "folder":
        plugin(home, "neighbour", NEIGHBOUR)
    facts = play(
        home,
        """
        agent = stage.agent(enabled_toolsets=['stage', 'file', 'todo', 'session_search'])
        texts = ('fine', 'block', 'rewrite', 'answer')
        facts = {}
        for path in ('alone', 'together'):
            seen.clear()
            if path == 'alone':
                results = stage.use(agent, *[jot(text) for text in texts])
            else:
                searches = [ToolUse('session_search', {'query': text}) for text in texts]
                results = stage.use(agent, *[write(text) for text in texts], *searches)
            facts[path] = [seen[:], results]
        seen.clear()
        facts['unknown'] = [seen, stage.use(agent, ToolUse('no_such_tool', {'text': 'x'}))]
        report(**facts)
        """,
        later=later,
    )
    assert sorted(path.name for path in home.project.iterdir() if path.name != "jots") == [
        "fine",
        "rewritten",
    ]
    for path, tools in (("alone", ["jot"]), ("together", ["write_file", "session_search"])):
        seen, results = facts[path]
        for tool in tools:
            told = Counter((kind, text) for kind, name, text, *_ in seen if name == tool)
            for text in ("fine", "block", "answer"):
                assert told["request", text] == told["judge", text] == 1, (tool, text)
                asked = text == "fine" or not evaluated_last()
                assert (told["pre", text], told["post", text]) == (asked, 1), (tool, text)
            assert told["look", "fine"] == 1
            statuses = {
                text: status
                for kind, name, text, status, *_ in ((*one, None) for one in seen)
                if kind == "post" and name == tool
            }
            assert statuses["block"] == ("error" if evaluated_last() else "blocked")
            assert statuses["answer"] == "ok"
        writes = Counter((kind, text) for kind, name, text, *_ in seen if name == tools[0])
        assert writes["request", "rewrite"] == writes["judge", "rewrite"] == 1
        for kind_ in ("look", "pre", "post"):
            assert (writes[kind_, "rewritten"], writes[kind_, "rewrite"]) == (1, 0)
        assert "made up" in results[3]
        assert sum(one[0] == "result" for one in seen) == len(results) - len(tools)
    unknown, results = facts["unknown"]
    assert [one for one in unknown if one[0] in ("judge", "look", "result")] == []
    assert "no_such_tool" in results[0]


def test_results_of_a_plugin_that_runs_nothing(hermes: HomeFactory) -> None:
    """A result made up by a plugin's middleware is looked at, and never replaces our answer."""
    home = hermes()
    home.extension("judge", JUDGE)
    plugin(home, "neighbour", NEIGHBOUR)
    facts = play(
        home,
        """
        agent = stage.agent()
        instead = 'cached: hush hush'
        calls = [jot('fine'), jot('answer'), write('a'), write('b'), write('block')]
        results = stage.use(agent, *calls)
        report(results=results, jots=stage.jots)
        """,
    )
    results = facts["results"]
    assert facts["jots"] == []
    assert [results[place] for place in (0, 2, 3)] == ["cached: ---- ----"] * 3
    assert results[1] == "made up"
    assert "[judge] not this" in results[4]
    assert list(home.project.iterdir()) == []
