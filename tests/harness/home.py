"""A scratch Hermes installation, and what tests look for in it afterwards."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

from hermes_ext.hosts.hermes.process import home
from hermes_ext.hosts.hermes.process.gateway import Answer, Gateway
from hermes_ext.hosts.hermes.process.home import MODEL_NAME, PLUGIN, ModelServer, hermes_command
from hermes_ext.hosts.hermes.process.processes import Run

ApiMode = Literal["chat_completions", "anthropic_messages", "codex_responses", "bedrock_converse"]

# Of a vendor whose models Hermes asks by converse alone.
_BEDROCK_MODEL = "amazon.nova-pro-v1:0"

__all__ = ["PLUGIN", "Answer", "Gateway", "HermesHome", "Run", "hermes_command"]


class HermesHome(home.HermesHome):
    """The `HermesHome` of the package, with a look into its database and files.

    api_mode: the provider form that Hermes speaks.
    """

    def __init__(
        self,
        base: Path,
        model: ModelServer | None,
        *,
        api_mode: ApiMode = "chat_completions",
        extra_env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self._api_mode = api_mode
        if model is not None and api_mode == "bedrock_converse":
            extra_env = _bedrock_env(model) | dict(extra_env or {})
        super().__init__(base, model, extra_env=extra_env, **options)

    def model_sections(self, model: ModelServer) -> dict[str, Any]:
        """The settings that make Hermes ask this model, in the provider form that was chosen."""
        mode, size = self._api_mode, {"context_length": 200_000}
        if mode == "bedrock_converse":
            return {"model": {"default": _BEDROCK_MODEL, "provider": "bedrock", **size}}
        sections = super().model_sections(model)
        if mode == "codex_responses":
            # Of a provider without a name Hermes does not believe that it speaks Responses.
            named = {"base_url": model.base_url, "api_key": "sk-test", "api_mode": mode}
            section = {"default": MODEL_NAME, "provider": "scripted", **size}
            return {"model": section, "providers": {"scripted": named}}
        if mode == "anthropic_messages":
            sections["model"] |= {"base_url": model.root_url, "api_mode": mode}
        return sections

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


def _bedrock_env(model: ModelServer) -> dict[str, str]:
    """What makes boto3 take a server on loopback for all of AWS, and try once."""
    return {
        "AWS_ENDPOINT_URL": model.root_url,
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
    }


def _file_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:  # a running Hermes removes its temporary files
        return ""
    text = raw.decode("utf-8", "replace")
    return f"{text}\n{_dump(path)}" if raw.startswith(b"SQLite format 3\0") else text


def _dump(path: Path) -> str:
    """Every value of every table, full-text shadow tables included."""
    # A copy: a process that was killed has left a write-ahead log, which has to be written first.
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copy(f"{path}{suffix}", folder)
        return _dump_copy(Path(folder, path.name))


def _dump_copy(path: Path) -> str:
    with closing(sqlite3.connect(path)) as database:
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
