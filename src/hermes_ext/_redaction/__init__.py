"""Secrets out of what is shown: by what they look like, and by the names that they stand behind.

What is shown to a person may end in a ticket or a chat. So this leaves out rather too much, while
the bundled redact-secrets, whose output a model works with, is sparing.
"""

from __future__ import annotations

from hermes_ext._redaction.showing import redacted

__all__ = ["redacted"]
