"""LiteLLM: its tests, in an environment of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.adapters.litellm import LiteLLM
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
@pytest.mark.parametrize("example", FRAMEWORKS["litellm"].examples)
def test_an_example_alone(inside: Inside, example: str, tmp_path: Path) -> None:
    inside.check_example(example, tmp_path)


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_page(inside: Inside) -> None:
    assert inside.page().startswith(f"It is {TOTAL}.\nIt is {TOTAL}.\n")


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtra) as caught:
        LiteLLM()
    assert str(caught.value) == "LiteLLM needs the package 'litellm'; install it with: pip install 'moonbox[litellm]'"
