"""Commands that destroy something, by their words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hermes_ext.effects import Command

from .git import UNKNOWN, kind_of_git
from .words import Words, has, in_order

# Programs, and the words in this order, anywhere among the others, that make them one of these.
_OTHERS: tuple[tuple[str, str, str], ...] = (
    ("database", r"dropdb|dropuser", ""),
    ("database", r"mysqladmin", "drop"),
    ("database", r"redis-cli|valkey-cli", "flushall"),
    ("database", r"redis-cli|valkey-cli", "flushdb"),
    ("database", r"heroku", "pg:reset"),
    ("database", r"alembic|flask", "downgrade"),
    ("database", r"rails|rake|bundle", r"db:(?:drop|reset|purge)\S*"),
    ("database", r"manage\.py|django-admin", "(?:flush|reset_db)"),
    ("database", r"python[\d.]*", r"(?:\S*manage\.py|django) (?:flush|reset_db)"),
    ("database", r"npx|prisma|pnpm|yarn", "migrate reset"),
    ("database", r"npx|sequelize|pnpm|yarn", r"db:drop\S*"),
    ("database", r"php|artisan", r"(?:migrate:(?:fresh|refresh|reset|rollback)|db:wipe)"),
    ("infrastructure", r"terraform|tofu|pulumi|vagrant|cdk|terragrunt", "destroy"),
    ("infrastructure", r"terraform|tofu|terragrunt", "--?destroy(?:=true)?"),
    ("infrastructure", r"terraform|tofu|terragrunt", "state rm"),
    ("infrastructure", r"pulumi", "down"),
    ("infrastructure", r"kubectl|oc", "delete"),
    ("infrastructure", r"kubectl|oc", "drain"),
    ("infrastructure", r"kubectl|oc", "--prune(?:=true)?"),
    ("infrastructure", r"helm", "(?:uninstall|delete)"),
    ("infrastructure", r"docker|podman", "prune"),
    ("infrastructure", r"docker|podman", "volume rm"),
    ("infrastructure", r"docker|podman", "system reset"),
    ("infrastructure", r"docker|podman|docker-compose", "down (?:-v|--volumes)"),
    ("infrastructure", r"docker|podman|docker-compose", r"rm (?:-\w*v\w*|--volumes)"),
    ("infrastructure", r"aws", "rm --recursive"),
    ("infrastructure", r"aws", "sync --delete"),
    ("infrastructure", r"gsutil", r"rm -\w*[rR]\w*"),
    ("infrastructure", r"gsutil", "rb"),
    ("infrastructure", r"rclone", "(?:purge|delete|sync)"),
    ("infrastructure", r"aws", r"(?:rb|delete-\S+|terminate-\S+)"),
    (
        "infrastructure",
        r"gcloud|az|doctl|heroku|fly|flyctl",
        r"(?:delete|destroy|purge|\S+:destroy)",
    ),
    ("infrastructure", r"gh", "(?:repo|release|secret) delete"),
    ("infrastructure", r"gh", r"api (?:-X|--method=?)?DELETE"),
    ("infrastructure", r"npm|pnpm|yarn", "unpublish"),
    ("infrastructure", r"mkfs\S*|wipefs|fdisk|parted|sgdisk|blkdiscard|shred", "/dev/.*"),
    ("infrastructure", r"dd", "of=/dev/.*"),
    ("recursive-delete", r"rsync", r"--del(?:ete\S*)?"),
    ("recursive-delete", r"find", "-delete"),
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


PROGRAMS = re.compile(
    rf"(?:git|rm|find|git-\S+|{'|'.join(other[1] for other in _OTHERS)})(?:\.exe)?\Z", re.IGNORECASE
)


def kind_of(command: Command, *, seen: bool = True) -> str | None:
    """Which kind of destruction a command is; None if it is none that is known here.

    `UNKNOWN` where the word that decides is not known. seen: whether what it deletes is among the
    changes of the call.
    """
    if not command.name:
        return UNKNOWN
    name, args = command.name.casefold().removesuffix(".exe"), command.args
    if name.startswith("git-"):
        name, args = "git", (name[4:], *args)
    if name == "git":
        return kind_of_git(args, command)
    if name in ("rm", "find") and _deletes(name, args, seen=seen, cwd=command.cwd):
        return "recursive-delete"
    for other in _COMPILED:
        if other.program.match(name) and in_order(other.words, args):
            return other.kind
    return None


def runs_statements(program: str | None) -> bool:
    """Whether it is a client of a database; one that is not known is taken for none."""
    return program is not None and _CLIENTS.match(program) is not None


def _deletes(name: str, args: Words, *, seen: bool, cwd: Path | None) -> bool:
    """Whether it deletes directories that are not among the changes of the call."""
    if name == "find":
        return "-delete" in args and (None in args or not seen or cwd is None)
    before = args[: args.index("--")] if "--" in args else args
    if not has(args, "-r", "-R", "--recursive"):
        return None in before  # it may be `-r`
    if None in args or not seen:
        return True
    operands = (each for each in args if each is not None and not each.startswith("-"))
    return cwd is None and not all(each.startswith("/") for each in operands)
