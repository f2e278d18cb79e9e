"""Items and what is wrong with some."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from typing import Any

import pytest

import moonbox.knowledge
from moonbox.errors import UsageError
from moonbox.knowledge import Item
from moonbox.knowledge.records import iso_time


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1700000000.9, "2023-11-14T22:13:20Z"),
        ("2024-01-02", "2024-01-02T00:00:00Z"),
        ("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z"),
        (dt.date(2024, 1, 2), "2024-01-02T00:00:00Z"),
        (dt.datetime(2024, 1, 2, 3), "2024-01-02T03:00:00Z"),
        (None, None),
        ("", None),
    ],
)
def test_times(value: Any, expected: str | None) -> None:
    assert iso_time(value) == expected


@pytest.mark.parametrize("value", ["yesterday", float("nan"), float("inf"), 1e300, True, [], {}])
def test_times_that_are_none(value: Any) -> None:
    with pytest.raises(UsageError, match="updated_at must be an ISO 8601 time or seconds since the epoch, not "):
        iso_time(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("text", "an item must be a table with source_id and body, not str"),
        ({"body": "x"}, "source_id is missing"),
        ({"source_id": "x"}, "body is missing"),
        ({"source_id": "x", "body": "x", "tittle": "y"}, "unknown key 'tittle'; did you mean 'title'?"),
        ({"source_id": 7, "body": "x"}, "source_id must be a string, not int"),
        ({"source_id": " \x00 ", "body": "x"}, "source_id must not be empty"),
        ({"source_id": "x" * 2001, "body": "x"}, "source_id must be at most 2,000 characters long, not 2,001"),
        ({"source_id": "x", "body": b"\xff"}, "body must be text; it is not UTF-8"),
        (
            {"source_id": "x", "body": "x" * 20_000_001},
            "body must be at most 20,000,000 characters long, not 20,000,001",
        ),
        ({"source_id": "x", "body": "x", "metadata": 1}, "metadata must be a table, not int"),
        (
            {"source_id": "x", "body": "x", "metadata": {"a": "x" * 70_000}},
            "metadata must be at most 64,000 bytes as JSON",
        ),
        ({"source_id": "x", "body": "x", "metadata": {"a": object()}}, "metadata.a is an object, which cannot cross"),
        ({"source_id": "x", "body": "x", "format": "html"}, 'format must be "markdown" or "text", not \'html\''),
        (
            {"source_id": "x", "body": "x", "source_url": " JavaScript:alert(1)"},
            "source_url must be a URL that can be opened, not 'JavaScript:alert(1)'",
        ),
    ],
)
def test_broken_items_say_why(data: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Item.from_dict(data)
    assert str(caught.value).startswith(message)


def test_items_are_cleaned() -> None:
    item = Item.from_dict(
        {
            "source_id": "a\nb",
            "body": "x\x00y\r\n",
            "title": " A \x1b[31m title\n" + "t" * 600,
            "metadata": [],
            "author": None,
            "updated_at": 0,
        }
    )
    assert (item.source_id, item.body, item.metadata, item.author) == ("a b", "xy\n", {}, None)
    assert item.title.startswith("A title t")
    assert len(item.title) == 500
    assert Item(source_id="x", body="", metadata={"a": ["\ud800", 1]}).metadata == {"a": ["?", 1]}


def test_every_exported_name_is_there() -> None:
    for name in moonbox.knowledge.__all__:
        assert getattr(moonbox.knowledge, name) is not None
    assert dir(moonbox.knowledge) == sorted(moonbox.knowledge.__all__)
    assert not hasattr(moonbox.knowledge, "nothing")


def test_searching_loads_nothing_heavy() -> None:
    program = (
        "import sys; from moonbox.knowledge import KnowledgeBase; "
        "print([name for name in ('pydantic', 'httpx', 'rich', 'pypdf', 'sqlite_vec', 'numpy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
