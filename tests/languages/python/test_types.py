"""Types of tools' results, which Monty's own checker checks before a script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator

ROW = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    def made(name: str, returns: Any, value: Any) -> Tool:
        parameters = {"type": "object", "properties": {"id": {"type": "integer"}}}
        return Tool.from_schema(name=name, description="", parameters=parameters, call=lambda _: value, returns=returns)

    rows = made("rows", {"type": "array", "items": ROW}, [{"id": 1, "tags": ["a"]}])
    text = made("text", {"type": "string"}, "abc")
    loose = made("loose", {"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1, "b": 2})
    with Sandbox(tools=[rows, text, loose], language="python", limits=Limits(timeout=60)) as box:
        yield box


WRONG = {
    "rows(id=1)\nfor r in rows(id=1):\n    print(r.id)": (3, "object of type 'Rows' has no attribute 'id'"),
    "r = rows(id=1)\nr[0]['idd']": (2, "unknown key \"idd\" for TypedDict 'Rows'"),
    "x = 1\ntext(id=1) + 5": (2, "operator '+' is not supported between objects of type 'str' and 'Literal[5]'"),
}


@pytest.mark.parametrize("source", WRONG)
def test_what_cannot_work_is_not_run(source: str, box: Sandbox) -> None:
    line, message = WRONG[source]
    run = box.run(source)
    assert run.error is not None
    assert (run.error.kind, run.error.line, run.error.code, run.calls) == ("check", line, "types", ())
    assert message in run.error.message
    assert "nothing was run" in run.for_model()


WORKS = [
    "[r['id'] for r in rows(id=1)]",
    "loose(id=1)['b']",  # more than it declares
    "x = 1\nx = text(id=1)\nx.upper()",
    "try:\n    r = text(id=1).nothing\nexcept AttributeError:\n    r = 'caught'\nr",
    "while True:\n    if text(id=1):\n        break\ntext(id=2)",
    "import asyncio\nawait asyncio.gather(text(id=1), text(id=2))",
    "from operator import itemgetter\nsorted(rows(id=1), key=itemgetter('id'))",
    "def f(x):\n    return x.anything\ntext(id=1)",
]


@pytest.mark.parametrize("source", WORKS)
def test_what_works_is_run(source: str, box: Sandbox) -> None:
    assert box.run(source).error is None


def test_types_of_earlier_runs_do_not_count(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.run("x = 1\ntext(id=1)").ok
        assert repl.run("x = [text(id=1)]\nx.append(text(id=2))\nlen(x)").value == 2
        assert repl.run("x.append(text(id=3))\nlen(x)").value == 3


def test_an_endless_script_is_only_checked_once(box: Sandbox) -> None:
    source = "while True:\n    try:\n        text(id=1)\n    except BaseException:\n        pass"
    run = box.run(source, limits=Limits(max_tool_calls=3, timeout=60))
    assert run.error is not None and run.error.limit == "calls" and len(run.calls) == 3
