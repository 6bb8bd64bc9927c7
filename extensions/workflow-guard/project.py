"""The project of a session: where its plan is, and what may be written without one."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from hermes_ext.confine import Confinement, Reason
from hermes_ext.effects import Change, ChangeKind, Effects

from .plan import Plan, in_words
from .tracked import is_tracked

# What gives a file a second name.
_LINKING = frozenset({"ln", "os.link", "Path.hardlink_to"})

_MOST_FILES = 10_000  # a folder with more is not handed out in any case
_EXAMPLE = re.compile(rb">>>|^\s*(```|~~~)\W*py|^\s*\.\. +(code|doctest|test)", re.MULTILINE)
_LOOKED_UP = Reason("workflow-guard", "no plan yet")


@dataclass(frozen=True)
class Project:
    """One session's project.

    root: where relative settings start. cwd: what the paths in tool calls are relative to. Both
    without links; None where the host does not know them.
    """

    settings: Mapping[str, Any]
    root: Path | None
    cwd: Path | None

    @classmethod
    def of(cls, config: Mapping[str, Any], cwd: Path | None, project_root: Path | None) -> Project:
        """The project that a handler's arguments describe."""
        return cls(config, _resolved(project_root or cwd), _resolved(cwd))

    @property
    def plan(self) -> Plan:
        return Plan(self._place(self.settings["plan_path"]), self.settings["plan"])

    def handed_out(self, effects: Effects) -> tuple[Path, ...]:
        """The folders that the programs of a call are to write without a plan.

        What confines programs knows folders, so only those that are there, and in which a program
        finds nothing that may not be written. The folder of a plan that a person is asked about
        only in a call that this person is asked about. Nothing where some commands run as they are,
        because those would run, or believe, what is left there.
        """
        if self.settings["allowed_commands"]:
            return ()
        plan = self.plan.place
        asks = self.settings["plan"]["approval"] == "ask"
        closed = None if plan is None or not asks or effects.change_of(plan) else plan
        found = (
            *(each for each in self._allowed if self._holds_documents(each)),
            *(each for each in self._scratch if not is_tracked(each, self.root)),
        )
        return tuple(
            each
            for each in found
            if each.is_dir() and not (closed is not None and closed.is_relative_to(each))
        )

    def _holds_documents(self, folder: Path) -> bool:
        """Whether all that there is to lose in a folder may be written."""
        try:
            return next(self._others_in(folder), None) is None
        except RecursionError:  # folders in folders, a thousand deep
            return False

    def _others_in(self, folder: Path) -> Iterator[Path]:
        """Files in a folder that may not be written, though it is allowed."""
        for each in islice(_files_in(folder), _MOST_FILES):
            if not (self.may_change(Change(each, ChangeKind.WRITE)) or _is_empty(each)):
                yield each

    def why_not_handed_out(self, change: Change) -> str:
        """Why programs may not write where tools for files may."""
        if self.settings["allowed_commands"]:
            return "allowed_commands is set"
        folder = next((each for each in self._allowed if change.path.is_relative_to(each)), None)
        if folder is None or not folder.is_dir():
            return f"{self.shown(folder or change.path)} does not exist yet"
        try:
            other = next(self._others_in(folder), None)
        except RecursionError:
            return f"{self.shown(folder)} has too many folders in it"
        if other is not None:
            return f"{self.shown(other)} is not a document"
        return "; ".join(f"in {self.shown(Path(at))} {why}" for at, why in self._left_out([folder]))

    def in_the_way(self, path: Path) -> str:
        """What keeps tools for files from writing where they may, as a sentence; "" for nothing."""
        return self.link_to(path) or self.why_not_held(self._around(path))

    def why_not_held(self, folders: Iterable[Path]) -> str:
        """Why tools for files cannot be held to these folders, as a sentence."""
        left_out = self._left_out(folders)
        told = "; ".join(f"in {self.shown(Path(at))}: {why}" for at, why in left_out)
        return f"Nothing can be written {told}. Only the user can change that." if told else ""

    def link_to(self, path: Path) -> str:
        """What to do about the link that leads to a path from where it may be written."""
        for place in filter(None, (*self._allowed, self.plan.place)):
            real = Path(os.path.realpath(place))
            if real != place and (path.is_relative_to(real) or path.is_relative_to(place)):
                return (
                    f"A symbolic link leads from {self.shown(place)} to {self.shown(real)}, and "
                    "links are not followed: the user has to name that place in plan_path and "
                    "allowed_paths of extensions.workflow-guard in config.yaml."
                )
        return ""

    def holds_examples(self) -> bool:
        """Whether a document that may be written without a plan has code that tests could run.

        As pytest does by itself, of the files called `test*.txt`.
        """
        found = (file for folder in self._open for file in _files_in(folder))
        files = list(islice(found, _MOST_FILES + 1))
        return len(files) > _MOST_FILES or any(map(_has_examples, (*files, self.plan.place)))

    def written_in(self, effects: Effects) -> tuple[Path, ...]:
        """The folders that a tool for files writes in, and that programs may write or once might.

        Not the root: what is in it is not handed out. Where a folder as a whole cannot be held, as
        one with too many files, only the part of it that is written in.
        """
        found = (each for change in effects.changes for each in self._around(change.path))
        return tuple(dict.fromkeys(found))

    def _around(self, path: Path) -> Iterator[Path]:
        if sys.platform == "win32":  # where nothing is confined
            return
        around = {each for each in path.parents if each in self._allowed} - {self.root}
        for place in filter(Path.is_dir, sorted(filter(self.is_own, around))[:1]):
            part = next(each for each in path.parents if each.is_dir())
            yield place if self._held((place,)) or not self._held((part,)) else part

    def writable(self, effects: Effects) -> tuple[Path, ...]:
        """Those of them that a program can write: not all folders may be handed out.

        Nothing for a call that is not known to change anything: to look into them takes time.
        """
        if not effects.changes:
            return ()
        return self._held(self.handed_out(effects))

    def _held(self, folders: Iterable[Path]) -> tuple[Path, ...]:
        """Those of the folders that what confines programs can hold them to."""
        return self._confinement(folders).writable

    def _left_out(self, folders: Iterable[Path]) -> tuple[tuple[str, str], ...]:
        """The others, each with why."""
        return self._confinement(folders).left_out

    def _confinement(self, folders: Iterable[Path]) -> Confinement:
        return Confinement.of(map(str, folders), root=self.root, reason=_LOOKED_UP)

    @cached_property
    def _allowed(self) -> tuple[Path, ...]:
        return self._places("allowed_paths")

    @cached_property
    def _scratch(self) -> tuple[Path, ...]:
        return self._places("scratch_paths")

    @cached_property
    def _open(self) -> tuple[Path, ...]:
        """What may be written without a plan, but for the plan."""
        return (*self._allowed, *self._scratch)

    def _places(self, setting: str) -> tuple[Path, ...]:
        found = map(self._place, self.settings[setting])
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def is_open(self, path: Path) -> bool:
        """Whether a path may be written without a plan, by whatever."""
        return path == self.plan.place or any(map(path.is_relative_to, self._open))

    def is_own(self, path: Path) -> bool:
        """Whether a path lies in the project."""
        return self.root is not None and path.is_relative_to(self.root)

    def programs_may_change(self, change: Change, writable: tuple[Path, ...]) -> bool:
        """Whether a program that may write these folders may do this without a plan."""
        # Of temporary files each call has a folder of its own.
        if change.by == "mktemp" and not self.is_own(change.path):
            return True
        # Only where its output is a terminal; and then it is refused, as any other.
        if change.by == "nohup":
            return True
        if not any(map(change.path.is_relative_to, writable)):
            return False
        # These cannot go: they are what is held.
        if change.path in writable and change.kind is ChangeKind.DELETE:
            return False
        scratch = any(map(change.path.is_relative_to, self._scratch))
        return self.may_change(change) or (scratch and not _links(change))

    def is_temporary(self, change: Change) -> bool:
        """Whether it is of a file in a shared folder for temporary files."""
        shared = map(Path, ("/tmp", "/var/tmp", tempfile.gettempdir()))
        return not self.is_own(change.path) and any(map(change.path.is_relative_to, shared))

    def is_link_in_the_open(self, change: Change) -> bool:
        """Whether it would make a link where something else may be written."""
        return _links(change) and self.is_open(change.path)

    def may_change(self, change: Change) -> bool:
        """Whether a tool call may do this without a plan."""
        # A link is no document: made in the background, be it by `cp -P` or `mv` of another one, it
        # could be there just when a call that was judged without it writes.
        if _links(change):
            return False
        if change.path == self.plan.place:
            return not change.tree or change.kind is ChangeKind.DELETE
        return any(self._is_allowed(change, each) for each in self._allowed)

    def _is_allowed(self, change: Change, place: Path) -> bool:
        if change.path == place:
            return not change.tree
        suffixes = {each.casefold() for each in self.settings["allowed_suffixes"]}
        if not change.path.is_relative_to(place):
            return False
        if not suffixes or (change.by == "mkdir" and not change.tree):
            return True
        return not change.tree and change.path.suffix.casefold() in suffixes

    def _place(self, path: str) -> Path | None:
        """Where a setting's path stands.

        Links below the root are not followed: whoever may write there could have made them.
        """
        given = Path(path).expanduser()
        if not given.is_absolute():
            return None if self.root is None else Path(os.path.normpath(self.root / given))
        place = Path(os.path.normpath(given))
        if self.root is not None and place.is_relative_to(self.root):
            return place
        return Path(os.path.realpath(place.parent)) / place.name

    def shown(self, path: Path) -> str:
        """A path as the model is to write it in a tool call.

        Relative only where the calls start at the root: elsewhere some of the paths in one message
        would be relative to it and some not.
        """
        if self.root is None or self.cwd != self.root or not path.is_relative_to(self.root):
            return str(path)
        return str(path.relative_to(self.root))

    @property
    def shown_plan(self) -> str:
        """The plan, as the model is to write it in a tool call."""
        return self._shown_setting(self.settings["plan_path"])

    @property
    def shown_allowed(self) -> tuple[str, ...]:
        """The allowed paths, likewise."""
        return tuple(map(self._shown_setting, self.settings["allowed_paths"]))

    @property
    def shown_open(self) -> str:
        """All that may be written without a plan, in words."""
        suffixes = ", ".join(self.settings["allowed_suffixes"])
        given = zip(self.settings["allowed_paths"], self.shown_allowed, strict=True)
        files: list[str] = [self.shown_plan]
        folders: list[str] = []
        for path, shown in given:
            place = self._place(path)
            is_file = place is not None and place.is_file()
            (files if is_file or not suffixes else folders).append(shown)
        in_folders = [f"documents ({suffixes}) in {in_words(folders)}"] if folders else []
        return in_words([*dict.fromkeys(files), *in_folders])

    def _shown_setting(self, path: str) -> str:
        place = self._place(path)
        return path if place is None else self.shown(place) + ("/" if path.endswith("/") else "")

    def filled_in(self, text: str) -> str:
        """A text of the settings, with its names replaced."""
        fault = self.plan.fault()
        values = {
            "{allowed_paths}": in_words(self.shown_allowed) or "nothing",
            "{plan_path}": self.shown_plan,
            "{project_root}": str(self.root or "the project's root"),
            "{problem}": f"{self.shown_plan} {fault}. {self.plan.needs()}".rstrip(" .")
            if fault
            else "",
        }
        for name, value in values.items():
            text = text.replace(name, value)
        return text


def _links(change: Change) -> bool:
    return change.link or change.by in _LINKING


def _files_in(folder: Path) -> Iterator[Path]:
    return (Path(at, name) for at, _, names in os.walk(folder) for name in names)


def _has_examples(file: Path | None) -> bool:
    """Whether a file has examples for doctest, or blocks of Python."""
    try:
        return (
            file is not None and file.is_file() and _EXAMPLE.search(file.read_bytes()) is not None
        )
    except OSError:
        return True


def _is_empty(file: Path) -> bool:
    try:
        return not file.lstat().st_size
    except FileNotFoundError:
        return True


def _resolved(path: Path | None) -> Path | None:
    return None if path is None else Path(os.path.realpath(path))
