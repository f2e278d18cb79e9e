"""The OpenAI Agents SDK: its tests, in an environment of its own."""

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
@pytest.mark.parametrize("example", FRAMEWORKS["openai_agents"].examples)
def test_an_example_alone(inside: Inside, example: str, tmp_path: Path) -> None:
    inside.check_example(example, tmp_path)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(inside: Inside) -> None:
    assert TOTAL in inside.page()


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.openai_agents", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.openai_agents")
    assert str(caught.value) == (
        "moonbox.adapters.openai_agents needs the package 'openai-agents'"
        "; install it with: pip install 'moonbox[openai-agents]'"
    )
