"""`_settings`: defaults, over them the user's settings, over those the project's."""

from __future__ import annotations

import enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import attrs
import pytest

from hermes_ext.loading.finding.discovery import fault_status
from hermes_ext.records import Status
from hermes_ext.settings import patterns
from hermes_ext.settings.config import read_config
from hermes_ext.settings.manifest import read_manifest
from hermes_ext.settings.merging import (
    Merged,
    merged_settings,
    read_only,
    typed_settings,
)
from hermes_ext.settings.project_settings import read_project_settings

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


def test_what_is_required_is_closed_to_a_project_like_a_guard(tmp_path):
    """It could set one that redacts to redact nothing; its own extension is its own."""
    (tmp_path / "config.yaml").write_text(
        "extensions:\n  required: [My_Guard]\n  project_may_set: [my-guard.plan]\n"
        "  my-guard: {words: [x]}\n"
    )
    config = read_config(tmp_path)
    file = read_project_settings(PROJECT, b"my-guard: {words: null, plan: p.md}\n")
    result = merged_settings("my-guard", config, None, file, guard=False)
    assert result.values == {"words": ["x"], "plan": "p.md"}
    assert "because you require the extension; ignored" in lines(result.warnings)[0]
    own = merged_settings("my-guard", config, None, file, own=True)
    assert own.values == {"words": None, "plan": "p.md"}


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


class Odd(Protocol):
    word: str


@attrs.frozen
class Settings:
    odd: Odd | None = None
    made: int = attrs.field(factory=lambda: 1 // 0)


SECRETS = """\
config:
  properties:
    api_token: {type: integer}
    password: {enum: [a, b]}
    keys: {properties: {secret: {type: string, pattern: "^x$"}}}
    either: {anyOf: [{maxProperties: 0}, {type: string}]}
"""


def test_a_secret_that_is_wrong_is_not_quoted(tmp_path):
    """Of its value only the kind is told, also where it is wrong as part of a mapping."""
    written = (
        "api_token: hunter2\npassword: hunter2\nkeys: {secret: hunter2}\n"
        "either: {a: {secret: hunter2}}"
    )
    problems = lines(merged(tmp_path, written, schema=SECRETS).problems)
    assert "hunter2" not in str(problems)
    assert [each.partition("extensions.my_guard.")[2] for each in problems] == [
        "api_token: found a string, expected a whole number",
        "either: found a mapping that its schema does not allow: `maxProperties`",
        "keys.secret: found a string that its schema does not allow: `pattern`",
        "password: found a string that its schema does not allow: `enum`",
    ]


def test_a_secret_that_a_class_refuses_is_not_quoted(tmp_path):
    """Neither of a wrong kind nor in the words of a validator."""

    def refuse(_: Any, attribute: Any, value: str) -> None:
        raise ValueError(f"{attribute.name} is no good: {value!r}")

    cls = attrs.make_class("Config", {"token": attrs.field(validator=refuse)})
    _, result = typed_settings(cls, merged(tmp_path, "token: hunter2"))
    assert "ValueError: token is no good: '[redacted]'" in str(result.problems[0])
    cls = attrs.make_class("Config", {"token": attrs.field(type=int)})
    _, result = typed_settings(cls, merged(tmp_path, "token: hunter2"))
    assert "token: found a string, expected a whole number" in str(result.problems[0])


UNCHECKABLE = "config: {properties: {step: {type: number, multipleOf: 0.5}}}\n"


def test_a_value_that_the_check_raises_of_is_a_wrong_value(tmp_path):
    """Of a project it is left out; of the user it is told where it stands."""
    result = merged(tmp_path, "step: 1.5", "step: .inf", schema=UNCHECKABLE, guard=False)
    assert (result.values, result.problems) == ({"step": 1.5}, ())
    assert lines(result.warnings)[0].startswith(
        "project:2: My-Guard.step: cannot be checked: OverflowError: "
    )
    result = merged(tmp_path, "step: .inf", schema=UNCHECKABLE, guard=False)
    assert str(result.problems[0]).startswith(
        f"{tmp_path / 'config.yaml'}:4: extensions.my_guard.step: cannot be checked: "
    )


def test_a_schema_that_the_check_raises_of_is_the_manifests_fault(tmp_path):
    """Also where no value is written that it could be blamed on."""
    schema = "config: {properties: {step: {multipleOf: 0.5, default: .inf}}}\n"
    result = merged(tmp_path, schema=schema, guard=False)
    assert [each.file.name for each in result.problems] == ["extension.yaml"]


@pytest.fixture
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "PATTERN_SECONDS", 0.5)


REPEATS = "config: {properties: {word: {pattern: '^([a-z]+/?)*$'}}}\n"
ENDLESS = "a" * 60 + "!"


@pytest.mark.usefixtures("_in_no_time")
def test_a_pattern_that_has_no_end_keeps_nobody(tmp_path):
    """It is a wrong value where it has none with what is written, else the manifest's fault."""
    result = merged(tmp_path, "word: a", f"word: {ENDLESS}", schema=REPEATS, guard=False)
    assert (result.values, result.problems) == ({"word": "a"}, ())
    told = "My-Guard.word: the check of the settings did not finish within"
    assert lines(result.warnings)[0].startswith(f"project:2: {told}")
    default = f"properties: {{{ENDLESS}: {{default: 1}}}}"
    schema = f"config: {{patternProperties: {{^(a+)+$: {{}}}}, {default}}}"
    result = merged(tmp_path, schema=schema)
    assert [each.file.name for each in result.problems] == ["extension.yaml"]
    assert "did not finish within" in str(result.problems[0])


def test_a_pattern_with_repeats_in_repeats_checks(tmp_path):
    """Most of them are quick."""
    assert merged(tmp_path, "word: a/b/c", schema=REPEATS).problems == ()
    assert "does not match" in str(merged(tmp_path, "word: a/1", schema=REPEATS).problems[0])


def test_what_a_class_raises_of_is_a_wrong_value(tmp_path):
    """An annotation that no value can be checked against, a default that cannot be made."""

    value, result = typed_settings(Settings, merged(tmp_path, "made: 1", "odd: x", guard=False))
    assert value == Settings(None, 1)
    assert lines(result.warnings)[0].startswith("project:2: My-Guard.odd: cannot be checked: Type")
    value, result = typed_settings(Settings, merged(tmp_path))
    assert value is None
    assert "ZeroDivisionError" in str(result.problems[0])


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
        ("a: [\n", "is not valid YAML"),
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


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


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


def test_handlers_cannot_change_the_settings():
    """Mappings and lists are read-only all the way down."""
    value = read_only({"a": {"b": [1, {"c": 2}]}})
    assert value == {"a": {"b": (1, {"c": 2})}}
    assert isinstance(value["a"]["b"][1], MappingProxyType)
    with pytest.raises(TypeError):
        value["a"]["x"] = 1


PROJECT = Path("/srv/project/.hermes/extensions.yaml")
