"""JSON null in scripts: the same table of cases, tests/scripts/nulls.toml, for every language."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, Tool
from moonbox.languages.registry import LANGUAGES
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = tomllib.loads((Path(__file__).parents[1] / "scripts" / "nulls.toml").read_text("utf-8"))


@dataclass
class Told:
    """What the tools are to give, and what they are given."""

    given: str = ""
    sent: list[Any] = field(default_factory=list)


@pytest.fixture(scope="module", params=["process", "inline"])
def isolation(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module", params=sorted(LANGUAGES))
def sandbox(request: pytest.FixtureRequest, isolation: Any) -> Iterator[tuple[Sandbox, str, Told]]:
    told, anything = Told(), {"type": "object"}

    def send(arguments: dict[str, Any]) -> None:
        told.sent.append(arguments["value"])

    tools = [
        Tool.from_schema(name="given", description="", parameters=anything, call=lambda _: json.loads(told.given)),
        Tool.from_schema(name="sent", description="", parameters=anything, call=send),
    ]
    with Sandbox(tools, language=request.param, isolation=isolation) as box:
        yield box, request.param, told


@pytest.mark.parametrize("name", CASES)
def test_case(sandbox: tuple[Sandbox, str, Told], name: str) -> None:
    box, language, told = sandbox
    case = CASES[name]
    told.given = case.get("given", "")
    told.sent.clear()
    run = box.run(case[language])
    assert run.error is None
    assert to_jsonable(run.value) == json.loads(case["value"])
    assert told.sent == ([json.loads(case["sent"])] if "sent" in case else [])
