"""Each rule of the reading is needed: without it the oracle finds what is missed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest
from tests.effects.oracle.constructs import CONSTRUCTS, Construct, of_program
from tests.effects.oracle.fence import can_fence
from tests.effects.oracle.generate import commands, seed
from tests.effects.oracle.runner import environ
from tests.effects.oracle.scratch import Scratch, missed

from hermes_ext.effects._knowledge import Entry, Knowledge

fenced = pytest.mark.skipif(
    not can_fence(), reason="commands that remove files run only behind Landlock"
)
RULES: Final = {
    "alternative": "what either branch of an if, case, && or || does counts",
    "assignment": "a variable has the value that was assigned to it",
    "background": "a command in the background counts",
    "brace": "braces give several words",
    "cd": "relative paths start where cd leads to",
    "eval": "the words of eval are shell text",
    "function": "calling a function runs its body",
    "glob": "a pattern stands for the names that match it",
    "group": "commands in { } count",
    "hard-link": "a file with several names changes under all of them",
    "here-document": "substitutions in a here-document run",
    "here-string": "substitutions in a here-string run",
    "home": "~ and $HOME stand for the home directory",
    "link": "a link that the text itself makes leads to its target",
    "loop": "the body of a loop counts, for each value of its variable",
    "pattern": "${x#a}, ${x/a/b} and the like change a variable's value",
    "pipeline": "each part of a pipeline counts",
    "process-substitution": "commands in <( ) and >( ) count",
    "redirect": "a redirection to a file writes it",
    "resolve": "a link that is there leads to its target",
    "sequence": "commands behind ; && || & and newlines count",
    "source": "a file that is sourced may do anything",
    "subshell": "commands in ( ) count",
    "substitution": "commands in $( ) and backticks count",
    "unknown": "a program that nobody knows may do anything",
}
"""The rules by which a `Recorder` announces what shell text does, each in a sentence."""

_MOST: Final = 250  # commands that are tried for a rule


def _writes(entry: Entry | None) -> bool:
    """Whether a command of the data may change anything, by itself or by a subcommand."""
    if entry is None:
        return False
    return entry.may_harm or any(
        _writes(entry.subcommand(name)) for name in entry.subcommands or ()
    )


_WRITE: Final = [name for name in Knowledge.bundled() if _writes(Knowledge.bundled().get(name))]
_REASONS: Final = {
    "it needs a service, or rights that nobody has": (
        "apt apt-cache arp aws chattr chgrp chown chroot dbus-run-session dmesg docker gcloud "
        "hostname ifconfig ip journalctl mysql netstat nsenter route service su systemctl "
        "systemd-run terraform tmux unshare"
    ),
    "it needs a terminal": "less man more script watch zless zmore",
    "it needs a desktop": "open pbcopy start trash trash-put xclip xdg-open xsel xvfb-run",
    "it takes seconds": "javac npx",
    "the shell has its own": "[ fc history jobs printf test wait",
    "what it writes is no file that it can write here": (
        "arch base64 date dig ed host ldd lsof nm nslookup objdump pkg-config size stty whois yq"
    ),
    "no machine that the templates were written on had it": (
        "7za 7zr 7zz ack ag ant at az bat batcat batch bazel black bun bundle bundler bunx "
        "eslint ffmpeg ffprobe mypy prettier ruff tsc "
        "caffeinate cargo claude code codex composer crontab crontab_e csh deno docker-compose "
        " emacs entr expect fd fdfind fish gedit gem gfind gh ghci go gradle groovy guile "
        "helix helm hermes hermes-ext hg httpie hx info invoke jaq joe jsonlint julia just kak "
        "kotlin ltrace luajit mariadb meson micro mosh most nano nc ncat ne nerdctl netcat nodemon "
        "nox nu nvim oc osascript pacman parallel pico pm2 pnpm pnpx podman poetry pwsh "
        "pytest python3.8 python3.9 R racket rake rename rg rpm Rscript runghc rustc scala "
        "screen setfacl socat subl supervisorctl svn swift sysctl task tcsh telnet tldr tox "
        "ts-node tsx ug ug+ ugrep ugrep+ unbuffer uv uvx watchexec xattr xmllint xonsh yarn"
    ),
}
_NOT_RUN: Final = {name: why for why, names in _REASONS.items() for name in names.split()}
_RUN: Final = sorted(name for name in _WRITE if of_program(name) and name not in _NOT_RUN)


def _first_missed(scratch: Scratch, rule: str, constructs: list[Construct]) -> str:
    """The first command that is not understood without the rule; "" where all are."""
    for construct in constructs:
        for command in itertools.islice(commands(construct, seed()), _MOST):
            run = scratch.run(command, construct.tree)
            if run.changed:
                effects = scratch.judge(command, construct.tree, skip=rule)
                if missed(run, effects, scratch.root(construct.tree)):
                    return command
    return ""


def _works(scratch: Scratch, name: str, construct: Construct) -> bool:
    """Whether anything changes by the program that would not change by one that does nothing."""
    for command in itertools.islice(commands(construct, seed()), _MOST):
        changed, *without = [
            scratch.run(instead + command, construct.tree).changed
            for instead in ("", f"{name}() {{ true; }}\n", f"{name}() {{ false; }}\n")
        ]
        if changed not in without:
            return True
    return False


@fenced
@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_changes_are_missed(scratch: Scratch, rule: str) -> None:
    """Reading as if the rule were not written does not announce what some command changes."""
    constructs = [each for each in CONSTRUCTS.values() if rule in each.rules]
    assert constructs, f"no construct has commands for the rule {rule!r}"
    command = _first_missed(scratch, rule, constructs)
    assert command, f"nothing shows that {rule!r} is needed, seed {seed()}"


@fenced
@pytest.mark.parametrize("name", _RUN)
def test_without_knowing_a_command_changes_are_missed(scratch: Scratch, name: str) -> None:
    """What the data says of each command that writes is needed to know what it changes."""
    construct = of_program(name)
    assert construct is not None
    if shutil.which(name, path=environ("")["PATH"]) is None:
        pytest.skip(f"{name} is not on this machine")
    command = _first_missed(scratch, f"command:{name}", [construct])
    if not command and not _works(scratch, name, construct):
        pytest.skip(f"{name} does not work here")
    assert command, f"nothing shows that {name!r} is needed, seed {seed()}"


def test_each_command_is_run_or_has_a_reason() -> None:
    """Installed or not: a command that writes has templates, or a reason why it is not run."""
    assert {name for name in _WRITE if name not in _RUN and name not in _NOT_RUN} == set()
    assert {name for name in _NOT_RUN if name not in _WRITE} == set()


@fenced
def test_what_is_installed_decides_nothing() -> None:
    """Programs of these names that do nothing, first on the path, make no test fail."""
    names = ("open", "xdg-open", "pytest", "rsync", "tree")
    # Where root tests, commands run as somebody else, to whom `tmp_path` is closed.
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder)
        first.chmod(0o755)
        for name in names:
            (first / name).write_text("#!/bin/sh\n")
            (first / name).chmod(0o755)
        done = _run_tests_of(names, first)
    assert done.returncode == 0, done.stdout
    assert "rsync does not work here" in done.stdout


def _run_tests_of(names: tuple[str, ...], first: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__),
            *("-k", f"knowing_a_command and ({' or '.join(names)})"),
        ],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "ORACLE_PATH": str(first)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
