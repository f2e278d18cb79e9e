"""schemathesis against the API's own OpenAPI document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from moonbox import Limits, Sandbox, Toolbox, tool
from moonbox.http.app import Service, create_app
from tests.http_api.conftest import serving
from tests.long import times

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


class Item(BaseModel):
    title: Annotated[str, Field(max_length=50)]
    tags: list[str] = []
    size: Literal["small", "large"] = "small"


@tool
def add(a: Annotated[int, Field(ge=-1000, le=1000)], b: Annotated[int, Field(ge=0, le=9)] = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
def store(item: Item, count: Annotated[int, Field(ge=1, le=5)] = 1) -> list[Item]:
    """Give the item back."""
    return [item] * count


@tool
def nothing() -> None:
    """Do nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where hypothesis keeps its table of all characters, which it makes where there is none."""
    return tmp_path_factory.mktemp("schemathesis")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options",
    [
        ["--exclude-path", "/run", "--exclude-path", "/tools/shop.store"],
        # An empty table stands for an empty array too, as it does when a script calls the tool.
        ["--include-path", "/tools/shop.store", "--exclude-checks", "negative_data_rejection"],
        # Whether text is a valid script is not something that a schema can say.
        ["--include-path", "/run", "--exclude-checks", "positive_data_acceptance"],
    ],
    ids=["tools", "tables", "scripts"],
)
def test_nothing_is_found(options: list[str], folder: Path) -> None:
    box = Sandbox(Toolbox([add, nothing]).namespace("shop", [store]), limits=Limits(timeout=5))
    with box, serving(create_app(Service(box))) as url:
        examples = ("--max-examples", str(times(30)), "--seed", "7")
        command = [str(SCHEMATHESIS), "run", f"{url}/openapi.json", *examples, *options]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
