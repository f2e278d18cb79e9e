"""Failures of tools in Python scripts: each is of the type that the tool raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox, ToolError, tool
from moonbox.errors import Denied

if TYPE_CHECKING:
    from collections.abc import Iterator

RAISED = {
    "value": ValueError("bad"),
    "key": KeyError("bad"),
    "time": TimeoutError("late"),
    "permission": PermissionError("no"),
    "file": FileNotFoundError("gone"),
    "connection": ConnectionResetError("cut"),
    "decode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "zero": ZeroDivisionError("none"),
    "own": ToolError("full", code="conflict"),
    "late": ToolError("late", code="timeout", retryable=True),
    "denied": Denied("not yours"),
}
CAUGHT = [
    ("value", "ValueError"),
    ("value", "Exception"),
    ("value", "ToolError"),
    ("key", "KeyError"),
    ("key", "LookupError"),
    ("key", "ToolError"),
    ("key", "(IndexError, ToolError)"),
    ("time", "TimeoutError"),
    ("time", "OSError"),
    ("permission", "PermissionError"),
    ("permission", "ToolError"),
    ("file", "FileNotFoundError"),
    ("connection", "OSError"),
    ("decode", "ValueError"),
    ("zero", "ArithmeticError"),
    ("own", "ToolError"),
    ("own", "RuntimeError"),
    ("late", "TimeoutError"),
    ("denied", "PermissionError"),
    ("denied", "ToolError"),
]
NOT_CAUGHT = [("value", "KeyError"), ("key", "ValueError"), ("own", "ValueError"), ("value", "RuntimeError")]


@tool
def fails(how: str) -> int:
    """Fail."""
    raise RAISED[how]


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox([fails], language="python") as box:
        yield box


@pytest.mark.parametrize(("how", "type_"), CAUGHT)
def test_a_handler_catches_what_it_names(how: str, type_: str, box: Sandbox) -> None:
    run = box.run(f"""
try:
    fails(how="{how}")
except {type_} as e:
    r = [e.code, e.message, e.retryable, e.tool, isinstance(e, ToolError), isinstance(e, {type_})]
r
""")
    failed = run.calls[0].error
    assert run.error is None and failed is not None
    assert run.value == [failed.code, failed.message, failed.retryable, "fails", True, True]


@pytest.mark.parametrize(("how", "type_"), NOT_CAUGHT)
def test_a_handler_catches_nothing_else(how: str, type_: str, box: Sandbox) -> None:
    run = box.run(f'x = 1\ntry:\n    fails(how="{how}")\nexcept {type_} as e:\n    r = 1\n')
    assert run.error is not None and run.calls[0].error is not None
    assert (run.error.kind, run.error.line, run.error.code) == ("tool", 3, run.calls[0].error.code)


@pytest.mark.parametrize("raised", ["ValueError('own')", "KeyError('own')", "TypeError('own')"])
def test_an_error_of_the_script_is_no_failure(raised: str, box: Sandbox) -> None:
    caught = "try:\n    {}\nexcept ToolError:\n    caught = 1\n"
    run = box.run(caught.format("fails(how='value')") + caught.format(f"raise {raised}"))
    assert run.error is not None
    assert (run.error.kind, run.error.line) == ("runtime", 6)


@pytest.mark.parametrize("again", ["raise", "raise e"])
@pytest.mark.parametrize("how", ["value", "key", "own"])
def test_a_failure_that_is_raised_again_keeps_its_record(how: str, again: str, box: Sandbox) -> None:
    run = box.run(
        f"def f():\n    return fails(how={how!r})\ntry:\n    f()\nexcept ToolError as e:\n    x = 1\n    {again}\n"
    )
    failed = run.calls[0].error
    assert run.error is not None and failed is not None
    assert (run.error.kind, run.error.tool, run.error.code) == ("tool", "fails", failed.code)
    assert (run.error.message, run.error.line) == (failed.message, 2)


def test_fields_of_other_objects_are_read_as_they_are(box: Sandbox) -> None:
    script = """
class Answer:
    code = 5
    data = [1]
try:
    fails(how="own")
except ToolError as e:
    first = e.code
    e = Answer()
    r = [first, e.code, e.data]
r
"""
    assert box.run(script).value == ["conflict", 5, [1]]
