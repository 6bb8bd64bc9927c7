"""Python code, read by its syntax tree."""

from __future__ import annotations

from hermes_ext.effects._python.reading import read_code

__all__ = ["read_code"]
