"""The keys of the `extensions` section, and which names that leaves for extensions."""

from __future__ import annotations

from hermes_ext._text import canonical_name
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import HookName

HOOKS = tuple(hook.value for hook in HookName)

RESERVED_KEYS = (
    "enabled", "global_dir", "project_local", "on", "disabled", "required", "overridable",
    "project_may_set", "observe", "ask_without_human", "log", "notify", "reload", "state_days",
    "priorities", "effects", "confine_minimum", "confine_unavailable",
)  # fmt: skip


def name_fault(name: str) -> str | None:
    """Why this cannot be the name of an extension, or None if it can."""
    if not name.strip():
        return "the name is empty"
    if not name.isprintable():
        return "the name has characters that cannot be printed or are not UTF-8"
    if name in {".", ".."} or any(char in name for char in "/\\"):
        return "the name is a path"
    if ":" in name or "," in name or "[" in name or "]" in name or name[0] in "-'\"{}":
        return "the name has characters that the configuration or the command line needs itself"
    return _TAKEN.get(canonical_name(name))


_TAKEN = {
    **dict.fromkeys(
        map(canonical_name, RESERVED_KEYS),
        "the name is one of the keys of the `extensions` section",
    ),
    OWN: "it is the package's own name",
}
