"""Values of every kind that crosses between host and script, for tests with random data."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

INTEGERS = st.integers(-(2**63), 2**63 - 1)


def plain_values(
    *, text: st.SearchStrategy[str] | None = None, keys: st.SearchStrategy[Any] | None = None, max_leaves: int = 20
) -> st.SearchStrategy[Any]:
    """Plain values; `text` are their strings, `keys` those of their tables."""
    text = st.text() if text is None else text
    keys = text | INTEGERS if keys is None else keys
    leaves = st.none() | st.booleans() | INTEGERS | st.floats() | text | st.binary(max_size=20)
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=max_leaves)
