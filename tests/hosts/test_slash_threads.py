"""A gateway's own threads are not those in which slash commands run."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hermes_ext.hosts.hermes.adapter.person import commands
from hermes_ext.hosts.hermes.adapter.state import state

pytestmark = pytest.mark.hermes

WAITS = """
from hermes_ext import register_command
from the_gate import gate

@register_command("wait")
def wait(args, session_id):
    gate.wait(60)
    return f"{session_id} waited {args}"
"""


def test_a_command_that_hangs_leaves_the_gateway_its_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the gateway does beside its loop for other messages goes on."""
    folder = tmp_path / "extensions" / "slow"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(WAITS)
    gate = threading.Event()
    module = ModuleType("the_gate")
    module.gate = gate  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "the_gate", module)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(state, "runtimes", {})
    session = SimpleNamespace(session_id="s")
    runner = SimpleNamespace(
        session_store=SimpleNamespace(get_or_create_session=lambda source: session)
    )

    async def handled(runner: Any, event: Any) -> str:
        run = commands.command_handler(lambda name: None, "wait")
        assert run is not None
        return str(await run("long"))

    async def gateway() -> str:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        said = asyncio.ensure_future(commands.in_gateway(handled, runner, SimpleNamespace()))
        try:
            await asyncio.sleep(0)  # the command has been handed over
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 20) == "done"
            assert not said.done()
        finally:
            gate.set()
        return str(await said)

    assert asyncio.run(gateway()) == "s waited long"
