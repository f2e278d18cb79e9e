"""Learned shapes: types, optional fields, nesting, never a value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.tools.learned import LearnedShapes, ResultSize, merge, shape_of

if TYPE_CHECKING:
    from pathlib import Path

INTEGER, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def table(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (1, INTEGER),
        (1.5, NUMBER),
        (None, {"type": "null"}),
        (True, {"type": "boolean"}),
        ([], {"type": "array"}),
        ([1, 2.5], {"type": "array", "items": NUMBER}),
        ({"a": 1}, table(["a"], a=INTEGER)),
        (
            [{"a": 1}, {"a": None, "b": "x"}],
            {"type": "array", "items": table(["a"], a={"type": ["integer", "null"]}, b=TEXT)},
        ),
        ({"3f8a-id": 1, "9": 2}, {"type": "object"}),
        ({f"k{i}": i for i in range(100)}, {"type": "object"}),
    ],
)
def test_shape(value: Any, shape: dict[str, Any]) -> None:
    assert shape_of(value) == shape


def test_no_value_is_kept() -> None:
    secret = "hunter2-and-more"
    shape = shape_of({"user": {"name": secret, "tokens": [secret]}, "rows": [[secret]]})
    assert secret not in json.dumps(shape)


def test_hidden_fields_stay_out() -> None:
    shape = shape_of({"id": 1, "password": "x"}, hides=lambda name: name == "password")
    assert shape == {**table(["id"], id=INTEGER), "additionalProperties": True}


def test_merging() -> None:
    learned = LearnedShapes()
    learned.learn("t", {"a": 1, "b": "x"})
    learned.learn("t", {"a": 1.5})
    assert learned.schema("t") == table(["a"], a=NUMBER, b=TEXT)
    learned.learn("t", [1])
    assert merge(INTEGER, TEXT) == {"type": ["integer", "string"]}
    assert learned.schema("t") == {
        "type": ["array", "object"],
        "properties": {"a": NUMBER, "b": TEXT},
        "required": ["a"],
        "items": INTEGER,
    }


def test_bounded() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    assert len(json.dumps(shape_of(deep))) < 1_000
    learned = LearnedShapes()
    for index in range(3_000):
        learned.learn(f"tool{index}", 1)
    assert len(learned.snapshot()) == 2_000


def test_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / ".moonbox" / "shapes.json"
    first = LearnedShapes()
    first.keep_in(path)
    first.learn("t", {"a": 1})
    second = LearnedShapes()
    second.keep_in(path)
    assert second.schema("t") == table(["a"], a=INTEGER)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 9, "shapes": {"t": {}}}', '{"version": 1, "shapes": []}'])
def test_a_file_of_another_kind_is_ignored(text: str, tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    path.write_text(text, encoding="utf-8")
    learned = LearnedShapes()
    learned.keep_in(path)
    assert learned.snapshot() == {}


def test_sizes_are_kept_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "shapes.json"
    learned = LearnedShapes()
    learned.keep_in(file)
    for _ in range(3):
        learned.measure("t", 100, scripted=True)
    assert learned.size("t") == ResultSize(3, 300, scripted=True) and learned.size("t").mean == 100
    again = LearnedShapes()
    again.keep_in(file)
    assert again.sizes() == {"t": ResultSize(3, 300, scripted=True)}
    again.forget("t")
    assert again.size("t") == ResultSize()


@pytest.mark.parametrize("sizes", [None, [], {"t": 1}, {"t": [0, 1, True]}, {"t": [1, -1, True]}, {"t": ["1", 1, 1]}])
def test_sizes_of_a_file_that_somebody_changed(tmp_path: Path, sizes: Any) -> None:
    file = tmp_path / "shapes.json"
    file.write_text(json.dumps({"version": 1, "shapes": {}, "sizes": sizes}), encoding="utf-8")
    learned = LearnedShapes()
    learned.keep_in(file)
    assert learned.sizes() == {}
