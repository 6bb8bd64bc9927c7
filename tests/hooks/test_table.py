"""The table of hooks: what lists the hooks follows from it, and nothing of a hook is missing."""

from __future__ import annotations

import inspect
from typing import get_args, get_overloads, get_type_hints

import pytest

from hermes_ext import hookimpl
from hermes_ext.hooks.payloads import EVENT_OF
from hermes_ext.hooks.registration import register_hook
from hermes_ext.hooks.table import ACTIONS, ENDING, TABLE, Action, HookName, complete
from hermes_ext.hosts.hermes.adapter.wraps.seams import CALLED
from hermes_ext.hosts.hermes.canary import proofs, rules
from hermes_ext.settings.names import HOOKS

ROWS = [pytest.param(row, id=row.name.value) for row in TABLE.values()]


def test_the_rows_are_the_hooks():
    """In their order, and each under its own name."""
    assert [*TABLE] == [*HookName] == [row.name for row in TABLE.values()]
    assert [hook.value for hook in HookName] == [*HOOKS]


def test_what_lacks_a_hook_says_which():
    """A room that adds something to each hook cannot be imported where it lacks one."""
    proved = {hook: "proof" for hook in HookName if hook is not HookName.BEFORE_LLM_CALL}
    with pytest.raises(LookupError, match="no proof for before_llm_call"):
        complete("proof", proved, HookName)
    found = {hook: hook.value[:-1] for hook in HookName} | {HookName.INTERCEPT_TOOL_CALL: ""}
    with pytest.raises(LookupError, match="no sample for intercept_tool_call"):
        complete("sample", found, HookName)


def test_the_actions_are_in_the_order_of_their_severity():
    """Each with words for people; what guards may return refuses, asks, confines or passes."""
    assert [*ACTIONS] == [*Action] == sorted(Action, key=lambda action: action.severity)
    assert all("{it}" in row.did and row.style for row in ACTIONS.values())
    assert {Action.ANSWER, Action.BLOCK} == ENDING
    judging = {action for action, row in ACTIONS.items() if row.judges}
    assert judging == {Action.PASS, Action.CONFINE, Action.ASK, Action.BLOCK}


def test_what_type_checkers_accept_is_what_the_table_says():
    """Each hook has its overloads, and its handlers may return what its row has."""
    typed = {}
    for overload in get_overloads(register_hook):
        hints = get_type_hints(overload)
        guard = True in get_args(hints["guard"])
        returns = leaves(get_args(hints["return"])[1].__bound__)
        for hook in get_args(hints["hook"]):
            typed[hook, guard] = {Action(one) for one in returns if isinstance(one, str)}
    assert typed == {
        (hook, guard): row.verdicts if guard else row.actions
        for hook, row in TABLE.items()
        for guard in (False, True)
    }


def leaves(kind):
    """The values of the `Literal`s of a type, wherever they are."""
    parts = get_args(kind)
    return {leaf for part in parts for leaf in leaves(part)} if parts else {kind}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_whole(row):
    """Documentation, words and templates; a guard and a transformer of it can be written."""
    assert all([row.does, row.fires, row.returns, row.fails, row.so, row.object])
    assert all(one.type and one.text for one in row.arguments)
    assert {Action.PASS, Action.BLOCK} <= row.verdicts <= row.actions
    assert all([*row.transformer[:-1], *row.guard[:-1]])


@pytest.mark.parametrize("row", ROWS)
def test_an_event_has_what_handlers_may_ask_for(row):
    """Its class has an attribute for each argument, and can be made of them."""
    kind = EVENT_OF[row.name]
    known = {*inspect.get_annotations(kind), *dir(kind)}
    assert [one.name for one in row.arguments if one.name not in known] == []
    assert (kind.__name__, kind.hook) == (row.event, row.name)


@pytest.mark.parametrize("hook", CALLED)
def test_the_canary_tries_it(hook):
    """Of what Hermes calls there is a proof, and a rule that leaves a record."""
    assert hook in proofs._TRIALS
    assert f'_record("{hook.value}"' in inspect.getsource(rules)


@pytest.mark.parametrize("row", ROWS)
def test_a_function_of_its_name_is_registered(row):
    """With every argument that the table has."""
    arguments = ", ".join(row.names)
    names: dict = {}
    exec(f"def {row.name.value}({arguments}): return None", names)
    assert hookimpl(names[row.name.value])
