"""`git`: what its subcommands write, in the work tree and in the repository."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from typing import Final

from hermes_ext.effects._programs.archives import unpacked
from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._programs.copying import directories, mv
from hermes_ext.effects._programs.declared import run_declared, run_subcommand
from hermes_ext.effects._programs.repository import Repository, harmless_setting, repositories
from hermes_ext.effects._words import Hole, Word, beginning, is_many

# Those that need no repository, or make one.
_WITHOUT: Final = frozenset({"init", "clone", "version", "help"})
_PLAIN_PATH: Final = re.compile(r"[^:*?\[\\][^*?\[\\]*\Z")


_SEARCHES: Final = frozenset({"grep", "ls-files", "ls-tree"})


def git(call: Call) -> None:
    """`git SUBCOMMAND`."""
    call.check_options()
    for setting in call.values("-c"):
        text = beginning(setting)
        key, equals, value = text.partition("=")
        known = None if isinstance(setting, Hole) or not equals else value
        if not equals or not harmless_setting(key, known):
            call.unknown(f"-c {key} may make it run something", setting)
    with ExitStack() as stack:
        for folder in call.values("-C"):
            stack.enter_context(call.at(folder))
        if call.operands and call.operands[0] not in _WITHOUT:
            _check(call, writes=False)
            # Only these name files of the tree, or show what is in them, without being told which.
            look = call.rec.search if call.operands[0] in _SEARCHES else call.rec.read
            for each in repositories(call.rec) or ():
                look(each.root or each.folder)
        run_subcommand(call)


def _check(call: Call, *, writes: bool) -> list[Repository]:
    """The repositories at hand, whose settings must not make git run something."""
    found = repositories(call.rec)
    if found is None:
        call.unknown("works in a repository that cannot be looked at")
        return []
    for each in found:
        if why := each.runs(call.rec, writes=writes):
            call.unknown(f"may run other programs: {why}")
    return found


def internal(call: Call) -> None:
    """Commands that change the repository, and no file of the work tree."""
    call.check_options()
    _write_repository(call)


def _write_repository(call: Call) -> list[Repository]:
    found = _check(call, writes=True)
    for each in found:
        for folder in each.folders():
            _change_below(call, folder)
    if not found:
        _change_below(call, ".git")
    return found


def tree(call: Call) -> None:
    """Commands that may change any file of the work tree."""
    call.check_options()
    _write_everything(call)


def _write_everything(call: Call) -> None:
    for each in _write_repository(call):
        root = each.root or "."
        _change_below(call, root)
        call.rec.taint(root)
    if not repositories(call.rec):
        _change_below(call, ".")


def _change_below(call: Call, folder: Word) -> None:
    # Git does not write through links.
    call.rec.write(folder, call.by, tree=True)
    call.rec.made_directory(folder)


def _paths(call: Call, paths: list[Word], *, deletes: bool = False) -> None:
    """Commands that change the files which their operands name."""
    _write_repository(call)
    for path in paths:
        if isinstance(path, Hole) or not _PLAIN_PATH.match(path):
            _write_everything(call)
            return
    for path in paths:
        _change_below(call, path)
        if deletes:
            call.rec.delete(path, call.by, tree=True)
        call.rec.taint(path)
        # Directories go with the last file in them.
        above = os.path.dirname(str(path).rstrip("/")) if deletes else ""
        while above.strip("/."):
            call.delete(above)
            above = os.path.dirname(above)


def checkout(call: Call) -> None:
    call.check_options()
    behind = _behind_dashes(call)
    made = call.has("-b", "-B", "-c", "-C", "--create", "--force-create")
    if made and not call.operands and not call.has("-f", "--force", "--discard-changes"):
        _write_repository(call)
    elif behind and not call.has("-p", "--patch", "--pathspec-from-file"):
        _paths(call, behind)
    else:
        _write_everything(call)


def _behind_dashes(call: Call) -> list[Word]:
    words = list(call.words)
    return words[words.index("--") + 1 :] if "--" in words else []


def restore(call: Call) -> None:
    call.check_options()
    if call.has("-S", "--staged") and not call.has("-W", "--worktree"):
        _write_repository(call)
    elif call.has("--pathspec-from-file", "-p", "--patch") or not call.operands:
        _write_everything(call)
    else:
        _paths(call, call.operands)


def rm(call: Call) -> None:
    call.check_options()
    if call.has("--cached"):
        _write_repository(call)
    elif call.has("-n", "--dry-run"):
        return
    elif call.has("--pathspec-from-file"):
        _write_everything(call)
    else:
        _paths(call, call.operands, deletes=True)


def mv_(call: Call) -> None:
    if call.has("-n", "--dry-run"):
        return
    _write_repository(call)
    mv(call)


def clean(call: Call) -> None:
    call.check_options()
    if not call.has("-n", "--dry-run"):
        _check(call, writes=False)
        for path in call.operands or ["."]:
            plain = isinstance(path, str) and _PLAIN_PATH.match(path)
            call.rec.delete(path if plain else ".", call.by, tree=True)


def reset(call: Call) -> None:
    call.check_options()
    if call.has("--hard", "--merge", "--keep", "--recurse-submodules"):
        _write_everything(call)
    else:
        _write_repository(call)


def apply(call: Call) -> None:
    call.check_options()
    for word in call.operands:
        call.read(word)
    if call.has("--check", "--stat", "--numstat", "--summary") and not call.has("--apply"):
        return
    if call.has("--cached") and not call.has("--index"):
        _write_repository(call)
        return
    # Everything below the root of the work tree; which of its directories is worth telling, too.
    roots = [each.root for each in repositories(call.rec) or () if isinstance(each.root, str)]
    for word in call.values("--directory"):
        if isinstance(word, str):
            for root in roots or ["."]:
                call.rec.write(os.path.join(root, word), call.by, tree=True)
    _write_everything(call)


def stash(call: Call) -> None:
    call.check_options()
    if call.operands:
        run_subcommand(call)
    else:
        _write_everything(call)


_LISTING: Final = (
    "-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at",
    "--show-current",
)  # fmt: skip
# `-a` lists branches, and makes a tag.
_CHANGING: Final = (
    "-d", "--delete", "-D", "-m", "--move", "-M", "-c", "--copy", "-C", "-f", "--force", "-t",
    "--track", "-u", "--set-upstream-to", "--unset-upstream", "--edit-description", "-s", "--sign",
    "--annotate", "-F", "--file", "--message", "--local-user", "-e", "--edit",
)  # fmt: skip
_LISTING_TAGS: Final = ("-n", "-v", "--verify")


def branch(call: Call) -> None:
    """`branch`, `tag`: without a name they list."""
    call.check_options()
    listing = call.has(*_LISTING)
    listing = listing or (call.by.endswith(" tag") and call.has(*_LISTING_TAGS))
    if (call.operands and not listing) or call.has(*_CHANGING) or call.found.unclear:
        _write_repository(call)


_CONFIG_READS: Final = (
    "-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color",
    "--get-colorbool",
)  # fmt: skip


def config(call: Call) -> None:
    call.check_options()
    words = list(call.operands)
    verb = words.pop(0) if words and words[0] in _CONFIG_VERBS else None
    reads = verb in ("list", "get") or (verb is None and call.has(*_CONFIG_READS))
    if reads or (
        verb is None
        and len(words) <= 1
        and not call.has(*_CONFIG_UNSETS, "-e", "--edit")
        and not any(map(is_many, call.words))
    ):
        return
    key = words[0] if words else ""
    value = words[1] if len(words) > 1 and isinstance(words[1], str) else None
    edited = verb in ("edit", "rename-section", "remove-section") or call.has(
        "-e", "--edit", "--rename-section"
    )
    if isinstance(key, Hole) or edited or not (key and harmless_setting(key, value)):
        unset = verb == "unset" or call.has(*_CONFIG_UNSETS)
        if not unset:
            call.unknown("sets what may make git run something", *words)
    _write_config(call)


_CONFIG_UNSETS: Final = ("--unset", "--unset-all", "--remove-section")


_CONFIG_VERBS: Final = frozenset(
    {"list", "get", "set", "unset", "rename-section", "remove-section", "edit"}
)


def _write_config(call: Call) -> None:
    files = call.values("-f", "--file")
    for file in files:
        call.write(file)
    if call.has("--global"):
        for home in call.rec.machine.homes:
            call.write(f"{home}/.gitconfig")
            call.write(f"{home}/.config/git/config")
    elif call.has("--system"):
        call.unknown("changes the settings of the machine")
    elif not files:
        for each in repositories(call.rec) or ():
            call.rec.write(f"{each.common}/config", call.by)
            call.rec.write(f"{each.folder}/config.worktree", call.by)
        if not repositories(call.rec):
            call.unknown("changes settings that cannot be looked for")


def init(call: Call) -> None:
    call.check_options()
    folder = call.operands[0] if call.operands else "."
    if isinstance(folder, Hole):
        call.write(folder)
        return
    if call.operands:
        directories(call, folder)
    place = folder if call.has("--bare") else f"{folder.rstrip('/')}/.git"
    call.rec.write(place, call.by, tree=True)
    call.rec.made_directory(place)


def clone(call: Call) -> None:
    call.check_options()
    if not call.operands or any(is_many(each) for each in call.operands):
        call.unknown("copies a repository that is not known before it runs")
        return
    source = call.operands[0]
    if isinstance(source, str) and re.match(r"[\w-]+::", source):
        call.unknown("runs a program that fetches", source)
    target: Word
    if len(call.operands) > 1:
        target = call.operands[1]
    elif isinstance(source, Hole):
        target = "."
    else:
        name = re.sub(r"(?:/?\.git)?/*\Z", "", source.rstrip("/"))
        target = re.split(r"[/:]", name)[-1] or "."
        if target in (".", ".."):
            target = "."
        if call.has("--bare", "--mirror"):
            call.write(f"{target}.git", tree=True)
    if isinstance(target, str) and target != ".":
        directories(call, target)
    unpacked(call, target)


def format_patch(call: Call) -> None:
    run_declared(call)
    if not call.has("--stdout", "-o", "--output-directory", "--output"):
        call.write_below(".")


def worktree(call: Call) -> None:
    call.check_options()
    _write_repository(call)
    place = 1 if call.by.endswith(" move") else 0
    paths = call.operands if place else call.operands[:1]
    for path in paths:
        call.write(path, tree=True)
        call.rec.taint(path)


def push(call: Call) -> None:
    call.check_options()
    found = _write_repository(call)
    named = call.operands[0] if call.operands else "origin"
    near = isinstance(named, Hole) or not (
        re.fullmatch(r"[\w-]+(?:\.\w+)?", named)
        or re.match(r"(?:https?|ssh|git)://|[\w.-]+@[\w.-]+:(?!:)", named)
    )
    if near or any(each.pushes_to_disk() for each in found):
        call.unknown("may write a repository on this machine")
