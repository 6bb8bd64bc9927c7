"""The table of ways around a guard: how a group of them is driven, and what comes of each.

Every way is driven in the real Hermes twice: with a guard that refuses whatever says "evil", and
with our plugin taken out. With the guard nothing evil may have happened, and the agent must go on;
without it the same way must do evil, or it would be no way at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from filelock import FileLock
from tests.harness.home import PLUGIN, HermesHome
from tests.harness.warm import warm_start
from tests.hermes.stage import HEAD, pip_plugin, play, plugin
from tests.hermes.versions import NEWER, installed

from hermes_ext.testing import ScriptedModel

NO_EVIL = (
    HEAD
    + """
@register_hook('intercept_tool_call', guard=True)
def no_evil(tool_name, tool_args, tool_call_id):
    getattr(__main__, 'seen', []).append([tool_name, dict(tool_args), tool_call_id])
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
class Tried:
    """What came of one way.

    evil: what evil was done, by what it left on the disk. goes_on: whether the agent could do
    something fine afterwards, asked only with the guard. told: what the way returned, for
    messages. wrong: what else was not as it has to be with the guard.
    """

    evil: tuple[str, ...]
    goes_on: bool
    told: str = ""
    wrong: tuple[str, ...] = ()


# A way with processes of its own: called with an empty folder, and whether our plugin is in.
Drive = Callable[[Path, bool], Tried | Mapping[str, Tried]]


@dataclass(frozen=True)
class Way:
    """One way around.

    name: what it is, for the docs. drive: what tries it. Text is Python that runs in the process
    of the group's other such ways, with `agent`, `stage`, `jot`, `write`, `wrong` and what the
    group's prologue has; what it returns is kept for a failing test's message. A function has
    processes of its own. Several ways may name the same function: it is called once, and returns
    what came of each by the way's name.
    closed: why it leads nowhere in Hermes as it is, without anybody's guard; "" where it does. It
    is still a way that must not be opened.
    closed_newer: the same in Hermes's newest code; None where it does not differ.
    how: how the test drives it, for the docs; "" where the name says it.
    """

    name: str
    drive: str | Drive
    closed: str = ""
    how: str = ""
    closed_newer: str | None = None

    def closed_here(self) -> str:
        """Why it leads nowhere in the Hermes that is installed; "" where it does."""
        newer = self.closed_newer is not None and installed() is NEWER
        return str(self.closed_newer) if newer else self.closed


@dataclass(frozen=True)
class Group:
    """Ways that belong together. Those that are text are driven in one process.

    plugins: sources of other Hermes plugins by name. Where they are is in `PLACES`; one that has
    no name of these lies in the user's folder.
    extensions: what judges; "no-evil" if nothing else is said.
    env: of the process; unless it says otherwise nobody has to be asked, as in `hermes -z`.
    notes: what the docs say below the table.
    """

    key: str
    title: str
    ways: Sequence[Way]
    prologue: str = ""
    plugins: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=lambda: {"no-evil": NO_EVIL})
    config: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=lambda: {"HERMES_YOLO_MODE": "1"})
    timeout: float = 500
    notes: str = ""


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
    failed = [str(each) for each in wrong]
    wrong.clear()
    goes_on = False
    if GUARDED:
        stage.use(agent, jot('fine'))
        goes_on = any('jot: fine' in each for each in left())
    tried[name] = {'evil': evil, 'goes_on': goes_on, 'told': repr(told), 'wrong': failed}
report(**tried)
"""


def _driver(group: Group, *, guarded: bool) -> str:
    parts = [f"how, OPTIONS, wrong, GUARDED = {{}}, {{}}, [], {guarded}", dedent(group.prologue)]
    parts.append("WAYS = {}")
    for number, way in enumerate(group.ways):
        if isinstance(way.drive, str):
            body = indent(dedent(way.drive).strip(), "    ")
            parts.append(f"def way_{number}(agent):\n{body}\nWAYS[{way.name!r}] = way_{number}")
    return "\n".join([*parts, _LOOP])


def home_of(
    base: Path,
    guarded: bool,
    model: ScriptedModel | None = None,
    *,
    extensions: Mapping[str, str] | None = None,
    **options: Any,
) -> HermesHome:
    """A home with our plugin and extensions ("no-evil" if not said), or with neither.

    options: of `HermesHome`.
    """
    judging = {"no-evil": NO_EVIL} if extensions is None else extensions
    plugins = (PLUGIN,) if guarded else ()
    home = HermesHome(base, model, plugins=plugins, start=warm_start, **options)
    for name, source in judging.items() if guarded else ():
        home.extension(name, source)
    return home


def files_left(folder: Path) -> tuple[str, ...]:
    """Every file below a folder, as `name: text`."""
    return tuple(
        f"{path.relative_to(folder)}: {path.read_text('utf-8', 'replace')}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    )


def came_of(folder: Path, told: object = "") -> Tried:
    """What a way has left in a folder: evil, and what is fine as a sign that the agent goes on."""
    left = files_left(folder)
    evil = tuple(each for each in left if "evil" in each)
    return Tried(evil, any(": fine" in each for each in left), str(told))


def _in_one_process(group: Group, base: Path, guarded: bool) -> dict[str, Tried]:
    home = home_of(base, guarded, extensions=group.extensions, config=group.config)
    sites = {}
    for name, source in group.plugins.items():
        if name in (BEFORE, AFTER):
            sites[name] = pip_plugin(home, name, source)
        else:
            plugin(home, name, source)
    env = dict(group.env)
    if BEFORE in sites:
        env["PYTHONPATH"] = str(sites[BEFORE])
    later = [sites[AFTER]] if AFTER in sites else []
    driver = _driver(group, guarded=guarded)
    told = play(home, driver, later=later, timeout=group.timeout, **env)
    return {name: _tried(each) for name, each in told.items()}


def _tried(told: Mapping[str, Any]) -> Tried:
    return Tried(tuple(told["evil"]), told["goes_on"], told["told"], tuple(told["wrong"]))


def _drives(group: Group) -> dict[str, tuple[Drive | None, list[Way]]]:
    """What is driven together, by a name for its files; None: the ways that are text."""
    found: dict[str, tuple[Drive | None, list[Way]]] = {}
    for way in group.ways:
        function = None if isinstance(way.drive, str) else way.drive
        name = group.key if function is None else f"{group.key}-{function.__name__}"
        found.setdefault(name, (function, []))[1].append(way)
        assert found[name][0] is function, f"two functions of the name {name}"
    return found


def _drive_together(
    group: Group, function: Drive | None, ways: Sequence[Way], base: Path, guarded: bool
) -> dict[str, Tried]:
    if function is None:
        return _in_one_process(group, base, guarded)
    base.mkdir(parents=True, exist_ok=True)
    came = function(base, guarded)
    return dict(came) if isinstance(came, Mapping) else {ways[0].name: came}


def drive(group: Group, base: Path, *, guarded: bool) -> dict[str, Tried]:
    """Try all ways of a group. guarded: with our plugin and the group's extensions."""
    came: dict[str, Tried] = {}
    for name, (function, ways) in _drives(group).items():
        came |= _drive_together(group, function, ways, base / name, guarded)
    return came


def tried(group: Group, way: Way, factory: pytest.TempPathFactory, *, guarded: bool) -> Tried:
    """The same for one way, each drive once for all processes that the tests are spread over."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    drives = _drives(group)
    name = next(name for name, (_, ways) in drives.items() if way in ways)
    file = shared / f"{name}-{guarded}.json"
    with FileLock(f"{file}.lock"):
        if not file.exists():
            function, ways = drives[name]
            found = _drive_together(group, function, ways, factory.mktemp("way"), guarded)
            file.write_text(json.dumps({key: vars(each) for key, each in found.items()}))
    return _tried(json.loads(file.read_text())[way.name])


def check(group: Group, way: Way, factory: pytest.TempPathFactory, *, guarded: bool) -> None:
    """What a row of the table says: refused and going on, or, with the guard taken out, done."""
    each = tried(group, way, factory, guarded=guarded)
    if guarded:
        assert each.evil == (), each
        assert each.goes_on, each
        assert each.wrong == (), each
    else:
        assert bool(each.evil) is not bool(way.closed_here()), each
