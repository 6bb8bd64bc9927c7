"""Makes `home.tar.gz`: a Hermes home and a project as a checkout of this package writes them.

Run it in the root of that checkout, with the Python of its environment:

    .venv/bin/python tests/upgrade/make_home.py home.tar.gz

Everything in the archive is written by that checkout's own commands and by the real Hermes. What
depends on the machine is a word instead: `@BASE@` for the folder, `@CODE@` for the checkout,
`@MODEL@` for the address of the model, `@HERMES@` for the version of Hermes. `test_upgrade.py` puts
them back.
"""

from __future__ import annotations

import io
import os
import re
import sqlite3
import sys
import tarfile
import tempfile
import time
from contextlib import closing
from pathlib import Path

import yaml

sys.path.insert(0, str(Path.cwd()))

from tests.harness.home import HermesHome
from tests.hermes.stage import pip_plugin

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

# What the package keeps in a home, and the conversations of Hermes.
KEPT = (
    "config.yaml",
    "extensions",
    "extensions-state.db",
    "extensions-trust",
    "cache/hermes-ext",
    "logs/extensions.jsonl",
    "plugins",
    "state.db",
)

SECTION = """\
# What my agent may do. I explain each line to my team here.
extensions:
  on: [loop-breaker]  # bundled, off by default
  required: [house-rules]   # no tool without them
  log: payloads
  notify: all
  # Settings of extensions.
  house-rules:
    forbidden: evil  # a word, not a pattern
  project_may_set: ["house-rules.greeting"]
"""

HOUSE_RULES = '''\
"""House rules: counts turns, keeps a word out of files."""

from hermes_ext import HookResult, register_hook


@register_hook("transform_user_input")
def count(user_message, session_state, turn_number, config):
    turns = session_state.count("turns")
    words = [*session_state.get("words", []), user_message]
    session_state["words"] = words
    text = f"{config['greeting']} {user_message} (turn {turn_number}, counted {turns})"
    return HookResult.rewrite(text)


@register_hook("intercept_tool_call", guard=True, tools=["write_file"])
def clean(tool_args, config):
    if config["forbidden"] in tool_args["content"]:
        return HookResult.block(f"no {config['forbidden']} in files")


@register_hook("transform_tool_result")
def shorter(result):
    return HookResult.rewrite(result.replace("bytes_written", "bytes"))
'''
HOUSE_RULES_MANIFEST = """\
name: house-rules
version: "1.2"
description: What holds in this house.  # shown by list
config:
  type: object
  properties:
    forbidden: {type: string, default: "-"}
    greeting: {type: string, default: "Dear model:"}
"""
PLAN_TOOLS = """\
from hermes_ext import HookResult, register_hook


@register_hook("before_llm_call")
def plan(messages):
    return HookResult.inject_system("Follow the plan.")
"""
PROJECT_SETTINGS = """\
house-rules:
  greeting: "Project says:"
"""

TAKER = """\
import hermes_cli.middleware


def run_tool_execution_middleware(tool_name, args, next_call, **context):
    return next_call(args)


def register(ctx):
    hermes_cli.middleware.run_tool_execution_middleware = run_tool_execution_middleware
"""

# A process that keeps its rules, because those on the disk are broken, until it is killed.
KILLED = """\
import os
import sys
from pathlib import Path

from hermes_ext import Runtime

home = Path(os.environ["HERMES_HOME"])
runtime = Runtime.from_config(home=home, cwd=Path.cwd())
file = home / "extensions/house-rules/__init__.py"
text = file.read_text()
file.write_text("import nothing_of_this_name\\n" + text)
with runtime.turn(session_id="elsewhere", cwd=Path.cwd()) as turn:
    turn.transform_user_input("hello")
file.write_text(text)
os._exit(0)
"""


def answer(request: ModelRequest) -> Reply:
    """A file with each turn; the first one is not allowed."""
    if request.messages[-1]["role"] == "tool":
        return Reply("Done.")
    content = "evil" if "first" in request.last_user else "good"
    return Reply(tool_calls=[ToolUse("write_file", {"path": "a.txt", "content": content})])


def make(archive: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="hermes-ext-") as folder,
        ScriptedModel(answer) as model,
    ):
        base = Path(folder).resolve()
        home = HermesHome(base, model, plugins=())
        fill(home)
        live(home)
        words = {str(base): "@BASE@", str(Path.cwd()): "@CODE@", model.root_url: "@MODEL@"}
        pack(home, archive, words)


def fill(home: HermesHome) -> None:
    """What a person writes."""
    text = yaml.safe_dump({key: value for key, value in home.config.items() if key != "plugins"})
    home.config_path.write_text(f"{text}\n{SECTION}", encoding="utf-8")
    rules = {"__init__.py": HOUSE_RULES, "extension.yaml": HOUSE_RULES_MANIFEST}
    home.extension("house-rules", rules)
    home.extension("plan-tools", PLAN_TOOLS, project=True)
    home.extension("noisy", "import nothing_of_this_name\n")
    (home.project / ".hermes/extensions.yaml").write_text(PROJECT_SETTINGS, encoding="utf-8")


def live(home: HermesHome) -> None:
    """What the commands, and Hermes with the package in it, write."""
    for arguments in (["install"], ["disable", "noisy"], ["trust", "--yes"]):
        command(home, *arguments)
    taken = home.config_path.read_bytes()
    lose_hooks(home)
    home.config_path.write_bytes(taken)
    lost = (home.home / "cache/hermes-ext/lost-hooks.json").read_bytes()
    home.python(KILLED).check()
    for file in home.home.glob("extensions/*/*"):  # an archive has no parts of seconds
        os.utime(file, (1.7e9, 1.7e9))
    home.chat("first").check()
    home.chat("second", "--continue").check()
    (home.home / "cache/hermes-ext/lost-hooks.json").write_bytes(lost)
    assert list((home.home / "cache/hermes-ext/not-taken").glob("*.json"))


def command(home: HermesHome, *arguments: str) -> str:
    return home.python("from hermes_ext.cli import main; main()", *arguments).check().stdout


def lose_hooks(home: HermesHome) -> None:
    """One start beside a plugin that takes a function which the hooks need."""
    text = home.config_path.read_text(encoding="utf-8")
    site = pip_plugin(home, "z_taker", TAKER)  # writes a configuration of its own
    enabled = text.replace("hermes-ext-sentinel]", "hermes-ext-sentinel, z_taker]")
    assert enabled != text
    home.config_path.write_text(enabled, encoding="utf-8")
    home.cli("-z", "hello", env={"PYTHONPATH": str(site)})


def pack(home: HermesHome, archive: Path, words: dict[str, str]) -> None:
    files = [path for name in KEPT for path in below(home.home / name)]
    files += below(home.project / ".hermes")
    with tarfile.open(archive, "w:gz") as packed:
        for path in files:
            data = neutral(path, words)
            entry = packed.gettarinfo(path, path.relative_to(home.base).as_posix())
            entry.size, entry.uid, entry.gid, entry.uname, entry.gname = len(data), 0, 0, "", ""
            packed.addfile(entry, io.BytesIO(data))


def below(path: Path) -> list[Path]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [each for each in found if each.is_file() and "__pycache__" not in each.parts]


def neutral(path: Path, words: dict[str, str]) -> bytes:
    """What is in a file, with words in the place of what depends on the machine."""
    data = path.read_bytes()
    if data.startswith(b"SQLite format 3\0"):
        replace_in_database(path, words)
        data = path.read_bytes()
    for machine, word in words.items():
        data = data.replace(machine.encode(), word.encode())
    if path.name == "lost-hooks.json":
        data = re.sub(rb'("hermes_agent": )"[^"]*"', rb'\1"@HERMES@"', data)
    return data


def replace_in_database(path: Path, words: dict[str, str]) -> None:
    """Replace texts in every column, as whole values: a database has lengths in it."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode = DELETE")
        rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        tables = [name for name, sql in rows.fetchall() if sql and "VIRTUAL" not in sql.upper()]
        for table in tables:
            for _, column, *_ in database.execute(f'PRAGMA table_info("{table}")').fetchall():
                for old, new in words.items():
                    database.execute(
                        f'UPDATE "{table}" SET "{column}" = REPLACE("{column}", ?, ?)'
                        f' WHERE typeof("{column}") = \'text\' AND INSTR("{column}", ?)',
                        (old, new, old),
                    )
        database.commit()
        database.execute("VACUUM")


if __name__ == "__main__":
    began = time.monotonic()
    make(Path(sys.argv[1]))
    print(f"{sys.argv[1]}, in {time.monotonic() - began:.0f} s")
