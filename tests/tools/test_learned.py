"""Learned shapes: types, optional fields, nesting, never a value."""

from __future__ import annotations

import contextvars
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.schema.learned import OWNER, LearnedShapes, ResultSize, is_vague, merge, shape_of
from moonbox.tools.signature import render
from moonbox.tools.tool import Tool

if TYPE_CHECKING:
    from pathlib import Path

INTEGER, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def kept_in(path: Path) -> LearnedShapes:
    learned = LearnedShapes()
    learned.keep_in(path)
    return learned


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
        (
            {"md5": "x", "line_2": 1, "x-id": 1},
            table(["line_2", "md5", "x-id"], md5=TEXT, line_2=INTEGER, **{"x-id": INTEGER}),
        ),
    ],
)
def test_shape(value: Any, shape: dict[str, Any]) -> None:
    assert shape_of(value) == shape


@pytest.mark.parametrize(
    "keys",
    [
        ["3f8a-id", "9"],
        ["alice.smith@acme.example"],
        ["Bob Jones - HIV clinic"],
        ["Müller"],
        ["id", "a b"],
        ["c1f0d8e2-7a44-4a7e-9f0c-2b7c6f1d9e11"],
        ["account_4711"],
        ["x" * 60],
        [f"k{i}" for i in range(6)],
        ["a" + "bcdefghi"[n // 8] + "bcdefghi"[n % 8] for n in range(64)],
    ],
)
def test_keys_that_are_data_are_not_learned(keys: list[str]) -> None:
    items = {"type": "object", "additionalProperties": INTEGER}
    assert shape_of([dict.fromkeys(keys, 1)]) == {"type": "array", "items": items}


def test_objects_of_one_shape_under_several_keys_are_a_map() -> None:
    people = {name: {"age": 1} for name in ("alice", "bob", "carol")}
    assert shape_of(people) == {"type": "object", "additionalProperties": table(["age"], age=INTEGER)}


def test_nothing_within_a_hidden_key_of_a_map_is_learned() -> None:
    seen = shape_of({"a b": {"x": 1}, "my token": {"secret": 1}}, hides=lambda name: "token" in name)
    assert seen == {"type": "object", "additionalProperties": table(["x"], x=INTEGER)}


def test_text_that_is_json_is_learned_as_such() -> None:
    rows = shape_of('[{"id": 1}]')
    assert rows["contentMediaType"] == "application/json"
    assert rows["contentSchema"] == {"type": "array", "items": table(["id"], id=INTEGER)}
    assert merge(rows, shape_of("plain")) == TEXT
    assert shape_of("[no") == TEXT
    assert shape_of({"text": "[1]"}) == table(["text"], text=TEXT)


def test_what_a_tool_leaves_open_is_completed() -> None:
    def shown(returns: Any, *results: Any) -> str:
        item = Tool.from_schema(name="get", call=print, returns=returns)
        assert is_vague(returns)
        assert not is_vague({"type": "array", "items": {"type": "integer"}})
        learned = LearnedShapes()
        for result in results:
            learned.learn("get", result)
        return render(item.with_shape(learned.schema("get")), "signature")

    strings = {"type": "object", "additionalProperties": {"type": "string"}}
    assert shown(strings, {"city": "x", "zip": "1"}) == "get() -> {city: string, zip: string}"
    assert shown({"type": "array", "items": {"type": "object"}}, [{"id": 1}]) == "get() -> {id: integer}[]"
    assert shown({"type": "array", "items": {"type": "object"}}, []) == "get() -> object[]"
    assert shown({"type": "string"}, '{"id": 1}') == "get() -> string (JSON: {id: integer})"
    assert shown({"type": "string"}, "plain") == "get() -> string"
    nested = {"type": "object", "properties": {"id": {"type": "integer"}, "more": strings}}
    assert shown(nested, {"id": 1, "more": {"a": "x"}}) == "get() -> {id?: integer, more?: {a: string}}"


def test_an_object_whose_keys_differ_from_result_to_result_is_a_map() -> None:
    learned = LearnedShapes()
    learned.learn("t", {"people": {"alice": 1, "bob": 2}})
    learned.learn("t", {"people": {"alice": 1, "carol": 2}})
    learned.learn("t", {"people": {"alice": 1, "bob": 2}})
    assert learned.schema("t") == table(["people"], people={"type": "object", "additionalProperties": INTEGER})
    learned.learn("rows", [{}, {"id": 1, "name": "x"}, {"id": 1}])
    assert learned.schema("rows") == {"type": "array", "items": table([], id=INTEGER, name=TEXT)}


def test_what_is_learned_belongs_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / ".moonbox" / "shapes.json"
    learned = kept_in(path)
    learned.learn("t", {"a": 1})
    context = contextvars.copy_context()
    context.run(OWNER.set, "alice")
    context.run(learned.learn, "t", {"hers": 1})
    again = kept_in(path)
    for shapes in (learned, again):
        assert shapes.schema("t") == table(["a"], a=INTEGER)
        assert shapes.snapshot() == {"t": table(["a"], a=INTEGER)}
        context.run(OWNER.set, "alice")
        assert context.run(shapes.schema, "t") == table(["hers"], hers=INTEGER)
        context.run(OWNER.set, "bob")
        assert context.run(shapes.schema, "t") is None


def test_the_file_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    path.write_text("", encoding="utf-8")
    path.chmod(0o644)
    learned = kept_in(path)
    before = os.umask(0)
    try:
        learned.learn("t", {"a": 1})
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["shapes.json"]


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


OTHERS = ["", "[]", "{", '{"version": 9, "shapes": {"t": {}}}', '{"version": 2, "shapes": []}']
SIZES = [None, [], {"t": 1}, {"t": [0, 1, True]}, {"t": [1, -1, True]}, {"t": ["1", 1, 1]}, [["t", 0, 1, True]]]


@pytest.mark.parametrize(
    "text", [*OTHERS, *(json.dumps({"version": 2, "shapes": [], "sizes": sizes}) for sizes in SIZES)]
)
def test_a_file_of_another_kind_or_that_somebody_changed_is_ignored(text: str, tmp_path: Path) -> None:
    (tmp_path / "shapes.json").write_text(text, encoding="utf-8")
    learned = kept_in(tmp_path / "shapes.json")
    assert (learned.snapshot(), learned.sizes()) == ({}, {})


def test_sizes_are_kept_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "shapes.json"
    learned = kept_in(file)
    for _ in range(3):
        learned.measure("t", 100, scripted=True)
    assert learned.sizes() == {"t": ResultSize(3, 300, scripted=True)} and learned.sizes()["t"].mean == 100
    again = kept_in(file)
    assert again.sizes() == {"t": ResultSize(3, 300, scripted=True)}


def test_uses_are_counted_for_each_owner_and_kept(tmp_path: Path) -> None:
    learned = kept_in(tmp_path / "shapes.json")
    for _ in range(2):
        learned.is_due("find")
    context = contextvars.copy_context()
    context.run(OWNER.set, "acme")
    context.run(learned.is_due, "pay")
    learned.learn("find", [1])
    assert (learned.uses(), context.run(learned.uses)) == ({"find": 2}, {"pay": 1})
    again = kept_in(tmp_path / "shapes.json")
    assert (again.uses(), context.run(again.uses)) == ({"find": 2}, {"pay": 1})
