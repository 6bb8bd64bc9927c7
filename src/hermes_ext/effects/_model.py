"""What a tool call touches."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from attrs import field, frozen


class ChangeKind(StrEnum):
    """What happens to a path that is not only read."""

    CREATE = "create"
    WRITE = "write"
    DELETE = "delete"


@frozen
class Change:
    """One path that is created, changed or deleted.

    Attributes:
        path: absolute. Of a path that is a link there are two changes: the link's own place, and
            what it leads to.
        kind: `create` where nothing is there yet; moving deletes one path and creates another.
        tree: whether it is a directory whose contents change as well: with `delete` all of it goes,
            with `write` anything below it may be created, changed or deleted.
        by: what does it, for messages: `write_file`, `sed -i`.
        link: whether the path, or something below it, may become a symbolic link: made, copied or
            moved there, or unpacked.
    """

    path: Path
    kind: ChangeKind
    tree: bool = False
    by: str = ""
    link: bool = False

    def touches(self, path: Path) -> bool:
        """Whether this changes `path` (absolute, links resolved)."""
        if self.path == path:
            return True
        return self.tree and path.is_relative_to(self.path)


@frozen
class OpenChange:
    """A change by a program that is known, of a path that is not known before it runs: `rm "$f"`.

    Attributes:
        kind: `write` where it is created or changed; `create` where it is only made, if it is not
            there (`mkdir`).
        tree: whether a directory may change with what is below it, as in `Change`.
        by: what does it, for messages.
        below: the directory that the path begins with, as `build` in `build/$f`; None where it may
            be anywhere. What is not known may still lead out of it by `..`.
        ends: what the path's last name surely ends with, as `x.txt` in `$d/x.txt`; or "".
    """

    kind: ChangeKind
    tree: bool = False
    by: str = ""
    below: Path | None = None
    ends: str = ""


@frozen
class Command:
    """A program that a shell would start.

    Attributes:
        name: its base name; None where it is not known before it runs, as of `$TOOL`.
        args: its arguments; None for one that is not known, or for several such.
        cwd: where it starts; None where that is not known.
        text: the command as it is written, shortened.
        variables: the names of variables that are set for it alone.
    """

    name: str | None
    args: tuple[str | None, ...] = ()
    cwd: Path | None = None
    text: str = ""
    variables: tuple[str, ...] = ()


_NO_PATHS: Final[frozenset[Path]] = frozenset()


@frozen
class Effects:
    """What a tool call touches, as far as it can be told before it runs.

    All paths are absolute, with links resolved; where the tools run on another machine they are
    what the names say.

    Attributes:
        reads: files and directories that are read.
        writes: the paths of `changes`: created, changed, deleted or moved.
        may_write: False only if the call surely changes no file.
        exact: False if more may be touched than is listed.
        changes: what is written, told apart.
        open_changes: what programs that are known write, where its path is not known; each is a
            reason in `unknown` too. Python code that computes a path has only the reason.
        searches: directories that are read with all that lies below them.
        commands: the programs that a shell would start, nested ones too, in the order in which they
            are written.
        mentions: paths that the parts which are not understood name: words of a program that
            nobody knows, texts in code.
        texts: the words and texts that the parts which are not understood are given, as they are
            written; `\ufffd` stands for what is not known of one. What such a program is fed is
            among them (here-documents, pipes), and the files that the call writes and it may run.
        listed: paths that names may come from which are changed, or given to something that is not
            understood: in `ls -d a/* | xargs rm` what is in `a`, and the directory at hand.
        variables: the names of variables that are set for programs that run later.
        unknown: why it is not exact, in words for a message.
        unread: why the call could not be read at all, as the first of `unknown`: it is too long or
            nested too deeply. None where it was read. Then anything may be touched.
    """

    reads: frozenset[Path] = _NO_PATHS
    changes: tuple[Change, ...] = ()
    open_changes: tuple[OpenChange, ...] = ()
    searches: frozenset[Path] = _NO_PATHS
    commands: tuple[Command, ...] = ()
    mentions: frozenset[Path] = _NO_PATHS
    texts: tuple[str, ...] = ()
    listed: frozenset[Path] = _NO_PATHS
    variables: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    unread: str | None = None
    writes: frozenset[Path] = field(init=False)

    @writes.default
    def _paths_of_changes(self) -> frozenset[Path]:
        return frozenset(change.path for change in self.changes) if self.changes else _NO_PATHS

    @property
    def exact(self) -> bool:
        """Whether nothing else is touched."""
        return not self.unknown

    @property
    def may_write(self) -> bool:
        """Whether any file may be created, changed or deleted."""
        return bool(self.changes or self.unknown)

    def change_of(self, path: Path) -> Change | None:
        """The first change that touches `path` (absolute, links resolved); None if none does."""
        return next((change for change in self.changes if change.touches(path)), None)

    def change_in(self, folder: Path) -> Change | None:
        """The first change of a folder (absolute, links resolved) or of anything in it; or None."""
        return next(
            (
                change
                for change in self.changes
                if change.touches(folder) or change.path.is_relative_to(folder)
            ),
            None,
        )
