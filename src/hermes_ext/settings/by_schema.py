"""Settings by the JSON Schema that stands in `extension.yaml` under `config`.

Defaults of its properties are filled in, also inside a mapping that is given; one that is left
out as a whole gets its own default or stays out. Of formats only `regex` is looked at, by
Python's own `re`; as JSON Schema has it, what is none is told and used: a guard that stumbles over
it fails closed, which it could not if it were not loaded.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from attrs import evolve

from hermes_ext._problems import Problem
from hermes_ext._redaction import redacted
from hermes_ext.settings import words
from hermes_ext.settings.manifest import Manifest
from hermes_ext.settings.patterns import PATTERN_SECONDS, patterns_end

Place = tuple[str | int, ...]
Tell = Callable[[Place, str, str | None], Problem]

_TOLD = 50  # problems of one extension; nobody reads more


def is_plain(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is surely valid, and its defaults fit it.

    Most schemas of settings are a list of properties with a type, a default and a description. To
    see that takes a thousandth of what checking them against the schema of schemas does, which
    every start would wait for.
    """
    properties = schema.get("properties", {})
    return (
        _PLAIN_OBJECT.issuperset(schema)
        and schema.get("type", "object") == "object"
        and isinstance(schema.get("additionalProperties", True), bool)
        and all(isinstance(schema.get(key, ""), str) for key in _TEXTS)
        and isinstance(properties, dict)
        and all(isinstance(name, str) and _is_plain(each) for name, each in properties.items())
    )


_TEXTS: Final = ("description", "title")
_PLAIN_OBJECT: Final = frozenset({"type", "additionalProperties", "properties", *_TEXTS})
_PLAIN: Final = frozenset({"type", "default", *_TEXTS})
_TYPES: Final[Mapping[str, type]] = {
    "string": str, "boolean": bool, "integer": int, "array": list, "object": dict
}  # fmt: skip


def _is_plain(schema: Any) -> bool:
    if not isinstance(schema, dict) or not _PLAIN.issuperset(schema):
        return False
    kind = schema.get("type")
    wanted = _TYPES.get(kind) if isinstance(kind, str) else None
    default = schema.get("default")
    fits = wanted is not None and ("default" not in schema or type(default) is wanted)
    return fits and all(isinstance(schema.get(key, ""), str) for key in _TEXTS)


def schema_fault(manifest: Manifest) -> Problem | None:
    """What is wrong with the manifest's own schema."""
    if is_plain(manifest.config or {}):
        return None
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    schema = dict(manifest.config or {})
    told = "is not a valid JSON Schema: "
    if not isinstance(schema.get("$schema", ""), str):
        wrong = f"{told}found {words.shown(schema['$schema'])}, expected text"
        return _at(manifest, ("$schema",), wrong)
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return _at(manifest, tuple(error.path), told + _in_words(error))
    except Exception as error:  # noqa: BLE001 - of numbers that are none, of too many levels
        return _at(manifest, (), told + _raised(error))
    return None


def _at(manifest: Manifest, path: Place, message: str) -> Problem:
    key = "".join(["config", *words.steps(path)])
    return Problem(manifest.file, manifest.line_of("config", *path), key, message)


def schema_faults(
    value: Mapping[str, Any], written: Mapping[str, Any], manifest: Manifest, tell: Tell
) -> tuple[Problem, ...]:
    """What the schema has against a value.

    written: the value without the schema's defaults. tell: the problem of what people wrote.
    """
    from referencing.exceptions import Unresolvable

    schema = manifest.config or {}
    if not patterns_end(schema, value):
        return (_endless(schema, written, manifest, tell),)
    validator = _validator(schema)
    try:
        errors = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
        problems = (each for error in errors for each in _problems(error, tell))
        return tuple(
            _of_default(problem, path, written, manifest) or problem
            for path, problem in islice(problems, _TOLD)
        )
    except Unresolvable as error:
        return (_at(manifest, (), f"refers to {error.ref!r}, which is nowhere"),)
    except RecursionError:
        return (_at(manifest, (), "refers to itself without an end"),)
    except Exception as error:  # noqa: BLE001 - the checks of infinite numbers raise, and others
        return (_unchecked(error, validator, written, manifest, tell),)


def format_faults(value: Mapping[str, Any], manifest: Manifest, tell: Tell) -> tuple[Problem, ...]:
    """What of a value that the schema has nothing against is not of the format that it names."""
    schema = manifest.config or {}
    if not _names_a_format(schema):
        return ()
    from jsonschema import FormatChecker

    errors = _validator(schema, FormatChecker(["regex"])).iter_errors(value)
    return tuple(each for error in errors for _, each in _problems(error, tell))


def _names_a_format(schema: Any) -> bool:
    below = schema.values() if isinstance(schema, dict) else schema
    return isinstance(schema, (dict, list)) and (
        (isinstance(schema, dict) and schema.get("format") == "regex")
        or any(map(_names_a_format, below))
    )


def _validator(schema: Mapping[str, Any], formats: Any = None) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    cls = _with_quick_unique(validator_for(schema, default=Draft202012Validator))
    # The registry is closed: without it an unknown `$ref` would be fetched from the network.
    return cls(schema, registry=Registry(), format_checker=formats)


@functools.cache
def _with_quick_unique(cls: Any) -> Any:
    """The validator with a `uniqueItems` that does not compare each mapping with each other."""
    from jsonschema import validators

    extend: Any = validators.extend  # without types
    return extend(cls, {"uniqueItems": _unique_items})


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not wanted or not validator.is_type(instance, "array"):
        return
    if len({_comparable(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _comparable(value: Any) -> Any:
    """The same for values that are equal to JSON, to which true is not 1."""
    if isinstance(value, Mapping):
        return "mapping", frozenset((key, _comparable(below)) for key, below in value.items())
    if isinstance(value, list):
        return "list", tuple(map(_comparable, value))
    return isinstance(value, bool), value


def _endless(schema: Any, written: Mapping[str, Any], manifest: Manifest, tell: Tell) -> Problem:
    """That the check has no end, told at the value that it has none with, or at the schema."""
    told = f"the check of the settings did not finish within {PATTERN_SECONDS:g} s"
    hint = "Write its patterns without repeats inside of repeats"
    if patterns_end(schema, schema_defaults(schema, {})):
        for key, value in written.items():
            if not patterns_end(schema, {key: value}):
                return tell((key,), f"{told}: a pattern takes too long with it", None)
    return evolve(_at(manifest, (), told), hint=hint)


def _unchecked(
    error: Exception, validator: Any, written: Mapping[str, Any], manifest: Manifest, tell: Tell
) -> Problem:
    """That a check raised, told at the value that it raised of; else it is the manifest's fault."""
    if not _raises(validator, schema_defaults(validator.schema, {})):
        for key, value in written.items():
            if _raises(validator, {key: value}):
                told = words.without_secrets(_raised(error), written)
                return tell((key,), f"cannot be checked: {told}", None)
    told = words.without_secrets(_raised(error), written)
    return _at(manifest, (), f"cannot check the settings: {told}")


def _raises(validator: Any, value: Any) -> bool:
    try:
        for _ in validator.iter_errors(value):
            pass
    except Exception:  # noqa: BLE001 - whatever it is
        return True
    return False


def _raised(error: Exception) -> str:
    return words.cut(redacted(f"{type(error).__name__}: {error}"))


def schema_defaults(schema: Any, value: Any) -> Any:
    """The value with the schema's defaults where it has nothing."""
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
            filled[key] = schema_defaults(below, filled[key])
    return filled


def _problems(error: Any, tell: Tell) -> Iterator[tuple[Place, Problem]]:
    """What an error says, each with the path of the value that is wrong."""
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema.get("properties", {})
        for extra in sorted(set(error.instance) - set(known)):
            if repr(extra) in error.message:
                place = (*path, extra)
                yield place, tell(place, "is not a setting", words.near(extra, known))
    elif error.validator == "type":
        yield path, tell(path, _in_words(error), words.quotes_hint(error.instance))
    elif error.validator == "required" and (name := _missing(error)) is not None:
        told = tell(path, _in_words(error), None)
        said = example(name, error.schema.get("properties", {}).get(name, {}))
        yield path, evolve(told, hint=f"Write, say, `{said}` below `{told.key}`")
    else:
        yield path, tell(path, _in_words(error), None)


def _missing(error: Any) -> str | None:
    """The setting that an error says is missing."""
    names = (str(name) for name in error.validator_value)
    return next((name for name in names if error.message.startswith(repr(name))), None)


def example(name: str, schema: Any) -> str:
    """A line of YAML that sets a setting to something that its schema probably allows."""
    return f"{name}: {json.dumps(_any_value(schema), ensure_ascii=False, default=str)}"


def _any_value(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return "..."
    for key in ("examples", "enum"):
        listed = schema.get(key)
        if isinstance(listed, list) and listed:
            return listed[0]
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("maximum", 1))
    if kind == "array":
        return [_any_value(schema["items"])] if "items" in schema else []
    known: Mapping[Any, Any] = {"boolean": True, "object": {}, "null": None}
    return known.get(kind, "...")


def missing_settings(schema: Any, value: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """What a schema requires and the value has not: its place, and what the schema says of it."""
    if not isinstance(schema, Mapping) or not isinstance(value, Mapping):
        return
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in value:
            yield (*path, name), properties.get(name, {})
    for name, below in properties.items():
        if name in value:
            yield from missing_settings(below, value[name], (*path, name))


def _in_words(error: Any) -> str:
    """What a validator says, in the words of the other messages."""
    if error.validator == "type":
        wanted = error.validator_value
        names = [wanted] if isinstance(wanted, str) else wanted
        expected = " or ".join(words.type_word(str(name)) for name in names)
        return f"found {words.shown(error.instance, error.absolute_path)}, expected {expected}"
    if error.validator == "pattern" and (title := error.schema.get("title")) is not None:
        return f"found {words.shown(error.instance, error.absolute_path)}, expected {title}"
    if error.validator == "format":
        told = words.shown(error.instance, error.absolute_path)
        return f"found {told}, which is not a regular expression: {error.cause}"
    if error.validator == "required" and (name := _missing(error)) is not None:
        return f"the setting {name!r} is missing"
    # Of `anyOf` and `oneOf` the first alternative says more than that none of them fits.
    told = error.context[0] if error.context else error
    if words.is_secret(told.absolute_path) or words.holds_secret(told.instance):
        found = words.shown(told.instance, told.absolute_path)
        return f"found {found} that its schema does not allow: `{told.validator}`"
    return words.cut(redacted(told.message))


def _of_default(problem: Problem, path: Place, raw: Any, manifest: Manifest) -> Problem | None:
    """The same problem where the value is a default of the schema; None where a person wrote it."""
    schema: Any = manifest.config
    place: Place = ("config",)
    default: Place | None = None
    for step in path:
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        schema = properties.get(step) if isinstance(properties, Mapping) else None
        place = (*place, "properties", step)
        if has(raw, step):
            raw = raw[step]
            default = None if default is None else (*default, step)
        elif isinstance(schema, Mapping) and "default" in schema:
            raw, default = schema["default"], (*place, "default")
        else:
            break
    if default is None:
        return None
    key = "".join([str(default[0]), *words.steps(default[1:])])
    line = manifest.line_of(*default)
    return Problem(manifest.file, line, key, problem.message, problem.hint)


def has(value: Any, step: str | int) -> bool:
    """Whether a mapping has the key, or a list the index."""
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)
