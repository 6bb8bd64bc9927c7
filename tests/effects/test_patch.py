"""A patch is split as Hermes splits it: every file that it touches is named, or more may be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_ext import ToolCall
from hermes_ext.effects import ChangeKind, Effects, Machine, effects_of

PLACE = Path("/nowhere/project")


def effects(patch: str, place: Path = PLACE, **args: Any) -> Effects:
    machine = Machine(cwd=place, homes=("/nowhere/home",), environ={})
    return effects_of(ToolCall("patch", {"mode": "patch", "patch": patch, **args}), machine=machine)


def changes(found: Effects, place: Path = PLACE) -> set[tuple[str, str]]:
    return {(os.path.relpath(each.path, place), each.kind.value) for each in found.changes}


EXACT = [
    ("*** Update File: a.py\n@@\n-x\n+y", {("a.py", "create")}),
    ("*** Begin Patch\n*** Add File: b/c.py\n+x\n*** End Patch", {("b/c.py", "create")}),
    ("***Add File:b.py\n+x", {("b.py", "create")}),
    ("*** Delete  File: a b.py  ", {("a b.py", "delete")}),
    ("*** Move File: a.py -> b.py", {("a.py", "delete"), ("b.py", "create")}),
    ("*** Move File: a.py->b.py -> c", {("a.py", "delete"), ("b.py -> c", "create")}),
    ("*** Update File: a.py\r\n-x\r\n+y\r\n", {("a.py", "create")}),
    ("*** Update File: a.py\n ***\n+*** Delete File: b.py\n", {("a.py", "create")}),
    ("*** Update File: ~/a.py\n-x\n+y", {("../home/a.py", "create")}),
    ("*** Update File: a.py\n*** Move to: b.py\n-x", {("a.py", "create"), ("a.py", "delete"),
                                                      ("b.py", "create")}),
    ("*** Add File: ~y\0/a.py\n+x", {("~y\ufffd/a.py", "create")}),
]  # fmt: skip


@pytest.mark.parametrize(("patch", "expected"), EXACT, ids=[each[0][:40] for each in EXACT])
def test_each_header_names_what_is_done_with_its_file(
    patch: str, expected: set[tuple[str, str]]
) -> None:
    found = effects(patch)
    assert changes(found) == expected
    assert found.exact


@pytest.mark.parametrize(
    "patch",
    [
        "*** Remove File: a.py",
        "*** Update File a.py\n-x\n+y",
        "*** update file: a.py\n-x\n+y",
        "*** Move File: a.py",
        "*** Update File: \x1f",
        "*** Update File: a.py\n*** Rename to: b.py",
        "*** Move File: -t -> b.py",
        "*** Delete File: ~-/a.py",
        "",
        "only text",
    ],
)
def test_what_is_no_known_header_may_touch_anything(patch: str) -> None:
    found = effects(patch)
    assert found.may_write
    assert not found.exact


@pytest.mark.parametrize("value", [None, 1, ["*** Delete File: a.py"], {"a": 1}])
def test_a_patch_that_is_no_text_may_touch_anything(value: Any) -> None:
    assert not effects(value).exact


def test_both_forms_are_looked_at_whatever_the_mode_says() -> None:
    patch = "*** Delete File: b.py"
    for mode in ("replace", "patch", "both"):
        assert changes(effects(patch, path="a.py", mode=mode)) == {
            ("a.py", "create"),
            ("b.py", "delete"),
        }


def test_a_file_is_moved_into_a_directory(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "a.py").touch()
    found = effects("*** Move File: a.py -> to", tmp_path)
    assert changes(found, tmp_path) == {("a.py", "delete"), ("to/a.py", "create")}
    assert found.exact


def test_what_is_written_through_a_link_that_the_patch_moves_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/nowhere/else")
    found = effects("*** Move File: link -> a.py\n*** Update File: a.py\n-x\n+y", tmp_path)
    assert not found.exact


def test_updating_and_deleting_show_what_was_there() -> None:
    found = effects("*** Update File: a.py\n-x\n+y\n*** Delete File: b.py\n*** Add File: c.py\n+x")
    assert {os.path.relpath(path, PLACE) for path in found.reads} == {"a.py", "b.py"}


# -- against the parser of Hermes itself ----------------------------------------------------------

_SPACES = st.sampled_from(
    ["", " ", "  ", "\t", "\x0b", "\x0c", "\r", "\x1c", "\x85", "\xa0", "\u2028"]
)
_NAMES = st.sampled_from(
    ["a.py", "b/c.py", "d e.py", "-x", "->", "a -> b", "***", "*** Delete File: a.py", "~/x", "é"]
)
_VERBS = st.sampled_from(["Update", "Add", "Delete", "Move", "update", "Create", "Move to"])


@st.composite
def _headers(draw: st.DrawFn) -> str:
    parts = [
        draw(st.sampled_from(["***", "***", "*** ", " ***", "+***", "**", "****"])),
        draw(_SPACES),
        draw(_VERBS),
        draw(st.sampled_from([" ", "  ", "\t", "\xa0", ""])),
        draw(st.sampled_from(["File:", "File:", "File :", "file:", ":"])),
        draw(_SPACES),
        draw(_NAMES),
        draw(_SPACES),
    ]
    if draw(st.booleans()):
        parts += [draw(st.sampled_from(["->", " -> ", " ->\r", "=>"])), draw(_NAMES)]
    return "".join(parts)


_LINES = st.one_of(
    _headers(),
    st.sampled_from(
        ["*** Begin Patch", "*** End Patch", "***Begin Patch x", "@@ x @@", " x", "-x", "+y", "",
         "*** End of File", "\\ No newline at end of file", "x"]
    ),
    st.text(max_size=8),
)  # fmt: skip


class _Files:
    """Stands for Hermes's access to files: everything is there, and what is changed is told."""

    def __init__(self) -> None:
        self.touched: set[str] = set()
        self.added: set[str] = set()

    def read_file_raw(self, path: str) -> Any:
        from tools.file_operations import ReadResult

        there = path not in self.added
        return ReadResult(content="x\n" * 3) if there else ReadResult(error="File not found")

    def write_file(self, path: str, content: str) -> Any:
        return self._touch(path)

    def delete_file(self, path: str) -> Any:
        return self._touch(path)

    def move_file(self, source: str, to: str) -> Any:
        self._touch(source)
        return self._touch(to)

    def _touch(self, path: str) -> Any:
        from tools.file_operations import WriteResult

        self.touched.add(path)
        return WriteResult()


def _touched_by_hermes(patch: str) -> set[str]:
    parser = pytest.importorskip("tools.patch_parser")
    operations, error = parser.parse_v4a_patch(patch)
    if error:
        return set()
    files = _Files()
    files.added = {each.new_path for each in operations if each.new_path}
    parser.apply_v4a_operations(operations, files)
    # What the validation refuses here, it may let pass on another disk.
    named = {each.file_path for each in operations} | files.added
    return files.touched | named


@given(st.lists(_LINES, max_size=6).map("\n".join))
@example("***\x0bMove File: a -> b -> c")
@example("*** Update File:\xa0a.py\x85")
def test_every_file_that_hermes_would_touch_is_named_or_more_may_be(patch: str) -> None:
    found = effects(patch)
    if not found.exact:
        return
    for path in _touched_by_hermes(patch):
        at_home = path.replace("~", "/nowhere/home", 1) if path.startswith("~/") else path
        place = Path(os.path.normpath(PLACE / at_home.replace("\0", "\ufffd")))
        assert place in found.writes, f"{path!r} is not named"


def test_a_deleted_file_is_no_file_that_is_written() -> None:
    (change,) = effects("*** Delete File: a.py").changes
    assert change.kind is ChangeKind.DELETE
    assert change.by == "patch"
