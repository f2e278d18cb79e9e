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
from tests.long import LONG, times

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


SETTINGS = """
# An empty table stands for an empty array too, as it does when a script calls the tool.
[[operations]]
include-path = "/tools/shop.store"
checks.negative_data_rejection.enabled = false

# Whether text is a valid script is not something that a schema can say.
[[operations]]
include-path = "/run"
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.timeout(300)
def test_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    box = Sandbox(Toolbox([add, nothing]).namespace("shop", [store]), limits=Limits(timeout=5))
    with box, serving(create_app(Service(box))) as url:
        options = ["--max-examples", str(times(30)), "--seed", "7"]
        sample = [] if LONG else ["--include-path-regex", "^/(run$|tools/)", "--phases", "examples,fuzzing"]
        command = [str(SCHEMATHESIS), "run", f"{url}/openapi.json", *options, *sample]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
