"""Pydantic AI: its tests, in an environment of its own."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.errors import MissingExtra
from tests.adapters.frameworks import FRAMEWORKS, TOTAL
from tests.environments import INSTALL_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.frameworks import Inside


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside(inside: Inside) -> None:
    inside.check()


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("example", FRAMEWORKS["pydantic_ai"].examples)
def test_an_example_alone(inside: Inside, example: str, tmp_path: Path) -> None:
    inside.check_example(example, tmp_path)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(inside: Inside) -> None:
    assert TOTAL in inside.page()


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.pydantic_ai", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.pydantic_ai")
    assert str(caught.value) == (
        "moonbox.adapters.pydantic_ai needs the package 'pydantic-ai-slim'"
        "; install it with: pip install 'moonbox[pydantic-ai]'"
    )
