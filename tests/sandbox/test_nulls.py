"""JSON null in scripts: the same table of cases, tests/scripts/nulls.toml, for every language."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from moonbox import Sandbox, Tool
from moonbox.languages.registry import LANGUAGES
from moonbox.values import to_jsonable

CASES = tomllib.loads((Path(__file__).parents[1] / "scripts" / "nulls.toml").read_text("utf-8"))


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_case(language: str, name: str, isolation: Any) -> None:
    case = CASES[name]
    sent: list[Any] = []

    def given(_arguments: dict[str, Any]) -> Any:
        return json.loads(case["given"])

    def send(arguments: dict[str, Any]) -> None:
        sent.append(arguments["value"])

    anything = {"type": "object"}
    tools = [
        Tool.from_schema(name="given", description="", parameters=anything, call=given),
        Tool.from_schema(name="sent", description="", parameters=anything, call=send),
    ]
    with Sandbox(tools, language=language, isolation=isolation) as box:
        run = box.run(case[language])
    assert run.error is None
    assert to_jsonable(run.value) == json.loads(case["value"])
    assert sent == ([json.loads(case["sent"])] if "sent" in case else [])
