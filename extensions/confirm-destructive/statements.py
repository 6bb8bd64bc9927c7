"""Statements that take data away, in SQL and in the languages of other databases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

_HOLDS_THEM = re.compile(r"sql|quer(?:y|ies)|statement|cypher", re.IGNORECASE)
# A query of a tool that searches may be a question about them, in words.
_BEGINS = re.compile(
    r"^\W*(?:alter|begin|call|copy|create|db\s*\.|declare|delete|do|drop|exec\w*|explain|flush\w*"
    r"|insert|match|merge|pragma|replace|select|set|start|truncate|update|use|with)\b",
    re.IGNORECASE | re.MULTILINE,
)
_DEEPEST = 12  # lists and mappings in one another
_TAKES_THEM = re.compile(r"-[ceQf]|--(?:command|execute|eval|file|query)(?:=|\Z)")
_LINE_COMMENT = re.compile(r"--[^\n]*")
# Bounded, so that a text that somebody made to be slow to read is read at once.
_DESTROYS = re.compile(
    r"""\b(?:
        drop \s+ (?:database|schema|table|view|index|column|user|role|materialized|type|sequence
                   |collection|keyspace|function|trigger|owned)
      | truncate \b (?! \s* \( )
      | alter \s+ table \b [^;]{0,300} \b drop \b
      | delete \s+ from \b (?! [^;]{0,2000} \b where \b )
      | update \s+ [\w."`\[\]]+ \s+ set \b (?! [^;]{0,2000} \b where \b )
      | flushall | flushdb
      | dropDatabase | deleteMany \s* \( \s* \{ \s* \} | remove \s* \( \s* \{ \s* \}
    )
    | \. drop \s* \(
    """,
    re.IGNORECASE | re.VERBOSE,
)


def destroys_data(text: str) -> bool:
    """Whether a text holds a statement that drops, empties or rewrites a table, or more."""
    # As it is, too: `--command=DROP …` is no comment, and MySQL runs what stands in /*! … */.
    return any(_DESTROYS.search(each) for each in (text, _without_comments(text)))


def _without_comments(text: str) -> str:
    first, *others = text.split("/*")
    return _LINE_COMMENT.sub(" ", " ".join((first, *(each.partition("*/")[2] for each in others))))


def named_as_such(value: object, named: bool = False, depth: int = 0) -> Iterator[str]:
    """The statements among a tool's arguments, by the names of those; also in lists and mappings.

    named: whether a name around the value says that it holds statements.
    """
    if isinstance(value, str):
        if named and any(map(_BEGINS.search, (value, _without_comments(value)))):
            yield value
    elif depth < _DEEPEST:
        pairs = value.items() if isinstance(value, Mapping) else _unnamed(value)
        for name, each in pairs:
            holds = named or _HOLDS_THEM.search(str(name)) is not None
            yield from named_as_such(each, holds, depth + 1)


def _unnamed(value: object) -> Iterator[tuple[str, object]]:
    yield from (("", each) for each in value) if isinstance(value, list | tuple) else ()


def are_hidden(args: Sequence[str | None]) -> bool:
    """Whether what a client is told to do may be a word that is not known before it runs."""
    if None not in args:
        return False
    given = [at for at, each in enumerate(args) if each is not None and _TAKES_THEM.match(each)]
    return not given or None in (args[at + 1] for at in given if at + 1 < len(args))
