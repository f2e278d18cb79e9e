"""LlamaIndex: its tests, in an environment of its own."""

from __future__ import annotations

import importlib
import sys

import pytest

from adapters.frameworks import check, run_example, run_page
from adapters.venvs import INSTALL_SECONDS
from moonbox.errors import MissingExtra


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside(request: pytest.FixtureRequest) -> None:
    check("llamaindex", request)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_example(request: pytest.FixtureRequest) -> None:
    done = run_example("llamaindex", request, "--loopback")
    assert (done.returncode, done.stderr) == (0, "")
    assert "129" in done.stdout


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(request: pytest.FixtureRequest) -> None:
    done = run_page("llamaindex", request)
    assert done.returncode == 0, done.stderr
    assert "460500" in done.stdout


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_index", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.llamaindex", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.llamaindex")
    assert str(caught.value) == (
        "moonbox.adapters.llamaindex needs the package 'llama-index-core'"
        "; install it with: pip install 'moonbox[llamaindex]'"
    )
