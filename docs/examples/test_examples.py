"""The examples prove the API: small, typed, public names only, and ready to be copied."""

from __future__ import annotations

import ast
import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_ext import Runtime

HERE = Path(__file__).parent
PUBLIC = ("hermes_ext", "hermes_ext.effects", "hermes_ext.exceptions", "hermes_ext.testing")
EXAMPLES = sorted(each.parent for each in HERE.glob("*/__init__.py"))
FILES = [file for each in EXAMPLES for file in sorted(each.rglob("*.py"))]


def name(path: Path) -> str:
    return str(path.relative_to(HERE))


def imports_of(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Modules, and the names that are imported from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, None) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield from ((str(node.module), each.name) for each in node.names)


def hidden_names_of(tree: ast.AST) -> set[str]:
    """Names with a leading underscore that are used or looked up."""
    found = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    found |= {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    return {each for each in found if each.startswith("_") and each not in ("_", "__file__")}


@pytest.mark.parametrize("file", FILES, ids=name)
def test_only_public_names(file: Path) -> None:
    """From this package what its public modules list, else the standard library and pytest."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for module, imported in imports_of(tree):
        top = module.partition(".")[0]
        if top == "hermes_ext":
            assert module in PUBLIC
            assert imported in importlib.import_module(module).__all__
        else:
            assert top in sys.stdlib_module_names or (top == "pytest" and "tests" in file.parts)
    assert hidden_names_of(tree) == set()


@pytest.mark.parametrize("code", ["from hermes_ext import _chain", "import hermes_ext.chain"])
def test_what_is_not_public_is_seen(code: str) -> None:
    """The test above would see it."""
    ((module, imported),) = imports_of(ast.parse(code))
    assert module not in PUBLIC or imported not in importlib.import_module(module).__all__
    assert hidden_names_of(ast.parse("event._memo + _x")) == {"_memo", "_x"}


@pytest.mark.parametrize("folder", EXAMPLES, ids=name)
def test_size_and_layout(folder: Path) -> None:
    """Below 80 lines, laid out as `hermes-ext new` does it, and told in the docs."""
    code = (folder / "__init__.py").read_text(encoding="utf-8")
    assert len(code.splitlines()) < 80
    files = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
    files = {each for each in files if "__pycache__" not in each}
    assert files == {"__init__.py", "extension.yaml", f"tests/test_{folder.name}.py"}
    page = (HERE.parent / "examples.md").read_text(encoding="utf-8")
    assert f"| [{folder.name}](examples/{folder.name}/__init__.py) |" in page
    assert ast.get_docstring(ast.parse(code))


def test_there_are_twelve() -> None:
    """None is lost on the way."""
    assert len(EXAMPLES) == 12


def test_they_are_copied_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into one home, where all are on, without a word; rtk is there."""
    rtk = tmp_path / "bin" / "rtk"
    rtk.parent.mkdir()
    rtk.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(rtk.parent))
    for each in EXAMPLES:
        shutil.copytree(each, tmp_path / "extensions" / each.name)
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    records = {each.name: each for each in runtime.records if each.source == "global"}
    runtime.close()
    assert records.keys() == {each.name for each in EXAMPLES}
    for record in records.values():
        assert (record.status, record.reason, record.warnings) == ("enabled", "", ())
        assert record.description
    assert runtime.problems == ()
