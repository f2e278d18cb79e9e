"""The tests of every framework, which a file for each imports: it is called after the framework."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.errors import MissingExtra
from tests.adapters.frameworks import FRAMEWORKS, TOTAL
from tests.environments import INSTALL_SECONDS
from tests.long import LONG, only_long

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.frameworks import Inside

SLOWEST = ("litellm", "llamaindex")


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside(inside: Inside) -> None:
    if inside.name in SLOWEST and not LONG:
        pytest.skip(f"{inside.name} takes longest; its page is tried instead, and MOONBOX_LONG=1 runs all of it")
    inside.check()


@only_long
@pytest.mark.timeout(INSTALL_SECONDS)
def test_examples_alone(inside: Inside, tmp_path: Path) -> None:
    for number, example in enumerate(FRAMEWORKS[inside.name].examples):
        (tmp_path / str(number)).mkdir()
        inside.check_example(example, tmp_path / str(number))


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(inside: Inside) -> None:
    assert TOTAL in inside.page()


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    name = request.module.__name__.rpartition(".test_")[2]
    module, package, extra = MISSING[name]
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"moonbox.adapters.{name}", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module(f"moonbox.adapters.{name}")
    assert str(caught.value) == (
        f"moonbox.adapters.{name} needs the package '{package}'; install it with: pip install 'moonbox[{extra}]'"
    )


MISSING = {
    "fastmcp": ("fastmcp", "fastmcp", "fastmcp"),
    "langchain": ("langchain_core", "langchain", "langchain"),
    "llamaindex": ("llama_index", "llama-index-core", "llamaindex"),
    "openai_agents": ("agents", "openai-agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai-slim", "pydantic-ai"),
    "smolagents": ("smolagents", "smolagents", "smolagents"),
}
"""For each framework: the module that its adapter imports, the package that has it, and the extra that brings it."""
