"""The package's logger. What goes into Hermes's log files through it has no secrets in it.

An exception's own text often holds what a handler was given: a call's arguments, a result. So the
message and the traceback are searched here, where all of them come by, and not where each is made.
"""

from __future__ import annotations

import logging
from typing import Final


class _WithoutSecrets(logging.Filter):
    """Replaces what a record would show by what may be shown; drops none, and never raises."""

    def filter(self, record: logging.LogRecord) -> bool:
        from hermes_ext._redaction import redacted

        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a foreign object's own __str__; the rest is logged
            text = "a message that cannot be shown"
        record.msg, record.args = redacted(text), None
        if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
            record.exc_text = _traceback(record)
        if record.exc_text:
            record.exc_text = redacted(record.exc_text)
        # Some handlers write the exception itself.
        record.exc_info = None
        if record.stack_info:
            record.stack_info = redacted(record.stack_info)
        return True


def _traceback(record: logging.LogRecord) -> str:
    error = record.exc_info
    assert error is not None
    try:
        return logging.Formatter().formatException(error)
    except Exception:  # noqa: BLE001 - likewise
        return f"{getattr(error[0], '__name__', 'an exception')} (its text cannot be read)"


logger: Final = logging.getLogger("hermes_ext")
if not any(isinstance(each, _WithoutSecrets) for each in logger.filters):
    logger.addFilter(_WithoutSecrets())
