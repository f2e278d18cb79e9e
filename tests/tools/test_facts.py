"""Facts in descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox.schema.facts import allowed_values, remark


@pytest.mark.parametrize(
    ("description", "values"),
    [
        ('The mode. [Enum]: ["START", "STOP"]', ["START", "STOP"]),
        ("The class. Options are: economy, business, first.", ["economy", "business", "first"]),
        ("The currency. [Enum]: USD, EUR", ["USD", "EUR"]),
        ("Must be one of 'asc', 'desc'.", ["asc", "desc"]),
        ('Either "a" or "b".', ["a", "b"]),
        ("Possible values: new, in transit, or delivered", ["new", "in transit", "delivered"]),
        ("Type of the order (Buy/Sell).", ["Buy", "Sell"]),
        ("One of the user's own", []),
        ("Such as a, b or c", []),
        ("The speed (km/h)", []),
        ("[Enum]: [1, 2]", []),
        ("[Enum]: [broken", []),
        ("Options are: " + ", ".join(f"c{n}" for n in range(40)), []),
        ("", []),
    ],
)
def test_allowed_values(description: str, values: list[str]) -> None:
    assert allowed_values(description) == values


@pytest.mark.parametrize(
    ("description", "form", "said"),
    [
        ("The distance to travel in miles.", None, "miles"),
        ("Start of the range (format: 'YYYY-MM-DD').", None, "YYYY-MM-DD"),
        ("The speed, from 0 to 100. Default is 50.", None, "from 0 to 100"),
        ("The status. null if it was never set. Nice.", None, "null if it was never set"),
        ("The sector (e.g., 'Technology').", None, "e.g., 'Technology'"),
        ("Defaults to None.", None, ""),
        ("The name of the file.", None, ""),
        ("When it was made.", "date-time", "date-time"),
        ('The mode. [Enum]: ["a", "b"]', None, ""),
        ("Must\n\u2028be (set)", None, "Must be [set]"),
        ("Must " + "very " * 40 + "much", None, "Must" + " very" * 14 + "…"),
    ],
)
def test_remarks(description: str, form: str | None, said: str) -> None:
    assert remark("field", description, {"format": form}) == said


@pytest.mark.parametrize(
    ("schema", "description", "said"),
    [
        ({"minimum": 1, "maximum": 50}, "", "1 to 50"),
        ({"maximum": 50}, "How many.", "at most 50"),
        ({"maximum": 50.0}, "How many.", "at most 50"),
        ({"minimum": 5}, "", "at least 5"),
        ({"minimum": 0}, "", ""),
        ({"maximum": 50}, "At most 50.", "At most 50"),
        ({"maximum": 0.5}, "", ""),
        ({"maximum": "50"}, "", ""),
    ],
)
def test_bounds_of_numbers(schema: dict[str, Any], description: str, said: str) -> None:
    assert remark("field", description, schema) == said


def test_facts_come_first_where_a_remark_is_cut() -> None:
    words = "Must be the weight of the whole parcel with everything that is packed into it, and with the box itself"
    assert remark("field", f"{words}, in kg and at most 30.", {}) == (
        "kg; at most 30; Must be the weight of the whole parcel with everything that is…"
    )
