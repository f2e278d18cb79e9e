"""Token counts in the forms in which providers give them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moonbox.adapters.loop import Tokens


@pytest.mark.parametrize(
    ("response", "tokens"),
    [
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}}, Tokens(10, 3)),
        ({"usage": {"input_tokens": 10, "output_tokens": 3}}, Tokens(10, 3)),
        (
            SimpleNamespace(usage=SimpleNamespace(input_tokens=1, cache_read_input_tokens=9, output_tokens=3)),
            Tokens(10, 3),
        ),
        (
            SimpleNamespace(
                usage_metadata=SimpleNamespace(
                    prompt_token_count=10, candidates_token_count=2, thoughts_token_count=None
                )
            ),
            Tokens(10, 2),
        ),
        ({"usage": None}, Tokens()),
        ({"usage": {"prompt_tokens": "many"}}, Tokens()),
        (None, Tokens()),
    ],
)
def test_tokens_of_an_answer(response: Any, tokens: Tokens) -> None:
    assert Tokens.of(response) == tokens


def test_tokens_add_up() -> None:
    assert Tokens(1, 2) + Tokens(3, 4) == Tokens(4, 6)
    assert (Tokens(1, 2) + Tokens(3, 4)).total == 10
