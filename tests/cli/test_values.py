"""Values and quantities: how they are shown, and how they are typed."""

from __future__ import annotations

import math

import pytest

from moonbox.cli.options import byte_count, count, duration
from moonbox.cli.output import plain_text, pretty
from moonbox.errors import UsageError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (2**63 - 1, "9223372036854775807"),
        (0.1, "0.1"),
        ("a\n\x1b\u202e", '"a\\n\\u001b\\u202e"'),
        ([], "[]"),
        ({}, "{}"),
        ({1: "a", "b": [None]}, '{[1]: "a", "b": [null]}'),
        (b"\xff", "\\xff"),
    ],
)
def test_a_value_on_one_line(value: object, shown: str) -> None:
    assert pretty(value, 80)[0].plain == shown


def test_what_does_not_fit_goes_on_lines() -> None:
    value = {"name": "x" * 20, "inner": {"list": [1, 2, 3], "more": "y" * 20}}
    assert pretty(value, 30)[0].plain.splitlines() == [
        "{",
        '  "inner": {',
        '    "list": [1, 2, 3],',
        '    "more": "yyyyyyyyyyyyyyyyyyyy"',
        "  },",
        '  "name": "xxxxxxxxxxxxxxxxxxxx"',
        "}",
    ]


def test_long_tables_and_strings_are_shortened() -> None:
    text, shortened = pretty([*range(100)], 20, items=3)
    assert (text.plain, shortened) == ("[0, 1, 2, … 97 more]", True)
    text, _ = pretty("z" * 600, 80, chars=500)
    assert text.plain == f'"{"z" * 500}" … 100 more characters'
    assert not pretty([1, 2, 3], 20)[1]


def test_a_value_never_takes_more_than_its_rows() -> None:
    nested: object = "leaf " * 20
    for _ in range(6):
        nested = [nested] * 10
    text, shortened = pretty(nested, 40, rows=50)
    assert shortened
    assert text.plain.count("\n") <= 50


def test_plain_text() -> None:
    assert [plain_text(value) for value in ("a b", 1, None, {"a": [1.5]}, [b"\xff"])] == [
        "a b", "1", "null", '{"a":[1.5]}', '["\\\\xff"]'
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (duration, "10", 10.0),
        (duration, "500ms", 0.5),
        (duration, "2m", 120.0),
        (duration, "none", math.inf),
        (byte_count, "64k", 65536),
        (byte_count, "64MiB", 64 * 1024**2),
        (byte_count, "64MB", 64_000_000),
        (byte_count, "1.5k", 1536),
        (count, "10_000", 10_000),
        (count, "10k", 10_000),
    ],
)
def test_quantities(parse, text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [(duration, "soon"), (byte_count, "0.3"), (count, "5s"), (count, "-1"), (count, "9" * 400), (duration, "9" * 400)],
)
def test_what_is_no_quantity(parse, text: str) -> None:
    with pytest.raises(UsageError, match=f"'{text}' is not "):
        parse(text)
