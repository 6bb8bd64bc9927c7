"""`awk`: where its program prints to, and what it runs."""

from __future__ import annotations

import re
from typing import Final

from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole, Word

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\n|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>\d[\w.]*|\.\d\w*)
    |(?P<end>[;\n{}])
    |(?P<sign>\|\||\|&|&&|>>|>=|<=|==|!=|!~|\+\+|--|[-+*%^/]=|\*\*=?|[-+*/%^!<>|?:,$()\[\]~=@&])""",
    re.VERBOSE | re.DOTALL,
)
_PATTERN: Final = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?(?:[^\]\\/\n]|\\.)+\])+/")
# Behind these a slash divides.
_VALUES: Final = frozenset({"name", "number", "string"})
_BEFORE_PATTERN: Final = frozenset({"print", "printf", "return", "in", "getline", "exit", "case"})
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def awk(call: Call) -> None:
    """`awk PROGRAM FILE…`."""
    call.check_options()
    operands = list(call.operands)
    if call.has("-f", "--file"):
        call.unknown("reads its program from a file")
        program: Word = ""
    else:
        program = operands.pop(0) if operands else ""
    if isinstance(program, Hole):
        call.unknown("has a program that is not known before it runs", program)
    else:
        _program(call, program)
    for word in operands:
        if not (isinstance(word, str) and re.match(r"[A-Za-z_]\w*=", word)):
            call.read(word)


def _program(call: Call, text: str) -> None:
    tokens = _tokens(text)
    if tokens is None:
        call.unknown("has a program that is not understood", text)
        return
    printing, depth = False, 0
    for place, (kind, token) in enumerate(tokens):
        if kind == "end":
            printing = printing and depth > 0 and token == "\n"
            depth = depth if printing else 0
        elif token in ("print", "printf"):
            printing, depth = True, 0
        elif token in ("(", "[", ")", "]"):
            depth += 1 if token in "([" else -1
        elif token in (">", ">>") and printing and depth <= 0:
            _redirected(call, tokens, place)
        elif token in ("|", "|&"):
            _piped(call, tokens, place)
        elif token == "system":
            _system(call, tokens, place)
        elif token == "<":
            _read(call, tokens, place)
        elif token == "@":
            call.unknown("includes or calls what is not seen here", text)


def _tokens(text: str) -> list[tuple[str, str]] | None:
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        if text[place] == "/" and _begins_pattern(found):
            pattern = _PATTERN.match(text, place)
            if pattern is None:
                return None
            found.append(("string", "/"))
            place = pattern.end()
            continue
        token = _TOKEN.match(text, place)
        if token is None:
            return None
        kind = str(token.lastgroup)
        if kind != "blank":
            found.append((kind, token[0]))
        place = token.end()
    return found


def _begins_pattern(before: list[tuple[str, str]]) -> bool:
    if not before:
        return True
    kind, token = before[-1]
    if kind in _VALUES:
        return token in _BEFORE_PATTERN
    return token not in (")", "]", "$", "++", "--")


def _literal(tokens: list[tuple[str, str]], place: int) -> str | None:
    """The text of a string that stands there."""
    if 0 <= place < len(tokens) and tokens[place][1][:1] == '"':
        inner = tokens[place][1][1:-1]
        # Other escapes than of signs may mean several things.
        if not re.search(r"\\[\w\n]", inner):
            return _ESCAPED.sub(r"\1", inner)
    return None


def _ends(tokens: list[tuple[str, str]], place: int) -> bool:
    return place >= len(tokens) or tokens[place][0] == "end"


def _redirected(call: Call, tokens: list[tuple[str, str]], place: int) -> None:
    name = _literal(tokens, place + 1)
    if name is None or not _ends(tokens, place + 2):
        call.writes_unknown("prints to a file whose name is not known before it runs")
    else:
        call.write(name)


def _read(call: Call, tokens: list[tuple[str, str]], place: int) -> None:
    """`getline < "file"`, or a comparison, which has no name of a file behind it."""
    name = _literal(tokens, place + 1)
    if name is not None:
        call.read(name)


def _piped(call: Call, tokens: list[tuple[str, str]], place: int) -> None:
    behind = tokens[place + 1][1] if place + 1 < len(tokens) else ""
    if behind == "getline":
        code = _literal(tokens, place - 1)
        alone = (
            place < 2 or tokens[place - 2][0] == "end" or tokens[place - 2][1] in ("(", ",", "!")
        )
        code = code if alone else None
    else:
        code = _literal(tokens, place + 1) if _ends(tokens, place + 2) else None
    _run(call, code)


def _system(call: Call, tokens: list[tuple[str, str]], place: int) -> None:
    around = [token for _, token in tokens[place + 1 : place + 4]]
    whole = len(around) == 3 and around[0] == "(" and around[2] == ")"
    _run(call, _literal(tokens, place + 2) if whole else None)


def _run(call: Call, code: str | None) -> None:
    if code is None:
        call.unknown("runs what is not known before it runs")
    else:
        call.sh(code, stdin=Hole())
