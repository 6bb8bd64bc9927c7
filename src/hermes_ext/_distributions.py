"""Installed distributions, whose metadata anybody may have written: nothing in it raises here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_ext._problems import Problem
from hermes_ext._text import printable
from hermes_ext._values import frozen

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

_POINTS: Final = "entry_points.txt"
_METADATA: Final = re.compile(r"[\w.]+-.+\.(?:dist|egg)-info")
_LARGEST: Final = 1_000_000
T = TypeVar("T")


@frozen
class Offered:
    """An entry point. version: its distribution's, None where that is not known."""

    point: EntryPoint
    version: str | None = None


@frozen
class Installed:
    """Entry points of one group, sorted, and the distributions whose metadata is broken."""

    points: tuple[Offered, ...] = ()
    problems: tuple[Problem, ...] = ()


def installed_points(group: str) -> Installed:
    """The entry points of a group, each distribution once: the first on `sys.path` is used."""
    points: list[Offered] = []
    problems: list[Problem] = []
    texts = _sound_texts()
    if texts is not None and not any(group in text for text in texts):
        return Installed()
    for distribution in _each_once(problems):
        of_group = _read(distribution, _POINTS, lambda each: _of_group(each, group), problems)
        for point in of_group or ():
            version = _read(distribution, "METADATA", _version_of, problems)
            points.append(Offered(point, version))
    points.sort(key=lambda each: (each.point.name, each.point.value))
    return Installed(tuple(points), tuple(problems))


def version_of(name: str) -> str | None:
    """The version of an installed distribution, None where there is none or it is not known."""
    import importlib.metadata

    try:
        return importlib.metadata.version(name) or None
    except Exception:  # noqa: BLE001 - metadata that others wrote, in any encoding and form
        return None


def entry_points_fault() -> str | None:
    """Why no program can read this Python's entry points, as `importlib.metadata` does.

    One broken distribution is enough; None where they can be read.
    """
    if _sound_texts() is not None:
        return None
    from importlib.metadata import entry_points

    try:
        entry_points()
    except Exception as error:  # noqa: BLE001 - metadata that others wrote
        problems: list[Problem] = []
        for each in _each_once(problems):
            _read(each, _POINTS, lambda one: one.entry_points, problems)
        return "; ".join(map(str, problems)) or f"{type(error).__name__}: {error}"
    return None


def _sound_texts() -> list[str] | None:
    """The entry points of all distributions, as text; None where they need a closer look.

    importlib.metadata takes half as long to import as a whole command. It is needed where a
    distribution offers something to us, and for everything out of the ordinary: an archive on the
    path, a finder of another tool, metadata that is not as installers write it.
    """
    finders = (each for each in sys.meta_path if hasattr(each, "find_distributions"))
    if any(getattr(each, "__module__", "") != "_frozen_importlib_external" for each in finders):
        return None
    texts: list[str] = []
    for place in dict.fromkeys(sys.path):
        try:
            with os.scandir(place or os.curdir) as entries:
                names = [one.name for one in entries if one.name.endswith(("-info", ".egg"))]
        except FileNotFoundError:
            continue
        except OSError:  # an archive
            return None
        for name in names:
            text = _sound_text(os.path.join(place, name, _POINTS))
            if text is None or not _METADATA.fullmatch(name):
                return None
            texts.append(text)
    return texts


def _sound_text(file: str) -> str | None:
    try:
        with open(file, encoding="utf-8") as points:
            text = points.read(_LARGEST)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):  # ValueError: it is not UTF-8
        return None
    return text if len(text) < _LARGEST and all(map(_is_sound, text.splitlines())) else None


def _is_sound(line: str) -> bool:
    """Whether importlib.metadata reads it without a fault: a section, an entry, a remark."""
    line = line.strip()
    if line.startswith("["):
        return line.endswith("]")
    return not line or line.startswith("#") or (not line.startswith("=") and "=" in line)


def _each_once(problems: list[Problem]) -> Iterator[Distribution]:
    from importlib.metadata import distributions

    seen: set[str] = set()
    for each in distributions():
        name = _read(each, "METADATA", _normalized, problems)
        if name is None or name in seen:
            continue
        seen.add(name)
        yield each


def _normalized(distribution: Distribution) -> str:
    """As `importlib.metadata` tells distributions apart: by the folder where that has the name."""
    normalized: str = distribution._normalized_name  # type: ignore[attr-defined]
    return normalized


def _of_group(distribution: Distribution, group: str) -> tuple[EntryPoint, ...]:
    return tuple(distribution.entry_points.select(group=group))


def _version_of(distribution: Distribution) -> str:
    version: str | None = distribution.version
    if not isinstance(version, str) or not version:
        raise ValueError("it has no Version")
    return version


def _read(
    distribution: Distribution,
    file: str,
    read: Callable[[Distribution], T],
    problems: list[Problem],
) -> T | None:
    """What is read of a distribution; None, and a problem, where its metadata is broken."""
    try:
        return read(distribution)
    except Exception as error:  # noqa: BLE001 - metadata that others wrote, in any encoding and form
        path = Path(str(getattr(distribution, "_path", "") or "(unknown)"))
        name = path.name.rpartition(".")[0].partition("-")[0] or path.name
        told = f"the metadata of the installed distribution {printable(name)} is broken"
        why = " ".join(str(error).split())
        hint = f"Install it anew: pip install --force-reinstall {printable(name)}"
        problem = Problem(path / file, None, "", f"{told}: {type(error).__name__}: {why}", hint)
        if problem not in problems:
            problems.append(problem)
        return None
