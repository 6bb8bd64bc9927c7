"""What a person is shown of a change."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ext.trust import diff
from hermes_ext.trust.diff import FileChange, changed_paths, changes
from hermes_ext.trust.tree import TreeFile


def changed(clone, old: str | bytes, new: str | bytes) -> str | None:
    """The diff of one file that changed."""
    clone.add("extensions/a.py", new)
    raw = old if isinstance(old, bytes) else old.encode()
    (change,) = changes({"extensions/a.py": raw}, clone.tree())
    assert (change.path, change.kind) == ("extensions/a.py", "changed")
    return change.diff


def lines_of(shown: str | None) -> list[str]:
    """The lines of a diff below its two lines of names, without its last line break."""
    assert shown is not None
    return shown.removesuffix("\n").split("\n")[2:]


def test_what_came_went_and_changed(clone):
    """In the order of the paths; what is equal is not named."""
    clone.add("extensions/a.py", "new\n")
    clone.add("extensions/b.py", "same\n")
    clone.add("extensions/d.py", "old\n")
    old = {
        "extensions/b.py": b"same\n",
        "extensions/c.py": b"gone\n",
        "extensions/d.py": b"older\n",
    }
    head = "--- trusted/extensions/{0}\n+++ now/extensions/{0}\n"
    assert changes(old, clone.tree()) == (
        FileChange("extensions/a.py", "added", head.format("a.py") + "@@ -0,0 +1,1 @@\n+new\n"),
        FileChange("extensions/c.py", "removed", head.format("c.py") + "@@ -1,1 +0,0 @@\n-gone\n"),
        FileChange(
            "extensions/d.py", "changed", head.format("d.py") + "@@ -1,1 +1,1 @@\n-older\n+old\n"
        ),
    )
    assert changed_paths(old, clone.tree()) == tuple(
        f"extensions/{name}.py" for name in ("a", "c", "d")
    )


def test_without_a_copy_nothing_is_known(clone):
    """All files are named, and no line is called new."""
    clone.add("extensions/a.py")
    assert changes(None, clone.tree()) == (FileChange("extensions/a.py", "added", None),)


def test_an_empty_file_that_came(clone):
    """It has no lines to show."""
    clone.add("extensions/a.py", "")
    (change,) = changes({}, clone.tree())
    assert (change.kind, lines_of(change.diff)) == ("added", [])


def test_lines_around_a_change(clone):
    """Three before and three behind."""
    lines = [f"{number}\n" for number in range(20)]
    shown = lines_of(changed(clone, "".join(lines), "".join([*lines[:10], "x\n", *lines[11:]])))
    assert shown == ["@@ -8,7 +8,7 @@", " 7", " 8", " 9", "-10", "+x", " 11", " 12", " 13"]


def test_a_missing_line_break_at_the_end(clone):
    """It is a change like others."""
    assert lines_of(changed(clone, "a\n", "a")) == [
        "@@ -1,1 +1,1 @@",
        "-a",
        "+a",
        "\\ No newline at end of file",
    ]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("\x1b[2Jgone", r"+\x1b[2Jgone"),
        ("a = '\u202e'", r"+a = '\u202e'"),
        ("a\u3164 = 1", r"+a\u3164 = 1"),
        ("a\u034f\u115f\u1160\u17b4\uffa0\ufe0f", r"+a\u034f\u115f\u1160\u17b4\uffa0\ufe0f"),
        ("a = '\u180b\u2800\U000e0101'", r"+a = '\u180b\u2800\U000e0101'"),
        ("# harmless\rimport os", r"+# harmless\rimport os"),
        ("page\x0cbreak\x85\u2028", r"+page\x0cbreak\x85\u2028"),
        (b"# -*- latin-1 -*- \xe9", r"+# -*- latin-1 -*- \xe9"),
        ("\tif tab:", "+\tif tab:"),
        ("ä = 'ö'", "+ä = 'ö'"),
    ],
)
def test_nothing_in_a_line_can_hide_it(clone, content, shown):
    """Whatever Python may run is seen, one line as one line."""
    assert lines_of(changed(clone, b"", content))[1] == shown


@pytest.mark.parametrize(("old", "new"), [(b"a", b"\0"), (b"\0", b"a")])
def test_binary_files_have_no_lines(clone, old, new):
    """Python runs no source with a NUL."""
    assert changed(clone, old, new) is None


def test_a_name_that_draws(clone):
    """The path is as on the disk; what is shown of it is printable."""
    clone.add("extensions/a\n\x1b.py", "x\n")
    (change,) = changes({}, clone.tree())
    assert change.path == "extensions/a\n\x1b.py"
    assert change.diff.startswith("--- trusted/extensions/a\\n\\x1b.py\n")


def test_a_big_data_file_that_is_gone_again(clone):
    """It differs, and its lines are not known."""
    from attrs import evolve

    file = clone.add("extensions/a.bin", "new")
    tree = clone.tree()
    tree = evolve(tree, files={"extensions/a.bin": TreeFile(hashlib.sha256(b"new").hexdigest(), 3)})
    file.unlink()
    assert changes({"extensions/a.bin": b"old"}, tree) == (
        FileChange("extensions/a.bin", "changed", None),
    )


def test_one_line_in_a_long_file(clone):
    """It is found however long the file is."""
    lines = [f"{number % 7}\n" for number in range(100_000)]
    new = [*lines[:50_000], "evil\n", *lines[50_000:]]
    shown = lines_of(changed(clone, "".join(lines), "".join(new)))
    assert [line for line in shown if line[0] in "+-"] == ["+evil"]


def test_long_texts_that_share_nothing_but_the_odd_line(clone):
    """No search for the best match in what somebody made to take for ever."""
    old = "".join(f"{number % 50}\n" for number in range(20_000))
    new = "".join(f"{number % 49}\nx\n" for number in range(1, 20_000))
    shown = lines_of(changed(clone, old, new))
    assert shown.count("+x") > 19_990


LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "d\te"]), max_size=12).map("\n".join)


def applied(old: list[str], shown: list[str]) -> list[str]:
    """A patch program in a few lines. Lines are without line breaks."""
    new, at = [], 0
    for line in shown:
        if line.startswith("@@"):
            start, count = map(int, re.match(r"@@ -(\d+),(\d+) ", line).groups())
            begin = start - 1 if count else start
            new += old[at:begin]
            at = begin
        elif line[0] == "+":
            new.append(line[1:])
        elif line[0] in " -":
            assert old[at] == line[1:]
            new += [line[1:]] if line[0] == " " else []
            at += 1
    return new + old[at:]


@settings(max_examples=100, deadline=None)
@given(LINES, LINES, st.sampled_from([0, 5, 2_000]))
def test_a_diff_applied_to_the_old_is_the_new(old, new, limit):
    """Whether the best match was searched for or not."""
    before, diff._MATCHED_LINES = diff._MATCHED_LINES, limit
    try:
        shown = lines_of(diff._diff("x", f"{old}\n".encode(), f"{new}\n".encode(), matched=True))
    finally:
        diff._MATCHED_LINES = before
    assert applied(old.split("\n"), shown) == new.split("\n")
