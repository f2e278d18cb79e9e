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
    def made(name: str, returns: Any, value: Any, namespace: str | None = None) -> Tool:
        parameters = {"type": "object", "properties": {"id": {"type": "integer"}}}
        more: Any = {"call": lambda _: value, "returns": returns, "namespace": namespace}
        return Tool.from_schema(name=name, description="", parameters=parameters, **more)

    rows = made("rows", {"type": "array", "items": ROW}, [{"id": 1, "tags": ["a"]}])
    text = made("text", {"type": "string"}, "abc")
    loose = made("loose", {"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1, "b": 2})
    count = made("count", {"type": "integer"}, 1, "my-shop")
    with Sandbox(tools=[rows, text, loose, count], language="python", limits=Limits(timeout=60)) as box:
        yield box


WRONG = {
    "rows(id=1)\nfor r in rows(id=1):\n    print(r.id)": (3, "object of type 'Rows' has no attribute 'id'"),
    "import json\ntools.text(id=1) + 5": (2, "operator '+' is not supported between objects of type 'str' and"),
    "my_shop.count(id=1).x": (1, "object of type 'int' has no attribute 'x'"),
    "\n\nfor n in tools.my_shop.count(id=1): pass": (3, "object of type 'int' is not iterable"),
    "from tools import text as t\ntext(id=1).lowr()": (2, "object of type 'str' has no attribute 'lowr'"),
    "r = rows(id=1)\nr[0]['idd']": (2, "unknown key \"idd\" for TypedDict 'Rows'"),
    "x = 1\ntext(id=1) + 5": (2, "operator '+' is not supported between objects of type 'str' and 'Literal[5]'"),
}


@pytest.mark.parametrize("source", WRONG)
def test_what_cannot_work_is_found_and_not_run(source: str, box: Sandbox) -> None:
    line, message = WRONG[source]
    with box.repl() as repl:
        [found] = repl.check(source)
        run = repl.run(source)
    assert (found.severity, found.line, found.code, message in found.message) == ("error", line, "types", True)
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
    with box.repl() as repl:
        assert repl.check(source) == ()
        assert repl.run(source).error is None


def test_a_check_runs_nothing_and_changes_nothing(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.check("x = (1,\ny = 2")[0].line == 2
        assert repl.check("x = 1\nprint(text(id=x))\nwhile True: pass") == ()
        assert repl.run("def f():\n    return 1 // 0\ny = 2").ok
        assert repl.check("y = text(id=1)\ny") == ()
        run = repl.run("\n\nf() + y")
        assert run.error is not None and run.error.line == 3 and run.calls == ()
        assert repl.globals() == {"f": "function", "y": "int"}


def test_types_of_earlier_runs_do_not_count(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.run("x = 1\ntext(id=1)").ok
        assert repl.run("x = [text(id=1)]\nx.append(text(id=2))\nlen(x)").value == 2
        assert repl.run("x.append(text(id=3))\nlen(x)").value == 3


def test_an_endless_script_is_only_checked_once(box: Sandbox) -> None:
    source = "while True:\n    try:\n        text(id=1)\n    except BaseException:\n        pass"
    run = box.run(source, limits=Limits(max_tool_calls=3, timeout=60))
    assert run.error is not None and run.error.limit == "calls" and len(run.calls) == 3
