"""A scratch Hermes installation that starts the real `hermes` in child processes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol, cast

from hermes_ext.hosts.hermes.facts.host_package import has_main, host_package, host_program
from hermes_ext.hosts.hermes.process.gateway import Gateway, api_server_env, free_port
from hermes_ext.hosts.hermes.process.processes import Run, Start, cold_start, run, stop

PLUGIN = "hermes-ext"
MODEL_NAME = "scripted"
# What slows a run down, waits for a network, or asks the model on its own.
_QUIET: Mapping[str, Any] = {
    # The model is not asked to approve, and a prompt that nobody can answer does not last a minute.
    "approvals": {"mode": "manual", "timeout": 3},
    "agent": {"environment_probe": False},  # asks pip in a child process: 1.5 s per run
    "auxiliary": {"title_generation": {"enabled": False}},
    "compression": {"enabled": False},
    "curator": {"enabled": False},
    "display": {"file_mutation_verifier": False},  # a footer below the answer
    "lsp": {"enabled": False},
    "memory": {"nudge_interval": 0},  # with creation_nudge_interval: the background review
    "skills": {"creation_nudge_interval": 0},
    "model_catalog": {"enabled": False},
    # Newer Hermes asks about it at the first start in a terminal, and waits.
    "telemetry": {"shared_metrics": {"enabled": False, "send": False, "offer_version": 2}},
    "tools": {"tool_search": {"enabled": "off"}},  # every tool is offered, none is looked up first
    "security": {"tirith_enabled": False, "allow_lazy_installs": False},
}


class ModelServer(Protocol):
    """Where a model answers; `hermes_ext.testing.ScriptedModel` is one."""

    @property
    def root_url(self) -> str: ...
    @property
    def base_url(self) -> str: ...


class HermesHome:
    """A Hermes installation under `base`: `home/` (HERMES_HOME), `user/` (HOME), `project/`.

    model: the server that the config points at; None leaves the model section out.
    plugins: `plugins.enabled`; () for Hermes without this package.
    extensions: the `extensions` section; None leaves it out.
    config: further settings, merged into the quiet defaults key by key.
    git: makes the project a git repository.
    extra_env: variables for every child.
    start: how processes are started; any function like `cold_start`.
    """

    def __init__(
        self,
        base: Path,
        model: ModelServer | None,
        *,
        plugins: Sequence[str] = (PLUGIN,),
        extensions: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        git: bool = False,
        extra_env: Mapping[str, str] | None = None,
        start: Start = cold_start,
    ) -> None:
        self.base = base
        self.home = base / "home"
        self.user = base / "user"
        self.project = base / "project"
        self.config_path = self.home / "config.yaml"
        self.extra_env = dict(extra_env or {})
        self.start = start
        self._started = 0
        for folder in (self.home, self.user, self.project, base / "runs", base / "no-skills"):
            folder.mkdir(parents=True, exist_ok=True)
        (base / "authority.pem").write_text(_one_authority())
        if git:
            self._run(("git", "init", "-q", "."), 30, self.project).check()
        self.config: dict[str, Any] = _merged(_QUIET, {"plugins": {"enabled": list(plugins)}})
        if model is not None:
            self.config |= self.model_sections(model)
        if extensions is not None:
            self.config["extensions"] = dict(extensions)
        self.write_config(config or {})

    def model_sections(self, model: ModelServer) -> dict[str, Any]:
        """The settings that make Hermes ask this model, by chat completions."""
        section = {"default": MODEL_NAME, "provider": "custom", "context_length": 200_000}
        return {"model": {**section, "base_url": model.base_url, "api_key": "sk-test"}}

    def write_config(self, changes: Mapping[str, Any]) -> None:
        """Merge `changes` into the settings, key by key, and write `config.yaml`."""
        self.config = _merged(self.config, changes)
        # JSON is YAML too; unescaped, since YAML knows no surrogate pairs.
        text = json.dumps(self.config, indent=2, ensure_ascii=False)
        self.config_path.write_text(text + "\n", encoding="utf-8")

    def install_extension(self, source: Path, *, name: str | None = None) -> Path:
        """Copy an extension (a folder or a single file) into the home; returns where it is now.

        name: what it is called there; by default as it is called where it comes from. Bytecode,
        version control and a folder `tests` stay behind.

        Raises FileExistsError if the home has one of that name.
        """
        target = self.home / "extensions" / (name or source.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".git", "tests", ".*_cache")
            shutil.copytree(source, target, ignore=ignored, symlinks=True)
        elif target.exists():
            raise FileExistsError(f"{target} is there already")
        else:
            shutil.copy2(source, target)
        return target

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of a child: nothing of the tests' own but PATH and TMPDIR."""
        scripts = str(Path(sys.executable).parent)
        env = {
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
            "HOME": str(self.user),
            "HERMES_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "TERM": "dumb",
            # Reading all authorities takes 60 ms, and Hermes does it eight times for an agent.
            "SSL_CERT_FILE": str(self.base / "authority.pem"),
            "HERMES_SKIP_SSL_GUARD": "1",
            "HERMES_BUNDLED_SKILLS": str(self.base / "no-skills"),  # copying them takes long
        }
        if "TMPDIR" in os.environ:
            env["TMPDIR"] = os.environ["TMPDIR"]
        return env | self.extra_env | dict(extra or {})

    def oneshot(self, prompt: str, *args: str, timeout: float = 120) -> Run:
        """`hermes -z PROMPT`: the final answer is stdout. It cannot resume a session."""
        return self.cli("-z", prompt, *args, timeout=timeout)

    def chat(self, prompt: str, *args: str, timeout: float = 120) -> Run:
        """`hermes chat -q PROMPT`; `--continue` or `--resume ID` in args resume a session."""
        return self.cli("chat", "-q", prompt, *args, timeout=timeout)

    def cli(
        self,
        *args: str,
        timeout: float = 120,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Any `hermes` command, in the project unless `cwd` says otherwise.

        Raises TimeoutError, with the output so far, after killing the process group.
        """
        return self._run((*hermes_command(), *args), timeout, cwd or self.project, env)

    @contextmanager
    def gateway(
        self, *, timeout: float = 90, env: Mapping[str, str] | None = None
    ) -> Iterator[Gateway]:
        """`hermes gateway run` with its API server, ready to be asked; stopped at the end.

        Raises AssertionError with the tail of its output if it does not come up in time.
        """
        gateway = self._gateway_up(timeout, env, tries=3)
        try:
            yield gateway
        finally:
            stop(gateway.process)

    def _gateway_up(self, timeout: float, env: Mapping[str, str] | None, *, tries: int) -> Gateway:
        port, key = free_port(), token_hex()
        log = self.base / "runs" / f"gateway-{port}.log"
        settings = api_server_env(port, key) | dict(env or {})
        with log.open("wb") as out:
            command = (*hermes_command(), "gateway", "run")
            process = self.start(command, self.project, self.env(settings), out, out)
        gateway = Gateway(port, key, process, log)
        try:
            gateway.wait_until_up(timeout)
        except BaseException as error:
            stop(process)
            # Whatever else runs here may have taken the port that was free a moment ago.
            if tries > 1 and isinstance(error, AssertionError) and gateway.port_was_taken:
                return self._gateway_up(timeout, env, tries=tries - 1)
            raise
        return gateway

    def _run(
        self,
        command: tuple[str, ...],
        timeout: float,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> Run:
        self._started += 1
        output = self.base / "runs" / f"{self._started}.out"
        return run(self.start, command, cwd=cwd, env=self.env(env), output=output, timeout=timeout)


def why_not() -> str | None:
    """Why `hermes` cannot be started here, in words; None where it can."""
    host = host_package()
    if host is None:
        return f"hermes-agent is not installed for {sys.executable}; pip install hermes-agent"
    return None if has_main() else f"{host} is a library without a program to start"


def hermes_command() -> tuple[str, ...]:
    """The script beside this interpreter that starts Hermes, else its module."""
    script = Path(sys.executable).parent / host_program()
    return (str(script),) if script.exists() else (sys.executable, "-P", "-m", "hermes_cli.main")


def _one_authority() -> str:
    """The certificate of any one authority: the tests' servers speak plain HTTP."""
    import certifi  # comes with Hermes

    begin = "-----BEGIN CERTIFICATE-----"
    return begin + certifi.contents().split(begin, 2)[1]


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        nested = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(cast("Mapping[str, Any]", old), value) if nested else value
    return merged
