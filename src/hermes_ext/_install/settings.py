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
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs
from attrs import evolve, field, frozen

from hermes_ext._hooks.text import printable
from hermes_ext._install.config import ExtensionsConfig
from hermes_ext._install.manifest import MANIFEST_FILE, Manifest
from hermes_ext._install.project_settings import ProjectSettings
from hermes_ext._install.records import Problem, Status, canonical_name, did_you_mean
from hermes_ext._install.yaml_nodes import Unreadable, kind_of, parse_document

_SHOWN = 200

_DEFAULT = "default"

_Path = tuple[str | int, ...]
_Origins = Mapping[tuple[str, ...], str]


@frozen
class Merged:
    """An extension's settings out of what its defaults, the user and the project say.

    problems: why they cannot be used. warnings: what of the project was ignored. origins: where
    each value is from that is no mapping with something in it: "default", or "config.yaml:12".
    """

    values: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    origins: _Origins = MappingProxyType({})
    _layers: _Layers | None = field(default=None, repr=False, eq=False)


def merged_settings(
    name: str,
    config: ExtensionsConfig,
    manifest: Manifest | None = None,
    project: ProjectSettings | None = None,
    *,
    own: bool = False,
    guard: bool = True,
) -> Merged:
    """Defaults, over them what the user says, over that what the project may say.

    Mappings are merged key by key, other values replaced. own: the extension is the project's.
    guard: it has a guard, or nobody knows; then the project sets only what `project_may_set`
    opens. Where the project's part makes the settings of somebody else's extension wrong, that
    part is left out; its own extension is refused.
    """
    layers = _Layers.of(name, config, manifest, project, own=own, limited=guard and not own)
    if layers.problems:
        return Merged({}, layers.problems, layers.warnings, layers=layers)
    values, problems = layers.checked()
    if problems and layers.project and not own:
        alone = evolve(layers, project={})
        values, left = alone.checked()
        layers, problems = alone.blaming(problems, nobody=not left), left
    return Merged(values, problems, layers.warnings, layers.origins(values), layers)


def typed_settings(cls: type, merged: Merged) -> tuple[Any, Merged]:
    """An instance of an attrs class, and the settings with what the class adds to them.

    The instance is None where `problems` says why. As with a schema, the project's part is left
    out where it makes the settings of somebody else's extension wrong.
    """
    layers = merged._layers
    assert layers is not None
    given, value, wrong = layers.instance(cls, merged.values)
    problems = () if wrong is None else (layers.told(wrong.path, str(wrong), wrong.hint),)
    if problems and layers.project and not layers.own:
        alone = evolve(layers, project={})
        given, value, wrong = alone.instance(cls, alone.checked()[0])
        left = () if wrong is None else (alone.told(wrong.path, str(wrong), wrong.hint),)
        layers, problems = alone.blaming(problems, nobody=not left), left
    values = _with_class_defaults(cls, given)
    origins = layers.origins(values)
    return value, Merged(values, problems, layers.warnings, origins, layers)


def plain_settings(
    name: str, config: ExtensionsConfig, manifest: Manifest | None = None
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """The settings without those of a project, and what is wrong with them."""
    merged = merged_settings(name, config, manifest)
    return merged.values, merged.problems


def fault_status(problems: Sequence[Problem], config: ExtensionsConfig) -> Status:
    """What an extension is whose settings have these problems: the user's fault, or its own."""
    own = problems[0].file.name == MANIFEST_FILE and problems[0].file != config.file
    return Status.LOAD_ERROR if own else Status.CONFIG_ERROR


@frozen
class _Layers:
    """What is merged into the settings of one extension.

    user, project: as written, the project's without what it may not set. problems: why there is
    nothing to merge.
    """

    name: str
    config: ExtensionsConfig
    manifest: Manifest | None
    file: ProjectSettings | None
    own: bool
    user: dict[str, Any]
    project: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        config: ExtensionsConfig,
        manifest: Manifest | None,
        file: ProjectSettings | None,
        *,
        own: bool,
        limited: bool,
    ) -> _Layers:
        user, problem = _section(config, name, "extensions.")
        layers = cls(name, config, manifest, file, own, user, {}, (problem,) if problem else ())
        if file is None or problem:
            return layers
        if own and not file.readable:
            return evolve(layers, problems=file.problems)
        project, problem = _section(file, name, "")
        if problem and own:
            return evolve(layers, problems=(problem,))
        if problem:
            ignored = evolve(problem, message=f"{problem.message}; ignored")
            return evolve(layers, warnings=(ignored,))
        layers = evolve(layers, project=project)
        return layers._opened() if limited else layers

    @property
    def base(self) -> dict[str, Any]:
        """The defaults with what the user says."""
        filled: dict[str, Any] = _with_defaults(self._schema, self.user)
        return filled

    @property
    def _schema(self) -> Any:
        return None if self.manifest is None else self.manifest.config

    def _opened(self) -> _Layers:
        """The same without what the user lets no project set."""
        closed: list[tuple[str, ...]] = []
        kept = self._open(self.project, self.base, (), closed)
        return evolve(self, project=kept, warnings=tuple(map(self._closed, closed)))

    def _open(
        self,
        given: Mapping[str, Any],
        base: Mapping[str, Any],
        above: tuple[str, ...],
        closed: list[tuple[str, ...]],
    ) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, value in given.items():
            place = (*above, key)
            below = base.get(key, {})
            if self.config.project_may_set_path(self.name, place):
                kept[key] = value
            # Only into a mapping: a key that is open does not open the value that it would replace.
            elif isinstance(value, dict) and value and isinstance(below, dict):
                open_below = self._open(value, below, place, closed)
                kept |= {key: open_below} if open_below else {}
            else:
                closed.append(place)
        return kept

    def _closed(self, place: tuple[str, ...]) -> Problem:
        assert self.file is not None
        written = self.file.written(self.name) or self.name
        key = ".".join((written, *place))
        told = "a project sets this only if you let it, because the extension has a guard; ignored"
        opening = ".".join((canonical_name(self.name), *place))
        hint = f'To let it, add "{opening}" to extensions.project_may_set in '
        line = self.file.line_of(written, *place)
        return Problem(self.file.file, line, key, told, hint + printable(self.config.file))

    def blaming(self, problems: Iterable[Problem], *, nobody: bool) -> _Layers:
        """The same, with warnings about a project's part that had these problems.

        nobody: the user's part has none; then those that name no value of the project's are of
        both parts together, and told at the project's.
        """
        assert self.file is not None
        written = self.file.written(self.name) or self.name
        there = [each for each in problems if each.file == self.file.file]
        if nobody and not there:
            line = self.file.line_of(written)
            there = [evolve(each, file=self.file.file, line=line, key=written) for each in problems]
        told = "; so nothing of what this project sets for the extension counts"
        warnings = (evolve(each, message=each.message + told) for each in there)
        return evolve(self, warnings=(*self.warnings, *warnings))

    def checked(self) -> tuple[dict[str, Any], tuple[Problem, ...]]:
        """The merged values with the schema's defaults, and what is wrong with them."""
        value = _over(self.base, self.project)
        if self.manifest is None or self.manifest.config is None:
            return value, ()
        fault = schema_fault(self.manifest)
        if fault is not None:
            return value, (fault,)
        return _by_schema(_with_defaults(self._schema, value), self)

    def instance(
        self, cls: type, values: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, _Wrong | None]:
        """What the instance is made of, the instance or None, and what is wrong."""
        base = self.base
        given = _over(_reached(_with_class_defaults(cls, base), base, self.project), values)
        try:
            return given, _instance(cls, given, ()), None
        except _Wrong as wrong:
            return given, None, wrong

    def told(self, path: _Path, message: str, hint: str | None = None) -> Problem:
        """A problem of the value at this path, in the file that it stands in."""
        source, prefix = self._source(path)
        written = source.written(self.name) or self.name
        key = "".join([prefix, written, *_steps(path)])
        return Problem(source.file, source.line_of(written, *path), key, message, hint)

    def _source(self, path: _Path) -> tuple[ExtensionsConfig | ProjectSettings, str]:
        if self.file is not None and self.file.written(self.name) is not None:
            if _reaches(self.project, path) and path:
                return self.file, ""
            if self.own and not (path and _reaches(self.user, path)):
                return self.file, ""
        return self.config, "extensions."

    def origins(self, values: Mapping[str, Any]) -> _Origins:
        """Where each value is from that is no mapping with something in it."""
        return MappingProxyType({path: self._origin(path) for path in _leaves(values, ())})

    def _origin(self, path: tuple[str, ...]) -> str:
        if _reaches(self.project, path):
            assert self.file is not None
            line = self.file.line_of(self.file.written(self.name) or "", *path)
            return f"{self.file.file.parent.name}/{self.file.file.name}:{line}"
        if _reaches(self.user, path):
            line = self.config.line_of(self.config.written(self.name) or "", *path)
            return f"{self.config.file.name}:{line}"
        return _DEFAULT


def _section(
    source: ExtensionsConfig | ProjectSettings, name: str, prefix: str
) -> tuple[dict[str, Any], Problem | None]:
    """What a file says of the extension, or what is wrong with all of that."""
    raw = source.settings_of(name)
    if raw is None or isinstance(raw, dict):
        return raw or {}, None
    written = source.written(name) or name
    if isinstance(raw, Unreadable):
        return {}, Problem(source.file, raw.line, prefix + written, str(raw))
    told = f"found {_shown(raw)}, expected a mapping of settings"
    return {}, Problem(source.file, source.line_of(written), prefix + written, told)


def _over(below: Any, above: Any) -> Any:
    """`above` in the place of `below`; two mappings key by key."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {
        key: _over(below[key], value) if key in below else value for key, value in above.items()
    }


def _reaches(value: Any, path: _Path) -> bool:
    for step in path:
        if not _has(value, step):
            return False
        value = value[step]
    return True


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping) and (value or not path):
        for key, below in value.items():
            yield from _leaves(below, (*path, str(key)))
    else:
        yield path


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
        return Problem(manifest.file, line, key, f"is no valid JSON Schema: {_in_words(error)}")
    return None


def structured(
    cls: type, raw: Mapping[str, Any], name: str, config: ExtensionsConfig
) -> tuple[Any, tuple[Problem, ...]]:
    """An instance of an attrs class made of plain settings, or None and what is wrong."""
    layers = _Layers(name, config, None, None, False, dict(raw), {})
    value, merged = typed_settings(cls, Merged(layers.user, layers=layers))
    return value, merged.problems


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


def _steps(path: Sequence[str | int]) -> Iterator[str]:
    return (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _by_schema(
    value: dict[str, Any], layers: _Layers
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    assert layers.manifest is not None
    schema = layers.manifest.config or {}
    # The registry is closed: without it an unknown `$ref` would be fetched from the network.
    validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
    try:
        errors = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
    except Unresolvable as error:
        told = f"the schema refers to {error.ref!r}, which is nowhere"
        return value, (layers.told((), told),)
    written = _over(layers.user, layers.project)
    return value, tuple(
        _of_default(problem, path, written, layers.manifest) or problem
        for error in errors
        for path, problem in _schema_problems(error, layers)
    )


def _schema_problems(error: Any, layers: _Layers) -> Iterator[tuple[_Path, Problem]]:
    """What an error says, each with the path of the value that is wrong."""
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema.get("properties", {})
        for extra in sorted(set(error.instance) - set(known)):
            if repr(extra) in error.message:
                place = (*path, extra)
                yield place, layers.told(place, "is not a setting", _near(extra, known))
    elif error.validator == "type":
        yield path, layers.told(path, _in_words(error), _quotes_hint(error.instance))
    else:
        yield path, layers.told(path, _in_words(error))


def _in_words(error: Any) -> str:
    """What a validator says, in the words of the other messages."""
    if error.validator == "type":
        wanted = error.validator_value
        names = [wanted] if isinstance(wanted, str) else wanted
        expected = " or ".join(_TYPE_NAMES.get(name, str(name)) for name in names)
        return f"found {_shown(error.instance)}, expected {expected}"
    if error.validator == "required":
        for name in error.validator_value:
            if error.message.startswith(repr(name)):
                return f"the setting {name!r} is missing"
    # Of `anyOf` and `oneOf` the first alternative says more than that none of them fits.
    return _cut((error.context[0] if error.context else error).message)


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


def _with_class_defaults(cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given`, with the class's defaults as plain values; those that need an instance are out."""
    hints = _hints(cls)
    filled = dict(given)
    for each in attrs.fields(cls):
        key, default = each.alias, each.default
        if key in given:
            below = hints.get(each.name)
            if isinstance(given[key], dict) and inspect.isclass(below) and attrs.has(below):
                filled[key] = _with_class_defaults(below, given[key])
        elif each.init and default is not attrs.NOTHING:
            if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a function to mypy
                filled[key] = _plain(default)
            elif not default.takes_self:
                filled[key] = _plain(default.factory())
    return filled


def _plain(value: Any) -> Any:
    """The value as a settings file would hold it, as far as there is a way."""
    if attrs.has(type(value)):
        fields = (each for each in attrs.fields(type(value)) if each.init)
        return {each.alias: _plain(getattr(value, each.name)) for each in fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_plain(each) for each in value]
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _reached(full: Mapping[str, Any], base: Mapping[str, Any], project: Any) -> dict[str, Any]:
    """`base`, with what `full` has where a mapping of the project is merged into a default.

    A project may be let to set a part of such a mapping only; the rest of it stays.
    """
    filled = dict(base)
    for key, value in project.items():
        if isinstance(value, dict) and isinstance(full.get(key), dict):
            filled[key] = _reached(full[key], base[key], value) if key in base else full[key]
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
        raise _Wrong(path, f"found {_shown(value)}, expected a list", _quotes_hint(value))
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
        told = f"found {_shown(value)}, expected {_type_name(kind)}"
        raise _Wrong(path, told, _quotes_hint(value))
    return value


def _member(value: Any, kind: type[enum.Enum], path: _Path) -> enum.Enum:
    for member in kind:
        if member.value == value:
            return member
    known = _alternatives([member.value for member in kind])
    raise _Wrong(path, f"found {_shown(value)}, expected {known}")


def _alternatives(values: Sequence[Any]) -> str:
    return " or ".join(repr(value) for value in values)


# Of Python, of JSON Schema.
_TYPE_NAMES = {
    "str": "text",
    "string": "text",
    "int": "a whole number",
    "integer": "a whole number",
    "float": "a number",
    "number": "a number",
    "bool": "true or false",
    "boolean": "true or false",
    "NoneType": "nothing",
    "null": "nothing",
    "list": "a list",
    "tuple": "a list",
    "frozenset": "a list",
    "set": "a list",
    "array": "a list",
    "dict": "a mapping",
    "object": "a mapping",
}


def _type_name(hint: Any) -> str:
    name = getattr(typing.get_origin(hint) or hint, "__name__", str(hint))
    return _TYPE_NAMES.get(name, name)


def _quotes_hint(value: Any) -> str | None:
    """What to do about a text that was meant to be something else."""
    if not isinstance(value, str):
        return None
    meant = parse_document(Path(), value.encode("utf-8", "replace")).root
    is_text = meant is None or kind_of(meant) in {"str", "null"}
    return None if is_text else "Take the quotes away"


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
