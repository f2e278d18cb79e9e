"""The reader: models from tables, with a message for each key that is wrong, and their JSON Schema."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

import jsonschema_rs
import pytest

from moonbox.config.mcp import ServerSettings, ToolRule
from moonbox.config.reader import CLOSED, check_keys, positive, read, schema
from moonbox.config.sections import (
    AuditSettings,
    ClusterSettings,
    CodeModeSettings,
    KnowledgeTable,
    OAuthSettings,
    SandboxSettings,
    ScriptTable,
    ServeSettings,
    ToolsTable,
)
from moonbox.config.sources import OpenApiSettings
from moonbox.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A table inside a table."""

    __pydantic_config__: ClassVar = CLOSED

    level: Literal["low", "high"]
    """How much."""
    limit: float | None = None

    def __post_init__(self) -> None:
        positive("limit", self.limit)


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A table."""

    __pydantic_config__: ClassVar = CLOSED

    path: Path
    """The file."""
    names: tuple[str, ...] = ()
    count: int = 1
    ratio: float = 0.5
    on: bool = False
    inner: Inner | None = None
    """One inner table."""
    many: Mapping[str, Inner] = field(default_factory=dict)
    anything: Mapping[str, Any] = field(default_factory=dict)


def test_a_table_becomes_a_model() -> None:
    data = {
        "path": "x",
        "names": ["a"],
        "ratio": 2,
        "inner": {"level": "low"},
        "many": {"a": {"level": "high", "limit": 1}},
    }
    assert read(Outer, data, "outer") == Outer(
        path=Path("x"), names=("a",), ratio=2.0, inner=Inner(level="low"), many={"a": Inner(level="high", limit=1.0)}
    )
    assert read(Outer, {"path": Path("y")}, "outer").path == Path("y")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "[outer] must be a table, not []"),
        ({}, "[outer] path is missing"),
        ({"paht": "x"}, "[outer] path is missing\n[outer] unknown key 'paht'; did you mean 'path'?"),
        (
            {"path": "x", "zzz": 1},
            "[outer] unknown key 'zzz'; known keys: path, names, count, ratio, on, inner, many, anything",
        ),
        ({"path": 1}, "[outer] path must be a string, not 1"),
        ({"path": "x", "names": "a"}, '[outer] names must be an array: write names = ["a"]'),
        ({"path": "x", "names": 1}, "[outer] names must be an array, not 1"),
        ({"path": "x", "names": ["a", 1]}, "[outer] names[1] must be a string, not 1"),
        ({"path": "x", "count": "1"}, "[outer] count must be a whole number, not '1'"),
        ({"path": "x", "count": True}, "[outer] count must be a whole number, not True"),
        ({"path": "x", "count": 1.5}, "[outer] count must be a whole number, not 1.5"),
        ({"path": "x", "ratio": "1"}, "[outer] ratio must be a number, not '1'"),
        ({"path": "x", "on": 1}, "[outer] on must be true or false, not 1"),
        ({"path": "x", "inner": 1}, "[outer] inner must be a table, not 1"),
        ({"path": "x", "inner": {}}, "[outer.inner] level is missing"),
        ({"path": "x", "inner": {"level": "mid"}}, "[outer.inner] level must be 'low' or 'high', not 'mid'"),
        (
            {"path": "x", "inner": {"level": "low", "limt": 1}},
            "[outer.inner] unknown key 'limt'; did you mean 'limit'?",
        ),
        ({"path": "x", "inner": {"level": "low", "limit": 0}}, "[outer.inner] limit must be more than 0, not 0"),
        ({"path": "x", "many": {"a": {"level": 1}}}, "[outer.many.a] level must be 'low' or 'high', not 1"),
        ({"path": "x", "many": {"a": {"l": 1}}}, "[outer.many.a] level is missing"),
        ({"path": "x", "anything": {"a": object}}, "[outer] a value of type type is not allowed: <class 'object'>"),
    ],
)
def test_each_key_that_is_wrong_is_named(data: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(Outer, data, "outer")
    assert str(caught.value).startswith(message)


def test_settings_from_python_have_no_section() -> None:
    with pytest.raises(ConfigError, match=r"^path is missing$"):
        read(Outer, {}, "")


def test_dates_of_toml_become_text() -> None:
    data = {"path": "x", "anything": {"day": dt.date(2026, 1, 31), "hour": dt.time(12)}}
    assert read(Outer, data, "outer").anything == {"day": "2026-01-31", "hour": "12:00:00"}


def test_keys_alone() -> None:
    check_keys({"servers": {}}, ["servers"], "mcp")
    with pytest.raises(ConfigError, match=r"^\[mcp\] unknown key 'server'; did you mean 'servers'\?$"):
        check_keys({"server": {}}, ["servers"], "mcp")


def test_the_schema_has_descriptions() -> None:
    whole = schema(Outer)
    jsonschema_rs.meta.validate(whole)
    assert whole["properties"]["path"]["description"] == "The file."
    assert whole["$defs"]["Inner"]["properties"]["level"]["description"] == "How much."
    assert "description" not in whole["properties"]["count"]


@pytest.mark.parametrize(
    "model",
    [
        AuditSettings,
        ClusterSettings,
        CodeModeSettings,
        KnowledgeTable,
        OAuthSettings,
        SandboxSettings,
        ScriptTable,
        ServeSettings,
        ServerSettings,
        ToolRule,
        ToolsTable,
    ],
    ids=lambda model: model.__name__,
)
def test_every_setting_is_described(model: Any) -> None:
    properties = schema(model)["properties"]
    assert list(properties) == [item.name for item in fields(model)]
    undescribed = {name for name, part in properties.items() if not part.get("description")}
    assert undescribed <= {"name"}  # of a server: its table is its name


def test_what_a_value_of_a_key_refuses_names_the_key_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read(OpenApiSettings, {"spec": "a.json", "retry": {"times": 0}}, "openapi.shop")
    assert str(caught.value) == "[openapi.shop.retry] times must be a whole number from 2 to 100, not 0"
