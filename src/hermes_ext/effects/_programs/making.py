"""Programs that make or remove files by rules of their own."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._programs.copying import directories
from hermes_ext.effects._words import Hole, Word, beginning, is_many


def mkdir(call: Call) -> None:
    """`mkdir`."""
    call.check_options()
    for word in call.operands:
        if call.has("-p", "--parents"):
            directories(call, word)
        else:
            call.directory(word)


def rmdir(call: Call) -> None:
    """`rmdir`: with `-p` those above too."""
    call.check_options()
    for word in call.operands:
        call.delete(word)
        above = os.path.dirname(word.rstrip("/")) if isinstance(word, str) else ""
        while call.has("-p", "--parents") and above.strip("/."):
            call.delete(above)
            above = os.path.dirname(above)


def shred(call: Call) -> None:
    """`shred`: overwrites, and with `-u` removes."""
    call.check_options()
    for word in call.operands:
        call.write(word)
        if call.has("-u", "--remove"):
            call.delete(word)


_DD_LISTED: Final = "if of bs ibs obs cbs count skip seek iseek oseek status conv iflag oflag --"
_DD: Final = frozenset(_DD_LISTED.split())


def dd(call: Call) -> None:
    """`dd`: `if=` is read, `of=` is written."""
    for word in call.words:
        text = beginning(word)
        key, equals, value = text.partition("=")
        if isinstance(word, Hole) and not equals:
            call.writes_unknown("is given operands that are not known before it runs", word)
            continue
        if key not in _DD:
            call.unknown(f"{key} is not known", word)
        operand: Word = Hole(value) if isinstance(word, Hole) else value
        if key == "if":
            call.read(operand)
        elif key == "of":
            call.write(operand)
        if is_many(word):
            call.writes_unknown("is given operands that are not known before it runs", word)


def split(call: Call) -> None:
    """`split INPUT PREFIX`."""
    call.check_options()
    for word in call.operands[:1]:
        call.read(word)
    if not call.has("--filter"):
        _beside(call, call.operands[1] if len(call.operands) > 1 else "x")


def csplit(call: Call) -> None:
    """`csplit INPUT PATTERN…`."""
    call.check_options()
    for word in call.operands[:1]:
        call.read(word)
    _beside(call, call.last("-f", "--prefix") or "xx")


def _beside(call: Call, prefix: Word) -> None:
    """Files are made whose names begin so."""
    if isinstance(prefix, Hole):
        call.write(prefix)
    else:
        call.write_below(os.path.dirname(prefix) or ".")


def mktemp(call: Call) -> None:
    """`mktemp`: makes a file or directory with a name of its own."""
    call.check_options()
    if call.has("-u", "--dry-run"):
        return
    folders: list[Word] = call.values("-p", "--tmpdir")
    template = call.operands[0] if call.operands else None
    if not folders and (template is None or call.has("-t", "--tmpdir")):
        folders.append(_temporary(call))
    elif not folders:
        folders.append((isinstance(template, str) and os.path.dirname(template)) or ".")
    if isinstance(template, Hole) or (isinstance(template, str) and ".." in template):
        call.unknown("makes a file whose name is not known before it runs", template)
    for folder in folders:
        # It refuses names that are there, so links in it do not matter.
        call.rec.write(folder, call.by, tree=True)
    if call.has("-t") and isinstance(template, str):
        call.rec.write(
            os.path.join(_temporary(call), os.path.dirname(template)), call.by, tree=True
        )


def _temporary(call: Call) -> str:
    with suppress(KeyError):
        return call.rec.variables["TMPDIR"]
    return "/tmp"
