"""LlamaIndex: its tests, in an environment of its own."""

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
    check("llamaindex")


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("example", EXAMPLES["llamaindex"])
def test_an_example_alone(example: str, tmp_path: Path) -> None:
    check_example(f"frameworks/{example}.py", "llamaindex", REQUIREMENTS["llamaindex"], tmp_path)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page() -> None:
    assert "460500" in run_page("llamaindex")


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_index", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.llamaindex", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.llamaindex")
    assert str(caught.value) == (
        "moonbox.adapters.llamaindex needs the package 'llama-index-core'"
        "; install it with: pip install 'moonbox[llamaindex]'"
    )
