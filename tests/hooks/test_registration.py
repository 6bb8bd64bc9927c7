"""Marking, collecting and building handlers: mistakes are errors where they are made."""

from __future__ import annotations

import functools
import sys
import types
from pathlib import Path

import pluggy
import pytest

from hermes_ext import HookResult, hookimpl, register_hook
from hermes_ext.exceptions import RegistrationError
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.registration import (
    Registration,
    build_handlers,
    collecting,
    marks_of,
    near_misses,
    registrations_of,
)
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import HookName


def build(*functions, **options) -> tuple[Handler, ...]:
    registrations = [one for function in functions for one in registrations_of(function)]
    return build_handlers("my-ext", registrations, **options)


@pytest.fixture
def module_of(tmp_path):
    """Makes a module from source text."""
    made = []

    def make(source: str, name: str = "guard_module") -> types.ModuleType:
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        module = types.ModuleType(name)
        module.__file__ = str(file)
        sys.modules[name] = module
        made.append(name)
        exec(compile(source, str(file), "exec"), vars(module))
        return module

    yield make
    for name in made:
        del sys.modules[name]


def test_the_function_is_returned_unchanged():
    """The decorator marks and returns the very function, so that it can be tested as it is."""

    def handler(tool_name):
        return HookResult.block(tool_name)

    assert register_hook("intercept_tool_call", priority=10)(handler) is handler
    assert handler("x") == HookResult.block("x")
    (mark,) = marks_of(handler)
    assert (mark.hook, mark.priority) == ("intercept_tool_call", 10)


def test_several_hooks_on_one_function():
    """Stacked decorators register the function for each of the hooks."""

    @register_hook("intercept_tool_call")
    @register_hook("transform_tool_result", priority=3)
    def handler(tool_name):
        return None

    assert [one.hook for one in build(handler)] == ["transform_tool_result", "intercept_tool_call"]


def test_the_feature_requests_own_lines_register():
    """The handler of the feature request is accepted as it stands."""

    @register_hook("transform_user_input", priority=10)
    def my_input_hook(user_message, **kwargs):
        return HookResult("rewrite", f"/start-feature {user_message}")

    (handler,) = build(my_input_hook)
    assert handler.wants[0] == "user_message"
    assert "session_id" in handler.wants


@pytest.mark.parametrize(
    ("hook", "meant"),
    [
        ("intercept_toolcall", "intercept_tool_call"),
        ("Before_LLM_Call", "before_llm_call"),
        ("transform_input", "transform_user_input"),
        ("on_session_start", "transform_user_input, before_llm_call"),
        (None, "transform_user_input, before_llm_call"),
        (5, "transform_user_input, before_llm_call"),
    ],
)
def test_an_unknown_hook_raises_when_decorating(hook, meant):
    """A misspelt hook is an error with a did-you-mean, before any function is seen."""
    with pytest.raises(RegistrationError, match=meant):
        register_hook(hook)


def test_a_forgotten_name_is_explained():
    """`@register_hook` without the hook's name says how to write it."""
    with pytest.raises(RegistrationError, match="needs the hook's name"):
        register_hook(lambda tool_name: None)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("priority", "10", "'10' is not an int"),
        ("priority", 1.5, "1.5 is not an int"),
        ("priority", True, "True is not an int"),
        ("priority", None, "None is not an int"),
        ("tools", "terminal", r"Use a list: tools=\['terminal'\]"),
        ("tools", [], "never be called"),
        ("tools", [5], "not a list of names"),
        ("tools", [""], "not a list of names"),
        ("tools", {"terminal"}, "not a list of names"),
        ("before", "other", r"Use a list: before=\['other'\]"),
        ("after", [None], "not a list of names"),
        ("guard", 1, "1 is not a bool"),
        ("guard", "yes", "'yes' is not a bool"),
        ("origins", ["cronn"], "Did you mean 'cron'"),
        ("origins", "cron", r"origins=\['cron'\]"),
        ("origins", [], "never be called"),
        ("on_error", "ignore", "'pass', 'block' or 'ask'"),
        ("on_error", True, "'pass', 'block' or 'ask'"),
        ("timeout", -1, "number of seconds"),
        ("timeout", "5", "number of seconds"),
        ("timeout", True, "number of seconds"),
        ("timeout", float("nan"), "number of seconds"),
        ("timeout", float("inf"), "number of seconds"),
        ("prioritty", 5, "Did you mean 'priority'"),
        ("tryfirst", True, "priority="),
        ("hookwrapper", True, "guard"),
    ],
)
def test_a_bad_option_raises_when_decorating(option, value, told):
    """Each option is checked, and the message says what to write instead."""
    with pytest.raises(RegistrationError, match=told) as caught:
        register_hook("intercept_tool_call", **{option: value})
    assert option in str(caught.value)


@pytest.mark.parametrize("priority", [10**9, -(10**9), 0, -1])
def test_any_int_is_a_priority(priority):
    """Priorities have no bounds."""
    register_hook("intercept_tool_call", priority=priority)


@pytest.mark.parametrize("hook", ["transform_user_input", "before_llm_call"])
@pytest.mark.parametrize("option", [{"tools": ["terminal"]}, {"on_error": "ask"}], ids=str)
def test_options_of_tool_calls_belong_to_them(hook, option):
    """`tools=` and asking on failure are refused where there is no tool call."""
    with pytest.raises(RegistrationError, match=r"tool hooks|intercept_tool_call only"):
        register_hook(hook, **option)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: lambda tool_nmae: None, "Did you mean 'tool_name'"),
        (lambda: lambda ctx: None, "There are tool_name, tool_args"),
        (lambda: lambda tool_nmae=None: None, "'tool_nmae'"),
        (lambda: lambda *args: None, r"\*args"),
        (lambda: lambda user_message: None, "does not have"),
        (lambda: lambda tool_name, /: None, "remove the '/'"),
        (lambda: dict, "is a class"),
        (lambda: 5, "must be a function, got int"),
        (lambda: print, r"print"),
    ],
    ids=["typo", "other", "default", "varargs", "hook", "position", "class", "int", "builtin"],
)
def test_a_function_that_cannot_be_called_is_refused(make, told):
    """A wrong or unknown parameter is refused where the function is decorated."""
    with pytest.raises(RegistrationError, match=told) as caught:
        register_hook("intercept_tool_call")(make())
    assert caught.value.hook == "intercept_tool_call"


def test_a_refusal_says_where():
    """The message names the file and the line of the function."""

    def handler(wrong):
        return None

    with pytest.raises(RegistrationError) as caught:
        register_hook("intercept_tool_call")(handler)
    assert caught.value.path == Path(__file__)
    assert caught.value.line == handler.__code__.co_firstlineno
    assert f"{Path(__file__).name}:{caught.value.line}" in str(caught.value)


def test_a_generator_is_refused():
    """A function with `yield` in it would decide nothing when it is called."""

    def handler(tool_name):
        yield HookResult.block("no")

    async def other(tool_name):
        yield HookResult.block("no")

    for function in (handler, other, functools.partial(handler)):
        with pytest.raises(RegistrationError, match="generator"):
            register_hook("intercept_tool_call")(function)


def test_private_parameters_with_defaults_are_the_authors_own():
    """`_cache={}` is no argument of the hook and is left alone."""

    @register_hook("intercept_tool_call")
    def handler(tool_name, _cache={}):  # noqa: B006 - the idiom under test
        return None

    (built,) = build(handler)
    assert built.wants == ("tool_name",)


def test_all_kinds_of_callables():
    """Methods, partials, callable objects and wrapped functions can be handlers."""

    class Guard:
        def check(self, tool_name):
            return HookResult.block(f"check {tool_name}")

        def __call__(self, tool_name):
            return HookResult.block(f"call {tool_name}")

    def plain(tool_name, config):
        return HookResult.block(f"{config} {tool_name}")

    @functools.wraps(plain)
    def wrapper(**arguments):
        return plain(**arguments)

    functions = [Guard().check, Guard(), functools.partial(plain, config="mine"), wrapper]
    for function in functions:
        register_hook("intercept_tool_call")(function)
    registrations = [Registration(one, marks_of(one)[0]) for one in functions]
    handlers = build_handlers("e", registrations, config="theirs")

    assert [sorted(handler.wants) for handler in handlers] == [
        ["tool_name"],
        ["tool_name"],
        ["tool_name"],
        ["config", "tool_name"],
    ]
    assert [handler.name.rpartition(".")[2] for handler in handlers] == [
        "check",
        "Guard",
        "plain",
        "plain",
    ]


def test_hookimpl_takes_the_functions_name():
    """For people who know pluggy: bare, and with options."""

    @hookimpl
    def intercept_tool_call(tool_name):
        return None

    @hookimpl(priority=5, guard=True)
    def before_llm_call(system_prompt):
        return None

    first, second = build(intercept_tool_call, before_llm_call)
    assert (first.hook, first.guard) == ("intercept_tool_call", False)
    assert (second.hook, second.priority, second.guard) == ("before_llm_call", 5, True)


@pytest.mark.parametrize(
    "option", ["tryfirst", "trylast", "hookwrapper", "wrapper", "optionalhook", "specname"]
)
def test_pluggys_own_options_are_refused(option):
    """The chain would silently drop wrappers and tryfirst; what to use instead is said."""
    with pytest.raises(RegistrationError, match=f"{option}.*not supported"):
        hookimpl(**{option: True})


def test_a_misnamed_hookimpl_is_refused():
    """`hookimpl` on a function that bears no hook's name is an error with a did-you-mean."""
    with pytest.raises(RegistrationError, match="Did you mean 'before_llm_call'"):

        @hookimpl
        def before_llm_cal(system_prompt):
            return None


class TestCollecting:
    """While an extension loads, what it registers is added to it."""

    def test_only_while_loading(self):
        """Outside of loading the decorator only marks."""

        def handler(tool_name):
            return None

        with collecting() as collected:
            register_hook("intercept_tool_call")(handler)
        register_hook("intercept_tool_call", priority=5)(handler)
        assert [one.mark.priority for one in collected] == [100]

    def test_methods_are_bound_to_the_modules_instance(self, module_of):
        """A class with marked methods counts once an instance of it stands in the module."""
        with collecting() as collected:
            module_of(
                "from hermes_ext import HookResult, hookimpl\n"
                "class Plugin:\n"
                "    @hookimpl\n"
                "    def intercept_tool_call(self, tool_name):\n"
                "        return HookResult.block(self.text)\n"
                "plugin = Plugin()\n"
                "plugin.text = 'mine'\n"
            )
        (handler,) = build_handlers("e", collected)
        assert handler.function("x") == HookResult.block("mine")

    def test_a_method_without_an_instance_is_an_error(self, module_of):
        """A marked method that nobody could call is refused, not forgotten."""
        with collecting() as collected:
            module_of(
                "from hermes_ext import hookimpl\n"
                "class Plugin:\n"
                "    @hookimpl\n"
                "    def intercept_tool_call(self, tool_name): ...\n"
            )
        with pytest.raises(RegistrationError, match="no instance of its class") as caught:
            build_handlers("e", collected)
        assert caught.value.extension == "e"


def test_registrations_of_a_module(module_of):
    """A module's own marked functions and instances count, in order; imported ones do not."""
    module = (
        module_of(
            "from hermes_ext import register_hook, hookimpl\n"
            "from test_registration_other import theirs\n"
            "@register_hook('intercept_tool_call')\n"
            "def second(tool_name): ...\n"
            "@register_hook('before_llm_call')\n"
            "def first(messages): ...\n"
            "class P:\n"
            "    @hookimpl\n"
            "    def transform_user_input(self, user_message): ...\n"
            "p = P()\n"
        )
        if module_of(
            "from hermes_ext import register_hook\n"
            "@register_hook('intercept_tool_call')\n"
            "def theirs(tool_name): ...\n",
            name="test_registration_other",
        )
        else None
    )
    names = [one.name for one in build_handlers("e", registrations_of(module))]
    assert names == ["second", "first", "P.transform_user_input"]


def test_nothing_registered_is_an_error():
    """A function that nobody marked cannot be meant."""

    def intercept_tool_call(tool_name):
        return None

    with pytest.raises(RegistrationError, match="nothing is registered"):
        registrations_of(intercept_tool_call)


class TestNearMisses:
    """What looks like a handler and is none is told."""

    def test_unmarked_and_misspelt_functions(self, module_of):
        """Correct names without a mark, and names that are nearly right, get a did-you-mean."""
        module = module_of(
            "def intercept_tool_call(tool_name): ...\n"
            "def intercept_toolcall(tool_name): ...\n"
            "def helper(x): ...\n"
            "class Plugin:\n"
            "    def before_llm_call(self, messages): ...\n"
        )
        told = near_misses(module)
        assert len(told) == 3
        assert "Plugin.before_llm_call (line 5)" in told[0]
        assert all("Did you mean @register_hook('" in text for text in told)
        assert "'intercept_tool_call'" in told[2]

    def test_the_marker_of_another_project(self, module_of):
        """A function marked for another pluggy project names that project."""
        assert pluggy.HookimplMarker("llm")
        module = module_of(
            "import pluggy\n"
            "hookimpl = pluggy.HookimplMarker('llm')\n"
            "@hookimpl\n"
            "def intercept_tool_call(tool_name): ...\n"
        )
        (told,) = near_misses(module)
        assert "pluggy project 'llm'" in told
        assert "from hermes_ext import hookimpl" in told

    def test_nothing_to_tell_about_what_is_registered(self, module_of):
        """A registered function is no near miss, whatever its name."""
        module = module_of(
            "from hermes_ext import register_hook\n"
            "@register_hook('intercept_tool_call')\n"
            "def intercept_tool_calls(tool_name): ...\n"
        )
        assert near_misses(module) == ()


class TestBuilding:
    """From registrations to handlers."""

    def test_defaults(self):
        """A handler's policy and limit follow from its hook and phase."""

        def handler(session_id):
            return None

        for hook in HookName:
            register_hook(hook)(handler)
            register_hook(hook, guard=True)(handler)
        policies = {(one.hook.value, one.guard): one.on_error for one in build(handler)}
        assert policies == {
            ("transform_user_input", False): "pass",
            ("transform_user_input", True): "block",
            ("before_llm_call", False): "pass",
            ("before_llm_call", True): "block",
            ("intercept_tool_call", False): "block",
            ("intercept_tool_call", True): "block",
            ("transform_tool_result", False): "pass",
            ("transform_tool_result", True): "block",
        }
        assert {one.guard: one.timeout for one in build(handler)} == {True: 10.0, False: None}

    def test_zero_turns_the_limit_off(self):
        """`timeout=0` is no limit, for guards too."""

        @register_hook("intercept_tool_call", guard=True, timeout=0)
        def handler(tool_name):
            return None

        (built,) = build(handler)
        assert built.timeout is None
        assert built.inline

    def test_all_or_nothing(self):
        """One handler that cannot work leaves none of the extension's."""

        def good(tool_name):
            return None

        register_hook("intercept_tool_call")(good)
        mark = marks_of(good)[0]
        with pytest.raises(RegistrationError, match="my-ext"):
            build_handlers(
                "my-ext", [Registration(good, mark), Registration(lambda wrong: None, mark)]
            )

    def test_what_the_configuration_changes(self):
        """Hooks can be turned off, priorities changed, and the extension only observed."""

        @register_hook("intercept_tool_call")
        @register_hook("before_llm_call")
        def handler(session_id):
            return None

        (built,) = build(
            handler,
            source=Source.PROJECT,
            observe=True,
            disabled_hooks={"before_llm_call"},
            priorities={"intercept_tool_call": 7},
        )
        assert (built.hook, built.priority, built.observe) == ("intercept_tool_call", 7, True)
        assert built.source is Source.PROJECT

    def test_before_itself_is_refused(self):
        """An extension cannot run before itself."""

        @register_hook("intercept_tool_call", before=["my-ext"])
        def handler(tool_name):
            return None

        with pytest.raises(RegistrationError, match="names the extension itself"):
            build(handler)

    def test_a_handler_knows_its_place(self):
        """File and line are those of the function, through partials and wrappers."""

        def plain(tool_name):
            return None

        @functools.wraps(plain)
        def wrapper(**arguments):
            return plain(**arguments)

        functions = [functools.partial(plain), wrapper]
        for function in functions:
            register_hook("intercept_tool_call")(function)
        for handler in build(*functions):
            assert handler.file == __file__
            assert handler.line == plain.__code__.co_firstlineno
