"""The project of a session: where its plan is, and what may be written without one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_ext.effects import Change, ChangeKind

from .plan import Plan, in_words

# What gives a file a second name.
_LINKING = frozenset({"ln", "os.link", "Path.hardlink_to"})


@dataclass(frozen=True)
class Project:
    """One session's project.

    root: where relative settings start. cwd: what the paths in tool calls are relative to. Both
    without links; None where the host does not know them.
    """

    settings: Mapping[str, Any]
    root: Path | None
    cwd: Path | None

    @classmethod
    def of(cls, config: Mapping[str, Any], cwd: Path | None, project_root: Path | None) -> Project:
        """The project that a handler's arguments describe."""
        return cls(config, _resolved(project_root or cwd), _resolved(cwd))

    @property
    def plan(self) -> Plan:
        return Plan(self._place(self.settings["plan_path"]), self.settings["plan"])

    def may_change(self, change: Change) -> bool:
        """Whether a tool call may do this without a plan."""
        # A link is no document: made in the background, be it by `cp -P` or `mv` of another one, it
        # could be there just when a call that was judged without it writes.
        if change.link or change.by in _LINKING:
            return False
        if change.path == self.plan.place:
            return not change.tree or change.kind is ChangeKind.DELETE
        places = map(self._place, self.settings["allowed_paths"])
        return any(place is not None and self._is_allowed(change, place) for place in places)

    def _is_allowed(self, change: Change, place: Path) -> bool:
        if change.path == place:
            return not change.tree
        suffixes = {each.casefold() for each in self.settings["allowed_suffixes"]}
        if not change.path.is_relative_to(place):
            return False
        if not suffixes or (change.by == "mkdir" and not change.tree):
            return True
        return not change.tree and change.path.suffix.casefold() in suffixes

    def _place(self, path: str) -> Path | None:
        """Where a setting's path stands.

        Links below the root are not followed: whoever may write there could have made them.
        """
        given = Path(path).expanduser()
        if not given.is_absolute():
            return None if self.root is None else Path(os.path.normpath(self.root / given))
        place = Path(os.path.normpath(given))
        if self.root is not None and place.is_relative_to(self.root):
            return place
        return Path(os.path.realpath(place.parent)) / place.name

    def shown(self, path: Path) -> str:
        """A path as the model is to write it in a tool call."""
        if self.cwd is None or not path.is_relative_to(self.cwd):
            return str(path)
        return str(path.relative_to(self.cwd))

    @property
    def shown_plan(self) -> str:
        """The plan, as the model is to write it in a tool call."""
        return self._shown_setting(self.settings["plan_path"])

    @property
    def shown_allowed(self) -> tuple[str, ...]:
        """The allowed paths, likewise."""
        return tuple(map(self._shown_setting, self.settings["allowed_paths"]))

    def _shown_setting(self, path: str) -> str:
        place = self._place(path)
        return path if place is None else self.shown(place) + ("/" if path.endswith("/") else "")

    def filled_in(self, text: str) -> str:
        """A text of the settings, with its names replaced."""
        fault = self.plan.fault()
        values = {
            "{allowed_paths}": in_words(self.shown_allowed) or "nothing",
            "{plan_path}": self.shown_plan,
            "{problem}": f"{self.shown_plan} {fault}. {self.plan.needs()}".rstrip(" .")
            if fault
            else "",
        }
        for name, value in values.items():
            text = text.replace(name, value)
        return text


def _resolved(path: Path | None) -> Path | None:
    return None if path is None else Path(os.path.realpath(path))
