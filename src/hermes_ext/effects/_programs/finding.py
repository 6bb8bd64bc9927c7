"""Programs that look for files and may do something with what they find: find, fd, tree."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from hermes_ext.effects._options import Below, is_unclear
from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole, Word, beginning, is_many

_ALONE_LISTED: Final = """
! ( ) , -not -a -and -o -or -print -print0 -ls -prune -quit -depth -d -mount -xdev -x
-follow -true -false -empty -readable -writable -executable -nouser -nogroup -daystart
-noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race -help --help -version
--version
"""
_ALONE: Final = frozenset(_ALONE_LISTED.split())
_WITH_ONE_LISTED: Final = """
-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type
-xtype -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -perm -user
-group -uid -gid -maxdepth -mindepth -fstype -inum -links -samefile -used -context
-printf -regextype -Bmin -Btime -flags
"""
_WITH_ONE: Final = frozenset(_WITH_ONE_LISTED.split())
_FILES: Final = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
_MOST_FOLDERS: Final = 4
_MOST_FILES: Final = 20_000  # looked at, below the folders
_MOST_FOUND: Final = 500  # that are told one by one
_CLASS: Final = re.compile(r"[\[\\]")  # in a pattern: these are read otherwise here
_CHOICES: Final = frozenset({"!", "(", ")", ",", "-not", "-o", "-or", "-prune"})


class _Find:
    """One `find`: its folders, and what it does with what lies below them."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.words = list(call.words)
        self.follows = False
        self.folders: list[Word] = []
        # What the names of what is found match, if nothing but more conditions stands before.
        self.names: list[str] | None = []
        self.depths: list[Word] = []
        self.runs = False

    def next(self) -> Word:
        return self.words.pop(0) if self.words else ""

    def read(self) -> None:
        self._settings()
        while self.words and not _is_expression(self.words[0]):
            word = self.next()
            self.folders.append(word)
            if isinstance(word, Hole) and is_unclear(word):
                self.call.unknown("is given words that may stand for actions", word)
        self.folders = self.folders or ["."]
        self.follows = self.follows or "-follow" in self.words
        while self.words:
            self._step(self.next())
        for folder in self.folders:
            self._look(folder)

    def _look(self, folder: Word) -> None:
        """With `-maxdepth 1` it reads a directory as `ls` does, and what it runs, files in it."""
        local = self.call.shell.rec.machine.local
        shallow = local and self.depths and all(each in ("0", "1") for each in self.depths)
        files = self._inside(folder) if shallow and self.runs else []
        if not shallow or files is None:
            self.call.do("search", folder)
            return
        for each in (folder, *files):
            self.call.read(each)

    def _inside(self, folder: Word) -> list[str] | None:
        """What is right in a folder; None where that cannot be told."""
        rec = self.call.shell.rec
        if isinstance(folder, Hole) or not rec.machine.local or rec.has_made():
            return None
        try:
            names = [name for _, at, _ in rec.places(folder) for name in os.listdir(at)]
        except OSError:
            return None
        found = [os.path.join(folder, name) for name in names]
        return found if len(found) <= _MOST_FOUND else None

    def _settings(self) -> None:
        while self.words and isinstance(self.words[0], str):
            word = self.words[0]
            if word in ("-H", "-L", "-P", "-E", "-X", "-s", "-x", "-d"):
                self.follows = self.follows or word in ("-L", "-H")
            elif word == "-D" or not word.startswith("-O"):
                if word != "-D":
                    return
                del self.words[0]
            del self.words[0]

    def _step(self, word: Word) -> None:
        call = self.call
        if isinstance(word, Hole):
            self.depths.append(word)
            call.unknown("is given words that may stand for actions", word)
        elif word in _ALONE:
            if word in _CHOICES:
                self.names = None
        elif word in _WITH_ONE or (word.startswith("-newer") and len(word) == 8):
            self._test(word, self.next())
        elif word == "-files0-from":
            call.unknown("searches where a file says", self.next())
        elif word in _FILES:
            call.write(self.next())
            if _FILES[word] > 1:
                self.next()
        elif word == "-delete":
            self._delete()
        elif word in ("-exec", "-execdir", "-ok", "-okdir"):
            self._run(word)
        else:
            call.unknown(f"{word} is not known", word)

    def _test(self, word: str, value: Word) -> None:
        if is_many(value):
            self.call.unknown("is given words that may stand for actions", value)
        if word == "-maxdepth":
            self.depths.append(value)
        if word == "-name" and isinstance(value, str) and self.names is not None:
            self.names.append(value)

    def _delete(self) -> None:
        for folder in self.folders:
            found = self._files(folder)
            for file in found or ():
                self.call.delete(file)
            if found is None:
                self.call.delete(folder, tree=True)
            if self.follows and self.call.rec.has_links(folder):
                self.call.unknown("deletes what links lead to", folder)

    def _files(self, folder: Word) -> list[str] | None:
        """What has the names in a folder and below; None where that cannot be told."""
        rec = self.call.shell.rec
        names = self.names or ()
        simple = any(each.strip("*") for each in names) and not any(map(_CLASS.search, names))
        # What the same call puts there counts too.
        if not simple or isinstance(folder, Hole) or self.follows or rec.has_changed():
            return None
        places = [leads_to for _, leads_to, _ in rec.places(folder)]
        if not (places and rec.machine.local):
            return None
        found = [folder] if _is_named(os.path.basename(folder.rstrip("/")), names) else []
        missed: list[OSError] = []
        left = _MOST_FILES
        for place in places:
            for at, folders, files in os.walk(place, onerror=missed.append):
                here = (*folders, *files)
                found += [os.path.join(at, name) for name in here if _is_named(name, names)]
                left -= len(here)
                if left < 0 or missed or len(found) > _MOST_FOUND:
                    return None
        return None if missed else found

    def _run(self, action: str) -> None:
        command: list[Word] = []
        self.runs = True
        while self.words:
            word = self.next()
            if word == ";" or (word == "+" and command and command[-1] == "{}"):
                break
            command.append(word)
        if not command:
            return
        found = [self._found(folder) for folder in self.folders[:_MOST_FOLDERS]]
        if len(self.folders) > _MOST_FOLDERS:
            elsewhere = any(isinstance(e, Hole) or e.startswith(("-", "/")) for e in self.folders)
            found = [Hole("" if elsewhere else "./")]
        there = action.endswith("dir")
        for each in [Hole("./")] if there else found:
            words = [_with(word, each) for word in command]
            self.call.shell.run(words, cwd=Hole() if there else None, stdin="")

    def _found(self, folder: Word) -> Word:
        if isinstance(folder, Hole):
            return Hole(folder.prefix)
        return Hole(folder) if self.follows else Below(folder)


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return all(fnmatchcase(name, each) for each in patterns)


def find(call: Call) -> None:
    """`find FOLDER… EXPRESSION`."""
    _Find(call).read()


def _is_expression(word: Word) -> bool:
    if isinstance(word, Hole):
        return word.prefix[:1] in ("-", "(", "!", ",") and word.prefix != "-"
    return word[:1] == "-" or word in ("!", "(", ")", ",")


def _with(word: Word, found: Word) -> Word:
    """A word of the command with the path in it that was found."""
    if isinstance(word, Hole) or "{}" not in word:
        return word
    if word == "{}":
        return found
    before, _, behind = word.partition("{}")
    prefix = beginning(found)
    inside = isinstance(found, Below) and prefix.endswith("/") and not before
    if inside and "{}" not in behind and "/" not in behind:
        return Below(prefix)
    return Hole(before + prefix)


def tree(call: Call) -> None:
    """`tree FOLDER…`: with `-L 1` as `ls`."""
    call.check_options()
    for folder in call.operands or ["."]:
        call.do("read" if call.last("-L") == "1" else "search", folder)


def fd(call: Call) -> None:
    """`fd PATTERN FOLDER…`: as `find`, and `-x` runs a command for each path."""
    command = _command_of(call.words)
    before = call.words[: len(call.words) - len(command) - 1] if command else call.words
    inner = call.again(before)
    inner.check_options()
    if call.has("-x", "--exec", "-X", "--exec-batch") and not command:
        call.unknown("runs a command that is not seen here")
    folders = [*inner.operands[1:], *inner.values("--search-path")] or ["."]
    for folder in folders:
        inner.do("search", folder)
    if command:
        known = len(folders) == 1 and not inner.values("-C", "--base-directory")
        # Below the directory at hand, paths have no `./` before them: they may look like options.
        prefix = folders[0] if known and isinstance(folders[0], str) and folders[0] != "." else ""
        found = Hole(prefix, tags=call.rec.tag(folders))
        placed = any(isinstance(each, str) and "{" in each for each in command)
        words = [_in_braces(each, found.tags) for each in command]
        call.shell.run(words if placed else [*words, found], stdin="")


def _command_of(words: Sequence[Word]) -> list[Word]:
    for place, word in enumerate(words):
        if word in ("-x", "--exec", "-X", "--exec-batch"):
            command = list(words[place + 1 :])
            return command[: command.index(";")] if ";" in command else command
    return []


def _in_braces(word: Word, tags: str) -> Word:
    if isinstance(word, Hole) or "{" not in word:
        return word
    return Hole(word.partition("{")[0], tags=tags)
