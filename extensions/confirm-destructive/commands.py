"""Commands that destroy something, by their words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_ext.effects import Command, Effects

Words = Sequence[str | None]

UNKNOWN = "unknown"

# Before git's own subcommand, these take a word.
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path",
                         "--super-prefix", "--config-env", "--attr-source"})  # fmt: skip

# Settings that make git run or push something else than its words say.
_GIT_SETTINGS = re.compile(
    r"(?:-c|--config-env=)?(?:alias|remote|push|url|include|includeif)\.", re.IGNORECASE
)

# The subcommand, and what makes it one that cannot be undone: options (also shortened or in a
# cluster), words, `path` for a word that names a file, or `*` for whatever it is given.
_GIT: dict[str, tuple[str, tuple[str, ...]]] = {
    "push": ("force-push", ("-f", "-d", "--force", "--force-with-lease", "--mirror", "--delete",
                            "--prune", "+…", ":…")),
    "send-pack": ("force-push", ("-f", "--force", "--mirror", "+…", ":…")),
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
_GIT_TAKE_VALUES = {"commit": "mFCct", "tag": "mFu", "push": "o", "stash": "m", "checkout": "b",
                    "switch": "c", "branch": "u"}  # fmt: skip

# Programs, and the words in this order, anywhere among the others, that make them one of these.
_OTHERS: tuple[tuple[str, str, str], ...] = (
    ("database", r"dropdb|dropuser", ""),
    ("database", r"mysqladmin", "drop"),
    ("database", r"redis-cli|valkey-cli", "flushall"),
    ("database", r"redis-cli|valkey-cli", "flushdb"),
    ("database", r"alembic|flask", "downgrade"),
    ("database", r"rails|rake|bundle", r"db:(?:drop|reset|purge)\S*"),
    ("database", r"manage\.py|django-admin", "(?:flush|reset_db)"),
    ("database", r"python[\d.]*", r"(?:\S*manage\.py|django) (?:flush|reset_db)"),
    ("database", r"npx|prisma|pnpm|yarn", "migrate reset"),
    ("infrastructure", r"terraform|tofu|pulumi|vagrant|cdk|terragrunt", "destroy"),
    ("infrastructure", r"terraform|tofu|terragrunt", "-destroy"),
    ("infrastructure", r"terraform|tofu|terragrunt", "state rm"),
    ("infrastructure", r"kubectl|oc", "delete"),
    ("infrastructure", r"kubectl|oc", "drain"),
    ("infrastructure", r"helm", "(?:uninstall|delete)"),
    ("infrastructure", r"docker|podman", "prune"),
    ("infrastructure", r"docker|podman", "volume rm"),
    ("infrastructure", r"docker|podman|docker-compose", "down (?:-v|--volumes)"),
    ("infrastructure", r"docker|podman|docker-compose", r"rm (?:-\w*v\w*|--volumes)"),
    ("infrastructure", r"aws", "rm --recursive"),
    ("infrastructure", r"aws", r"(?:rb|delete-\S+|terminate-\S+)"),
    ("infrastructure", r"gcloud|az|doctl|heroku|fly|flyctl", r"(?:delete|destroy|\S+:destroy)"),
    ("infrastructure", r"gh", "(?:repo|release|secret) delete"),
    ("infrastructure", r"npm|pnpm|yarn", "unpublish"),
    ("infrastructure", r"mkfs\S*|wipefs|fdisk|parted|sgdisk|blkdiscard|shred", "/dev/.*"),
    ("infrastructure", r"dd", "of=/dev/.*"),
    ("recursive-delete", r"rsync", r"--del(?:ete\S*)?"),
)

_CLIENTS = re.compile(
    r"(?:psql|mysql|mariadb|sqlite3?|duckdb|sqlcmd|clickhouse(?:-client)?|cqlsh|mongo|mongosh"
    r"|redis-cli|valkey-cli|bq|snowsql|usql|litecli|pgcli|mycli)\Z"
)


@dataclass(frozen=True)
class _Other:
    kind: str
    program: re.Pattern[str]
    words: tuple[re.Pattern[str], ...]


_COMPILED = tuple(
    _Other(
        kind,
        re.compile(rf"(?:{program})\Z"),
        tuple(re.compile(rf"(?:{word})\Z", re.IGNORECASE) for word in words.split(" ") if word),
    )
    for kind, program, words in _OTHERS
)


_PROGRAMS = re.compile(
    rf"(?:git|rm|find|git-\S+|{'|'.join(other[1] for other in _OTHERS)})(?:\.exe)?\Z", re.IGNORECASE
)
_WORD = re.compile(r"""[^\s'"`;&|(){}\[\]<>=,]+""")
_BEFORE_COMMANDS = frozenset({"sudo", "exec", "env", "nohup", "time", "then", "do", "else", "&&"})
_MOST_WORDS = 40  # of one command
_DELETES_TREES = re.compile(
    r"\b(?:rmtree|remove_tree|rm_rf?|remove_entry\w*|rimraf|rmSync|removeSync|emptyDirSync)\b"
    r"|\bdelete_(?:dir|folder)\w*|\brecursive\s*:\s*true"
)


def kind_of(command: Command, *, seen: bool = True) -> str | None:
    """Which kind of destruction a command is; None if it is none that is known here.

    `UNKNOWN` where the word that decides is not known. seen: whether what it deletes is among the
    changes of the call.
    """
    name, args = command.name.casefold().removesuffix(".exe"), command.args
    if not name:
        return UNKNOWN
    if name.startswith("git-"):
        name, args = "git", (name[4:], *args)
    if name == "git":
        return _git(args, command)
    if name in ("rm", "find") and _deletes(name, args, seen=seen, cwd=command.cwd):
        return "recursive-delete"
    for other in _COMPILED:
        if other.program.match(name) and _in_order(other.words, args):
            return other.kind
    return None


def hidden(effects: Effects, more: Sequence[str]) -> Iterator[Command]:
    """Commands among the words of what is not understood: `ssh host rm -rf x`, code of a language.

    more: programs to look for, besides those that are known here.
    """
    for each in effects.commands:
        if any(arg in effects.texts for arg in each.args):
            yield from _among(each.args, range(len(each.args)), more)
    yield from _among(effects.texts, range(len(effects.texts)), more)
    for text in effects.texts:
        found = list(_WORD.finditer(text))
        words = [each[0] for each in found]
        # In prose a program's name stands behind other words; in code it begins something.
        begin = [
            place
            for place, each in enumerate(found)
            if not place
            or words[place - 1] in _BEFORE_COMMANDS
            or text[found[place - 1].end() : each.start()].strip(" \t")
        ]
        yield from _among(words, begin, more)


def _among(words: Words, places: Iterable[int], more: Sequence[str]) -> Iterator[Command]:
    for place in places:
        name = (words[place] or "").rpartition("/")[2]
        if name and (_PROGRAMS.match(name) or name in more):
            args = tuple(words[place + 1 : place + _MOST_WORDS])
            yield Command(name, args, text=" ".join(each or "…" for each in (name, *args[:8])))


def deletes_trees(effects: Effects) -> bool:
    """Whether code that is not understood calls what deletes directories."""
    return any(_DELETES_TREES.search(each) for each in (*effects.texts, *effects.unknown))


def runs_statements(program: str) -> bool:
    """Whether it is a client of a database."""
    return _CLIENTS.match(program) is not None


def _deletes(name: str, args: Words, *, seen: bool, cwd: Path | None) -> bool:
    """Whether it deletes directories that are not among the changes of the call."""
    if name == "find":
        return "-delete" in args and (None in args or not seen or cwd is None)
    before = args[: args.index("--")] if "--" in args else args
    if not _has(args, "-r", "-R", "--recursive"):
        return None in before  # it may be `-r`
    if None in args or not seen:
        return True
    operands = (each for each in args if each is not None and not each.startswith("-"))
    return cwd is None and not all(each.startswith("/") for each in operands)


def _git(args: Words, command: Command) -> str | None:
    options, words = _of_git_itself(args)
    if any(name.startswith("GIT_CONFIG") for name in command.variables):
        return UNKNOWN
    if None in options or None in words[:1] or any(map(_GIT_SETTINGS.match, filter(None, options))):
        return UNKNOWN
    subcommand = words[0] if words else None
    kind, signs = _GIT.get(subcommand or "", ("", ()))
    rest = _without_values(words[1:], _GIT_TAKE_VALUES.get(subcommand or "", ""))
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
        at += 2 if word in _GIT_VALUES else 1
    return args[:at], args[at:]


def _without_values(words: Words, letters: str) -> Words:
    """Words without those that are the values of options: a message is no option."""
    kept: list[str | None] = []
    rest = iter(words)
    for word in rest:
        cluster = word is not None and word.startswith("-") and not word.startswith("--")
        ends = [at for at, each in enumerate(word or "") if at and each in letters]
        if word is not None and cluster and ends:
            kept.append(word[: ends[0] + 1])
            if ends[0] == len(word) - 1:
                next(rest, None)
        else:
            kept.append(word)
            if word in ("--message", "--file") and letters:
                next(rest, None)
    return kept


def _is_harmless(subcommand: str | None, words: Words) -> bool:
    if subcommand == "restore":
        return _has(words, "-S", "--staged") and not _has(words, "-W", "--worktree")
    return subcommand == "rebase" and _has(words, "--abort", "--quit", "--show-current-patch")


def _is_given(sign: str, words: Words, cwd: Path | None) -> bool:
    if sign == "*":
        return True
    if sign == "path":
        return any(each is not None and _names_files(each, cwd) for each in words)
    if sign.endswith("…"):
        return any(each is not None and each.startswith(sign[0]) for each in words)
    return _has(words, sign) if sign.startswith("-") and sign != "--" else sign in words


def _has(words: Words, *options: str) -> bool:
    """Whether one of these options is given: shortened (`--forc`), or in a cluster (`-uf`)."""
    return any(option in options for option in _options(words, options))


def _options(words: Words, options: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word == "--":
            return
        if word is None or not word.startswith("-"):
            continue
        if word.startswith("--"):
            name = word.partition("=")[0]
            yield from (each for each in options if each.startswith(name) and len(name) > 2)
        else:
            yield from (f"-{letter}" for letter in word[1:])


def _names_files(word: str, cwd: Path | None) -> bool:
    if word.startswith((":", ".")) or word.endswith("/") or any(each in word for each in "*?["):
        return True
    return not word.startswith("-") and cwd is not None and os.path.lexists(cwd / word)


def _in_order(patterns: Sequence[re.Pattern[str]], words: Words) -> bool:
    """Whether these words are given, among others.

    A word that is not known counts as one of them where it may be a subcommand: behind options and
    what was found so far.
    """
    left, decides = list(patterns), True
    after_option = False
    for word in words:
        if not left:
            break
        if decides if word is None else left[0].match(word):
            left.pop(0)
            decides = True
        elif word is not None:
            decides = decides and (word.startswith("-") or after_option)
        after_option = word is not None and word.startswith("-")
    return not left
