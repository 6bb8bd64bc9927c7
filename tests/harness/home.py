"""A scratch Hermes installation that starts the real `hermes` in child processes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from tests.harness.warm import Started, cold_start

from hermes_ext.testing.model_server import MODEL_NAME, ScriptedModel

ApiMode = Literal["chat_completions", "anthropic_messages"]

Start = Callable[[Sequence[str], Path, Mapping[str, str], IO[bytes], IO[bytes]], Started]

API_KEY = "key-of-the-test-gateway"
PLUGIN = "hermes-ext"

# What slows a run down, waits for a network, or asks the model on its own.
_QUIET: Mapping[str, Any] = {
    # The model is not asked to approve, and a prompt that nobody can answer does not last a minute.
    "approvals": {"mode": "manual", "timeout": 3},
    "agent": {"environment_probe": False},  # asks pip in a child process: 1.5 s per run
    "auxiliary": {"title_generation": {"enabled": False}},
    "compression": {"enabled": False},
    "curator": {"enabled": False},
    "lsp": {"enabled": False},
    "memory": {"nudge_interval": 0},  # with creation_nudge_interval: the background review
    "skills": {"creation_nudge_interval": 0},
    "model_catalog": {"enabled": False},
    "security": {"tirith_enabled": False, "allow_lazy_installs": False},
}


@dataclass(frozen=True)
class Run:
    """What one child process did. Its repr shows the output, for failing assertions."""

    args: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float

    def __repr__(self) -> str:
        head = f"{' '.join(self.args)!r} -> {self.returncode} in {self.seconds:.1f} s"
        return f"<Run {head}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}\n>"

    def check(self) -> Run:
        """Return self; raises AssertionError with the output unless the exit code is 0."""
        if self.returncode != 0:
            raise AssertionError(repr(self))
        return self


@dataclass(frozen=True)
class Answer:
    """What the API server answered.

    session_id: of the `X-Hermes-Session-Id` header, "" without one.
    body: the JSON of a plain answer; of a streamed one `{"events": [...]}`.
    """

    status: int
    text: str
    session_id: str
    body: dict[str, Any]


class HermesHome:
    """A Hermes installation under `base`: `home/` (HERMES_HOME), `user/` (HOME), `project/`.

    model: the server that the config points at; None leaves the model section out.
    api_mode: "anthropic_messages" makes Hermes speak Anthropic's form.
    plugins: `plugins.enabled`; () for Hermes without us.
    extensions: the `extensions` section; None leaves it out.
    config: further settings, merged into the quiet defaults key by key.
    git: makes the project a git repository.
    extra_env: variables for every child.
    skills: whether Hermes installs its bundled skills (slow; off by default).
    start: how processes are started; `warm_start` takes half the time.
    """

    def __init__(
        self,
        base: Path,
        model: ScriptedModel | None,
        *,
        api_mode: ApiMode = "chat_completions",
        plugins: Sequence[str] = (PLUGIN,),
        extensions: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        git: bool = False,
        extra_env: Mapping[str, str] | None = None,
        skills: bool = False,
        start: Start = cold_start,
    ) -> None:
        self.base = base
        self.home = base / "home"
        self.user = base / "user"
        self.project = base / "project"
        self.config_path = self.home / "config.yaml"
        self.extra_env = dict(extra_env or {})
        self._skills = skills
        self.start = start
        self._started = 0
        for folder in (self.home, self.user, self.project, base / "runs", base / "no-skills"):
            folder.mkdir(parents=True, exist_ok=True)
        (base / "authority.pem").write_text(_one_authority())
        if git:
            self._run(("git", "init", "-q", "."), 30, self.project).check()
        self.config: dict[str, Any] = _merged(_QUIET, {"plugins": {"enabled": list(plugins)}})
        if model is not None:
            self.config["model"] = _model_section(model, api_mode)
        if extensions is not None:
            self.config["extensions"] = dict(extensions)
        self.write_config(config or {})

    def write_config(self, changes: Mapping[str, Any]) -> None:
        """Merge `changes` into the settings, key by key, and write `config.yaml`."""
        self.config = _merged(self.config, changes)
        # JSON is YAML too; unescaped, since YAML knows no surrogate pairs.
        text = json.dumps(self.config, indent=2, ensure_ascii=False)
        self.config_path.write_text(text + "\n", encoding="utf-8")

    def extension(
        self,
        name: str,
        source: str | Mapping[str, str],
        manifest: Mapping[str, Any] | None = None,
        *,
        project: bool = False,
    ) -> Path:
        """Write an extension into the home (or the project's `.hermes`); returns its folder.

        source: the text of `__init__.py`, or a text for each relative path.
        """
        root = self.project / ".hermes" if project else self.home
        folder = root / "extensions" / name
        files = {"__init__.py": source} if isinstance(source, str) else dict(source)
        if manifest is not None:
            files["extension.yaml"] = json.dumps(manifest, indent=2, ensure_ascii=False)
        for relative, text in files.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

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
        }
        if "TMPDIR" in os.environ:
            env["TMPDIR"] = os.environ["TMPDIR"]
        if not self._skills:
            env["HERMES_BUNDLED_SKILLS"] = str(self.base / "no-skills")
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

    def python(
        self,
        program: str | Path,
        *args: str,
        timeout: float = 120,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Run Python source (a str) or a script (a Path) as a child of the same environment."""
        if isinstance(program, str):
            script = self.base / "runs" / f"driver-{self._started}.py"
            script.write_text(program, encoding="utf-8")
        else:
            script = program
        return self._run((sys.executable, str(script), *args), timeout, cwd or self.project, env)

    @contextmanager
    def gateway(
        self, *, timeout: float = 90, env: Mapping[str, str] | None = None
    ) -> Iterator[Gateway]:
        """`hermes gateway run` with its API server, ready to be asked; stopped at the end.

        Raises AssertionError with the tail of its output if it does not come up in time.
        """
        port = _free_port()
        log = self.base / "runs" / f"gateway-{port}.log"
        settings = _api_server_env(port) | dict(env or {})
        with log.open("wb") as out:
            command = (*hermes_command(), "gateway", "run")
            process = self.start(command, self.project, self.env(settings), out, out)
            try:
                gateway = Gateway(port, process, log)
                gateway.wait_until_up(timeout)
                yield gateway
            finally:
                _stop(process)

    def session_rows(self) -> list[tuple[str, str]]:
        """(role, content) of every message in `state.db`, oldest first; "" for no content."""
        rows = self.query("SELECT role, content FROM messages ORDER BY id")
        return [(role, content or "") for role, content in rows]

    def session_ids(self) -> list[str]:
        """Ids of all sessions in `state.db`, oldest first."""
        return [row[0] for row in self.query("SELECT id FROM sessions ORDER BY started_at, id")]

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query to `state.db`, read only; [] where there is no database yet."""
        path = self.home / "state.db"
        if not path.exists():
            return []
        with closing(_read_only(path)) as database:
            return database.execute(sql, tuple(parameters)).fetchall()

    def saved_text(self) -> dict[Path, str]:
        """The text of every file in the home, databases (and their -wal) raw and as a dump too.

        Bytes that are no UTF-8 become replacement characters.
        """
        return {path: _file_text(path) for path in sorted(self.home.rglob("*")) if path.is_file()}

    def occurrences(self, needle: str) -> list[Path]:
        """The files of the home that hold the text as it stands or escaped (JSON, repr)."""
        escaped = (json.dumps(needle), json.dumps(needle, ensure_ascii=False), repr(needle))
        forms = {needle, *(form[1:-1] for form in escaped)}
        texts = self.saved_text().items()
        return [path for path, text in texts if any(form in text for form in forms)]

    def _run(
        self,
        command: tuple[str, ...],
        timeout: float,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> Run:
        # Files, not pipes: a grandchild that outlives the child would keep a pipe open.
        self._started += 1
        out = self.base / "runs" / f"{self._started}.out"
        err = out.with_suffix(".err")
        begun = time.monotonic()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = self.start(command, cwd, self.env(env), stdout, stderr)
            code = _wait(process, timeout)
        seconds = time.monotonic() - begun
        told = Run(command, -1 if code is None else code, _text(out), _text(err), seconds)
        if code is None:
            raise TimeoutError(f"still running after {timeout} s: {told!r}")
        return told


class Gateway:
    """A running `hermes gateway run` with its API server on 127.0.0.1."""

    def __init__(self, port: int, process: Started, log: Path) -> None:
        self.port = port
        self.process = process
        self._log = log

    @property
    def output(self) -> str:
        """What the gateway has printed so far."""
        return _text(self._log)

    def wait_until_up(self, timeout: float) -> None:
        """Block until the server answers; AssertionError if it ends or is late."""
        deadline = time.monotonic() + timeout
        while not self._answers():
            # The pause between two looks ends at once if the process does.
            if _wait_briefly(self.process) or time.monotonic() > deadline:
                raise AssertionError(f"no answer from the gateway:\n{self.output[-4000:]}")

    def ask(
        self,
        text: str | list[dict[str, Any]],
        session: str | None = None,
        stream: bool = False,
        *,
        timeout: float = 120,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one user message to `POST /v1/chat/completions`.

        session: the id of a session to continue (`X-Hermes-Session-Id`), new or old. Without it
        the server derives one from the first user message: equal texts share a session.
        """
        body = {"model": "hermes-agent", "messages": [{"role": "user", "content": text}]}
        sent = dict(headers or {})
        if session is not None:
            sent["X-Hermes-Session-Id"] = session
        return self.post("/v1/chat/completions", {**body, "stream": stream}, sent, timeout)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        timeout: float = 120,
    ) -> Answer:
        """Any POST of JSON with the bearer key; server-sent events are read to their end."""
        told = {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)) as link:
            link.request("POST", path, json.dumps(body), {**told, **(headers or {})})
            response = link.getresponse()
            raw = response.read().decode("utf-8")
        session_id = response.getheader("X-Hermes-Session-Id") or ""
        if (response.getheader("Content-Type") or "").startswith("text/event-stream"):
            events = _events(raw)
            return Answer(response.status, _streamed(events), session_id, {"events": events})
        value = json.loads(raw)
        return Answer(response.status, _plain(value), session_id, value)

    def _answers(self) -> bool:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with closing(link):
            try:
                link.request("GET", "/health")
                return link.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False


def hermes_command() -> tuple[str, ...]:
    """The `hermes` script beside this interpreter, else its module."""
    script = Path(sys.executable).parent / "hermes"
    return (str(script),) if script.exists() else (sys.executable, "-m", "hermes_cli.main")


def _model_section(model: ScriptedModel, api_mode: ApiMode) -> dict[str, Any]:
    anthropic = api_mode == "anthropic_messages"
    section: dict[str, Any] = {
        "default": MODEL_NAME,
        "provider": "custom",
        "base_url": model.root_url if anthropic else model.base_url,
        "api_key": "sk-test",
        "context_length": 200_000,
    }
    return section | ({"api_mode": api_mode} if anthropic else {})


def _api_server_env(port: int) -> dict[str, str]:
    return {
        "API_SERVER_ENABLED": "true",
        "API_SERVER_KEY": API_KEY,
        "API_SERVER_HOST": "127.0.0.1",
        "API_SERVER_PORT": str(port),
        "HERMES_ALLOW_ROOT_GATEWAY": "1",
    }


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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: Started, timeout: float) -> int | None:
    """The exit code, or None after killing a process that is late. No child is left behind."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill_group(process)
        process.wait()


def _wait_briefly(process: Started) -> bool:
    try:
        process.wait(0.1)
    except subprocess.TimeoutExpired:
        return False
    return True


def _stop(process: Started) -> None:
    process.terminate()
    _wait(process, 20)


def _kill_group(process: Started) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _file_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:  # a running Hermes removes its temporary files
        return ""
    text = raw.decode("utf-8", "replace")
    return f"{text}\n{_dump(path)}" if raw.startswith(b"SQLite format 3\0") else text


def _dump(path: Path) -> str:
    """Every value of every table, full-text shadow tables included."""
    with closing(_read_only(path)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return "\n".join(text for (name,) in names for text in _table_texts(database, name))


def _table_texts(database: sqlite3.Connection, name: str) -> list[str]:
    try:
        rows = database.execute('SELECT * FROM "{}"'.format(name.replace('"', '""'))).fetchall()
    except sqlite3.DatabaseError:
        # A virtual table whose module is missing here; its shadow tables are read all the same.
        return []
    return [_cell_text(value) for row in rows for value in row if value is not None]


def _cell_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)


def _events(raw: str) -> list[dict[str, Any]]:
    lines = (line.removeprefix("data:").strip() for line in raw.splitlines() if line[:5] == "data:")
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


def _streamed(events: Sequence[Mapping[str, Any]]) -> str:
    choices = [choice for event in events for choice in event.get("choices") or []]
    return "".join((choice.get("delta") or {}).get("content") or "" for choice in choices)


def _plain(body: Mapping[str, Any]) -> str:
    choices = body.get("choices") or [{}]
    return str((choices[0].get("message") or {}).get("content") or "")
