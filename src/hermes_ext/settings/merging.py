"""The settings of one extension: defaults, over them the user's, over those the project's.

They are checked by a JSON Schema (`by_schema`) or by an attrs class (`by_class`); with both, the
schema goes first. With neither, they reach the handlers as they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hermes_ext._problems import Problem
from hermes_ext._text import canonical_name, printable
from hermes_ext._values import evolve, field, frozen
from hermes_ext.hooks.settings import DEFAULT, Setting
from hermes_ext.settings.by_class import Wrong, class_defaults, instance
from hermes_ext.settings.by_schema import (
    format_faults,
    has,
    is_plain,
    schema_defaults,
    schema_fault,
    schema_faults,
)
from hermes_ext.settings.config import ExtensionsConfig
from hermes_ext.settings.manifest import Manifest
from hermes_ext.settings.project_settings import ProjectSettings
from hermes_ext.settings.words import shown, steps
from hermes_ext.settings.yaml_nodes import Unreadable

_Place = tuple[str | int, ...]


@frozen
class Merged:
    """An extension's settings out of what its defaults, the user and the project say.

    problems: why they cannot be used. warnings: what of the project was ignored, and what will not
    do what is meant.
    """

    values: dict[str, Any]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    _layers: _Layers = field(repr=False, eq=False)

    @property
    def origins(self) -> Mapping[tuple[str, ...], str]:
        """Where each value is from that is no mapping with something in it.

        "default", or a place such as "config.yaml:12".
        """
        return {each: self._layers.origin(each)[0] for each in _leaves(self.values, ())}

    def leaves(self) -> Iterator[Setting]:
        """Each value that is no mapping with something in it, with where it is from."""
        for path in _leaves(self.values, ()):
            value: Any = self.values
            for step in path:
                value = next(each for key, each in value.items() if str(key) == step)
            yield Setting(".".join(path), value, *self._layers.origin(path))


def merged_settings(
    name: str,
    config: ExtensionsConfig,
    manifest: Manifest | None = None,
    project: ProjectSettings | None = None,
    *,
    own: bool = False,
    guard: bool = True,
    outer: Merged | None = None,
) -> Merged:
    """Defaults, over them what the user says, over that what the project may say.

    Mappings are merged key by key, other values replaced. own: the extension is the project's.
    outer: what projects further out make of them, in the place of what the user says.
    guard: it has a guard, or nobody knows; then, or where the user requires it, the project sets
    only what `project_may_set` opens. Where the project's part makes the settings of somebody
    else's extension wrong, that part is left out; its own extension is refused.
    """
    limited = not own and (guard or config.is_required(name))
    below = None if outer is None else outer._layers
    layers = _Layers.of(name, config, manifest, project, own=own, limited=limited, below=below)
    if layers.problems:
        return Merged({}, layers.problems, layers.warnings, layers)
    values, problems = layers.checked()
    if problems and layers.project and not own:
        alone = evolve(layers, project={})
        values, left = alone.checked()
        layers, problems = alone.blaming(problems, nobody=not left), left
    return Merged(values, problems, layers.warnings + layers.misfits(values, problems), layers)


def merged_through(
    name: str,
    config: ExtensionsConfig,
    manifest: Manifest | None,
    projects: Iterable[tuple[ProjectSettings | None, bool]],
    *,
    guard: bool = True,
) -> Merged:
    """As `merged_settings`, of what several projects say.

    projects: each one's settings, and whether the extension is its own; the outermost first.
    """
    merged = merged_settings(name, config, manifest, guard=guard)
    warnings: tuple[Problem, ...] = ()
    for settings, own in projects:
        merged = merged_settings(
            name, config, manifest, settings, own=own, guard=guard, outer=merged
        )
        warnings += merged.warnings
    return evolve(merged, warnings=tuple(dict.fromkeys(warnings)))


def typed_settings(cls: type, merged: Merged) -> tuple[Any, Merged]:
    """An instance of an attrs class, and the settings with what the class adds to them.

    The instance is None where `problems` says why. As with a schema, the project's part is left
    out where it makes the settings of somebody else's extension wrong.
    """
    layers = merged._layers
    given, value, wrong = layers.made(cls, merged.values)
    problems = () if wrong is None else (layers.told(wrong.path, str(wrong), wrong.hint),)
    if problems and layers.project and not layers.own:
        alone = evolve(layers, project={})
        given, value, wrong = alone.made(cls, alone.checked()[0])
        left = () if wrong is None else (alone.told(wrong.path, str(wrong), wrong.hint),)
        layers, problems = alone.blaming(problems, nobody=not left), left
    warnings = layers.warnings + layers.misfits(given, problems)
    return value, Merged(class_defaults(cls, given), problems, warnings, layers)


@frozen
class _Layers:
    """What is merged into the settings of one extension.

    user, project: as written, the project's without what it may not set. problems: why there is
    nothing to merge. below: those that stand in the place of `user`.
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
    below: _Layers | None = None

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
        below: _Layers | None = None,
    ) -> _Layers:
        if below is None:
            user, problem = _section(config, name, "extensions.")
        else:
            user, problem = _over(below.user, below.project), next(iter(below.problems), None)
        problems = (problem,) if problem else ()
        layers = cls(name, config, manifest, file, own, user, {}, problems, below=below)
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
        filled: dict[str, Any] = schema_defaults(self._schema, self.user)
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
        required = self.config.is_required(self.name)
        why = "you require the extension" if required else "the extension has a guard"
        told = f"a project sets this only if you let it, because {why}; ignored"
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
        value, written = self.base, self.user
        if self.project:
            value, written = _over(value, self.project), _over(written, self.project)
        if self.manifest is None or self.manifest.config is None:
            return value, ()
        if not written and is_plain(self.manifest.config):
            return value, ()  # its own defaults, which fit
        fault = schema_fault(self.manifest)
        if fault is not None:
            return value, (fault,)
        value = schema_defaults(self._schema, value)
        return value, schema_faults(value, written, self.manifest, self.told)

    def misfits(self, values: dict[str, Any], problems: Sequence[Problem]) -> tuple[Problem, ...]:
        """What is of another format than the schema says, where nothing else is wrong."""
        if problems or self.manifest is None or not (self.user or self.project):
            return ()
        return format_faults(values, self.manifest, self.told)

    def made(self, cls: type, values: dict[str, Any]) -> tuple[dict[str, Any], Any, Wrong | None]:
        """What the instance is made of, the instance or None, and what is wrong."""
        base = self.base
        given = _over(_reached(class_defaults(cls, base), base, self.project), values)
        try:
            return given, instance(cls, given), None
        except Wrong as wrong:
            return given, None, wrong

    def told(self, path: _Place, message: str, hint: str | None = None) -> Problem:
        """A problem of the value at this path, in the file that it stands in."""
        source, prefix = self._source(path)
        written = source.written(self.name) or self.name
        key = "".join([prefix, written, *steps(path)])
        return Problem(source.file, source.line_of(written, *path), key, message, hint)

    def _source(self, path: _Place) -> tuple[ExtensionsConfig | ProjectSettings, str]:
        if self.file is not None and self.file.written(self.name) is not None:
            if _reaches(self.project, path) and path:
                return self.file, ""
            if self.own and not (path and _reaches(self.user, path)):
                return self.file, ""
        return (self.config, "extensions.") if self.below is None else self.below._source(path)

    def origin(self, path: tuple[str, ...]) -> tuple[str, str | None]:
        """Where a value is from: in short, and as file and line; None of a default."""
        source: ExtensionsConfig | ProjectSettings = self.config
        if _reaches(self.project, path):
            assert self.file is not None
            source, folder = self.file, f"{self.file.file.parent.name}/"
        elif self.below is not None:
            return self.below.origin(path)
        elif _reaches(self.user, path):
            folder = ""
        else:
            return DEFAULT, None
        line = source.line_of(source.written(self.name) or "", *path)
        return f"{folder}{source.file.name}:{line}", f"{source.file}:{line}"


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
    told = f"found {shown(raw)}, expected a mapping of settings"
    return {}, Problem(source.file, source.line_of(written), prefix + written, told)


def _over(below: Any, above: Any) -> Any:
    """`above` in the place of `below`; two mappings key by key."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {
        key: _over(below[key], value) if key in below else value for key, value in above.items()
    }


def _reaches(value: Any, path: _Place) -> bool:
    for step in path:
        if not has(value, step):
            return False
        value = value[step]
    return True


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Mapping) and (value or not path):
        for key, below in value.items():
            yield from _leaves(below, (*path, str(key)))
    else:
        yield path


def _reached(full: Mapping[str, Any], base: Mapping[str, Any], project: Any) -> dict[str, Any]:
    """`base`, with what `full` has where a mapping of the project is merged into a default.

    A project may be let to set a part of such a mapping only; the rest of it stays.
    """
    filled = dict(base)
    for key, value in project.items():
        if isinstance(value, dict) and isinstance(full.get(key), dict):
            filled[key] = _reached(full[key], base[key], value) if key in base else full[key]
    return filled


def read_only(value: Any) -> Any:
    """The same value with mappings that cannot be changed and tuples for lists."""
    if isinstance(value, dict):
        return MappingProxyType({key: read_only(each) for key, each in value.items()})
    if isinstance(value, list):
        return tuple(read_only(each) for each in value)
    return value
