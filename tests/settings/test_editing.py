from __future__ import annotations

import difflib
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ext._text import canonical_name
from hermes_ext.exceptions import ConfigError
from hermes_ext.settings.editing import Change, ListEdit, edit_lists, read_list

ADD_X = ListEdit("extensions", "on", add=("x",))
BOM = b"\xef\xbb\xbf"


def config(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "config.yaml"
    file.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    return file


def on_list(file: Path) -> list[object]:
    """The list under `extensions.on` as PyYAML, Hermes's parser, reads it."""
    section = yaml.safe_load(file.read_text(encoding="utf-8-sig"))["extensions"]
    return section[True] if True in section else section["on"]


def lines_changed(before: str, after: str) -> list[str]:
    """The lines of a diff, with their sign."""
    diff = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in diff if line[:1] in "+-"]


LAYOUTS = {
    "block list, indent 0": (
        "extensions:\n  on:\n  - a   # first\n  - 'b'\n\n  # about x\n  log: off\nmodel: m\n",
        ["+   - x"],
    ),
    "block list, indent 2": (
        "# top\nextensions:\n  on:\n    - a\n    - b   # note\n# end\nother: {a: 1,   b: 2}\n",
        ["+     - x"],
    ),
    "block list, indent 4 below a section of indent 3": (
        "extensions:\n   on:\n       - a\n       - b\n   log: off\n",
        ["+        - x"],
    ),
    "all in double quotes": (
        'extensions:\n  on:\n  - "a"\n  - "b"\n',
        ['+   - "x"'],
    ),
    "flow": ("extensions:\n  on: [a,  b ]  # two\n", ["-   on: [a,  b ]  # two", None]),
    "flow over lines": (
        "extensions:\n  on: [\n    a,   # one\n    b    # two\n  ]\n",
        ["-     b    # two", "+     b,    # two", "+     x"],
    ),
    "flow over lines with a last comma": (
        "extensions:\n  on: [\n    a,\n    b,   # two\n  ]\n",
        ["+     x,"],
    ),
    "no final newline": ("extensions:\n  on:\n  - a\n  - b", ["+   - x"]),
    "written by a program that read `on` as true": (
        "extensions:\n  true:\n  - a\n  - b\n",
        ["+   - x"],
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_adds_to_the_list_in_its_own_style_and_touches_nothing_else(tmp_path, layout):
    """Whatever the list's style, one entry is added and every other byte stays."""
    text, expected = LAYOUTS[layout]
    file = config(tmp_path, text)

    edited = edit_lists(file, [ADD_X])

    assert edited.changes == (Change("extensions.on", ("x",), ()),)
    assert on_list(file) == ["a", "b", "x"]
    after = file.read_bytes().decode()
    changed = lines_changed(text, after)
    assert len(changed) == len(expected)
    assert all(want is None or want == got for want, got in zip(expected, changed, strict=True))
    assert after.endswith("\n") == text.endswith("\n")


NEW_LISTS = {
    "missing file": None,
    "empty file": "",
    "only comments": "# nothing yet\n",
    "only a document mark": "---\n",
    "document marks": "---\nmodel: m\n...\n",
    "an empty mapping": "{}\n",
    "no section": "model: m\n# the end\n",
    "no section, no final newline": "model: m",
    "no section, a text that keeps its blank lines before": "text: |+\n  a\n\n",
    "section left empty": "extensions:   # ours\nmodel: m\n",
    "section null": "extensions: null   # ours\nmodel: m\n",
    "section {}": "extensions: {}\nmodel: m\n",
    "section in flow style": "extensions: {enabled: true}\nmodel: m\n",
    "key missing": (
        "extensions:\n  # switch\n  enabled: true  # yes\n\n  some:\n    text: |\n      x\n\nm: 1\n"
    ),
    "key missing, section ends in a text block": "extensions:\n  some:\n    t: |\n      x\nm: 1\n",
    "key left empty": "extensions:\n  on:   # none\n  enabled: true\n",
    "key null": "extensions:\n  on: ~   # none\n  enabled: true\n",
    "key []": "extensions:\n  on: []   # none\n",
    "JSON": '{"model": "m", "extensions": {"enabled": true}}\n',
    "JSON without section": '{"model": "m"}\n',
}


@pytest.mark.parametrize("layout", NEW_LISTS)
def test_makes_what_is_missing(tmp_path, layout):
    """A missing file, section, key or list is made; comments and other values stay."""
    text = NEW_LISTS[layout]
    file = tmp_path / "home" / "config.yaml" if text is None else config(tmp_path, text)
    before = yaml.safe_load(text or "") or {}

    edit_lists(file, [ADD_X])

    assert on_list(file) == ["x"]
    after = file.read_bytes().decode()
    read = yaml.safe_load(after)
    assert {k: v for k, v in read.items() if k != "extensions"} == {
        k: v for k, v in before.items() if k != "extensions"
    }
    for line in (text or "").splitlines():
        if "#" in line:
            assert line[line.index("#") :] in after
    if text and text.lstrip().startswith('{"'):
        assert '"on": ["x"]' in after


@pytest.mark.parametrize("layout", [*LAYOUTS, *NEW_LISTS])
def test_a_second_run_writes_nothing(tmp_path, layout):
    """Doing it again leaves the file byte for byte and does not write it."""
    text = LAYOUTS[layout][0] if layout in LAYOUTS else NEW_LISTS[layout]
    file = tmp_path / "config.yaml" if text is None else config(tmp_path, text)
    edit_lists(file, [ADD_X])
    once, stat_once = file.read_bytes(), file.stat()

    again = edit_lists(file, [ADD_X])

    assert not again.changes
    assert file.read_bytes() == once
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (
        stat_once.st_ino,
        stat_once.st_mtime_ns,
    )


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "flow over" not in name])
def test_taking_out_what_was_put_in_restores_the_file(tmp_path, layout):
    """An entry that is added and removed again leaves the file as it was, byte for byte."""
    text = LAYOUTS[layout][0]
    file = config(tmp_path, text)
    edit_lists(file, [ADD_X])

    edit_lists(file, [ListEdit("extensions", "on", remove=("x",))])

    assert file.read_bytes().decode() == text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("gone", [("a",), ("b",), ("a", "b")])
def test_takes_entries_out(tmp_path, layout, gone):
    """Removing leaves the other entries, an empty list where none is left, and all other values."""
    text = LAYOUTS[layout][0]
    file = config(tmp_path, text)

    edit_lists(file, [ListEdit("extensions", "on", remove=gone)])

    assert on_list(file) == [name for name in ("a", "b") if name not in gone]
    before, after = yaml.safe_load(text), yaml.safe_load(file.read_text())
    assert before.keys() == after.keys()
    assert file.read_bytes().decode().endswith("\n") == text.endswith("\n")


def test_removing_from_what_is_not_there_writes_nothing(tmp_path):
    """A missing file stays missing, and no lock file is left, when there is nothing to remove."""
    edited = edit_lists(
        tmp_path / "none" / "config.yaml", [ListEdit("extensions", "on", remove=("x",))]
    )

    assert not edited.changes
    assert list(tmp_path.iterdir()) == []


def test_two_spellings_are_one_name(tmp_path):
    """With `same`, a name in another spelling is not added twice, and is removed."""
    file = config(tmp_path, "extensions:\n  on: [Ping_Island]\n")

    again = edit_lists(
        file, [ListEdit("extensions", "on", add=("ping-island",))], same=canonical_name
    )
    removed = edit_lists(
        file, [ListEdit("extensions", "on", remove=("ping-island",))], same=canonical_name
    )

    assert not again.changes
    assert removed.changes == (Change("extensions.on", (), ("Ping_Island",)),)
    assert on_list(file) == []


def test_an_alias_gives_way_to_a_list_of_its_own(tmp_path):
    """A list that is an alias is written out, and what it stood for stays as it is."""
    file = config(tmp_path, "shared: &s [a, b]\nextensions:\n  on: *s\nmore: *s\n")

    edit_lists(file, [ADD_X])

    assert file.read_text() == "shared: &s [a, b]\nextensions:\n  on: [a, b, x]\nmore: *s\n"


def test_a_merged_list_is_kept_when_a_name_is_added(tmp_path):
    """Names that `<<` brings in stay in force beside a new one."""
    file = config(tmp_path, "base: &b\n  on: [a]\nextensions:\n  <<: *b\n  log: steps\n")

    edit_lists(file, [ADD_X])

    assert on_list(file) == ["a", "x"]
    assert yaml.safe_load(file.read_text())["base"] == {True: ["a"]}


def test_names_that_yaml_would_misread_are_quoted(tmp_path):
    """A name like `no` or `name:hook` is read back as the text it is."""
    file = config(tmp_path, "extensions:\n  on: []\n")
    names = ("no", "1st", "null", "a b", "other:before_llm_call", "é😀", "x#y", "~")

    edit_lists(file, [ListEdit("extensions", "on", add=names)])

    assert on_list(file) == list(names)


REFUSED = {
    "tabs": ("extensions:\n\ton: [a]\n", 2, "parse"),
    "unclosed": ("model: m\nextensions:\n  on: [a\n", None, "parse"),
    "two documents": ("a: 1\n---\nb: 2\n", 2, "second YAML document|single document"),
    "key twice": ("extensions:\n  on: [a]\n  on: [b]\n", 3, "'on' stands twice, first in line 2"),
    "section twice": ("extensions: {}\nm: 1\nextensions: {}\n", 3, "stands twice"),
    "text for a list": (
        'extensions:\n  on: "a"\n',
        2,
        'found the single value "a", expected a list',
    ),
    "mapping for a list": ("extensions:\n  on: {a: true}\n", 2, "found a mapping, expected a list"),
    "list in the list": ("extensions:\n  on:\n  - [a]\n", 3, "found a list among the names"),
    "list for a section": ("extensions: [a]\n", 1, "found a list, expected a mapping"),
    "list for a file": ("- a\n", 1, "found a list, expected a mapping"),
    "shared list": (
        "extensions:\n  on: &s [a]\nmore: *s\n",
        None,
        "without changing something else",
    ),
    "shared section": ("e: &e {on: [a]}\nextensions: *e\n", 2, "the alias \\*e"),
    "unknown alias": ("extensions:\n  on: *nothing\n", 2, "undefined alias|no anchor"),
    "UTF-16": ("extensions: {}\n".encode("utf-16"), None, "UTF-16"),
    "latin-1": (b"a: 1\nb: caf\xe9\n", 2, "not UTF-8"),
    "control characters": (b"a: 1\nb: \x00\n", None, "parse"),
    "holds itself": (
        "extensions:\n  on: [a]\nr: &r [*r]\n",
        None,
        "nested|unusual|recursive|alias",
    ),
}


@pytest.mark.parametrize("layout", REFUSED)
def test_refuses_what_it_cannot_change_safely(tmp_path, layout):
    """A file that is not understood stays; the error names file, line, cause."""
    text, line, message = REFUSED[layout]
    file = config(tmp_path, text)
    before = file.read_bytes()

    with pytest.raises(ConfigError, match=message) as error:
        edit_lists(file, [ADD_X])

    assert error.value.path == file
    if line is not None:
        assert error.value.line == line
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


@pytest.mark.parametrize("edits", [(0, 1), (1, 0)])
def test_all_edits_or_none(tmp_path, edits):
    """One edit that is refused keeps the others from being written."""
    file = config(tmp_path, "extensions:\n  on: [a]\n  disabled: 3\n")
    before = file.read_bytes()
    both = [ADD_X, ListEdit("extensions", "disabled", add=("y",))]

    with pytest.raises(ConfigError) as error:
        edit_lists(file, [both[number] for number in edits])

    assert error.value.key == "extensions.disabled"
    assert file.read_bytes() == before


@pytest.mark.parametrize("mark", [b"", BOM], ids=["no mark", "byte-order mark"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_byte_order_mark_and_line_ends_stay(tmp_path, mark, newline):
    """A byte-order mark and CRLF are kept, and new lines end like the others."""
    lines = [b"# caf\xc3\xa9", b"extensions:", b"  on:", b"  - a", b"m: '\xf0\x9f\x98\x80'", b""]
    file = config(tmp_path, mark + newline.join(lines))

    edit_lists(file, [ADD_X, ListEdit("extensions", "disabled", add=("y",))])

    data = file.read_bytes()
    assert data.startswith(mark + b"# caf")
    assert data.count(b"\n") == data.count(newline) == 7
    assert on_list(file) == ["a", "x"]


def test_a_link_stays_a_link(tmp_path):
    """The file behind a link is changed, and the link stays."""
    real = tmp_path / "dotfiles" / "hermes.yaml"
    real.parent.mkdir()
    real.write_text("extensions:\n  on: [a]\n")
    link = tmp_path / "config.yaml"
    link.symlink_to("dotfiles/hermes.yaml")

    edited = edit_lists(link, [ADD_X])

    assert link.is_symlink()
    assert edited.path == real.resolve()
    assert on_list(real) == ["a", "x"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_mode_stays(tmp_path, mode):
    """The file's permissions are those it had."""
    file = config(tmp_path, "extensions:\n  on: [a]\n")
    file.chmod(mode)

    edit_lists(file, [ADD_X])

    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give files away")
def test_owner_stays(tmp_path):
    """The file's owner and group are those it had."""
    file = config(tmp_path, "extensions:\n  on: [a]\n")
    os.chown(file, 12345, 23456)

    edit_lists(file, [ADD_X])

    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_a_new_file_is_private(tmp_path):
    """A config that is made is readable by its user only: keys may be written into it."""
    edit_lists(tmp_path / "config.yaml", [ADD_X])

    assert stat.S_IMODE((tmp_path / "config.yaml").stat().st_mode) == 0o600


def test_long_lines_and_odd_layout_stay(tmp_path):
    """Text that dumpers would wrap, requote or align differently stays byte for byte."""
    odd = (
        "%YAML 1.1\n---\n"
        "model:    {default:  'x',   base_url: \"http://h/v1\"}   # left\n"
        f"long: {'word ' * 60}end\n"
        "folded: >-\n    a\n    b\n\n"
        "numbers: [0o17, 0x1F, 1_000, 010, 1e3, .5, ~, null, Yes, 12:30:45]\n"
        '? complex key\n:   - "esc\\u00e9"\n    -   b\n'
        "tagged: !!str 5\n"
        "extensions:\n  on:\n  - a\n"
    )
    file = config(tmp_path, odd)

    edit_lists(file, [ADD_X])

    assert file.read_text() == odd + "  - x\n"


def test_a_lock_that_is_held_is_waited_for_and_then_named(tmp_path):
    """A lock that another program does not give back ends in an error, not in a lost change."""
    file = config(tmp_path, "extensions:\n  on: [a]\n")

    with (
        FileLock(tmp_path / ".config.yaml.lock"),
        pytest.raises(ConfigError, match="another program"),
    ):
        edit_lists(file, [ADD_X], lock_seconds=0.05)

    assert on_list(file) == ["a"]


def test_a_folder_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    """What the system refuses is told with the file's name."""
    (tmp_path / "home").write_text("a file where a folder should be")

    with pytest.raises(ConfigError) as error:
        edit_lists(tmp_path / "home" / "config.yaml", [ADD_X])

    assert error.value.path == tmp_path / "home" / "config.yaml"


ADD_MANY = """
import sys
from pathlib import Path
from hermes_ext.settings.editing import ListEdit, edit_lists
for number in range(int(sys.argv[3])):
    edit_lists(
        Path(sys.argv[1]),
        [ListEdit("extensions", "on", add=(f"{sys.argv[2]}-{number}",))],
        lock_seconds=60,
    )
"""


def start_adding(file: Path, prefix: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", ADD_MANY, str(file), prefix, str(count)])


def test_two_processes_lose_no_name(tmp_path):
    """Two processes that each add 25 names end with all 50 in the file."""
    file = config(tmp_path, "# kept\nextensions:\n  on:\n  - first\n")

    running = [start_adding(file, prefix, 25) for prefix in ("one", "two")]

    assert [process.wait() for process in running] == [0, 0]
    assert sorted(map(str, on_list(file))) == sorted(
        ["first", *(f"{prefix}-{number}" for prefix in ("one", "two") for number in range(25))]
    )
    assert file.read_text().startswith("# kept\n")


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_kill_leaves_a_whole_file(tmp_path):
    """Killed at any moment, the file is one before or after a change; leftovers go later."""
    file = config(tmp_path, "# kept\nextensions:\n  on:\n  - first\nlast: value\n")
    chance = random.Random(7)

    for round_number in range(8):
        process = start_adding(file, f"round{round_number}", 500)
        seen = file.read_bytes()
        while file.read_bytes() == seen and process.poll() is None:
            pass
        for _ in range(chance.randrange(3000)):
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        names = list(map(str, on_list(file)))
        assert names[0] == "first"
        assert len(names) == len(set(names))
        assert file.read_text().endswith("last: value\n")

    edit_lists(file, [ADD_X])
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(
    start=st.lists(NAMES, max_size=4, unique=True),
    steps=st.lists(st.tuples(st.booleans(), NAMES), max_size=6),
    style=st.sampled_from(["flow", "block", "missing"]),
)
def test_any_run_of_edits_equals_the_same_on_a_plain_list(tmp_path_factory, start, steps, style):
    """Adding and removing any names gives what a Python list would hold, and keeps the rest."""
    file = tmp_path_factory.mktemp("config") / "config.yaml"
    head, tail = "# head\nmodel: {a: 1}  # m\nextensions:\n", "\n# tail\nz: [1,  2]\n"
    expected = [] if style == "missing" else list(start)
    written = yaml.safe_dump(
        expected, default_flow_style=style == "flow", allow_unicode=True, width=10**6
    )
    if style == "missing":
        body = "  log: steps\n"
    elif style == "flow" or not expected:
        body = f"  on: {written}"
    else:
        body = "  on:\n" + textwrap.indent(written, "  ")
    file.write_text(head + body + tail, encoding="utf-8")

    for add, name in steps:
        if add:
            edit_lists(file, [ListEdit("extensions", "on", add=(name,))])
            expected += [] if name in expected else [name]
        else:
            edit_lists(file, [ListEdit("extensions", "on", remove=(name,))])
            expected = [each for each in expected if each != name]

    assert list(read_list(file, "extensions", "on")) == expected
    after = file.read_text(encoding="utf-8")
    assert after.startswith(head)
    assert after.endswith(tail)


def test_reads_a_list_as_written(tmp_path):
    """`read_list` gives the entries' own spelling, and nothing for what is missing."""
    file = config(tmp_path, "plugins:\n  enabled: [a, no, 'c d']\n")

    assert read_list(file, "plugins", "enabled") == ("a", "no", "c d")
    assert read_list(file, "plugins", "disabled") == ()
    assert read_list(tmp_path / "none.yaml", "plugins", "enabled") == ()
