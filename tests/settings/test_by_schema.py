"""`_by_schema`: an extension's settings against its JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ext._problems import Problem
from hermes_ext.loading.finding.discovery import fault_status
from hermes_ext.records import Status
from hermes_ext.settings.by_schema import schema_fault
from hermes_ext.settings.config import ExtensionsConfig, read_config
from hermes_ext.settings.manifest import Manifest, read_manifest
from hermes_ext.settings.merging import merged_settings

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
    word: {type: string, format: regex}
    command: {pattern: '^[a-z]+( |$)', title: a program's name}
    nested:
      type: object
      properties:
        depth: {type: integer, default: 3}
"""


def given(tmp_path: Path, written: str, schema: str = SCHEMA) -> tuple[ExtensionsConfig, Manifest]:
    (tmp_path / "config.yaml").write_text(f"extensions:\n  my_guard:\n    {written}\n")
    (tmp_path / "extension.yaml").write_text(schema)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    return read_config(tmp_path), manifest


def settings(
    name: str, config: ExtensionsConfig, manifest: Manifest | None = None
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    merged = merged_settings(name, config, manifest)
    return merged.values, merged.problems


def test_defaults_are_filled_in(tmp_path):
    """Defaults of properties apply where nothing is written, inside given mappings too."""
    config, manifest = given(tmp_path, "name: x\n    nested: {}")
    value, problems = settings("my-guard", config, manifest)
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
    first, _ = settings("my-guard", config, manifest)
    first["tools"].append("y")
    assert settings("my-guard", config, manifest)[0]["tools"] == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("name: 5", ":3: extensions.my_guard.name: found the number 5, expected text"),
        ("name: x\n    tools: [a, 2]", ":4: extensions.my_guard.tools[1]: found the number 2"),
        ("name: x\n    level: mid", ":4: extensions.my_guard.level: 'mid' is not one of"),
        (
            "name: x\n    plan_pth: y",
            "4: extensions.my_guard.plan_pth: is not a setting. Did you mean",
        ),
        ("level: low", ":3: extensions.my_guard: the setting 'name' is missing"),
        ("name: x\n    nested: {depth: yes}", "found the boolean true, expected a whole number"),
        (
            "name: x\n    tools: '[a]'",
            ":4: extensions.my_guard.tools: found the string '[a]', expected "
            "a list. Take the quotes away",
        ),
        ("name: x\n    nested: {depth: '3'}", "expected a whole number. Take the quotes away"),
        ("[a]", ":3: extensions.my_guard: found a list, expected a mapping of settings"),
        ("true", "found the boolean true, expected a mapping of settings"),
        ("name: 2024-99-99", "extensions.my_guard: cannot be read"),
        (
            "name: x\n    command: 'make*'",
            ":4: extensions.my_guard.command: found the string 'make*', expected a program's name",
        ),
    ],
)
def test_wrong_settings_are_told_with_file_line_and_key(tmp_path, written, expected):
    """Each fault names the file, its line, the key's path and what was expected."""
    config, manifest = given(tmp_path, written)
    _, problems = settings("my-guard", config, manifest)
    assert len(problems) == 1
    assert str(problems[0]).startswith(f"{config.file}:")
    assert expected in str(problems[0])


def test_what_is_no_regular_expression_is_told_and_used(tmp_path):
    """A guard that stumbles over it fails closed; one that is not loaded would not."""
    config, manifest = given(tmp_path, "name: x\n    word: '(fix'")
    merged = merged_settings("my-guard", config, manifest)
    assert merged.values["word"] == "(fix"
    assert merged.problems == ()
    [told] = map(str, merged.warnings)
    assert told.startswith(f"{config.file}:4: extensions.my_guard.word: found the string '(fix'")
    assert "not a regular expression: missing )" in told


def test_all_faults_are_told_at_once(tmp_path):
    """A person need not run the agent once per fault."""
    config, manifest = given(tmp_path, "name: 1\n    level: 2\n    a: 3\n    b: 4")
    _, problems = settings("my-guard", config, manifest)
    assert [each.line for each in problems] == [5, 6, 4, 3]


def test_without_a_schema_the_settings_are_as_written(tmp_path):
    """No manifest and no section is an empty mapping."""
    config, _ = given(tmp_path, "a: {b: [1]}")
    assert settings("my-guard", config) == ({"a": {"b": [1]}}, ())
    assert settings("other", config) == ({}, ())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            "config:\n  type: objct\n",
            ":2: config.type: is not a valid JSON Schema: 'objct' is not one of",
        ),
        ("config:\n  required: a\n", "found the string 'a', expected a list"),
        (
            "config:\n  $schema: 5\n",
            ":2: config.$schema: is not a valid JSON Schema: found the number",
        ),
        (
            "config: {properties: {a: {pattern: '['}}}\n",
            "config.properties.a.pattern: is not a valid",
        ),
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
    assert settings("my-guard", config, manifest)[1] == (fault,)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{}", ":3: config.properties.a.default: found the string 'x', expected a whole number"),
        ("b: {}", ":5: config.properties.b.properties.c.default[1]: found the string 'y'"),
        ("a: z", "config.yaml:3: extensions.my_guard.a: found the string 'z'"),
    ],
)
def test_a_wrong_default_is_the_manifests_fault(tmp_path, written, expected):
    """Nobody is sent to config.yaml for a value that stands in extension.yaml."""
    schema = (
        "config:\n  properties:\n    a: {type: integer, default: x}\n    b: {properties: {\n"
        "      c: {items: {type: integer}, default: [1, y]}}}\n"
    )
    config, manifest = given(tmp_path, written, schema)
    _, problems = settings("my-guard", config, manifest)
    assert any(expected in str(each) for each in problems)
    assert {each.file for each in problems} <= {config.file, manifest.file}
    assert (config.file in {each.file for each in problems}) == written.startswith("a")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("http://127.0.0.1:9/schema.json", "refers to 'http://127.0.0.1:9/schema.json', which is"),
        ("#/nowhere", "refers to '/nowhere', which is nowhere"),
        ("#", "refers to itself without an end"),
    ],
)
def test_a_reference_that_leads_nowhere(tmp_path, reference, expected):
    """It is the manifest's fault; one to another document is no request to the network."""
    config, manifest = given(tmp_path, "a: 1", f"\nconfig:\n  $ref: '{reference}'\n")
    _, problems = settings("my-guard", config, manifest)
    assert str(problems[0]).startswith(f"{manifest.file}:3: config: {expected}")
    assert fault_status(problems, config) is Status.LOAD_ERROR


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ("1, true, '1', [1], {a: 1}, {a: true}, {a: [1]}", True),
        ("{a: 1, b: 2}, {b: 2, a: 1.0}", False),
        ("[1, [2]], [1, [2]]", False),
        (", ".join(f"{{k: {index}}}" for index in range(20_000)), True),
    ],
)
def test_items_that_are_to_differ(tmp_path, items, unique):
    """Values are compared as JSON compares them, and thousands of mappings in no time."""
    schema = "config: {properties: {list: {uniqueItems: true}}}"
    _, problems = settings("my-guard", *given(tmp_path, f"list: [{items}]", schema))
    assert (problems == ()) == unique
