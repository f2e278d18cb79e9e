"""smolagents: its tests, in an environment of its own."""

from __future__ import annotations

import importlib
import sys

import pytest

from adapters.frameworks import check, check_examples, run_page
from adapters.venvs import INSTALL_SECONDS
from moonbox.errors import MissingExtra


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside(request: pytest.FixtureRequest) -> None:
    check("smolagents", request)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_examples(request: pytest.FixtureRequest) -> None:
    check_examples("smolagents", request)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(request: pytest.FixtureRequest) -> None:
    assert "460500" in run_page("smolagents", request)


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "smolagents", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.smolagents", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.smolagents")
    assert str(caught.value) == (
        "moonbox.adapters.smolagents needs the package 'smolagents'; install it with: pip install 'moonbox[smolagents]'"
    )
