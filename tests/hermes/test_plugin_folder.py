"""The plugin as a folder of `$HERMES_HOME/plugins`: it attaches, or it refuses and says why."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from tests.harness.home import PLUGIN, HermesHome

from hermes_ext.hosts.hermes.process.processes import cold_start
from hermes_ext.testing.model_server import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]
ModelFactory = Callable[..., ScriptedModel]

FOLDER = Path(__file__).parents[2] / "plugin" / "hermes-ext"

GUARD = """
from pathlib import Path
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def no_secrets(tool_name, tool_args):
    with Path({seen!r}).open("a") as file:
        file.write(tool_name + chr(10))
    return HookResult.block("NOT HERE")
"""
WRITE = Reply(tool_calls=(ToolUse("write_file", {"path": "a.txt", "content": "x"}),))

needs_validate = pytest.mark.skipif(
    importlib.util.find_spec("hermes_cli.plugin_validate") is None,
    reason="this Hermes has no `hermes plugins validate`: it came after 0.19",
)
needs_plugin_host = pytest.mark.skipif(
    importlib.util.find_spec("hermes_cli.plugin_host") is None,
    reason="this Hermes has no plugin host: it came after 0.19",
)


# Hides the package from a child: its entry point, and what {hidden} names.
SITE = """
import sys
from importlib.metadata import MetadataPathFinder

found = MetadataPathFinder.find_distributions
MetadataPathFinder.find_distributions = lambda *args, **kwargs: (
    each for each in found(*args, **kwargs) if each._normalized_name != "hermes_ext"
)

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""

Package = Literal["complete", "no entry point", "gone", "broken"]
_HIDDEN = {"gone": "hermes_ext", "broken": "hermes_ext.loading"}


def furnish(home: HermesHome, package: Package) -> None:
    """Put the plugin's folder into the home, and hide what is not to be there of the package."""
    shutil.copytree(
        FOLDER, home.home / "plugins" / PLUGIN, ignore=shutil.ignore_patterns("__pycache__")
    )
    if package != "complete":
        site = home.base / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(SITE.format(hidden=_HIDDEN.get(package)))
        home.extra_env["PYTHONPATH"] = str(site)


def results(model: ScriptedModel) -> list[str]:
    """The tool results that the model got."""
    messages = [message for request in model.main_requests for message in request.messages]
    return [message["content"] for message in messages if message["role"] == "tool"]


@needs_validate
def test_the_folder_passes_what_hermes_checks(hermes: HomeFactory) -> None:
    """`hermes plugins validate` and `doctor` accept the folder: what it registers is declared."""
    home = hermes(start=cold_start)

    validated = home.cli("plugins", "validate", str(FOLDER)).check()
    examined = home.cli("plugins", "doctor", str(FOLDER)).check()

    assert "undeclared" not in validated.stdout
    assert "security scan — safe" in validated.stdout
    assert "import, and registration passed" in examined.stdout


@needs_validate
def test_what_refuses_is_declared_too(hermes: HomeFactory) -> None:
    """The folder passes where the package is gone: the hook that refuses is in its manifest."""
    home = hermes(start=cold_start)
    furnish(home, "gone")

    run = home.cli("plugins", "validate", str(FOLDER)).check()

    assert "Validation passed" in run.stdout


@pytest.mark.parametrize("package", ["complete", "no entry point"])
def test_an_enabled_folder_blocks_a_call(
    hermes: HomeFactory, model_factory: ModelFactory, package: Package
) -> None:
    """A guard blocks a call, and is asked once, also where the entry point is there as well."""
    model = model_factory([WRITE, Reply("Done.")])
    home = hermes(model, start=cold_start)
    furnish(home, package)
    home.extension("guard", GUARD.format(seen=str(home.base / "seen")))

    home.oneshot("write a file").check()

    assert not (home.project / "a.txt").exists()
    assert "NOT HERE" in results(model)[0]
    assert (home.base / "seen").read_text() == "write_file\n"


@pytest.mark.parametrize("package", _HIDDEN)
def test_a_missing_package_refuses_tools(
    hermes: HomeFactory, model_factory: ModelFactory, package: Package
) -> None:
    """Where the package is gone or broken, one line says so and what to do, and no tool runs."""
    model = model_factory([WRITE, Reply("Done.")])
    home = hermes(model, start=cold_start)
    furnish(home, package)

    run = home.oneshot("write a file").check()

    assert not (home.project / "a.txt").exists()
    assert "hermes-ext cannot be loaded" in results(model)[0]
    (told,) = [line for line in run.stderr.splitlines() if "hermes-ext" in line]
    assert f"No module named '{_HIDDEN[package]}'" in told
    assert "hermes plugins disable hermes-ext" in told


def test_a_missing_package_can_be_switched_off(
    hermes: HomeFactory, model_factory: ModelFactory
) -> None:
    """`HERMES_EXT_OFF` turns off what stands in for the package, too."""
    model = model_factory([WRITE, Reply("Done.")])
    home = hermes(model, start=cold_start, extra_env={"HERMES_EXT_OFF": "1"})
    furnish(home, "gone")

    run = home.oneshot("write a file").check()

    assert (home.project / "a.txt").exists()
    assert "hermes-ext" not in run.stderr


@needs_plugin_host
@pytest.mark.parametrize("api_mode", ["chat_completions", "codex_responses"])
@pytest.mark.parametrize("folder", [True, False], ids=["folder", "entry point"])
def test_a_separate_plugin_host_closes(
    hermes: HomeFactory, model_factory: ModelFactory, api_mode: str, folder: bool
) -> None:
    """In Hermes's plugin host no request is sent, and the person reads why as the answer."""
    model = model_factory([Reply("The model spoke.")])
    home = hermes(
        model, api_mode=api_mode, start=cold_start, config={"plugins": {"isolation": "host"}}
    )
    if folder:
        furnish(home, "no entry point")

    run = home.oneshot("my password is hunter2").check()

    assert "plugins.isolation: host" in run.stdout
    assert "The model spoke." not in run.stdout
    assert model.main_requests == []


@needs_plugin_host
def test_a_separate_plugin_host_refuses_tools(hermes: HomeFactory) -> None:
    """In Hermes's plugin host a tool call is refused, and so it is after rediscovery."""
    home = hermes(start=cold_start, config={"plugins": {"isolation": "host"}})
    run = home.python(
        """
import json
from hermes_cli.plugins import discover_plugins
from model_tools import handle_function_call
for force in (False, True):
    discover_plugins(force=force)
    print(handle_function_call("write_file", {"path": "a.txt", "content": "x"}))
"""
    ).check()

    refusals = [json.loads(line)["error"] for line in run.stdout.splitlines()]
    assert len(refusals) == 2
    assert all("plugins.isolation: host" in refusal for refusal in refusals)
    assert not (home.project / "a.txt").exists()


def test_a_hermes_started_from_a_plugin_host_attaches(
    hermes: HomeFactory, model_factory: ModelFactory
) -> None:
    """The variable that marks a plugin host, inherited by another Hermes, keeps no rule out."""
    model = model_factory([WRITE, Reply("Done.")])
    home = hermes(model, extra_env={"HERMES_PLUGIN_HOST_PROCESS": "1"})
    home.extension("guard", GUARD.format(seen=str(home.base / "seen")))

    home.oneshot("write a file").check()

    assert "[guard] NOT HERE" in results(model)[0]
