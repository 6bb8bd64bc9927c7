"""Programs that pack and unpack: tar, zip, gzip and their kin."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from hermes_ext.effects._options import is_unclear
from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole, Word, beginning

_PACKERS: Final = frozenset(
    {"gzip", "bzip2", "xz", "zstd", "pigz", "lz4", "lzma", "lzip", "pbzip2", "gzip -9", "xz -9"}
)
_PACKS: Final = (
    "-c", "--create", "-r", "--append", "-u", "--update", "-A", "--catenate", "--concatenate",
    "--delete",
)  # fmt: skip
_OLD_VALUES: Final = frozenset("fbCITXKNVgHFL")
_CHECKPOINTS: Final = re.compile(r"(?:dot|\.|echo(?:=.*)?|ttyout(?:=.*)?|bell|sleep=\d+|totals)\Z")


def unpacked(call: Call, folder: Word) -> None:
    """Files, and maybe links, of any name are put into a directory."""
    call.write_below(folder)
    call.rec.taint(folder)


def tar(call: Call) -> None:
    """`tar`, in the old style and the new."""
    words = _modern(call.words)
    inner = call.again(words)
    inner.check_options()
    _check_tar(inner)
    archive = inner.last("-f", "--file")
    if inner.has("-x", "--extract", "--get"):
        inner.by = f"{call.by} -x"
        _extract(inner)
        if archive is not None:
            inner.read(archive)
    elif inner.has(*_PACKS):
        _pack(inner, archive)
    elif inner.has("-t", "--list", "-d", "--diff", "--compare"):
        if archive is not None:
            inner.read(archive)
    elif words and not inner.has("--version", "--help", "--show-defaults"):
        inner.unknown("is not told what to do in a way that is known")


def _modern(words: Sequence[Word]) -> list[Word]:
    """`xzf a` as `-x -z -f a`."""
    if not words or isinstance(words[0], Hole) or words[0].startswith("-"):
        return list(words)
    rest = list(words[1:])
    modern: list[Word] = []
    for letter in words[0]:
        modern.append(f"-{letter}")
        if letter in _OLD_VALUES and rest:
            modern.append(rest.pop(0))
    return modern + rest


def _check_tar(call: Call) -> None:
    for program in call.values("-I", "--use-compress-program"):
        if program not in _PACKERS:
            call.unknown("runs a program that packs", program)
    for action in call.values("--checkpoint-action"):
        if isinstance(action, Hole) or not _CHECKPOINTS.match(action):
            call.unknown("runs something at checkpoints", action)
    archive = call.last("-f", "--file")
    if isinstance(archive, str) and ":" in archive and not call.has("--force-local"):
        call.unknown("may reach the archive through another program", archive)
    if call.has("-T", "--files-from") and not call.has("--null", "--verbatim-files-from"):
        call.unknown("takes options from a file")


def _extract(call: Call) -> None:
    if call.has("-O", "--to-stdout", "--to-command"):
        return
    if call.has("-P", "--absolute-names", "--transform", "--xform"):
        call.writes_unknown("unpacks to paths that are not known before it runs")
    folders = call.values("-C", "--directory")
    if len(folders) > 1:
        call.unknown("unpacks into several directories")
    for folder in folders:
        unpacked(call, folder)
    if not folders or _begins_elsewhere(call):
        unpacked(call, ".")
    for folder in call.values("--one-top-level"):
        unpacked(call, folder)


def _begins_elsewhere(call: Call) -> bool:
    """Whether a name stands before `-C`, which counts for those behind it only."""
    if not call.operands:
        return False
    first = next((at for at, each in enumerate(call.words) if each is call.operands[0]), 0)
    return not call.entry.table.read(call.words[:first]).has("-C", "--directory")


def _pack(call: Call, archive: Word | None) -> None:
    folders = call.values("-C", "--directory")
    if isinstance(archive, str) and archive == "-":
        archive = None
    if archive is not None:
        call.write(archive)
    elif not call.has("-c", "--create"):
        call.writes_unknown("changes an archive that is not named")
    if call.has("--remove-files") and folders:
        call.writes_unknown("removes what it packed")
    for word in call.operands:
        if call.has("--remove-files"):
            call.delete(word, tree=True)
        elif not folders:
            call.do("search", word)
    for folder in folders:
        call.do("search", folder)


# -- zip ------------------------------------------------------------------------------------------


def unzip(call: Call) -> None:
    """`unzip ARCHIVE NAME…`."""
    call.check_options()
    for word in call.operands[:1]:
        call.read(word)
    if call.has("-l", "-t", "-p", "-z", "-Z", "-c") or not call.operands:
        return
    if call.has("-v") and not call.has("-o", "-n", "-u", "-f", "-d"):
        return
    unpacked(call, call.last("-d") or ".")


def zip_(call: Call) -> None:
    """`zip ARCHIVE FILE…`."""
    call.check_options()
    pairs = re.compile(
        r"-\w*(?:l[afl]|s[bcdfopuUv]|TT|F[FI]|tt|UN|w[swl]|fd|fz|hh|MM|pp|d[bcdgsuv])"
    )
    if any(isinstance(each, str) and pairs.match(each) for each in call.words):
        call.unknown("has options that are not known")
    named = [each for each in call.operands[:1] if each != "-"]
    for archive in (*named, *call.values("--out", "-O")):
        call.write(archive)
        if isinstance(archive, str) and "." not in os.path.basename(archive):
            call.write(f"{archive}.zip")
    for word in call.operands[1:]:
        if call.has("-m", "--move"):
            call.delete(word, tree=True)
        else:
            call.do("search", word)
    if call.has("-m", "--move") and call.has("-@"):
        call.writes_unknown("removes files that its input names")


def sevenzip(call: Call) -> None:
    """`7z COMMAND ARCHIVE NAME…`."""
    words = [each for each in call.words if isinstance(each, str)]
    if len(words) != len(call.words):
        call.unknown("is given words that are not known before it runs")
        return
    switches = [each for each in words if each.startswith("-")]
    known = re.compile(r"-(?:y|r-?|bd|bb\d|so|o.+|p.*|ao[asut]|m[xmt].*|t[\w*]+|[xi]r?!.*|--?)\Z")
    for switch in switches:
        if not known.match(switch):
            call.unknown(f"{switch} is not known")
    operands = [each for each in words if not each.startswith("-")]
    command = operands[0] if operands else "i"
    if command in ("l", "t", "i", "b", "h"):
        return
    if command in ("x", "e"):
        folders = [each[2:] for each in switches if each.startswith("-o")]
        if "-so" not in switches:
            unpacked(call, folders[-1] if folders else ".")
    elif command in ("a", "u", "d") and len(operands) > 1:
        call.write(operands[1])
        if "." not in os.path.basename(operands[1]):
            call.write(f"{operands[1]}.7z")
    else:
        call.unknown("does what is not known")


def ar(call: Call) -> None:
    """`ar KEYS ARCHIVE FILE…`."""
    words = [each for each in call.words if each != "--"]
    options = any(re.match(r"--|@", beginning(each)) for each in words)  # `@`: of a file
    unclear = any(isinstance(each, Hole) and is_unclear(each) for each in words)
    if len(words) < 2 or options or unclear or isinstance(words[0], Hole):
        call.unknown("is not followed here")
        return
    keys = words[0].lstrip("-")
    if keys[:1] in ("t", "p"):
        call.read(words[1])
    elif re.match(r"[rqds][cuvsSD]*\Z", keys):
        call.write(words[1])
    else:
        call.unknown("is not followed here")


# -- files that are packed one by one -------------------------------------------------------------

# Of the others: `.gz`.
_ENDINGS: Final = {"bzip2": ".bz2", "xz": ".xz", "lzma": ".lzma", "zstd": ".zst"}
_PACKED_TARS: Final = (".tgz", ".taz", ".tbz", ".tbz2", ".txz", ".tlz", ".tzst")
_KNOWN: Final = (".gz", ".z", ".Z", "-gz", "-z", "_z", ".bz2", ".bz", ".xz", ".lzma", ".zst")


def gzip(call: Call) -> None:
    """`gzip`, `gunzip`, `xz` …: a file is replaced by another one."""
    call.check_options()
    unpacks = call.name.startswith("un") or call.name in ("gunzip", "bunzip2")
    unpacks = unpacks or call.has("-d", "--decompress", "--uncompress")
    others = (("-z", "--compress"), ("-l", "--list"), ("-t", "--test"))
    if unpacks + sum(call.has(*names) for names in others) > 1:
        call.unknown("is told to do several things, of which the last counts")
    if call.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test"):
        for word in call.operands:
            call.read(word)
        return
    keeps = call.has("-k", "--keep") or (
        call.name in ("zstd", "unzstd", "zstdmt") and not call.has("--rm")
    )
    suffix = call.last("-S", "--suffix")
    for word in call.operands:
        if word == "-":
            continue
        if isinstance(word, Hole) or isinstance(suffix, Hole):
            call.write(Hole())
        elif call.has("-r", "--recursive") or call.rec.is_directory(word):
            call.change_below(word)
        elif unpacks:
            _unpack(call, word, suffix, keeps)
        else:
            call.read(word)
            call.write(word + (suffix or _ENDINGS.get(call.name, ".gz")))
            if not keeps:
                call.delete(word)


def _unpack(call: Call, word: str, suffix: str | None, keeps: bool) -> None:
    endings = (*_KNOWN, *_PACKED_TARS, *((suffix,) if suffix else ()))
    sources = [word, *(word + each for each in endings if len(each) < 5)]
    for source in sources:
        if source != word and call.there(source) is False:
            continue
        ending = next((each for each in endings if source.endswith(each)), "")
        call.read(source)
        if ending:
            call.write(source.removesuffix(ending) + (".tar" if ending in _PACKED_TARS else ""))
        else:
            call.write(f"{source}.out")
        if not keeps:
            call.delete(source)
        if call.has("-N", "--name"):
            call.write_below(os.path.dirname(source) or ".")
