"""What the user trusts: the list, the copies, the environment, and the verdict on a project."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

from hermes_ext import _files
from hermes_ext.exceptions import ConfigError
from hermes_ext.trust import store as store_module
from hermes_ext.trust import walk
from hermes_ext.trust.place import Project
from hermes_ext.trust.possible_projects import Listed
from hermes_ext.trust.store import (
    PIN,
    Standing,
    TrustStore,
    is_still_trusted,
    judge,
    pin_fault,
    stamp_now,
)
from hermes_ext.trust.tree import read_tree

AS_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)


@pytest.fixture
def rules(clone):
    """A clone with two extensions and settings."""
    clone.add("extensions/a/__init__.py", "a = 1\n")
    clone.add("extensions/b.py", "b = 1\n")
    clone.add("extensions.yaml", "a: {}\n")
    return clone


def told(clone) -> tuple[Standing, str]:
    verdict = clone.judge()
    assert verdict.reason.isprintable()
    assert bool(verdict.reason) == (verdict.standing is not Standing.TRUSTED)
    return verdict.standing, verdict.reason


class TestVerdict:
    def test_a_project_that_nobody_trusts(self, rules):
        """Its names are known, and nothing else is needed to say so; the home stays as it is."""
        verdict = rules.judge()
        assert told(rules) == (Standing.UNTRUSTED, "you have not trusted them")
        assert verdict.names == ("a", "b")
        assert verdict.tree is not None
        assert (verdict.pinned, verdict.changed) == (False, ())
        assert list(rules.home.iterdir()) == []

    def test_one_that_is_trusted(self, rules):
        """The tree of the verdict is what the user trusted."""
        digest = rules.trust()
        verdict = rules.judge()
        assert told(rules) == (Standing.TRUSTED, "")
        assert verdict.tree.digest == digest
        assert not verdict.pinned

    def test_the_same_content_is_trusted_where_its_twin_is(self, rules, tmp_path):
        """Of a linked work tree; without a twin it is a project like any other."""
        rules.trust()
        linked = tmp_path / "linked"
        shutil.copytree(rules.root, linked)
        project = Project(linked.resolve())
        assert judge(project, rules.home, rules.root).standing is Standing.TRUSTED
        assert judge(project, rules.home).standing is Standing.UNTRUSTED

    def test_one_that_changed_since(self, rules):
        """What changed, came and went is named."""
        rules.trust()
        rules.add("extensions/a/__init__.py", "a = 2\n")
        rules.add("extensions/new.py")
        (rules.extensions / "b.py").unlink()
        verdict = rules.judge()
        changed = ("extensions/a/__init__.py", "extensions/b.py", "extensions/new.py")
        assert verdict.changed == changed
        assert told(rules) == (
            Standing.CHANGED,
            f"changed since you trusted them: {', '.join(changed)}",
        )

    def test_changed_back_it_is_trusted_again(self, rules):
        """It is the content that the user trusted."""
        rules.trust()
        rules.add("extensions/a/__init__.py", "a = 2\n")
        assert told(rules)[0] is Standing.CHANGED
        rules.add("extensions/a/__init__.py", "a = 1\n")
        assert told(rules)[0] is Standing.TRUSTED

    def test_many_changes_are_named_in_part(self, rules):
        """One line stays one line."""
        rules.trust()
        for number in range(9):
            rules.add(f"extensions/n{number}.py")
        verdict = rules.judge()
        assert len(verdict.changed) == 9
        assert verdict.reason.endswith("n3.py, extensions/n4.py and 4 more")

    def test_a_change_without_a_kept_copy(self, rules, monkeypatch):
        """Then it is not known what changed."""
        monkeypatch.setattr(store_module, "KEPT_BYTES", 3)
        rules.trust()
        rules.add("extensions/a/__init__.py", "a = 2\n")
        assert told(rules) == (Standing.CHANGED, "changed since you trusted them")
        assert rules.judge().changed == ()

    def test_a_moved_folder_is_another_project(self, rules, tmp_path):
        """The reason says where the same content is trusted."""
        rules.trust()
        old = rules.root
        rules.root.rename(tmp_path / "moved")
        verdict = judge(Project((tmp_path / "moved").resolve()), rules.home)
        assert verdict.standing is Standing.UNTRUSTED
        assert verdict.reason == f"you trusted the same content in {old}, not here"

    def test_another_folder_of_the_same_content_in_its_place_is_trusted(self, rules, tmp_path):
        """Path and content are what the user trusted: a fresh clone of the same is no other."""
        rules.trust()
        shutil.copytree(rules.root, tmp_path / "copy")
        shutil.rmtree(rules.root)
        (tmp_path / "copy").rename(rules.root)
        assert told(rules)[0] is Standing.TRUSTED

    def test_an_empty_folder(self, clone):
        """Nothing is there, and it is said."""
        assert told(clone) == (Standing.UNTRUSTED, "there is nothing in them yet")

    def test_a_tree_that_is_not_read(self, rules):
        """It is refused with the reason, trusted or not."""
        rules.trust()
        (rules.extensions / "out.py").symlink_to("/etc/passwd")
        verdict = rules.judge()
        assert (verdict.standing, verdict.tree, verdict.names) == (Standing.REFUSED, None, ())
        assert "out.py is a link that leaves" in verdict.reason
        assert verdict.reason.endswith("Put the file itself there")

    def test_a_place_that_is_refused(self, rules):
        """Also one that became so since the project was found."""
        digest = rules.trust()
        assert digest == rules.judge().tree.digest
        found = judge(Project(rules.root, "it belongs to Mallory"), rules.home)
        assert (found.standing, found.reason) == (Standing.REFUSED, "it belongs to Mallory")

        rules.hermes.rename(rules.root.parent / "elsewhere")
        rules.hermes.symlink_to("../elsewhere")
        assert told(rules)[0] is Standing.REFUSED

    @AS_ROOT
    def test_a_folder_that_became_another_users(self, rules):
        """The owner is looked at each time, whatever was found before."""
        rules.trust()
        before = rules.judge()
        os.chown(rules.extensions, 12345, -1)
        assert stamp_now(rules.project, rules.home) != before.stamp
        standing, reason = told(rules)
        assert standing is Standing.REFUSED
        assert reason == f"{rules.extensions} belongs to another user (uid 12345)"

    def test_a_project_that_is_gone(self, rules):
        """No error, whatever is missing."""
        shutil.rmtree(rules.root)
        assert told(rules)[0] is Standing.REFUSED
        assert stamp_now(rules.project, rules.home) == rules.judge().stamp

    def test_odd_names_stay_one_line(self, clone):
        """Names are shown printable and compared as they are."""
        odd = f"extensions/{os.fsdecode(bytes([0xFF]))}\n\x1b[2J.py"
        clone.add(odd)
        clone.trust()
        assert clone.judge().names == (r"\xff\n\x1b[2J",)
        clone.add(odd, "x = 2\n")
        assert clone.judge().changed == (odd,)
        assert told(clone)[1].endswith(r": 'extensions/\xff\n\x1b[2J.py'")

    @pytest.mark.parametrize("name", ["line\nbreak", os.fsdecode(b"no-utf-8-\xff"), "two words"])
    def test_odd_paths_are_trusted_like_others(self, rules, tmp_path, name):
        """The list holds any path."""
        rules.root.rename(tmp_path / name)
        rules.root = tmp_path.resolve() / name
        rules.hermes = rules.root / ".hermes"
        rules.trust()
        assert told(rules)[0] is Standing.TRUSTED
        assert rules.store.untrust(rules.root).path == rules.root


@pytest.mark.usefixtures("ticking")
class TestReason:
    def test_what_changed_is_told_in_short(self, clone):
        """Paths can neither drown the line nor go on as a sentence of their own."""
        clone.add("extensions/a.py")
        clone.trust()
        clone.add("extensions/a (trusted). All is well.py")
        for number in range(3000, 3050):
            clone.add(f"extensions/b{'b' * 200}{number}.py")
        reason = told(clone)[1]
        assert "'extensions/a (trusted). All is well.py'" in reason
        assert "and 46 more" in reason
        assert len(reason) < 700


class TestStamp:
    def test_it_stays_while_nothing_changes(self, rules):
        rules.trust()
        verdict = rules.judge()
        assert stamp_now(rules.project, rules.home) == verdict.stamp
        assert rules.judge().stamp == verdict.stamp

    def test_tree_store_and_pin_change_it(self, rules, monkeypatch):
        """So that an equal stamp means: the same verdict."""
        stamps = [rules.judge().stamp]
        rules.trust()
        stamps.append(rules.judge().stamp)
        rules.add("extensions/a/__init__.py", "a = 2\n")
        stamps.append(rules.judge().stamp)
        monkeypatch.setenv(PIN, "0" * 64)
        stamps.append(rules.judge().stamp)
        rules.store.file.chmod(0o666)
        stamps.append(rules.judge().stamp)
        rules.store.folder.chmod(0o777)
        stamps.append(rules.judge().stamp)
        rules.store.file.unlink()
        stamps.append(rules.judge().stamp)
        assert len(set(stamps)) == len(stamps)

    def test_a_list_that_cannot_be_reached_is_not_one_that_is_missing(self, rules):
        """Their reasons differ, and so do their stamps."""
        rules.trust()
        rules.store.file.unlink()
        missing = rules.judge()
        rules.store.file.symlink_to(rules.store.file.name)
        loop = rules.judge()
        assert "the list of trusted projects cannot be read" in loop.reason
        assert loop.stamp != missing.stamp

    def test_a_change_while_it_is_judged_changes_it(self, rules, between):
        """The stamp is older than what was read, so that nothing is missed."""
        between(lambda: rules.add("extensions/a/__init__.py", "a = 2\n"))
        verdict = rules.judge()
        assert verdict.tree.read("extensions/a/__init__.py") == b"a = 2\n"
        assert stamp_now(rules.project, rules.home) != verdict.stamp

    def test_what_passes_is_judged_again(self, rules, monkeypatch):
        """A process that has too many files open for a moment does not lose its rules for good."""
        monkeypatch.setattr(
            walk.Walk, "open_file", lambda *args: (_ for _ in ()).throw(OSError(24, "Too many"))
        )
        verdict = rules.judge()
        assert "cannot be read: Too many. Try again" in verdict.reason
        assert stamp_now(rules.project, rules.home) != verdict.stamp

    def test_a_disk_that_does_not_answer_is_asked_again(self, rules, monkeypatch):
        """No two stamps are equal where nothing can be told."""
        monkeypatch.setattr(walk, "MAX_SECONDS", -1.0)
        assert stamp_now(rules.project, rules.home) != stamp_now(rules.project, rules.home)


class TestList:
    def test_the_file_is_the_users_alone(self, rules):
        """The folder 0700, the file 0600, whatever the umask."""
        old = os.umask(0)
        try:
            rules.trust()
        finally:
            os.umask(old)
        modes = {
            path.relative_to(rules.home).parts[-1][-4:]: stat.S_IMODE(path.stat().st_mode)
            for path in (rules.store.folder, *rules.store.folder.rglob("*"))
            if path.suffix != ".lock"
        }
        assert modes == {"rust": 0o700, "json": 0o600, "pies": 0o700, ".zip": 0o600}

    def test_what_is_written(self, rules):
        """The documented format."""
        digest = rules.trust()
        listed = json.loads(rules.store.file.read_text())
        assert listed["format"] == 1
        (entry,) = listed["trusted"]
        assert entry.pop("at").endswith("+00:00")
        assert entry == {"path": str(rules.root), "digest": digest, "names": ["a", "b"]}

    def test_a_list_that_says_the_same_is_the_same(self, rules):
        """Also where it was written anew."""
        rules.trust()
        before = Listed.now(rules.home)
        os.utime(rules.store.file, (1, 1))
        assert Listed.now(rules.home) == before

    def test_one_entry_a_path(self, rules):
        """Trusting anew replaces what was trusted."""
        rules.trust()
        rules.add("extensions/c.py")
        digest = rules.trust()
        assert [(each.path, each.digest) for each in rules.store.entries()] == [
            (rules.root, digest)
        ]

    def test_untrust(self, rules):
        """Says what was trusted; a second time there is nothing."""
        digest = rules.trust()
        assert rules.store.untrust(rules.root).digest == digest
        assert rules.store.untrust(rules.root) is None
        assert told(rules)[0] is Standing.UNTRUSTED

    def test_untrust_a_folder_that_is_gone(self, rules, monkeypatch):
        """By its path, also a relative one."""
        rules.trust()
        shutil.rmtree(rules.root)
        monkeypatch.chdir(rules.root.parent)
        assert rules.store.untrust(Path("repo")).path == rules.root

    def test_untrust_makes_nothing(self, rules):
        """A home without a list stays one."""
        assert rules.store.untrust(rules.root) is None
        assert list(rules.home.iterdir()) == []

    def test_a_home_that_is_not_there_yet(self, rules):
        """It is made."""
        shutil.rmtree(rules.home)
        rules.trust()
        assert told(rules)[0] is Standing.TRUSTED

    def test_is_still_trusted(self, rules):
        """Whatever is on the disk: the question is what the user says of this content."""
        digest = rules.trust()
        shutil.rmtree(rules.root)
        assert is_still_trusted(rules.root, digest, rules.home)
        assert not is_still_trusted(rules.root, "0" * 64, rules.home)
        assert not is_still_trusted(rules.root / "x", digest, rules.home)
        rules.store.untrust(rules.root)
        assert not is_still_trusted(rules.root, digest, rules.home)

    def test_two_processes_lose_nothing(self, rules, tmp_path):
        """Each trusts ten projects at the same time; all twenty are in the list."""
        script = (
            "import sys; from pathlib import Path\n"
            "from hermes_ext.trust.place import Project\n"
            "from hermes_ext.trust.store import TrustStore\n"
            "from hermes_ext.trust.tree import read_tree\n"
            "for path in sys.argv[2:]:\n"
            "    TrustStore(Path(sys.argv[1])).trust(read_tree(Project(Path(path))))\n"
        )
        roots = [tmp_path.resolve() / f"{number:02}" for number in range(20)]
        for root in roots:
            (root / ".hermes" / "extensions").mkdir(parents=True)
            (root / ".hermes" / "extensions" / f"{root.name}.py").touch()
        running = [
            subprocess.Popen([sys.executable, "-c", script, rules.home, *half])
            for half in (roots[:10], roots[10:])
        ]
        assert [each.wait() for each in running] == [0, 0]
        entries = rules.store.entries()
        assert [each.path for each in entries] == roots
        assert all(rules.store.copy(each.digest) for each in entries)

    def test_a_lock_that_is_held_is_told(self, rules, monkeypatch):
        """And nothing is written."""
        rules.trust()
        before = rules.store.file.read_bytes()
        rules.add("extensions/c.py")
        tree = rules.tree()
        quick = _files.locked.__wrapped__
        monkeypatch.setattr(
            store_module, "locked", lambda path: _files.contextlib.contextmanager(quick)(path, 0.01)
        )
        with (
            FileLock(rules.store.folder / ".trusted.json.lock"),
            pytest.raises(ConfigError, match="another program") as error,
        ):
            rules.store.trust(tree)
        assert error.value.path == rules.store.folder / ".trusted.json.lock"
        assert rules.store.file.read_bytes() == before


DIGEST = "0123456789abcdef" * 4


def listing(**changes: object) -> str:
    entry = {"path": "/x", "digest": DIGEST, "at": "2026-01-01", "names": ["a"]} | changes
    return json.dumps({"format": 1, "trusted": [entry]})


DAMAGED = {
    "empty": "",
    "cut off": listing()[:-9],
    "no JSON": "trusted:\n- /x\n",
    "no UTF-8": b"\xff\xfe\x00",
    "zeros, after a power cut": bytes(400),
    "another format": '{"format": 2, "trusted": []}',
    "a list": "[]",
    "no entries": '{"format": 1}',
    "entries of another kind": '{"format": 1, "trusted": {"a": 1}}',
    "a path that is no text": listing(path=1),
    "a relative path": listing(path="x"),
    "a digest that is none": listing(digest="../../x"),
    "a digest that is no text": listing(digest=None),
    "a time that is no text": listing(at=1),
    "names that are no texts": listing(names=[1]),
    "names that are no list": listing(names=None),
    "nested too deeply": "[" * 100_000,
    "a number without end": '{"format": ' + "1" * 5000 + "}",
}


class TestDamagedList:
    """It trusts nothing, is told, and is set aside by the next `trust`."""

    @pytest.mark.parametrize("kind", DAMAGED)
    def test_a_damaged_file(self, rules, kind):
        rules.trust()
        content = DAMAGED[kind]
        raw = content if isinstance(content, bytes) else content.encode()
        rules.store.file.write_bytes(raw)

        with pytest.raises(ConfigError, match="is damaged") as error:
            rules.store.entries()
        assert error.value.path == rules.store.file
        standing, reason = told(rules)
        assert standing is Standing.UNTRUSTED
        assert "the list of trusted projects is damaged" in reason
        assert "`hermes extensions trust` sets it aside" in reason
        with pytest.raises(ConfigError, match="is damaged"):
            rules.store.untrust(rules.root)

        rules.trust()
        assert told(rules)[0] is Standing.TRUSTED
        aside = rules.store.folder / "trusted.json.damaged-1"
        assert aside.read_bytes() == raw

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a pipe", "a folder"])
    def test_what_is_no_file_is_not_waited_for(self, rules, make):
        rules.store.folder.mkdir(mode=0o700)
        make(rules.store.file, 0o700)
        assert told(rules)[0] is Standing.UNTRUSTED
        rules.trust()
        assert told(rules)[0] is Standing.TRUSTED

    def test_each_one_that_is_set_aside_is_kept(self, rules):
        for content in ("one", "two"):
            rules.trust()
            rules.store.file.write_text(content)
        rules.trust()
        for number, content in enumerate(("one", "two"), 1):
            aside = rules.store.folder / f"trusted.json.damaged-{number}"
            assert aside.read_text() == content

    def test_one_that_is_too_big(self, rules, monkeypatch):
        rules.trust()
        monkeypatch.setattr(store_module, "_STORE_BYTES", 10)
        assert "it is too big" in told(rules)[1]

    def test_a_folder_that_is_a_file(self, rules):
        """It cannot be read, and the error of `trust` names it."""
        rules.store.folder.touch(mode=0o600)
        assert told(rules)[0] is Standing.UNTRUSTED
        with pytest.raises(ConfigError, match="cannot be written") as error:
            rules.trust()
        assert error.value.path == rules.store.folder


class TestUnsafeList:
    """A list that others may write trusts nothing, and is changed by nobody."""

    @pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_one_that_others_may_write(self, rules, what, mode):
        rules.trust()
        path = getattr(rules.store, what)
        path.chmod(mode | (0o100 if what == "folder" else 0))
        before = rules.store.file.read_bytes()

        standing, reason = told(rules)
        assert standing is Standing.UNTRUSTED
        assert reason.startswith("others may write the list of trusted projects")
        assert str(path) in reason
        assert "chmod go-w" in reason
        with pytest.raises(ConfigError):
            rules.trust()
        with pytest.raises(ConfigError):
            rules.store.untrust(rules.root)
        with pytest.raises(ConfigError):
            is_still_trusted(rules.root, "0" * 64, rules.home)
        assert rules.store.file.read_bytes() == before

    @AS_ROOT
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_one_of_another_user(self, rules, what):
        rules.trust()
        getattr(rules.store, what).chmod(
            0o755
        )  # root may read what is its own, and not always more
        os.chown(getattr(rules.store, what), 12345, -1)
        standing, reason = told(rules)
        assert standing is Standing.UNTRUSTED
        assert "belongs to another user (uid 12345)" in reason
        with pytest.raises(ConfigError):
            rules.trust()

    def test_a_folder_that_is_a_link(self, rules):
        """A project may hold what it leads to."""
        rules.trust()
        before = rules.judge().stamp
        rules.store.folder.rename(rules.root / "store")
        rules.store.folder.symlink_to(rules.root / "store")
        standing, reason = told(rules)
        assert standing is Standing.UNTRUSTED
        assert "is a link; no project is trusted" in reason
        assert rules.judge().stamp != before
        with pytest.raises(ConfigError):
            rules.trust()

    @pytest.mark.parametrize("mode", [0o777, 0o702])
    def test_a_home_that_others_may_write(self, rules, mode):
        """They could put a list of their own there."""
        rules.trust()
        before = rules.judge().stamp
        rules.home.chmod(mode)
        standing, reason = told(rules)
        assert standing is Standing.UNTRUSTED
        assert reason.startswith("others may write the Hermes home; no project is trusted")
        assert rules.judge().stamp != before
        with pytest.raises(ConfigError):
            rules.trust()

    @AS_ROOT
    def test_a_home_that_another_group_may_write(self, rules):
        """The user's own group may, as where everybody has one for himself."""
        rules.trust()
        rules.home.chmod(0o770)
        assert told(rules)[0] is Standing.TRUSTED
        os.chown(rules.home, -1, 12345)
        assert told(rules)[1].startswith("others may write the Hermes home")

    @AS_ROOT
    def test_a_home_of_another_user(self, rules):
        rules.trust()
        os.chown(rules.home, 12345, -1)
        assert told(rules)[1].startswith("the Hermes home belongs to another user (uid 12345)")

    def test_one_that_others_may_only_read(self, rules):
        """That is no danger."""
        rules.trust()
        rules.store.folder.chmod(0o755)
        rules.store.file.chmod(0o644)
        assert told(rules)[0] is Standing.TRUSTED


class TestCannotBeWritten:
    """The error names the file, and nothing is half done."""

    def failing(self, monkeypatch, suffix: str, error: OSError) -> None:
        real = os.replace

        def replace(source, target):
            if str(target).endswith(suffix):
                raise error
            real(source, target)

        monkeypatch.setattr(_files.os, "replace", replace)

    @pytest.mark.parametrize("file", ["trusted.json", ".zip"])
    def test_a_full_disk(self, rules, monkeypatch, file):
        rules.trust()
        before = {path: path.stat().st_ino for path in rules.store.folder.rglob("*")}
        entries = rules.store.entries()
        rules.add("extensions/c.py")
        tree = rules.tree()
        self.failing(monkeypatch, file, OSError(28, "No space left on device"))

        with pytest.raises(ConfigError, match="No space left on device; nothing was") as error:
            rules.store.trust(tree)

        assert error.value.path.name.endswith(file)
        assert rules.store.entries() == entries
        assert {path: path.stat().st_ino for path in rules.store.folder.rglob("*")} == before

    def test_a_read_only_home(self, rules, closed):
        """The first folder that cannot be made is named."""
        closed(rules.home)
        rules.home.chmod(0o500)
        with pytest.raises(ConfigError, match="Permission denied") as error:
            rules.trust()
        assert error.value.path == rules.store.folder
        assert list(rules.home.iterdir()) == []

    def test_a_read_only_list(self, rules, closed):
        """What was trusted stays trusted."""
        rules.trust()
        closed(rules.store.folder)
        rules.store.folder.chmod(0o500)
        rules.store._copies.chmod(0o500)
        assert told(rules)[0] is Standing.TRUSTED
        rules.add("extensions/c.py")
        with pytest.raises(ConfigError, match="cannot be written"):
            rules.trust()
        assert told(rules)[0] is Standing.CHANGED
        rules.store._copies.chmod(0o700)

    def test_a_list_that_cannot_be_read(self, rules, closed):
        """Nothing is trusted then."""
        rules.trust()
        closed(rules.store.file)
        standing, reason = told(rules)
        assert standing is Standing.UNTRUSTED
        assert "cannot be read: Permission denied" in reason
        with pytest.raises(ConfigError):
            rules.trust()


class TestCopies:
    def copies(self, clone) -> list[str]:
        return sorted(path.name for path in clone.store._copies.iterdir())

    def test_the_files_as_they_were_trusted(self, rules):
        """Whatever they are called and hold."""
        rules.add(f"extensions/{os.fsdecode(bytes([0xFF]))}%41\n.bin", bytes(range(256)))
        rules.add("extensions/ü 1.py", "")
        tree = rules.tree()
        rules.store.trust(tree)
        kept = rules.store.copy(tree.digest)
        assert kept == {path: file.data for path, file in tree.files.items()}

    def test_they_go_with_the_last_entry(self, rules, tmp_path):
        """Of a digest, not of a path."""
        digest = rules.trust()
        shutil.copytree(rules.root, tmp_path / "two")
        rules.store.trust(read_tree(Project((tmp_path / "two").resolve())))
        assert self.copies(rules) == [f"{digest}.zip"]
        rules.add("extensions/c.py")
        other = rules.trust()
        assert self.copies(rules) == sorted([f"{digest}.zip", f"{other}.zip"])
        rules.store.untrust(tmp_path / "two")
        assert self.copies(rules) == [f"{other}.zip"]
        rules.store.untrust(rules.root)
        assert self.copies(rules) == []

    def test_what_a_killed_run_left_goes_too(self, rules):
        """And what is none of ours stays."""
        digest = rules.trust()
        for name in (f"{DIGEST}.zip", f".{DIGEST}.zip.0123.hermes-ext.tmp", "mine.zip"):
            (rules.store._copies / name).touch()
        (rules.store.folder / ".trusted.json.0123.hermes-ext.tmp").touch()
        rules.trust()
        assert self.copies(rules) == sorted(["mine.zip", f"{digest}.zip"])
        assert not list(rules.store.folder.glob(".*.tmp"))

    def test_big_trees_have_none(self, rules):
        """5 MB is the limit."""
        rules.add("extensions/big.py", bytes(5_000_001))
        digest = rules.trust()
        assert rules.store.copy(digest) is None
        assert told(rules)[0] is Standing.TRUSTED

    @pytest.mark.parametrize("digest", ["../trusted", "", "x" * 64, DIGEST])
    def test_none_of_what_was_not_trusted(self, rules, digest):
        rules.trust()
        assert rules.store.copy(digest) is None

    def packed(self, files: dict[str, bytes]) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return packed.getvalue()

    @pytest.mark.parametrize(
        "damage",
        ["empty", "cut", "flipped", "another tree", "a bomb", "a pipe", "a folder"],
    )
    def test_a_damaged_copy_is_none(self, rules, damage):
        """What is shown as trusted was trusted; without it the change is only not shown."""
        digest = rules.trust()
        file = rules.store._copies / f"{digest}.zip"
        whole = file.read_bytes()
        file.unlink()
        make = {
            "empty": file.touch,
            "cut": lambda: file.write_bytes(whole[: len(whole) // 2]),
            "flipped": lambda: file.write_bytes(whole[:47] + bytes([whole[47] ^ 255]) + whole[48:]),
            "another tree": lambda: file.write_bytes(self.packed({"a.py": b"other"})),
            "a bomb": lambda: file.write_bytes(self.packed({"a.py": bytes(20_000_000)})),
            "a pipe": lambda: os.mkfifo(file),
            "a folder": file.mkdir,
        }
        make[damage]()
        assert rules.store.copy(digest) is None
        assert told(rules)[0] is Standing.TRUSTED
        rules.add("extensions/c.py")
        assert told(rules) == (Standing.CHANGED, "changed since you trusted them")

    def test_a_damaged_copy_is_made_anew(self, rules):
        """By trusting the same again."""
        digest = rules.trust()
        (rules.store._copies / f"{digest}.zip").write_bytes(b"")
        rules.trust()
        assert rules.store.copy(digest) is not None


WRONG_PINS = {
    "a word": "yes",
    "a star": "*",
    "too short": DIGEST[:-1],
    "too long": DIGEST + "0",
    "no hex digit": "g" + DIGEST[1:],
    "another algorithm": f"sha256:{DIGEST}",
    "in quotes": f'"{DIGEST}"',
    "other digits": "\u0660" * 64,
    "a separator": f"{DIGEST};{DIGEST}",
    "a path": "/repo/.hermes",
    "an escape": f"\x1b{DIGEST[1:]}",
}


class TestPin:
    """`HERMES_EXT_TRUST` trusts exact content, wherever it lies."""

    def test_the_digest(self, rules, monkeypatch):
        """Without a list, and none is made."""
        monkeypatch.setenv(PIN, rules.tree().digest)
        assert told(rules)[0] is Standing.TRUSTED
        assert rules.judge().pinned
        assert is_still_trusted(rules.root, rules.tree().digest, rules.home)
        assert list(rules.home.iterdir()) == []

    def test_other_content_is_not_trusted(self, rules, monkeypatch):
        monkeypatch.setenv(PIN, rules.tree().digest)
        rules.add("extensions/c.py")
        assert told(rules) == (Standing.UNTRUSTED, "you have not trusted them")

    @pytest.mark.parametrize("form", ["{}", " {}\n", "{},", f"{DIGEST},{{}}", f"{{}} , {DIGEST}"])
    @pytest.mark.parametrize("case", [str.lower, str.upper])
    def test_forms(self, rules, monkeypatch, form, case):
        """One or several with commas, in small or capital letters."""
        monkeypatch.setenv(PIN, form.format(case(rules.tree().digest)))
        assert told(rules)[0] is Standing.TRUSTED
        assert pin_fault() is None

    @pytest.mark.parametrize("kind", WRONG_PINS)
    def test_wrong_values_trust_nothing_and_are_told(self, rules, monkeypatch, kind):
        value = WRONG_PINS[kind].replace(DIGEST, rules.tree().digest)
        monkeypatch.setenv(PIN, value)
        standing, reason = told(rules)
        assert standing is Standing.UNTRUSTED
        assert "$HERMES_EXT_TRUST trusts nothing by" in reason
        assert "a digest has 64 hex digits" in reason

    def test_a_wrong_value_takes_nothing_from_a_right_one(self, rules, monkeypatch):
        """And is told nevertheless."""
        monkeypatch.setenv(PIN, f"yes,{rules.tree().digest}")
        assert told(rules)[0] is Standing.TRUSTED
        assert "'yes'" in pin_fault()

    @pytest.mark.parametrize("value", ["", " ", ",", " , "])
    def test_nothing_is_not_wrong(self, rules, monkeypatch, value):
        """As a variable that some system leaves empty."""
        monkeypatch.setenv(PIN, value)
        assert told(rules) == (Standing.UNTRUSTED, "you have not trusted them")
        assert pin_fault() is None

    def test_it_counts_beside_the_list(self, rules, monkeypatch):
        """What the list trusts stays trusted, and a damaged list is no hindrance."""
        rules.trust()
        monkeypatch.setenv(PIN, DIGEST)
        assert told(rules)[0] is Standing.TRUSTED
        assert not rules.judge().pinned
        rules.store.file.write_text("damaged")
        monkeypatch.setenv(PIN, rules.tree().digest)
        assert told(rules)[0] is Standing.TRUSTED

    def test_it_does_not_lift_a_refusal(self, rules, monkeypatch):
        monkeypatch.setenv(PIN, rules.tree().digest)
        assert judge(Project(rules.root, "no"), rules.home).standing is Standing.REFUSED


def test_nothing_but_the_home_is_written(rules):
    """Trusting leaves no trace in the project."""
    before = {path: path.stat().st_mtime_ns for path in rules.root.rglob("*")}
    rules.trust()
    TrustStore(rules.home).untrust(rules.root)
    assert {path: path.stat().st_mtime_ns for path in rules.root.rglob("*")} == before
