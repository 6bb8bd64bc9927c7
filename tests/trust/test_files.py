"""Files that are whole whatever happens, and written by one at a time."""

from __future__ import annotations

import os
import stat
import threading

import pytest
from filelock import FileLock

from hermes_ext import _files
from hermes_ext._files import locked, remove_leftovers, replace_file
from hermes_ext.exceptions import ConfigError


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_the_users_alone(tmp_path):
    """It may hold keys."""
    assert replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert mode(tmp_path / "a") == 0o600
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(("given", "expected"), [(None, 0o640), (0o600, 0o600)])
def test_permissions_stay_unless_they_are_given(tmp_path, given, expected):
    """Whatever the umask."""
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o640)
    replace_file(tmp_path / "a", b"new", mode=given)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert mode(tmp_path / "a") == expected


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can")
def test_the_owner_stays(tmp_path):
    """A file that root changes for a user is still the user's."""
    (tmp_path / "a").write_text("old")
    os.chown(tmp_path / "a", 12345, 12345)
    replace_file(tmp_path / "a", b"new")
    assert ((tmp_path / "a").stat().st_uid, (tmp_path / "a").stat().st_gid) == (12345, 12345)


def test_a_link_is_replaced(tmp_path):
    """What it leads to stays as it is."""
    (tmp_path / "target").write_text("target")
    (tmp_path / "a").symlink_to("target")
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "target").read_text() == "target"
    assert not (tmp_path / "a").is_symlink()


def test_where_it_fails_the_old_file_stays_and_nothing_is_left(tmp_path, monkeypatch):
    """The error names the file, not a temporary one."""
    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(_files.os, "fsync", lambda descriptor: os.write(-1, b""))
    with pytest.raises(OSError, match="Bad file descriptor") as error:
        replace_file(tmp_path / "a", b"new")
    assert error.value.filename == str(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_asked_last_it_may_stay(tmp_path):
    """Where somebody else has written the file meanwhile, say."""
    (tmp_path / "a").write_text("old")
    assert not replace_file(tmp_path / "a", b"new", still=lambda: False)
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_that_is_not_there(tmp_path):
    """The error names the file that was to be written."""
    with pytest.raises(FileNotFoundError) as error:
        replace_file(tmp_path / "no" / "a", b"")
    assert error.value.filename == str(tmp_path / "no" / "a")


def test_leftovers_of_a_file_go(tmp_path):
    """And nobody else's."""
    kept = {".a.lock", ".b.1.hermes-ext.tmp", "a", ".a.tmp", "a.1.hermes-ext.tmp"}
    for name in (*kept, ".a.1.hermes-ext.tmp", ".a.2.hermes-ext.tmp"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "a")
    assert set(os.listdir(tmp_path)) == kept
    remove_leftovers(tmp_path / "no" / "a")


def test_one_at_a_time(tmp_path):
    """Also among the threads of one process."""
    inside, most = [], []

    def work() -> None:
        for _ in range(5):
            with locked(tmp_path / "a"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 15


def test_a_lock_that_another_holds_is_named(tmp_path):
    """After a while it is an error, with the lock file and what to do."""
    lock = tmp_path / ".a.lock"
    with (
        FileLock(lock),
        pytest.raises(ConfigError, match="another program has been changing a") as error,
        locked(tmp_path / "a", 0.01),
    ):
        pytest.fail("two hold the lock")
    assert error.value.path == lock
    assert error.value.hint


def test_a_lock_is_given_back_after_an_error(tmp_path):
    """Whatever happens inside."""
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "a"):
        raise ZeroDivisionError
    with locked(tmp_path / "a", 0.01):
        pass
