"""What people type, as expressions of the index."""

from __future__ import annotations

import pytest

from moonbox.knowledge.search import parse_query


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("alpha beta", '"alpha" AND "beta"'),
        ('"alpha beta" gamma', '"alpha beta" AND "gamma"'),
        ("alph* beta", '"alph"* AND "beta"'),
        ("al* beta", '"al" AND "beta"'),
        ("alpha OR beta gamma", '("alpha" OR "beta") AND "gamma"'),
        ("alpha AND beta", '"alpha" AND "beta"'),
        ("how do I configure the server?", '"configure" AND "server?"'),
        ("to be or not to be", '"not"'),
        ("the", '"the"'),
        ('"the the"', '"the the"'),
        ("get_user", '"get_user"'),
        ("OR alpha", '"alpha"'),
        ("alpha OR", '"alpha"'),
        ("東京", '"東\u200b京"'),
        ('alpha "unclosed phrase', '"alpha" AND "unclosed phrase"'),
        ('say"cheese"', '"say" AND "cheese"'),
    ],
)
def test_what_must_be_there(text: str, every: str) -> None:
    assert parse_query(text).every() == every


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ("alpha -beta", '"beta"'),
        ('alpha -"beta gamma" -delta', '("beta gamma" OR "delta")'),
        ("alpha NOT beta", '"beta"'),
        ("alpha - beta", None),
        ("well-known", None),
    ],
)
def test_what_must_not_be_there(text: str, nothing: str | None) -> None:
    assert parse_query(text).without() == nothing


@pytest.mark.parametrize("text", ["", "   ", "-", '"', '""', "* ** ***", "()", "AND OR NOT", "🙂", "\x00", "- - -"])
def test_queries_without_words(text: str) -> None:
    assert parse_query(text).groups == ()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a1 b2 a1", ('"a1"', '"b2"')),
        ('get_name "as is" a1', ('"get_name"', '"as is"', '"a1"', '"get"', '"name"')),
        ("a1 OR b2 c3", ('("a1" OR "b2")', '"c3"')),
    ],
)
def test_what_counts(text: str, terms: tuple[str, ...]) -> None:
    assert parse_query(text).terms() == terms


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ("a1 b2", None),
        ('a1 "b2 c3"', '"b2 c3"'),
        ('"a1 b2" "c3"', '"a1 b2" AND "c3"'),
        ('"a1" OR b2', None),
        ('"a1" OR "b2"', '("a1" OR "b2")'),
    ],
)
def test_quotes_require(text: str, required: str | None) -> None:
    assert parse_query(text).required() == required


def test_long_queries_are_cut() -> None:
    assert len(parse_query("word " * 10_000).groups) == 32
    assert len(parse_query("x" * 1_000_000).every()) <= 1_002
