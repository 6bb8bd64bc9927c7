"""Secrets out of what is shown: by what they look like, and by the names that they stand behind.

What is shown to a person may end in a ticket or a chat. So this leaves out rather too much, while
the bundled redact-secrets, whose output a model works with, is sparing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["redacted"]


def redacted(value: Any) -> Any:
    """The same value with what is, or may be, a secret replaced by `[redacted]` and what it is.

    Args:
        value: any JSON value; it is not changed.
    """
    # A start that shows nothing does not need the forms of secrets.
    from hermes_ext._redaction import showing

    return showing.in_value(value)
