"""Files that a command is given, where these are pipes: `-`, `/dev/stdin`, `<(…)`, a named pipe.

What comes through a pipe can be read once, and by this process alone. So it is put into a private
file, which the child process that runs extensions can read too.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from hermes_ext._values import frozen
from hermes_ext.cli._request import UsageError
from hermes_ext.exceptions import HermesExtError

STDIN: Final = Path("standard input")
_CHUNK: Final = 1 << 20
# Names that mean one of this process's own descriptors, and another one's in a child.
_OF_THIS_PROCESS: Final = ("/dev/", "/proc/")


@frozen
class Given:
    """A file that was named on the command line.

    Attributes:
        file: a path that any process can open, if there is such a file.
        shown: how messages name it.
    """

    file: Path
    shown: Path


@contextmanager
def regular(path: Path, largest: int) -> Iterator[Given]:
    """A file as it is, or what a pipe gives, in a file that is there until the end of the block.

    Args:
        path: as it was typed; `-` is standard input.
        largest: how many bytes of a pipe are taken; one more shows that there is more.

    Raises:
        UsageError: standard input is a terminal, or closed.
        HermesExtError: the pipe cannot be read.
    """
    stdin = str(path) == "-"
    if not stdin and not _is_stream(path):
        yield Given(path.absolute(), path.absolute())
        return
    shown = STDIN if stdin else path
    with tempfile.TemporaryDirectory(prefix="hermes-ext-") as folder:
        copy = Path(folder, shown.name)
        try:
            with _stdin() if stdin else path.open("rb") as source, copy.open("xb") as target:
                if source.isatty():
                    raise _no_pipe("it is a terminal")
                _copy(source, target, largest + 1)
        except OSError as error:
            told = f"the pipe cannot be read: {error.strerror or error}"
            raise HermesExtError(told, path=shown) from error
        yield Given(copy, shown)


def _is_stream(path: Path) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False  # whoever opens it says what is wrong
    if stat.S_ISREG(mode):
        return os.path.abspath(path).startswith(_OF_THIS_PROCESS)
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


@contextmanager
def _stdin() -> Iterator[BinaryIO]:
    """Standard input, which stays open."""
    if sys.stdin is None or sys.stdin.closed:
        raise _no_pipe("it is closed")
    yield sys.stdin.buffer


def _no_pipe(why: str) -> UsageError:
    hint = "Pipe something into the command, or name a file"
    return UsageError(f"nothing can be read: {why}", path=STDIN, hint=hint)


def _copy(source: BinaryIO, target: BinaryIO, most: int) -> None:
    while most > 0 and (piece := source.read(min(_CHUNK, most))):
        target.write(piece)
        most -= len(piece)
