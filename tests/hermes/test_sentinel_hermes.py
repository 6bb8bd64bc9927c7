"""The sentinel in the real Hermes: with the package gone from the environment, no tool runs."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness.home import HermesHome

import hermes_ext
from hermes_ext.hosts.hermes.home.installing import install
from hermes_ext.hosts.hermes.home.sentinel import NAME, sentinel_folder
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

WRITE = ToolUse("write_file", {"path": "a.txt", "content": "x"})

# `hermes -z go` in this Python, with another list of installed packages.
START = """
import sys
sys.path[:] = [path for path in sys.path if path not in {without!r}] + [{instead!r}]
sys.argv = ["hermes", "-z", "go"]
{before}
from hermes_cli.main import main
main()
"""
FORCED = """
import hermes_cli.plugins as plugins
def again(**_):
    plugins.discover_plugins(force=True)
plugins.discover_plugins()
plugins.get_plugin_manager()._hooks.setdefault("pre_llm_call", []).append(again)
"""


def environment_without(home: HermesHome) -> tuple[list[str], str]:
    """The entries of `sys.path` to leave out, and a folder that has all packages but ours."""
    site = Path(sysconfig.get_paths()["purelib"])
    folder = home.base / "site"
    folder.mkdir()
    for each in site.iterdir():
        if not each.name.startswith(("hermes_ext", "_hermes_ext", "hermes-ext")):
            (folder / each.name).symlink_to(each)
    source = Path(hermes_ext.__file__).parents[1]
    return [str(site), str(source)], str(folder)


@pytest.mark.parametrize("before", ["", FORCED], ids=["start", "discovered again"])
def test_tools_are_refused_when_the_package_is_gone(
    model_factory: ModelFactory, hermes: HomeFactory, before: str
) -> None:
    """Without the package, the call is refused with the reason, and one line at the start names
    the folder to delete; also after Hermes has discovered its plugins anew.
    """
    model = model_factory([Reply(tool_calls=(WRITE,)), Reply("Done.")])
    home = hermes(model)
    home.write_config({"extensions": {"required": ["guard"]}})
    install(home.home)
    without, instead = environment_without(home)

    run = home.python(START.format(without=without, instead=instead, before=before)).check()

    assert run.stdout == "Done.\n"
    assert not (home.project / "a.txt").exists()
    [(_, refused)] = model.main_requests[1].tool_results
    assert "[hermes-ext] Tool calls are refused because the package hermes-ext is gone" in refused
    [line] = [line for line in run.stderr.splitlines() if line.startswith("hermes-ext: ")]
    assert f"the package hermes-ext is gone from {sys.prefix}" in line
    assert line.endswith(f"delete the folder {sentinel_folder(home.home)}")


def test_tools_are_refused_when_hermes_does_not_load_the_package(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """An installed package that `plugins.enabled` does not name is not in force, and one line says
    that; with everything switched off, the sentinel is silent too.
    """
    model = model_factory(
        [Reply(tool_calls=(WRITE,)), Reply("Done."), Reply(tool_calls=(WRITE,)), Reply("Done.")]
    )
    home = hermes(model)
    install(home.home, sentinel=True)
    home.write_config({"plugins": {"enabled": [NAME]}})

    run = home.oneshot("go").check()

    assert not (home.project / "a.txt").exists()
    [line] = [line for line in run.stderr.splitlines() if line.startswith("hermes-ext: ")]
    assert "Hermes has not loaded hermes-ext, which is installed" in line
    off = home.cli("-z", "go", env={"HERMES_EXT_OFF": "1"}).check()
    assert (home.project / "a.txt").exists()
    assert "hermes-ext" not in off.stderr


def test_it_does_nothing_beside_the_package(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """Where the package is attached, tools run and nothing is printed."""
    model = model_factory([Reply(tool_calls=(WRITE,)), Reply("Done.")])
    home = hermes(model)
    install(home.home, sentinel=True)

    run = home.oneshot("go").check()

    assert (home.project / "a.txt").exists()
    assert "hermes-ext" not in run.stderr
