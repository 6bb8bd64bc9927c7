"""What is wrong, or worth knowing, about an installation: findings as data.

Nothing here loads an extension: what loading showed is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_ext._problems import Problem
from hermes_ext._prog import HERMES_EXT, Prog
from hermes_ext._text import printable
from hermes_ext._values import asdict, evolve, frozen
from hermes_ext.effects import ToolKind, ToolTable
from hermes_ext.exceptions import ConfigError, StateError
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import TABLE, HookName
from hermes_ext.hosts.default import default_host
from hermes_ext.loading.finding.discovery import OFF_UNTIL_NAMED, SAME_CODE
from hermes_ext.loading.finding.projects import ProjectStack
from hermes_ext.loading.imports.source_code import registers_guard
from hermes_ext.loading.inventory import Inventory, inventory
from hermes_ext.loading.tool_patterns import ToolNames
from hermes_ext.records import BROKEN, ExtensionRecord, HookInfo, Status
from hermes_ext.settings.config import OFF_SWITCH, ExtensionsConfig, switched_off
from hermes_ext.settings.names import name_fault
from hermes_ext.trust.store import PIN, Standing, TrustStore, Verdict, listed_paths, pin_fault, pins

if TYPE_CHECKING:
    from hermes_ext.loading.ended import Loaded

SLOW_IMPORT_SECONDS = 1.0

# Every code of a finding here, by what was looked at.
CHECKS: Mapping[str, tuple[str, ...]] = {
    "configuration": ("config", "config-unreadable", "switched-off"),
    "required extensions": ("required-missing",),
    "manifests": ("manifest",),
    "installed distributions": ("distribution",),
    "folders of extensions": ("not-an-extension",),
    "loading": ("load-stopped", "load-error", "config-error", "incompatible", "skipped"),
    "handlers": ("registers-nothing", "wrong-return", "warning", "fails-open", "matches-nothing"),
    "import times": ("slow-import",),
    "names of extensions": ("shadowed", "replaced", "not-replaced"),
    "names of tools": ("unknown-tool", "tool-alias"),
    "trust": (
        "trust-store",
        "pin-invalid",
        "pin-unmatched",
        "new-data",
        *(str(standing) for standing in Standing if standing is not Standing.TRUSTED),
    ),
    "project settings": ("project-settings",),
    "who can write": ("writable-by-others",),
    "session state": ("session-state",),
}
_TOOL_SETTINGS = frozenset({"blocked_tools", "allowed_tools", "tools"})
_CHANGE_FILES = (ToolKind.WRITE, ToolKind.EDIT, ToolKind.SHELL, ToolKind.CODE)


class Severity(StrEnum):
    """ERROR: something does not do what the user asked for. WARNING: it may not. NOTE: to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@frozen
class Finding:
    """One thing that was found.

    code: stable name of the kind, in words with hyphens. extension: None where it concerns none.
    where: "file:line", a file or a key; None where there is none. hint: what to do next.
    """

    severity: Severity
    code: str
    extension: str | None
    where: str | None
    message: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON values with the same keys."""
        return asdict(self) | {"severity": str(self.severity)}


def examine(
    home: Path,
    cwd: Path | None,
    loaded: Loaded | None = None,
    *,
    host_tools: Iterable[str] = (),
    table: ToolTable | None = None,
    ci: bool = False,
    prog: Prog = HERMES_EXT,
) -> tuple[Finding, ...]:
    """Everything found, errors first; what concerns the host alone is for the host to find.

    loaded: what loading showed; without it the records of the last load are judged. host_tools: the
    names of all tools of the host, none where they are not known. table: what is known of them; by
    default of Hermes's. ci: for a pipeline, where a project that is not trusted as it is, and a pin
    that trusts nothing, are errors. prog: what the user calls, for the hints.
    """
    seen: Inventory | Loaded = inventory(home, cwd) if loaded is None else loaded
    refusal = None if loaded is None else loaded.refusal
    names = (*host_tools, *seen.config.read_only_tools)
    tools = ToolNames(
        table or default_host().tools(), frozenset(names), complete=bool([*host_tools])
    )
    findings = [
        *_off_findings(seen.config),
        *_refusal_findings(refusal, seen.config),
        *_problem_findings(seen.problems, seen.records, seen.config, seen.projects, ci=ci),
        *_trust_findings(home, seen.projects, prog, ci=ci),
        *(found for e in seen.records for found in _record_findings(e, seen, prog, refusal)),
        *_tool_name_findings(seen.config, seen.records, tools),
        *_state_findings(home),
    ]
    return in_order(findings)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then notes; each kind as it was found, nothing twice."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: finding.severity.rank))


def is_broken(record: ExtensionRecord, config: ExtensionsConfig) -> bool:
    """Whether loading it went wrong, or ended with nothing that could ever be called."""
    off = record.status is Status.MISSING and not record.configured_on
    faulty = any(hook.fault for hook in record.hooks)
    return (record.status in BROKEN and not off) or _is_idle(record, config) or faulty


def _is_idle(record: ExtensionRecord, config: ExtensionsConfig) -> bool:
    """Whether it registers nothing by itself, and not because its hooks were turned off."""
    registered = record.hooks or record.commands
    return record.loaded and not registered and not config.hooks_off(record.name)


def _off_findings(config: ExtensionsConfig) -> Iterator[Finding]:
    if switched_off():
        told = f"the environment variable {OFF_SWITCH} turns every extension off"
        hint = f"Unset {OFF_SWITCH} to turn them on again"
        yield Finding(Severity.WARNING, "switched-off", None, f"${OFF_SWITCH}", told, hint)
    if not config.enabled:
        where = place(config.file, config.line_of("enabled"))
        told, hint = "extensions.enabled is false: nothing loads", "Take it out, or set it to true"
        yield Finding(Severity.WARNING, "switched-off", None, where, told, hint)


def _refusal_findings(refusal: str | None, config: ExtensionsConfig) -> Iterator[Finding]:
    if not config.readable:
        # Hermes reads the same file for the names of its plugins. A host that has this package
        # built in refuses all calls; so does a Hermes that has started before the file broke.
        where, hint = printable(config.file), "Fix what is named here"
        told = (
            "the file cannot be read: a Hermes that starts now loads no plugin, so NONE of your "
            "rules is in force"
        )
        yield Finding(Severity.ERROR, "config-unreadable", None, where, told, hint)
    elif refusal:  # which has what to do in it
        told = f"the agent refuses every tool call: {refusal}"
        yield Finding(Severity.ERROR, "required-missing", None, "extensions.required", told)


def _problem_findings(
    problems: Sequence[Problem],
    records: Sequence[ExtensionRecord],
    config: ExtensionsConfig,
    projects: ProjectStack,
    *,
    ci: bool,
) -> Iterator[Finding]:
    """Problems of files; those that are a record's own reason are told with the record."""
    there = (each for each in records if each.status is not Status.MISSING)
    told = {part for each in there for part in each.reason.split("; ")}
    of_projects = {each.project.settings_file for each in projects.trusted}
    for problem in problems:
        if str(problem) in told:
            continue
        message = f"{problem.key}: {problem.message}" if problem.key else problem.message
        code = problem.code or ("config" if problem.file == config.file else "manifest")
        if problem.file.parent.suffix in {".dist-info", ".egg-info"}:
            code = "distribution"
        if problem.file in of_projects:
            code = "project-settings"
        serious = code == "config" or (ci and problem.code is not None)
        severity = Severity.ERROR if serious else Severity.WARNING
        where = place(problem.file, problem.line)
        yield Finding(severity, code, None, where, message, problem.hint)


def _state_findings(home: Path) -> Iterator[Finding]:
    """Whether what extensions keep for conversations can be read and stored."""
    from hermes_ext.turns.sqlite_store import STATE_FILE, SQLiteStore

    store = SQLiteStore(home / STATE_FILE, busy_timeout=1)
    try:
        store.check()
    except StateError as error:
        where = printable(store.path)
        yield Finding(Severity.ERROR, "session-state", None, where, error.message, error.hint)
    finally:
        store.close()


def _trust_findings(
    home: Path, projects: ProjectStack, prog: Prog, *, ci: bool
) -> Iterator[Finding]:
    try:
        TrustStore(home).entries()
    except ConfigError as error:
        where = None if error.path is None else printable(error.path)
        told = f"no project is trusted: {error.message}"
        yield Finding(Severity.ERROR, "trust-store", None, where, told, error.hint)
    yield from (_new_data(each, prog) for each in projects.drifted)
    found = [*(_distrust(each, prog) for each in projects.left_out), *_pin_findings(projects)]
    yield from (evolve(each, severity=Severity.ERROR) if ci else each for each in found)


def _new_data(project: Verdict, prog: Prog) -> Finding:
    where, new = printable(project.project.folder), listed_paths(project.changed)
    told = f"new data since you trusted it: {new}; the trusted version is in force"
    hint = (
        "Remove the files (extensions should write to their data_dir), or review and trust them: "
        f"{prog('trust', project.project.root)}"
    )
    return Finding(Severity.WARNING, "new-data", None, where, told, hint)


def _distrust(project: Verdict, prog: Prog) -> Finding:
    told = "the extensions of this project are not loaded: "
    hint = None
    if project.standing is Standing.REFUSED:  # where trusting is not possible
        told += project.reason
    else:
        told += f"{', '.join(project.names) or 'only settings'} ({project.reason})"
        hint = f"To look at them and decide: {prog('trust', project.project.root)}"
    severity = Severity.NOTE if project.standing is Standing.UNTRUSTED else Severity.WARNING
    where = printable(project.project.folder)
    return Finding(severity, str(project.standing), None, where, told, hint)


def _pin_findings(projects: ProjectStack) -> Iterator[Finding]:
    fault = pin_fault()
    if fault is not None:
        hint = "`trust --digest` prints the digest of a project"
        yield Finding(Severity.WARNING, "pin-invalid", None, f"${PIN}", fault, hint)
    if not pins() or any(each.pinned for each in projects.trusted):
        return
    project = projects.nearest
    here = "there is no project with extensions here"
    if project is not None:
        digest = "is not known" if project.tree is None else f"is {project.tree.digest}"
        here = f"the digest of {printable(project.project.folder)} {digest}"
    told = f"{PIN} trusts nothing here: {here}"
    hint = "Right if it is meant for another project; else look at what changed, and set it anew"
    yield Finding(Severity.WARNING, "pin-unmatched", None, f"${PIN}", told, hint)


def _record_findings(
    record: ExtensionRecord, seen: Inventory | Loaded, prog: Prog, refusal: str | None
) -> Iterator[Finding]:
    # What the refusal says to do about a required one is not said twice. What cannot be an
    # extension's name cannot be disabled by it.
    said = record.required and refusal is not None
    advice = None
    if not said and not name_fault(record.name):
        advice = advice_on(record.name, prog, required=record.required)
    yield from _status_findings(record, advice)
    if record.status is Status.SHADOWED:
        yield _shadow_finding(record, seen)
    if _is_idle(record, seen.config):
        told = "it registers no handler, so nothing of it is ever called"
        told = "; ".join(record.warnings) or told
        yield _about(record, Severity.ERROR, "registers-nothing", told)
    else:
        for warning in record.warnings:
            yield _about(record, Severity.WARNING, "warning", warning)
    for hook in record.hooks:
        if hook.fault:
            told = f"{hook.hook}: {hook.handler}: {hook.fault}"
            yield _about(record, Severity.ERROR, "wrong-return", told)
    if record.status is not Status.ENABLED:
        return
    if record.import_seconds is not None and record.import_seconds > SLOW_IMPORT_SECONDS:
        told = f"importing it takes {record.import_seconds:.1f} s of every start"
        hint = "Import what is heavy inside the functions that need it"
        yield _about(record, Severity.WARNING, "slow-import", told, hint)
    yield from (_fails_open(record, info) for info in record.hooks if _can_fail_open(info))


def advice_on(name: str, prog: Prog, *, required: bool) -> str:
    """What to do about an extension that does not load."""
    if required:  # turning it off would leave all tool calls refused
        return "Take it out of extensions.required, or repair it"
    return f"Until it is repaired it can be turned off: {prog(f'disable {name}')}"


def _status_findings(record: ExtensionRecord, advice: str | None) -> Iterator[Finding]:
    if record.status in {Status.LOAD_ERROR, Status.CONFIG_ERROR}:
        yield _about(record, Severity.ERROR, str(record.status), record.reason, advice)
    elif record.status in {Status.INCOMPATIBLE, Status.NOT_AN_EXTENSION}:
        yield _about(record, Severity.ERROR, str(record.status), record.reason)
    elif record.status is Status.SKIPPED:
        yield _about(record, Severity.NOTE, "skipped", record.reason)


def _shadow_finding(record: ExtensionRecord, seen: Inventory | Loaded) -> Finding:
    """Another one of its name is used: as ever, or between a project and the user's own."""
    used = [
        each
        for each in seen.records
        if each.status is not Status.SHADOWED
        and each.path is not None
        and printable(each.path) in record.reason
    ]
    severity, hint = Severity.NOTE, None
    if _is_lost_guard(record, used, seen.config):
        severity = Severity.ERROR
        hint = "It is a guard, and it is not in force. Rename or remove one of the two"
    of_project = record.source is Source.PROJECT
    code = "shadowed"
    if any((each.source is Source.PROJECT) is not of_project for each in used):
        code = "not-replaced" if of_project else "replaced"
    if code == "not-replaced" and severity is Severity.NOTE:
        severity = Severity.WARNING
    return _about(record, severity, code, record.reason, hint)


def _is_lost_guard(
    record: ExtensionRecord, used: Sequence[ExtensionRecord], config: ExtensionsConfig
) -> bool:
    """Whether a guard is not in force that nobody has said to do without."""
    if SAME_CODE in record.reason:
        return False
    if record.source in OFF_UNTIL_NAMED and not config.is_on(record.name):
        return False
    by_project = any(each.source is Source.PROJECT for each in used)
    if by_project and record.source is not Source.PROJECT and config.is_overridable(record.name):
        return False
    return registers_guard(record.path)


def _can_fail_open(info: HookInfo) -> bool:
    closed = TABLE[HookName(info.hook)].on_error == "block"
    return closed and "pass" in (info.on_error, info.on_store_error)


def _fails_open(record: ExtensionRecord, info: HookInfo) -> Finding:
    option, when = "on_error", "it fails"
    if info.on_error != "pass":
        option, when = "on_store_error", "session state is unavailable"
    where = f"{info.file}:{info.line}"
    told = f'{info.handler} lets the tool run when {when} ({option}="pass")'
    hint = f'Right for a convenience; a rule should have {option}="block"'
    return Finding(Severity.NOTE, "fails-open", record.name, where, told, hint)


def _about(
    record: ExtensionRecord, severity: Severity, code: str, message: str, hint: str | None = None
) -> Finding:
    where = None if record.path is None else printable(record.path)
    return Finding(severity, code, record.name, where, message, hint)


def _tool_name_findings(
    config: ExtensionsConfig, records: Sequence[ExtensionRecord], tools: ToolNames
) -> Iterator[Finding]:
    for name, settings in config.settings.items():
        if isinstance(settings, Mapping):
            for key in _TOOL_SETTINGS & settings.keys():
                where = place(config.file, config.line_of(name, key))
                listed = settings[key] if isinstance(settings[key], list | tuple) else ()
                for tool in (each for each in listed if isinstance(each, str)):
                    told = f"extensions.{name}.{key}"
                    yield from _tool_name_finding(name, where, told, tool, tools)
    for record in records:
        for info in record.hooks:
            where = f"{info.file}:{info.line}"
            dead = tools.dead_guard(info)
            if dead is not None:
                told, hint = f"it is not in force: {dead}", _tools_to_name(tools.table)
                yield Finding(Severity.ERROR, "matches-nothing", record.name, where, told, hint)
                continue
            for tool in info.tools or ():
                told = f"tools= of {info.handler}"
                yield from _tool_name_finding(record.name, where, told, tool, tools)


def _tools_to_name(table: ToolTable) -> str:
    mcp = next((each for each in table.families if each.startswith("mcp")), None)
    told = f"Name a tool that this {table.host} has"
    return told if mcp is None else f'{told}; those of MCP servers begin with "{mcp}"'


def _tool_name_finding(
    extension: str, where: str, key: str, tool: str, tools: ToolNames
) -> Iterator[Finding]:
    if tools.can_match(tool):
        return
    table, meant = tools.table, tools.table.get(tool)
    if meant is not None:
        writers = [each.name for kind in _CHANGE_FILES for each in table.of(kind)]
        others = f"{', '.join(writers[:-1])} and {writers[-1]}"
        told = f"workflow-guard takes it for {meant.name}, other extensions may not"
        told = f'{key}: {table.host} has no tool "{tool}"; {told}'
        hint = f"Write {meant.name}; {others} can all change files"
        yield Finding(Severity.NOTE, "tool-alias", extension, where, told, hint)
        return
    told = f'{key}: {table.host} itself has no tool "{tool}"'
    hint = tools.meant(tool) or "Right if a plugin or an MCP server brings it"
    yield Finding(Severity.WARNING, "unknown-tool", extension, where, told, hint)


def place(file: Path, line: int | None) -> str:
    """A file and a line in it, as a finding names them."""
    return printable(file) + ("" if line is None else f":{line}")
