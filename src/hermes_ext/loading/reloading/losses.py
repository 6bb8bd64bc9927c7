"""What would be lost by taking what is on the disk now. If anything is, nothing of it is taken.

Only the configuration turns an extension off. Code that does not load, that is gone, or that is no
guard any more takes nothing out of force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes_ext._text import is_same_name, printable
from hermes_ext.hooks.handler import Handler
from hermes_ext.loading.ended import Loaded
from hermes_ext.loading.finding.discovery import OFF_UNTIL_NAMED
from hermes_ext.records import BROKEN, ExtensionRecord, Status
from hermes_ext.settings.config import ExtensionsConfig, switched_off


def config_losses(old: ExtensionsConfig, new: ExtensionsConfig) -> list[str]:
    """What is wrong with a configuration that was not wrong with the one in force."""
    if not new.readable:
        return [str(each) for each in new.problems]
    if not old.readable:
        return []
    if old.has_section and not new.has_section:
        return [
            f"{printable(new.file)} has no section `extensions` any more. To turn extensions off, "
            "name them in `extensions.disabled`, or set `extensions.enabled: false`"
        ]
    known = {(each.key, each.message) for each in old.problems}
    return [str(each) for each in new.problems if (each.key, each.message) not in known]


def losses(old: Loaded, new: Loaded) -> list[str]:
    """What was in force, is still configured on, and would not be in force any more."""
    found = [text for record in old.records if record.loaded for text in _lost(record, old, new)]
    return list(dict.fromkeys(found))


def _lost(record: ExtensionRecord, old: Loaded, new: Loaded) -> Iterator[str]:
    name, config = record.name, new.config
    if _is_off(record, config):
        return
    now = _loaded(name, new.records)
    if now is None:
        yield from _why_gone(record, old, new)
        return
    hooks_off = config.hooks_off(name)
    if record.hooks and not now.hooks and not now.turned_off and not hooks_off:
        told = "; ".join(now.warnings) or "it registers no handler any more"
        yield f"{name} ({printable(now.path or '')}): {told}"
        return
    if now.source is not record.source and config.is_overridable(name):
        return
    for hook in sorted(_guarded(name, old.handlers) - _guarded(name, new.handlers) - hooks_off):
        yield f"{name} ({printable(now.path or '')}) has no guard on {hook} any more"


def _is_off(record: ExtensionRecord, config: ExtensionsConfig) -> bool:
    if switched_off() or not config.enabled or config.is_disabled(record.name):
        return True
    return record.source in OFF_UNTIL_NAMED and not config.is_on(record.name)


def _why_gone(record: ExtensionRecord, old: Loaded, new: Loaded) -> Iterator[str]:
    same = [each for each in new.records if is_same_name(each.name, record.name)]
    failed = [each for each in same if each.status in BROKEN or each.status is Status.SKIPPED]
    if failed and failed[0].status is not Status.MISSING:
        yield f"{record.name} ({failed[0].status}): {failed[0].reason}"
        return
    required = record.required or new.config.is_required(record.name)
    if required or _guarded(record.name, old.handlers):
        where = "" if record.path is None else f" from {printable(record.path)}"
        yield (
            f"{record.name} is gone{where}, and it is a guard or required. To turn it off, name it "
            "in `extensions.disabled`"
        )


def _loaded(name: str, records: Iterable[ExtensionRecord]) -> ExtensionRecord | None:
    return next((e for e in records if e.loaded and is_same_name(e.name, name)), None)


def _guarded(name: str, handlers: Iterable[Handler]) -> set[str]:
    """The hooks on which an extension has a guard."""
    guards = (each for each in handlers if each.guard)
    return {each.hook.value for each in guards if is_same_name(each.extension, name)}
