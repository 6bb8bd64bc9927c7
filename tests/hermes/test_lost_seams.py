"""A plugin takes away what a hook needs: the turn is refused, wherever that can still be done."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import pip_plugin
from tests.hermes.surfaces import SURFACES, surface

from hermes_ext.hosts.hermes.home.lost_hooks import lost_hooks
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

GUARD = """\
from hermes_ext import HookResult, register_hook

@register_hook('transform_user_input', guard=True)
def no_secrets(user_message):
    if 'hunter2' in user_message:
        return HookResult.block('no secrets')

@register_hook('before_llm_call', guard=True)
def no_requests(messages):
    return None

@register_hook('intercept_tool_call', guard=True)
def no_writing(tool_name):
    return HookResult.block('no writing')
"""

POLITE = """\
from hermes_ext import HookResult, register_hook

@register_hook('before_llm_call')
def please(messages):
    return HookResult.inject_system('Be polite.')
"""

# Each puts a function of its own in the place of the host's, and calls neither that nor ours.
TAKERS = {
    "turn": """
    from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported

    def take(module):
        from agent import conversation_loop

        def run_conversation(self, user_message, *args, **kwargs):
            return conversation_loop.run_conversation(self, user_message, *args, **kwargs)

        module.AIAgent.run_conversation = run_conversation

    when_imported('run_agent', take)
""",
    "request": """
    import hermes_cli.middleware

    def run_llm_execution_middleware(request, next_call, **context):
        return next_call(request)

    hermes_cli.middleware.run_llm_execution_middleware = run_llm_execution_middleware
""",
    "tool": """
    import hermes_cli.middleware

    def run_tool_execution_middleware(tool_name, args, next_call, **context):
        return next_call(args)

    hermes_cli.middleware.run_tool_execution_middleware = run_tool_execution_middleware
""",
    "dispatch": """
    from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported

    def take(module):
        def dispatch(self, name, args, **kwargs):
            return self.get_entry(name).handler(args, **kwargs)

        module.ToolRegistry.dispatch = dispatch

    when_imported('tools.registry', take)
""",
}
FUNCTIONS = {
    "turn": "run_agent.AIAgent.run_conversation",
    "request": "hermes_cli.middleware.run_llm_execution_middleware",
    "tool": "hermes_cli.middleware.run_tool_execution_middleware",
    "dispatch": "tools.registry.ToolRegistry.dispatch",
}


def without(home: HermesHome, *lost: str) -> None:
    """Give a home a plugin, registered after ours, that takes these functions."""
    taker = "def register(ctx):" + "".join(TAKERS[each] for each in lost)
    # After us in the path, so that it comes last: what is there before us is simply wrapped.
    home.extra_env["PYTHONPATH"] = str(pip_plugin(home, "z_taker", taker))


def terminal(home: HermesHome) -> str:
    """All that the processes of a home have written to their terminals."""
    return "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in sorted((home.base / "runs").iterdir())
    )


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("lost", ["turn", "request", "tool"])
def test_refused_on_every_surface(
    model_factory: ModelFactory, hermes: HomeFactory, name: str, lost: str
) -> None:
    """No request is made; the answer and the terminal say which function is lost, and to whom."""
    model = model_factory(lambda request: Reply("MODEL-WAS-ASKED"))
    home = hermes(model)
    home.extension("g", GUARD)
    without(home, lost)
    with surface(home, name) as say:
        shown = say("hello", FUNCTIONS[lost])
    assert model.main_requests == []
    reason = f"{FUNCTIONS[lost]} was taken by the plugin z_taker"
    assert reason in " ".join(shown.split())  # a terminal breaks its lines
    for command in (["list"], ["info", "g"]):
        told = home.python("from hermes_ext.cli import main; main()", *command)
        assert "Not in force: " in told.stdout
        assert reason in " ".join(told.stdout.split())
    assert re.search(f"^hermes-ext: .*{re.escape(reason)}", terminal(home), re.MULTILINE)


def test_refused_at_the_tools(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """With turns and requests lost each tool call is refused, with the true reason."""
    model = model_factory(
        [Reply(tool_calls=(ToolUse("write_file", {"path": "a", "content": "x"}),)), Reply("Done.")]
    )
    home = hermes(model)
    home.extension("g", GUARD)
    without(home, "turn", "request")
    home.oneshot("hello").check()
    [(_, result)] = model.main_requests[-1].tool_results
    assert f"{FUNCTIONS['turn']} was taken by the plugin z_taker" in result
    assert not (home.project / "a").exists()


# Each goes past what is wrapped in a way that no look at the functions shows.
PAST = {
    "a copy of our attributes": (
        """
    import functools
    from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported

    def take(module):
        from agent import conversation_loop

        @functools.wraps(module.AIAgent.run_conversation)
        def run_conversation(self, user_message, *args, **kwargs):
            return conversation_loop.run_conversation(self, user_message, *args, **kwargs)

        module.AIAgent.run_conversation = run_conversation

    when_imported('run_agent', take)
""",
        "run_agent.AIAgent.run_conversation was taken by the plugin z_taker",
    ),
    "the turn of an agent": (
        """
    import functools
    from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported

    def take(module):
        from agent import conversation_loop
        made = module.AIAgent.__init__

        def init(self, *args, **kwargs):
            made(self, *args, **kwargs)
            self.run_conversation = functools.partial(conversation_loop.run_conversation, self)

        module.AIAgent.__init__ = init

    when_imported('run_agent', take)
""",
        "a turn began past AIAgent.run_conversation, so g did not see the input",
    ),
    "the requests of an agent": (
        """
    from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported

    def take(module):
        ours = module.AIAgent._build_api_kwargs
        made = module.AIAgent.__init__

        def init(self, *args, **kwargs):
            made(self, *args, **kwargs)
            self._build_api_kwargs = lambda *a, **k: ours.__wrapped__(self, *a, **k)

        module.AIAgent.__init__ = init

    when_imported('run_agent', take)
""",
        "a request was made past AIAgent._build_api_kwargs, so g did not see it",
    ),
}


@pytest.mark.parametrize("how", PAST)
def test_gone_past(model_factory: ModelFactory, hermes: HomeFactory, how: str) -> None:
    """A plugin that goes past a wrap without being seen to take it gets no request sent."""
    taker, reason = PAST[how]
    model = model_factory(lambda request: Reply("MODEL-WAS-ASKED"))
    home = hermes(model)
    home.extension("g", GUARD)
    home.extra_env["PYTHONPATH"] = str(pip_plugin(home, "z_taker", f"def register(ctx):{taker}"))
    run = home.oneshot("hello")
    assert model.main_requests == []
    assert reason in run.stdout + run.stderr


@pytest.mark.parametrize("how", ["the turn of an agent", "the requests of an agent"])
def test_gone_past_a_transformer(
    model_factory: ModelFactory, hermes: HomeFactory, how: str
) -> None:
    """Where nothing relies on what a plugin goes past, work goes on, and one line says so."""
    taker, reason = PAST[how]
    model = model_factory(lambda request: Reply("Done."))
    home = hermes(model)
    home.extension("g", POLITE)
    home.extra_env["PYTHONPATH"] = str(pip_plugin(home, "z_taker", f"def register(ctx):{taker}"))
    run = home.oneshot("hello").check()
    assert run.stdout.strip() == "Done."
    assert f"hermes-ext: not in force: {reason}" in run.stderr


def test_nowhere_to_refuse(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """With nothing left at which to refuse, the process prints the reason and ends."""
    model = model_factory(lambda request: Reply("MODEL-WAS-ASKED"))
    home = hermes(model)
    home.extension("g", GUARD)
    without(home, *TAKERS)
    run = home.oneshot("my password is hunter2")
    assert (run.returncode, model.requests) == (1, [])
    [line] = [line for line in run.stderr.splitlines() if line.startswith("hermes-ext: ")]
    assert FUNCTIONS["turn"] in line
    assert line.endswith("Hermes ends here.")


def test_nothing_relies_on_it(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """A hook that only a transformer uses is reported as not in force, and work goes on."""
    model = model_factory(lambda request: Reply("Done."))
    home = hermes(model)
    home.extension("polite", POLITE)
    without(home, "request")
    run = home.oneshot("hello").check()
    assert run.stdout.strip() == "Done."
    reason = f"{FUNCTIONS['request']} was taken by the plugin z_taker"
    assert f"hermes-ext: before_llm_call of polite is not in force: {reason}" in run.stderr
    assert lost_hooks(home.home) == (f"before_llm_call of polite is not in force: {reason}",)
    home.extra_env.clear()  # without the thief nothing is lost, and nothing is kept of it
    home.oneshot("hello").check()
    assert lost_hooks(home.home) == ()


def test_the_own_guard_relies_on_it(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """With only a transformer on, a lost gate of the tools still refuses the turn."""
    model = model_factory(lambda request: Reply("MODEL-WAS-ASKED"))
    home = hermes(model)
    home.extension("polite", POLITE)
    without(home, "request", "tool")
    run = home.oneshot("hello").check()
    assert model.main_requests == []
    assert f"{FUNCTIONS['tool']} was taken by the plugin z_taker" in run.stdout


def test_no_extension_is_on(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Without an extension, nothing is said and nothing is refused."""
    model = model_factory(lambda request: Reply("Done."))
    home = hermes(model)
    without(home, *TAKERS)
    run = home.oneshot("hello").check()
    assert (run.stdout.strip(), run.stderr) == ("Done.", "")
