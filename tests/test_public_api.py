"""What authors and hosts import: names, docstrings, weight; every hook is told and tested."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import hermes_ext
import hermes_ext.exceptions
import hermes_ext.testing
from hermes_ext.hooks.table import HookName

ROOT = Path(__file__).resolve().parents[1]
MODULES = (hermes_ext, hermes_ext.exceptions, hermes_ext.testing)
HEAVY = ("asyncio", "jsonschema", "rich", "ruamel", "sqlite3", "yaml")
HOOKS = [hook.value for hook in HookName]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_all_is_sorted_and_resolves(module: ModuleType) -> None:
    """`__all__` is sorted, names nothing twice, and every name of it is there."""
    assert list(module.__all__) == sorted(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("name", hermes_ext.__all__)
def test_docstrings(name: str) -> None:
    """Every public class and function says what it is, and so does each of its public methods."""
    thing = getattr(hermes_ext, name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    assert inspect.getdoc(thing)
    for method, value in vars(thing).items():
        if not method.startswith("_") and (inspect.isfunction(value) or _is_property(value)):
            assert inspect.getdoc(getattr(thing, method)), f"{name}.{method}"


def _is_property(value: object) -> bool:
    return isinstance(value, property | classmethod | staticmethod)


def test_public_names_of_the_contract() -> None:
    """The names that authors and hosts rely on are there."""
    promised = {
        "Action", "CallResult", "CallVerdict", "ChainOutcome", "HookResult", "InputResult",
        "LLMRequest", "RequestResult", "Runtime", "SkipExtension", "Step", "ToolCall",
        "ToolResult", "UserInput", "get_session_state", "get_turn_state", "hookimpl",
        "register_hook",
    }  # fmt: skip
    assert promised <= set(hermes_ext.__all__)


def test_no_such_name() -> None:
    """An unknown name is an AttributeError that names it; `dir` lists the public names."""
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = hermes_ext.no_such_name  # type: ignore[attr-defined]
    assert dir(hermes_ext) == sorted(hermes_ext.__all__)


def test_typed() -> None:
    """The package ships its types."""
    assert Path(hermes_ext.__file__).with_name("py.typed").is_file()


def test_importing_the_package_is_light() -> None:
    """`import hermes_ext` imports nothing that only hosts, commands or the loader need."""
    program = "import sys, hermes_ext; print(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    imported = {name.partition(".")[0] for name in child.stdout.split()}
    assert "hermes_ext" in imported
    assert imported.isdisjoint(HEAVY)


def test_errors_have_one_base() -> None:
    """Every error of the package derives from HermesExtError; SkipExtension is a request."""
    for name in set(hermes_ext.exceptions.__all__) - {"SkipExtension"}:
        assert issubclass(
            getattr(hermes_ext.exceptions, name), hermes_ext.exceptions.HermesExtError
        )


def test_the_feature_requests_import_name() -> None:
    """`agent.extension_hooks` has the public names once it is installed."""
    from hermes_ext.loading.imports import import_name as _import_name

    was_there = "agent" in sys.modules
    _import_name.install()
    try:
        hooks = importlib.import_module("agent.extension_hooks")
        assert hooks.register_hook is hermes_ext.register_hook
        assert set(hooks.__all__) == set(hermes_ext.__all__)
    finally:
        sys.meta_path.remove(_import_name._FINDER)
        if not was_there:
            for name in ("agent.extension_hooks", "agent"):
                sys.modules.pop(name, None)


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented(hook: str) -> None:
    """Each hook has its section in the reference, its row in the README and the authors' guide."""
    assert f"\n## {hook}\n" in (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    assert f"`{hook}`" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"`{hook}`" in (ROOT / "docs/authoring.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("place", ["test_runtime.py", "hermes"])
def test_every_hook_is_tested(hook: str, place: str) -> None:
    """Each hook is in tests of the runtime and in tests through the real Hermes."""
    path = ROOT / "tests" / place
    files = path.glob("test_*.py") if path.is_dir() else [path]
    assert any(hook in file.read_text(encoding="utf-8") for file in files)
