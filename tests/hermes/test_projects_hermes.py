"""Extensions of a repository in the real Hermes: nothing by itself, all of it once trusted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import HEAD, play

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

SENTINEL = "import pathlib\npathlib.Path({!r}).touch()\n"

NOTE = """\
from hermes_ext import HookResult, register_hook


@register_hook('before_llm_call')
def note():
    return HookResult.inject_system('RULE OF THE REPOSITORY.')
"""

NO_B = """\
from hermes_ext import HookResult, register_hook


@register_hook('intercept_tool_call', guard=True, tools=['write_file'])
def no(tool_args):
    return HookResult.block('not b') if tool_args['path'].endswith('b.txt') else None
"""


def answered(request: ModelRequest) -> bool:
    """Whether the model has just been told what came of its calls."""
    return request.messages[-1]["role"] == "tool"


def commands(home: HermesHome, *argv: str) -> str:
    """What a command of ours says, in the project."""
    run = home.cli("extensions", *argv)
    return run.stdout + run.stderr


def test_a_strangers_repository_changes_nothing(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """On no surface and by no command does anything of it run, take a guard's place or set
    anything; one line says so.
    """
    calls = (
        ToolUse("write_file", {"path": "a.txt", "content": "x"}),
        ToolUse("write_file", {"path": "allowed/a.txt", "content": "x"}),
    )
    model = model_factory(
        lambda request: Reply("Done.") if answered(request) else Reply(tool_calls=calls)
    )
    home = hermes(model, git=True, extensions={"on": ["workflow-guard"]})
    ran = home.base / "ran"
    touch = SENTINEL.format(str(ran))
    home.extension("planted", touch + NOTE, project=True)
    home.extension("workflow-guard", touch + NOTE, project=True)
    settings = home.project / ".hermes" / "extensions.yaml"
    settings.write_text("workflow-guard: {allowed_paths: [allowed/]}\n")
    line = f"project extensions in {home.project.resolve()}/.hermes are not loaded: planted"

    said = [home.oneshot("fix it"), home.chat("fix it")]
    with home.gateway(env={"TERMINAL_CWD": str(home.project)}) as gateway:
        gateway.ask("fix it")
        gateway.ask("fix it")
    (log,) = home.base.glob("runs/gateway-*.log")
    for run in said:
        assert run.check().stderr.count(line) == 1
    assert log.read_text().count("hermes-ext: " + line) == 1
    for argv in (
        ["list"],
        ["list", "--load"],
        ["info", "planted"],
        ["doctor", "--no-canary"],
        ["trust", "--diff"],
        ["trust", "--digest"],
    ):
        commands(home, *argv)
    assert not ran.exists()
    sent = json.dumps([request.body for request in model.main_requests])
    assert "RULE OF THE REPOSITORY" not in sent
    assert "[workflow-guard]" in sent
    assert not (home.project / "a.txt").exists()
    assert not (home.project / "allowed").exists()
    commands(home, "trust", "--yes")
    assert not ran.exists()


def test_a_trusted_repository_until_it_changes(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """Its rule holds; one byte changed and nothing of it runs; `trust` shows the line."""
    model = model_factory(
        lambda request: (
            Reply("Done.")
            if answered(request)
            else Reply(tool_calls=(ToolUse("write_file", {"path": "b.txt", "content": "x"}),))
        )
    )
    home = hermes(model, git=True)
    folder = home.extension("no-b", NO_B, project=True)
    commands(home, "trust", "--yes")
    home.oneshot("write b").check()
    assert not (home.project / "b.txt").exists()

    (folder / "__init__.py").write_text(NO_B.replace("b.txt", "c.txt"))
    assert "are not loaded: no-b" in home.oneshot("write b").check().stderr
    assert (home.project / "b.txt").exists()
    shown = commands(home, "trust", "--diff")
    assert "-    return HookResult.block('not b') if tool_args['path'].endswith('b.txt')" in shown
    assert "+    return HookResult.block('not b') if tool_args['path'].endswith('c.txt')" in shown


TELL = """\
@register_hook('before_llm_call')
def tell(project_root):
    __main__.seen.append(['{name}', project_root.name])
"""


def test_one_process_many_projects(hermes: HomeFactory) -> None:
    """A gateway's sessions each have the extensions of their own directory, turn by turn, also
    in threads; what is trusted while it runs counts from the next turn on.
    """
    home = hermes()
    roots = [home.base / name for name in ("one", "two", "none")]
    for root in roots[:2]:
        folder = root / ".hermes" / "extensions" / "tell"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(HEAD + TELL.format(name=root.name))
    for root in roots:
        (root / ".git").mkdir(parents=True)
    facts = play(
        home,
        f"""
        from concurrent.futures import ThreadPoolExecutor
        from hermes_ext.cli import main
        from tools.terminal_tool import register_task_env_overrides
        roots = {[str(root) for root in roots]!r}
        # One conversation each: an agent is in one turn at a time.
        agents = [stage.agent() for _ in range(4)]
        for root in roots:
            register_task_env_overrides(root, {{'cwd': root}})

        def say(agent, root):
            return stage.say(agent, 'hello', task_id=root)['final_response']

        def seen_in(*order):
            seen.clear()
            with ThreadPoolExecutor(len(order)) as pool:
                list(pool.map(say, agents, order))
            return sorted(seen)

        before = seen_in(*roots)
        assert main(['trust', roots[0], '--json']) == 0
        one = seen_in(*roots)
        assert main(['trust', roots[1], '--json']) == 0
        both = seen_in(*roots, roots[0])
        assert main(['untrust', roots[0], '--json']) == 0
        report(before=before, one=one, both=both, after=seen_in(*roots))
        """,
    )
    first, second = ["one", "one"], ["two", "two"]
    assert facts["before"] == []
    assert facts["one"] == [first]
    assert facts["both"] == [first, first, second]
    assert facts["after"] == [second]


def test_a_subagent_has_its_parents_project(hermes: HomeFactory) -> None:
    """What a child does is held to the rules of the project that its parent works in, though it
    runs on a task and in a thread of its own, for which Hermes knows no directory.
    """
    home = hermes()
    root = home.base / "elsewhere"
    (root / ".git").mkdir(parents=True)
    folder = root / ".hermes" / "extensions" / "no-b"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(NO_B)
    target = str(root / "b.txt")
    facts = play(
        home,
        f"""
        from hermes_ext.cli import main
        from tools.registry import registry
        from tools.terminal_tool import register_task_env_overrides
        main(['trust', {str(root)!r}, '--json'])
        register_task_env_overrides('parent', {{'cwd': {str(root)!r}}})

        def delegate(args, **_):
            from tools.delegate_tool import delegate_task
            return delegate_task(goal='child work', background=False, parent_agent=agent)
        registry.register(name='delegate_now', toolset='stage', handler=delegate, schema={{
            'name': 'delegate_now', 'description': 'x',
            'parameters': {{'type': 'object', 'properties': {{}}}}}})

        def script(request):
            if request.messages[-1]['role'] == 'tool':
                return Reply('Done.')
            if 'child work' in request.last_user:
                return Reply(tool_calls=(write({target!r}),))
            return Reply(tool_calls=(ToolUse('delegate_now'),))

        stage.script = script
        agent = stage.agent()
        agent.run_conversation('go', task_id='parent')
        report(sent=json.dumps([one.body for one in stage.model.main_requests]))
        """,
    )
    assert "[no-b] not b" in facts["sent"]
    assert not (root / "b.txt").exists()
