"""The project of a session: where its plan is, and what may be written without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# More white space than this at the start of a plan, and it counts as empty.
_LOOKED_AT = 65_536


@dataclass(frozen=True)
class Project:
    """One session's project.

    cwd: what the paths in tool calls are relative to; None where the host does not know it.
    plan: its file. allowed: what may be written without it.
    """

    settings: Mapping[str, Any]
    cwd: Path | None
    plan: Path
    allowed: tuple[Path, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any], cwd: Path | None, project_root: Path | None) -> Project:
        """The project that a handler's arguments describe."""
        root = project_root or cwd
        return cls(
            config,
            cwd,
            _below(root, config["plan_path"]),
            tuple(_below(root, each) for each in config["allowed_paths"]),
        )

    def has_plan(self) -> bool:
        """Whether the plan is a file with something in it."""
        try:
            # A pipe or a device would never end.
            if not self.plan.is_absolute() or not self.plan.is_file():
                return False
            with self.plan.open(encoding="utf-8-sig", errors="replace") as file:
                return bool(file.read(_LOOKED_AT).strip())
        except (OSError, ValueError):
            return False

    def may_write(self, path: str) -> bool:
        """Whether a tool call may write, move or delete this path without a plan."""
        if self.cwd is None or not path.strip() or path.startswith("~"):
            return False
        try:
            places = _places(self.cwd / path)
            plan = _places(self.plan)
            allowed = [place for each in self.allowed for place in _places(each)]
        except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL, a name too long
            return False
        return all(
            place in plan or place in allowed or self._is_document_below(place, allowed)
            for place in places
        )

    def _is_document_below(self, place: Path, allowed: Sequence[Path]) -> bool:
        suffixes = {each.casefold() for each in self.settings["allowed_suffixes"]}
        named = not suffixes or place.suffix.casefold() in suffixes
        return named and any(place.is_relative_to(each) for each in allowed)

    def shown(self, path: Path) -> str:
        """A path as the model is to write it in a tool call."""
        if self.cwd is None or not path.is_relative_to(self.cwd):
            return str(path)
        return str(path.relative_to(self.cwd))

    @property
    def shown_plan(self) -> str:
        """The plan, as the model is to write it in a tool call."""
        return self.shown(self.plan)

    @property
    def shown_allowed(self) -> tuple[str, ...]:
        """The allowed paths, likewise."""
        slashes = ("/" if each.endswith("/") else "" for each in self.settings["allowed_paths"])
        return tuple(
            f"{self.shown(path)}{slash}" for path, slash in zip(self.allowed, slashes, strict=True)
        )

    def filled_in(self, text: str) -> str:
        """A text of the settings, with its two names replaced."""
        allowed = in_words(self.shown_allowed) or "nothing"
        named = text.replace("{allowed_paths}", allowed)
        return named.replace("{plan_path}", self.shown_plan)


def in_words(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; empty for none."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _below(root: Path | None, path: str) -> Path:
    given = Path(path).expanduser()
    return given if root is None else root / given


def _places(path: Path) -> frozenset[Path]:
    """Where a path leads to, and where its own name stands.

    They differ for a link: writing changes what it leads to, moving and deleting the link itself,
    and some tools write by replacing what has the name.
    """
    return frozenset({path.resolve(), path.parent.resolve() / path.name})
