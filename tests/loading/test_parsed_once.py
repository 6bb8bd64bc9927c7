"""What people write in YAML is parsed once in a start."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hermes_ext import Runtime
from hermes_ext.cli import main
from hermes_ext.settings import yaml_nodes

RULE = """\
from hermes_ext import register_hook

@register_hook("intercept_tool_call")
def rule(tool_name):
    return None
"""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How often each file was parsed."""
    counts: Counter[Path] = Counter()
    composed = yaml_nodes._composed

    def counted(file: Path, text: str) -> yaml_nodes.Document:
        counts[file] += 1
        return composed(file, text)

    monkeypatch.setattr(yaml_nodes, "_composed", counted)
    return counts


def test_the_configuration_and_each_manifest_are_parsed_once(
    tmp_path: Path, parsed: Counter[Path]
) -> None:
    """A start and its first turn parse `config.yaml` and every manifest once."""
    folder = tmp_path / "extensions" / "rule"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(RULE)
    (folder / "extension.yaml").write_text("name: rule\n")
    config = tmp_path / "config.yaml"
    config.write_text("extensions: {log: 'off'}\n")
    runtime = Runtime.from_config(home=tmp_path, cwd=tmp_path)
    with runtime.turn(session_id="s") as turn:
        turn.intercept_tool_call("x", {})
    runtime.close()

    assert parsed[config] == 1
    assert parsed[folder / "extension.yaml"] == 1
    assert set(parsed.values()) == {1}


def test_list_parses_the_configuration_once(tmp_path: Path, parsed: Counter[Path]) -> None:
    """Also where it says whether Hermes loads the plugin, which is in the same file."""
    config = tmp_path / "config.yaml"
    config.write_text("plugins: {enabled: [hermes-ext]}\n")
    assert main(["list", "--home", str(tmp_path)]) == 0
    assert parsed[config] == 1
