"""Hermes logs how each message begins before a turn sees it: not where it may be withheld."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Final

from hermes_ext.hosts.hermes.adapter import host

# By module: how its line about a message begins, and what stands right in front of the message.
LINES: Final = {
    "gateway.run": ("inbound message: ", "msg=%r"),
    "acp_adapter.server": ("Prompt on session ", ": %s"),
    "cron.scheduler": ("Prompt: ", "%s"),
}
_INSTEAD: Final = "[not logged: extensions look at it first]"


class _Inbound(logging.Filter):
    """Takes the message out of a module's line about it while input handlers are on."""

    def __init__(self, start: str, text: str) -> None:
        super().__init__()
        self._start = start
        self._text = text

    def filter(self, record: logging.LogRecord) -> bool:
        form, args = record.msg, record.args
        if isinstance(form, str) and form.startswith(self._start) and isinstance(args, tuple):
            before, found, _ = form.partition(self._text)
            place = before.count("%")
            if found and place < len(args) and _may_be_withheld():
                record.args = (*args[:place], _INSTEAD, *args[place + 1 :])
        return True


def _may_be_withheld() -> bool:
    try:
        return host.may_withhold_input()
    except Exception:  # noqa: BLE001 - whether a handler is on is unknown: the text stays out
        return True


def attach(module: ModuleType) -> None:
    """Put the filter on a module's logger, once."""
    found = getattr(module, "logger", None)
    if isinstance(found, logging.Logger) and not any(
        isinstance(one, _Inbound) for one in found.filters
    ):
        found.addFilter(_Inbound(*LINES[module.__name__]))
