"""The OpenAI Agents SDK: its tests, in an environment of its own."""

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
    check("openai_agents")


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("example", EXAMPLES["openai_agents"])
def test_an_example_alone(example: str, tmp_path: Path) -> None:
    check_example(f"frameworks/{example}.py", "openai_agents", REQUIREMENTS["openai_agents"], tmp_path)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page() -> None:
    assert "460500" in run_page("openai_agents")


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.openai_agents", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.openai_agents")
    assert str(caught.value) == (
        "moonbox.adapters.openai_agents needs the package 'openai-agents'"
        "; install it with: pip install 'moonbox[openai-agents]'"
    )
