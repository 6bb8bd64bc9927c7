"""What is wrong, or worth knowing, about this package in Hermes: findings for `doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_ext._prog import HERMES_EXT, Prog
from hermes_ext._text import printable
from hermes_ext._values import evolve
from hermes_ext.confine import Support, support
from hermes_ext.doctor import Finding, Severity, place
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.places import LOCAL, backend, elsewhere
from hermes_ext.hosts.hermes.adapter.wraps.survey import Survey
from hermes_ext.hosts.hermes.facts.host_package import host_package, host_program
from hermes_ext.hosts.hermes.home.installing import plugin_off, plugins_unreadable, sentinel_fault
from hermes_ext.hosts.hermes.home.sentinel import sentinel_folder
from hermes_ext.loading.imports.source_code import confines
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.config import ExtensionsConfig
from hermes_ext.settings.yaml_nodes import node_at, text_of

if TYPE_CHECKING:
    from hermes_ext.loading.ended import Loaded
    from hermes_ext.loading.inventory import Inventory

CHECKS: Final[Mapping[str, tuple[str, ...]]] = {
    "slash commands": ("command-taken",),
    "plugin of Hermes": ("no-hermes-agent", "plugin-off", "sentinel-missing"),
    "attachment to Hermes": ("host-unseen", "host-changed"),
    "confinement": ("confinement-unavailable",),
    "other plugins of Hermes": ("neighbor",),
}
"""Every code of a finding about Hermes, by what was looked at."""

_ASK: Final = (
    "be asked about each such call, and run it unconfined with a yes:"
    " extensions.confine_unavailable: ask"
)
_NAME: Final = (
    "name the commands that may run unconfined, if the extension has a setting for them:"
    " workflow-guard has allowed_commands"
)
_ELSEWHERE: Final = ("have Hermes run commands on this machine: terminal.backend: local",)


def host_findings(
    home: Path, seen: Inventory | Loaded, survey: Survey | None = None, prog: Prog = HERMES_EXT
) -> Iterator[Finding]:
    """Everything found about Hermes; without a survey what it offers is not judged."""
    known = survey or Survey()
    yield from _command_findings(seen.records, frozenset(known.commands))
    yield from _plugin_findings(home, seen.config, prog)
    yield from _sentinel_findings(home, seen.config, prog)
    yield from _seam_findings(known)
    yield from _confinement_findings(seen, known)


def confinement_here(config: ExtensionsConfig, survey: Survey) -> Support:
    """How calls of Hermes are confined on this machine; a `rung` of None where they are not."""
    found = _confinement_here(config, survey)
    if found.rung is not None:
        return found
    ask = () if config.confine_unavailable == "ask" else (_ASK,)
    return evolve(found, advice=(*found.advice, _NAME, *ask))


def _confinement_here(config: ExtensionsConfig, survey: Survey) -> Support:
    if survey.backend != LOCAL:
        return Support(None, elsewhere(survey.backend), _ELSEWHERE)
    lost = [(survey.statuses or {}).get(name) for name in survey.confining]
    if any(lost):
        return Support(None, "; ".join(filter(None, lost)))
    return support(config.confine_minimum)


def unconfined(record: ExtensionRecord, config: ExtensionsConfig) -> str | None:
    """What happens to the calls that an extension that is on confines; None: they run confined."""
    if not confines(record.path):
        return None
    kind = text_of(node) if (node := node_at(config.root, ("terminal", "backend"))) else None
    found = confinement_here(config, Survey(backend=kind or backend()))
    return None if found.rung is not None else _not_confined([record.name], found, config)


def _not_confined(names: Sequence[str], found: Support, config: ExtensionsConfig) -> str:
    by = f"{', '.join(names) or 'extensions'} confine{'s' if len(names) == 1 else ''}"
    happens = "blocked" if config.confine_unavailable == "block" else "put to a person"
    return f"calls that {by} are {happens} here: {found.why}"


def _confinement_findings(seen: Inventory | Loaded, survey: Survey) -> Iterator[Finding]:
    found = confinement_here(seen.config, survey)
    if found.rung is not None:
        return
    judges = [*filter(_handles_calls, seen.records)]
    names = [each.name for each in judges if confines(each.path)]
    told = _not_confined(names, found, seen.config)
    ways = [f"- {line}" for line in found.advice]
    hint = "\n".join(["What you can do:", *ways]) if ways else None
    severity = Severity.WARNING if judges else Severity.NOTE
    yield Finding(severity, "confinement-unavailable", None, None, told, hint)


def _handles_calls(record: ExtensionRecord) -> bool:
    hooks = (hook.hook for hook in record.hooks)
    return record.status is Status.ENABLED and HookName.INTERCEPT_TOOL_CALL in hooks


def taken_command(name: str) -> str:
    """That a slash command has the name of one of Hermes."""
    return f"/{name} is a command of Hermes itself, so this one is never called"


def _plugin_findings(home: Path, config: ExtensionsConfig, prog: Prog) -> Iterator[Finding]:
    host = host_package()
    if host is None:
        told = "hermes-agent is not in this Python"
        hint = "If Hermes is to use the extensions, install both into one environment"
        yield Finding(Severity.NOTE, "no-hermes-agent", None, None, told, hint)
    # Without Hermes here, another host may be the one that runs the extensions.
    severity = Severity.NOTE if host is None else Severity.ERROR
    unreadable = None if host is None else plugins_unreadable()
    if unreadable is not None:
        yield Finding(severity, "plugin-off", None, None, unreadable)
    off = plugin_off(home)
    if off is None:
        return
    if off.hint is None:
        told, hint = f"{off.key} {off.told}, so Hermes loads no extension", f"Run {prog('install')}"
        yield Finding(severity, "plugin-off", None, place(off.file, off.line), told, hint)
    elif config.readable:  # else the file as a whole is told already
        told = f"{off.key}: {off.told}" if off.key else off.told
        yield Finding(severity, "plugin-off", None, place(off.file, off.line), told, off.hint)


def _sentinel_findings(home: Path, config: ExtensionsConfig, prog: Prog) -> Iterator[Finding]:
    fault = sentinel_fault(home, config)
    if fault is not None:
        told = f"{fault}: if this package goes, Hermes runs without the required extensions"
        where = printable(sentinel_folder(home))
        hint = f"Run {prog('install')}"
        yield Finding(Severity.WARNING, "sentinel-missing", None, where, told, hint)


def _command_findings(
    records: Iterable[ExtensionRecord], taken: frozenset[str]
) -> Iterator[Finding]:
    for record in records:
        for command in record.commands if record.status is Status.ENABLED else ():
            if command.name in taken:
                where, told = place(Path(command.file), command.line), taken_command(command.name)
                yield Finding(
                    Severity.WARNING, "command-taken", record.name, where, told, "Rename it"
                )


def _seam_findings(survey: Survey) -> Iterator[Finding]:
    if survey.failure:
        told = f"what the package attaches to in Hermes could not be looked at: {survey.failure}"
        hint = f"See whether `{host_program()} --version` works"
        yield Finding(Severity.WARNING, "host-unseen", None, None, told, hint)
    for name, fault in (survey.statuses or {}).items():
        if fault:
            severity = Severity.ERROR if name in survey.needed else Severity.WARNING
            hint = "Use a version of hermes-agent that this package knows, or a newer package"
            told = f"{fault} ({host_package()})"
            yield Finding(severity, "host-changed", None, name, told, hint)
