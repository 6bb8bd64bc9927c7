"""The scratch tree that commands run in: what stands in it, and how it differs afterwards."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["HOME", "TREES", "WORK", "Entry", "build", "differences", "entries_of", "look", "start"]

HOME: Final = "home/dev"
WORK: Final = "home/dev/code/demo"
_TO_LOOK: Final = 0o700
_DEEP: Final = 1_000  # characters of a path: `cp` of a directory into itself may go on for long
_OLD: Final = 1_600_000_000  # seconds; each file has a time of its own, long ago


class Entry(NamedTuple):
    """A file, directory or link, in the order in which they are made."""

    path: str
    mode: int
    content: bytes = b""  # a link's target, a hard link's other name


class Seen(NamedTuple):
    """What of a file shows that it was touched: times are old, so any write moves them."""

    mode: int
    size: int
    mtime: int
    inode: int


_HARD: Final = 0  # the mode of an entry that is one more name of a file
_PATCH: Final = b"""\
--- a/todo.txt
+++ b/todo.txt
@@ -1,3 +1,3 @@
 buy milk
-call home
+call the office
 water plants
--- /dev/null
+++ b/docs/added.md
@@ -0,0 +1 @@
+new page
"""


def _file(path: str, content: str | bytes = "", mode: int = 0o644) -> Entry:
    data = content.encode() if isinstance(content, str) else content
    return Entry(path, stat.S_IFREG | mode, data)


def _directory(path: str, mode: int = 0o755) -> Entry:
    return Entry(path, stat.S_IFDIR | mode)


def _link(path: str, target: str) -> Entry:
    return Entry(path, stat.S_IFLNK | 0o777, target.encode())


def _plain() -> list[Entry]:
    lines = "".join(f"line {number} of this\n" for number in range(1, 13))
    work = [
        _file("readme.md", "# Demo\n\nhello world\n"),
        _file("todo.txt", "buy milk\ncall home\nwater plants\n"),
        _file("list.txt", lines),
        _file("names.txt", "docs/guide.md\nlist.txt\n"),
        _file("my notes.txt", "a note\n"),
        _file("été.txt", "chaud\n"),
        _file("data.json", '{"a": 1, "b": [2, 3]}\n'),
        _file(".hidden", "secret=1\n"),
        _file("script.sh", "#!/bin/sh\necho made > by-script.txt\n", 0o755),
        _file("vars.sh", "target=list.txt\n"),
        _file("change.patch", _PATCH),
        _directory("src"),
        _file("src/app.py", "import util\n\nprint(util.NAME)\n"),
        _file("src/util.py", 'NAME = "demo"\n'),
        _file("src/old file.py", "pass\n"),
        _directory("docs"),
        _file("docs/guide.md", "guide\n"),
        _directory("docs/img"),
        _file("docs/img/logo.svg", "<svg/>\n"),
        _directory("odd"),
        _file("odd/-dash.txt", "dash\n"),
        _file("odd/-r", "option\n"),
        _file("odd/new\nline.txt", "two lines\n"),
        _directory("odd/sub"),
        _file("odd/sub/deep.txt", "deep\n"),
        _directory("empty"),
        _link("link.md", "readme.md"),
        _link("dirlink", "docs"),
        _link("dangling", "docs/later.md"),
        _link("outside", "../../../../other"),
        Entry("hard.txt", _HARD, f"{WORK}/todo.txt".encode()),
    ]
    git = "[user]\n\tname = dev\n\temail = dev@example.org\n[init]\n\tdefaultBranch = main\n"
    return [
        *map(_directory, ("home", HOME, f"{HOME}/code", WORK, "other")),
        _directory("tmp", 0o777),
        _file("other/far.txt", "far\n"),
        _file(f"{HOME}/.gitconfig", git),
        _file(f"{HOME}/note.txt", "at home\n"),
        *(entry._replace(path=f"{WORK}/{entry.path}") for entry in work),
    ]


_ARCHIVES: Final = """
set -e
cd "$1"
tar cf backup.tar readme.md docs src/app.py
tar czf backup.tgz list.txt src
if command -v zip >/dev/null; then zip -qry backup.zip todo.txt docs; fi
gzip -k list.txt
"""
# A commit on two branches, a stash, something staged, changed, removed and not tracked.
_HISTORY: Final = """
set -e
cd "$1"
export HOME="$2" GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z
git init -q --template=
printf '*.log\n' > .gitignore
git add -- . && git commit -qm first
git switch -qc side
echo side > side.txt && echo changed >> readme.md
git add -- . && git commit -qm second
git switch -q main
echo stashed >> list.txt && git stash -q
echo more >> todo.txt
echo staged >> data.json && git add data.json
echo loose > loose.txt
echo noise > noise.log
"""


# Programs read these without being told to, and run what they say.
_SETTINGS: Final = r"""
set -e
cd "$1"
export HOME="$2"
for hook in pre-commit post-commit post-checkout post-merge post-rewrite reference-transaction \
        post-index-change pre-push commit-msg prepare-commit-msg applypatch-msg post-applypatch; do
    mkdir -p .git/hooks
    printf '#!/bin/sh\\ntouch "$HOME/by-hook"\\n' > .git/hooks/$hook
    chmod 755 .git/hooks/$hook
done
git config core.fsmonitor 'touch by-fsmonitor; false'
git config diff.external 'touch by-external'
git config diff.md.textconv 'touch by-textconv; cat'
git config filter.f.clean 'touch by-clean; cat'
git config filter.f.smudge 'touch by-smudge; cat'
git config alias.look '!touch by-alias'
git config alias.back 'checkout -f'
git config core.pager 'touch by-pager; cat'
git config pager.log 'touch by-pager; cat'
git config core.editor 'touch by-editor'
git config core.sshCommand 'touch by-ssh'
git config credential.helper '!touch by-helper'
git config gpg.program ./script.sh
printf '*.md diff=md\n*.txt filter=f\n' > .gitattributes
printf 'output = "by-curlrc"\n' > ~/.curlrc
printf 'output_document = by-wgetrc\n' > ~/.wgetrc
printf '.shell touch by-sqliterc\n' > ~/.sqliterc
printf 'Host *\n  ProxyCommand touch by-ssh-config\n' > ~/.ssh-config
mkdir -m 700 ~/.ssh && mv ~/.ssh-config ~/.ssh/config && chmod 600 ~/.ssh/config
for file in .bashrc .bash_profile .profile .zshenv .mavenrc .bash_logout; do
    echo 'touch ~/by-profile' > ~/$file
done
printf 'set exrc\ncall system("touch by-vimrc")\n' > ~/.vimrc
printf 'open("by-json", "w").close()\n' > odd/json.py
printf 'all:\n\ttouch by-make\n' > Makefile
printf '[alias]\n\tlast = !touch by-global-alias\n' >> ~/.gitconfig
printf '{"scripts": {"test": "touch by-npm"}}\n' > package.json
"""
TREES: Final = {
    "plain": (_ARCHIVES,),
    "repository": (_ARCHIVES, _HISTORY),
    "configured": (_ARCHIVES, _HISTORY, _SETTINGS),
}


def start(root: str, name: str) -> list[Entry]:
    """Make one of `TREES`; what stands in it."""
    build(root, _plain())
    work, home = os.path.join(root, WORK), os.path.join(root, HOME)
    for script in TREES[name]:
        subprocess.run(["bash", "-c", script, "-", work, home], check=True)
    return entries_of(root)


def entries_of(root: str) -> list[Entry]:
    """What is on the disk."""
    found: list[Entry] = []
    names: dict[int, str] = {}
    for folder, folders, files in os.walk(root):
        for name in sorted((*folders, *files)):
            path = os.path.join(folder, name)
            info = os.lstat(path)
            short = path[len(root) + 1 :]
            if stat.S_ISLNK(info.st_mode):
                found.append(Entry(short, info.st_mode, os.readlink(path).encode()))
            elif stat.S_ISDIR(info.st_mode):
                found.append(Entry(short, info.st_mode))
            elif info.st_ino in names:
                found.append(Entry(short, _HARD, names[info.st_ino].encode()))
            else:
                found.append(Entry(short, info.st_mode, Path(path).read_bytes()))
                names[info.st_ino] = short
    return found


def build(root: str, entries: list[Entry]) -> None:
    """Put exactly these into `root`, which is emptied first."""
    for name in os.listdir(root):
        _remove(os.path.join(root, name))
    for number, (short, mode, content) in enumerate(entries):
        path = f"{root}/{short}"
        if mode == _HARD:
            os.link(f"{root}/{content.decode()}", path)
        elif stat.S_ISDIR(mode):
            os.mkdir(path)
            os.chmod(path, stat.S_IMODE(mode))
        elif stat.S_ISLNK(mode):
            os.symlink(content, path)
        else:
            where = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(mode))
            os.write(where, content)
            os.utime(where, (_OLD, _OLD + number))
            os.close(where)


def _remove(path: str) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):  # deeper than Python goes
        subprocess.run(["rm", "-rf", path], check=True)


def look(root: str) -> dict[str, Seen]:
    """Everything below `root`, by its path from there."""
    seen: dict[str, Seen] = {}
    ahead = [root]
    start = len(root) + 1
    while ahead:
        entries = list(os.scandir(ahead.pop()))
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            is_directory = stat.S_ISDIR(info.st_mode)
            if is_directory and len(entry.path) < _DEEP:
                ahead.append(entry.path)
                if info.st_mode & _TO_LOOK != _TO_LOOK:  # a command took rights away
                    os.chmod(entry.path, _TO_LOOK)
            # A directory's size and time change with its names, which are seen themselves.
            plain = (0, 0) if is_directory else (info.st_size, info.st_mtime_ns)
            seen[entry.path[start:]] = Seen(info.st_mode, *plain, info.st_ino)
    return seen


def differences(before: dict[str, Seen], after: dict[str, Seen]) -> dict[str, str]:
    """What was created, changed and deleted, by path."""
    found = dict.fromkeys(before.keys() - after.keys(), "deleted")
    found.update(dict.fromkeys(after.keys() - before.keys(), "created"))
    both = before.keys() & after.keys()
    found.update({path: "changed" for path in both if before[path] != after[path]})
    return dict(sorted(found.items()))
