"""The strict mode: what fails a test though nobody asserted it."""

from __future__ import annotations

import pytest
from tests.testing.conftest import Author

from hermes_ext.testing import FindingsError, LoadedExtension, assert_blocked, assert_passed

GUARD = '@register_hook("intercept_tool_call", guard=True)\n'


def found(extension: LoadedExtension, **args: object) -> FindingsError:
    """What a call is told."""
    with pytest.raises(FindingsError) as raised:
        extension.call("tool", args)
    return raised.value


@pytest.mark.parametrize(
    ("hook", "body"),
    [
        ("intercept_tool_call", "def f(tool_args): tool_args['path'] = 'b'"),
        ("intercept_tool_call", "def f(tool_args): tool_args['deep'].append(1)"),
        ("intercept_tool_call", "def f(event): event.tool_args['path'] = 'b'"),
        ("intercept_tool_call", "async def f(tool_args): tool_args.clear()"),
        ("before_llm_call", "def f(messages): messages[0]['content'] = 'b'"),
        ("before_llm_call", "def f(messages): messages.append({})"),
        ("transform_user_input", "def f(user_content): user_content.clear()"),
    ],
)
def test_a_change_in_place_is_found(author: Author, hook: str, body: str) -> None:
    """Of arguments, messages and parts, at any depth, also through the event and in async."""
    extension = author(f'@register_hook("{hook}")\n{body}\n')
    drive = {
        "intercept_tool_call": lambda: extension.call("tool", {"path": "a", "deep": []}),
        "before_llm_call": lambda: extension.request([{"role": "user", "content": "a"}]),
        "transform_user_input": lambda: extension.input([{"type": "text", "text": "a"}]),
    }[hook]
    with pytest.raises(FindingsError, match=r"mutated: f \(.*my-rules/__init__\.py:\d+\)") as told:
        drive()
    assert [each.kind for each in told.value.findings] == ["mutated"]


def test_changing_and_returning_it_is_right(author: Author) -> None:
    """A rewrite of the very dict that was given is what the contract allows."""
    extension = author("""
        @register_hook("intercept_tool_call")
        def f(tool_args):
            tool_args["path"] = "b"
            return HookResult.rewrite(tool_args)
        """)
    assert extension.call("tool", {"path": "a"}).value == {"path": "b"}


def test_a_coroutine_that_is_not_awaited_is_found(author: Author) -> None:
    """With the function's name and line, once, and no warning of Python's own."""
    extension = author("""
        async def audit(): ...

        @register_hook("intercept_tool_call", guard=True)
        def f():
            audit()
        """)
    (finding,) = found(extension).findings
    assert finding.kind == "coroutine"
    assert "audit() was called and never awaited" in finding.text
    assert "my-rules/__init__.py:4" in finding.text


def test_a_handler_that_returns_a_coroutine_has_failed(author: Author) -> None:
    """`def` where `async def` was meant."""
    extension = author("async def audit(): ...\n\n" + GUARD + "def f():\n    return audit()\n")
    (finding,) = found(extension).findings
    assert finding.kind == "failed"
    assert "coroutine" in finding.text


STATE = """
    import itertools
    from functools import cache

    SEEN = []
    LAST = None
    NUMBERS = itertools.count()

    class Book:
        pages = {}

        def __init__(self):
            self.notes = set()

    BOOK = Book()

    def counter():
        n = 0

        def step():
            nonlocal n
            n += 1

        return step

    step = counter()

    def with_default(into=[]):
        into.append(1)

    @cache
    def costly(key):
        return len(key)

    @register_hook("intercept_tool_call", guard=True)
    def f(tool_args, state, session_state):
        global LAST
        match tool_args.get("how"):
            case "list": SEEN.append(1)
            case "global": LAST = "x"
            case "new": globals()["FRESH"] = {}
            case "class": Book.pages["a"] = 1
            case "object": BOOK.notes.add("a")
            case "closure": step()
            case "default": with_default()
            case "attribute": f.calls = 1
            case "iterator": next(NUMBERS)
            case "right":
                state["a"] = 1
                session_state["a"] = 1
                costly("a")
                SEEN.append(1)
                SEEN.pop()
"""
WHERE = {
    "list": "SEEN",
    "global": "LAST",
    "new": "FRESH",
    "class": "Book.pages",
    "object": "BOOK",
    "closure": "step",
    "default": "with_default",
    "attribute": "f",
    "iterator": "NUMBERS",
}


@pytest.mark.parametrize("how", WHERE)
def test_state_that_is_kept_over_turns_is_found(author: Author, how: str) -> None:
    """With its name and file, once: what was told is not told again."""
    extension = author(STATE)
    assert_passed(extension.call("tool", {"how": "right"}))
    (finding,) = found(extension, how=how).findings
    assert finding.kind == "state"
    assert finding.text.startswith(f"{WHERE[how]} ")
    assert "my-rules/__init__.py" in finding.text
    assert f'allow_state=("{WHERE[how]}",)' in finding.text
    assert_passed(extension.call("tool", {"how": "right"}))


@pytest.mark.parametrize("how", WHERE)
def test_state_that_is_allowed_is_none(author: Author, how: str) -> None:
    """By the name that the finding gives, or by that of the global it is part of."""
    extension = author(STATE, allow_state=(WHERE[how],))
    assert_passed(extension.call("tool", {"how": how}))


def test_what_a_test_changes_between_turns_is_its_own_affair(author: Author) -> None:
    """Only what changes in a turn is the extension's doing."""
    extension = author(STATE)
    assert_passed(extension.call("tool"))
    extension.module.LAST = "set by the test"
    assert_passed(extension.call("tool"))


def test_a_failure_is_found_unless_it_is_expected(author: Author) -> None:
    """With the traceback in the author's file; expected ones are matched, and must come."""
    extension = author(GUARD + "def f(tool_args):\n    return 1 / tool_args['by']\n")
    (finding,) = found(extension, by=0).findings
    assert finding.kind == "failed"
    assert "ZeroDivisionError" in finding.text
    assert "my-rules/__init__.py" in finding.text
    with extension.expect_failure("ZeroDivisionError") as errors:
        assert extension.call("tool", {"by": 0}).blocked
    assert [error.kind for error in errors] == ["exception"]
    with (
        pytest.raises(AssertionError, match="expected a failure that matches 'zebra'"),
        extension.expect_failure("zebra"),
    ):
        extension.call("tool", {"by": 0})
    with (
        pytest.raises(AssertionError, match="expected that a handler of my-rules fails"),
        extension.expect_failure(),
    ):
        pass


def test_a_slow_handler_is_found(author: Author) -> None:
    """Beyond the limit that the test gives; one that is fast is none."""
    code = GUARD + "def f(tool_args):\n    import time; time.sleep(tool_args.get('s', 0))\n"
    (finding,) = found(author(code, slow_seconds=0.05), s=0.1).findings
    assert finding.kind == "slow"
    assert "more than 0.05 s" in finding.text
    assert_passed(author(code, slow_seconds=60).call("tool", {"s": 0.1}))


def test_an_extension_that_registers_nothing_is_found(author: Author) -> None:
    """What `list` warns of, with the near miss."""
    extension = author("def intercept_tool_call(tool_name): ...\n")
    (finding,) = found(extension).findings
    assert finding.kind == "warning"
    assert "registers no handler" in finding.text


def test_findings_explain_a_failing_assertion(author: Author) -> None:
    """A test that fails anyway is told them as a note."""
    extension = author(GUARD + "def f():\n    raise LookupError('oh')\n")
    with pytest.raises(AssertionError) as raised, extension.turn() as turn:
        assert_passed(turn.call("tool"))
    assert "LookupError" in raised.value.__notes__[0]


def test_without_strict_nothing_is_found(author: Author) -> None:
    """Whatever a handler does."""
    extension = author(STATE + "        return tool_args.clear()\n", strict=False)
    assert_passed(extension.call("tool", {"how": "list"}))
    assert extension.findings == []


def test_what_is_found_in_a_thread_fails_the_test(author: Author) -> None:
    """Parallel calls too, and a turn that nobody closes is looked at in the end."""
    extension = author(GUARD + "def f(tool_args):\n    tool_args['x'] = 1\n")
    turn = extension.turn()
    turn.parallel([("tool", {"n": n}) for n in range(3)])
    with pytest.raises(FindingsError, match="mutated"):
        extension.check()


def test_a_blocking_guard_is_no_finding(author: Author) -> None:
    """Rules are what extensions are for."""
    extension = author(GUARD + "def f():\n    return HookResult.block('No.')\n")
    assert_blocked(extension.call("tool"), by="my-rules", match="No")
    assert extension.findings == []
