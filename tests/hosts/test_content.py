"""The text of a result that holds images, and the same result with another text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ext.hosts.hermes.adapter.gate.results import text_of_result, with_text

PNG = "data:image/png;base64,iVBORw0KGgo="
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def envelope(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"_multimodal": True, "content": list(parts), **more}


# Each holds SECRET somewhere; what is left of it when the text becomes NEW.
HOLDERS = {
    "a text": (envelope(text("SECRET"), IMAGE), [IMAGE]),
    "several": (envelope(text("one"), IMAGE, text("SECRET"), IMAGE), [IMAGE, IMAGE]),
    "a bare string": (envelope(IMAGE, "SECRET"), [IMAGE]),
    "only in the summary": (envelope(text("seen"), IMAGE, text_summary="SECRET"), [IMAGE]),
    "a summary of more": (envelope(IMAGE, text_summary={"path": "SECRET"}), [IMAGE]),
    "a caption": (envelope({**IMAGE, "alt_text": "SECRET"}), [IMAGE]),
    "a caption inside": (
        envelope({"type": "image_url", "image_url": {"url": PNG, "caption": "SECRET"}}),
        [IMAGE],
    ),
    "captions": (envelope({**IMAGE, "captions": ["a", {"b": "SECRET"}]}), [IMAGE]),
    "another text": (envelope({"type": "input_text", "text": "SECRET"}, IMAGE), [IMAGE]),
    "a text in a list": (envelope({"type": "text", "text": ["SECRET"]}, IMAGE), [IMAGE]),
    "a resource": (
        envelope({"type": "resource", "resource": {"uri": "file:///x", "text": "SECRET"}}, IMAGE),
        [IMAGE],
    ),
    "a link": (envelope({"type": "resource_link", "uri": "SECRET", "name": "n"}, IMAGE), [IMAGE]),
    "a document": (
        envelope(
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "SECRET"},
            },
            IMAGE,
        ),
        [IMAGE],
    ),
    "an inner result": (
        envelope({"type": "tool_result", "content": [text("SECRET")]}, IMAGE),
        [IMAGE],
    ),
    "a list": ([text("SECRET"), IMAGE], [IMAGE]),
}


@pytest.mark.parametrize(("result", "images"), HOLDERS.values(), ids=HOLDERS)
def test_no_text_is_left_out(result: Any, images: list[Any]) -> None:
    """Handlers see each text, and none of the old ones stays beside the new one."""
    before = json.dumps(result)
    seen = text_of_result(result)
    assert "SECRET" in seen
    assert PNG not in seen
    changed = with_text(result, "NEW")
    assert json.dumps(result) == before
    assert "SECRET" not in json.dumps(changed)
    content = changed["content"] if isinstance(changed, dict) else changed
    assert content == [text("NEW"), *images]
    if isinstance(changed, dict):
        assert changed["text_summary"] == "NEW"
    assert text_of_result(changed) == "NEW"


def test_each_text_once() -> None:
    """The summary repeats the text; handlers need not see it twice."""
    result = envelope(text("one"), text("two"), IMAGE, text_summary="one\ntwo")
    assert text_of_result(result) == "one\ntwo"
    assert text_of_result(envelope(text("one"), IMAGE, text_summary="short")) == "one\nshort"


def test_images_of_other_forms_stay() -> None:
    """Their payload and what tells how to read it."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
    parts = [{"type": "image", "source": source}, {"type": "input_image", "image_url": PNG}]
    assert text_of_result(envelope(*parts)) == ""
    assert with_text(envelope(*parts), "x")["content"][1:] == parts


def test_what_is_not_parts() -> None:
    """Anything else is JSON to handlers, and the text that they make of it afterwards."""
    for result in ({"content": [text("a")]}, {"a": 1}, [1, 2], None):
        assert text_of_result(result) == json.dumps(result)
        assert with_text(result, "x") == "x"


LEAVES = st.none() | st.integers() | st.text()
ANYTHING = st.recursive(
    LEAVES, lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside), max_leaves=20
)
PARTS = st.lists(
    st.text()
    | st.builds(lambda more: {**more, "type": "image"}, st.dictionaries(st.text(), ANYTHING))
)


@given(PARTS)
def test_any_parts(parts: list[Any]) -> None:
    """A rewrite leaves no other text, wherever it was."""
    assert text_of_result(with_text(envelope(*parts), "NEW")) == "NEW"
