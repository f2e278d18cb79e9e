"""Settings: a closed contract with exact messages, the same in Python, in a dict, in TOML and as JSON Schema."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox import CodeMode, Sandbox
from moonbox.config.sections import CodeModeSettings
from moonbox.errors import ConfigError

IDENTIFIER = "must be 1 to 64 letters, digits and underscores, not beginning with a digit"
NAMES = ", ".join(item.name for item in fields(CodeModeSettings))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep_visble": []}, "unknown key 'keep_visble'; did you mean 'keep_visible'?"),
        ({1: 2}, f"unknown key '1'; known keys: {NAMES}"),
        ({"keep_visible": "add"}, 'keep_visible must be an array: write keep_visible = ["add"]'),
        ({"keep_visible": [1]}, "keep_visible[0] must be a string, not 1"),
        ({"full_schemas": 1}, "full_schemas must be true or false, not 1"),
        ({"approvals": "yes"}, "approvals must be true or false, not 'yes'"),
        ({"mode": "sometimes"}, "mode must be 'always', 'auto' or 'never', not 'sometimes'"),
        ({"name": "lua repl"}, f"name {IDENTIFIER}; not 'lua repl'"),
        ({"name": ""}, f"name {IDENTIFIER}; not ''"),
        ({"name": "x" * 65}, f"name {IDENTIFIER}; not {'x' * 65!r}"),
        ({"parameter": "1x"}, f"parameter {IDENTIFIER}; not '1x'"),
        ({"idle_seconds": 5}, f"unknown key 'idle_seconds'; known keys: {NAMES}"),
        ({"description": 3}, "description must be a string, not 3"),
        ({"system_prompt": []}, "system_prompt must be a string, not []"),
        ({"catalog_tokens": 0}, "catalog_tokens must be at least 1, not 0"),
        ({"catalog_tokens": True}, "catalog_tokens must be a whole number, not True"),
        ({"description_chars": 10}, "description_chars must be at least 200, not 10"),
        ({"max_chars": 499}, "max_chars must be at least 500, not 499"),
        ({"max_chars": None}, "max_chars must be a whole number, not None"),
    ],
)
def test_what_is_refused(given: dict[Any, Any], message: str, box: Sandbox) -> None:
    with pytest.raises(ConfigError) as caught:
        CodeMode.from_config(box, given)
    assert str(caught.value) == f"[codemode] {message}"


def test_a_table_is_needed(box: Sandbox) -> None:
    with pytest.raises(ConfigError) as caught:
        CodeMode.from_config(box, ["mode"])  # type: ignore[arg-type]
    assert str(caught.value) == "[codemode] must be a table, not ['mode']"


def test_from_toml(box: Sandbox) -> None:
    text = 'keep_visible = ["add"]\nfull_schemas = true\nmode = "auto"\nname = "run_lua"\nmax_chars = 1000'
    with CodeMode.from_config(box, tomllib.loads(text), max_conversations=3) as mode:
        assert mode.settings == CodeModeSettings(
            keep_visible=("add",), full_schemas=True, mode="auto", name="run_lua", max_chars=1000
        )


def test_the_schema_has_every_setting_and_its_default() -> None:
    schema = CodeMode.config_schema()
    jsonschema_rs.meta.validate(schema)
    assert list(schema["properties"]) == [item.name for item in fields(CodeModeSettings)]
    assert schema["additionalProperties"] is False
    defaults = {name: part["default"] for name, part in schema["properties"].items()}
    assert CodeModeSettings.from_dict(defaults) == CodeModeSettings()


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2000),
    st.sampled_from([0.5, 700.25]),  # JSON Schema takes 1.0 for an integer, we do not
    st.sampled_from(["always", "auto", "never", "", "x", "a b", "ä", "1", "a\n", "_"]),
    st.lists(st.one_of(st.text(max_size=3), st.integers()), max_size=2),
)


@given(
    st.dictionaries(st.sampled_from([*(item.name for item in fields(CodeModeSettings)), "other"]), values, max_size=3)
)
def test_the_schema_and_the_contract_agree(data: dict[str, Any]) -> None:
    try:
        CodeModeSettings.from_dict(data)
        accepted = True
    except ConfigError:
        accepted = False
    assert jsonschema_rs.is_valid(CodeMode.config_schema(), data) is accepted
