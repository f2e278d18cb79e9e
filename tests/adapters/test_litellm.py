"""LiteLLM: its tests, in an environment of its own."""

from __future__ import annotations

import sys

import pytest

from moonbox.adapters.litellm import LiteLLM
from moonbox.errors import MissingExtra
from tests.adapters.framework_tests import test_examples_alone, test_inside, test_the_page

__all__ = ["test_examples_alone", "test_inside", "test_the_page"]


def test_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtra) as caught:
        LiteLLM()
    assert str(caught.value) == "LiteLLM needs the package 'litellm'; install it with: pip install 'moonbox[litellm]'"
