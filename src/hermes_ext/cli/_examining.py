"""`doctor`: what loading shows, what the files say, and whether the hooks work in Hermes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext.cli._junit import write_junit
from hermes_ext.cli._loading import (
    CANARY_SECONDS,
    Loading,
    load_in_child,
    look_at_host,
)
from hermes_ext.cli._options import LOAD_SECONDS
from hermes_ext.cli._patience import patience
from hermes_ext.cli._request import Request, Result, projects_of
from hermes_ext.doctor import Finding, Severity, advice_on, examine, in_order
from hermes_ext.hosts.hermes.checks import host_findings
from hermes_ext.hosts.hermes.facts.host_package import host_package
from hermes_ext.loading.inventory import inventory

if TYPE_CHECKING:
    from hermes_ext.hosts.hermes.canary.trial import Canary


def doctor(request: Request) -> Result:
    """Examines the configuration, the extensions and the host, and tries the hooks in Hermes."""
    # Not at the top: no other command looks at other plugins.
    from hermes_ext.hosts.hermes.canary.neighbors import neighbor_findings

    loading, findings = _examined(request)
    findings = _ordered(findings, neighbor_findings(request.home))
    canary = _tried(request) if request.canary else None
    if canary is not None:
        findings = _ordered(findings, _findings_of(canary, request))
    counts = {
        f"{severity}s": sum(finding["severity"] == severity for finding in findings)
        for severity in Severity
    }
    host = host_package()
    payload = {
        "home": printable(request.home),
        "hermes_agent": host and host.version,
        "hermes_distribution": host and host.name,
        **projects_of(inventory(request.home, request.cwd).projects),
        "checked": loading.data.get("checked", 0),
        "findings": findings,
        "canary": None if canary is None else canary.to_json(),
        **counts,
    }
    if request.junit is not None:
        write_junit(request.junit, redacted(payload))
    return Result(1 if counts["errors"] else 0, payload)


def _examined(request: Request) -> tuple[Loading, list[dict[str, Any]]]:
    seconds = request.deadline or LOAD_SECONDS
    with patience("Looking at Hermes", quiet=request.ci) as tell:
        host = look_at_host(request.home)
        tell("Loading the extensions")
        loading = load_in_child(
            request.home, request.cwd, seconds, request.prog, host=host, ci=request.ci
        )
    if loading.failure is None:
        return loading, loading.data["findings"]
    stopped = Finding(
        Severity.ERROR,
        "load-stopped",
        loading.culprit,
        None,
        loading.failure,
        _advice_on(request, loading.culprit)
        if loading.culprit
        else "Turn extensions off one by one to find the one that does it, or give them longer"
        " with --deadline",
    )
    home, cwd, prog = request.home, request.cwd, request.prog
    rest = (
        *examine(home, cwd, host_tools=host.tools, ci=request.ci, prog=prog),
        *host_findings(home, inventory(home, cwd), host, prog),
    )
    return loading, [finding.to_json() for finding in in_order([stopped, *rest])]


def _advice_on(request: Request, name: str) -> str:
    required = inventory(request.home, request.cwd).config.is_required(name)
    return advice_on(name, request.prog, required=required)


def _tried(request: Request) -> Canary:
    # Not at the top: no other command needs a server or threads.
    from hermes_ext.hosts.hermes.canary.trial import Canary, try_canary

    seconds = request.deadline or CANARY_SECONDS
    with patience("Trying the hooks in Hermes", quiet=request.ci) as tell:
        try:
            return try_canary(request.home, seconds=seconds, tell=tell)
        except OSError as error:
            return Canary(why_not=f"no scratch home could be made: {error.strerror or error}")


def _findings_of(canary: Canary, request: Request) -> Iterable[Finding]:
    from hermes_ext.hosts.hermes.canary.findings import canary_findings

    return canary_findings(canary, must_run=request.ci)


def _ordered(
    findings: Iterable[Mapping[str, Any]], more: Iterable[Finding]
) -> list[dict[str, Any]]:
    rows = [*map(dict, findings), *(finding.to_json() for finding in more)]
    return sorted(rows, key=lambda row: Severity(row["severity"]).rank)
