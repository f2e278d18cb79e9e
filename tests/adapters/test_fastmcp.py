"""FastMCP: its tests, in an environment of its own."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.errors import MissingExtra
from tests.adapters.frameworks import EXAMPLES, REQUIREMENTS, check, check_example, run_page
from tests.environments import INSTALL_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside() -> None:
    check("fastmcp")


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("example", EXAMPLES["fastmcp"])
def test_an_example_alone(example: str, tmp_path: Path) -> None:
    check_example(f"frameworks/{example}.py", "fastmcp", REQUIREMENTS["fastmcp"], tmp_path)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page() -> None:
    assert run_page("fastmcp").splitlines()[-1] == "460500"


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.fastmcp", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.fastmcp")
    assert str(caught.value) == (
        "moonbox.adapters.fastmcp needs the package 'fastmcp'; install it with: pip install 'moonbox[fastmcp]'"
    )
