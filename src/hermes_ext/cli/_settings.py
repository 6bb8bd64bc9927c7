"""The settings of one extension, each with where it comes from; secrets are not told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hermes_ext._redaction import redacted
from hermes_ext._redaction.names import is_secret
from hermes_ext._text import printable
from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.inventory import Inventory
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.by_schema import example, missing_settings
from hermes_ext.settings.merging import Merged


def settings_of(
    record: ExtensionRecord, candidate: Candidate | None, seen: Inventory
) -> dict[str, Any]:
    """settings: by leaf, with `from`. problems: why they cannot be used. ignored: what the
    project says, and may not.
    """
    candidate = candidate or Candidate(record.name, Source.GLOBAL, record.path)
    merged = seen.merged(record, candidate)
    leaves = (
        {"key": printable(".".join(path)), "value": _told(path, merged.values), "from": origin}
        for path, origin in merged.origins.items()
        if path  # without settings there is one leaf, the empty mapping itself
    )
    return {
        "settings": [*leaves, *_missing(record, candidate, merged)],
        "problems": [problem.to_json() for problem in merged.problems],
        "ignored": [problem.to_json() for problem in merged.warnings],
    }


def _missing(
    record: ExtensionRecord, candidate: Candidate, merged: Merged
) -> Iterator[dict[str, Any]]:
    """What has to be set, and is not."""
    if record.status is Status.UNTRUSTED or candidate.manifest is None:
        return
    for path, schema in missing_settings(candidate.manifest.config, merged.values):
        said = example(str(path[-1]), schema)
        key = printable(".".join(map(str, path)))
        yield {"key": key, "value": None, "from": printable(f"missing; write, say, {said}")}


def _told(path: Sequence[str], value: Any) -> Any:
    """The value of a leaf without secrets, whose names may stand anywhere on the way to it."""
    for step in path:
        value = next(below for key, below in value.items() if str(key) == step)
    name = next(filter(is_secret, path), path[-1])
    return redacted({name: value})[name]
