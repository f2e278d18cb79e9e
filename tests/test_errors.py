"""Codes of calls' errors, and the kinds of error that runs end with because of them."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox import Sandbox, ToolError, tool
from moonbox.errors import Denied, is_denial
from moonbox.languages.registry import LANGUAGES

KINDS = {
    "denied": "denied",
    "not_granted": "denied",
    "approval_denied": "denied",
    "approval_unavailable": "denied",
    "tool_error": "tool",
    "timeout": "tool",
    "invalid": "tool",
    "unavailable": "tool",
    "anything_else": "tool",
}


@pytest.mark.parametrize(("code", "kind"), KINDS.items())
def test_kinds(code: str, kind: str) -> None:
    assert is_denial(code) == (kind == "denied")


@pytest.mark.parametrize("odd", [None, 5, ["denied"], ""])
def test_what_is_no_code(odd: Any) -> None:
    assert not is_denial(odd)


@pytest.fixture(scope="module", params=LANGUAGES)
def box(request: Any) -> Any:
    @tool
    def fail(code: str) -> None:
        """Fail with that code."""
        raise (Denied if is_denial(code) else ToolError)("no", code=code)

    with Sandbox([fail], language=request.param, isolation="inline") as box:
        yield box


SCRIPTS = {
    "lua": 'tools.fail{{ code = "{code}" }}',
    "rhai": 'tools::fail(#{{ code: "{code}" }})',
    "python": 'fail(code="{code}")',
}


@pytest.mark.parametrize(("code", "kind"), KINDS.items())
def test_every_language_and_direct_calls_agree(box: Sandbox, code: str, kind: str) -> None:
    for run in (box.run(SCRIPTS[box.language].format(code=code)), box.call("fail", {"code": code})):
        assert run.error is not None
        assert (run.error.kind, run.error.code) == (kind, code)
