"""The settings of one extension, checked by its JSON Schema or by its attrs class `Config`.

The schema stands in `extension.yaml` under `config`. Defaults of its properties are filled in,
also inside a mapping that is given; one that is left out as a whole gets its own default or stays
out. A class is an attrs class that the extension's module calls `Config`: its fields are the keys,
checked against their annotations. With both, the schema goes first. With neither, the settings
reach the handlers as they are written.
"""

from __future__ import annotations

import copy
import enum
import inspect
import os
import types
import typing
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from hermes_ext._install.config import ExtensionsConfig
from hermes_ext._install.manifest import Manifest
from hermes_ext._install.records import Problem, Status, did_you_mean
from hermes_ext._install.yaml_nodes import Unreadable

_SHOWN = 200

_Path = tuple[str | int, ...]


def plain_settings(
    name: str, config: ExtensionsConfig, manifest: Manifest | None = None
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """The settings as plain values with the schema's defaults, and what is wrong with them."""
    told = _Told(name, config)
    raw = config.settings_of(name)
    if raw is None:
        raw = {}
    if isinstance(raw, Unreadable):
        return {}, (Problem(config.file, raw.line, told.key(()), str(raw)),)
    if not isinstance(raw, dict):
        wrong = f"found {_shown(raw)}, expected a mapping of settings"
        return {}, (told.problem((), wrong),)
    if manifest is None or manifest.config is None:
        return raw, ()
    fault = schema_fault(manifest)
    if fault is not None:
        return raw, (fault,)
    return _by_schema(raw, manifest, told)


def fault_status(problems: Sequence[Problem], config: ExtensionsConfig) -> Status:
    """What an extension is whose settings have these problems: the user's fault, or its own."""
    return Status.CONFIG_ERROR if problems[0].file == config.file else Status.LOAD_ERROR


def schema_fault(manifest: Manifest) -> Problem | None:
    """What is wrong with the manifest's own schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    schema = dict(manifest.config or {})
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        path = tuple(error.path)
        key = "".join(["config", *_steps(path)])
        line = manifest.line_of("config", *path)
        return Problem(manifest.file, line, key, f"is no valid JSON Schema: {_cut(error.message)}")
    return None


def structured(
    cls: type, raw: Mapping[str, Any], name: str, config: ExtensionsConfig
) -> tuple[Any, tuple[Problem, ...]]:
    """An instance of an attrs class made of plain settings, or None and what is wrong."""
    told = _Told(name, config)
    try:
        return _instance(cls, raw, ()), ()
    except _Wrong as wrong:
        return None, (told.problem(wrong.path, str(wrong), wrong.hint),)


def settings_class(module: object, package: str) -> type | None:
    """The attrs class that a module calls `Config`, or None.

    package: the class counts if it is defined there or below; a library's `Config` does not.
    """
    found = getattr(module, "Config", None)
    if not inspect.isclass(found) or not attrs.has(found):
        return None
    return found if f"{found.__module__}.".startswith(f"{package}.") else None


def read_only(value: Any) -> Any:
    """The same value with mappings that cannot be changed and tuples for lists."""
    if isinstance(value, dict):
        return MappingProxyType({key: read_only(each) for key, each in value.items()})
    if isinstance(value, list):
        return tuple(read_only(each) for each in value)
    return value


class _Told:
    """Makes problems of one extension's settings."""

    def __init__(self, name: str, config: ExtensionsConfig) -> None:
        self.config = config
        self.written = config.written(name) or name

    def key(self, path: Sequence[str | int]) -> str:
        return "".join(["extensions.", self.written, *_steps(path)])

    def problem(self, path: Sequence[str | int], message: str, hint: str | None = None) -> Problem:
        line = self.config.line_of(self.written, *path)
        return Problem(self.config.file, line, self.key(path), message, hint)


def _steps(path: Sequence[str | int]) -> Iterator[str]:
    return (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _by_schema(
    raw: dict[str, Any], manifest: Manifest, told: _Told
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    schema = manifest.config or {}
    value = _with_defaults(schema, raw)
    # The registry is closed: without it an unknown `$ref` would be fetched from the network.
    validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
    try:
        errors = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
    except Unresolvable as error:
        return value, (told.problem((), f"the schema refers to {error.ref!r}, which is nowhere"),)
    return value, tuple(
        _of_default(problem, path, raw, manifest) or problem
        for error in errors
        for path, problem in _schema_problems(error, told)
    )


def _schema_problems(error: Any, told: _Told) -> Iterator[tuple[_Path, Problem]]:
    """What an error says, each with the path of the value that is wrong."""
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema.get("properties", {})
        for extra in sorted(set(error.instance) - set(known)):
            if repr(extra) in error.message:
                place = (*path, extra)
                yield place, told.problem(place, "is not a setting", _near(extra, known))
    elif error.validator == "type":
        wanted = error.validator_value
        names = wanted if isinstance(wanted, str) else " or ".join(wanted)
        yield path, told.problem(path, f"found {_shown(error.instance)}, expected {names}")
    else:
        yield path, told.problem(path, _cut(error.message))


def _of_default(problem: Problem, path: _Path, raw: Any, manifest: Manifest) -> Problem | None:
    """The same problem where the value is a default of the schema; None where a person wrote it."""
    schema: Any = manifest.config
    place: _Path = ("config",)
    default: _Path | None = None
    for step in path:
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        schema = properties.get(step) if isinstance(properties, Mapping) else None
        place = (*place, "properties", step)
        if _has(raw, step):
            raw = raw[step]
            default = None if default is None else (*default, step)
        elif isinstance(schema, Mapping) and "default" in schema:
            raw, default = schema["default"], (*place, "default")
        else:
            break
    if default is None:
        return None
    key = "".join([str(default[0]), *_steps(default[1:])])
    line = manifest.line_of(*default)
    return Problem(manifest.file, line, key, problem.message, problem.hint)


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _near(name: str, known: Mapping[str, Any]) -> str | None:
    return did_you_mean(name, known) or (f"Settings: {', '.join(known)}" if known else None)


def _with_defaults(schema: Any, value: Any) -> Any:
    if not isinstance(schema, Mapping) or not isinstance(value, dict):
        return value
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return value
    filled = dict(value)
    for key, below in properties.items():
        if isinstance(below, Mapping) and key not in filled and "default" in below:
            filled[key] = copy.deepcopy(below["default"])
        if key in filled:
            filled[key] = _with_defaults(below, filled[key])
    return filled


class _Wrong(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, path: tuple[str | int, ...], message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.hint = hint


def _instance(cls: type, raw: Any, path: _Path) -> Any:
    if not isinstance(raw, Mapping):
        raise _Wrong(path, f"found {_shown(raw)}, expected a mapping")
    fields = {each.alias: each for each in attrs.fields(cls) if each.init}
    for key in raw:
        if key not in fields:
            raise _Wrong((*path, str(key)), "is not a setting", _near(str(key), fields))
    for key, each in fields.items():
        if each.default is attrs.NOTHING and key not in raw:
            raise _Wrong(path, f"the setting {key!r} is missing")
    hints = _hints(cls)
    values = {
        key: _typed(value, hints.get(fields[key].name, Any), (*path, key))
        for key, value in raw.items()
    }
    try:
        return cls(**values)
    except Exception as error:  # whatever the author's validators raise
        raise _Wrong(path, f"{type(error).__name__}: {_cut(_first_argument(error))}") from error


def _hints(cls: type) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # noqa: BLE001 - the author's annotations; unchecked is better than unusable
        return {}


def _first_argument(error: Exception) -> str:
    # attrs' validators put the attribute, the options and the value behind the message.
    return str(error.args[0]) if error.args else str(error)


def _typed(value: Any, hint: Any, path: _Path) -> Any:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return value
    if origin is typing.Union or origin is types.UnionType:
        return _one_of(value, arguments, path)
    if origin is typing.Literal:
        if not any(value == each and type(value) is type(each) for each in arguments):
            raise _Wrong(path, f"found {_shown(value)}, expected {_alternatives(arguments)}")
        return value
    kind = origin or hint
    return _of_class(value, kind, arguments, path) if inspect.isclass(kind) else value


def _of_class(value: Any, kind: type, arguments: Sequence[Any], path: _Path) -> Any:
    if issubclass(kind, Mapping):
        return _mapping(value, arguments, path)
    if issubclass(kind, Sequence | Set) and not issubclass(kind, str | bytes):
        return _collection(value, kind, arguments, path)
    return _scalar(value, kind, path)


def _one_of(value: Any, hints: Sequence[Any], path: _Path) -> Any:
    wrong: list[_Wrong] = []
    for hint in hints:
        try:
            return _typed(value, hint, path)
        except _Wrong as error:
            wrong.append(error)
    deepest = max(wrong, key=lambda error: len(error.path))
    if len(deepest.path) > len(path):
        raise deepest
    expected = " or ".join(_type_name(hint) for hint in hints)
    raise _Wrong(path, f"found {_shown(value)}, expected {expected}")


def _mapping(value: Any, arguments: Sequence[Any], path: _Path) -> Any:
    if not isinstance(value, Mapping):
        raise _Wrong(path, f"found {_shown(value)}, expected a mapping")
    key_hint, below = (*arguments, Any, Any)[:2]
    return {
        _typed(key, key_hint, path): _typed(each, below, (*path, key))
        for key, each in value.items()
    }


def _collection(value: Any, kind: type, arguments: Sequence[Any], path: _Path) -> Any:
    if not isinstance(value, list):
        raise _Wrong(path, f"found {_shown(value)}, expected a list")
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(arguments) != len(value):
            raise _Wrong(path, f"found a list of {len(value)}, expected {len(arguments)} items")
        hints: Sequence[Any] = arguments
    else:
        hints = [arguments[0] if arguments else Any] * len(value)
    items = [
        _typed(each, hint, (*path, index))
        for index, (each, hint) in enumerate(zip(value, hints, strict=True))
    ]
    if inspect.isabstract(kind):
        return frozenset(items) if issubclass(kind, Set) else tuple(items)
    try:
        return kind(items)
    except TypeError as error:  # a set of mappings
        raise _Wrong(path, f"found {_shown(value)} that makes no {kind.__name__}") from error


def _scalar(value: Any, kind: type, path: _Path) -> Any:
    if attrs.has(kind):
        return _instance(kind, value, path)
    if issubclass(kind, enum.Enum):
        return _member(value, kind, path)
    if issubclass(kind, Path) and isinstance(value, str):
        return kind(os.path.expanduser(value))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # To Python true is a number; to the person who wrote the file it is not.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise _Wrong(path, f"found {_shown(value)}, expected {_type_name(kind)}")
    return value


def _member(value: Any, kind: type[enum.Enum], path: _Path) -> enum.Enum:
    for member in kind:
        if member.value == value:
            return member
    known = _alternatives([member.value for member in kind])
    raise _Wrong(path, f"found {_shown(value)}, expected {known}")


def _alternatives(values: Sequence[Any]) -> str:
    return " or ".join(repr(value) for value in values)


_TYPE_NAMES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "NoneType": "nothing",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
}


def _type_name(hint: Any) -> str:
    name = getattr(typing.get_origin(hint) or hint, "__name__", str(hint))
    return _TYPE_NAMES.get(name, name)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    kind = (
        "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else ""
    )
    return f"the {kind or type(value).__name__} {_cut(repr(value), 60)}"


def _cut(text: str, length: int = _SHOWN) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
