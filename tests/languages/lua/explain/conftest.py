"""A bench for each test of explanations."""

from __future__ import annotations

import pytest

from tests.languages.lua.explain.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
