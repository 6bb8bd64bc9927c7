"""Many turns of the real `AIAgent` in one child process: a start costs seconds, a turn does not.

A test hands `play` the text of a driver. It runs in the environment of a `HermesHome`, with this
module's names, a scripted model of its own, and a list `seen` that extensions and plugins reach as
`__main__.seen`; what it gives to `report` comes back to the test.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.harness.home import HermesHome

from hermes_ext.testing.model_server import ModelRequest, Reply, ScriptedModel, ToolUse

MODES = ("chat_completions", "anthropic_messages", "codex_responses", "bedrock_converse")
"""The forms of requests: what `Stage.agent_in` takes."""

AWS_KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_MAX_ATTEMPTS": "1"}
"""What the environment of a home has to hold for `bedrock_converse`."""

HEAD = "import __main__\nfrom hermes_ext import HookResult, register_hook\n\n"

_PROLOGUE = """\
import json, os, sys, threading
from pathlib import Path
sys.path.insert(0, {root!r})
sys.path.extend({later!r})
from hermes_ext.testing.model_server import Reply, ToolUse, Usage
from tests.hermes.stage import MODES, Stage, approval_sessions, jot, named, results_of, write
seen = []
import run_agent
stage = Stage()

def report(**facts):
    Path({facts!r}).write_text(json.dumps(facts, default=str))

"""


def write(name: str, content: str = "x", *, id: str | None = None) -> ToolUse:  # noqa: A002
    """A call of `write_file`."""
    return ToolUse("write_file", {"path": name, "content": content}, id)


def jot(text: str, n: Any = 1, *, id: str | None = None) -> ToolUse:  # noqa: A002
    """A call of `jot`, a tool of the stage that costs nothing: a line in the file `jots`."""
    return ToolUse("jot", {"text": text, "n": n}, id)


def approval_sessions() -> Any:
    """The module of Hermes with `set_current_session_key` and `reset_current_session_key`."""
    try:
        from tools import approval_context  # from 0.21 on
    except ImportError:
        from tools import approval

        return approval
    return approval_context


def named(agent: Any, name: str) -> str:
    """What this Hermes calls a tool of 0.17 to 0.19; some have other names from 0.21 on."""
    newer = {"process": "process_manage", "todo": "todo_list"}.get(name, name)
    return newer if newer in agent.valid_tool_names else name


def evaluated_last() -> bool:
    """Whether a call is evaluated only after every other plugin's middleware, as from 0.20 on.

    Such a Hermes asks plugins' `pre_tool_call` hooks after that, and about no call that is refused
    or answered.
    """
    from hermes_cli import plugins

    return hasattr(plugins, "_dispatch_pre_tool_call_hooks")


def play(
    home: HermesHome, driver: str, *, later: Sequence[Path] = (), timeout: float = 120, **env: str
) -> dict[str, Any]:
    """Run a driver to its end and return what it reported.

    later: directories for the end of `sys.path`: what is installed there is found after us.
    """
    facts = home.base / "facts.json"
    facts.unlink(missing_ok=True)
    prologue = _PROLOGUE.format(
        root=str(Path(__file__).parents[2]), later=[str(path) for path in later], facts=str(facts)
    )
    run = home.python(prologue + dedent(driver), timeout=timeout, env=env)
    assert facts.exists(), run
    run.check()
    told: dict[str, Any] = json.loads(facts.read_text())
    return told


class Stage:
    """The scripted model and the agents of one driver."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._reply, auxiliary=self._reply_beside)
        self.model.__enter__()
        self.script: Callable[[ModelRequest], Reply] | None = None
        self.auxiliary: Callable[[ModelRequest], Reply] = lambda request: Reply("A summary.")
        self._replies: list[Reply] = []
        self._lock = threading.Lock()
        self._register_jot()

    def agent(self, **options: Any) -> Any:
        """An agent that talks to the scripted model."""
        from hermes_state import SessionDB
        from run_agent import AIAgent

        settings: dict[str, Any] = {
            "base_url": self.model.base_url,
            "api_key": "sk-test",
            "provider": "custom",
            "model": "scripted",
            "quiet_mode": True,
            "platform": "cli",
            "session_db": SessionDB(),
            "enabled_toolsets": ["stage", "file", "todo"],
            "tool_delay": 0,  # a second, otherwise, between two calls of one reply
        }
        agent = AIAgent(**(settings | options))
        agent.suppress_status_output = True
        return agent

    def agent_in(self, mode: str, **options: Any) -> Any:
        """An agent whose requests have one of the forms in `MODES`."""
        os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = self.model.root_url
        where = {
            "anthropic_messages": {"base_url": self.model.root_url},
            "bedrock_converse": {
                "provider": "bedrock",
                "model": "amazon.nova-pro-v1:0",
                "base_url": "https://bedrock-runtime.us-east-1.amazonaws.com",
                "api_key": "aws-sdk",
            },
        }
        return self.agent(**{"api_mode": mode, **where.get(mode, {}), **options})

    @staticmethod
    def retry_at_once() -> None:
        """Have Hermes send a request again without a pause."""
        import agent.conversation_loop
        import agent.retry_utils

        for module in (agent.conversation_loop, agent.retry_utils):
            module.jittered_backoff = lambda *_, **__: 0.01

    def say(self, agent: Any, text: Any, *replies: Reply, **options: Any) -> dict[str, Any]:
        """One turn: the model gives these replies, then "Done."."""
        with self._lock:
            self._replies = list(replies)
        result: dict[str, Any] = agent.run_conversation(text, **options)
        return result

    def use(self, agent: Any, *calls: ToolUse) -> list[str]:
        """One turn in which the model calls these tools at once; returns their results."""
        result = self.say(agent, "go", Reply(tool_calls=calls))
        return results_of(result)

    @property
    def jots(self) -> list[str]:
        """What `jot` has written in this directory, and forget it."""
        path = Path("jots")
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.unlink(missing_ok=True)
        return text.splitlines()

    def _register_jot(self) -> None:
        from tools.registry import registry

        def run(args: dict[str, Any], **_: Any) -> str:
            with self._lock, Path("jots").open("a", encoding="utf-8") as file:
                file.write(f"{args.get('text')} {args.get('n')!r}\n")
            return json.dumps({"written": args.get("text")})

        kinds = {"text": {"type": "string"}, "n": {"type": "integer"}}
        schema = {"name": "jot", "description": "Jot.", "parameters": {"properties": kinds}}
        schema["parameters"]["type"] = "object"  # type: ignore[index]
        registry.register(name="jot", toolset="stage", schema=schema, handler=run)

    def _reply_beside(self, request: ModelRequest) -> Reply:
        return self.auxiliary(request)

    def _reply(self, request: ModelRequest) -> Reply:
        if self.script is not None:
            return self.script(request)
        with self._lock:
            return self._replies.pop(0) if self._replies else Reply("Done.")


def results_of(result: dict[str, Any]) -> list[str]:
    """The texts of a turn's tool results, in order."""
    return [message["content"] for message in result["messages"] if message["role"] == "tool"]


def plugin(home: HermesHome, name: str, source: str) -> None:
    """Put a Hermes plugin into the user's folder and enable it."""
    folder = home.home / "plugins" / name
    folder.mkdir(parents=True)
    manifest = {"name": name, "version": "1", "description": "x", "kind": "standalone"}
    (folder / "plugin.yaml").write_text(json.dumps(manifest))
    (folder / "__init__.py").write_text(source)
    _enable(home, name)


def pip_plugin(home: HermesHome, name: str, source: str) -> Path:
    """Install a Hermes plugin as a package and enable it; returns the directory it is in."""
    site = home.base / f"site-{name}"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hermes_agent.plugins]\n{name} = {name}_module\n")
    (site / f"{name}_module.py").write_text(source)
    _enable(home, name)
    return site


def _enable(home: HermesHome, name: str) -> None:
    enabled = [*home.config["plugins"]["enabled"], name]
    home.write_config({"plugins": {"enabled": enabled}})


def files_in(directory: str | os.PathLike[str]) -> list[str]:
    """The names of the files in a directory, sorted."""
    return sorted(path.name for path in Path(directory).iterdir() if path.is_file())
