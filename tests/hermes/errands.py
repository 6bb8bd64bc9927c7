"""A model that does what it is told, one call after the other."""

from __future__ import annotations

import re
from pathlib import Path

from hermes_ext.testing import ModelRequest, Reply, ToolUse

GO = re.compile(r"^go (.+)$", re.MULTILINE)


class Errands:
    """Told `go one two one`, it makes a call for each name, and then it is done.

    Args:
        folder: where the calls do something.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, request: ModelRequest) -> Reply:
        messages = list(request.messages)
        last = max(n for n, each in enumerate(messages) if each["role"] == "user")
        told = GO.findall(request.last_user)
        names = told[-1].split() if told else []
        done = sum(each["role"] == "tool" for each in messages[last:])
        if done == len(names):
            return Reply("All done.")
        return Reply(tool_calls=(self.call(names[done]),))

    def call(self, name: str) -> ToolUse:
        """The call for one name."""
        raise NotImplementedError
