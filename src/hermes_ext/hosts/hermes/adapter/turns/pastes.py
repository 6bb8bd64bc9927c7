"""What a person pastes at Hermes's command line, which keeps it in a file of its own.

Long pastes are in `pastes/paste_*.txt` of the Hermes home. Where an input was blocked, or the paste
was rewritten, nothing else keeps the original; so the file is not to keep it either.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hermes_ext._files import replace_file
from hermes_ext._log import logger
from hermes_ext._regular import read_regular

_NAMES: Final = "paste_*.txt"


def withhold(typed: str, kept: str, note: str) -> None:
    """Put a note in the place of each paste that was typed and is not in what was kept of it.

    The file stays, for the line in the person's history names it.
    """
    for file, text in _pastes(len(typed.encode("utf-8", "surrogatepass"))):
        if text in typed and text not in kept:
            try:
                replace_file(file, note.encode(), durable=False)
            except OSError:
                logger.warning("a paste that was withheld is still in %s", file, exc_info=True)


def _pastes(largest: int) -> Iterator[tuple[Path, str]]:
    """The files of pastes that are not larger than what was typed, and their texts."""
    from hermes_constants import get_hermes_home

    for file in Path(get_hermes_home(), "pastes").glob(_NAMES):
        try:
            found = file.lstat()
            # Line ends become one character when Hermes reads the file.
            if stat.S_ISREG(found.st_mode) and found.st_size <= 2 * largest:
                text = read_regular(file).decode("utf-8").replace("\r\n", "\n").strip()
                if text:
                    yield file, text
        except (OSError, UnicodeDecodeError):
            continue
