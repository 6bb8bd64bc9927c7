"""All groups of ways, in the order of the docs."""

from __future__ import annotations

from tests.enforcement import approval, arguments, guards, plugins, surfaces, tools, turns

GROUPS = (
    arguments.GROUP,
    tools.GROUP,
    surfaces.GROUP,
    turns.GROUP,
    plugins.GROUP,
    approval.GROUP,
    guards.GROUP,
)
