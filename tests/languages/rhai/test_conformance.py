"""Conformance: the figures that were reached are held."""

from __future__ import annotations

import pytest

from .conformance import WHY_SKIPPED, check, load_cases, main

# What does not pass uses eval (refused), shows the inner name of a closure, or depends on a flaw of one release.
_FEWEST, _FEWEST_CORE, _FEWEST_EXACT = 721, 640, 550


def test_cases_of_the_reference() -> None:
    cases = load_cases()
    if cases is None:
        pytest.skip(WHY_SKIPPED)
    results = [check(case) for case in cases]
    passed = [result for result in results if result.passed]
    failed = [result.case["id"] for result in results if not result.passed]
    assert len(passed) >= _FEWEST, failed
    assert sum(result.case["core"] for result in passed) >= _FEWEST_CORE, failed
    exact = [result for result in passed if result.case["ops"] and result.operations == result.case["ops"]]
    assert len(exact) >= _FEWEST_EXACT


def test_the_script_says_why_it_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tests.languages.rhai.conformance.load_cases", lambda: None)
    assert main([]) == 0
    assert capsys.readouterr().out == f"skipped: {WHY_SKIPPED}\n"
