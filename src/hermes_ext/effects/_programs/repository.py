"""A repository of git: where it lies, and whether its settings make git run other programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from attrs import frozen

from hermes_ext.effects._machine import upwards
from hermes_ext.effects._record import Recorder

_RUNS: Final = re.compile(
    r"(?:^|\])[ \t]*(alternaterefscommand|askpass|clean|cmd|command|difffilter|driver|external|"
    r"fsmonitor|gitproxy|helper|packobjectshook|pager|process|program|receivepack|smudge|"
    r"sshcommand|textconv|uploadpack|vcs|worktree)[ \t]*=[ \t]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_SECTIONS: Final = re.compile(r"^[ \t]*\[[ \t]*(?:include|includeif|pager)\b", re.I | re.M)
_RUNS_FOR_WRITES: Final = re.compile(r"(?:^|\])[ \t]*(?:editor|update[ \t]*=[ \t]*!)", re.I | re.M)
_HOOKS_PATH: Final = re.compile(r"(?:^|\])[ \t]*hookspath[ \t]*=[ \t]*(.*)$", re.I | re.M)
_HARMLESS_VALUE: Final = re.compile(
    r"\"?(?:true|false|cat|less|more|git-lfs (?:clean|smudge|filter-process)\b[^;|&`$]*)\"?\s*\Z"
)
_URL: Final = re.compile(r"(?:^|\])[ \t]*(?:push)?url[ \t]*=[ \t]*(.*)$", re.I | re.M)
_FAR: Final = re.compile(r"\"?(?:(?:https?|ssh|git)://|[\w.-]+@[\w.-]+:(?!:))", re.I)
_HARMLESS_KEY: Final = re.compile(
    r"(?:color\.|column\.|advice\.|user\.(?:name|email)$|author\.|committer\.|init\.defaultbranch$"
    r"|safe\.directory$|push\.(?:default|autosetupremote)$|pull\.(?:rebase|ff)$|fetch\.prune$"
    r"|merge\.(?:ff|conflictstyle|renames|stat|log)$|rebase\.(?:autostash|autosquash|updaterefs)$"
    r"|branch\.[^=]*\.(?:remote|merge|rebase|description)$|branch\.(?:sort|autosetuprebase|autosetupmerge)$"
    r"|log\.|blame\.|grep\.(?:linenumber|patterntype|extendedregexp|column|fullname)|status\.|tag\.sort$"
    r"|diff\.(?:algorithm|renames|renamelimit|context|interhunkcontext|mnemonicprefix|noprefix|"
    r"colormoved|colormovedws|statgraphwidth|indentheuristic|wserrorhighlight|ignoresubmodules|relative)$"
    r"|core\.(?:quotepath|abbrev|autocrlf|eol|safecrlf|filemode|ignorecase|precomposeunicode|"
    r"longpaths|whitespace|commentchar|untrackedcache|preloadindex|compression|symlinks|bare|"
    r"logallrefupdates|sharedrepository|splitindex)$|gc\.|http\.(?:postbuffer|sslverify|lowspeed\w+)$"
    r"|commit\.(?:verbose|status)$|submodule\.recurse$|pack\.|feature\.|index\.|rerere\.|i18n\.|"
    r"remote\.[^=]*\.fetch$|checkout\.|format\.pretty$|stash\.show\w+$|credential\.usehttppath$)",
    re.IGNORECASE,
)  # fmt: skip
_HARMLESS_SETTING: Final = frozenset(
    {
        "commit.gpgsign=false", "core.editor=true", "core.fsmonitor=false", "core.fsmonitor=true",
        "core.hookspath=/dev/null", "core.pager=", "core.pager=cat", "diff.external=",
        "tag.gpgsign=false", "sequence.editor=true", "sequence.editor=:", "core.editor=:",
    }
)  # fmt: skip


def harmless_setting(key: str, value: str | None) -> bool:
    """Whether a setting makes git run no other program."""
    if value is not None and f"{key.lower()}={value}" in _HARMLESS_SETTING:
        return True
    if key.lower().startswith("pager."):
        return value in ("true", "false", "cat")
    return _HARMLESS_KEY.match(key) is not None


@frozen
class Repository:
    """Where one lies.

    Attributes:
        root: its work tree; "" for none.
        folder: its `.git`.
        common: where several work trees have what is theirs together; else the same.
    """

    root: str
    folder: str
    common: str

    def folders(self) -> list[str]:
        """What git writes into."""
        return list(dict.fromkeys((self.folder, self.common)))

    def runs(self, rec: Recorder, *, writes: bool) -> str:
        """What makes git run another program; "" for nothing.

        writes: whether the command changes files, for which more is asked.
        """
        config = ""
        for path in (f"{self.common}/config", f"{self.folder}/config.worktree"):
            if rec.exists(path) is None or rec.is_changed(path, but="git "):
                return "its settings are changed by the same call"
            with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
                config += file.read(200_000) + "\n"
        for key, value in _RUNS.findall(config):
            if not _HARMLESS_VALUE.match(value):
                return f"its settings have {key.lower()}"
        if found := _SECTIONS.search(config):
            return f"its settings have {found[0].strip()}]"
        if writes and (found := _RUNS_FOR_WRITES.search(config)):
            return "its settings have an editor"
        return self._hooks(config, rec, writes=writes)

    def _hooks(self, config: str, rec: Recorder, *, writes: bool) -> str:
        paths = [each.strip().strip('"') for each in _HOOKS_PATH.findall(config)]
        folder = (
            os.path.join(self.root or self.folder, paths[-1]) if paths else f"{self.common}/hooks"
        )
        names = rec.made_below(os.path.realpath(os.path.expanduser(folder)))
        with suppress(OSError):
            names += os.listdir(os.path.expanduser(folder))
        for name in names:
            if (writes and not name.endswith(".sample")) or name == "post-index-change":
                return f"there is the hook {name}"
        return ""

    def pushes_to_disk(self) -> bool:
        """Whether one of its remotes may lie on this machine."""
        with suppress(OSError), open(f"{self.common}/config", encoding="utf-8") as file:
            return not all(map(_FAR.match, _URL.findall(file.read(200_000))))
        return True


def repositories(rec: Recorder) -> list[Repository] | None:
    """Those that git would use; None where that cannot be told."""
    if not rec.machine.local or not rec.cwd:
        return None
    return [found for each in rec.cwd for found in _above(each, rec)]


def _above(start: str, rec: Recorder) -> Iterator[Repository]:
    for folder in upwards(os.path.realpath(start)):
        place = os.path.join(folder, ".git")
        if rec.exists(place) is not False:
            yield _at(folder, place)
            return
        if os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects"):
            yield Repository("", folder, folder)
            return


def _at(root: str, place: str) -> Repository:
    if os.path.isfile(place):
        with suppress(OSError), open(place, encoding="utf-8") as file:
            place = os.path.join(root, file.read(4_096).removeprefix("gitdir:").strip())
    common = place
    with suppress(OSError), open(f"{place}/commondir", encoding="utf-8") as file:
        common = os.path.normpath(os.path.join(place, file.read(4_096).strip()))
    return Repository(root, place, common)
