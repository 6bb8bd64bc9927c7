"""`_settings`: an extension's settings against its JSON Schema or its attrs class."""

from __future__ import annotations

import enum
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal

import attrs
import pytest

from hermes_ext._install.config import ExtensionsConfig, read_config
from hermes_ext._install.manifest import Manifest, read_manifest
from hermes_ext._install.settings import (
    plain_settings,
    read_only,
    schema_fault,
    settings_class,
    structured,
)

SCHEMA = """\
config:
  type: object
  additionalProperties: false
  required: [name]
  properties:
    name: {type: string}
    plan_path: {type: string, default: plan.md}
    level: {enum: [low, high], default: low}
    tools: {type: array, items: {type: string}, default: []}
    nested:
      type: object
      properties:
        depth: {type: integer, default: 3}
"""


def given(tmp_path: Path, settings: str, schema: str = SCHEMA) -> tuple[ExtensionsConfig, Manifest]:
    (tmp_path / "config.yaml").write_text(f"extensions:\n  my_guard:\n    {settings}\n")
    (tmp_path / "extension.yaml").write_text(schema)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    return read_config(tmp_path), manifest


def test_defaults_are_filled_in(tmp_path):
    """Defaults of properties apply where nothing is written, inside given mappings too."""
    config, manifest = given(tmp_path, "name: x\n    nested: {}")
    value, problems = plain_settings("my-guard", config, manifest)
    assert problems == ()
    assert value == {
        "name": "x",
        "plan_path": "plan.md",
        "level": "low",
        "tools": [],
        "nested": {"depth": 3},
    }


def test_defaults_are_not_shared(tmp_path):
    """Changing one extension's settings does not change the schema's default."""
    config, manifest = given(tmp_path, "name: x")
    first, _ = plain_settings("my-guard", config, manifest)
    first["tools"].append("y")
    assert plain_settings("my-guard", config, manifest)[0]["tools"] == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("name: 5", ":3: extensions.my_guard.name: found the number 5, expected string"),
        ("name: x\n    tools: [a, 2]", ":4: extensions.my_guard.tools[1]: found the number 2"),
        ("name: x\n    level: mid", ":4: extensions.my_guard.level: 'mid' is not one of"),
        (
            "name: x\n    plan_pth: y",
            "4: extensions.my_guard.plan_pth: is not a setting. Did you mean",
        ),
        ("level: low", ":3: extensions.my_guard: 'name' is a required property"),
        ("name: x\n    nested: {depth: yes}", "found the boolean true, expected integer"),
        ("[a]", ":3: extensions.my_guard: found a list, expected a mapping of settings"),
        ("true", "found the boolean true, expected a mapping of settings"),
        ("name: 2024-99-99", "extensions.my_guard: cannot be read"),
    ],
)
def test_wrong_settings_are_told_with_file_line_and_key(tmp_path, settings, expected):
    """Each fault names the file, its line, the key's path and what was expected."""
    config, manifest = given(tmp_path, settings)
    _, problems = plain_settings("my-guard", config, manifest)
    assert len(problems) == 1
    assert str(problems[0]).startswith(f"{config.file}:")
    assert expected in str(problems[0])


def test_all_faults_are_told_at_once(tmp_path):
    """A person need not run the agent once per fault."""
    config, manifest = given(tmp_path, "name: 1\n    level: 2\n    a: 3\n    b: 4")
    _, problems = plain_settings("my-guard", config, manifest)
    assert [each.line for each in problems] == [5, 6, 4, 3]


def test_without_a_schema_the_settings_are_as_written(tmp_path):
    """No manifest and no section is an empty mapping."""
    config, _ = given(tmp_path, "a: {b: [1]}")
    assert plain_settings("my-guard", config) == ({"a": {"b": [1]}}, ())
    assert plain_settings("other", config) == ({}, ())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("config:\n  type: objct\n", ":2: config.type: is no valid JSON Schema: 'objct'"),
        ("config:\n  properties:\n    a: {minLength: x}\n", ":3: config.properties.a.minLength"),
    ],
)
def test_a_wrong_schema_is_the_manifests_fault(tmp_path, schema, expected):
    """The schema is checked itself, with the manifest's file and line."""
    config, manifest = given(tmp_path, "a: 1", schema)
    fault = schema_fault(manifest)
    assert fault is not None
    assert fault.file == manifest.file
    assert expected in str(fault)
    assert plain_settings("my-guard", config, manifest)[1] == (fault,)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("{}", ":3: config.properties.a.default: found the string 'x', expected integer"),
        ("b: {}", ":5: config.properties.b.properties.c.default[1]: found the string 'y'"),
        ("a: z", "config.yaml:3: extensions.my_guard.a: found the string 'z'"),
    ],
)
def test_a_wrong_default_is_the_manifests_fault(tmp_path, settings, expected):
    """Nobody is sent to config.yaml for a value that stands in extension.yaml."""
    schema = (
        "config:\n  properties:\n    a: {type: integer, default: x}\n    b: {properties: {\n"
        "      c: {items: {type: integer}, default: [1, y]}}}\n"
    )
    config, manifest = given(tmp_path, settings, schema)
    _, problems = plain_settings("my-guard", config, manifest)
    assert any(expected in str(each) for each in problems)
    assert {each.file for each in problems} <= {config.file, manifest.file}
    assert (config.file in {each.file for each in problems}) == settings.startswith("a")


def test_a_reference_is_never_fetched(tmp_path):
    """A `$ref` to another document is a fault, not a request to the network."""
    schema = "config:\n  $ref: http://127.0.0.1:9/schema.json\n"
    config, manifest = given(tmp_path, "a: 1", schema)
    _, problems = plain_settings("my-guard", config, manifest)
    assert "which is nowhere" in str(problems[0])


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


@attrs.frozen
class Rule:
    tool: str
    limit: int = attrs.field(default=3, validator=attrs.validators.gt(0))


@attrs.frozen
class Config:
    name: str
    plan_path: Path = Path("plan.md")
    ratio: float = 0.5
    level: Level = Level.LOW
    mode: Literal["a", "b"] = "a"
    tools: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    rules: list[Rule] = attrs.field(factory=list)
    limits: dict[str, int] = attrs.field(factory=dict)
    maybe: int | None = None
    anything: Any = None
    _private: bool = False
    made: int = attrs.field(init=False, default=1)


def test_an_attrs_class_is_made_of_plain_values(tmp_path):
    """Simple types, collections, enums, paths and nested classes are made of what YAML gives."""
    raw = {
        "name": "x",
        "plan_path": "~/p.md",
        "ratio": 1,
        "level": "high",
        "mode": "b",
        "tools": ["t"],
        "names": ["n", "n"],
        "rules": [{"tool": "terminal", "limit": 1}],
        "limits": {"a": 1},
        "maybe": None,
        "anything": [1],
        "private": True,
    }
    config, _ = given(tmp_path, "name: x")
    value, problems = structured(Config, raw, "my-guard", config)
    assert problems == ()
    assert value == Config(
        name="x",
        plan_path=Path("~/p.md").expanduser(),
        ratio=1.0,
        level=Level.HIGH,
        mode="b",
        tools=("t",),
        names=frozenset({"n"}),
        rules=[Rule("terminal", 1)],
        limits={"a": 1},
        maybe=None,
        anything=[1],
        private=True,
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("{}", "the setting 'name' is missing"),
        ("{name: 1}", "extensions.my_guard.name: found the number 1, expected text"),
        ("{name: x, plan_pth: y}", 'plan_pth: is not a setting. Did you mean "plan_path"?'),
        ("{name: x, made: 1}", "made: is not a setting"),
        (
            "{name: x, maybe: true}",
            "maybe: found the boolean true, expected a whole number or nothing",
        ),
        ("{name: x, ratio: true}", "expected a number"),
        ("{name: x, mode: c}", "found the string 'c', expected 'a' or 'b'"),
        ("{name: x, level: mid}", "expected 'low' or 'high'"),
        ("{name: x, tools: t}", "tools: found the string 't', expected a list"),
        (
            "{name: x, tools: [1]}",
            "extensions.my_guard.tools[0]: found the number 1, expected text",
        ),
        ("{name: x, rules: [{}]}", "extensions.my_guard.rules[0]: the setting 'tool' is missing"),
        ("{name: x, rules: [{tool: t, limit: 0}]}", "rules[0]: ValueError: 'limit' must be > 0"),
        ("{name: x, limits: {a: b}}", "extensions.my_guard.limits.a: found the string 'b'"),
        ("{name: x, names: [{}]}", "names[0]: found a mapping, expected text"),
    ],
)
def test_what_an_attrs_class_refuses(tmp_path, settings, expected):
    """Unknown, missing and ill-typed settings are told with the key's path and line."""
    config, _ = given(tmp_path, settings)
    value, problems = structured(Config, config.settings_of("my-guard"), "my-guard", config)
    assert value is None
    assert str(problems[0]).startswith(f"{config.file}:3: ")
    assert expected in str(problems[0])


def test_which_class_holds_the_settings():
    """The attrs class that a module of the extension calls `Config`, and nothing else."""
    assert settings_class(SimpleNamespace(Config=Config), __name__) is Config
    assert settings_class(SimpleNamespace(Config=Config), "other_extension") is None
    assert settings_class(SimpleNamespace(Config=dict), __name__) is None
    assert settings_class(SimpleNamespace(Config=Rule("x")), __name__) is None
    assert settings_class(SimpleNamespace(), __name__) is None


def test_handlers_cannot_change_the_settings():
    """Mappings and lists are read-only all the way down."""
    value = read_only({"a": {"b": [1, {"c": 2}]}})
    assert value == {"a": {"b": (1, {"c": 2})}}
    assert isinstance(value["a"]["b"][1], MappingProxyType)
    with pytest.raises(TypeError):
        value["a"]["x"] = 1
