"""The look at a Python script before it runs: what Monty lacks, with what to write instead; types; no false errors."""

from __future__ import annotations

import ast
import builtins
import symtable
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, Tool, Toolbox, tool
from moonbox.languages.python.stubs import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Repl

ROW = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["id"],
    "additionalProperties": False,
}


@tool
def get(id: int, deep: bool = False) -> dict[str, int]:
    """One row."""
    return {"id": id}


@tool(namespace="hr")
def members(team: str) -> list[str]:
    """Names."""
    return [team]


def made(name: str, returns: dict[str, Any], value: Any, namespace: str | None = None) -> Tool:
    parameters = {"type": "object", "properties": {"id": {"type": "integer"}}}
    more: Any = {"call": lambda _: value, "returns": returns, "namespace": namespace}
    return Tool.from_schema(name=name, parameters=parameters, **more)


TOOLS = [
    get,
    members,
    made("rows", {"type": "array", "items": ROW}, [{"id": 1, "tags": ["a"]}]),
    made("text", {"type": "string"}, "abc"),
    made("loose", {"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1, "b": 2}),
    made("count", {"type": "integer"}, 1, "my-shop"),
]


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(TOOLS, language="python", limits=Limits(timeout=60)) as box:
        yield box


@pytest.fixture
def repl(box: Sandbox) -> Iterator[Repl]:
    with box.repl() as repl:
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
    "import time\ntime.sleep(1)": (2, "there is no time.sleep"),
    "x = 1\ngte(id=1)": (2, "unknown function 'gte'"),
    "tools.gte(id=1)": (1, "unknown tool 'gte'"),
    "input('name')": (1, "unknown function 'input'"),
    "sorted([1], key=lambda x: get(id=x)['id'])": (1, "a tool cannot be called inside map, filter, sorted, min or max"),
    "list(map(get, [1, 2]))": (1, "a tool cannot be called inside map, filter, sorted, min or max"),
    "get(idd=1)": (1, "invalid arguments for get:"),
    "hr.members()": (1, "invalid arguments for hr.members:"),
    "get('one')": (1, "invalid arguments for get:"),
}


# What the types of results show.
WRONG = {
    "rows(id=1)\nfor r in rows(id=1):\n    print(r.id)": (3, "object of type 'Rows' has no attribute 'id'"),
    "import json\ntools.text(id=1) + 5": (2, "operator '+' is not supported between objects of type 'str' and"),
    "my_shop.count(id=1).x": (1, "object of type 'int' has no attribute 'x'"),
    "\n\nfor n in tools.my_shop.count(id=1): pass": (3, "object of type 'int' is not iterable"),
    "from tools import text as t\ntext(id=1).lowr()": (2, "object of type 'str' has no attribute 'lowr'"),
    "r = rows(id=1)\nr[0]['idd']": (2, "unknown key \"idd\" for TypedDict 'Rows'"),
    "x = 1\ntext(id=1) + 5": (2, "operator '+' is not supported between objects of type 'str' and 'Literal[5]'"),
}


@pytest.mark.parametrize("source", [*REFUSED, *WRONG])
def test_what_cannot_work_is_refused_with_its_line(source: str, repl: Repl) -> None:
    line, message = {**REFUSED, **WRONG}[source]
    findings, run = repl.check(source), repl.run(source)
    found = next(each for each in findings if each.severity == "error")
    assert (found.line, message in found.message) == (line, True)
    assert run.error is not None and message in run.error.message
    assert (run.error.kind, run.error.line, run.calls) == ("check", line, ())
    assert "nothing was run" in run.for_model()
    if source in WRONG:
        assert (len(findings), found.code, run.error.code) == (1, "types", "types")
        assert run.error.hint == ('results are dicts: write x["id"]' if "'Rows' has no" in message else None)
    else:
        assert run.error.message.startswith(message)
        assert run.error.hint or run.error.code == "invalid" or "import *" in message


FINE = [
    "get = tools.get(id=1)\n[tools.get(id=hr)['id'] for hr in [get['id']]]",
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
    # types of results
    "[r['id'] for r in rows(id=1)]",
    "loose(id=1)['b']",  # more than it declares
    "x = 1\nx = text(id=1)\nx.upper()",
    "try:\n    r = text(id=1).nothing\nexcept AttributeError:\n    r = 'caught'\nr",
    "while True:\n    if text(id=1):\n        break\ntext(id=2)",
    "import asyncio\nawait asyncio.gather(text(id=1), text(id=2))",
    "from operator import itemgetter\nsorted(rows(id=1), key=itemgetter('id'))",
    "def f(x):\n    return x.anything\ntext(id=1)",
    # types that are not certain
    "d = {'t': text(id=1)}\nd.get('t').upper()",
    "import re\nre.match('', text(id=1)).group(0)",
    "best = None\nfor r in rows(id=1):\n    best = r['id']\nbest + 1",
    "total = None\ndef add():\n    global total\n    total = 1\nadd()\ntext(id=1)\ntotal + 1",
    "pair = ['a', 1]\ntext(id=1)\npair[0].upper() + str(pair[1] + 1)",
    "from collections import defaultdict\nd = defaultdict(lambda: {'n': 0, 'ids': []})\nd[text(id=1)]['n'] += 1",
    "grid = [[0] * 2]\nfor i in range(1):\n    grid[i][0] = text(id=1)\ngrid[0][0].upper()",
    "d = {'x': 0}\ndef change():\n    d['x'] = text(id=1)\nchange()\nd['x'].upper()",
    "class A:\n    pass\na = A()\na.x = text(id=1)\na.x",
    "class A:\n    def __init__(self):\n        self.x = None\na = A()\na.x = text(id=1)\na.x.upper()",
    "def call(f=None):\n    return f(1)\ncall(lambda n: n + len(text(id=1)))",
    "x = text(id=1)\nx.items() if hasattr(x, 'items') else x",
    "r = rows(id=1)[0]\nr['rank'] = 1\nr['rank'] + 1",
    "r = rows(id=1)[0]\nr['more'] if 'more' in r else 0",
    "[r[key] for r in rows(id=1) for key in r]",
    "dict(rows(id=1)[0], more=1)['more'] + 1",
]


@pytest.mark.parametrize("source", FINE)
def test_what_works_is_not_refused(source: str, repl: Repl) -> None:
    notes = ["note"] if "except ImportError" in source else []  # what a script catches is no error
    assert [found.severity for found in repl.check(source)] == notes
    assert repl.run(source).error is None


def test_a_script_with_misused_names_is_told_so_by_the_engine(repl: Repl) -> None:
    source = "def f(a):\n    return a\ndef g():\n    f(1)\n    global f\ng()"
    assert [found.message for found in repl.check(source)] == ["name 'f' is used prior to global declaration"]
    run = repl.run(source)
    assert run.error is not None and (run.error.kind, run.error.line) == ("syntax", 5)


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


def test_many_unknown_names_cost_no_more_than_the_findings_that_are_shown(repl: Repl) -> None:
    source = "\n".join(f"name{at} = 1" for at in range(1000)) + "\n" + "\n".join(f"nane{at}" for at in range(1000))
    findings = repl.check(source)
    assert len(findings) == 20
    assert (findings[0].message, findings[0].line) == ("'nane0' is not set anywhere: reading it is an error", 1001)
    assert findings[0].hint == "did you mean 'name0'?"


@pytest.mark.parametrize("depth", [1000, 60000])
@pytest.mark.parametrize("opening", ["-", "not ", "(", "[", "a.b(", "lambda: ", "f'{", "x if y else "])
def test_deep_texts_are_an_error_of_the_script(depth: int, opening: str, repl: Repl) -> None:
    source = (opening * depth)[:60000] + "1"
    repl.check(source)
    run = repl.run(source)
    assert run.error is not None and run.error.kind in ("syntax", "runtime", "limit")


def test_the_host_does_not_parse_scripts(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a run nor a check reads a script by Python's own parser in this process."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the host parses a script")

    for module, name in ((ast, "parse"), (symtable, "symtable"), (builtins, "compile")):
        monkeypatch.setattr(module, name, refuse)
    with box.repl() as repl:
        source = "x = [get(id=1), 'a' is 1, '\\d']\nunknown"
        findings, run = repl.check(source), repl.run(source)
    assert run.error is not None and run.error.message == "NameError: name 'unknown' is not defined"
    assert [found.message for found in findings] == ["'unknown' is not set anywhere: reading it is an error"]


SYSTEM = [
    ("import os\nos.environ['A']", "there is no os.environ"),
    ("import os\nos.listdir('.')", "there is no os.listdir"),
    ("import sys\nsys.exit(1)", "there is no sys.exit"),
]


@pytest.mark.parametrize(("source", "message"), SYSTEM)
def test_what_a_system_has_is_refused(source: str, message: str, repl: Repl) -> None:
    assert [found.message for found in repl.check(source)] == [message]


@pytest.mark.parametrize("source", ["import os\nos.path.join('a', os.sep)", "import sys\nsys.maxsize"])
def test_what_is_there_of_a_system_is_not_refused(source: str, repl: Repl) -> None:
    assert repl.check(source) == ()
    assert repl.run(source).ok


def test_an_unknown_function_is_not_taken_for_a_word_of_python(repl: Repl) -> None:
    [found] = repl.check("nonexistent_tool(1)")
    assert (found.message, found.hint) == (
        "unknown function 'nonexistent_tool'",
        'docs.search("words") finds tools',
    )
    [found] = repl.check("sortd([1])")
    assert found.hint == "did you mean 'sorted'?"


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


@pytest.mark.parametrize(
    "grows",
    [
        lambda again: {"anyOf": [again] * 300},
        lambda again: {"type": "array", "items": {"oneOf": [again] * 300}},
        lambda again: {**ROW, "properties": {f"k{number}": again for number in range(300)}},
    ],
    ids=["choices", "choices of items", "fields"],
)
def test_a_schema_of_a_server_that_grows_by_references_makes_a_small_stub(grows: Any) -> None:
    returns = {"$ref": "#/$defs/again", "$defs": {"again": grows({"$ref": "#/$defs/again"})}}
    [stub] = describe(Toolbox([made("hostile", returns, None)]))["stubs"].values()
    assert len(stub) < 100_000
