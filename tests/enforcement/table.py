"""The table of ways around a guard: how a group of them is driven, and what comes of each.

Every way is driven in the real Hermes twice: with a guard that refuses whatever says "evil", and
with our plugin taken out. With the guard nothing evil may have happened, and the agent must go on;
without it the same way must do evil, or it would be no way at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from filelock import FileLock
from tests.harness.home import PLUGIN, HermesHome
from tests.harness.warm import warm_start
from tests.hermes.stage import HEAD, pip_plugin, play, plugin

NO_EVIL = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def no_evil(tool_name, tool_args, tool_call_id):
    __main__.seen.append([tool_name, dict(tool_args), tool_call_id])
    if 'evil' in repr((tool_name, tool_args)):
        return HookResult.block('no evil')
"""
)


BEFORE, AFTER = "a_package", "z_package"
PLACES = {
    "in_folder": "a plugin in the user's folder",
    BEFORE: "a package registered before ours",
    AFTER: "a package registered after ours",
}


@dataclass(frozen=True)
class Way:
    """One way around.

    name: what it is, for the docs. drive: Python that tries it, with `agent`, `stage`, `jot`,
    `write` and what the group's prologue has; what it returns is kept for a failing test's message.
    closed: why it leads nowhere in Hermes as it is, without anybody's guard; "" where it does. It
    is still a way that must not be opened.
    """

    name: str
    drive: str
    closed: str = ""


@dataclass(frozen=True)
class Group:
    """Ways that are driven in one process.

    plugins: sources of other Hermes plugins by name. Where they are is in `PLACES`; one that has
    no name of these lies in the user's folder.
    extensions: what judges; "no-evil" if nothing else is said.
    """

    key: str
    title: str
    ways: Sequence[Way]
    prologue: str = ""
    plugins: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=lambda: {"no-evil": NO_EVIL})
    config: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 240


@dataclass(frozen=True)
class Tried:
    """What came of one way.

    evil: what evil was done, by what it left on the disk. goes_on: whether the agent could do
    something fine afterwards. told: what the way returned, for messages.
    """

    evil: tuple[str, ...]
    goes_on: bool
    told: str


_LOOP = """
import shutil, traceback

def left():
    found = [f'jot: {line}' for line in stage.jots]
    for path in sorted(Path.cwd().rglob('*')):
        if path.is_file() and '.git' not in path.parts:
            found.append(f'{path.relative_to(Path.cwd())}: {path.read_text("utf-8", "replace")}')
    for path in list(Path.cwd().iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found

here, tried = Path.cwd(), {}
for name, way in WAYS.items():
    agent = stage.agent(**OPTIONS)
    seen.clear()
    try:
        told = way(agent)
    except BaseException:
        told = traceback.format_exc()
    os.chdir(here)
    evil = [each for each in left() if 'evil' in each]
    how.clear()
    stage.script = None
    stage.use(agent, jot('fine'))
    goes_on = any('jot: fine' in each for each in left())
    tried[name] = {'evil': evil, 'goes_on': goes_on, 'told': repr(told)}
report(**tried)
"""


def _driver(group: Group) -> str:
    parts = ["how, OPTIONS = {}, {}", dedent(group.prologue), "WAYS = {}"]
    for number, way in enumerate(group.ways):
        body = indent(dedent(way.drive).strip(), "    ")
        parts.append(f"def way_{number}(agent):\n{body}\nWAYS[{way.name!r}] = way_{number}")
    return "\n".join([*parts, _LOOP])


def drive(group: Group, base: Path, *, guarded: bool) -> dict[str, Tried]:
    """Try all ways of a group. guarded: with our plugin and the group's extensions."""
    home = HermesHome(
        base,
        None,
        plugins=(PLUGIN,) if guarded else (),
        config=group.config,
        start=warm_start,
    )
    if guarded:
        for name, source in group.extensions.items():
            home.extension(name, source)
    sites = {}
    for name, source in group.plugins.items():
        if name in (BEFORE, AFTER):
            sites[name] = pip_plugin(home, name, source)
        else:
            plugin(home, name, source)
    # Nobody has to be asked, as in `hermes -z`.
    env = {"HERMES_YOLO_MODE": "1"}
    if BEFORE in sites:
        env["PYTHONPATH"] = str(sites[BEFORE])
    later = [sites[AFTER]] if AFTER in sites else []
    told = play(home, _driver(group), later=later, timeout=group.timeout, **env)
    return {
        name: Tried(tuple(each["evil"]), each["goes_on"], each["told"])
        for name, each in told.items()
    }


def tried(group: Group, factory: pytest.TempPathFactory, *, guarded: bool) -> dict[str, Tried]:
    """The same, once for all processes that the tests are spread over."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    file = shared / f"{group.key}-{guarded}.json"
    with FileLock(f"{file}.lock"):
        if not file.exists():
            found = drive(group, factory.mktemp(group.key), guarded=guarded)
            file.write_text(json.dumps({name: vars(each) for name, each in found.items()}))
    told = json.loads(file.read_text())
    return {name: Tried(**{**each, "evil": tuple(each["evil"])}) for name, each in told.items()}


def check(group: Group, way: Way, factory: pytest.TempPathFactory, *, guarded: bool) -> None:
    """What a row of the table says: refused and going on, or, with the guard taken out, done."""
    each = tried(group, factory, guarded=guarded)[way.name]
    if guarded:
        assert each.evil == (), each
        assert each.goes_on, each
    else:
        assert bool(each.evil) is not bool(way.closed), each
