"""Inputs for the targets: out of their tokens and seeds, or of any bytes."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.fuzz.targets import Target

__all__ = ["inputs"]


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Texts of tokens, seeds with a piece changed, and any bytes."""
    any_bytes = st.binary(max_size=200)
    tokens = st.sampled_from(target.tokens) if target.tokens else st.binary(max_size=4)
    pieces = st.one_of(tokens, tokens, tokens, st.binary(max_size=3))
    texts = st.lists(pieces, max_size=12).map(b"".join)
    if not target.seeds:
        return st.one_of(texts, any_bytes)
    changed = st.builds(_changed, st.sampled_from(target.seeds), st.integers(0, 999),
                        st.integers(0, 12), pieces)  # fmt: skip
    return st.one_of(texts, changed, changed, any_bytes)


def _changed(seed: bytes, place: int, gone: int, new: bytes) -> bytes:
    at = place % (len(seed) + 1)
    return seed[:at] + new + seed[at + gone :]
