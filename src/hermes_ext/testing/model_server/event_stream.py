"""The binary frames that AWS streams events in: `application/vnd.amazon.eventstream`."""

from __future__ import annotations

import json
import struct
import zlib

from hermes_ext.testing.model_server.script import Json

CONTENT_TYPE = "application/vnd.amazon.eventstream"

_TEXT_HEADER = 7
_CHECKSUM = 4


def frame(kind: str, value: Json) -> bytes:
    """One event as a frame.

    It is its length and that of its headers, a checksum of both, the headers, the data, and a
    checksum of everything before. Numbers are big-endian.
    """
    names = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(_header(name, text) for name, text in names.items())
    data = json.dumps(value).encode()
    prelude = struct.pack(
        "!II", 2 * 4 + _CHECKSUM + len(headers) + len(data) + _CHECKSUM, len(headers)
    )
    message = prelude + _checksum(prelude) + headers + data
    return message + _checksum(message)


def _header(name: str, text: str) -> bytes:
    key, value = name.encode(), text.encode()
    head = struct.pack("!B", len(key)) + key
    return head + struct.pack("!BH", _TEXT_HEADER, len(value)) + value


def _checksum(raw: bytes) -> bytes:
    return struct.pack("!I", zlib.crc32(raw))
