"""The OpenAI Agents SDK: its tests, in an environment of its own."""

from __future__ import annotations

import importlib
import sys

import pytest

from adapters.frameworks import check, run_example, run_page
from adapters.venvs import INSTALL_SECONDS
from moonbox.errors import MissingExtra


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside(request: pytest.FixtureRequest) -> None:
    check("openai_agents", request)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_example(request: pytest.FixtureRequest) -> None:
    done = run_example("openai_agents", request, "--loopback")
    assert (done.returncode, done.stderr) == (0, "")
    assert "129" in done.stdout


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(request: pytest.FixtureRequest) -> None:
    done = run_page("openai_agents", request)
    assert done.returncode == 0, done.stderr
    assert "460500" in done.stdout


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "moonbox.adapters.openai_agents", raising=False)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module("moonbox.adapters.openai_agents")
    assert str(caught.value) == (
        "moonbox.adapters.openai_agents needs the package 'openai-agents'"
        "; install it with: pip install 'moonbox[openai-agents]'"
    )
