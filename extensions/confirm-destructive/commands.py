"""Commands that destroy something, by their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermes_ext.effects import Command

Words = Sequence[str | None]

# Before git's own subcommand, these take a word.
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path",
                         "--super-prefix", "--config-env", "--attr-source"})  # fmt: skip

# The subcommand, and what makes it one that cannot be undone: options (also shortened or in a
# cluster), words, or `*` for whatever it is given.
_GIT: dict[str, tuple[str, tuple[str, ...]]] = {
    "push": ("force-push", ("-f", "-d", "--force", "--force-with-lease", "--mirror", "--delete",
                            "--prune", "+…", ":…")),
    "reset": ("history", ("--hard", "--merge", "--keep")),
    "rebase": ("history", ("*",)),
    "commit": ("history", ("--amend",)),
    "filter-branch": ("history", ("*",)),
    "filter-repo": ("history", ("*",)),
    "reflog": ("history", ("expire", "delete")),
    "branch": ("history", ("-D", "-d", "-M", "-f", "--delete", "--force")),
    "tag": ("history", ("-d", "-f", "--delete", "--force")),
    "stash": ("history", ("drop", "clear")),
    "checkout": ("history", ("-f", "--force", "--", ".")),
    "switch": ("history", ("-f", "--force", "--discard-changes")),
    "restore": ("history", ("*",)),
    "clean": ("recursive-delete", ("-f", "--force")),
    "gc": ("history", ("--prune",)),
    "prune": ("history", ("*",)),
    "update-ref": ("history", ("-d", "--stdin")),
    "replace": ("history", ("*",)),
}  # fmt: skip

# Programs, and the words in this order, anywhere among the others, that make them one of these.
_OTHERS: tuple[tuple[str, str, str], ...] = (
    ("database", r"dropdb|dropuser", ""),
    ("database", r"mysqladmin", "drop"),
    ("database", r"redis-cli|valkey-cli", "flushall"),
    ("database", r"redis-cli|valkey-cli", "flushdb"),
    ("database", r"alembic|flask", "downgrade"),
    ("database", r"rails|rake|bundle|bin/rails", r"db:(?:drop|reset|purge)\S*"),
    ("database", r"python[\d.]*|manage\.py|django-admin", "flush"),
    ("database", r"python[\d.]*|manage\.py|django-admin", "reset_db"),
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
    ("infrastructure", r"aws", "rm --recursive"),
    ("infrastructure", r"aws", r"(?:rb|delete-\S+|terminate-\S+)"),
    ("infrastructure", r"gcloud|az|doctl|heroku|fly|flyctl", r"(?:delete|destroy|\S+:destroy)"),
    ("infrastructure", r"gh", "(?:repo|release|secret) delete"),
    ("infrastructure", r"npm|pnpm|yarn", "unpublish"),
    ("infrastructure", r"mkfs\S*|wipefs|fdisk|parted|sgdisk", ""),
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


def kind_of(command: Command) -> str | None:
    """Which kind of destruction a command is; None if it is none that is known here."""
    if command.name == "git":
        return _git(command.args)
    if command.name == "rm" and None in command.args and _has(command.args, "-r", "--recursive"):
        return "recursive-delete"
    for other in _COMPILED:
        if other.program.match(command.name) and _in_order(other.words, command.args):
            return other.kind
    return None


def runs_statements(command: Command) -> bool:
    """Whether it is a client of a database."""
    return _CLIENTS.match(command.name) is not None


def _git(args: Words) -> str | None:
    rest = list(args)
    while rest and (rest[0] is None or rest[0].startswith("-")):
        first = rest.pop(0)
        if first is None:
            return "history"
        if first in _GIT_VALUES and rest:
            rest.pop(0)
    if not rest or rest[0] is None:
        return None
    kind, signs = _GIT.get(rest[0], ("", ()))
    words = rest[1:]
    if (
        rest[0] == "restore"
        and _has(words, "-S", "--staged")
        and not _has(words, "-W", "--worktree")
    ):
        return None
    if rest[0] == "rebase" and _has(words, "--abort", "--quit", "--show-current-patch"):
        return None
    if kind and None in words:
        return kind  # what is not known may be the option that decides
    return kind if any(_is_given(sign, words) for sign in signs) else None


def _is_given(sign: str, words: Words) -> bool:
    if sign == "*":
        return True
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


def _in_order(patterns: Sequence[re.Pattern[str]], words: Words) -> bool:
    rest = iter(words)
    return all(any(word is None or pattern.match(word) for word in rest) for pattern in patterns)
