"""`_by_class`: an extension's settings against its attrs class `Config`."""

from __future__ import annotations

import enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import attrs
import pytest

from hermes_ext.settings.by_class import class_defaults, instance, settings_class
from hermes_ext.settings.config import read_config
from hermes_ext.settings.merging import merged_settings, typed_settings


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


def test_an_attrs_class_is_made_of_plain_values():
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
    assert instance(Config, raw) == Config(
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
    (tmp_path / "config.yaml").write_text(f"extensions:\n  my_guard:\n    {settings}\n")
    config = read_config(tmp_path)
    value, merged = typed_settings(Config, merged_settings("my-guard", config))
    assert value is None
    assert str(merged.problems[0]).startswith(f"{config.file}:3: ")
    assert expected in str(merged.problems[0])


def test_which_class_holds_the_settings():
    """The attrs class that a module of the extension calls `Config`, and nothing else."""
    assert settings_class(SimpleNamespace(Config=Config), __name__) is Config
    assert settings_class(SimpleNamespace(Config=Config), "other_extension") is None
    assert settings_class(SimpleNamespace(Config=dict), __name__) is None
    assert settings_class(SimpleNamespace(Config=Rule("x")), __name__) is None
    assert settings_class(SimpleNamespace(), __name__) is None


def test_defaults_as_a_file_would_have_them():
    """Enums, paths, sets and nested classes as plain values; what needs an instance is left out."""

    @attrs.frozen
    class Outer:
        inner: Rule = Rule("terminal")
        level: Level = Level.HIGH
        paths: tuple[Path, ...] = (Path("a"),)
        late: int = attrs.Factory(lambda self: 1, takes_self=True)
        needed: str = attrs.field(kw_only=True)
        made: int = attrs.field(init=False, default=1)

    assert class_defaults(Outer, {"needed": "x"}) == {
        "needed": "x",
        "inner": {"tool": "terminal", "limit": 3},
        "level": "high",
        "paths": ["a"],
    }
