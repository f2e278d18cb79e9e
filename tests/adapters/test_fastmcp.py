"""FastMCP: its tests, in an environment of its own."""

from __future__ import annotations

import importlib
import sys

import pytest

from adapters.frameworks import check, check_examples, run_page
from adapters.venvs import INSTALL_SECONDS
from moonbox.errors import MissingExtra


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside(request: pytest.FixtureRequest) -> None:
    check("fastmcp", request)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_examples(request: pytest.FixtureRequest) -> None:
    check_examples("fastmcp", request)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(request: pytest.FixtureRequest) -> None:
    assert run_page("fastmcp", request).splitlines()[-1] == "460500"


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.fastmcp", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.fastmcp")
    assert str(caught.value) == (
        "moonbox.adapters.fastmcp needs the package 'fastmcp'; install it with: pip install 'moonbox[fastmcp]'"
    )
