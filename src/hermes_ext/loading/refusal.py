"""Why every tool call is refused: a configuration that cannot be read, a required extension that is
not there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from hermes_ext._text import canonical_name, printable
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.config import ExtensionsConfig, switched_off


def expected_refusal(config: ExtensionsConfig, records: Iterable[ExtensionRecord]) -> str | None:
    """Why every tool call will be refused, as far as that is known before anything is loaded.

    records: of an inventory.
    """
    fine = {canonical_name(each.name) for each in records if each.status is Status.ENABLED}
    return refusal_with(config, records, fine)


def refusal_with(
    config: ExtensionsConfig, records: Iterable[ExtensionRecord], loaded: Container[str]
) -> str | None:
    """Why every tool call is refused where these are loaded, by canonical name; None if none is."""
    if switched_off():
        return None
    if not config.readable:
        # Which guards the user has on is not known, and not knowing is no leave.
        faults = "; ".join(map(str, config.problems))
        return f"Tool calls are refused because the configuration cannot be read: {faults}"
    if not config.enabled:
        return None
    told = [
        f"{name} ({_reason(name, records)})"
        for name in config.required
        if canonical_name(name) not in loaded
    ]
    if not told:
        return None
    return (
        f"Tool calls are refused because a required extension is not loaded: {'; '.join(told)}. "
        f"Repair it, or take it out of extensions.required in {printable(config.file)}"
    )


def _reason(name: str, records: Iterable[ExtensionRecord]) -> str:
    same = [each for each in records if canonical_name(each.name) == canonical_name(name)]
    same.sort(key=lambda record: record.status is Status.SHADOWED)
    return f"{same[0].status}: {same[0].reason}" if same else "not found"
