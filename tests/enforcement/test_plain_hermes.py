"""Six ways in which a policy fails open in Hermes's own hooks, and the same six with extensions.

The policy is written once as a plugin for plain Hermes and once as an extension: each the way its
author would write it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from tests.harness.home import PLUGIN, HermesHome
from tests.harness.warm import warm_start
from tests.hermes.stage import HEAD, play, plugin
from tests.hermes.versions import NEWER, installed

pytestmark = pytest.mark.hermes


class Way(NamedTuple):
    """plugins: for plain Hermes, in the order of their names. extensions: the same as extensions.

    expected: what the tool `jot` has written if the policy holds. plain: what it writes in Hermes.
    fixed: whether it comes out right in Hermes's newest code.
    """

    plugins: dict[str, str]
    extensions: dict[str, str]
    expected: list[str]
    plain: list[str]
    fixed: bool = False


def hook(body: str, kind: str = "def") -> str:
    return (
        f"{kind} judge(tool_name, args, **context):\n    {body}\n\n"
        "def register(ctx):\n    ctx.register_hook('pre_tool_call', judge)\n"
    )


def rewriting(letter: str) -> str:
    return (
        "def change(tool_name, args, **context):\n"
        f"    return {{'args': {{**args, 'text': args['text'] + {letter!r}}}}}\n\n"
        "def register(ctx):\n    ctx.register_middleware('tool_request', change)\n"
    )


def extension(body: str, kind: str = "def", option: str = "") -> str:
    return (
        f"{HEAD}@register_hook('intercept_tool_call', tools=['jot']{option})\n"
        f"{kind} judge(tool_args):\n    {body}\n"
    )


BLOCK = "return {'action': 'block', 'message': 'no'}"
OURS = "return HookResult.block('no')"
GUARD = ", guard=True"

WAYS = {
    "a policy that raises": Way(
        {"policy": hook("return {}[tool_name]")},
        {"policy": extension("return {}['jot']", option=GUARD)},
        [],
        ["x 1"],
        fixed=True,
    ),
    "a policy in an async def": Way(
        {"policy": hook(BLOCK, "async def")},
        {"policy": extension(OURS, "async def", GUARD)},
        [],
        ["x 1"],
        fixed=True,
    ),
    "a result in another form": Way(
        {"policy": hook("return {'action': 'Block', 'message': 'no'}")},
        {"policy": extension("return HookResult('Block', 'no')", option=GUARD)},
        [],
        ["x 1"],
    ),
    "another plugin that approves first": Way(
        {"a_friend": hook("return {'action': 'approve'}"), "policy": hook(BLOCK)},
        {"policy": extension(OURS, option=GUARD)},
        [],
        ["x 1"],
        fixed=True,
    ),
    "two that rewrite": Way(
        {"one": rewriting("a"), "two": rewriting("b")},
        {
            name: extension(
                "return HookResult.rewrite({**tool_args, 'text': tool_args['text'] + "
                f"{letter!r}}})"
            )
            for name, letter in (("one", "a"), ("two", "b"))
        },
        ["xab 1"],
        ["xb 1"],
        fixed=True,
    ),
    "a change in place that nobody was to see": Way(
        {"policy": hook("args['text'] = 'changed'")},
        {"policy": extension("tool_args['text'] = 'changed'")},
        ["x 1"],
        ["changed 1"],
    ),
}


def jots(base: Any, way: Way, *, ours: bool) -> list[str]:
    """What `jot` has written when the model called it once."""
    home = HermesHome(base, None, plugins=(PLUGIN,) if ours else (), start=warm_start)
    theirs = {"a_friend": way.plugins["a_friend"]} if "a_friend" in way.plugins else {}
    for name, source in (theirs if ours else way.plugins).items():
        plugin(home, name, source)
    if ours:
        for name, source in way.extensions.items():
            home.extension(name, source)
    facts = play(
        home,
        "stage.use(stage.agent(), jot('x'))\nreport(jots=stage.jots)",
        HERMES_YOLO_MODE="1",
    )
    found: list[str] = facts["jots"]
    return found


@pytest.mark.parametrize("name", WAYS)
def test_a_way(tmp_path: Any, name: str) -> None:
    """It goes wrong in plain Hermes, where Hermes has not fixed it, and comes out right with us."""
    way = WAYS[name]
    plain = way.expected if way.fixed and installed() is NEWER else way.plain
    assert jots(tmp_path / "plain", way, ours=False) == plain
    assert jots(tmp_path / "ours", way, ours=True) == way.expected
