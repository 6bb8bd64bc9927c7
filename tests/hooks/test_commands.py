"""`register_command`: what may be a command, and what its function is called with."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hermes_ext import Runtime, register_command, register_hook
from hermes_ext.exceptions import CommandError, RegistrationError
from hermes_ext.hooks.commands import COMMAND_ARGUMENTS, build_commands, commands_of


def test_the_function_stays_as_it_is() -> None:
    """The decorator returns the function itself, which can be called as before."""

    def plan(args: str) -> str:
        return f"plan {args}"

    assert register_command("plan")(plan) is plan
    assert plan("on") == "plan on"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Plan", "Write 'plan'"),
        ("/plan", "Write 'plan'"),
        ("plan mode", "Write 'plan-mode'"),
        ("plan_mode", "Write 'plan-mode'"),
        ("plan\n", "Write 'plan'"),
        ("", "Begin with a letter"),
        ("7up", "Begin with a letter"),
        ("été", "Write 't'"),
        (plan := object(), "register_command('plan')"),
    ],
)
def test_names_that_cannot_be_typed(name: Any, hint: str) -> None:
    """A name that no surface could find is refused where it stands, with one that would do."""
    with pytest.raises(RegistrationError) as error:
        register_command(name)
    assert hint in str(error.value)


def test_arguments_that_commands_do_not_have() -> None:
    """An unknown argument is told with file, line and the near ones."""

    def plan(arg):  # type: ignore[no-untyped-def]
        return arg

    with pytest.raises(RegistrationError, match=r"wants 'arg'.*test_commands\.py:.*'args'"):
        register_command("plan")(plan)


@pytest.mark.parametrize("thing", [int, object(), lambda *args: None])
def test_what_is_no_function(thing: Any) -> None:
    """Classes and objects are refused, and so is what takes its arguments by position."""
    with pytest.raises(RegistrationError):
        register_command("plan")(thing)


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_generator_is_refused(kind: str) -> None:
    """A function with a yield in it does nothing when it is called, so nobody may register it."""
    made: dict[str, Any] = {}
    exec(f"{kind} plan(args):\n    yield args", made)
    with pytest.raises(RegistrationError, match=r"plan, for /plan, is a generator.*Return the"):
        register_command("plan")(made["plan"])


def test_one_line_of_help() -> None:
    """`help` and `args_hint` go into lists: they are one line."""
    with pytest.raises(RegistrationError, match="one line"):
        register_command("plan", help="a\nb")


def test_what_it_is_given(tmp_path: Path) -> None:
    """Each argument is the call's; one with a default is left out where nothing is known."""
    seen: dict[str, Any] = {}

    @register_command("show", args_hint="[what]")
    def show(**known: Any) -> None:
        """Shows."""
        seen.update(known)

    runtime = Runtime([show], config={"depth": 3})
    assert runtime.command("show", "all of it", session_id="s1", cwd=tmp_path) == ""
    state = seen.pop("session_state")
    assert seen == {
        "args": "all of it",
        "session_id": "s1",
        "conversation_id": "s1",
        "config": {"depth": 3},
        "cwd": tmp_path,
    }  # the platform is not known
    state["on"] = True
    runtime.command("show", session_id="s2", conversation_id="c", platform="cli")
    assert (seen["args"], seen["conversation_id"], seen["platform"]) == ("", "c", "cli")
    assert "on" not in seen["session_state"]
    assert set(seen) <= set(COMMAND_ARGUMENTS)


def test_its_state_is_that_of_its_handlers() -> None:
    """What a command keeps for the conversation, the extension's handlers find, and back."""

    @register_command("plan")
    def plan(args: str, session_state: Any) -> str:
        session_state["plan"] = args
        return f"Plan mode is {args}, after {session_state.get('turns', 0)} turns."

    @register_hook("transform_user_input")
    def count(session_state: Any) -> None:
        session_state.count("turns")
        seen.append(session_state.get("plan"))

    seen: list[Any] = []
    runtime = Runtime([plan, count])
    assert runtime.command("plan", "on", session_id="s").endswith("after 0 turns.")
    for session in ("s", "other"):
        with runtime.turn(session_id=session) as turn:
            turn.transform_user_input("x")
    assert seen == ["on", None]
    assert runtime.command("plan", "off", session_id="s") == "Plan mode is off, after 1 turns."


def test_async_commands() -> None:
    """A coroutine is awaited, whether the caller is in a loop or not."""

    @register_command("later")
    async def later(args: str) -> str:
        await asyncio.sleep(0)
        return args

    runtime = Runtime([later])
    assert runtime.command("later", "a", session_id="s") == "a"

    async def inside() -> str:
        return await asyncio.to_thread(runtime.command, "later", "b", session_id="s")

    assert asyncio.run(inside()) == "b"


def test_text_for_the_user_is_printable() -> None:
    """Control characters are written out; line ends stay."""

    @register_command("odd")
    def odd() -> str:
        return "one\n\x1b[2Ktwo"

    assert Runtime([odd]).command("odd", session_id="s") == "one\n\\x1b[2Ktwo"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: 1 / 0, "/bad failed: ZeroDivisionError: division by zero"),
        (lambda: 5, "/bad returned int, not text"),
        (lambda: (_ for _ in ()).throw(SystemExit(3)), "/bad failed: SystemExit: 3"),
    ],
)
def test_failures(made: Any, told: str) -> None:
    """A command that fails is one error, which names extension, file and line."""

    @register_command("bad")
    def bad() -> Any:
        return made()

    with pytest.raises(CommandError) as error:
        Runtime([bad]).command("bad", session_id="s")
    assert told in str(error.value)
    assert "test_commands: " in str(error.value)
    assert "test_commands.py:" in str(error.value)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_coroutine_that_nobody_awaits_is_told_once() -> None:
    """As an error of the command; nothing warns of it later."""

    async def text() -> str:
        return "text"

    @register_command("bad")
    def bad() -> Any:
        return text()

    with pytest.raises(CommandError, match="returned coroutine, not text"):
        Runtime([bad]).command("bad", session_id="s")
    gc.collect()


def test_what_its_objects_do_when_asked_ends_nobody() -> None:
    """Text of a class of its own is the text it holds; an error that cannot be told is told."""

    class Loud(str):
        def split(self, *args: Any, **options: Any) -> Any:
            raise SystemExit(3)

        def isprintable(self) -> bool:
            return True

    class Broken(Exception):
        def __str__(self) -> str:
            raise SystemExit(4)

    class Unreadable(Exception):
        @property
        def __context__(self) -> Any:
            raise SystemExit(5)

    @register_command("unreadable")
    def unreadable() -> str:
        raise Unreadable

    @register_command("loud")
    def loud() -> str:
        return Loud("\x1b[2Jx")

    @register_command("broken")
    def broken() -> str:
        raise Broken

    runtime = Runtime([loud, broken, unreadable])
    assert runtime.command("loud", session_id="s") == "\\x1b[2Jx"
    with pytest.raises(CommandError, match=r"its __str__ raised SystemExit"):
        runtime.command("broken", session_id="s")
    with pytest.raises(CommandError, match=r"Unreadable"):
        runtime.command("unreadable", session_id="s")


def test_unknown_commands() -> None:
    """A name that nobody has is told with the near ones."""

    @register_command("plan")
    def plan() -> str:
        return "x"

    with pytest.raises(CommandError, match=r"no extension has a command /plam.*'/plan'"):
        Runtime([plan]).command("plam", session_id="s")
    with pytest.raises(CommandError, match="No extension has registered any"):
        Runtime([]).command("plan", session_id="s")


def test_a_module_has_its_own() -> None:
    """Of a module count the functions that it defines, not those that it imports."""
    module = ModuleType("rules")
    source = (
        "from hermes_ext import register_command\n@register_command('one')\ndef one(): return 'x'\n"
    )
    exec(source, module.__dict__)
    module.__dict__["imported"] = register_command("two")(_imported)
    assert [each.mark.name for each in commands_of(module)] == ["one"]
    assert Runtime([module]).command("one", session_id="s") == "x"


def _imported() -> str:
    return "y"


def test_one_name_twice() -> None:
    """Two functions of one extension for one name are an error that names both lines."""

    def first() -> str:
        return "1"

    def second() -> str:
        return "2"

    both = [*commands_of(register_command("same")(first))]
    both += commands_of(register_command("same")(second))
    with pytest.raises(RegistrationError, match=r"/same is registered twice.*first.*second"):
        build_commands("x", both)
