"""LlamaIndex: its tests, in an environment of its own."""

from __future__ import annotations

import importlib
import sys

import pytest

from moonbox.errors import MissingExtra
from tests.adapters.frameworks import check, check_examples, run_page
from tests.environments import INSTALL_SECONDS


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside() -> None:
    check("llamaindex")


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_examples() -> None:
    check_examples("llamaindex")


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
