"""What a trial found, as doctor's findings: one for what is wrong in the same way everywhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from hermes_ext._text import as_name, printable
from hermes_ext.doctor import Finding, Severity
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.wraps.lacking import listed
from hermes_ext.hosts.hermes.adapter.wraps.seams import CALLED
from hermes_ext.hosts.hermes.canary.proofs import Proof, Surface
from hermes_ext.hosts.hermes.canary.trial import Canary
from hermes_ext.hosts.hermes.facts.host_package import host_package, host_program


def canary_findings(canary: Canary, *, must_run: bool) -> Iterator[Finding]:
    """Errors for what failed; a note for each plugin that was not there.

    must_run: that nothing could be tried is an error.
    """
    if canary.why_not is not None and (must_run or host_package() is not None):
        severity = Severity.ERROR if must_run else Severity.WARNING
        told = f"the hooks were not tried in Hermes: {canary.why_not}"
        hint = "Mend it, or leave the trial out: --no-canary"
        yield Finding(severity, "canary-not-tried", None, None, told, hint)
    for proofs in _alike(canary.proofs):
        yield _finding(proofs, canary)
    for name in canary.absent:
        told = f"tried without the plugin {as_name(name, 60)}, which did not load there"
        hint = "It may not be installed, or need keys or data of its own, which are not copied"
        yield Finding(Severity.NOTE, "canary-plugin-absent", None, "plugins.enabled", told, hint)


def _alike(proofs: Sequence[Proof]) -> list[list[Proof]]:
    """The failed proofs in groups: on the same surfaces the same hooks, for the same reason."""
    hooks: dict[tuple[Surface, str, str | None], list[Proof]] = {}
    for proof in proofs:
        if proof.failed:
            hooks.setdefault((proof.surface, proof.status, proof.detail), []).append(proof)
    groups: dict[tuple[tuple[HookName, ...], str, str | None], list[Proof]] = {}
    for (_, status, detail), same in hooks.items():
        groups.setdefault((tuple(p.hook for p in same), status, detail), []).extend(same)
    return [*groups.values()]


def _finding(proofs: Sequence[Proof], canary: Canary) -> Finding:
    hooks = list(dict.fromkeys(str(proof.hook) for proof in proofs))
    surfaces = list(dict.fromkeys(proof.surface for proof in proofs))
    suspects = list(dict.fromkeys(suspect for proof in proofs for suspect in proof.suspects))
    status = str(proofs[0].status)
    none = len(hooks) == len(CALLED) and status == "not-reached"
    what = "no hook is reached" if none else f"{listed(hooks)}: {status.replace('-', ' ')}"
    reasons = [printable(proofs[0].detail or ""), *map(str, suspects)]
    return Finding(
        Severity.ERROR,
        f"canary-{status}",
        None,
        suspects[0].seam if suspects else None,
        f"on {listed(surfaces)}, {what}: {'; '.join(filter(None, reasons))}{_blame(canary)}",
        _hint(canary),
    )


def _blame(canary: Canary) -> str:
    if not canary.culprits:
        return ""
    names = listed([as_name(name, 60) for name in canary.culprits])
    return f". It is the doing of the plugin{'s' if len(canary.culprits) > 1 else ''} {names}"


def _hint(canary: Canary) -> str:
    program = host_program()
    if canary.culprits:
        commands = [f"{program} plugins disable {shlex.quote(name)}" for name in canary.culprits]
        return f"Until it is mended: {' && '.join(commands)}"
    return (
        f"See whether `{program} -z hello` works; if it does, use a version of hermes-agent that"
        " this package knows, or a newer package"
    )
