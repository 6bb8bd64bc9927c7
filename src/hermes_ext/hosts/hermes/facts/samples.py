"""Calls and results of Hermes's tools, on which an extension can be tried without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# In two parts, so that nothing takes it for a key that somebody forgot here.
_KEY: Final = "AKIA" + "IOSFODNN7EXAMPLE"

_CALLS: Final = (
    {
        "tool_name": "write_file",
        "tool_args": {"path": "src/app.py", "content": "print('hello')\n"},
        "tool_call_id": "sample-call-1",
    },
    {
        "tool_name": "terminal",
        "tool_args": {"command": "git push --force"},
        "tool_call_id": "sample-call-2",
    },
    {"tool_name": "terminal", "tool_args": {"command": "ls -la"}, "tool_call_id": "sample-call-3"},
    {"tool_name": "read_file", "tool_args": {"path": "README.md"}, "tool_call_id": "sample-call-4"},
)
_RESULTS: Final = (
    {
        "tool_name": "terminal",
        "tool_args": {"command": "cat .env"},
        "tool_call_id": "sample-call-5",
        "result": f'{{"output": "AWS_ACCESS_KEY_ID={_KEY}\\n", "exit_code": 0}}',
        "status": "ok",
        "duration_ms": 12,
    },
    {
        "tool_name": "read_file",
        "tool_args": {"path": "README.md"},
        "tool_call_id": "sample-call-6",
        "result": '{"error": "File not found: README.md"}',
        "status": "error",
        "duration_ms": 3,
    },
)

SAMPLES: Final[Mapping[str, tuple[Mapping[str, Any], ...]]] = {
    "intercept_tool_call": _CALLS,
    "transform_tool_result": _RESULTS,
}
"""Events by their hook, each by the names of its arguments."""
