"""Checks of rewritten tool arguments against the JSON Schemas that a host gives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from hermes_ext._forks import has_locks

ToolSchemas = Mapping[str, Mapping[str, Any]] | Callable[[str], "Mapping[str, Any] | None"]


class SchemaChecks:
    """Checks of rewritten tool arguments, one compiled validator per tool."""

    def __init__(self, schemas: ToolSchemas) -> None:
        self._schemas = schemas
        self._validators: dict[str, tuple[Any, Any]] = {}
        self.renew_locks()
        has_locks(self)

    def renew_locks(self) -> None:
        """After a fork."""
        self._lock = threading.Lock()

    def error(self, tool_name: str, args: dict[str, Any]) -> str | None:
        """What is wrong with the arguments, or None."""
        schema = self.schema_of(tool_name)
        if schema is None:
            return None
        from jsonschema.exceptions import best_match

        try:
            problem = best_match(self._validator(tool_name, schema).iter_errors(args))
        except Exception as error:  # noqa: BLE001 - a host's or server's schema fails in many ways
            return f"the schema itself cannot be used ({type(error).__name__}: {error})"
        return None if problem is None else f"{problem.json_path}: {problem.message}"

    def schema_of(self, tool_name: str) -> Mapping[str, Any] | None:
        """The schema that the host gives for a tool, or None."""
        if callable(self._schemas):
            return self._schemas(tool_name)
        return self._schemas.get(tool_name)

    def _validator(self, tool_name: str, schema: Mapping[str, Any]) -> Any:
        from jsonschema.validators import validator_for
        from referencing import Registry

        with self._lock:
            known = self._validators.get(tool_name)
            if known is None or known[0] is not schema:
                # The registry is empty: without it an unknown `$ref` would be fetched.
                known = (schema, validator_for(schema)(schema, registry=Registry()))
                self._validators[tool_name] = known
            return known[1]
