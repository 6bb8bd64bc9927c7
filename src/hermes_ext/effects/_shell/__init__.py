"""Shell text, read as bash runs it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_ext.effects._shell import reading
from hermes_ext.effects._shell.builtins import BUILTINS
from hermes_ext.effects._shell.compound import STATEMENTS


class Reading(reading.Reading):
    """A shell with all commands of its own, and the Python that they start."""

    builtins = BUILTINS
    compounds = STATEMENTS

    def code(self, code: str, folders: Sequence[str]) -> None:
        """Announce what Python code does; `folders`: where it looks for modules."""
        from hermes_ext.effects._python.reading import read_code

        read_code(code, self, looks_for_modules=True, folders=folders)
