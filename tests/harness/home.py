"""A scratch Hermes installation, and what tests look for in it afterwards."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from hermes_ext.hosts.hermes.process import home
from hermes_ext.hosts.hermes.process.gateway import API_KEY, Answer, Gateway
from hermes_ext.hosts.hermes.process.home import PLUGIN, hermes_command
from hermes_ext.hosts.hermes.process.processes import Run

__all__ = ["API_KEY", "PLUGIN", "Answer", "Gateway", "HermesHome", "Run", "hermes_command"]


class HermesHome(home.HermesHome):
    """The `HermesHome` of the package, with a look into its database and files."""

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
