"""Text as it is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.knowledge.text import clean, clean_line, joined, separated


def test_control_characters_are_gone() -> None:
    assert clean("a\x00b\x1b[2Jc\x07\x9bd\ufeff\u200be\x1b") == "abcde"
    assert clean("one\r\ntwo\rthree\tfour") == "one\ntwo\nthree\tfour"
    assert clean("lone \ud800 surrogate") == "lone  surrogate"


def test_a_line_is_one_line() -> None:
    assert clean_line("  a \n b\u2028c  ") == "a b c"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("plain words", "plain words"),
        ("naïve café", "naïve café"),
        ("東京都", "東|京|都"),
        ("in東京2020 ok", "in|東|京|2020 ok"),
        ("서울에서", "서|울|에|서"),
        ("ภาษา", "ภ|า|ษ|า"),
        ("、東。", "、東。"),
    ],
)
def test_scripts_without_spaces_are_cut_into_characters(text: str, cut: str) -> None:
    assert separated(text) == cut.replace("|", "\u200b")


@given(st.text())
def test_cutting_is_undone(text: str) -> None:
    text = clean(text)
    assert joined(separated(text)) == text
