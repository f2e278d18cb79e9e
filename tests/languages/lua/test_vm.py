"""The Lua engine by itself: runs, answers of the host, conversions, and a host that fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lupa import lua54

from moonbox import Limits
from moonbox.languages import lua
from moonbox.languages.lua.vm import LuaVM
from tests.languages.lua.explain.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.languages.engine import EngineReport


class Host:
    """What the engine talks to: answers calls with their arguments."""

    def exchange(self, calls: bytes) -> Sequence[tuple[int, bool, Any]] | None:
        return [(call, True, arguments) for call, _, arguments in json.loads(calls or b"[]")]

    def cancel(self, ids: bytes) -> None:
        pass

    def emit(self, text: bytes) -> None:
        pass


def make(host: Any = None, **limits: Any) -> LuaVM:
    vm = LuaVM()
    vm.connect(host or Host())
    vm.set_limits({**Limits().to_dict(), "allow_nan": False, **limits})
    vm.configure(
        {
            "tools": [["add", "tools.add"]],
            "functions": [],
            "values": [],
            "features": [],
        }
    )
    return vm


def run(vm: LuaVM, source: str, number: int = 1) -> EngineReport:
    return vm.run(source.encode(), number, 7)


def result(vm: LuaVM, source: str, number: int = 1) -> Any:
    outcome = run(vm, source, number)
    assert outcome.kind == "ok", outcome.message
    return json.loads(outcome.values)


def test_outcomes() -> None:
    vm = make()
    assert result(vm, "return 1, 'x'") == [1, "x"]
    failed = run(vm, "local x = nil\nx()", 2)
    assert (failed.kind, failed.message) == ("runtime", b"script#2:2: attempt to call a nil value (local 'x')")
    assert json.loads(failed.frames)[0][:2] == ["script#2", 2]
    assert "print" in json.loads(failed.extra)["names"]
    wrong = run(vm, "return )", 3)
    assert (wrong.kind, wrong.message) == ("syntax", b"script#3:1: unexpected symbol near ')'")
    stopped = run(make(max_operations=1000), "while true do end")
    assert (stopped.kind, stopped.limit) == ("stop", "operations")
    assert stopped.operations is not None
    assert 1000 <= stopped.operations <= 1100


class Broken(Host):
    """A host whose connection is gone."""

    def __init__(self, problem: BaseException) -> None:
        self._problem = problem

    def exchange(self, calls: bytes) -> Any:
        raise self._problem

    def cancel(self, ids: bytes) -> None:
        raise self._problem

    def emit(self, text: bytes) -> None:
        raise self._problem


class HangUp(Exception):
    """The connection is gone."""


@pytest.mark.parametrize("source", ["print('x')", "tools.add(1)", "os.clock()", "docs.search('x')"])
def test_an_exception_of_the_host_never_reaches_the_script(source: str) -> None:
    """A Python object in a script's hands would be a way out."""
    vm = make(Broken(HangUp("gone")))
    outcome = run(vm, f"caught = {{ pcall(function() {source} end) }}")
    assert (outcome.kind, outcome.limit) == ("stop", "cancelled")
    vm.connect(Host())
    assert result(vm, "return type(caught)", 2) == ["nil"]


def test_a_host_without_memory_stops_the_run() -> None:
    outcome = run(make(Broken(MemoryError())), "pcall(tools.add, 1) while true do end")
    assert (outcome.kind, outcome.limit) == ("stop", "memory")


def test_the_run_is_halted_instead_of_answered() -> None:
    class Halting(Host):
        def exchange(self, calls: bytes) -> None:
            vm.halt(3)

    vm = make(Halting())
    outcome = run(vm, "while true do pcall(tools.add, 1) end")
    assert (outcome.kind, outcome.limit) == ("stop", "calls")


def test_answers_that_nobody_waits_for_are_ignored() -> None:
    class Talkative(Host):
        def exchange(self, calls: bytes) -> Sequence[tuple[int, bool, Any]]:
            answers = super().exchange(calls) or ()
            return [(10**6, True, "?"), *answers, (10**6 + 1, False, {"message": "?"})]

    assert result(make(Talkative()), "return tools.add(1)") == [[1]]


def test_answers_that_come_late() -> None:
    class Late(Host):
        rounds = 0

        def exchange(self, calls: bytes) -> Sequence[tuple[int, bool, Any]]:
            self.rounds += 1
            if calls:
                self._kept = super().exchange(calls) or ()
                return []
            return self._kept if self.rounds % 3 == 0 else []

    assert result(make(Late()), "return tools.add(1)[1], parallel{ function() return tools.add(2) end }[1][1]") == [
        1,
        2,
    ]


# The interrupt

ENDLESS = (
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "coroutine.wrap(function() while true do end end)()",
    "parallel{ function() while true do end end }",
    "table.sort({ 1, 2, 3 }, function() while true do end end)",
)


def stop_endless_scripts(bench: Bench) -> None:
    for source in ENDLESS:
        with bench.interrupted():
            outcome = bench.report(f"kept = (kept or 0) + 1 print('running') {source}")
        assert (outcome.kind, outcome.limit) == ("stop", "time")
    assert bench.value("return kept") == len(ENDLESS)


def test_interrupted_from_another_thread() -> None:
    bench = Bench(features=["coroutines", "metatables"])
    assert bench.vm.polling == "", "with the C API no hook stands"
    stop_endless_scripts(bench)


def test_without_the_c_api_a_standing_hook_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise OSError("no such symbol")

    monkeypatch.setattr("moonbox.languages.lua.interrupt.ctypes.PyDLL", missing)
    bench = Bench(features=["coroutines", "metatables"])
    assert bench.vm.polling == "the Lua C API is not exported by this build of lupa: no such symbol"
    stop_endless_scripts(bench)


def test_another_run_is_not_interrupted() -> None:
    bench = Bench()
    assert not bench.vm.interrupt(7, 1)
    assert bench.value("return 2") == 2
    with bench.interrupted(1) as accepted:
        assert bench.value("print('running') for i = 1, 3000000 do end return 3") == 3
    assert accepted == [False]


def test_interrupted_before_it_begins() -> None:
    vm = make()
    assert not vm.interrupt(5, 2)
    outcome = run(vm, "ran = true while true do end", 5)
    assert (outcome.kind, outcome.limit) == ("stop", "cancelled")
    assert result(vm, "return ran", 6) in ([None], [True])


def test_a_stop_that_comes_when_the_run_is_over_raises_nothing() -> None:
    runtime = lua54.LuaRuntime(unpack_returned_tuples=True, encoding=None)
    source = (Path(lua.__file__).parent / "prelude" / "stop.lua").read_bytes()
    make = runtime.execute(b"return function(text) return load(text)()({reason = function() return 3 end}) end")
    stop = make(source)
    limits = runtime.table_from({b"memory_soft": 1 << 30})
    stop[b"begin"](limits, False)
    with pytest.raises(lua54.LuaError):
        stop[b"hook"]()
    stop[b"finish"]()
    stop[b"rest"]()
    stop[b"hook"]()
    stop[b"begin"](limits, False)
    with pytest.raises(lua54.LuaError):
        stop[b"hook"]()
