"""`_yaml_nodes`: nothing that a file holds raises, takes long, or fills the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext.settings.yaml_nodes import (
    Unreadable,
    line_of,
    node_at,
    parse_document,
    plain,
    repeated_keys,
)

FILE = Path("some.yaml")


def value_of(text: str | bytes) -> object:
    document = parse_document(FILE, text if isinstance(text, bytes) else text.encode())
    assert document.fault is None, document.fault
    return plain(document.root)


def fault_of(text: str | bytes) -> str:
    """What is told of the file, or of its value."""
    document = parse_document(FILE, text if isinstance(text, bytes) else text.encode())
    if document.fault is not None:
        return str(document.fault)
    with pytest.raises(Unreadable) as caught:
        plain(document.root)
    return f"{FILE}:{caught.value.line}: {caught.value}"


def doubled(line: str) -> str:
    """Lines of which each says nine times what the one before says."""
    pairs = zip("abcdefgh", "bcdefghi", strict=True)
    lines = (line.format(new=new, old=", ".join([f"*{old}"] * 9)) for old, new in pairs)
    return "a: &a {k: 1}\n" + "".join(lines)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("\ufeff", None),
        ("# only a comment\n", None),
        ("a: 1\rb: 2\r", {"a": 1, "b": 2}),
        ("on: 1\n~: 2\n1: 3\n", {"on": 1, "~": 2, "1": 3}),
        ("op: =\n", {"op": "="}),
        ("'<<': 5\n", {"<<": 5}),
        ("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}\n",
         {"a": {"x": 1, "y": 1}, "b": {"x": 2, "z": 2}, "c": {"x": 1, "z": 2, "y": 3}}),
        ("a: &a {<<: *a, x: 1}\n", {"a": {"x": 1}}),
    ],
    ids=[
        "nothing", "mark", "comment", "carriage-returns", "keys-as-written", "equals",
        "quoted-merge", "merges", "merges-itself",
    ],
)  # fmt: skip
def test_what_is_read(text, value):
    """Keys as they are written; merged mappings give way to what stands beside them."""
    assert value_of(text) == value


def test_a_merged_key_is_not_given_twice():
    """A key that overrides a merged one is no repeated key; one that is written twice is."""
    document = parse_document(FILE, b"a: &a {x: 1}\nb:\n  <<: *a\n  x: 2\n  y: 3\n  y: 4\n")
    (told,) = repeated_keys(document.file, document.root, "")
    assert (told.key, told.line) == ("b.y", 6)
    assert told.message == "given twice (first in line 5); the last one counts"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (doubled("{new}: &{new} [{old}]\n"), "expands to more than 1,000,000 values"),
        (doubled("{new}: &{new} {{<<: [{old}]}}\n"), "expands to more than 1,000,000 values"),
        (
            "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 300)),
            "too many merge keys in a row",
        ),
        (
            "a: {<<: 5}\n",
            "some.yaml:1: is not valid YAML: `<<` takes mappings, found the number '5'",
        ),
        ("a: 1\n<<: [x]\n", "some.yaml:2: is not valid YAML: `<<` takes mappings"),
        ("a: 1\n? [b]\n: c\n", "some.yaml:2: a key is a list, expected text"),
        ("a: " + "1:" * 9_999 + "1\n", "the number is too long"),
        ("a: 0x" + "f" * 9_999 + "\n", "the number is too long"),
        ("a: !!bool perhaps\n", "some.yaml:1: 'perhaps' is not a valid bool"),
        ("a: !!timestamp x\n", "'x' is not a valid timestamp"),
        ("a: !!int x\n", "invalid literal for int()"),
        ("a: 1\nb: 2024-99-99\n", "some.yaml:2: month must be in 1..12"),
        ("a: !!set {x}\n", "the tag set is not supported"),
        (
            "a: !!python/object/apply:os.system [ls]\n",
            "the tag python/object/apply:os.system is not",
        ),
        ("a: !!python/name:os.system ''\n", "could not determine a constructor"),
        ("a: *b\n", "some.yaml:1: is not valid YAML: found undefined alias"),
        ("- " * 100_000, "is nested too deeply"),
        (b"a: \xed\xa0\x80\n", "some.yaml:1: byte 0xed is not UTF-8"),
        ("a: 1\n".encode("utf-32"), "is UTF-16 or binary"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) or len(value) > 60 else None,
)
def test_what_cannot_be_read(text, expected):
    """It is told in one line with its place: bombs, slips, tags that make objects."""
    assert expected in fault_of(text)


def test_merging_has_an_end():
    """A mapping that is merged into hundreds of others is refused before it is."""
    base = ", ".join(f"k{index}: " for index in range(20_000))
    merges = ", ".join(["{<<: *b}"] * 20)
    assert "`<<` expands to more than 100,000 values" in fault_of(
        f"x: &b {{{base}}}\ny: [{merges}]\n"
    )
    empty = ", ".join(["{}"] * 1_000)
    merges = ", ".join(["{<<: *b}"] * 500)
    assert "`<<` expands to more than" in fault_of(f"x: &b [{empty}]\ny: [{merges}]\n")


def test_a_node_looks_through_its_keys_once():
    """Each of thousands of keys has its line, the last of repeated ones."""
    text = "a: 0\n" + "".join(f"k{index}: {index}\n" for index in range(30_000)) + "a: 1\n"
    root = parse_document(Path("f"), text.encode()).root
    lines = [line_of(node_at(root, [f"k{index}"])) for index in range(30_000)]
    assert lines == [*range(2, 30_002)]
    assert line_of(node_at(root, ["a"])) == 30_002
    assert line_of(node_at(root, ["missing"])) == 1
