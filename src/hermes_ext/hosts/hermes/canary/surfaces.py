"""One turn of the installed Hermes in a scratch home, on one of its surfaces."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import IO

from hermes_ext._text import printable
from hermes_ext.hosts.hermes.canary import marks, rules
from hermes_ext.hosts.hermes.canary.proofs import Surface
from hermes_ext.hosts.hermes.canary.scratch import UsersPlugins
from hermes_ext.hosts.hermes.canary.turn import Player, Seen, furnish, records_in, standing_in
from hermes_ext.hosts.hermes.process.home import PLUGIN, HermesHome
from hermes_ext.hosts.hermes.process.processes import Run, Start, Started, kill_group
from hermes_ext.testing.model_server import ScriptedModel

SURFACES: tuple[Surface, ...] = ("one-shot", "chat", "api-server")

_MANIFEST = f"name: {marks.PLUGIN}\nversion: '1'\ndescription: x\nkind: standalone\n"
_SECONDS_MORE = 30  # that Hermes gives the command to end it


def why_not_on(surface: Surface) -> str | None:
    """Why this Hermes has no such surface; None if it has."""
    if surface == "api-server" and importlib.util.find_spec("aiohttp") is None:
        return "Hermes has no API server without aiohttp"
    return None


class Children:
    """The processes of one turn, so that another thread can end them."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._running: list[Started] = []
        self._over = False

    def start(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
    ) -> Started:
        """As `cold_start`; raises OSError after `end`."""
        with self._lock:
            if self._over:
                raise OSError("broken off")
            process = self._start(command, cwd, env, out, err)
            self._running.append(process)
            return process

    def done(self) -> None:
        """They have ended by themselves."""
        with self._lock:
            self._running.clear()

    def end(self) -> None:
        """Kill those that run, with all that they have started; no other starts."""
        with self._lock:
            self._over = True
            for process in self._running:
                kill_group(process)


def one_turn(
    base: Path, surface: Surface, plugins: UsersPlugins, deadline: float, children: Children
) -> Seen:
    """Start Hermes below `base`, say one thing, and look at what came of it.

    Never raises because of what Hermes does; `Seen.failure` tells.
    """
    seconds = max(deadline - time.monotonic(), 1.0)
    deadline = time.monotonic() + seconds
    project = base / "project"
    player = Player(project)
    late = False
    with ScriptedModel(player) as model:
        try:
            hermes = _home(base, model, plugins, seconds, children)
            furnish(project)
            said = _say(hermes, surface, deadline)
            failure = f"Hermes answered: {_last_line(said)}"
        except TimeoutError:
            failure, late = f"it was still running after {seconds:.0f} s", True
        except (AssertionError, ImportError, OSError, ValueError, HTTPException) as error:
            failure = _last_line(str(error))
            late = time.monotonic() > deadline
        finally:
            children.done()
        requests = tuple(model.main_requests)
    told = standing_in(base / "standing.json")
    return Seen(
        records_in(base / "records.jsonl"),
        requests,
        tuple(player.made),
        (project / marks.BLOCKED_FILE).exists(),
        tuple(told["seams"]),
        tuple(name for name in told["plugins"] if name not in (PLUGIN, marks.PLUGIN)),
        # What Hermes and its plugins make of the last words is not what is tried.
        None if player.finished else failure,
        late,
        (project / marks.CONFINED_FILE).exists(),
    )


def _home(
    base: Path, model: ScriptedModel, plugins: UsersPlugins, seconds: float, children: Children
) -> HermesHome:
    env = {
        marks.RECORDS: str(base / "records.jsonl"),
        marks.STANDING: str(base / "standing.json"),
        marks.SECONDS: str(seconds + _SECONDS_MORE),
    }
    # Plugins that the user's own Hermes finds there are part of the picture.
    if "PYTHONPATH" in os.environ:
        env["PYTHONPATH"] = os.environ["PYTHONPATH"]
    hermes = HermesHome(
        base,
        model,
        extensions={},
        config={
            "plugins": {**plugins.section, "enabled": [*plugins.enabled, PLUGIN, marks.PLUGIN]}
        },
        extra_env=env,
        start=children.start,
    )
    hermes.install_extension(Path(rules.__file__), name=f"{marks.EXTENSION}.py")
    plugins.put_into(hermes.home / "plugins")
    folder = hermes.home / "plugins" / marks.PLUGIN
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(_MANIFEST, encoding="utf-8")
    (folder / "__init__.py").write_text(
        "from hermes_ext.hosts.hermes.canary.watch import register\n"
    )
    return hermes


def _say(hermes: HermesHome, surface: Surface, deadline: float) -> str:
    """What a person gets to see of the answer."""

    def left() -> float:
        return max(deadline - time.monotonic(), 1.0)

    if surface != "api-server":
        ask: Callable[..., Run] = hermes.oneshot if surface == "one-shot" else hermes.chat
        run = ask(marks.TYPED, timeout=left())
        if run.returncode != 0:
            told = run.stderr.strip() or run.stdout
            raise AssertionError(f"Hermes ended with exit code {run.returncode}: {told}")
        return run.stdout
    with hermes.gateway(timeout=left()) as gateway:
        answer = gateway.ask(marks.TYPED, timeout=left())
        if answer.status != 200:
            raise AssertionError(
                f"the API server answered with status {answer.status}: {answer.body}"
            )
        return answer.text


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return printable(lines[-1][:300]) if lines else "nothing"
