"""What is known about programs: those that only read, those that run others, those of the rules."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from hermes_ext._guard.places import ANY
from hermes_ext._guard.words import Values

# -- options ------------------------------------------------------------------------------------


@frozen
class Arguments:
    """The arguments of a program, its options apart. values: of the options that take one."""

    options: tuple[str, ...]
    operands: tuple[Values, ...]
    values: Mapping[str, tuple[Values, ...]]

    def has(self, letters: str = "", *names: str) -> bool:
        """Whether one of these options is given: letters alone or together, names shortened too."""
        for option in self.options:
            if option.startswith("--"):
                given = option.partition("=")[0]
                if len(given) > 2 and any(name.startswith(given) for name in names):
                    return True
            elif any(letter in letters for letter in option[1:]) or option in names:
                return True
        return False

    def value(self, *names: str) -> tuple[Values, ...]:
        """The values that were given for an option under any of its names."""
        return tuple(value for name in names for value in self.values.get(name, ()))


def arguments(args: Sequence[Values], with_value: str = "", *names: str) -> Arguments:
    """Take arguments apart as `getopt` does.

    with_value: letters of the options whose value may be the next argument. names: likewise, the
    long ones, with their dashes.
    """
    options: list[str] = []
    operands: list[Values] = []
    values: dict[str, tuple[Values, ...]] = {}
    rest = list(args)
    while rest:
        field = rest.pop(0)
        text = field[0]
        if text == "--":
            operands += rest
            break
        if not text.startswith("-") or text == "-":
            operands.append(field)
            continue
        options.append(text)
        name, value = _valued(text, field, with_value, names)
        if name and value is None and rest:
            value = rest.pop(0)
        if name and value is not None:
            values[name] = (*values.get(name, ()), value)
    return Arguments(tuple(options), tuple(operands), values)


def _valued(
    text: str, field: Values, letters: str, names: Sequence[str]
) -> tuple[str, Values | None]:
    """The name of an option that takes a value, and that value if it stands in the same field."""
    if text.startswith("--") or text in names:
        name, equals, _ = text.partition("=")
        full = name if name in names else next((n for n in names if n.startswith(name)), "")
        inside = tuple(each.partition("=")[2] for each in field) if equals else None
        return (full or (name if equals else ""), inside)
    for place, letter in enumerate(text[1:], 1):
        if letter in letters:
            inside = tuple(each[place + 1 :] for each in field) if text[place + 1 :] else None
            return f"-{letter}", inside
    return "", None


# -- programs that only read --------------------------------------------------------------------

_READ: Final = """
    : [ [[ ack ag base32 base64 basename bat break bzcat cat cd cksum clear cmp column comm
    continue cut date df diff dir dirname dirs du echo egrep exa exit expand expr eza factor
    false fgrep file fmt fold free getconf getfacl getopts grep groups hash head hexdump id jobs
    join jq less let ll locale locate ls lsattr lsof mapfile md5sum mktemp more namei nl nproc
    od paste pgrep popd pr printenv printf ps pushd pwd read readarray readlink realpath return
    rev rg seq set sha1sum sha224sum sha256sum sha384sum sha512sum shasum shift shopt sleep sort
    stat strings sum tac tail test times tput tr tree true tsort tty type ulimit umask uname
    unexpand uniq uptime wait wc whereis which who whoami xmllint xxd xzcat yq zcat zgrep zless
"""

# The options of those that write after all, or run something.
_EXCEPT: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "bat": ("", ("--pager",)),
    "date": ("s", ("--set",)),
    "printf": ("", ()),
    "rg": ("", ("--pre", "--hostname-bin")),
    "sort": ("o", ("--output", "--compress-program")),
    "tree": ("o", ("--output",)),
    "xmllint": ("", ("--output", "--shell")),
    "xxd": ("r", ("--revert",)),
    "yq": ("is", ("--inplace", "--in-place", "--split-exp")),
}

# Those whose second operand is written to.
_COPIERS: Final = frozenset({"uniq", "xxd"})

READERS: Final = frozenset(_READ.split())

LISTERS: Final = frozenset({"ack", "ag", "dir", "du", "fd", "fdfind", "find", "grep", "egrep", "ls",
                            "rg", "tree"})  # fmt: skip
"""Programs that name the files of whole folders to what comes after them."""


def only_reads(name: str, args: Sequence[Values]) -> bool:
    """Whether a program with these arguments only reads, by what is known of it."""
    if name not in READERS:
        return False
    letters, names = _EXCEPT.get(name, ("", ()))
    if (letters or names) and arguments(args).has(letters, *names):
        return False
    return name not in _COPIERS or len(arguments(args).operands) < 2


_GIT_READ: Final = """
    add annotate blame cat-file check-attr check-ignore cherry commit count-objects describe diff
    diff-tree fetch for-each-ref grep help log ls-files ls-remote ls-tree merge-base name-rev push
    range-diff rev-list rev-parse shortlog show show-branch show-ref status var version whatchanged
"""
_GIT_READS: Final = frozenset(_GIT_READ.split())
# What these do without an operand, or with one of these first.
_GIT_LOOKS: Final[Mapping[str, frozenset[str]]] = {
    "branch": frozenset({""}),
    "config": frozenset({"get", "list", "--get", "--get-all", "--get-regexp", "--list", "-l"}),
    "reflog": frozenset({"", "show"}),
    "remote": frozenset({"", "show", "get-url"}),
    "stash": frozenset({"list", "show"}),
    "submodule": frozenset({"", "status"}),
    "tag": frozenset({""}),
    "worktree": frozenset({"list"}),
}
_GIT_RUNS: Final = ("--output", "--open-files-in-pager", "--upload-pack", "--receive-pack",
                    "--exec", "--ext-diff")  # fmt: skip


def git_only_reads(command: str, args: Sequence[Values]) -> bool:
    """Whether a git command leaves the files of the working tree alone."""
    given = arguments(args)
    if given.has("O" if command == "grep" else "", *_GIT_RUNS):
        return False
    if command in _GIT_READS:
        return True
    looks = _GIT_LOOKS.get(command, frozenset())
    first = args[0][0] if args else ""
    return first in looks or ("" in looks and not given.operands and not given.has("dDmMcCuf"))


_SED_SAFE: Final = re.compile(
    r"(?:[\d$,;\s{}!~+]|/(?:[^/\\\n]|\\.)*/I?|\\?[pdqQ=nNgGhHxl]"
    r"|[sy]([/|,#@:!])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI\d]*(?=[;}\s]|\Z))*\Z"
)


def sed_only_reads(args: Sequence[Values]) -> bool:
    """Whether sed changes no file: not in place, and with no command that writes or runs."""
    given = arguments(args, "efl", "--expression", "--file", "--line-length")
    if given.has("is", "--in-place", "--separate", "--file") or given.value("-f"):
        return False
    scripts = given.value("-e", "--expression") or given.operands[:1]
    return all(_SED_SAFE.match(text) for field in scripts for text in field)


def awk_only_reads(args: Sequence[Values]) -> bool:
    """Whether awk changes no file: a program that is seen, without output to files or commands."""
    given = arguments(args, "Fvfei", "--file", "--include", "--load", "--source")
    if given.has("fil", "--file", "--include", "--load", "--inplace"):
        return False
    programs = given.value("-e", "--source") or given.operands[:1]
    wrong = re.compile(r">|\||\bsystem\b|\bgetline\b|@")
    return all(not wrong.search(_without_texts(text)) for field in programs for text in field)


def _without_texts(program: str) -> str:
    return re.sub(r"\$\d+\s*>=?\s*[\d.]+", "", program)


# -- programs that run others -------------------------------------------------------------------


@frozen
class Wrapper:
    """A program that runs the one named by its operands.

    letters, names: its options with a value. operands: how many of its own come first.
    """

    letters: str = ""
    names: tuple[str, ...] = ()
    operands: int = 0


WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "builtin": Wrapper(),
    "busybox": Wrapper(),
    "caffeinate": Wrapper("tw"),
    "chroot": Wrapper("", ("--groups", "--userspec"), 1),
    "chrt": Wrapper("TPD", (), 1),
    "command": Wrapper(),
    "doas": Wrapper("Cu"),
    "env": Wrapper("uCS", ("--unset", "--chdir", "--split-string")),
    "exec": Wrapper("a"),
    "gtimeout": Wrapper("ks", ("--kill-after", "--signal"), 1),
    "ionice": Wrapper("cnp", ("--class", "--classdata")),
    "linux32": Wrapper(),
    "ltrace": Wrapper("aeFlnopsuwx"),
    "nice": Wrapper("n", ("--adjustment",)),
    "nohup": Wrapper(),
    "nsenter": Wrapper("tSG", ("--target",)),
    "prlimit": Wrapper(),
    "proxychains": Wrapper("f"),
    "setarch": Wrapper("", (), 1),
    "setpriv": Wrapper("", ("--reuid", "--regid", "--groups")),
    "setsid": Wrapper(),
    "stdbuf": Wrapper("ioe", ("--input", "--output", "--error")),
    "strace": Wrapper("abeEIoOpPsSuUX"),
    "sudo": Wrapper("CDghpRrTtUu", ("--close-from", "--chdir", "--group", "--host", "--prompt",
                                    "--chroot", "--role", "--type", "--user")),
    "taskset": Wrapper("", (), 1),
    "time": Wrapper("fo", ("--format", "--output")),
    "timeout": Wrapper("ks", ("--kill-after", "--signal"), 1),
    "torsocks": Wrapper(),
    "toybox": Wrapper(),
    "unbuffer": Wrapper(),
    "unshare": Wrapper("SGRw"),
    "xargs": Wrapper("adEILnPs", ("--arg-file", "--delimiter", "--eof", "--max-lines",
                                  "--max-args", "--max-procs", "--max-chars", "--replace")),
    "xvfb-run": Wrapper("efnpsw"),
}  # fmt: skip

SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "mksh", "rbash", "sh", "yash", "zsh"})
TEXT_RUNNERS: Final = frozenset({"eval", "parallel", "watch"})
"""Programs that hand their arguments, joined, to a shell."""

SPILLERS: Final = frozenset(
    {"7z", "7za", "7zr", "bsdtar", "cpio", "curl", "hg", "patch", "pax", "svn", "tar", "unar",
     "unrar", "unzip", "wget"}
)  # fmt: skip
"""Programs that write files under names which do not stand in their arguments."""

INTERPRETERS: Final = re.compile(
    r"(?:node|nodejs|deno|bun|perl|ruby|php|lua|luajit|Rscript|tclsh|osascript|pwsh|powershell)"
    r"[\d.]*(?:\.exe)?\Z"
)
OTHER_LANGUAGES: Final = frozenset({"awk", "gawk", "gmake", "make", "mawk", "nawk"})
"""Programs that take a text in a language of their own, with its own way to name a variable."""
PYTHON: Final = re.compile(r"(?:python|pypy|ipython)[\d.]*w?(?:\.exe)?\Z")


def base_name(program: str) -> str:
    """A program's name without its folder."""
    return program.rpartition("/")[2].removesuffix(".exe")


def after_wrapper(name: str, args: Sequence[Values]) -> tuple[list[Values], bool]:
    """What a wrapper runs, and whether it runs it with arguments of its own making."""
    wrapper = WRAPPERS[name]
    rest = list(args)
    while rest and rest[0][0].startswith("-") and rest[0][0] != "-":
        option = rest.pop(0)
        if option[0] == "--":
            break
        found, inside = _valued(option[0], option, wrapper.letters, wrapper.names)
        if found and inside is None and rest:
            rest.pop(0)
    return rest[wrapper.operands :], name == "xargs"


# -- programs of the rules ----------------------------------------------------------------------

OWN_PROGRAMS: Final = frozenset({"hermes-ext", "hermes_ext", "hermes_ext.cli"})
HERMES_PROGRAMS: Final = frozenset({"hermes", "hermes-agent", "hermes_cli", "hermes_cli.main"})

# What only looks. Of the rest nothing is for the agent.
_OWN_LOOKS: Final = frozenset({"doctor", "info", "list", "log", "replay", "test", "why"})

# What changes the settings, the plugins or the homes; None: whatever follows.
_HERMES_CHANGES: Final[Mapping[str, frozenset[str] | None]] = {
    "claw": frozenset({"migrate"}),
    "config": frozenset({"edit", "migrate", "set", "unset"}),
    "console": None,
    "import": None,
    "mcp": frozenset({"add", "config", "configure", "install", "picker", "remove", "rm"}),
    "migrate": None,
    "plugins": frozenset(
        {"", "disable", "enable", "install", "remove", "rm", "uninstall", "update"}
    ),
    "profile": frozenset({"create", "delete", "import", "install", "rename", "update", "use"}),
    "setup": None,
    "tools": frozenset({"", "disable", "enable", "post-setup"}),
    "uninstall": None,
}
_WITHOUT_RULES: Final = ("--ignore-user-config", "--safe-mode")
_HERMES_OPTIONS: Final = ("zmtrcsp", ("--oneshot", "--usage-file", "--model", "--provider",
                                      "--toolsets", "--resume", "--continue", "--skills",
                                      "--profile", "--home"))  # fmt: skip


def changes_rules(program: str, args: Sequence[Values]) -> str | None:
    """The command, if it is one of Hermes or of this package that changes rules; else None."""
    letters, names = _HERMES_OPTIONS
    given = arguments(args, letters, *names)
    words = [field[0] for field in given.operands]
    own = program in OWN_PROGRAMS
    if not own and given.has("", *_WITHOUT_RULES):
        return f"{program} without its settings and plugins"
    if given.has("", "--help", "--version"):
        return None
    if words and not own:
        if words[0] == "extensions":
            own, words = True, words[1:]
        else:
            return _hermes_changes(program, words)
    if own and words and words[0] not in _OWN_LOOKS:
        return _named(f"{program} extensions" if program in HERMES_PROGRAMS else program, words[0])
    return _named(program, words[0]) if words and ANY in words[0] else None


def _hermes_changes(program: str, words: Sequence[str]) -> str | None:
    if ANY in words[0]:
        return _named(program, words[0])
    if words[0] not in _HERMES_CHANGES:
        return None
    kinds = _HERMES_CHANGES[words[0]]
    second = words[1] if len(words) > 1 else ""
    if kinds is None:
        return _named(program, words[0])
    if second in kinds or ANY in second:
        return _named(program, words[0], second)
    return None


def _named(*words: str) -> str:
    return " ".join("…" if ANY in word else word for word in words if word)


_PACKAGE: Final = re.compile(r"hermes[-_.]+ext(?:\Z|[\[=<>~!@ ])", re.IGNORECASE)
_INSTALLERS: Final = frozenset({"conda", "mamba", "micromamba", "pdm", "pip", "pip3", "pipenv",
                                "pipx", "poetry", "rye", "uv"})  # fmt: skip
_INSTALLER_CHANGES: Final = frozenset({"add", "inject", "install", "reinstall", "remove", "sync",
                                       "uninject", "uninstall", "update", "upgrade"})  # fmt: skip


def changes_package(program: str, args: Sequence[Values]) -> str | None:
    """The command, if it installs or removes this package."""
    name = re.sub(r"(?<=pip)[\d.]+\Z", "", program)
    if name not in _INSTALLERS:
        return None
    words = [field[0] for field in args]
    change = next((word for word in words if word in _INSTALLER_CHANGES), None)
    named = any(_PACKAGE.match(os.path.basename(word)) for word in words)
    return f"{program} {change} hermes-ext" if change and named else None
