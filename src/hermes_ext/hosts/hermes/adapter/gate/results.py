"""The results of tools, on their way to the model: `transform_tool_result`.

One that holds images is `{"_multimodal": True, "content": [parts], "text_summary": "…"}`. A model
that sees images gets the parts, and any other one the summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hermes_ext._log import logger
from hermes_ext.hosts.hermes.adapter.gate.verdicts import Verdict
from hermes_ext.turns.turn import Turn


def error_result(text: str) -> str:
    """A tool result that says what went wrong, in Hermes's own form."""
    return json.dumps({"error": text}, ensure_ascii=False)


def internal_fault(error: BaseException) -> str:
    """Why a call is refused that could not be judged."""
    return (
        f"[hermes-ext] the call could not be judged ({type(error).__name__}), so it is refused; "
        "the Hermes log has the details"
    )


def looked_at(turn: Turn, verdict: Verdict, result: Any, duration_ms: int) -> Any:
    """The result as the hook `transform_tool_result` leaves it, where anybody waits for it."""
    try:
        text = text_of_result(result)
        outcome = turn.transform_tool_result(
            verdict.tool,
            verdict.arguments,
            text,
            tool_call_id=verdict.call_id,
            status=_status(text),
            duration_ms=duration_ms,
        )
    except Exception as error:  # what nobody could look at is not shown
        logger.exception("hermes-ext could not look at a result of %s", verdict.tool)
        return error_result(internal_fault(error))
    if outcome.blocked:
        return error_result(f"[{outcome.blocked_by}] {outcome.message}")
    return with_text(result, str(outcome.value)) if outcome.changed else result


def _status(text: str) -> str:
    if '"error"' not in text and "\\u" not in text:
        return "ok"  # without reading all of a long result
    try:
        decoded = json.loads(text)
    except ValueError:
        return "ok"
    return "error" if isinstance(decoded, dict) and decoded.get("error") else "ok"


# -- results with images ---------------------------------------------------------------------------

Parts = list[Any]

# Of a part: what tells how to read the rest, and what is no text.
_MARKS: Final = frozenset(
    {"type", "media_type", "mimeType", "mime_type", "format", "detail", "cache_control"}
)
_PAYLOADS: Final = frozenset({"url", "image_url", "data", "blob", "file_data", "file_id", "bytes"})
_SEEN: Final = ("image", "input_image", "audio", "input_audio", "video", "file", "input_file")


def text_of_result(result: Any) -> str:
    """All text of a result that any model may get, one per line, each once."""
    if isinstance(result, str):
        return result
    parts = _parts_of(result)
    if parts is None:
        return json.dumps(result, default=str)
    texts = list(dict.fromkeys(text for part in parts for text in _texts_in(part) if text))
    text = "\n".join(texts)
    summary = _summary_of(result)
    return text if summary in text else f"{text}\n{summary}".lstrip("\n")


def with_text(result: Any, text: str) -> Any:
    """The result with another text, once, in front; images stay as they are."""
    parts = _parts_of(result)
    if parts is None:
        return text
    content = [{"type": "text", "text": text}, *_without_text(parts)]
    if not isinstance(result, dict):
        return content
    return {**result, "content": content, "text_summary": text}


def _parts_of(result: Any) -> Parts | None:
    if isinstance(result, dict) and result.get("_multimodal") is True:
        result = result.get("content")
    return result if isinstance(result, list) and all(map(_is_part, result)) else None


def _is_part(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("type"), str))


def _summary_of(result: Any) -> str:
    summary = result.get("text_summary") if isinstance(result, dict) else None
    return str(summary) if summary else ""


def _texts_in(value: Any, key: str = "", kind: str = "") -> Iterator[str]:
    """The texts in a part, at any depth: a caption, a title, the text of a document."""
    if isinstance(value, str):
        if key not in _MARKS and (key not in _PAYLOADS or _is_text(key, kind)):
            yield str.__str__(value)
    elif isinstance(value, Mapping):
        kind = str(value.get("type") or value.get("media_type") or "")
        for name, each in value.items():
            yield from _texts_in(each, str(name), kind)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts_in(each, key, kind)


def _is_text(key: str, kind: str) -> bool:
    """Whether a payload is text all the same: the `data` of a document's source can be."""
    return key == "data" and kind.startswith("text")


def _without_text(parts: Parts) -> Parts:
    """The parts that are more than text, without the text in them."""
    seen = [part for part in parts if isinstance(part, dict) and part["type"].startswith(_SEEN)]
    return [_stripped(part) for part in seen]


def _stripped(value: Any, kind: str = "") -> Any:
    if isinstance(value, dict):
        kind = str(value.get("type") or value.get("media_type") or "")
        kept = {key: each for key, each in value.items() if not _is_a_text(each, key, kind)}
        return {key: _stripped(each, kind) for key, each in kept.items()}
    return value


def _is_a_text(value: Any, key: str, kind: str) -> bool:
    return not isinstance(value, dict) and any(True for _ in _texts_in(value, key, kind))
