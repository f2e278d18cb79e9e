"""The look at a Python script before it runs: what Monty lacks, with what to write instead, and no false errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Repl


@tool
def get(id: int, deep: bool = False) -> dict[str, int]:
    """One row."""
    return {"id": id}


@tool(namespace="hr")
def members(team: str) -> list[str]:
    """Names."""
    return [team]


@pytest.fixture(scope="module")
def repl() -> Iterator[Repl]:
    with Sandbox([get, members], language="python") as box, box.repl() as repl:
        yield repl


REFUSED = {
    "def f():\n    yield 1": (2, "scripts cannot have generators (yield)"),
    "def f(xs):\n    yield from xs": (2, "scripts cannot have generators (yield from)"),
    "import numpy as np": (1, "there is no module 'numpy'"),
    "from contextlib import suppress": (1, "there is no module 'contextlib'"),
    "class Odd(Exception):\n    pass": (1, "classes cannot inherit here"),
    "class A:\n    @property\n    def x(self):\n        return 1": (3, "methods cannot have decorators (@property)"),
    "from math import *": (1, "scripts cannot import *"),
    "import asyncio\nasyncio.create_task(get(id=1))": (2, "there is no asyncio.create_task"),
    "import time\ntime.sleep(1)": (2, "scripts cannot sleep"),
    "x = 1\ngte(id=1)": (2, "unknown function 'gte'"),
    "tools.gte(id=1)": (1, "unknown tool 'gte'"),
    "input('name')": (1, "unknown function 'input'"),
    "sorted([1], key=lambda x: get(id=x)['id'])": (1, "a tool cannot be called inside map, filter, sorted, min or max"),
    "list(map(get, [1, 2]))": (1, "a tool cannot be called inside map, filter, sorted, min or max"),
    "get(idd=1)": (1, "invalid arguments for get:"),
    "hr.members()": (1, "invalid arguments for hr.members:"),
    "get('one')": (1, "invalid arguments for get:"),
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_cannot_work_is_refused_with_its_line(source: str, repl: Repl) -> None:
    line, message = REFUSED[source]
    run = repl.run(source)
    assert run.error is not None
    assert (run.error.kind, run.error.line, run.calls) == ("check", line, ())
    assert run.error.message.startswith(message)
    assert run.error.hint or run.error.code == "invalid" or "import *" in message


FINE = [
    "d = {'a': 1}\ndel d['a']\nsorted(d, key=d.get)",
    "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
    "[get(**{'id': i}) for i in [1]]",
    "args = {'id': 1}\nget(**args)",
    "get({'id': 1})",
    "hr.members(team='x')",
    "def later():\n    return helper(1)\ndef helper(x):\n    return x\nlater()",
    "match {'a': 1}:\n    case {'a': x}:\n        print(x)",
    "for i, (a, b) in enumerate([(1, 2)]):\n    pass\ni, a, b",
    "with_default = lambda x, *rest, key=None, **more: x\nwith_default(1)",
    "global_total = sum(x for x in range(3))\nglobal_total",
    "if __name__ == '__main__':\n    print('x')",
    "f'{get(id=1)[\"id\"]:>5}'",
    "class A:\n    __top = 3\n    def f(self, n=__top):\n        return n\nA().f()",
    "def f(tools):\n    return tools.whatever() if tools else 1\nf(None)",
]


@pytest.mark.parametrize("source", FINE)
def test_what_works_is_not_refused(source: str, repl: Repl) -> None:
    assert [found for found in repl.check(source) if found.severity == "error"] == []
    assert repl.run(source).error is None


HOSTILE = [
    "(" * 5000 + ")" * 5000,
    "-" * 20000 + "1",
    "a" + ".b" * 15000,
    "x = " + "[" * 150 + "]" * 150,
    "\0",
    "x = '\ud800'",
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_do_not_harm_the_host(source: str, repl: Repl) -> None:
    repl.check(source)
    assert repl.run("1 + 1").value == 2
