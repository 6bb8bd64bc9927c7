"""Other plugins of a Hermes home that gate or trace tools: what is known of each beside this one.

Their files are read; nothing of them is imported.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hermes_ext._text import as_name
from hermes_ext.doctor import Finding, Severity
from hermes_ext.hosts.hermes.canary.scratch import UsersPlugins, users_plugins
from hermes_ext.hosts.hermes.home.installing import PLUGIN_GROUP

# Each line is what tests/neighbors shows, and docs/hermes.md explains.
KNOWN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agentsfence": "evaluates rewritten arguments; does not see calls that an extension blocks"
        " or answers; refuses every other call while another plugin registers pre_tool_call or"
        " tool_execution (tried with 0.2.0a9)",
        "hermes-tenuo": "evaluates rewritten arguments; its audit log has ALLOW (post-dispatch) for"
        " calls that an extension blocks or answers (tried with 0.1.4)",
        "latitude": "traces rewritten arguments, redacted results and injected instructions; has no"
        " span for calls that an extension blocks or answers (tried with 0.3.1)",
    }
)

_HOOKS: Final = (
    "pre_tool_call",
    "post_tool_call",
    "transform_tool_result",
    "tool_request",
    "tool_execution",
)
_NAMED: Final = re.compile(rf"""["']({"|".join(_HOOKS)})["']""")
_MOST_FILES: Final = 500  # of one plugin; more is a vendored library


def neighbor_findings(home: Path) -> Iterator[Finding]:
    """A note for each enabled plugin that is known, or whose source names a hook about tools."""
    plugins = users_plugins(home)
    for name in plugins.enabled:
        known = KNOWN.get(name)
        hooks = () if known else _hooks_of(name, plugins)
        if known or hooks:
            what = known or f"uses {', '.join(hooks)}, and has not been tried beside hermes-ext"
            hint = (
                'docs/hermes.md, "Other plugins", has the details'
                if known
                else "The trial of `doctor` in Hermes has it on; leave --no-canary out"
            )
            message = f"the plugin {as_name(name, 60)} {what}"
            yield Finding(Severity.NOTE, "neighbor", None, "plugins.enabled", message, hint)


def _hooks_of(name: str, plugins: UsersPlugins) -> tuple[str, ...]:
    named: set[str] = set()
    for file in islice(_sources(name, plugins), _MOST_FILES):
        try:
            named.update(_NAMED.findall(file.read_text(encoding="utf-8", errors="replace")))
        except OSError:
            continue
    return tuple(hook for hook in _HOOKS if hook in named)


def _sources(name: str, plugins: UsersPlugins) -> Iterator[Path]:
    for folder in plugins.only(name).folders():
        yield from sorted(folder.rglob("*.py"))
    try:
        points = [point for point in entry_points(group=PLUGIN_GROUP) if point.name == name]
        specs = [importlib.util.find_spec(point.module.partition(".")[0]) for point in points]
    except (OSError, ValueError):  # metadata that cannot be read, or a module without a spec
        return
    for spec in specs:
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        yield from sorted(origin.parent.rglob("*.py")) if origin.stem == "__init__" else [origin]
