"""Which of git's commands cannot be undone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from hermes_ext.effects import Command

from .words import Words, has, without_values

UNKNOWN = "unknown"

# Before git's own subcommand, these take a word.
OWN_OPTIONS_WITH_VALUE = frozenset({
    "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix",
    "--config-env", "--attr-source",
})  # fmt: skip

# Settings that make git run or push something else than its words say.
SETTINGS = re.compile(
    r"(?:-c|--config-env=)?(?:alias|remote|push|url|include|includeif)\.", re.IGNORECASE
)

_MEANING = re.compile(r"alias\.|remote\..*\.(?:push|mirror)\Z", re.IGNORECASE)
_VARIABLES = re.compile(r"GIT_CONFIG(?:_(?:COUNT|KEY|VALUE|PARAMETERS|GLOBAL|SYSTEM)|\Z)")
_PLACES = ("-C", "--git-dir", "--work-tree")

# The subcommand, and what makes it one that cannot be undone: options (also shortened or in a
# cluster), words, `path` for a word that names a file, or `*` for whatever it is given.
SUBCOMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "push": ("force-push", ("-f", "-d", "--force", "--force-with-lease", "--mirror", "--delete",
                            "--prune", "+…", ":…")),
    "send-pack": ("force-push", ("-f", "--force", "--mirror", "+…", ":…")),
    "pull": ("history", ("-f", "--force")),
    "remote": ("force-push", ("--mirror",)),
    "reset": ("history", ("--hard", "--merge", "--keep")),
    "rebase": ("history", ("*",)),
    "commit": ("history", ("--amend",)),
    "filter-branch": ("history", ("*",)),
    "filter-repo": ("history", ("*",)),
    "reflog": ("history", ("expire", "delete")),
    "branch": ("history", ("-D", "-d", "-M", "-C", "-f", "--delete", "--force")),
    "tag": ("history", ("-d", "-f", "--delete", "--force")),
    "stash": ("history", ("drop", "clear")),
    "checkout": ("history", ("-f", "-B", "-p", "--force", "--patch", "--ours", "--theirs",
                             "--pathspec-from-file", "--", "path")),
    "switch": ("history", ("-f", "-C", "--force", "--force-create", "--discard-changes")),
    "checkout-index": ("history", ("-f", "--force")),
    "read-tree": ("history", ("--reset",)),
    "restore": ("history", ("*",)),
    "clean": ("recursive-delete", ("-f", "--force")),
    "gc": ("history", ("--prune",)),
    "prune": ("history", ("*",)),
    "update-ref": ("history", ("*",)),
    "worktree": ("recursive-delete", ("remove",)),
    "replace": ("history", ("*",)),
}  # fmt: skip

# The short options of a subcommand that take a word.
TAKES_VALUE = {
    "commit": "mFCct", "tag": "mFu", "push": "o", "pull": "jsX", "stash": "m", "checkout": "b",
    "switch": "c", "branch": "u",
}  # fmt: skip


def kind_of_git(args: Words, command: Command) -> str | None:
    """As `kind_of`; args: what stands behind `git`."""
    options, words = _of_git_itself(args)
    if None in options or None in words[:1] or any(map(SETTINGS.match, filter(None, options))):
        return UNKNOWN
    if sets_settings(command.variables) or (words[:1] == ("config",) and _gives_alias(words)):
        return UNKNOWN
    subcommand = words[0] if words else None
    kind, signs = SUBCOMMANDS.get(subcommand or "", ("", ()))
    rest = without_values(words[1:], TAKES_VALUE.get(subcommand or "", ""))
    if _is_harmless(subcommand, rest):
        return None
    # What is not known may be the option that decides.
    if None in rest or any(_is_given(sign, rest, command.cwd) for sign in signs):
        return kind or None
    return None


def _of_git_itself(args: Words) -> tuple[Words, Words]:
    """The options before the subcommand, and the words from it on."""
    at = 0
    while at < len(args):
        word = args[at]
        if word is not None and not word.startswith("-"):
            break
        at += 2 if word in OWN_OPTIONS_WITH_VALUE else 1
    # Which directory it is may be open.
    options = (
        each for place, each in enumerate(args[:at]) if not place or args[place - 1] not in _PLACES
    )
    return tuple(options), tuple(args[at:])


def sets_settings(variables: Iterable[str]) -> bool:
    """Whether one of these variables gives git settings."""
    return any(map(_VARIABLES.match, variables))


def _gives_alias(words: Words) -> bool:
    given = [at for at, each in enumerate(words) if each is not None and _MEANING.match(each)]
    return any(at + 1 < len(words) for at in given) and not has(words, "--get", "--unset")


def _is_harmless(subcommand: str | None, words: Words) -> bool:
    if subcommand == "restore":
        return has(words, "-S", "--staged") and not has(words, "-W", "--worktree")
    return subcommand == "rebase" and has(words, "--abort", "--quit", "--show-current-patch")


def _is_given(sign: str, words: Words, cwd: Path | None) -> bool:
    if sign == "*":
        return True
    if sign == "path":
        return any(each is not None and _names_files(each, cwd) for each in words)
    if sign.endswith("…"):
        return any(each is not None and each.startswith(sign[0]) for each in words)
    return has(words, sign) if sign.startswith("-") and sign != "--" else sign in words


def _names_files(word: str, cwd: Path | None) -> bool:
    if word.startswith((":", ".")) or word.endswith("/") or any(each in word for each in "*?["):
        return True
    return not word.startswith("-") and cwd is not None and os.path.lexists(cwd / word)
