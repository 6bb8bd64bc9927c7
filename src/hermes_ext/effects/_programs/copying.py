"""Programs that make one path out of another: cp, mv, ln, install."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from hermes_ext.effects._options import Below
from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._words import Hole, Word, is_many


def cp(call: Call) -> None:
    """`cp`: sources are read, destinations written."""
    call.check_options()
    recursive = call.has("-a", "--archive", "-r", "-R", "--recursive")
    symbolic = call.has("-s", "--symbolic-link")
    replaces = call.has("--remove-destination")
    linked = call.has("-l", "--link") and not symbolic
    for source, target in _pairs(call):
        _copied(call, source, target, recursive=recursive)
        if replaces:
            call.delete(target, tree=recursive)
        if linked:
            call.write(source, tree=recursive)
        if symbolic:
            _linked(call, target, source)
        elif recursive or call.has("-d", "-P", "--no-dereference", "-l", "--link"):
            call.rec.taint(target, source)


def _copied(call: Call, source: Word, target: Word, *, recursive: bool) -> None:
    directory = call.rec.is_directory(source) if recursive else False
    if directory is False and not isinstance(source, Hole):
        call.read(source)
        call.write(target)
        return
    call.rec.search(source)
    if recursive:
        call.write_below(target)
        if directory:
            call.rec.made_directory(target)
    else:
        call.write(target)


def mv(call: Call) -> None:
    """`mv`: sources go away, destinations are written."""
    call.check_options()
    for source, target in _pairs(call):
        moved(call, source, target)


def moved(call: Call, source: Word, target: Word) -> None:
    """One path gets another name."""
    directory = call.rec.is_directory(source)
    call.delete(source, tree=directory is not False)
    # What is there is replaced, or the directory moves into it.
    call.write(target, tree=directory is not False)
    if directory:
        call.rec.made_directory(target)
    call.rec.taint(target, source)


def ln(call: Call) -> None:
    """`ln`, `link`: another name, or a link, for what is there."""
    call.check_options()
    symbolic = call.has("-s", "--symbolic")
    for target, name in _pairs(call, alone="."):
        if symbolic:
            _linked(call, name, target)
        else:
            # What is done to the new name is done to the file.
            call.write(target)
            call.write(name)
            call.rec.taint(name, target)


def _linked(call: Call, name: Word, target: Word) -> None:
    if isinstance(target, str) and call.has("-r", "--relative"):
        bases = call.rec.cwd
        target = os.path.join(bases[0], target) if len(bases) == 1 else Hole()
    call.rec.link(name, target, call.by)


def install(call: Call) -> None:
    """`install`: copies with a mode, and makes directories."""
    call.check_options()
    if call.has("-d", "--directory"):
        for word in call.operands:
            directories(call, word)
        return
    for source, target in _pairs(call):
        call.read(source)
        if call.has("-D"):
            directories(call, _folder_of(target))
        # It removes what is there first.
        call.write(target)
        call.delete(target)


def directories(call: Call, word: Word) -> None:
    """A directory and those above it, where they are not there."""
    if isinstance(word, Hole):
        call.directory(word)
        return
    parts = word.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        named = above.strip("/.") or (above and count == len(parts))
        if named and call.there(above) is not True:
            call.directory(above)


# -- where it goes --------------------------------------------------------------------------------


def _pairs(call: Call, alone: str = "") -> Iterator[tuple[Word, Word]]:
    """Each source with each path that it may get.

    alone: the directory for one operand without a destination.
    """
    sources, folder = list(call.operands), call.last("-t", "--target-directory")
    if folder is not None:
        pairs = [(each, _inside(folder, each)) for each in sources]
    elif len(sources) == 1 and alone and not is_many(sources[0]):
        pairs = [(sources[0], _inside(alone, sources[0]))]
    elif not sources:
        return
    else:
        destination = sources.pop()
        if is_many(destination):
            call.writes_unknown("writes to a place that is not known before it runs")
            return
        pairs = list(_to(call, sources, destination))
    if call.has("-b", "--backup", "-S", "--suffix"):
        for _, target in pairs:
            call.write_below(_folder_of(target))
    if call.has("--parents"):
        for source, target in list(pairs):
            place = _folder_of(target) if folder is None else folder
            call.write_below(place)
            if isinstance(source, str) and isinstance(place, str):
                call.write(os.path.join(place, source.lstrip("/")), tree=True)
    yield from pairs


def _to(call: Call, sources: Sequence[Word], destination: Word) -> Iterator[tuple[Word, Word]]:
    into = call.rec.is_directory(destination)
    several = len(sources) > 1 or any(map(is_many, sources))
    if call.has("-T", "--no-target-directory"):
        into, several = False, False
    elif call.has("-n", "--no-dereference", "-h") and call.name == "ln":
        into = None
    slash = isinstance(destination, str) and destination.endswith("/")
    for source in sources:
        if into is not False or several or slash:
            yield source, _inside(destination, source)
        if into is not True and not (several and len(sources) > 1):
            yield source, destination


def _inside(folder: Word, source: Word) -> Word:
    """The path that a source gets in a directory."""
    name = "" if isinstance(source, Hole) else os.path.basename(source.rstrip("/"))
    named = name not in ("", ".", "..")
    if isinstance(folder, Hole):
        return Hole(folder.prefix, folder.many, f"{folder.suffix}/{name}" if named else "")
    if isinstance(source, Hole):
        return Below(folder.rstrip("/") or "/")
    return os.path.join(folder, name) if named else folder


def _folder_of(target: Word) -> Word:
    if isinstance(target, Below):
        return target.prefix
    if isinstance(target, Hole):
        return target
    return os.path.dirname(target.rstrip("/")) or "."
