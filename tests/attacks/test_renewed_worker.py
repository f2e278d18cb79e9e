"""Workers that serve one-off runs one after another: nothing that a script leaves behind may reach the next one."""

from __future__ import annotations

import os
import re
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits
from moonbox.native import extension
from moonbox.worker import protocol
from moonbox.worker.encoding import message_pack
from moonbox.worker.link import Gone
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.worker.link import Link

if extension("worker._wire") is None or os.sysconf("SC_PAGE_SIZE") != 4096:
    pytest.skip("only native workers are renewed", allow_module_level=True)

RENEW = protocol.frame(protocol.RENEW, b"")
SECONDS = 60
SEED = 12345
FILL = "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end"

# Each leaves something behind, in a state that is otherwise in order, and ends well.
LEFT_BEHIND = {
    "a global": "left = 'secret'",
    "many globals": "for i = 1, 500 do _G['left' .. i] = { i } end",
    "a global of the library": "print = nil; tools = 5; json = {}; string = nil",
    "an environment": "_ENV = { left = 1 }",
    "a table that is kept alive": "left = {} ; left.left = left ; for i = 1, 300 do left[i] = { i, tostring(i) } end",
    "short strings": "local t = {} for i = 1, 2000 do t[i] = 'left' .. i end",
    "long strings": "local t = {} for i = 1, 50 do t[i] = ('left'):rep(200) .. i end left = t",
    "a metatable": "left = setmetatable({}, { __index = function() return 'secret' end, __call = print })",
    "a metatable of strings": "pcall(function() getmetatable('').__index = nil end) pcall(setmetatable, '', {})",
    "fields of libraries": "pcall(function() string.upper = nil end) pcall(rawset, math, 'pi', 3)",
    "a suspended coroutine": "left = coroutine.create(function() coroutine.yield(1) end) coroutine.resume(left)",
    "a coroutine in wait": "left = coroutine.wrap(function() while true do coroutine.yield('secret') end end) left()",
    "a variable that is to be closed": """
        left = coroutine.wrap(function()
          local x <close> = setmetatable({}, { __close = function() left = 'closed' end })
          coroutine.yield(x)
        end)
        left()""",
    "a caught error": "pcall(error, { 'secret' }) pcall(function() local x = nil + 1 end)",
    "a deep stack": "local function f(n) if n > 0 then return 1 + f(n - 1) end return 0 end f(180)",
    "random numbers": "math.randomseed(1) for i = 1, 10 do math.random() end",
    "printed output": "print('secret') print(('x'):rep(3000))",
    "a long value": "return ('secret'):rep(500)",
    "many values": "local t = {} for i = 1, 200 do t[i] = { i, 'secret' } end return t",
    "parallel functions": "parallel{ function() left = 1 end, function() left = 2 end }",
    "garbage": "for i = 1, 3000 do local t = { i, {}, 'x' .. i } end",
    "a table that refers to itself": "left = setmetatable({}, {}) left[{}] = {} left[left] = left",
    "a large script": "local x = 'secret' " + "x = x .. 'y' " * 3000,
    "sorted and packed": "left = string.pack('i4s', 5, 'secret') table.sort({ 3, 1, 2 }) ; ('x'):gsub('.', '%0')",
}
# All that a script can see of what was before it.
LOOK = """
local names, seen = {}, {}
for name, value in pairs(_G) do
  names[#names + 1] = name .. '=' .. type(value)
  if type(value) == 'table' and name ~= 'docs' then
    local fields = {}
    for field, inner in pairs(value) do fields[#fields + 1] = tostring(field) .. ':' .. type(inner) end
    table.sort(fields)
    seen[#seen + 1] = name .. '{' .. table.concat(fields, ' ') .. '}'
  end
end
table.sort(names)
table.sort(seen)
local order = {}
for name in pairs({ alpha = 1, beta = 2, gamma = 3, delta = 4, left = 5, secret = 6 }) do order[#order + 1] = name end
local co = coroutine.wrap(function(...) local got = coroutine.yield(...) return got end)
return { names, seen, order, math.random(1 << 53), math.random(), left == nil, ('x'):upper(), co(1), co(2),
  pcall(error, 'e', 0), _ == nil, _1 == nil, select('#', ...), string.format('%s', math.pi), rawlen({ 1, 2 }),
  json.encode({ 1, { a = json.null } }), tostring(print), getmetatable('') == nil }
"""


def config(**limits: Any) -> dict[str, Any]:
    environment = {
        "tools": [("find", "tools.find")],
        "functions": [],
        "values": [],
        "features": ["metatables", "coroutines"],
        "runtime": None,
    }
    given = {**Limits(**limits).to_dict(), "allow_nan": False}
    return {"limits": given, "environment": environment, "renewable": True}


@contextmanager
def worker(**limits: Any) -> Iterator[Link]:
    source = ProcessSource(config(**limits))
    with closing(source), closing(source.spawn()) as link:
        link.wait_until_ready(time.monotonic() + SECONDS)
        yield link


@pytest.fixture(scope="module")
def source() -> Iterator[ProcessSource]:
    with closing(ProcessSource(config())) as source:
        yield source


@pytest.fixture(scope="module")
def link(source: ProcessSource) -> Iterator[Link]:
    with closing(source.spawn()) as link:
        link.wait_until_ready(time.monotonic() + SECONDS)
        assert run(link, "return 1", before=RENEW)[0] == protocol.RENEWABLE
        yield link


def run(link: Link, source: str, *, before: bytes = b"", seed: int = SEED) -> tuple[int, bytes]:
    """The last frame of a run; `before` is what goes ahead of it."""
    deadline = time.monotonic() + SECONDS
    with link:
        frame = link.exchange(before + protocol.pack_run(source.encode(), 1, seed), deadline, deadline)
        while frame is not None and frame[0] in (protocol.OUTPUT, protocol.KEPT, protocol.CANCEL):
            frame = link.receive(deadline)
    assert frame is not None
    return frame


def told(frame: tuple[int, bytes]) -> tuple[int, int, int, bytes]:
    """Its kind, and all of a VALUE but the processor time: operations, memory, values."""
    operations, memory, _, _ = protocol.SPENT.unpack_from(frame[1])
    return frame[0], operations, memory, frame[1][protocol.SPENT.size :]


@pytest.fixture(scope="module")
def fresh(source: ProcessSource) -> tuple[int, int, int, bytes]:
    """What a worker sees that has never run anything."""
    with closing(source.spawn()) as link:
        link.wait_until_ready(time.monotonic() + SECONDS)
        return told(run(link, LOOK, before=RENEW))


@pytest.mark.parametrize("left", LEFT_BEHIND)
def test_nothing_that_is_left_behind_is_seen(left: str, link: Link, fresh: tuple[int, int, int, bytes]) -> None:
    for _ in range(3):  # the pages that runs write to are learned on the way
        assert run(link, LEFT_BEHIND[left], before=RENEW)[0] == protocol.RENEWABLE
        assert told(run(link, LOOK, before=RENEW)) == fresh


def test_without_renewal_the_look_sees_it(link: Link, fresh: tuple[int, int, int, bytes]) -> None:
    run(link, "left = 'secret'", before=RENEW)
    assert told(run(link, LOOK)) != fresh


def test_a_mix_of_runs_leaves_nothing(link: Link, fresh: tuple[int, int, int, bytes]) -> None:
    for source in LEFT_BEHIND.values():
        run(link, source, before=RENEW)
    assert told(run(link, LOOK, before=RENEW)) == fresh


def test_random_numbers_follow_the_seed(link: Link) -> None:
    first, again, other = (run(link, "return math.random()", before=RENEW, seed=seed)[1] for seed in (1, 1, 2))
    assert first[protocol.SPENT.size :] == again[protocol.SPENT.size :] != other[protocol.SPENT.size :]


def memory(pid: int) -> tuple[list[tuple[int, int, int]], tuple[int, int]]:
    """The ranges that are renewed, each with where its copy is, and the copy."""
    ranges, copy = [], (0, 0)
    with Path(f"/proc/{pid}/maps").open(encoding="ascii") as file:
        for line in file:
            found = re.match(r"(\w+)-(\w+) (\S+) (\w+) .*/memfd:moonbox", line)
            if found and found[3] == "rw-p":
                ranges.append((int(found[1], 16), int(found[2], 16), int(found[4], 16)))
            elif found:
                assert found[3] == "r--p", "nothing can write to the copy"
                copy = int(found[1], 16), int(found[2], 16)
    return ranges, copy


def differing(pid: int) -> list[int]:
    """The addresses at which the renewed memory differs from the copy."""
    ranges, (copy, end) = memory(pid)
    assert len(ranges) == 4 and copy < end
    different: list[int] = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as file:

        def read(start: int, size: int) -> bytes:
            file.seek(start)
            return file.read(size)

        for start, stop, offset in ranges:
            now, then = read(start, stop - start), read(copy + offset, stop - start)
            assert len(now) == len(then) == stop - start
            if now != then:
                different += [start + at for at, (a, b) in enumerate(zip(now, then, strict=True)) if a != b]
    return different


@pytest.mark.parametrize("left", LEFT_BEHIND)
def test_the_memory_is_the_same_byte_for_byte(left: str, link: Link) -> None:
    assert link.pid is not None
    try:
        memory(link.pid)
        Path(f"/proc/{link.pid}/mem").open("rb").close()
    except PermissionError:
        pytest.skip("only root can read the memory of a worker")
    assert run(link, LEFT_BEHIND[left], before=RENEW)[0] == protocol.RENEWABLE
    assert len(differing(link.pid)) > 100  # it does differ before
    link.send(RENEW)
    deadline = time.monotonic() + SECONDS
    # How long the host lets it wait is learned over runs: one small block of counters, and nothing of a script.
    while (different := differing(link.pid)) and different[-1] - different[0] >= 96:
        assert time.monotonic() < deadline, f"{len(different)} bytes differ, first at {different[0]:#x}"


@pytest.mark.parametrize(
    ("source", "limits"),
    [
        ("error('no')", {}),
        ("local x = nil + 1", {}),
        ("return (", {}),
        ("while true do end", {"max_operations": 10_000}),
        (FILL, {"max_memory": 4 << 20}),
        (f"pcall(function() {FILL} end)", {"max_memory": 4 << 20}),
        ("print(('x'):rep(5000))", {"max_output": 100}),
        ("return #json.decode('[1, 2]')", {}),
        ("return #('x'):rep(1 << 20)", {}),
        ("left = {} for i = 1, 20000 do left[i] = i end", {}),
    ],
)
def test_what_is_not_ordinary_ends_the_process(source: str, limits: dict[str, Any]) -> None:
    with worker(**limits) as link:
        assert run(link, source, before=RENEW)[0] in (protocol.VALUE, protocol.DONE)
        with pytest.raises(Gone):
            run(link, "return 1", before=RENEW)


def test_a_worker_that_python_has_configured_is_not_renewed() -> None:
    with worker() as link:
        inputs = protocol.pack(protocol.CONFIGURE, {"inputs": []})
        assert run(link, "return 1", before=RENEW + inputs)[0] == protocol.VALUE


def test_a_worker_that_was_told_to_stop_does_not_serve_again() -> None:
    with worker() as link:
        deadline = time.monotonic() + SECONDS
        kind = protocol.RENEWABLE
        while kind == protocol.RENEWABLE:
            assert time.monotonic() < deadline
            link.interrupt(7, protocol.REASON_CANCELLED)  # of another run: too late, or too early
            try:
                kind, _ = run(link, "return 1", before=RENEW)
            except Gone:
                return
        assert kind == protocol.VALUE


def test_an_answer_to_an_earlier_run_answers_no_other(link: Link) -> None:
    deadline = time.monotonic() + SECONDS
    stale = protocol.frame(protocol.ANSWERS, message_pack([(1, True, "stale")]))
    with link:
        frame = link.exchange(RENEW + protocol.pack_run(b"return 1", 1, SEED), deadline, deadline)
        assert frame is not None and frame[0] == protocol.RENEWABLE
        source = b"return tools.find{}"
        frame = link.exchange(stale + RENEW + protocol.pack_run(source, 1, SEED), deadline, deadline)
        assert frame is not None and frame[0] == protocol.CALLS
        answer = protocol.frame(protocol.ANSWERS, message_pack([(1, True, "its own")]))
        frame = link.exchange(answer, deadline, deadline)
    assert frame is not None and told(frame)[3] == b'["its own"]'


def test_frames_that_come_with_the_renewal_are_kept(link: Link) -> None:
    source = "return #'" + "x" * 20_000 + "'"
    for _ in range(5):
        assert told(run(link, source, before=RENEW))[3] == b"[20000]"


def test_known_escapes_leave_nothing(source: ProcessSource, fresh: tuple[int, int, int, bytes]) -> None:
    renewed = 0
    link = source.spawn()
    for path in sorted(Path(__file__).parent.glob("escape__*.lua")):
        text = path.read_text("utf-8")
        for script in () if "-- error: limit" in text else text.split("-- next run"):
            if link.renewable and run(link, script, before=RENEW)[0] == protocol.RENEWABLE:
                renewed += 1
                assert told(run(link, LOOK, before=RENEW)) == fresh, path.name
                continue
            link.close()  # it failed, or makes calls: the host would not have the worker serve again
            link = source.spawn()
            link.renewable = run(link, "return 1", before=RENEW)[0] == protocol.RENEWABLE
    link.close()
    assert renewed > 20


def test_a_worker_that_has_run_something_does_not_begin_to_be_renewed() -> None:
    with worker() as link:
        assert run(link, "left = 1")[0] == protocol.VALUE
        with pytest.raises(Gone):
            run(link, "return 1", before=RENEW)
