"""The native loop of a worker: it does what the loop in Python does, and reads broken answers without harm."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import msgpack

from moonbox import Limits, Sandbox
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(find_spec("moonbox.worker._native") is None, reason="the native part is not built here")

PEER = Path(__file__).with_name("native_peer.py")
ROWS = [
    {"id": n, "name": f"row {n}", "price": n * 1.25, "note": None if n % 3 else "x", "tags": ["a", n]}
    for n in range(99)
]
SAMPLES: dict[str, Any] = {
    "none": None,
    "nested": {"a": [1, None, {"b": None, "c": []}], "": {}, "d": {"e": [[[]]]}},
    "rows": ROWS,
    "integers": [0, -1, 127, 128, -32, -33, 255, 256, -128, -129, 65535, 65536, 2**32, 2**63 - 1, -(2**63)],
    "floats": [0.0, -0.0, 0.1, 1.5, -2.125, 1e308, 5e-324, 1e15, 123456789.125, 0.001, 3.0],
    "text": ["", "é", "日本", "\U0001f600", 'a"b\\c\n\x00\x1f\x7f', "x" * 300, "y" * 70_000],
    "bytes": b"\xff\x00\xfe",
    "keys": {1: "a", 2: "b", -5: "c"},
    "mixed keys": {"a": 1, 7: 2},
    "lone surrogate": "a\ud800b",
    "many nulls": [None] * 5000,
    "null fields": {f"k{n}": None for n in range(3000)},
    "deep": json.loads("[" * 60 + "]" * 60),
    "marks": {"\x01t": [["a"], [1]]},
}


def sample(name: str) -> Any:
    """A value of the table."""
    return SAMPLES[name]


def same(value: Any = None) -> Any:
    """The value as it came."""
    return value


def fails(code: int) -> Any:
    """Always fails."""
    raise ValueError(f"no {code} \ud800" if code else "é" * 200)


SCRIPTS: list[str] = tomllib.loads(Path(__file__).with_name("native.toml").read_text(encoding="utf-8"))["scripts"]


@pytest.fixture(scope="module")
def boxes() -> Iterator[tuple[Sandbox, Sandbox]]:
    """A sandbox on the native loop, and one on the loop in Python."""
    limits = Limits(
        timeout=0.4, max_memory=4 << 20, max_output=20_000, max_string=65536, max_array=2000, max_tool_calls=300
    )
    made = []
    for native in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MOONBOX_NATIVE", native)
            box = Sandbox(
                tools=[sample, same, fails], limits=limits, lua_features=("coroutines", "metatables"), min_workers=1
            )
            with box.repl() as repl:
                run = repl.run("return 1")
                assert repl.worker_native == run.usage.native == (native == "1")
        made.append(box)
    yield made[0], made[1]
    for box in made:
        box.close()


def seen(box: Sandbox, source: str, **options: Any) -> dict[str, Any]:
    """A run as JSON, without what is of its own moment."""
    told = box.run(source, **options).to_dict()
    text = json.dumps(told, default=str)
    kept: dict[str, Any] = json.loads(text)
    for name in ("id", "repl", "started", "usage", "seed"):
        kept.pop(name, None)
    if kept["error"] and kept["error"]["limit"] == "memory":  # one loop stops the script, the other fails to allocate
        for name in ("line", "source", "frames", "traceback"):
            kept["error"].pop(name, None)
    for call in kept.get("calls", ()):
        for name in [
            name for name in call if name not in ("tool", "name", "target", "arguments", "value", "error", "ok")
        ]:
            call.pop(name)
    return kept


def exact(value: Any) -> Any:
    """So that 1 and 1.0, 0.0 and -0.0 differ, and the order of keys does not count."""
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    if isinstance(value, dict):
        return sorted((repr(key), exact(item)) for key, item in value.items())
    return repr(value)


@pytest.mark.parametrize("source", SCRIPTS)
def test_both_loops_tell_the_same(boxes: tuple[Sandbox, Sandbox], source: str) -> None:
    native, python = boxes
    limits = replace(native.limits, timeout=0.4 if "do end" in source else 30)  # a busy machine may take its time
    assert seen(native, source, limits=limits) == seen(python, source, limits=limits)


@pytest.mark.parametrize("name", SAMPLES)
def test_values_come_in_and_go_out_the_same(boxes: tuple[Sandbox, Sandbox], name: str) -> None:
    source = f"local v = tools.sample{{name = '{name}'}} return v, v == null, type(v), tools.same{{value = v}}"
    limits = Limits(max_array=10_000, max_string=1 << 20, max_depth=70, timeout=30)
    native, python = (box.run(source, limits=limits) for box in boxes)
    assert native.error == python.error
    assert exact(native.values) == exact(python.values)
    if name != "lone surrogate":
        assert exact(native.values[0]) == exact(SAMPLES[name])


@pytest.mark.parametrize(
    "limits", [{"max_operations": 5000}, {"max_operations": 100_000}, {"max_tool_calls": 3}, {"max_depth": 3}]
)
def test_limits_end_both_alike(boxes: tuple[Sandbox, Sandbox], limits: dict[str, Any]) -> None:
    for source in (
        "local n = 0 for i = 1, 20000 do n = n + i end return n",
        "for i = 1, 9 do tools.same{value = i} end return 1",
        "return {{{{1}}}}",
        "local t = {} for i = 1, 30 do t[i] = {id = i} end return t, tools.same{value = {id = 1}}",
        "local co = coroutine.wrap(function() for i = 1, 50 do coroutine.yield(i) end end) for i = 1, 50 do co() end",
    ):
        given = Limits(timeout=31, **limits)  # a busy machine may take its time
        native, python = (box.run(source, limits=given) for box in boxes)
        assert (native.error and native.error.to_dict()) == (python.error and python.error.to_dict())
        assert (native.values, native.usage.operations) == (python.values, python.usage.operations)


def test_memory_is_counted_to_its_peak(boxes: tuple[Sandbox, Sandbox]) -> None:
    run = boxes[0].run("local t = {} for i = 1, 20 do t[i] = ('x'):rep(50000) .. i end t = nil return 1")
    assert 1_000_000 <= run.usage.peak_memory <= 1_600_000  # the collector may be late


def test_what_large_answers_leave_behind_is_collected() -> None:
    """The collector rests while an answer is read, and catches up after the run."""
    rows = [{"id": number, "tags": [number]} for number in range(5000)]

    def large() -> list[dict[str, Any]]:
        return rows

    with Sandbox([large]) as box, box.repl() as repl:
        used = [repl.run("rows = tools.large() return #rows").usage.peak_memory for _ in range(40)]
        assert max(used) < 3.5 * used[0]


def test_nan_crosses_where_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    values = []
    for native in ("1", "0"):
        monkeypatch.setenv("MOONBOX_NATIVE", native)
        with Sandbox(tools=[same], allow_nan=True) as box:
            values.append(box.run("local v = tools.same{value = {0/0, 1/0, -1/0, 1}} return v[1] ~= v[1], v").values)
    assert repr(values[0]) == repr(values[1]) == "(True, [nan, inf, -inf, 1])"


# Answers as no host of ours sends them


def answered(answers: list[bytes]) -> list[tuple[int, str]]:
    done = subprocess.run(
        [sys.executable, str(PEER)],
        input=json.dumps([answer.hex() for answer in answers]),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(kind, text) for kind, text in json.loads(done.stdout)]


def test_answers_reach_the_script() -> None:
    values: list[Any] = [1, "x", [1, 2], {"a": None}, [None, 1], 2**63 - 1, -(2**63), 0.5, [], {"k": []}, True, "é"]
    frames = answered([msgpack.encode([[1, True, value]]) for value in values])
    assert [(kind, json.loads(text)) for kind, text in frames] == [(protocol.VALUE, [value]) for value in values]
    ((_, infinite),) = answered([msgpack.encode([[1, True, math.inf]])])
    assert infinite == '[{"\\u0001f":"inf"}]'


BROKEN = {
    "nothing": b"",
    "no list": b"\x01",
    "a list of nothing": b"\x90",
    "more answers than bytes": b"\xdd\xff\xff\xff\xff",
    "more elements than bytes": b"\x91\x93\x01\xc3\xdd\xff\xff\xff\xff",
    "more fields than bytes": b"\x91\x93\x01\xc3\xdf\xff\xff\xff\xff",
    "text that ends too soon": b"\x91\x93\x01\xc3\xdb\xff\xff\xff\xffabc",
    "a number that ends too soon": b"\x91\x93\x01\xc3\xcf\x01",
    "nested without end": b"\x91\x93\x01\xc3" + b"\x91" * 50_000,
    "objects nested without end": b"\x91\x93\x01\xc3" + b"\x81\xa1a" * 20_000,
    "an integer of 64 bits and no sign": b"\x91\x93\x01\xc3\xcf" + b"\xff" * 8,
    "a key that is nil": b"\x91\x93\x01\xc3\x81\xc0\x01",
    "a key that is no number": b"\x91\x93\x01\xc3\x81\xcb\x7f\xf8" + b"\x00" * 6 + b"\x01",
    "a key that is a table": b"\x91\x93\x01\xc3\x81\x90\x01",
    "an extension": b"\x91\x93\x01\xc3\xd4\x01\x01",
    "a byte that means nothing": b"\x91\x93\x01\xc3\xc1",
    "answers of another shape": b"\x92\x92\x01\xc3\x93\x01\xc3\x01",
}


def test_broken_answers_end_the_run_alone() -> None:
    good = [msgpack.encode([[1, True, "fine"]])] * len(BROKEN)
    frames = answered([part for pair in zip(BROKEN.values(), good, strict=True) for part in pair])
    for name, (kind, text), after in zip(BROKEN, frames[::2], frames[1::2], strict=True):
        assert kind == protocol.DONE, name
        assert (json.loads(text)["kind"], json.loads(text)["limit"]) == ("stop", "cancelled"), name
        assert after == (protocol.VALUE, '["fine"]'), name


def test_answers_larger_than_the_memory_end_the_run_alone() -> None:
    wide = msgpack.encode([[1, True, [[] for _ in range(150_000)]]])
    large, fine = answered([wide, msgpack.encode([[1, True, 5]])])
    assert (large[0], json.loads(large[1])["limit"]) == (protocol.DONE, "memory")
    assert fine == (protocol.VALUE, "[5]")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_fresh_worker_copies_few_pages_and_its_first_run_hardly_any() -> None:
    """Copied pages are most of what a one-off run costs in processor time."""

    def faults(pid: int | None) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])

    with Sandbox(min_workers=0) as box:
        box.run("return 1")
        with box.repl() as repl:
            assert repl.run("return 1").unwrap() == 1
            started = faults(repl.worker_pid)
            assert started < 160
            lines = "for i = 1, 50 do t[i] = {id = i, name = 'n' .. i} end"
            assert repl.run(f"local t = {{}} {lines} return #t").unwrap() == 50
            assert faults(repl.worker_pid) - started < 40


def test_what_a_worker_rehearsed_is_not_counted_as_memory_of_scripts() -> None:
    with Sandbox(min_workers=0) as box, box.repl() as repl:
        first = repl.run("return 1").usage.peak_memory
        limited = repl.run("return 1", limits=Limits(max_memory=8 << 20)).usage.peak_memory
        assert 0 < first < 12_000
        assert abs(limited - first) < 12_000
