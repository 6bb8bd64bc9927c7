"""Order, matching and failures of a set of handlers."""

from __future__ import annotations

import functools
import random

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler

from hermes_ext import HookResult, ToolCall
from hermes_ext.chain.fold import run
from hermes_ext.chain.manager import HookManager
from hermes_ext.exceptions import OrderCycleError
from hermes_ext.hooks.registration import build_handlers, registrations_of
from hermes_ext.hooks.source import Source

HOOK = "intercept_tool_call"


def passing(tool_name):
    return None


def names(manager, hook=HOOK):
    return [row.extension for row in manager.order(hook)]


class TestOrder:
    """Lower priority first; ties by source, name and registration."""

    def test_priorities(self):
        """The order is the same for every order of loading."""
        handlers = [
            handler(passing, extension=name, priority=priority)
            for name, priority in [
                ("b", 10),
                ("a", 10),
                ("five", 5),
                ("minus", -1),
                ("hundred", 100),
                ("huge", 10**9),
            ]
        ] + [handler(passing, extension="default")]
        shuffler = random.Random(64)
        for _ in range(100):
            shuffler.shuffle(handlers)
            assert names(HookManager(handlers)) == [
                "minus",
                "five",
                "a",
                "b",
                "default",
                "hundred",
                "huge",
            ]

    def test_ties_by_source_then_name(self):
        """Bundled, entry point, global, project; then the extension's name."""
        handlers = [
            handler(passing, extension=name, source=source)
            for name, source in [
                ("z", Source.BUNDLED),
                ("b", Source.PROJECT),
                ("a", Source.PROJECT),
                ("y", Source.ENTRY_POINT),
                ("x", Source.GLOBAL),
            ]
        ]
        assert names(HookManager(handlers)) == ["z", "y", "x", "a", "b"]

    def test_ties_within_an_extension(self):
        """The order of registration decides last."""

        def one(tool_name): ...
        def two(tool_name): ...

        from hermes_ext import register_hook

        for function in (two, one):
            register_hook(HOOK)(function)
        built = build_handlers("e", [*registrations_of(two), *registrations_of(one)])
        rows = HookManager(reversed(built)).order(HOOK)
        assert [row.handler.rpartition(".")[2] for row in rows] == ["two", "one"]

    def test_guards_come_last(self):
        """No priority brings a guard before a transformer."""
        manager = HookManager(
            [
                handler(passing, extension="guard", guard=True, priority=-100),
                handler(passing, extension="transformer", priority=100),
            ]
        )
        assert names(manager) == ["transformer", "guard"]

    def test_before_and_after_win_over_priority(self):
        """Named extensions decide, absent names are ignored, and the rest keeps its order."""
        manager = HookManager(
            [
                handler(passing, extension="a", priority=1, after=["c", "absent"]),
                handler(passing, extension="b", priority=2),
                handler(passing, extension="c", priority=3),
                handler(passing, extension="d", priority=4, before=["b"]),
            ]
        )
        assert names(manager) == ["c", "a", "d", "b"]

    def test_a_cycle_names_its_members(self):
        """Contradicting wishes are an error that says who goes round, and nobody else."""
        with pytest.raises(OrderCycleError, match="circle") as caught:
            HookManager(
                [
                    handler(passing, extension="a", before=["b"]),
                    handler(passing, extension="b", before=["c"]),
                    handler(passing, extension="c", before=["a"]),
                    handler(passing, extension="d", after=["a"]),
                    handler(passing, extension="e"),
                ]
            )
        assert sorted(caught.value.members) == ["a", "b", "c"]
        text = str(caught.value)
        assert HOOK in text
        assert text.count("before") >= 3

    def test_a_wish_across_phases_is_no_cycle(self):
        """Guards run after transformers whatever they wish, so that no wish can contradict it."""
        manager = HookManager(
            [
                handler(passing, extension="g", guard=True, before=["t"]),
                handler(passing, extension="t", before=["g"]),
            ]
        )
        assert names(manager) == ["t", "g"]

    def test_the_order_is_explained(self):
        """Each row says why it stands where it stands."""
        rows = HookManager(
            [
                handler(passing, extension="a", priority=1, after=["c", "absent"]),
                handler(passing, extension="c", priority=3),
                handler(passing, extension="d", priority=3, source=Source.PROJECT),
                handler(passing, extension="g", guard=True),
            ]
        ).order(HOOK)
        assert [(row.position, row.extension, row.guard, row.why) for row in rows] == [
            (1, "c", False, "priority 3; ties by source: global"),
            (2, "a", False, "priority 1; after c"),
            (3, "d", False, "priority 3; ties by source: project"),
            (4, "g", True, "priority 100"),
        ]
        assert [row.source for row in rows] == ["global", "global", "project", "global"]


class TestMatching:
    """`tools=` and `origins=`."""

    @pytest.mark.parametrize(
        ("tool", "called"),
        [
            ("terminal", True),
            (" Terminal ", True),
            ("TERMINAL", True),
            ("terminal\n", True),
            ("mcp_github_push", True),
            ("Mcp_x", True),
            ("mcp", False),
            ("read_file", False),
            ("readread", False),
            ("my terminal", False),
            ("", False),
            (None, False),
        ],
        ids=repr,
    )
    def test_tools(self, tool, called):
        """Names and globs match whatever the case and the spaces around."""
        seen = []

        def look(tool_name):
            seen.append(tool_name)

        one = handler(look, tools=["Terminal", "mcp_*"])
        run(HookManager([one]).chain(HOOK, tool), ToolCall(tool or "", {}), SCOPE)
        assert bool(seen) is called

    def test_what_does_not_match_can_not_fail(self):
        """A broken handler for other tools closes nothing."""

        def broken(tool_name):
            raise ValueError

        outcome = run(
            chain(handler(broken, tools=["other"]), handler(passing)), EVENTS[HOOK], SCOPE
        )
        assert outcome.errors == ()

    @pytest.mark.parametrize("tool", ["mcp_git_hub_push", "mcp__git_hub__push"])
    @pytest.mark.parametrize("pattern", ["mcp_git_hub_*", "mcp__git_hub__*", "mcp_*_push"])
    def test_a_tool_of_a_server_in_any_hermes(self, tool, pattern):
        """A pattern for a server's tools holds whichever way this Hermes separates the names."""
        one = handler(passing, tools=[pattern])
        assert HookManager([one]).chain(HOOK, tool)

    def test_spaces_in_a_pattern(self):
        """A name with a space inside is the same with an underscore."""
        one = handler(passing, tools=["write file"])
        assert HookManager([one]).chain(HOOK, "Write_File")

    def test_chains_are_kept_by_tool_and_bounded(self):
        """The same tool gets the same chain; a flood of invented names does not fill memory."""
        manager = HookManager([handler(passing)])
        assert manager.chain(HOOK, "terminal") is manager.chain(HOOK, "terminal")
        for number in range(5000):
            manager.chain(HOOK, f"invented_{number}")
        assert len(manager.chains) <= 512

    @pytest.mark.parametrize(
        ("hook", "origins", "origin", "called"),
        [
            ("transform_user_input", None, "user", True),
            ("transform_user_input", None, "cron", True),
            ("transform_user_input", None, "background", False),
            ("transform_user_input", ["background"], "background", True),
            ("transform_user_input", ["background"], "user", False),
            (HOOK, None, "background", True),
            ("before_llm_call", None, "background", True),
            (HOOK, ["cron", "api"], "cron", True),
            (HOOK, ["cron", "api"], "user", False),
        ],
    )
    def test_origins(self, hook, origins, origin, called):
        """A handler is for the origins it names; input of background reviews is opt-in."""

        def look(session_id):
            return None

        one = handler(look, hook, origins=origins)
        assert bool(HookManager([one]).chain(hook, "t", origin)) is called

    def test_has(self):
        """A host can skip a hook that nobody is registered for."""
        manager = HookManager([handler(passing)])
        assert manager.has(HOOK)
        assert not manager.has("before_llm_call")


class TestFailures:
    """Failures are readable by programs."""

    def failing(self, manager):
        for _ in range(3):
            run(manager.chain(HOOK, "terminal"), EVENTS[HOOK], SCOPE)
        return manager.failures

    def test_they_are_counted(self):
        """Extension, hook, type, count and time can be read, and nothing of the error's text."""

        def fail(tool_name):
            raise PermissionError("the password is 1234")

        manager = HookManager([handler(fail, extension="bad"), handler(passing, extension="good")])
        (row,) = self.failing(manager)
        assert (row.extension, row.hook, row.count, row.in_a_row) == ("bad", HOOK, 3, 3)
        assert (row.last_kind, row.last_type) == ("exception", "PermissionError")
        assert row.last_time > 0
        assert not row.suspended
        assert "1234" not in repr(row)

    def test_kinds(self):
        """An invalid result is told apart from an exception."""
        (row,) = self.failing(HookManager([handler(lambda tool_name: "block")]))
        assert (row.last_kind, row.last_type) == ("invalid-result", "invalid-result")

    def test_counts_survive_a_reload(self):
        """A new manager goes on counting; a suspended handler gets a new chance."""

        def fail(tool_name):
            raise ValueError

        manager = HookManager([handler(fail, on_error="pass")])
        self.failing(manager)
        self.failing(manager)
        assert manager.failures[0].suspended
        after = HookManager([handler(fail, on_error="pass")], previous=manager)
        assert (after.failures[0].count, after.failures[0].suspended) == (5, False)
        (row,) = self.failing(after)
        assert (row.count, row.in_a_row) == (8, 3)

    def test_nothing_failed(self):
        """Without failures there are no rows."""
        assert HookManager([handler(passing)]).failures == ()


class TestPluggy:
    """pluggy knows the hooks and the handlers."""

    def test_extensions_are_plugins(self):
        """Each extension is registered once, with all its handlers, of whatever kind."""

        class Guard:
            def __call__(self, tool_name):
                return None

            def check(self, tool_name):
                return None

        functions = [passing, Guard(), Guard().check, functools.partial(passing)]
        handlers = [handler(function, extension="one") for function in functions]
        plugins = HookManager([*handlers, handler(passing, extension="two")]).plugins
        assert [name for name, _ in plugins.list_name_plugin()] == ["one", "two"]
        implementations = plugins.hook.intercept_tool_call.get_hookimpls()
        assert [one.plugin_name for one in implementations] == ["one"] * 4 + ["two"]

    def test_the_specs_have_exactly_the_arguments(self):
        """What a spec documents is what a handler may name."""
        from hermes_ext.hooks.table import TABLE, HookName

        hooks = HookManager().plugins.hook
        for hook in HookName:
            caller = getattr(hooks, hook.value)
            assert set(caller.spec.argnames) == set(TABLE[hook].names)
            assert caller.spec.function.__doc__


def test_a_guard_on_one_tool_does_not_slow_the_others():
    """A chain holds only what matches its tool."""
    handlers = [handler(passing, tools=[f"tool_{number}"]) for number in range(200)]
    manager = HookManager([*handlers, handler(passing), handler(passing)])
    assert len(manager.chain(HOOK, "terminal").handlers) == 2
    outcome = run(manager.chain(HOOK, "tool_7"), ToolCall("tool_7", {}), SCOPE)
    assert len(outcome.steps) == 3
    assert HookResult.pass_().action is outcome.action


def test_pluggy_takes_every_handler_that_was_built():
    """What our own check of signatures lets through, it does not refuse."""
    import functools

    from hermes_ext.hooks.registration import Registration, build_handlers, marks_of, register_hook

    class Callable_:
        def __call__(self, tool_name):
            return None

    class Methods:
        @register_hook("intercept_tool_call")
        def judge(self, tool_name, tool_args):
            return None

    def plain(tool_name):
        return None

    def optional(tool_name, model=None, *, cwd=None):
        return None

    def everything(**kwargs):
        return None

    @functools.wraps(plain)
    def wrapped(*args, **kwargs):
        return plain(*args, **kwargs)

    functions = [plain, optional, everything, wrapped, functools.partial(optional, model="x")]
    functions += [Callable_(), lambda event: None]
    registrations = []
    for function in functions:
        marked = register_hook("intercept_tool_call")(function)
        registrations.append(Registration(marked, marks_of(marked)[-1]))
    bound = Methods().judge
    registrations.append(Registration(bound, marks_of(bound)[0]))
    manager = HookManager(build_handlers("all-kinds", registrations))
    implementations = manager.plugins.hook.intercept_tool_call.get_hookimpls()
    assert len(implementations) == len(registrations)
