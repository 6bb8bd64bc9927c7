"""Clients of databases, and programs that show texts page by page."""

from __future__ import annotations

import re
from typing import Final

from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole, Word, beginning

_FUNCTIONS: Final = (
    "avg|cast|char_length|coalesce|count|date|datetime|distinct|in|values|group_concat|ifnull|"
    "length|lower|max|"
    "min|nullif|now|over|round|string_agg|strftime|substr|substring|sum|trim|typeof|upper|version|and|or|not|"
    "from|where|as|on|by|exists|any|all|select|then|when|else|using"
)
_QUERY: Final = re.compile(
    r"\s*(?:select\b|show\s|describe\s|explain\s+select\b|with\s)(?:(?!--|/\*)[^;\\`#\[\]])*;?\s*\Z",
    re.IGNORECASE,
)
_NOT_IN_QUERY: Final = re.compile(
    r"\b(?:into|update|insert|delete|drop|alter|create|replace|attach|copy|call|do|execute|lock|for\s+update)\b",
    re.IGNORECASE,
)
# What stands before a bracket: a name, a sign, or something by which another name may be quoted.
_CALLED: Final = re.compile(r"(\w+|[,(=<>+*/%|-]|[^\w\s]|\A)\s*\(")
_SIGNS: Final = frozenset({"", *",(=<>+*/%|-"})
_SQLITE_FLAGS: Final = re.compile(
    r"-(?:readonly|headers?|csv|json|line|column|table|box|batch|noheader|list|markdown|-?version)\Z"
)
_SQLITE_SHOWS: Final = re.compile(
    r"\s*\.(?:tables|schema|fullschema|indexes|indices|databases|dbinfo|headers|mode)"
    r"(?:\s+[\w% ]*)?\Z"
)


def _only_reads(text: Word) -> bool:
    if isinstance(text, Hole) or not _QUERY.match(text) or _NOT_IN_QUERY.search(text):
        return False
    before = _CALLED.findall(text)
    return all(each in _SIGNS or re.fullmatch(_FUNCTIONS, each, re.I) for each in before)


def sqlite(call: Call) -> None:
    """`sqlite3 FILE QUERY`."""
    words = [each for each in call.words if isinstance(each, Hole) or not _SQLITE_FLAGS.match(each)]
    if list(call.words) in (["-version"], ["--version"]):
        return
    if not words:
        call.unknown("is not told what to ask in its words")
        return
    if any(isinstance(each, Hole) or each.startswith("-") for each in words[:2]):
        call.unknown("has options that are not known")
    file, queries = words[0], words[1:]
    shows = all(
        _only_reads(each) or (isinstance(each, str) and _SQLITE_SHOWS.match(each))
        for each in queries
    )
    if not queries or not shows:
        call.unknown("is given more than a query that only reads")
    if isinstance(file, str) and file.startswith("file:"):
        call.unknown("is given an address, which may say more than a name", file)
    # It makes the file if there is none.
    if "-readonly" not in call.words and call.there(file) is not True and file != ":memory:":
        call.write(file)
    call.read(file)


def sql(call: Call) -> None:
    """`psql -c QUERY`, `mysql -e QUERY`."""
    if list(call.words) in (["-V"], ["--version"]):
        return
    call.check_options()
    queries = call.values("-c", "--command", "-e", "--execute")
    if call.name == "psql":
        queries = call.values("-c", "--command")
        for where in (*call.values("-d", "--dbname"), *call.operands):
            if isinstance(where, Hole) or "=" in where:
                call.unknown("is given settings of the connection", where)
    if not queries and not call.has("-l", "--list"):
        call.unknown("is not told what to ask in its words")
    if not all(_only_reads(each) for each in queries):
        call.unknown("is given more than a query that only reads")


def pager(call: Call) -> None:
    """`less FILE`: a word that begins with `+` is a command."""
    call.check_options()
    if any(isinstance(each, str) and re.match(r"-[^-]*\+", each) for each in call.words):
        call.unknown("is given commands")
    for word in call.operands:
        text = beginning(word)
        if text.startswith("+") or (isinstance(word, Hole) and (word.many or not text)):
            if not re.fullmatch(r"\+\d*[GF]?", text) or isinstance(word, Hole):
                call.unknown("is given commands", word)
        else:
            call.read(word)


_INSTALLED: Final = re.compile(r"/(?:usr|bin|sbin|lib\w*|opt)/(?!.*\.\.)")


def ldd(call: Call) -> None:
    """`ldd FILE`, which may run the file."""
    call.check_options()
    for word in call.operands:
        call.read(word)
        if isinstance(word, Hole) or not _INSTALLED.match(word):
            call.unknown("may run the file", word)
