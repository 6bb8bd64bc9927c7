"""Loading in a child process: what an extension prints, hangs or ends cannot reach the command."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hermes_ext._prog import Prog
from hermes_ext._regular import kind_of
from hermes_ext._search_path import environment
from hermes_ext._values import Factory, frozen
from hermes_ext.cli._patience import progress
from hermes_ext.hosts.default import default_host
from hermes_ext.hosts.hermes.adapter.wraps.survey import Survey
from hermes_ext.hosts.hermes.facts.host_package import host_package
from hermes_ext.hosts.hermes.process.processes import kill_group
from hermes_ext.loading.imports.importing import IMPORT_SECONDS
from hermes_ext.settings.config import OFF_SWITCH

REPLAY_SECONDS = 600.0
HOST_SECONDS = 60.0
# Three starts of Hermes at once, cold and on a busy machine.
CANARY_SECONDS = 120.0
_START_SECONDS = 2.0  # that the child and what is behind the import may take


@frozen
class Loading:
    """What loading in a child came to.

    data: what the child wrote, {} if it did not get that far. failure: why it did not, in one
    line. culprit: the extension whose code ran last before that, None if none is known.
    """

    data: dict[str, Any] = Factory(dict)
    failure: str | None = None
    culprit: str | None = None


def load_in_child(
    home: Path,
    cwd: Path | None,
    seconds: float,
    prog: Prog,
    *,
    host: Survey | None = None,
    ci: bool = False,
) -> Loading:
    """Loads the extensions of `home` and `cwd`. Never raises because of what they do.

    host, ci: for the findings of `doctor`.
    """
    asked = {
        # What never ends is given up by the loader, which can go on with the others.
        "import_seconds": min(IMPORT_SECONDS, max(seconds / 2, seconds - _START_SECONDS)),
        "prog": [prog.name, prog.home],
        "host": None if host is None else host.to_json(),
        "ci": ci,
    }
    return _loading("load", home, cwd, seconds, asked)


def run_in_child(
    what: str, home: Path, cwd: Path | None, seconds: float, request: dict[str, Any], doing: str
) -> Loading:
    """Has the child run extensions (`test`, `replay`). Never raises because of what they do.

    request: what it is to do, beside where. doing: what a terminal is told while it takes long.
    """
    asked = {"import_seconds": min(IMPORT_SECONDS, seconds / 2), **request}
    # Whether everything is off in this shell does not matter for what is only tried.
    return _loading(what, home, cwd, seconds, asked, doing, without=OFF_SWITCH)


def _loading(
    what: str,
    home: Path,
    cwd: Path | None,
    seconds: float,
    request: dict[str, Any],
    doing: str | None = None,
    without: str = "",
) -> Loading:
    with tempfile.TemporaryDirectory(prefix="hermes-ext-") as folder:
        result, trail, at = (Path(folder, f"{n}.json") for n in ("result", "trail", "at"))
        asked = {
            "home": str(home),
            "cwd": None if cwd is None else str(cwd),
            "result": str(result),
            "trail": str(trail),
            "progress": str(at),
            **request,
        }
        with progress(doing, lambda: _read(at)) if doing else contextlib.nullcontext():
            ended = _run(what, asked, home, seconds, without)
        data = _read(result)
        if data is not None:
            return Loading(data)
        last, event = _read(trail) or {}, _read(at)
        if event is not None:
            number, events, label = event
            return Loading({}, f"it {ended} at event {number + 1:,} of {events:,} ({label})")
        while_running = f" while running {last['file']}" if last else ""
        return Loading({}, f"loading {ended}{while_running}", last.get("extension"))


def look_at_host(home: Path) -> Survey:
    """Imports Hermes Agent in a child and asks which functions the package can attach to."""
    package = host_package()
    if package is None:
        return Survey()
    config = home / "config.yaml"
    if config.exists() and not config.is_file():  # Hermes opens it, and a pipe would never end
        return Survey(failure=f"{config} is {kind_of(config.stat().st_mode)}, not a file")
    with tempfile.TemporaryDirectory(prefix="hermes-ext-") as folder:
        result = Path(folder, "result.json")
        # Hermes makes its home when it is imported: a name that is misspelt is not to become one.
        place = home if home.is_dir() else Path(folder, "home")
        ended = _run("host", {"result": str(result)}, place, HOST_SECONDS)
        data = _read(result)
        if data is None:
            return Survey(failure=f"importing {package.name} {ended}")
        return Survey(**data)


def _run(what: str, request: dict[str, Any], home: Path, seconds: float, without: str = "") -> str:
    """Runs the child and says how it ended. Its stdout is our stderr.

    without: a variable that it does not get.
    """
    env = {key: value for key, value in environment().items() if key != without}
    process = subprocess.Popen(
        # -P: a folder of the project that has a module's name is not to be imported for it.
        [sys.executable, "-P", "-m", "hermes_ext.cli._child", what],
        stdin=subprocess.PIPE,
        stdout=2,
        env={**env, default_host().home_variable: str(home)},
        start_new_session=True,
    )
    try:
        process.communicate(json.dumps(request).encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"was stopped after {seconds:g} s"
    finally:
        kill_group(process)
        process.wait()
    code = process.returncode
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended the process with exit code {code}"


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
