"""A short, seeded run of the fuzzer over our own scripts."""

from __future__ import annotations

import pytest

from tests.long import times

from .fuzz import Fuzzer, Trouble, inputs, own_scripts


@pytest.mark.parametrize("seed", range(times(4)))
def test_twisted_scripts_end_in_ways_we_know(seed: int) -> None:
    fuzzer, source = Fuzzer(), inputs(own_scripts(), seed)
    for _ in range(750):
        script = next(source)
        try:
            fuzzer.feed(script)
        except Trouble as trouble:
            pytest.fail(f"{trouble}\n{script}")
    assert {"value", "runtime", "syntax"} <= fuzzer.outcomes.keys()
    assert sum(fuzzer.outcomes.values()) == 750
