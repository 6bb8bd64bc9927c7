"""What a question shows only the two ends of, in a file for as long as the question is open."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hermes_ext._files import replace_file
from hermes_ext._log import logger
from hermes_ext.turns.approval import ApprovalRequest

# The guard protects what begins with this, in the home: an agent changes no text that is asked of.
_FOLDER: Final = ("cache", "hermes-ext-questions")
_KEPT_SECONDS: Final = 24 * 3600  # of what a killed process has left


@contextmanager
def kept_in_full(request: ApprovalRequest) -> Iterator[Path | None]:
    """While a question is asked: the file with all of the call, which only the user can read.

    Gives None where the question shows everything, or where no file can be written.
    """
    place = _written(request) if request.is_cut else None
    try:
        yield place
    finally:
        if place is not None:
            with contextlib.suppress(OSError):
                place.unlink()


def _written(request: ApprovalRequest) -> Path | None:
    from hermes_constants import get_hermes_home

    folder = Path(get_hermes_home()).joinpath(*_FOLDER)
    place = folder / f"{secrets.token_hex(4)}.txt"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(folder)
        data = request.full_text.encode("utf-8", "backslashreplace")
        replace_file(place, data, mode=0o600, durable=False)
    except OSError:
        logger.warning("cannot write what a question does not show", exc_info=True)
        return None
    return place


def _sweep(folder: Path) -> None:
    for left in folder.glob("*.txt"):
        with contextlib.suppress(OSError):
            if time.time() - left.lstat().st_mtime > _KEPT_SECONDS:
                left.unlink()
