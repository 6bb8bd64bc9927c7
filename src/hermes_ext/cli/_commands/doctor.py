"""`doctor`: loads everything in a child process and checks it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_ext._text import printable
from hermes_ext.cli._examining import doctor as work
from hermes_ext.cli._loading import CANARY_SECONDS
from hermes_ext.cli._options import LOAD_SECONDS
from hermes_ext.cli._page import Page
from hermes_ext.cli._pages import STYLES, counted, trusted
from hermes_ext.cli._values import seconds

__all__ = ["arguments", "page", "work"]


def arguments(command: ArgumentParser) -> None:
    """What it takes."""
    command.add_argument(
        "--no-canary", action="store_false", dest="ext_canary",
        help="do not start Hermes to see whether each hook fires once and is honoured",
    )  # fmt: skip
    command.add_argument(
        "--ci", action="store_true", dest="ext_ci",
        help="for a pipeline: no colour, no progress, and an error where nothing could be tried",
    )  # fmt: skip
    command.add_argument(
        "--junit", metavar="FILE", type=Path, dest="ext_junit",
        help="also write JUnit XML: a test case for each check and each proof",
    )  # fmt: skip
    command.add_argument(
        "--deadline", metavar="SECONDS", type=seconds, dest="ext_deadline",
        help="how long loading may take, and trying the hooks in Hermes"
        f" (default: {LOAD_SECONDS:g} and {CANARY_SECONDS:g})",
    )  # fmt: skip


def page(payload: Mapping[str, Any], page: Page) -> None:
    if trusted(payload, page):
        page.blank()
    for severity in ("error", "warning", "note"):
        found = [each for each in payload["findings"] if each["severity"] == severity]
        if found:
            page.line((counted(len(found), severity), f"bold {STYLES[severity]}"))
            for finding in found:
                _finding(finding, page)
            page.blank()
    _canary(payload["canary"], page)
    name, version = payload["hermes_distribution"], payload["hermes_agent"]
    host = f"{printable(name)} {printable(version)}" if name else "no hermes-agent here"
    about = f"{counted(payload['checked'], 'extension')} checked, {host}."
    if payload["errors"]:
        page.line((f"Something is wrong. {about}", "red"))
    else:
        page.line((f"No errors. {about}", "green"))


def _finding(finding: Mapping[str, Any], page: Page) -> None:
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


def _came_to(proof: Mapping[str, Any]) -> tuple[str, str]:
    status = proof["status"]
    if status in {"ok", "skipped"}:
        return status, "green" if status == "ok" else "dim"
    if status == "repeated":
        return f"fired {proof['fired']} times, not {proof['events']}", "red"
    return status.replace("-", " "), "red"
