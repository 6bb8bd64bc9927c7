"""Options, their values and operands are told apart as the programs do it."""

from __future__ import annotations

import getopt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ext.effects._options import Below, Option, Table
from hermes_ext.effects._words import ANYTHING, Hole, Word

_TABLE = Table(
    [
        Option(("-a", "--all")),
        Option(("-v", "--verbose")),
        Option(("-o", "--output"), ("write",)),
        Option(("-n", "--number"), ("text",)),
        Option(("--output-dir",), ("text",)),
    ],
    numbers=False,
)
_LONG = ["all", "verbose", "output=", "number=", "output-dir="]


def _told(
    words: list[Word], *, permute: bool = True
) -> tuple[list[tuple[str, object]], list[Word]]:
    read = _TABLE.read(words, permute=permute)
    options = [(each.name, each.values[0] if each.values else "") for each in read.options]
    return options, read.operands


_SPELT = (
    "-a -v -av -o -ox -vox -n -n5 --all --al --verb --output --output=x --num=5 --number",
    "--output-d --output-dir=d -- - x",
)
_WORDS = st.lists(
    st.one_of(
        st.sampled_from([word for line in _SPELT for word in line.split()]),
        st.from_regex(r"-[av]{1,4}([on][a-z.=-]{0,3})?", fullmatch=True),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(_WORDS, st.booleans())
def test_options_are_read_as_getopt_reads_them(words: list[str], permute: bool) -> None:
    """Clusters, values, abbreviations and `--`: whatever getopt takes is read in the same way."""
    reference = getopt.gnu_getopt if permute else getopt.getopt
    try:
        options, operands = reference(words, "avo:n:", _LONG)
    except getopt.GetoptError:
        return
    assert _told(list(words), permute=permute) == ([tuple(each) for each in options], operands)


@pytest.mark.parametrize(
    ("words", "options", "operands", "unclear"),
    [
        ([Hole()], [], [Hole()], 1),
        ([Hole("./")], [], [Hole("./")], 0),
        ([ANYTHING], [], [ANYTHING], 1),
        (["--", Hole()], [], [Hole()], 0),
        (["-o", Hole()], [("-o", Hole())], [], 0),
        (["-o", ANYTHING], [("-o", ANYTHING)], [], 1),
        ([Hole("--output=")], [("--output", Hole())], [], 0),
        ([Hole("-o")], [("-o", Hole())], [], 0),
        ([Hole("-a")], [("-a", "")], [], 1),
        ([Hole("--")], [], [], 1),
        ([Below("src", many=True)], [], [Below("src", many=True)], 0),
    ],
    ids=str,
)
def test_words_that_are_not_known(
    words: list[Word], options: list[object], operands: list[Word], unclear: int
) -> None:
    """A word is unclear where it may be an option, or several words."""
    assert _told(words) == (options, operands)
    assert len(_TABLE.read(words).unclear) == unclear


def test_an_abbreviation_of_several_options_is_none_of_them() -> None:
    """`--output-` is not taken for the first option that begins so."""
    table = Table([Option(("--exclude",), ("text",)), Option(("--execute",), unknown="runs it")])
    assert [each.name for each in table.read(["--excl", "x"]).options] == ["--exclude"]
    (given_option,) = table.read(["--ex", "x"]).options
    assert given_option.option is not None
    assert given_option.option.unknown


def test_one_dash_may_begin_a_long_name() -> None:
    """`openssl -in FILE` and `--in=FILE` are the same option where the table says so."""
    table = Table([Option(("-in",), ("read",)), Option(("-noout",))], words=True)
    assert table.read(["-in", "a", "-noout"]).values("-in") == ["a"]
    assert table.read(["--in=a"]).values("-in") == ["a"]
    assert table.read(["-i", "a"]).strange() == ["--i"]


def test_numbers_are_options_unless_the_table_says_otherwise() -> None:
    """`head -20 FILE` has one operand."""
    assert Table().read(["-20", "a"]).operands == ["a"]
    assert Table().read(["-20", "a"]).strange() == []
    assert _TABLE.read(["-20", "a"]).strange() == ["-2", "-0"]
