"""`_snapshot`: what the last load recorded, as a file that may always be missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.snapshot import (
    key_of,
    read_snapshot,
    snapshot_file,
    stamp_of,
    write_snapshot,
)
from hermes_ext.records import ExtensionRecord, HookInfo, Status

HOOK = HookInfo("before_llm_call", "check", 5, True, ("mcp_*",), "block", 10.0, "/x.py", 3)
RECORD = ExtensionRecord(
    "x", Source.GLOBAL, Status.ENABLED, path=Path("/x"), hooks=(HOOK,), warnings=("odd",)
)
OFF = ExtensionRecord("off", Source.BUNDLED, Status.DISABLED, "not on")


def test_what_is_written_is_read_again(tmp_path):
    """Status, reason, hooks, warnings and stamp come back under source, name and path."""
    assert write_snapshot(tmp_path, [(RECORD, 7), (OFF, 0)])
    (key, remembered), *rest = read_snapshot(tmp_path).items()
    assert rest == []
    assert key == key_of(Source.GLOBAL, "x", Path("/x"))
    assert (remembered.status, remembered.hooks) == (Status.ENABLED, (HOOK,))
    assert (remembered.warnings, remembered.stamp) == (("odd",), 7)


def test_nothing_is_written_twice(tmp_path):
    """A load that recorded the same as the last one leaves the file alone."""
    assert write_snapshot(tmp_path, [(RECORD, 7)])
    before = snapshot_file(tmp_path).stat()
    assert not write_snapshot(tmp_path, [(RECORD, 7)])
    after = snapshot_file(tmp_path).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert write_snapshot(tmp_path, [(RECORD, 8)])
    assert [each.name for each in snapshot_file(tmp_path).parent.iterdir()] == ["last-load.json"]


def test_what_was_not_loaded_this_time_is_kept(tmp_path):
    """A load without it forgets nothing of an extension that is still there; a deleted one goes."""
    files = [tmp_path / name for name in ("here.py", "elsewhere.py", "gone.py")]
    for file in files:
        file.touch()
    here, elsewhere, gone = (evolve(RECORD, name=file.stem, path=file) for file in files)
    write_snapshot(tmp_path, [(here, 0), (elsewhere, 0), (gone, 0), (RECORD, 0)])
    files[2].unlink()

    off = [evolve(each, status=Status.DISABLED, hooks=()) for each in (here, RECORD)]
    assert write_snapshot(tmp_path, [(each, 0) for each in off])
    assert not write_snapshot(tmp_path, [(each, 0) for each in off[::-1]])

    left = read_snapshot(tmp_path)
    assert {name for _, name, _ in left} == {"here", "elsewhere", "x"}
    assert all(each.hooks == (HOOK,) for each in left.values())


def test_a_home_without_extensions_stays_as_it_is(tmp_path):
    """Where nothing is on, no folder is made."""
    assert not write_snapshot(tmp_path, [(OFF, 0)])
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written(tmp_path):
    """A load never fails because of the snapshot."""
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert not write_snapshot(tmp_path, [(RECORD, 0)])
    assert read_snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format": 0, "extensions": []}', '{"format": 1, "extensions": 5}'],
)
def test_a_damaged_file_counts_as_none(tmp_path, text):
    """What cannot be read means that nothing was loaded yet, and is written anew."""
    file = snapshot_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert read_snapshot(tmp_path) == {}
    assert write_snapshot(tmp_path, [(RECORD, 0)])
    assert len(read_snapshot(tmp_path)) == 1


def test_one_damaged_entry_does_not_hide_the_others(tmp_path):
    """An entry that lacks something is left out."""
    write_snapshot(tmp_path, [(RECORD, 0)])
    file = snapshot_file(tmp_path)
    told = json.loads(file.read_text())
    told["extensions"] += [{"name": "y"}, 5, told["extensions"][0] | {"name": "z", "status": "?"}]
    file.write_text(json.dumps(told))
    assert [name for _, name, _ in read_snapshot(tmp_path)] == ["x"]


def test_stamps(tmp_path):
    """A file's stamp is its modification time; without a file it is 0."""
    file = tmp_path / "x.py"
    file.touch()
    assert stamp_of(file) == file.stat().st_mtime_ns
    assert stamp_of(tmp_path / "none") == 0
    assert stamp_of(None) == 0
