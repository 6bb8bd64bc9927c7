"""Collects what a reading announces, and finds out which places it means."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final

from attrs import evolve

from hermes_ext.effects._machine import Machine, Places, places_of
from hermes_ext.effects._model import Change, ChangeKind, Command, Effects, OpenChange
from hermes_ext.effects._words import ANYTHING, Hole, Word, beginning, shown

_MOST: Final = 5_000  # announcements; beyond it, everything may be touched
_MOST_OPEN: Final = 64  # changes of paths that are not known; beyond it, of any path
_MOST_LINKS: Final = 64  # that a call makes
# Words, operators, and what they are parts of: 30,000 words take a quarter of a second.
_MOST_PARTS: Final = 100_000
_MOST_MENTIONS: Final = 10_000
_MOST_LOOKED_UP: Final = 1_000  # paths in texts that are not understood
_BREAKS: Final = re.compile(r"[\s=:,;@'\"`()<>|&{}\[\]!\\]+")
_PLAIN: Final = re.compile(r"(?!-)[\w./-]*\Z", re.ASCII)
# Options' letters, and then a path, or what may be one: `-o./x`, `-xfplans/x`, `-Ca`.
_LETTERS: Final = re.compile(r"-(\w{1,6})(?=\w*[.~/])|-(\w)(?=\w)", re.ASCII)
_WRITES: Final = re.compile(r"\d*w(?=[.~/])", re.ASCII)  # a command of sed: `w.x`
_USER_HOME: Final = re.compile(r"~(?=/|\Z)|\$\{?HOME\}?(?!\w)|%USERPROFILE%")
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")
_LONGEST_PATH: Final = 4_096
_PATTERN: Final = re.compile(r"[*?\[]")
_FIRST_TAG: Final = 0xE100
_MOST_TAGS: Final = 64
_SHOWN: Final = 200  # characters of a command


class TooMuch(Exception):  # noqa: N818 - an answer, not a failure
    """There is more to read than is looked at: `most` of `what`, in words for a message."""

    def __init__(self, most: int, what: str) -> None:
        super().__init__(f"more than {most:,} {what}")


class Recorder:
    """What a call touches, as it is found out.

    Attributes:
        machine: where the call runs.
        cwd: the directories that relative paths may start in; none if that is not known.
        skip: rules that are not applied: the tests find out so that each of them is needed.
        by: what is at work, for messages.
        doubts: how often something was not known.
        stops: whether a command may keep later ones from running: `exit` in a branch, `set -e`.
    """

    def __init__(self, machine: Machine, skip: Iterable[str] = ()) -> None:
        self.machine = machine
        self.cwd: tuple[str, ...] = () if machine.cwd is None else _starts(machine)
        self.skip = frozenset(skip)
        self._dropped = 0
        self._count = 0
        self._changes: dict[Change, None] = {}
        self._open: dict[OpenChange, None] = {}
        self._reads: set[str] = set()
        self._searches: set[str] = set()
        self._mentions: set[str] = set()
        self._texts: dict[str, None] = {}
        self._listed: set[str] = set()
        self._tags: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}
        self._told: set[str] = set()
        self.doubts = 0
        self.stops = False
        self._exported: set[str] = set()
        self._looked_up = 0
        self._parts = 0
        self._unknown: dict[str, None] = {}
        self._unread: str | None = None
        self._commands: list[Command] = []
        self._links: dict[str, list[str]] = {}
        self._unlinked: dict[str, None] = {}
        self._made: dict[str, bool] = {}
        self._by: dict[str, set[str]] = {}
        self._trees: dict[tuple[str, str], None] = {}
        self._tainted: set[str] = set()

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The variables whose values are known to commands."""
        return self.machine.variables

    # -- rules ------------------------------------------------------------------------------------

    def on(self, rule: str) -> bool:
        """Whether a rule is applied."""
        return rule not in self.skip

    @contextmanager
    def under(self, rule: str) -> Iterator[None]:
        """What is announced inside is announced by this rule."""
        off = rule in self.skip
        self._dropped += off
        try:
            yield
        finally:
            self._dropped -= off

    # -- announcing -------------------------------------------------------------------------------

    def read(self, word: Word) -> None:
        """A file or directory is read. What a word reads that is not known, no one is told."""
        if isinstance(word, str):
            for _, leads_to, _ in self.places(word):
                self._reads.add(leads_to)
                self.step()

    def search(self, word: Word) -> None:
        """A directory is read with all that is below it."""
        known = word.prefix.rpartition("/")[0] or "." if isinstance(word, Hole) else word
        for _, leads_to, _ in self.places(known):
            self._reads.add(leads_to)
            self._searches.add(leads_to)
            self.step()

    def create(self, word: Word, by: str) -> None:
        """As `write`, of what is certainly new or fails."""
        self.write(word, by, kind=ChangeKind.CREATE)

    def write(
        self, word: Word, by: str, *, tree: bool = False, kind: ChangeKind = ChangeKind.WRITE
    ) -> None:
        """A file is created or changed; with `tree`, anything below a directory may be."""
        for own, leads_to, _ in self._written(word, by, kind, tree=tree):
            self._change(own, ChangeKind.WRITE, tree, by)
            if leads_to != own and self.on("resolve"):
                self._change(leads_to, ChangeKind.WRITE, tree, by)
            self._other_names(leads_to)

    def delete(self, word: Word, by: str, *, tree: bool = False) -> None:
        """A name goes away: deleted, or moved from here."""
        trailing = isinstance(word, str) and word.endswith("/")
        for own, leads_to, _ in self._written(word, by, ChangeKind.DELETE, tree=tree):
            self._change(own, ChangeKind.DELETE, tree, by)
            if own != leads_to and self.on("link"):
                self._unlinked[own] = None
            # With a slash behind it, some programs go through a link.
            if trailing and leads_to != own:
                self._change(leads_to, ChangeKind.DELETE, tree, by)

    def link(self, name: Word, target: Word, by: str) -> None:
        """`name` becomes a symbolic link: what is later done to it is done to `target` too."""
        for own, _, _ in self._written(name, by, ChangeKind.WRITE):
            self._change(own, ChangeKind.WRITE, False, by)
            if not self.on("link"):
                continue
            if isinstance(target, Hole):
                self._tainted.add(own)
            else:
                self._link(own, os.path.join(os.path.dirname(own), target))

    def _link(self, own: str, leads_to: str) -> None:
        targets = self._links.setdefault(own, [])
        if leads_to not in targets:
            targets.append(leads_to)
        # Each of them is another way that every path may lead.
        if sum(map(len, self._links.values())) > _MOST_LINKS:
            raise TooMuch(_MOST_LINKS, "links made")

    def taint(self, word: Word, source: Word | None = None) -> None:
        """What lies below a path may be links from now on: it was unpacked, copied or moved there.

        source: where it comes from, if that is known: without a link in it nothing happens.
        """
        if source is not None and not self.has_links(source):
            return
        if isinstance(word, str):
            self._tainted.update(leads_to for _, leads_to, _ in self.places(word))

    def unknown(self, why: str, *mentions: Word) -> None:
        """More may be touched than is listed, and this is why; `mentions` are words in it."""
        if self._dropped:
            return
        self.doubts += 1
        self._unknown[why] = None
        for word in mentions:
            self.mention(word)

    def mention(self, word: Word) -> None:
        """A word, or a text, of something that is not understood: paths in it may be meant."""
        if self._dropped:
            return
        self._texts[shown(word)] = None
        if not isinstance(word, Hole):
            known = [word]
        elif word.text:
            known = word.text.split("\ufffd")
        else:
            known = [word.prefix, word.suffix.lstrip("/")]
        for text in known:
            self._mention_paths(text, self._mentions)
        self.used(word)

    def _mention_paths(self, text: str, into: set[str]) -> None:
        pieces = {text: None} if len(text) <= _LONGEST_PATH else {}
        if not _PLAIN.match(text):
            pieces |= dict.fromkeys(_pieces(text, self))
        for piece in pieces:
            if piece.strip("/.") and len(piece) <= _LONGEST_PATH:
                self._mention_path(piece, into)

    def _mention_path(self, piece: str, into: set[str]) -> None:
        if len(into) > _MOST_MENTIONS:
            raise TooMuch(_MOST_MENTIONS, "paths")
        self._looked_up += 1
        if self._looked_up <= _MOST_LOOKED_UP:
            for own, leads_to, _ in self.places(piece):
                into |= {own, leads_to}
            return
        bases = ("",) if piece.startswith("/") else self.cwd
        into.update(os.path.normpath(os.path.join(base, piece)) for base in bases)

    def tag(self, words: Sequence[Word]) -> str:
        """A mark for what a command prints that is given these words, where it stands now."""
        given = tuple(beginning(each) for each in words if beginning(each))
        known = self._tags.get((given, self.cwd))
        # The last one stands for all further ones.
        found = known or chr(_FIRST_TAG + min(len(self._tags), _MOST_TAGS - 1))
        self._tags[given, self.cwd] = found
        return found

    def used(self, word: Word) -> None:
        """A name is changed, or given to something that is not known: tell what it comes from."""
        for tag in word.tags if isinstance(word, Hole) else "":
            self._list(tag)

    def _list(self, tag: str) -> None:
        if tag in self._told:
            return
        self._told.add(tag)
        before = self.cwd
        for (words, cwd), each in self._tags.items():
            if each == tag:
                self.cwd = cwd
                self._listed.update(at for _, at, _ in self.places("."))
                for word in words:
                    fixed = _PATTERN.split(word)[0]
                    folder = word if fixed == word else fixed.rpartition("/")[0]
                    self._mention_paths(folder, self._listed)
        self.cwd = before

    def variable(self, name: str) -> None:
        """A variable that programs see from now on."""
        self._exported.add(name)

    def command(self, words: Sequence[Word], text: str = "", variables: Iterable[str] = ()) -> None:
        """A program that would be started; `variables`: the names of those set for it."""
        if self._dropped:
            return
        first = words[0] if words else ""
        known = len(self.cwd) == 1
        self._commands.append(
            Command(
                name=None if isinstance(first, Hole) else os.path.basename(first),
                args=tuple(None if isinstance(each, Hole) else each for each in words[1:]),
                cwd=Path(self.cwd[0]) if known else None,
                text=text[:_SHOWN] if text else _as_text(words)[:_SHOWN],
                variables=tuple(variables),
            )
        )
        self.step()

    # -- places -----------------------------------------------------------------------------------

    def places(self, path: str) -> list[Places]:
        """Where the name of a path stands, and where it leads; for each directory it may start in.

        Empty if it is relative and no directory is known.
        """
        bases = ("",) if path.startswith("/") else self.cwd
        full = [os.path.join(base, path) for base in bases]
        local = self.machine.local
        found = [places_of(each, local=local) for each in full]
        # A link may not come about, or not go away: what has its name already may stay.
        for links in self._ways():
            found += [places_of(each, local=local, links=links) for each in full]
        return list(dict.fromkeys(found))

    def _ways(self) -> Iterator[dict[str, str | None]]:
        """The links that there may be, besides those on the disk."""
        most = max(map(len, self._links.values()), default=0)
        for gone in (self._unlinked, {}) if self._unlinked else ({},):
            for number in range(max(most, min(1, len(gone)))):
                chosen = {
                    own: each[min(number, len(each) - 1)] for own, each in self._links.items()
                }
                yield {**gone, **chosen}

    def exists(self, path: str) -> bool | None:
        """Whether something has this name (a link itself counts); None if that cannot be told."""
        if not self.machine.local:
            return None
        made = self._made.get(path)
        return os.path.lexists(path) if made is None else None

    def is_changed(self, path: str, but: str = "") -> bool:
        """Whether something announced so far touches a path; `but`: not what is done by these."""
        wanted = Path(path)
        return any(
            each.touches(wanted) for each in self._changes if not (but and each.by.startswith(but))
        )

    def changed_by(self, path: str) -> set[str]:
        """What changes a path, of what is announced so far."""
        above = {by for (tree, by) in self._trees if _is_below(path, tree)}
        return self._by.get(path, set()) | above

    def has_written(self) -> bool:
        """Whether anything was announced so far that changes a path."""
        return bool(self._by)

    def has_made(self) -> bool:
        """Whether anything was created or deleted: what a pattern matches may differ by then."""
        return bool(self._made)

    def has_changed(self) -> bool:
        """Whether anything was announced so far that is more than read."""
        return bool(self._changes or self._unknown)

    def made_below(self, directory: str) -> list[str]:
        """Names right below a directory that were made on the way."""
        start = directory.rstrip("/") + "/"
        made = (path for path in (*self._made, *self._links) if path.startswith(start))
        return list(dict.fromkeys(path[len(start) :].split("/")[0] for path in made))

    def is_directory(self, word: Word) -> bool | None:
        """Whether a path leads to a directory; None if that cannot be told."""
        if isinstance(word, Hole) or not self.machine.local:
            return None
        found = {self._is_directory(leads_to) for _, leads_to, _ in self.places(word)}
        return found.pop() if len(found) == 1 else None

    def _is_directory(self, path: str) -> bool | None:
        made = self._made.get(path)
        if made is not None or self._is_tainted(path):
            return True if made else None
        return os.path.isdir(path)

    def made_directory(self, word: Word) -> None:
        """A directory that is there from now on."""
        if isinstance(word, str) and not self._dropped:
            for _, leads_to, _ in self.places(word):
                self._made[leads_to] = True

    def open_change(
        self,
        by: str,
        word: Hole = ANYTHING,
        kind: ChangeKind = ChangeKind.WRITE,
        *,
        tree: bool = False,
    ) -> None:
        """A program that is known changes a path that is not; why is said by `unknown`."""
        if self._dropped:
            return
        known = word if len(self._open) < _MOST_OPEN else ANYTHING
        self._open[OpenChange(kind, tree, by, self._beginning(known), _ending(known))] = None
        self.step()

    def _beginning(self, word: Hole) -> Path | None:
        """The directory that a path begins with, if that is certain."""
        if word.many or not word.prefix:
            return None
        folder, slash, _ = word.prefix.rpartition("/")
        found = {each[1:] for each in self.places(f"{folder}/" if slash else ".")}
        leads_to, sure = found.pop() if len(found) == 1 else ("", False)
        return Path(leads_to) if sure else None

    def _written(
        self, word: Word, by: str, kind: ChangeKind, *, tree: bool = False
    ) -> list[Places]:
        if isinstance(word, Hole):
            self.unknown(f"what {by} writes is not known before it runs", word)
            self.open_change(by, word, kind, tree=tree)
            return []
        if not word or self._dropped:
            return []
        found = self.places(word)
        if not found:
            self.unknown(f"where {by} writes {word!r} is not known", word)
            self.open_change(by, Hole(suffix=f"/{word}"), kind, tree=tree)
        for own, leads_to, sure in found:
            if not sure:
                self.unknown(f"where {by} writes depends on who asks: {word!r}", word)
            if self._is_tainted(own) or self._is_tainted(leads_to):
                self.unknown(f"{by} writes where the same call puts files, or links", word)
        return found

    def _is_tainted(self, path: str) -> bool:
        if not self._tainted:
            return False
        return any(str(each) in self._tainted for each in (path, *Path(path).parents))

    def _change(self, path: str, kind: ChangeKind, tree: bool, by: str) -> None:
        self.step()
        self._by.setdefault(path, set()).add(by)
        if tree:
            self._trees[path, by] = None
        there = self.exists(path)
        if kind is ChangeKind.WRITE and not tree:
            if there is False:
                kind = ChangeKind.CREATE
            elif there is None:
                self._changes[Change(Path(path), ChangeKind.CREATE, tree, by)] = None
        self._changes[Change(Path(path), kind, tree, by)] = None
        if kind is not ChangeKind.WRITE:
            self._made.setdefault(path, False)

    def _other_names(self, path: str) -> None:
        if not (self.machine.local and self.on("hard-link")):
            return
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return
        if found.st_nlink > 1 and not os.path.isdir(path):
            self.unknown(f"{path!r} has several names (hard links)")

    def has_links(self, source: Word) -> bool:
        """Whether a path is a link, or has links below it; where that takes too long, it has."""
        if isinstance(source, Hole) or not self.machine.local:
            return True
        left = 2_000
        for own, leads_to, _ in self.places(source):
            if own != leads_to or any(each.startswith(own) for each in self._links):
                return True
            ahead = [own]
            while ahead:
                entries = _entries(ahead.pop())
                left -= len(entries)
                if left < 0 or any(entry.is_symlink() for entry in entries):
                    return True
                ahead += [each.path for each in entries if each.is_dir(follow_symlinks=False)]
        return False

    def step(self) -> None:
        """Count something that was looked at; `TooMuch` where there is no end to it."""
        self._count += 1
        if self._count > _MOST:
            raise TooMuch(_MOST, "commands, reads and changes")

    def parsed(self, parts: int) -> None:
        """Count the parts of a text before they are read: many words take long, and say little."""
        self._parts += parts
        if self._parts > _MOST_PARTS:
            raise TooMuch(_MOST_PARTS, "words and operators of shell text")

    # -- the end ----------------------------------------------------------------------------------

    def anything(self, why: str) -> None:
        """Everything may be touched, and nobody can say more."""
        self._unread = why
        self._unknown = {why: None} | self._unknown
        self._changes[Change(Path("/"), ChangeKind.WRITE, True, "something unknown")] = None
        self._changes[Change(Path("/"), ChangeKind.DELETE, True, "something unknown")] = None

    def effects(self) -> Effects:
        """What was announced."""
        return Effects(
            reads=frozenset(map(Path, self._reads)),
            changes=tuple(map(self._with_link, self._changes)),
            open_changes=tuple(self._open),
            searches=frozenset(map(Path, self._searches)),
            commands=tuple(self._commands),
            mentions=frozenset(map(Path, self._mentions)),
            texts=tuple(self._texts),
            listed=frozenset(map(Path, self._listed)),
            variables=frozenset(self._exported),
            unknown=tuple(self._unknown),
            unread=self._unread,
        )

    def _with_link(self, change: Change) -> Change:
        """A change, with whether a link may come of it."""
        path = str(change.path)
        made = path in self._links or self._is_tainted(path)
        return evolve(change, link=True) if made and change.kind != "delete" else change


def _starts(machine: Machine) -> tuple[str, ...]:
    """Where a session works. Where that directory is gone, hosts start commands above it."""
    start = there = os.fspath(machine.cwd or "/")
    while machine.local and there not in ("", "/") and not os.access(there, os.X_OK):
        there = os.path.dirname(there)
    # Not as far up as the root: a project that was never there is nowhere.
    return (start,) if there in ("", "/", start) else (start, there)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _ending(word: Hole) -> str:
    """What the last name of a path surely ends with."""
    first, *names = word.suffix.split("/")
    names = [each for each in names if each not in ("", ".")]
    if word.many or ".." in names:
        return ""
    # Dots at its start may be the end of a name, or of `..`.
    return names[-1] if names else first.lstrip(".") and first


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (OSError, ValueError):
        return []


def _as_text(words: Sequence[Word]) -> str:
    import shlex

    return " ".join("…" if isinstance(each, Hole) else shlex.quote(each) for each in words)


def _pieces(text: str, rec: Recorder) -> Iterator[str]:
    """What in a text may be a path: what stands between its punctuation."""
    if "~" in text or "$" in text or "%" in text:
        text = _with_variables(text, rec)
    for piece in _BREAKS.split(text):
        yield piece
        if letters := _LETTERS.match(piece):
            yield from (piece[end:] for end in range(2, letters.end() + 1))
        elif writes := _WRITES.match(piece):
            yield piece[writes.end() :]
        if piece.startswith("//"):  # file://, after its colon
            yield piece[1:]


def _with_variables(text: str, rec: Recorder) -> str:
    from urllib.parse import unquote

    homes = rec.machine.homes
    home = homes[0] if homes else "~"
    shown = _USER_HOME.sub(lambda _: home, text)
    shown = _VARIABLE.sub(lambda found: rec.variables.get(found[1], found[0]), shown)
    return f"{shown} {unquote(shown)}" if "%" in shown else shown
