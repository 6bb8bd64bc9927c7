"""Compound commands: groups, branches, loops, functions, declarations and tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hermes_ext.effects._shell.arithmetic import evaluated
from hermes_ext.effects._shell.expand import fields
from hermes_ext.effects._shell.marks import HOLE
from hermes_ext.effects._shell.reading import NAME, Function, Reading, Statement
from hermes_ext.effects._shell.state import MOST_VALUES, Ends, State, Values, forget, merged
from hermes_ext.effects._shell.tree import Node
from hermes_ext.effects._words import ANYTHING, Word, tags_of

_TURNS: Final = 64  # values of a loop's variable that are followed one by one
_UNTIL_STABLE: Final = 3


def _group(shell: Reading, node: Node, state: State) -> Ends:
    if node.children and node.children[0].type == "((":
        shell.reader.check_arithmetic(node, state)
        return state, state
    with shell.rec.under("group"):
        return shell.body(node, state, shell.reader)


def _subshell(shell: Reading, node: Node, state: State) -> Ends:
    with shell.rec.under("subshell"):
        shell.body(node, state.copy(), shell.reader)
    shell.enter(state)
    return state, state


def _if(shell: Reading, node: Node, state: State) -> Ends:
    parts = _split_by(node.children, ("if", "then", "elif", "fi"), ("elif_clause", "else_clause"))
    ok, failed = shell.statements(parts.get("if", []), state)
    if not shell.rec.on("alternative"):
        return ok, failed
    ends: list[State | None] = []
    if ok is not None:
        inner = ok.copy() if ok is failed else ok
        ends += shell.statements(parts.get("then", []), inner)
    for clause in parts["clauses"]:
        if failed is None:
            break
        failed, more = _clause(shell, clause, failed)
        ends += more
    after = failed
    for each in ends:
        after = merged(after, each)
    return after, after


def _clause(shell: Reading, clause: Node, state: State) -> tuple[State | None, list[State | None]]:
    """An `elif` or `else`: the state in which the next one is reached, and those at its end."""
    if clause.type == "else_clause":
        return None, [*shell.statements(clause.children, state)]
    parts = _split_by(clause.children, ("elif", "then"), ())
    ok, failed = shell.statements(parts.get("elif", []), state)
    if ok is None:
        return failed, []
    inner = ok.copy() if ok is failed else ok
    return failed, [*shell.statements(parts.get("then", []), inner)]


def _case(shell: Reading, node: Node, state: State) -> Ends:
    value = node.child_by_field_name("value")
    if value is not None:
        shell.reader.values(value, state)
    after: State | None = state.copy()
    before: State | None = state
    for item in node.named_children:
        if item.type != "case_item":
            continue
        if not shell.rec.on("alternative"):
            break
        values = item.children_by_field_name("value")
        for each in values:
            shell.reader.values(each, state)
        body = [each for each in item.named_children if each not in values]
        ends = shell.statements(body, before.copy() if before else state.copy())
        after = merged(after, merged(*ends))
        # With `;&` the next one is run too.
        before = merged(state.copy(), merged(*ends))
    return after, after


def _for(shell: Reading, node: Node, state: State) -> Ends:
    variable = node.child_by_field_name("variable")
    name = "" if variable is None else shell.reader.source.text(variable)
    given = node.children_by_field_name("value")
    body = node.child_by_field_name("body")
    if any(each.type == "in" for each in node.children):
        # Of several ways they may be, all of them.
        words = [w for each in given for way in shell.alternatives(each, state) for w in way]
    else:
        words = list((ANYTHING,) if state.arguments is None else state.arguments)
    known = [each for each in words if isinstance(each, str)]
    if body is None or not shell.rec.on("loop"):
        return state, state
    if node.children[0].type == "select" or len(known) < len(words) or len(known) > _TURNS:
        open_ended = tags_of(words) + HOLE
        values = tuple(known) if len(known) == len(words) <= MOST_VALUES else (open_ended,)
        return _until_stable(
            state, lambda each: _turn(shell, name, values, body, each), first=state
        )
    after: State | None = state.copy()
    at: State | None = state
    for word in known:
        if at is None:
            break
        at = merged(*_turn(shell, name, (word,), body, at))
        after = merged(after, None if at is None else at.copy())
    return after, after


def _turn(shell: Reading, name: str, values: Values, body: Node, state: State) -> Ends:
    shell.set(name, values, state)
    return shell.body(body, state, shell.reader)


def _while(shell: Reading, node: Node, state: State) -> Ends:
    body = node.child_by_field_name("body")
    conditions = node.children_by_field_name("condition")

    def turn(each: State) -> Ends:
        ok, failed = shell.statements(conditions, each)
        inner = merged(ok, failed)
        if body is None or inner is None or not shell.rec.on("loop"):
            return inner, None
        return merged(*shell.body(body, inner.copy(), shell.reader)), inner

    return _until_stable(state, turn, first=None)


def _c_style(shell: Reading, node: Node, state: State) -> Ends:
    body = node.child_by_field_name("body")
    for child in node.children:
        if child.is_named and child != body:
            shell.reader.check_arithmetic(child, state)

    def turn(each: State) -> Ends:
        if body is None or not shell.rec.on("loop"):
            return each, None
        return shell.body(body, each, shell.reader)

    return _until_stable(state, turn, first=state)


def _until_stable(state: State, turn: Callable[[State], Ends], *, first: State | None) -> Ends:
    """Turns of a loop until one more would change nothing; what still changes is not known."""
    after = None if first is None else first.copy()
    at: State | None = state
    for _ in range(_UNTIL_STABLE):
        if at is None:
            break
        before = at.copy()
        ended = turn(at)
        at = merged(before, merged(*ended))
        after = merged(after, None if at is None else at.copy())
        if at == before:
            return after, after
    if at is not None:
        forget(at, state)
        ended = turn(at)
        after = merged(after, merged(*ended))
        if after is not None:
            forget(after, state)
    return after, after


def _function(shell: Reading, node: Node, state: State) -> Ends:
    name = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if name is None or body is None:
        shell.reader.strange(node)
        return state, state
    called = shell.reader.source.text(name)
    if shell.knows(called):
        shell.rec.unknown(f"`{called}` is given another meaning")
    redirects = (*node.children_by_field_name("redirect"), *shell.defined_with)
    shell.defined_with = ()
    state.functions[called] = (Function(body, redirects, shell.reader),)
    return state, state


def _test(shell: Reading, node: Node, state: State) -> Ends:
    single = bool(node.children) and node.children[0].type == "["
    if single and any(each in (">", "<", ">>") for each in _tokens(node)):
        shell.rec.unknown("`[` with a redirection in it")
    words: list[Word] = ["["]
    for part in _leaves_of_words(node):
        values = shell.reader.values(part, state)
        if single and not _counts(shell, part, state):
            words += [word for value in values for word in fields(value, shell.rec)]
        elif part.type == "test_operator":
            words.append(shell.reader.source.text(part))
    if single:
        shell.program(words)
    else:
        _check_operands(shell, node, state)
    return state, state


def _counts(shell: Reading, node: Node, state: State) -> bool:
    """Whether a word of a test surely is a number."""
    text = shell.reader.source.text(node)
    return text[:1] == "$" and not any(evaluated(text, state.copy()))


def _check_operands(shell: Reading, node: Node, state: State) -> None:
    """In `[[ a -eq b ]]` both sides are expressions, which may run code; `-v` looks up a name."""
    operator = next((each for each in node.children if each.type == "test_operator"), None)
    what = "" if operator is None else shell.reader.source.text(operator)
    for child in node.named_children:
        text = shell.reader.source.text(child)
        if child == operator:
            continue
        if what in ("-v", "-R") and not _LOOKED_UP.match(text):
            shell.rec.unknown("a name with an expression in it is looked up", text)
        elif what in _COMPARING:
            shell.reader.evaluate(text, state)
        _check_operands(shell, child, state)


_COMPARING: Final = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_LOOKED_UP: Final = re.compile(r"\w+(?:\[(?:\d+|[@*])\])?\Z")


def _assignments(shell: Reading, node: Node, state: State) -> Ends:
    for each in node.named_children:
        if each.type == "variable_assignment":
            shell.assign(each, state)
        else:
            shell.reader.strange(each)
    return state, state


def _declaration(shell: Reading, node: Node, state: State) -> Ends:
    kind = node.children[0].type if node.children else ""
    exports = kind == "export"
    inner = kind in ("local", "declare", "typeset")
    _check_declared(shell, node, state)
    for child in node.children[1:]:
        text = shell.reader.source.text(child)
        if inner:
            state.make_local(text.partition("=")[0].partition("[")[0].rstrip("+"))
        if child.type == "variable_assignment":
            before = state.variables.get(shell.name_of(child), (HOLE,))
            shell.assign(child, state)
            if kind == "local" and state.local is None:  # outside of a function it fails
                _or_as_before(shell.name_of(child), before, state)
            if kind == "readonly":
                state.fixed.add(shell.name_of(child))
            if exports:
                shell.export(shell.name_of(child), state)
        elif text.startswith(("-", "+")) and re.fullmatch(r"[-+][a-zA-Z]+", text):
            exports = _declared(shell, node, text, exports)
        elif NAME.match(text):
            if kind == "readonly":
                state.fixed.add(text)
            if exports:
                shell.export(text, state)
        else:
            for alternative in shell.alternatives(child, state):
                _declare_words(shell, alternative, exports, state)
    return state, state


def _or_as_before(name: str, before: Values, state: State) -> None:
    if name in state.variables:
        state.variables[name] = tuple(dict.fromkeys((*state.variables[name], *before)))
    state.arrays.pop(name, None)


def _declared(shell: Reading, node: Node, option: str, exports: bool) -> bool:
    if set(option[1:]) - set("pxaA"):
        # -n makes another name of a variable, -i evaluates what is assigned, -l and -u change it,
        # -f exports code, -r keeps what is assigned later away, -g reaches out of the function.
        shell.rec.unknown(f"a variable is declared with {option}")
    return exports or ("x" in option and option[0] == "-")


def _check_declared(shell: Reading, node: Node, state: State) -> None:
    """What an array is declared to be is evaluated, as `b=($x)` is, in quotes too."""
    arrays = re.match(r"\w+(?:\s+-\w+)*\s+-\w*[aA]", shell.reader.source.text(node))
    for child in node.named_children:
        value = child.child_by_field_name("value")
        whole = value is not None and value.type == "array"
        name = shell.reader.source.text(child).partition("=")[0].partition("[")[0]
        plain = child.type == "variable_name" or name[:1] in ("-", "+")
        if not (whole or plain) and (arrays or name.strip("'\"") in state.arrays):
            shell.rec.unknown("what an array is declared to be is evaluated, which may run more")


def _declare_words(shell: Reading, words: Sequence[Word], exports: bool, state: State) -> None:
    for word in words:
        name, equals, value = word.partition("=") if isinstance(word, str) else ("", "", "")
        if not NAME.match(name):
            shell.rec.unknown("which variable is declared is not known", word)
            continue
        if equals:
            shell.set(name, (value,), state)
        if exports:
            shell.export(name, state)


def _unset(shell: Reading, node: Node, state: State) -> Ends:
    for child in node.named_children:
        text = shell.reader.source.text(child)
        if NAME.match(text):
            shell.set(text, ("",), state)
            if text in state.functions:
                state.functions[text] = (*state.functions[text], None)
        elif text not in ("-v", "-f"):
            shell.reader.strange(child)
    return state, state


def _split_by(
    children: Sequence[Node], words: Sequence[str], clauses: Sequence[str]
) -> dict[str, list[Node]]:
    """Children by the keyword that they stand behind."""
    parts: dict[str, list[Node]] = {"clauses": []}
    at = ""
    for child in children:
        if child.type in clauses:
            parts["clauses"].append(child)
        elif child.type in words and not child.is_named:
            at = child.type
        else:
            parts.setdefault(at, []).append(child)
    return parts


def _tokens(node: Node) -> Iterator[str]:
    for child in node.children:
        if child.is_named or child.children:
            if child.type not in ("command_substitution", "string", "raw_string"):
                yield from _tokens(child)
        else:
            yield child.type


def _leaves_of_words(node: Node) -> Iterator[Node]:
    """The words of a test, with its operators."""
    for child in node.named_children:
        if child.type.endswith("_expression") and child.type != "brace_expression":
            yield from _leaves_of_words(child)
        elif child.type not in ("regex", "extglob_pattern"):
            yield child


STATEMENTS: Final[dict[str, Statement]] = {
    "case_statement": _case,
    "c_style_for_statement": _c_style,
    "compound_statement": _group,
    "declaration_command": _declaration,
    "do_group": _group,
    "for_statement": _for,
    "function_definition": _function,
    "if_statement": _if,
    "list": lambda shell, node, state: shell.line(node, state),
    "subshell": _subshell,
    "test_command": _test,
    "unset_command": _unset,
    "variable_assignments": _assignments,
    "while_statement": _while,
}
