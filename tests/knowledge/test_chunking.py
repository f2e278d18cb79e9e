"""Chunks: sizes, borders, headings, overlap."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox.knowledge.text import MAX_CHARS, OVERLAP, chunk_text, clean, clean_line, joined, separated
from tests.counting import count_calls

PARAGRAPH = "A sentence of some length stands here. " * 20


def pieces(text: str, **more: bool) -> list[tuple[str, str]]:
    return [(piece.heading, text[piece.start : piece.end]) for piece in chunk_text(text, **more)]


def rebuilt(text: str) -> str:
    return "".join(text[piece.start + piece.overlap : piece.end] for piece in chunk_text(text))


def test_a_short_text_is_one_chunk() -> None:
    assert pieces("hello") == [("", "hello")]
    assert pieces("") == [("", "")]


CODE = f"```sh\n# not a heading\n{PARAGRAPH}\n```\n~~~\n# neither\n```\n# nor this\n~~~"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        (
            f"# Guide\n\n{PARAGRAPH}\n\n## Install\n\n{PARAGRAPH}\n\n### Linux\n\n{PARAGRAPH}\n\n## Use\n\n{PARAGRAPH}",
            ["Guide", "Guide > Install", "Guide > Install > Linux", "Guide > Use"],
        ),
        (f"Guide\n=====\n\n{PARAGRAPH}\n\nInstall\n-------\n\n{PARAGRAPH}", ["Guide", "Guide > Install"]),
        (f"# Real\n\n{CODE}\n\n# Next\n{PARAGRAPH}", ["Real", "Next"]),
    ],
    ids=["marked", "underlined", "code"],
)
def test_headings_begin_chunks_and_are_kept_as_context(text: str, headings: list[str]) -> None:
    assert [heading for heading, _ in pieces(text)] == headings
    assert all(part.startswith(("#", "Guide", "Install")) for _, part in pieces(text))


def test_a_rule_or_a_table_is_no_heading() -> None:
    text = f"{PARAGRAPH}\n\n---\n\n| a | b |\n|---|---|\n- item\n-\n{PARAGRAPH}\nmore\nlines\n---\n"
    assert {heading for heading, _ in pieces(text)} == {""}


def test_short_sections_stay_together() -> None:
    text = "# One\n\na\n\n# Two\n\nb\n\n# Three\n\nc\n"
    assert pieces(text) == [("One", text)]


def test_plain_text_has_no_headings() -> None:
    text = f"# a comment\n{PARAGRAPH}"
    assert pieces(text, markdown=False) == [("", text)]


def test_long_sections_are_cut_between_paragraphs_with_overlap() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 90 for number in range(8))
    found = chunk_text(text)
    assert len(found) > 2
    for before, after in itertools.pairwise(found):
        assert text[before.end - 2 : before.end] == "\n\n"
        assert 0 < after.overlap <= OVERLAP
        assert text[after.start : after.start + after.overlap] == text[before.end - after.overlap : before.end]


def test_long_paragraphs_are_cut_after_sentences_and_then_anywhere() -> None:
    text = PARAGRAPH * 4
    assert all(text[piece.start : piece.end].rstrip().endswith(".") for piece in chunk_text(text))
    wall = "x" * 5000
    assert [piece.end - piece.start for piece in chunk_text(wall)] == [1200, 1200, 1200, 1200, 200]


@given(
    st.lists(
        st.sampled_from(["# H\n", "text ", "\n", "\n\n", "```\n", "=\n", "-", ". ", "wörd", "x" * 700, "東京" * 300])
    )
)
def test_chunks_are_bounded_and_make_up_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    found = chunk_text(text)
    assert rebuilt(text) == text
    assert all(piece.end - piece.start <= MAX_CHARS for piece in found)
    assert all(0 <= piece.start <= piece.start + piece.overlap <= piece.end for piece in found)


@pytest.mark.parametrize("part", ["#", "```\n", "a", "\n", "=\n", "a\n=\n", "# \n", " ", "-", ". ", "~~~x\n", "\t\n"])
def test_hostile_texts_take_linear_work(part: str) -> None:
    text = part * (50_000 // len(part))
    once, twice = count_calls(lambda: chunk_text(text)), count_calls(lambda: chunk_text(text * 2))
    assert twice < once * 2.5 + 1000


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
