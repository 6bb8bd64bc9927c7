"""The settings, and what README.md says about them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from hermes_ext import Runtime

HERE = Path(__file__).resolve().parents[1]
README = (HERE / "README.md").read_text(encoding="utf-8")
SCHEMA = YAML(typ="safe").load((HERE / "extension.yaml").read_text(encoding="utf-8"))["config"]


def loaded(tmp_path: Path, settings: Any, **more: Any) -> Runtime:
    section = {"on": ["workflow-guard"], "workflow-guard": settings} | more
    (tmp_path / "config.yaml").write_text(json.dumps({"extensions": section}), encoding="utf-8")
    return Runtime.from_config(home=tmp_path, cwd=tmp_path)


def test_off_until_named(tmp_path: Path) -> None:
    """Without `on` nothing of it is loaded."""
    assert loaded(tmp_path, {}, on=[]).handlers == ()


def test_every_setting_has_a_default_and_a_description() -> None:
    """The schema says what each setting is when it is left out, and what it is for."""
    for name, setting in SCHEMA["properties"].items():
        assert "default" in setting, name
        assert setting["description"], name


@pytest.mark.parametrize(
    "settings",
    [
        {"plan_path": ""},
        {"plan_path": " "},
        {"plan_path": 5},
        {"allowed_paths": "plans/"},
        {"blocked_tools": [""]},
        {"allowed_tool": ["x"]},
        {"plan_command": ""},
        {"implementation_pattern": ""},
        {"implementation_words": ["fix"]},
        {"languages": ["xx"]},
        {"new_modules": "allow"},
        {"scratch_paths": [" "]},
        {"allowed_commands": [""]},
        {"allowed_commands": ["*"]},
        {"allowed_commands": ["*/bin/ruff check"]},
        {"allowed_commands": ["CI=1 npm test"]},
        {"allowed_commands": ["npm run lint && npm test"]},
        {"allowed_commands": ["npm test > out.txt"]},
        {"allowed_commands": ["npm test", "echo $(date)"]},
        {"allowed_commands": "npm test"},
        {"plan": {"status": " "}},
        {"plan": {"status": ["approved"]}},
        {"plan": {"headings": ["1."]}},
        {"plan": {"max_age_hours": 0}},
        {"plan": {"heading": ["Goal"]}},
        [],
    ],
    ids=str,
)
def test_bad_settings_are_refused(tmp_path: Path, settings: Any) -> None:
    """A setting of a wrong type or name keeps it from loading, and the reason names the key."""
    runtime = loaded(tmp_path, settings)
    [record] = [record for record in runtime.records if record.name == "workflow-guard"]
    assert record.status == "config-error"
    key = next(iter(settings), "") if settings else ""
    assert f"extensions.workflow-guard{'.' if key else ''}{key}" in record.reason


def test_readme_names_each_setting() -> None:
    """README.md explains every setting and shows the defaults."""
    block = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)[2]
    shown = YAML(typ="safe").load(block)["extensions"]["workflow-guard"]
    for name, setting in SCHEMA["properties"].items():
        assert f"`{name}`" in README, name
        assert shown.get(name, setting["default"]) == setting["default"], name


def test_readme_shows_patterns_of_commands() -> None:
    """They are valid."""
    block = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)[3]
    shown = YAML(typ="safe").load(block)["extensions"]["workflow-guard"]["allowed_commands"]
    assert len(shown) == 3
    jsonschema.validate(shown, SCHEMA["properties"]["allowed_commands"])


def test_readme_shows_the_rules_of_a_plan() -> None:
    """Each key of `plan` is in the example and in the table, and the example is valid."""
    rules = SCHEMA["properties"]["plan"]
    block = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)[1]
    shown = YAML(typ="safe").load(block)["extensions"]["workflow-guard"]["plan"]
    jsonschema.validate(shown, rules)
    for name, rule in rules["properties"].items():
        assert f"| `{name}` |" in README
        assert name in shown
        assert "default" in rule
        assert rule["description"]


def test_each_language_of_the_schema_has_words() -> None:
    """`languages` offers what languages.py has."""
    source = (HERE / "languages.py").read_text(encoding="utf-8")
    known = re.findall(r'^    "(\w\w)": Language\(', source, re.MULTILINE)
    assert SCHEMA["properties"]["languages"]["items"]["enum"] == known
    assert SCHEMA["properties"]["languages"]["default"] == known
