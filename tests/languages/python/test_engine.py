"""What only Python's engine has: calls that are made together, the jail of its process, and what becomes of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox import CodeMode, Limits, Sandbox, Tool, tool
from moonbox.project.python_tools import load_tools
from tests.faults.processes import lives
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@tool
def get(id: int) -> dict[str, int]:
    """One row."""
    return {"id": id, "twice": 2 * id}


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(tools=[get], language="python", limits=Limits(timeout=20)) as box:
        yield box


TOGETHER = {
    "gather": "import asyncio\nawait asyncio.gather(*[get(id=i) for i in range(5)])",
    "gather_of_a_variable": "import asyncio\ntasks = [get(id=i) for i in range(5)]\nawait asyncio.gather(*tasks)",
    "a_tool": "parallel_map(get, range(5))",
    "a_lambda": 'parallel_map(lambda i: get(id=i)["twice"] + 1, range(5))',
    "a_function": "def f(i):\n    row = get(id=i)\n    return row['twice']\nparallel_map(f, range(5))",
    "a_lambda_in_a_function": "def go(n):\n    return parallel_map(lambda i: get(id=i), range(n))\ngo(5)",
    "settled": 'parallel_settle(lambda i: get(id=i)["twice"], range(5))',
    "coroutines": "async def f(i):\n    return get(id=i)['id']\nawait asyncio.gather(*[f(i) for i in range(5)])",
}


@pytest.mark.parametrize("source", TOGETHER.values(), ids=list(TOGETHER))
def test_calls_are_made_in_one_batch(source: str, box: Sandbox) -> None:
    run = box.run(source)
    assert run.error is None
    assert [call.arguments["id"] for call in run.calls] == [0, 1, 2, 3, 4]
    assert {call.batch for call in run.calls} == {1}


def test_calls_that_are_not_awaited_are_made_one_by_one(box: Sandbox) -> None:
    run = box.run('[get(id=i)["id"] for i in range(3)]')
    assert [call.batch for call in run.calls] == [1, 2, 3]


def test_names_that_python_cannot_write() -> None:
    places = (("a-b", None), ("get", "my-server"), ("import", None), ("list", "class"), ("who", "git.hub"))
    tools = [Tool.from_schema(name=name, namespace=space, call=lambda _: 1) for name, space in places]
    calls = "a_b(), my_server.get(), import_(), tools.import_(), class_.list(), git.hub.who()"
    with Sandbox(tools, language="python") as box:
        run = box.run(f"len([{calls}])")
        assert (run.error, run.value) == (None, 6)
        described = box.run('[docs.describe(name) for name in ("import_", "class_.list")]')
        assert [text.split("\n")[0] for text in described.value] == ["import()", "class.list()"]


def test_a_namespace_beside_a_tool_or_a_module_of_its_name() -> None:
    places = (("git", None), ("log", "git"), ("now", "time"), ("search", "docs"))
    tools = [Tool.from_schema(name=name, namespace=space, call=lambda _, name=name: name) for name, space in places]
    with Sandbox(tools, language="python") as box:
        run = box.run("import time\n[git_(), git.log(), tools.git.log(), time_.now(), tools.docs.search()] ")
        assert (run.error, run.value) == (None, ["git", "log", "log", "now", "search"])


def test_positions_are_those_of_the_catalog() -> None:
    text = {"type": "string"}
    parameters = {"type": "object", "properties": {"note": text, "to": text}, "required": ["to"]}
    send = Tool.from_schema(name="send", parameters=parameters, call=lambda given: given)
    with Sandbox([send], language="python") as box:
        assert CodeMode(box).catalog.text.splitlines()[1] == "- send(to: str, note: str = ...)"
        run = box.run("rest = ['b']\n[send('a'), send('a', 'b'), send('a', *rest), send('a', note='b')]")
    assert run.value == [{"to": "a"}, *[{"to": "a", "note": "b"}] * 3]


# The process beside the worker


def monty_of(worker: int | None) -> int:
    children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    return int(children[0])


def test_the_engines_process_is_locked_in(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.run("x = 1").ok
        pid = monty_of(repl.worker_pid)
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
        )
        assert (status["Seccomp"].strip(), status["NoNewPrivs"].strip(), status["CapEff"].strip()) == (
            "2",
            "1",
            "0" * 16,
        )
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        limits = {
            line[:26].strip(): line[26:].split()[:2] for line in Path(f"/proc/{pid}/limits").read_text().splitlines()
        }
        assert limits["Max open files"] == limits["Max processes"] == limits["Max file size"] == ["0", "0"]
        assert int(limits["Max address space"][0]) < 2**30
        descriptors = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]
        assert all(name.startswith("pipe:") or name == "/dev/null" for name in descriptors)


def test_a_killed_engine_is_a_crash_that_the_next_run_survives(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.run("x = 1").ok
        os.kill(monty_of(repl.worker_pid), signal.SIGKILL)
        run = repl.run("x")
        assert run.error is not None and run.error.kind == "crashed" and run.state_lost
        assert repl.run("1 + 1").value == 2


def test_the_engines_process_ends_with_its_repl() -> None:
    with Sandbox(language="python", min_workers=0) as box:
        with box.repl() as repl:
            assert repl.run("x = 1").ok
            pid = monty_of(repl.worker_pid)
        wait_until(lambda: not lives(pid))


@pytest.mark.parametrize("first", [30, 0.4], ids=["then_shorter", "then_longer"])
def test_each_run_has_its_own_timeout_and_keeps_the_state(first: float) -> None:
    endless, longer = "while True:\n    x = 2", "import time\nfor i in range(3 * 10**6):\n    pass\ni"
    with Sandbox([get], language="python", limits=Limits(timeout=first)) as box, box.repl() as repl:
        assert repl.run("x = 1\ndef f(i):\n    return get(id=i)['twice'] + x\nf(1)").value == 3
        for _ in range(2):
            run = repl.run(endless, timeout=0.5)
            assert run.error is not None and run.error.limit == "time" and not run.state_lost
            assert repl.run(longer, timeout=60).value == 3 * 10**6 - 1
            assert repl.run("f(2)", timeout=60).value == 6


def test_what_does_not_stop_is_ended_by_the_hosts_clock() -> None:
    with Sandbox(language="python", limits=Limits(timeout=0.5)) as box, box.repl() as repl:
        run = repl.run("n = 7 ** (10 ** 6)\nfor i in range(100):\n    n = n * n % (10 ** (10 ** 6) + 9)")
        assert run.error is not None and run.error.limit == "time" and run.state_lost
        assert repl.run("1 + 1").value == 2


def test_a_script_that_calls_is_stopped_between_two_calls(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.run("n = 0").ok
        source = "while True:\n    try:\n        get(id=n)\n        n += 1\n    except Exception:\n        pass"
        run = repl.run(source, limits=Limits(timeout=0.5, max_tool_calls=10**6))
        assert run.error is not None and run.error.limit == "time" and not run.state_lost
        assert repl.run("n > 0").value is True


def test_globals(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.globals() == {}
        source = (
            "import math, statistics\na = 1\nb = [get(id=1)]\nfor i in range(2): pass\n"
            "def f():\n    global c\n    c, inner = 'x', 1\nf()\nnothing = None\nif a > 1:\n    never = 1\n"
            "class Row: pass\nrow = Row()\nlist(range(1000))"
        )
        assert repl.run(source).ok
        kinds = {"a": "int", "b": "list", "i": "int", "f": "function", "c": "str", "nothing": "NoneType"}
        assert repl.globals() == {**kinds, "Row": "type", "row": "Row"}
        assert repl.run("def _kind(f):\n    print('x' * 10**6)\n    return get(id=1)").ok  # only fools itself
        assert repl.globals() == {}
        assert repl.run("a").value == 1


def test_the_layers_of_the_jail_can_be_required() -> None:
    with Sandbox(language="python", require=("seccomp", "landlock", "memory-limit")) as box:
        assert box.run("1 + 1").value == 2


def test_a_run_is_the_same_in_every_process() -> None:
    source = "import random\n[list({'b', 'a', 'c', 1}), hash('x'), [random.random() for _ in range(3)], id([]) > 0]"
    with Sandbox(language="python") as box, box.repl() as one, box.repl() as other:
        first = one.run(source)
        assert first.ok and first.value[:2] == other.run(source).value[:2]


def test_the_example_comes_to_what_its_twin_in_lua_comes_to() -> None:
    examples = Path(__file__).parents[3] / "examples"
    tools = load_tools([str(examples / "demo.py")])
    values = []
    for script, language in (("expenses.lua", "lua"), ("expenses.py", "python")):
        with Sandbox(tools, language=language, limits=Limits(timeout=60)) as box:
            run = box.run((examples / script).read_text(encoding="utf-8"))
            assert run.error is None and len(run.calls) == 20
            values.append(run.value)
    assert values[0] == values[1] > 0
