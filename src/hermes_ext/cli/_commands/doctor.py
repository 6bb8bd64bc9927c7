"""`doctor`: what loading shows, what the files say, and whether the hooks work in Hermes."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext.cli._junit import write_junit
from hermes_ext.cli._loading import CANARY_SECONDS, Loading, load_in_child, look_at_host
from hermes_ext.cli._options import LOAD_SECONDS, add
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import STYLES, counted, trusted
from hermes_ext.cli._patience import patience
from hermes_ext.cli._request import Request, Result, projects_of
from hermes_ext.cli._values import seconds
from hermes_ext.doctor import Finding, Severity, advice_on, examine, in_order
from hermes_ext.hosts.hermes.checks import confinement_here, host_findings
from hermes_ext.hosts.hermes.facts.host_package import host_package
from hermes_ext.loading.inventory import inventory

if TYPE_CHECKING:
    from hermes_ext.hosts.hermes.adapter.wraps.survey import Survey
    from hermes_ext.hosts.hermes.canary.trial import Canary


def arguments(command: ArgumentParser) -> None:
    told = "do not start Hermes to see whether each hook fires once and is honoured"
    add(command, "--no-canary", told, action="store_false", dest="canary")
    told = "for a pipeline: no colour, no progress, and an error where nothing could be tried"
    add(command, "--ci", told)
    told = "also write JUnit XML: a test case for each check and each proof"
    add(command, "--junit FILE", told, type=Path)
    told = "how long loading may take, and trying the hooks in Hermes"
    told += f" (default: {LOAD_SECONDS:g} and {CANARY_SECONDS:g})"
    add(command, "--deadline SECONDS", told, type=seconds)


def work(request: Request) -> Result:
    """Examines the configuration, the extensions and the host, and tries the hooks in Hermes."""
    # Not at the top: no other command looks at other plugins.
    from hermes_ext.hosts.hermes.canary.neighbors import neighbor_findings

    loading, findings, survey = _examined(request)
    findings = _ordered(findings, neighbor_findings(request.home))
    canary = _tried(request) if request.canary else None
    if canary is not None:
        from hermes_ext.hosts.hermes.canary.findings import canary_findings

        findings = _ordered(findings, canary_findings(canary, must_run=request.ci))
    counts = {
        f"{severity}s": sum(finding["severity"] == severity for finding in findings)
        for severity in Severity
    }
    host, seen = host_package(), inventory(request.home, request.cwd)
    confinement = confinement_here(seen.config, survey)
    payload = {
        "home": printable(request.home),
        "hermes_agent": host and host.version,
        "hermes_distribution": host and host.name,
        **projects_of(seen.projects),
        "checked": loading.data.get("checked", 0),
        "findings": findings,
        "canary": None if canary is None else canary.to_json(),
        "confinement": {
            "level": confinement.rung and str(confinement.rung),
            "why": confinement.why,
            "gaps": [*confinement.gaps],
            "advice": [*confinement.advice],
        },
        **counts,
    }
    if request.junit is not None:
        write_junit(request.junit, redacted(payload))
    return Result(1 if counts["errors"] else 0, payload)


def _examined(request: Request) -> tuple[Loading, list[dict[str, Any]], Survey]:
    seconds = request.deadline or LOAD_SECONDS
    with patience("Looking at Hermes", quiet=request.ci) as tell:
        host = look_at_host(request.home)
        tell("Loading the extensions")
        loading = load_in_child(
            request.home, request.cwd, seconds, request.prog, host=host, ci=request.ci
        )
    if loading.failure is None:
        return loading, loading.data["findings"], host
    home, cwd, prog, culprit = request.home, request.cwd, request.prog, loading.culprit
    seen = inventory(home, cwd)
    hint = (
        advice_on(culprit, prog, required=seen.config.is_required(culprit))
        if culprit
        else "Turn extensions off one by one to find the one that does it, or give them longer"
        " with --deadline"
    )
    stopped = Finding(Severity.ERROR, "load-stopped", culprit, None, loading.failure, hint)
    rest = (
        *examine(home, cwd, host_tools=host.tools, ci=request.ci, prog=prog),
        *host_findings(home, seen, host, prog),
    )
    return loading, [finding.to_json() for finding in in_order([stopped, *rest])], host


def _tried(request: Request) -> Canary:
    # Not at the top: no other command needs a server or threads.
    from hermes_ext.hosts.hermes.canary.trial import Canary, try_canary

    seconds = request.deadline or CANARY_SECONDS
    with patience("Trying the hooks in Hermes", quiet=request.ci) as tell:
        try:
            return try_canary(request.home, seconds=seconds, tell=tell)
        except OSError as error:
            return Canary(why_not=f"no scratch home could be made: {error.strerror or error}")


def _ordered(
    findings: Iterable[Mapping[str, Any]], more: Iterable[Finding]
) -> list[dict[str, Any]]:
    rows = [*map(dict, findings), *(finding.to_json() for finding in more)]
    return sorted(rows, key=lambda row: Severity(row["severity"]).rank)


def page(payload: Mapping[str, Any], page: Page) -> None:
    if trusted(payload, page):
        page.blank()
    for severity in ("error", "warning", "note"):
        found = [each for each in payload["findings"] if each["severity"] == severity]
        if found:
            page.line((counted(len(found), severity), f"bold {STYLES[severity]}"))
            for finding in found:
                _told(finding, page)
            page.blank()
    _canary(payload["canary"], page)
    _confinement(payload["confinement"], page)
    name, version = payload["hermes_distribution"], payload["hermes_agent"]
    host = f"{printable(name)} {printable(version)}" if name else "no hermes-agent here"
    about = f"{counted(payload['checked'], 'extension')} checked, {host}."
    if payload["errors"]:
        page.line((f"Something is wrong. {about}", "red"))
    else:
        warned = f", {counted(payload['warnings'], 'warning')}" if payload["warnings"] else ""
        page.line((f"No errors{warned}. {about}", "yellow" if warned else "green"))


def _told(finding: Mapping[str, Any], page: Page) -> None:
    who = f"{printable(finding['extension'])}: " if finding["extension"] else ""
    page.line((who, "bold"), (finding["code"], ""), indent=4)
    page.lines(finding["message"], indent=8)
    if finding["where"]:
        page.lines(f"at {finding['where']}", indent=8, style="dim")
    if finding["hint"]:
        page.lines(finding["hint"], indent=8)


def _canary(canary: Mapping[str, Any] | None, page: Page) -> None:
    """A line for each hook, with what came of it on each surface."""
    if canary is None:
        return
    if canary["why_not"]:
        page.lines(f"The hooks were not tried in Hermes: {canary['why_not']}.", style="yellow")
        page.blank()
        return
    with_plugins = f", with {', '.join(canary['plugins'])}" if canary["plugins"] else ""
    page.line(("Tried in Hermes", "bold"), printable(with_plugins))
    for hook in dict.fromkeys(proof["hook"] for proof in canary["proofs"]):
        cells: list[str | tuple[str, str]] = [f"{hook:<22}"]
        for proof in canary["proofs"]:
            if proof["hook"] == hook:
                cells += [f"  {proof['surface']} ", _came_to(proof)]
        page.line(*cells, indent=4)
    for reason in dict.fromkeys(
        proof["detail"] for proof in canary["proofs"] if proof["status"] == "skipped"
    ):
        page.lines(f"Skipped: {reason}.", indent=4)
    page.blank()


def _confinement(found: Mapping[str, Any], page: Page) -> None:
    """How calls are confined, and what they can still do; where none can be, a finding says so."""
    if found["level"] is None:
        return
    page.line(("Calls are confined", "bold"), f" by {found['why']}")
    page.line("A confined program can still:", indent=4)
    for gap in found["gaps"]:
        page.lines(f"- {gap}", indent=4)
    page.blank()


def _came_to(proof: Mapping[str, Any]) -> tuple[str, str]:
    status = proof["status"]
    if status in {"ok", "skipped"}:
        return status, "green" if status == "ok" else "dim"
    if status == "repeated":
        return f"fired {proof['fired']} times, not {proof['events']}", "red"
    return status.replace("-", " "), "red"
