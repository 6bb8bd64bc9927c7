"""In the real Hermes, processes that a handler starts import the extension."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome

from hermes_ext.testing import Reply, ScriptedModel, ToolUse
from hermes_ext.trust.place import find_project
from hermes_ext.trust.store import TrustStore
from hermes_ext.trust.tree import read_tree

pytestmark = pytest.mark.hermes

RULES = {
    "__init__.py": (
        "import multiprocessing, tempfile\n"
        # Newer Hermes has one below its home, which is too long here for the name of a socket.
        "tempfile.tempdir = '/tmp'\n"
        "from hermes_ext import HookResult, register_hook\n"
        "from .work import work\n"
        "@register_hook('intercept_tool_call', guard=True, timeout=90)\n"
        "def check(tool_name):\n"
        "    told = []\n"
        "    for method in ('spawn', 'forkserver'):\n"
        "        with multiprocessing.get_context(method).Pool(1) as pool:\n"
        "            told.append(pool.apply(work, (method,)))\n"
        "    return HookResult.block(' '.join(told))\n"
    ),
    "work.py": "def work(text):\n    return text.upper()\n",
}


@pytest.mark.parametrize("project", [False, True], ids=["global", "project"])
def test_children_import_the_extension(
    model_factory: Callable[..., ScriptedModel], hermes: Callable[..., HermesHome], project: bool
) -> None:
    """A guard that works in processes started by `spawn` and `forkserver` decides in Hermes."""
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    model = model_factory([Reply(tool_calls=(write,)), Reply("Done.")])
    home = hermes(model, git=True)
    home.extension("process-rules", RULES, project=project)
    if project:
        found = find_project(home.project, home=home.home, global_dir=home.home / "extensions")
        assert found is not None
        TrustStore(home.home).trust(read_tree(found))

    home.oneshot("go").check()

    [(_, refused)] = model.main_requests[1].tool_results
    assert "[process-rules] SPAWN FORKSERVER" in refused
    assert not (home.project / "a.txt").exists()
