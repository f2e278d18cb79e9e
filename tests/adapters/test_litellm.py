"""LiteLLM: its tests, in an environment of its own."""

from __future__ import annotations

import sys

import pytest

from moonbox.adapters.litellm import LiteLLM
from moonbox.errors import MissingExtra
from tests.adapters.pages import TOTAL, run_page
from tests.adapters.venvs import check_inside, venv
from tests.environments import INSTALL_SECONDS

REQUIREMENTS = ["litellm[mcp]>=1.100,<2"]  # without [mcp] it cannot send tools


@pytest.mark.timeout(INSTALL_SECONDS)
def test_inside() -> None:
    # The package leaves sockets and coroutines to the garbage collector, and uses what others have deprecated.
    options = ("-W", "ignore")
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    check_inside("litellm", REQUIREMENTS, "inside_litellm.py", *options, env=offline)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page_of_the_documentation() -> None:
    assert run_page("litellm", venv("litellm", REQUIREMENTS)).startswith(f"{TOTAL}\n{TOTAL}\n")


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtra) as caught:
        LiteLLM()
    assert str(caught.value) == "LiteLLM needs the package 'litellm'; install it with: pip install 'moonbox[litellm]'"
