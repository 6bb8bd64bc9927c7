"""Reading a project's extensions: one digest of all, and nothing that could harm the reader."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_ext.trust import tree as tree_module
from hermes_ext.trust import walk
from hermes_ext.trust.place import Project
from hermes_ext.trust.store import stamp_now
from hermes_ext.trust.tree import read_tree, stamp_of
from hermes_ext.trust.walk import TreeError


def refusal(clone) -> TreeError:
    with pytest.raises(TreeError) as error:
        clone.tree()
    assert str(error.value).startswith(str(clone.hermes))
    assert str(error.value).isprintable()
    return error.value


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class TestDigest:
    def test_the_files_and_the_digest(self, clone):
        """SHA-256 over the sorted lines `path NUL sha256(file) LF`."""
        clone.add("extensions/b/__init__.py", "b")
        clone.add("extensions/a.py", "a")
        clone.add("extensions.yaml", "a: {}\n")
        clone.add("notes.md", "not part of it")

        tree = clone.tree()

        assert tree.root == clone.root
        assert list(tree.files) == [
            "extensions.yaml",
            "extensions/a.py",
            "extensions/b/__init__.py",
        ]
        lines = (
            f"extensions.yaml\0{sha(b'a: {}' + bytes([10]))}\n"
            f"extensions/a.py\0{sha(b'a')}\n"
            f"extensions/b/__init__.py\0{sha(b'b')}\n"
        )
        assert tree.digest == sha(lines.encode())
        assert tree.files["extensions/a.py"].data == b"a"
        assert tree.files["extensions/a.py"].size == 1

    def test_hidden_files_and_empty_ones_count(self, clone):
        """Everything an extension could read is in it."""
        clone.add("extensions/a/.env", "")
        clone.add("extensions/.hidden/x", "x")
        assert list(clone.tree().files) == ["extensions/.hidden/x", "extensions/a/.env"]

    def test_bytecode_does_not_count(self, clone):
        """It is never loaded, so it may come and go."""
        clone.add("extensions/a/__init__.py")
        before = clone.tree().digest
        clone.add("extensions/a/__pycache__/__init__.cpython-311.pyc", b"planted")
        clone.add("extensions/a/__pycache__/readme", b"x")
        clone.add("extensions/a/old.pyc", b"planted")
        clone.add("extensions/a/old.pyo", b"planted")
        (clone.extensions / "__pycache__").symlink_to("/")
        (clone.extensions / "b.pyc").symlink_to("/nowhere")
        assert clone.tree().digest == before

    def test_what_is_only_named_like_bytecode_counts(self, clone):
        """A folder `x.pyc` and a file `__pycache__` hold no bytecode."""
        clone.add("extensions/x.pyc/__init__.py")
        clone.add("extensions/a/__pycache__")
        assert list(clone.tree().files) == [
            "extensions/a/__pycache__",
            "extensions/x.pyc/__init__.py",
        ]

    def test_nothing_there(self, clone):
        """An empty tree is one as well."""
        shutil.rmtree(clone.hermes)
        with pytest.raises(TreeError, match=r"\.hermes cannot be read: No such file"):
            clone.tree()
        clone.hermes.mkdir()
        tree = clone.tree()
        assert (dict(tree.files), tree.digest) == ({}, sha(b""))

    def test_the_names_of_extensions(self, clone):
        """Folders with code and single files, without what is hidden, private or a backup."""
        for file in (
            "b/__init__.py",
            "b.py",
            "a-1.py",
            "no-code/extension.yaml",
            "deep/er/__init__.py",
            "_private.py",
            ".hidden/__init__.py",
            "old~/__init__.py",
            "notes.md",
        ):
            clone.add(f"extensions/{file}")
        clone.add("extensions.yaml", "")
        assert clone.tree().names() == ("a-1", "b")


class TestNames:
    def test_odd_names(self, clone):
        """A line break, bytes that are no UTF-8, and the longest name there is."""
        names = ["new\nline.py", os.fsdecode(b"\xff\xfe.py"), "é" * 120 + ".py", "\x1b[31m.py"]
        for name in names:
            clone.add(f"extensions/{name}")
        tree = clone.tree()
        assert set(tree.files) == {f"extensions/{name}" for name in names}
        lines = sorted(
            os.fsencode(path) + b"\0" + sha(b"x = 1\n").encode() + b"\n" for path in tree.files
        )
        assert tree.digest == sha(b"".join(lines))

    def test_paths_longer_than_the_system_takes(self, clone):
        """Everything is opened from its folder, so no path is too long."""
        descriptor = os.open(clone.extensions, os.O_RDONLY)
        for _ in range(25):
            os.mkdir("d" * 200, dir_fd=descriptor)
            below = os.open("d" * 200, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        os.close(os.open("x.py", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor))
        os.close(descriptor)
        (path,) = clone.tree().files
        assert len(path) > 5000

    def test_a_refusal_is_one_printable_line(self, clone):
        """A name cannot draw on the terminal."""
        os.mkfifo(clone.extensions / "a\x1b[2J\nb")
        assert r"a\x1b[2J\nb is a named pipe" in str(refusal(clone))


class TestLinks:
    def test_links_within_the_extensions_count_under_their_own_path(self, clone):
        """To files and to folders, also one over another."""
        clone.add("extensions/a/rules.py", "rules")
        (clone.extensions / "b").symlink_to("a")
        (clone.extensions / "c.py").symlink_to("b/rules.py")
        tree = clone.tree()
        assert {path: file.data for path, file in tree.files.items()} == dict.fromkeys(
            ("extensions/a/rules.py", "extensions/b/rules.py", "extensions/c.py"), b"rules"
        )

    def test_links_of_the_project_itself(self, clone):
        """`.hermes` and what is in it may lie elsewhere in the project."""
        clone.add("extensions/a.py", "a")
        (clone.extensions / "b.py").symlink_to(clone.root / ".hermes" / "extensions" / "a.py")
        clone.hermes.rename(clone.root / "agents")
        clone.hermes.symlink_to("agents")
        (clone.root / "settings").write_text("a: {}")
        (clone.hermes / "extensions.yaml").symlink_to("../settings")
        assert list(clone.tree().files) == [
            "extensions.yaml",
            "extensions/a.py",
            "extensions/b.py",
        ]

    @pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "../../", "/", "../notes"])
    def test_one_that_leaves_is_refused(self, clone, target):
        """Whatever is there: it is neither read nor hashed."""
        (clone.root / "secret").write_text("x")
        clone.add("notes")
        clone.add("extensions/a.py")
        (clone.extensions / "leaves").symlink_to(target)
        error = refusal(clone)
        assert error.path == clone.extensions / "leaves"
        assert f"is a link that leaves {clone.extensions}, to " in str(error)

    def test_one_that_leaves_over_another_is_refused(self, clone):
        """What counts is where it ends."""
        (clone.extensions / "a").mkdir()
        (clone.extensions / "a" / "up").symlink_to("../../..")
        (clone.extensions / "a" / "b").symlink_to("up/.git")
        assert "is a link that leaves" in str(refusal(clone))

    def test_one_that_leads_nowhere_is_refused(self, clone):
        """It could lead somewhere tomorrow."""
        (clone.extensions / "a.py").symlink_to("b.py")
        assert "a.py is a link to what is not there. Remove the link" in str(refusal(clone))

    def test_one_that_the_system_cannot_follow_says_why(self, clone):
        (clone.extensions / "a").symlink_to("x" * 300)
        assert "File name too long" in str(refusal(clone))

    def test_one_that_leads_back_to_itself_is_refused(self, clone):
        """By way of another, too."""
        (clone.extensions / "a").symlink_to("b")
        (clone.extensions / "b").symlink_to("a")
        assert "is a link that leads back to itself" in str(refusal(clone))

    def test_a_chain_of_more_links_than_the_system_follows_is_refused(self, clone):
        """Nothing raises, however long it is: Python itself would follow each by a call."""
        for number in range(1500):
            (clone.extensions / f"x{number}").symlink_to(f"x{number + 1}")
        clone.add("extensions/x1500")
        told = "x0 is a link that leads back to itself, or on through too many other links"
        assert told in str(refusal(clone))
        assert told in clone.judge().reason
        assert clone.judge().stamp == stamp_now(clone.project, clone.home)

    @pytest.mark.parametrize("target", [".", "..", "../../../extensions"])
    def test_one_to_a_folder_that_it_is_in_is_refused(self, clone, target):
        """There would be no end."""
        (clone.extensions / "a" / "b").mkdir(parents=True)
        (clone.extensions / "a" / "b" / "again").symlink_to(target)
        assert "again is a link to a folder that it is in" in str(refusal(clone))

    def test_folders_that_link_to_each_other_are_refused(self, clone):
        """Cycles of several links, too."""
        for one, other in ("ab", "ba"):
            (clone.extensions / one).mkdir()
            (clone.extensions / one / "in").symlink_to(f"../{other}")
        assert "is a link to a folder that it is in" in str(refusal(clone))

    def test_links_that_multiply_end_at_the_limits(self, clone, monkeypatch):
        """Twenty folders that each link twice to the next have a million files."""
        monkeypatch.setattr(walk, "MAX_ENTRIES", 500)
        for number in range(20):
            (clone.extensions / f"d{number}").mkdir()
            for link in "ab":
                if number:
                    (clone.extensions / f"d{number}" / link).symlink_to(f"../d{number - 1}")
        clone.add("extensions/d0/x.py")
        assert "which is the limit" in str(refusal(clone))

    def test_an_extensions_folder_that_is_the_project_is_refused(self, clone):
        """`.hermes/extensions` cannot be what it lies in."""
        clone.extensions.rmdir()
        clone.extensions.symlink_to("..")
        assert "is a link that leads out of the project, or to all of it" in str(refusal(clone))


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(path.parent)  # the address of a socket is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def a_device(path: Path) -> None:
    try:
        os.mknod(path, 0o20666, os.makedev(1, 5))  # /dev/zero: reading it never ends
    except (AttributeError, PermissionError):
        pytest.skip("this user can make no devices")


SPECIAL = {
    "a named pipe": os.mkfifo,
    "a socket": a_socket,
    "a device": a_device,
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("link", [False, True])
def test_special_files_are_refused_by_name_and_never_opened(clone, kind, link):
    """Opening one could wait for ever."""
    SPECIAL[kind](clone.extensions / "z.py")
    if link:
        (clone.extensions / "a.py").symlink_to("z.py")
    name = "a.py" if link else "z.py"
    assert f"{name} is {kind}, which cannot be part of an extension" in str(refusal(clone))


class TestCodings:
    """A person reads UTF-8; a source that Python reads as something else hides what it does."""

    @pytest.mark.parametrize(
        "source",
        [
            b"# -*- coding: utf-7 -*-\n",
            b"#!/usr/bin/python\n# vim: set fileencoding=utf_7 :\n",
            b"\r# coding: utf-7\rx = 1\r",
            b"\x0c # coding=\tutf-7",
            b"\xff\n# coding: utf-7\n",
            b"# \xff coding: utf-7\n",
            b"\xef\xbb\xbf# coding: utf-7\n",
        ],
    )
    def test_another_one_is_refused_with_file_and_name(self, clone, source):
        clone.add("extensions/a/rules.py", source)
        error = refusal(clone)
        assert error.path == clone.extensions / "a" / "rules.py"
        assert re.search("it declares the encoding 'utf[-_]7'", str(error))

    @pytest.mark.parametrize("name", ["utf-16", "rot13", "unicode_escape", "cp037", "nobodys"])
    def test_only_those_that_are_read_alike_are_taken(self, clone, name):
        clone.add("extensions/a.py", f"# coding: {name}\n")
        assert f"'{name}'" in str(refusal(clone))

    @pytest.mark.parametrize(
        "source",
        [
            b"# coding: utf-8\n",
            b"\xef\xbb\xbf# coding: UTF8\n",
            b"\xef\xbb\xbfx = 1\n",
            b"# coding: latin-1\n# \xe9",
            b"# coding: iso-8859-15\n",
            b"# coding: cp1252\n",
            b"# coding: ascii\n",
            b"x = 1\n\n# coding: utf-7\n",
            b"\xff\xfe",
            b"",
        ],
    )
    def test_those_are_taken_and_what_declares_nothing(self, clone, source):
        clone.add("extensions/a.py", source)
        assert clone.tree().files["extensions/a.py"].data == source


class TestLimits:
    def test_too_many_files(self, clone, monkeypatch):
        """The folder where most of them are is named."""
        monkeypatch.setattr(walk, "MAX_FILES", 50)
        clone.add("extensions/a/__init__.py")
        for number in range(50):
            clone.add(f"extensions/a/node_modules/{number % 7}/{number}")
        error = refusal(clone)
        assert error.path == clone.hermes
        assert "holds more than 50 files, which is the limit" in str(error)
        assert "most is in extensions/a/node_modules" in str(error)
        assert error.hint

    def test_no_more_is_listed_than_counts(self, clone, monkeypatch):
        """A folder with millions of files costs no more than one at the limit."""
        monkeypatch.setattr(walk, "MAX_ENTRIES", 10)
        for number in range(20):
            clone.add(f"extensions/a/{number}.pyc")
        listed, is_bytecode = [], walk._is_bytecode
        monkeypatch.setattr(
            walk, "_is_bytecode", lambda entry: listed.append(entry) or is_bytecode(entry)
        )
        assert "holds more than 10 files and folders" in str(refusal(clone))
        assert len(listed) <= 10

    def test_folders_count_too(self, clone, monkeypatch):
        """Empty folders take time as well."""
        monkeypatch.setattr(walk, "MAX_ENTRIES", 10)
        for number in range(20):
            (clone.extensions / "a" / str(number)).mkdir(parents=True)
        assert "most is in extensions/a" in str(refusal(clone))

    def test_too_many_links(self, clone, monkeypatch):
        """Each has to be followed; nothing is read before they are counted."""
        monkeypatch.setattr(walk, "MAX_LINKS", 10)
        clone.add("extensions/a.py")
        for number in range(11):
            (clone.extensions / f"l{number:02}").symlink_to("a.py")
        assert "holds more than 10 links, which is the limit" in str(refusal(clone))
        (clone.extensions / "l00").unlink()
        assert len(clone.tree().files) == 11

    def test_paths_that_are_too_long_together(self, clone, monkeypatch):
        """By links one may be longer than any on the disk."""
        monkeypatch.setattr(walk, "MAX_CHARACTERS", 500)
        clone.add(f"extensions/{'d' * 200}/b.py")
        assert len(clone.tree().files) == 1
        clone.add(f"extensions/{'d' * 200}/c.py")
        told = str(refusal(clone))
        assert "holds more than 500 characters in its paths, which is the limit" in told
        assert "most is in extensions/ddd" in told

    def test_the_limits(self):
        """As they are documented."""
        assert (walk.MAX_FILES, walk.MAX_BYTES, walk.MAX_DEPTH) == (5_000, 64_000_000, 32)
        assert walk.MAX_LINKS == 1_000
        assert (walk.MAX_SECONDS, tree_module.KEPT_BYTES) == (10, 5_000_000)

    def test_too_many_bytes(self, clone):
        """A sparse file of 10 GB is refused before it is opened."""
        clone.add("extensions/a/__init__.py")
        os.truncate(clone.add("extensions/a/data/model.bin"), 10**10)
        error = refusal(clone)
        assert "holds more than 64 MB" in str(error)
        assert "most is in extensions/a/data/model.bin" in str(error)

    def test_too_deep(self, clone):
        """32 folders below `.hermes/extensions`, not 33."""
        deepest = "/".join("d" * walk.MAX_DEPTH)
        clone.add(f"extensions/{deepest}/x.py")
        assert len(clone.tree().files) == 1
        clone.add(f"extensions/{deepest}/d/x.py")
        assert "more than 32 folders deep" in str(refusal(clone))

    def test_too_slow(self, clone, monkeypatch):
        """A disk that does not answer in time ends in a refusal."""
        clone.add("extensions/a/b.py")
        monkeypatch.setattr(walk, "MAX_SECONDS", -1.0)
        assert "takes longer than -1 s to read" in str(refusal(clone))
        assert stamp_of(clone.project) is None

    def test_a_big_tree_keeps_its_sources(self, clone, monkeypatch):
        """Above 5 MB data is read when it is asked for, and is what was hashed or an error."""
        monkeypatch.setattr(tree_module, "KEPT_BYTES", 100)
        clone.add("extensions/a/__init__.py", "source")
        clone.add("extensions/a/extension.yaml", "version: 1")
        clone.add("extensions.yaml", "a: {}")
        data = clone.add("extensions/a/data.bin", bytes(101))
        tree = clone.tree()
        kept = {path for path, file in tree.files.items() if file.data is not None}
        assert kept == set(tree.files) - {"extensions/a/data.bin"}
        assert tree.read("extensions/a/data.bin") == bytes(101)
        assert tree.read("extensions/a/__init__.py") == b"source"

        for changed in (bytes(100) + b"x", bytes(102), b""):
            data.write_bytes(changed)
            with pytest.raises(TreeError, match="no longer what it was"):
                tree.read("extensions/a/data.bin")
        data.unlink()
        os.mkfifo(data)
        with pytest.raises(TreeError, match="another kind of file"):
            tree.read("extensions/a/data.bin")
        data.unlink()
        with pytest.raises(TreeError, match="cannot be read: No such file"):
            tree.read("extensions/a/data.bin")

    @pytest.mark.parametrize("path", ["extensions/b.py", "/etc/passwd", "../.git/config", ""])
    def test_only_files_of_the_tree_can_be_read(self, clone, path):
        """Also where the disk has such a file."""
        tree = clone.tree()
        clone.add("extensions/b.py")
        with pytest.raises(FileNotFoundError):
            tree.read(path)


class TestClosed:
    """What cannot be read is refused by name, with what to do."""

    @pytest.mark.parametrize("entry", ["extensions", "extensions/a", "extensions/a/b.py"])
    def test_files_and_folders(self, clone, closed, entry):
        clone.add("extensions/a/b.py")
        closed(clone.hermes / entry)
        error = refusal(clone)
        assert "cannot be read: Permission denied. Check its owner and permissions" in str(error)
        assert error.path == clone.hermes / entry

    def test_a_project_that_is_gone(self, clone):
        shutil.rmtree(clone.root)
        with pytest.raises(TreeError, match="repo cannot be read: No such file"):
            clone.tree()
        assert stamp_of(clone.project) == stamp_of(clone.project)


class TestRaces:
    """Somebody changes the files between the look at them and the reading."""

    @pytest.fixture
    def secret(self, clone):
        (clone.root / "secret").mkdir()
        for name in ("a.py", "secret.py"):
            (clone.root / "secret" / name).write_text("secret")
        return clone.root / "secret"

    def test_what_was_read_is_what_is_hashed(self, clone, between):
        """A content that changes just before is simply the content."""
        file = clone.add("extensions/a.py", "old")
        between(lambda: file.write_text("new content"))
        tree = clone.tree()
        assert tree.read("extensions/a.py") == b"new content"
        assert tree.files["extensions/a.py"].sha256 == sha(b"new content")
        assert tree.stamp != stamp_of(clone.project)

    def test_a_file_that_goes_away_is_not_in_it(self, clone, between):
        """As if it had gone a moment earlier."""
        file = clone.add("extensions/a.py")
        clone.add("extensions/b.py")
        between(file.unlink)
        tree = clone.tree()
        assert list(tree.files) == ["extensions/b.py"]
        assert tree.stamp != stamp_of(clone.project)

    def test_a_file_that_becomes_a_pipe(self, clone, between):
        """Opening it does not wait for a writer."""
        file = clone.add("extensions/a.py")
        between(lambda: (file.unlink(), os.mkfifo(file)))
        assert "a.py became another kind of file while it was read" in str(refusal(clone))

    def test_a_file_that_becomes_a_link(self, clone, between, secret):
        """It is not followed, wherever it leads."""
        file = clone.add("extensions/a.py")
        between(lambda: (file.unlink(), file.symlink_to(secret / "secret.py")))
        assert "a.py cannot be read" in str(refusal(clone))

    def test_a_folder_that_becomes_a_link(self, clone, between, secret):
        """Neither is that of a folder on the way."""
        folder = clone.add("extensions/a/a.py").parent
        between(lambda: (shutil.rmtree(folder), folder.symlink_to(secret)))
        assert "a.py cannot be read" in str(refusal(clone))

    def test_the_extensions_folder_that_becomes_a_link(self, clone, between, secret):
        """Nor that of the whole folder."""
        clone.add("extensions/a.py")
        between(lambda: (shutil.rmtree(clone.extensions), clone.extensions.symlink_to(secret)))
        assert "cannot be read" in str(refusal(clone))

    def test_what_a_link_leads_to_becomes_a_link(self, clone, monkeypatch):
        """After it was looked where the link ends: that is not followed any further."""
        end = clone.add("extensions/z.py")
        clone.add("extensions/other.py")
        (clone.extensions / "link.py").symlink_to("z.py")
        looked = walk.real_path

        def real_path(path, **how):
            found = looked(path, **how)
            if path.name == "link.py":
                end.unlink()
                end.symlink_to("other.py")
            return found

        monkeypatch.setattr(walk, "real_path", real_path)
        assert "link.py changed while it was read. Try again" in str(refusal(clone))

    def test_a_file_that_grows_beyond_the_limit(self, clone, between, monkeypatch):
        """It is read no further than the limit."""
        monkeypatch.setattr(tree_module, "MAX_BYTES", 10_000)
        file = clone.add("extensions/a.bin")
        between(lambda: os.truncate(file, 10**10))
        assert "which is the limit; most is in extensions/a.bin" in str(refusal(clone))

    def test_a_thread_that_swaps_links_all_the_time(self, clone, secret):
        """Whatever moment it hits, nothing from outside of the extensions is read."""
        real, link, spare = (clone.extensions / name for name in ("a", "l", "spare"))
        clone.add("extensions/a/a.py", "fine")
        link.symlink_to(secret)
        ended = threading.Event()

        def swap() -> None:
            while not ended.is_set():
                for one, two in ((real, spare), (link, real), (real, link), (spare, real)):
                    one.rename(two)

        swapping = threading.Thread(target=swap)
        swapping.start()
        try:
            for _ in range(100):
                try:
                    tree = clone.tree()
                except TreeError:
                    continue
                assert {file.data for file in tree.files.values()} <= {b"fine"}
        finally:
            ended.set()
            swapping.join()


def rewritten(clone) -> None:
    """Another content of the same length, and the times as before."""
    file = clone.hermes / "extensions" / "a.py"
    times = file.stat()
    file.write_text("y = 2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def replaced(clone) -> None:
    """The same content and times in a new file."""
    file = clone.extensions / "a.py"
    shutil.copy2(file, clone.root / "copy")
    os.replace(clone.root / "copy", file)


CHANGES = {
    "rewritten": rewritten,
    "replaced": replaced,
    "added": lambda clone: clone.add("extensions/c.py"),
    "removed": lambda clone: (clone.extensions / "a.py").unlink(),
    "renamed": lambda clone: (clone.extensions / "a.py").rename(clone.extensions / "d.py"),
    "permissions": lambda clone: (clone.extensions / "a.py").chmod(0o600),
    "an empty folder": lambda clone: (clone.extensions / "new").mkdir(),
    "settings": lambda clone: clone.add("extensions.yaml", "b: {}"),
    "settings gone": lambda clone: (clone.hermes / "extensions.yaml").unlink(),
    "what a link is": lambda clone: (
        (clone.extensions / "link.py").unlink(),
        (clone.extensions / "link.py").symlink_to("a.py"),
    ),
    "what a link leads to": lambda clone: (clone.extensions / "b" / "b.py").write_text("b = 2\n"),
    "no longer readable": lambda clone: os.mkfifo(clone.extensions / "pipe"),
    "all gone": lambda clone: shutil.rmtree(clone.hermes),
}


@pytest.fixture
def stamped(clone):
    """A clone with a bit of everything."""
    clone.add("extensions/a.py")
    clone.add("extensions/b/b.py", "b = 1\n")
    clone.add("extensions.yaml", "a: {}")
    (clone.extensions / "link.py").symlink_to("b/b.py")
    return clone


@pytest.mark.usefixtures("ticking")
class TestStamp:
    def test_it_is_that_of_the_tree_as_long_as_nothing_changes(self, stamped):
        """Other things in `.hermes` are no business of extensions."""
        tree = stamped.tree()
        stamped.add("plans/active.md")
        assert stamp_of(stamped.project) == tree.stamp

    @pytest.mark.parametrize("change", CHANGES)
    def test_any_change_changes_it(self, stamped, change):
        """Times can be set back; inode and time of change cannot."""
        tree = stamped.tree()
        CHANGES[change](stamped)
        assert stamp_of(stamped.project) not in (tree.stamp, None)

    def test_a_refused_tree_has_one_too(self, stamped):
        """It changes when what was wrong is mended."""
        pipe = stamped.extensions / "pipe"
        os.mkfifo(pipe)
        before = stamp_of(stamped.project)
        assert before == stamp_of(stamped.project)
        pipe.unlink()
        assert stamp_of(stamped.project) != before

    def test_reading_waits_until_a_further_change_would_bear_another_time(self, clone, monkeypatch):
        """Two changes within one tick of the clock have the same times."""
        slept = []
        monkeypatch.setattr(tree_module.time, "sleep", slept.append)
        file = clone.add("extensions/a.py")
        monkeypatch.setattr(tree_module.time, "time_ns", lambda: file.stat().st_ctime_ns + 10**6)
        clone.tree()
        assert slept == [pytest.approx(0.019)]

    @pytest.mark.parametrize("days", [-1, 1])
    def test_a_clock_that_was_set_keeps_nobody_waiting(self, clone, monkeypatch, days):
        """Files from the future cost a tick at most, old ones nothing."""
        slept = []
        now = time.time_ns() + days * 86_400 * 10**9
        monkeypatch.setattr(tree_module.time, "sleep", slept.append)
        monkeypatch.setattr(tree_module.time, "time_ns", lambda: now)
        clone.add("extensions/a.py")
        clone.tree()
        assert sum(slept) <= 0.02


# -- properties -----------------------------------------------------------------------------------

NAMES = st.one_of(
    st.sampled_from(["a", "b", "a.py", "__init__.py", "x.pyc", "__pycache__", ".x", "é", "a b"]),
    st.binary(min_size=1, max_size=6)
    .filter(lambda raw: not set(raw) & {0, 47} and raw not in (b".", b".."))
    .map(os.fsdecode),
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
FILES = st.dictionaries(PATHS, st.binary(max_size=40), max_size=6)


def without_clashes(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without those whose path another one needs as a folder."""
    folders = {str(parent) for path in files for parent in Path(path).parents}
    return {path: data for path, data in files.items() if path not in folders}


def written(root: Path, files: dict[str, bytes]) -> Project:
    for path, data in files.items():
        file = root / ".hermes" / "extensions" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return Project(root)


def reference_digest(root: Path) -> str:
    """The digest by the words of the contract, with nothing of ours."""
    hermes = os.fsencode(root / ".hermes")
    lines = []
    for folder, folders, files in os.walk(hermes + b"/extensions"):
        folders[:] = [name for name in folders if name != b"__pycache__"]
        for name in files:
            if not name.endswith((b".pyc", b".pyo")):
                with open(folder + b"/" + name, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest().encode()
                lines.append((folder + b"/" + name)[len(hermes) + 1 :] + b"\0" + content + b"\n")
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


@pytest.fixture
def quick(monkeypatch, tmp_path):
    monkeypatch.setattr(tree_module, "_TICK_NS", 0)
    return tmp_path.resolve()


PROPERTY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@PROPERTY
@given(FILES)
def test_the_digest_is_that_of_the_contract(quick, files):
    """Whatever the files are called and hold."""
    root = Path(tempfile.mkdtemp(dir=quick))
    project = written(root, without_clashes(files))
    (root / ".hermes").mkdir(exist_ok=True)
    assert read_tree(project).digest == reference_digest(root)


def is_hashed(path: str) -> bool:
    *folders, name = path.split("/")
    return "__pycache__" not in folders and not name.endswith((".pyc", ".pyo"))


@PROPERTY
@given(FILES, st.data())
def test_any_change_of_a_file_changes_the_digest_and_bytecode_does_not(quick, files, data):
    """One byte changed, one file added, removed or renamed; and a planted `.pyc`."""
    root = Path(tempfile.mkdtemp(dir=quick))
    files = {"a-first": b"1", **without_clashes(files)}
    project = written(root, files)
    before = read_tree(project).digest
    folder = root / ".hermes" / "extensions"
    file = folder / data.draw(st.sampled_from(sorted(filter(is_hashed, files))))

    written(root, {"new/__pycache__/x.cpython-311.pyc": b"x", "new/y.pyc": b"y"})
    assert read_tree(project).digest == before

    change = data.draw(st.sampled_from(["byte", "add", "remove", "rename"]))
    if change == "byte":
        content = bytearray(file.read_bytes() or b"\0")
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        file.write_bytes(content)
    elif change == "add":
        file.with_name("another").write_bytes(b"")
    elif change == "remove":
        file.unlink()
    else:
        file.rename(file.with_name("another"))
    assert read_tree(project).digest != before
