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
from hermes_ext._install.project_settings import read_project_settings
from hermes_ext._install.records import Status
from hermes_ext._install.settings import (
    Merged,
    fault_status,
    merged_settings,
    plain_settings,
    read_only,
    schema_fault,
    settings_class,
    structured,
    typed_settings,
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
        (
            "config:\n  type: objct\n",
            ":2: config.type: is no valid JSON Schema: 'objct' is not one of",
        ),
        ("config:\n  required: a\n", "found the string 'a', expected a list"),
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
        ("{}", ":3: config.properties.a.default: found the string 'x', expected a whole number"),
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


PROJECT = Path("/srv/project/.hermes/extensions.yaml")
RULES = """\
config:
  type: object
  additionalProperties: false
  properties:
    plan: {type: string, default: plan.md}
    tools: {type: array, items: {type: string}, default: [write]}
    limits:
      type: object
      default: {strict: true, calls: 5}
      properties: {strict: {type: boolean}, calls: {type: integer}, days: {default: 7}}
    when: {}
  dependentRequired: {when: [plan]}
"""


def merged(
    tmp_path: Path,
    user: str = "",
    project: str | None = None,
    *,
    may_set: str = "[]",
    schema: str | None = None,
    **options: Any,
) -> Merged:
    """The settings of `my-guard`; `user` and `project` are what stands below its name."""
    section = "".join(f"    {line}\n" for line in user.splitlines())
    (tmp_path / "config.yaml").write_text(
        f"extensions:\n  project_may_set: {may_set}\n  my_guard:\n{section}"
    )
    manifest = None
    if schema is not None:
        (tmp_path / "extension.yaml").write_text(schema)
        manifest = read_manifest(tmp_path)
    raw = project and "".join(f"  {line}\n" for line in project.splitlines())
    file = read_project_settings(PROJECT, None if raw is None else f"My-Guard:\n{raw}".encode())
    return merged_settings("my-guard", read_config(tmp_path), manifest, file, **options)


def lines(problems: tuple[Any, ...]) -> list[str]:
    return [str(each).replace(str(PROJECT), "project") for each in problems]


def test_the_project_is_over_the_user_is_over_the_defaults(tmp_path):
    """Mappings are merged key by key, other values replaced, and each value knows its origin."""
    user = "tools: [a, b]\nlimits: {calls: 9}"
    project = "plan: p.md\nlimits:\n  strict: false"
    result = merged(tmp_path, user, project, schema=RULES, guard=False)
    assert (result.problems, result.warnings) == ((), ())
    assert result.values == {
        "plan": "p.md",
        "tools": ["a", "b"],
        "limits": {"calls": 9, "strict": False, "days": 7},
    }
    assert result.origins == {
        ("plan",): ".hermes/extensions.yaml:2",
        ("tools",): "config.yaml:4",
        ("limits", "calls"): "config.yaml:5",
        ("limits", "strict"): ".hermes/extensions.yaml:4",
        ("limits", "days"): "default",
    }


def test_a_mapping_of_the_project_is_merged_into_a_default_too(tmp_path):
    """What the project leaves out of a mapping stays as the default has it."""
    result = merged(tmp_path, project="limits: {calls: 1}", schema=RULES, guard=False)
    assert result.values["limits"] == {"strict": True, "calls": 1, "days": 7}
    assert result.origins["limits", "strict"] == "default"


@pytest.mark.parametrize(
    ("user", "project", "expected"),
    [
        ("a: {b: 1}", "a: 2", {"a": 2}),
        ("a: 2", "a: {b: 1}", {"a": {"b": 1}}),
        ("a: {b: 1}", "a: {}", {"a": {"b": 1}}),
        ("a: {b: 1}", "a:", {"a": None}),
        ("a:", "a: {b: 1}", {"a": {"b": 1}}),
        ("a: [1, 2]", "a: [3]", {"a": [3]}),
        ("a: {b: {c: 1, d: 2}}", "a: {b: {d: 3, e: 4}}", {"a": {"b": {"c": 1, "d": 3, "e": 4}}}),
    ],
)
def test_what_is_merged_and_what_replaced(tmp_path, user, project, expected):
    """Only two mappings are merged."""
    assert merged(tmp_path, user, project, own=True).values == expected


def test_an_empty_mapping_has_an_origin(tmp_path):
    """A mapping with nothing in it is a value like others."""
    assert merged(tmp_path, "a: {}", own=True).origins == {("a",): "config.yaml:4"}
    assert merged(tmp_path).origins == {}


def test_a_project_sets_of_a_guard_what_the_user_lets_it(tmp_path):
    """Everything else is ignored and told: file, line, key, and what would allow it."""
    project = "plan: p.md\ntools: []\nlimits:\n  calls: 100\n  strict: false"
    may_set = "[my_guard.plan, my-guard.limits.calls]"
    result = merged(tmp_path, "tools: [a]", project, may_set=may_set)
    assert result.problems == ()
    assert result.values == {"plan": "p.md", "tools": ["a"], "limits": {"calls": 100}}
    ignored = "a project sets this only if you let it, because the extension has a guard; ignored"
    assert lines(result.warnings) == [
        f'project:3: My-Guard.tools: {ignored}. To let it, add "my-guard.tools" to '
        f"extensions.project_may_set in {tmp_path / 'config.yaml'}",
        f'project:6: My-Guard.limits.strict: {ignored}. To let it, add "my-guard.limits.strict" to '
        f"extensions.project_may_set in {tmp_path / 'config.yaml'}",
    ]


@pytest.mark.parametrize("options", [{"guard": False}, {"own": True}, {"own": True, "guard": True}])
def test_a_project_sets_anything_of_its_own_and_of_what_is_no_guard(tmp_path, options):
    """Only guards that are somebody else's are closed to it."""
    result = merged(tmp_path, "tools: [a]", "tools: []\nnew: 1", **options)
    assert result.values == {"tools": [], "new": 1}
    assert result.warnings == ()


@pytest.mark.parametrize("user", ["limits: 5", "limits:", "limits: [calls]"])
def test_an_open_key_opens_nothing_above_it(tmp_path, user):
    """A value of the user's is not replaced to make room for a key that is open."""
    result = merged(tmp_path, user, "limits: {calls: 9}", may_set="[my-guard.limits.calls]")
    assert result.values == read_config(tmp_path).settings_of("my-guard")
    assert "My-Guard.limits: a project sets this only if" in lines(result.warnings)[0]


def test_an_open_key_keeps_the_default_beside_it(tmp_path):
    """Setting one key of a mapping does not take away what its default holds otherwise."""
    may_set = "[my-guard.limits.calls]"
    result = merged(tmp_path, project="limits: {calls: 9}", may_set=may_set, schema=RULES)
    assert result.values["limits"] == {"strict": True, "calls": 9, "days": 7}


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ("plan: 5", "project:2: My-Guard.plan: found the number 5, expected text"),
        ("plan: x\nplam: y", 'project:3: My-Guard.plam: is not a setting. Did you mean "plan"?'),
        ("tools: [x, 1]", "project:2: My-Guard.tools[1]: found the number 1, expected text"),
    ],
)
def test_what_a_project_makes_wrong_is_left_out(tmp_path, project, expected):
    """The user's extension stays in force with the user's settings, and it is told why."""
    result = merged(tmp_path, "plan: mine.md", project, schema=RULES, guard=False)
    assert result.problems == ()
    assert result.values["plan"] == "mine.md"
    assert set(result.origins.values()) == {"config.yaml:4", "default"}
    message, dot, hint = expected.partition(". ")
    ending = "; so nothing of what this project sets for the extension counts"
    assert lines(result.warnings) == [message + ending + dot + hint]


def test_a_fault_that_is_nobodys_value_is_told_at_the_projects_section(tmp_path):
    """Where the project's part is wrong only together with the rest, its section is named."""
    schema = "config: {maxProperties: 1}\n"
    result = merged(tmp_path, "a: 1", "b: 2", schema=schema, guard=False)
    assert result.values == {"a": 1}
    assert lines(result.warnings)[0].startswith("project:2: My-Guard: ")


def test_what_the_user_has_wrong_stays_the_users_fault(tmp_path):
    """The project's part does not hide it, and is not blamed for it."""
    result = merged(tmp_path, "plan: 5", "tools: [x]", schema=RULES, guard=False)
    assert result.warnings == ()
    assert lines(result.problems) == [
        f"{tmp_path / 'config.yaml'}:4: extensions.my_guard.plan: found the number 5, expected text"
    ]


def test_a_project_may_supply_what_is_required(tmp_path):
    """Settings that are complete only with the project's part are settings."""
    schema = "config: {required: [plan], properties: {plan: {type: string}}}\n"
    result = merged(tmp_path, "", "plan: p.md", may_set="[my-guard.plan]", schema=schema)
    assert (result.values, result.problems) == ({"plan": "p.md"}, ())
    assert merged(tmp_path, schema=schema).problems


def test_a_projects_own_extension_is_refused_for_its_settings(tmp_path):
    """Wrong settings of its own are told where they stand, as a fault of the configuration."""
    result = merged(tmp_path, "plan: 5", "tools: [1]\nlimits: x", schema=RULES, own=True)
    assert lines(result.problems) == [
        "project:3: My-Guard.limits: found the string 'x', expected a mapping",
        f"{tmp_path / 'config.yaml'}:4: extensions.my_guard.plan: "
        "found the number 5, expected text",
        "project:2: My-Guard.tools[0]: found the number 1, expected text",
    ]
    assert fault_status(result.problems, read_config(tmp_path)) is Status.CONFIG_ERROR


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [\n", "is no valid YAML"),
        ("- a\n", "expected a mapping of extensions to their settings"),
        (
            "my-guard: 5\n",
            "project:1: my-guard: found the number 5, expected a mapping of settings",
        ),
        ("my-guard: &m {a: *m}\n", "project:1: my-guard: cannot be read: contains itself"),
    ],
)
def test_a_project_file_that_is_no_settings(tmp_path, text, expected):
    """The project's own extensions are refused because of it, others are as without it."""
    (tmp_path / "config.yaml").write_text("extensions: {my-guard: {a: 1}}\n")
    config, file = read_config(tmp_path), read_project_settings(PROJECT, text.encode())
    own = merged_settings("my-guard", config, None, file, own=True)
    assert expected in lines(own.problems)[0]
    other = merged_settings("my-guard", config, None, file, guard=False)
    assert (other.values, other.problems) == ({"a": 1}, ())
    assert lines(other.warnings) == ([f"{expected}; ignored"] if file.readable else [])


@attrs.frozen
class Limits:
    calls: int = 5
    strict: bool = False
    level: Level = Level.HIGH


@attrs.frozen
class Rules:
    plan: str
    limits: Limits = Limits(strict=True)
    paths: tuple[Path, ...] = (Path("a"),)
    late: int = attrs.Factory(lambda self: len(self.plan), takes_self=True)


def test_the_defaults_of_a_class_have_an_origin(tmp_path):
    """What the class adds stands in the values as a file would have it, as a default."""
    value, result = typed_settings(Rules, merged(tmp_path, "plan: p.md", guard=False))
    assert value == Rules("p.md")
    assert result.values == {
        "plan": "p.md",
        "limits": {"calls": 5, "strict": True, "level": "high"},
        "paths": ["a"],
    }
    assert result.origins[("plan",)] == "config.yaml:4"
    assert result.origins["limits", "strict"] == "default"


def test_an_open_key_keeps_the_default_of_a_class(tmp_path):
    """As with a schema: a key of a mapping does not take the rest of its default away."""
    project = "limits: {calls: 9, strict: false}"
    found = merged(tmp_path, "plan: p.md", project, may_set="[my-guard.limits.calls]")
    value, result = typed_settings(Rules, found)
    assert value == Rules("p.md", Limits(calls=9, strict=True))
    assert result.values["limits"] == {"calls": 9, "strict": True, "level": "high"}
    assert result.origins["limits", "calls"] == ".hermes/extensions.yaml:2"
    assert len(result.warnings) == 1


def test_what_a_class_refuses_of_a_project_is_left_out(tmp_path):
    """The user's extension stays in force; the project's own is refused."""
    project = "limits: {calls: many}"
    value, result = typed_settings(Rules, merged(tmp_path, "plan: a", project, guard=False))
    assert value == Rules("a")
    assert result.problems == ()
    told = "project:2: My-Guard.limits.calls: found the string 'many', expected a whole number"
    ending = "; so nothing of what this project sets for the extension counts"
    assert lines(result.warnings) == [told + ending]
    value, result = typed_settings(Rules, merged(tmp_path, "plan: a", project, own=True))
    assert value is None
    assert lines(result.problems) == [told]


def test_what_a_class_refuses_of_the_user_is_told_with_the_project_beside(tmp_path):
    """The problem is the user's, whatever the project sets beside it."""
    value, result = typed_settings(Rules, merged(tmp_path, "plan: 5", "late: 1", guard=False))
    assert value is None
    assert result.warnings == ()
    assert lines(result.problems) == [
        f"{tmp_path / 'config.yaml'}:4: extensions.my_guard.plan: found the number 5, expected text"
    ]
