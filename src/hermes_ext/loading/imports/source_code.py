"""Python source to code, with the same errors in all versions of Python."""

from __future__ import annotations

from types import CodeType


def compiled(data: bytes, path: str) -> CodeType:
    """The code of a module. Raises SyntaxError with file and line."""
    if b"\0" in data:  # told alike by all versions of Python, and with a line
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise SyntaxError(
            "source code holds null bytes; save it as UTF-8", (path, line, None, None)
        )
    code: CodeType = compile(data, path, "exec", dont_inherit=True)
    return code
