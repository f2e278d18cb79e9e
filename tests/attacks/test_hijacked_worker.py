"""Protocol abuse by a hijacked worker: whatever it says, the host ends it, keeps its head and goes on."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, tool
from moonbox.worker import protocol
from moonbox.worker.protocol import CALLS, CANCEL, DEFINED, DONE, INSPECTED, OUTPUT, READY, RUN, SPENT, VALUE, frame

from .hijacked import done, hijacked_box, honest, says

if TYPE_CHECKING:
    from collections.abc import Callable

    from .hijacked import Peer

LIMITS = Limits(timeout=0.4, max_output=1000, max_memory=4_000_000, max_tool_calls=50)
PATIENT = replace(LIMITS, timeout=30.0)  # where the message ends the worker, not the clock


@tool
def echo(value: object = None) -> object:
    """Give it back."""
    return value


def without(key: str) -> bytes:
    data = done()
    del data[key]
    return json.dumps(data).encode()


def calls(*items: Any) -> bytes:
    return frame(CALLS, json.dumps(list(items)).encode())


def ended(**changes: Any) -> bytes:
    return frame(DONE, json.dumps(done(**changes)).encode())


SPECIAL = "\x01"
NONSENSE: dict[str, bytes] = {
    "unknown type": frame(99, b""),
    "a frame of the host's own": frame(RUN, b""),
    "a second greeting": frame(READY, b"") + frame(READY, b""),
    "an answer that nobody asked for": frame(DEFINED, b"[]"),
    "an inspection that nobody asked for": frame(INSPECTED, b'{"frames":[],"globals":{}}'),
    "giant length": struct.pack("<BI", DONE, 2**32 - 1),
    "length just above the limit": struct.pack("<BI", DONE, LIMITS.max_memory + (1 << 20) + 1),
    "random bytes": bytes(range(256)) * 10,
    "empty end": frame(DONE, b""),
    "not JSON": frame(DONE, b"{'kind': 'ok'}"),
    "not UTF-8": frame(DONE, b'{"kind": "\xff"}'),
    "UTF-16": frame(DONE, json.dumps(done()).encode("utf-16")),
    "marshal": frame(DONE, __import__("marshal").dumps(done())),
    "half a surrogate pair": frame(DONE, json.dumps(done()).replace('"message": ""', '"message": "\\ud800"').encode()),
    "NaN": frame(DONE, json.dumps(done(values=[float("nan")])).encode()),
    "infinite seconds": frame(DONE, json.dumps(done()).replace('"cpu": 0.0', '"cpu": 1e999').encode()),
    **{
        f"the number {name}": frame(VALUE, SPENT.pack(-1, 0, 0.0, 0) + text)
        for name, text in {
            "1e999": b"[1e999]",
            "-1E+400": b"[-1E+400]",
            "1e999 among strings": b'["1e5",1e999]',
            "1E+0999": b"[1E+0999]",
            "of 400 digits and a fraction": b"[" + b"9" * 400 + b".0]",
            "2 to the power of 63": b"[9223372036854775808]",
            "below 64 bits": b"[-9223372036854775809]",
            "of 30 digits": b"[" + b"7" * 30 + b"]",
            "of 4,300 digits": b"[" + b"7" * 4300 + b"]",
            "of 5,000 digits": b"[" + b"7" * 5000 + b"]",
            "of 200,000 digits": b"[" + b"7" * 200_000 + b"]",
            "1e999 in a large value": b"[" + b"1.5," * 50_000 + b"1e999]",
            "of 30 digits in a large value": b"[" + b"1.5," * 50_000 + b"7" * 30 + b"]",
        }.items()
    },
    "a call with the number 1e999": frame(CALLS, b'[[1,"tools.echo",[{"value":1e999}]]]'),
    "a call with an integer of 4,300 digits": frame(CALLS, b'[[1,"tools.echo",[{"value":' + b"7" * 4300 + b"}]]]"),
    "trailing text": frame(DONE, json.dumps(done()).encode() + b"x"),
    "an array as end": frame(DONE, b"[]"),
    "text as end": frame(DONE, b'"ok"'),
    **{f"end without {key}": frame(DONE, without(key)) for key in done()},
    "unknown kind": ended(kind="fine"),
    "kind of a record": ended(kind="crashed"),
    "unknown limit": ended(kind="stop", limit="patience"),
    "kind is a number": ended(kind=1),
    "message is null": ended(message=None),
    "values is a table": ended(values={}),
    "values is text": ended(values="abc"),
    "frames is text": ended(frames="abc"),
    "frames of one": ended(frames=[["script"]]),
    "frames with a line of text": ended(frames=[["script", "1", "f"]]),
    "frames with a huge line": ended(frames=[["script", 10**30, "f"]]),
    "extra is a list": ended(extra=[]),
    "memory is a float": ended(memory=1.5),
    "memory is huge": ended(memory=10**40),
    "memory is negative": ended(memory=-1),
    "memory is true": ended(memory=True),
    "cut is huge": ended(cut=2**63),
    "cpu is negative": ended(cpu=-1.0),
    "operations is text": ended(operations="many"),
    "operations is huge": ended(operations=2**80),
    "nested in 500 levels": ended(values=json.loads("[" * 500 + "]" * 500)),
    "nested in 100,000 levels": frame(DONE, b'{"values":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "opened 100,000 times": frame(DONE, b"[" * 100_000),
    "nested marks": frame(
        DONE, json.dumps(done()).replace("[42]", '[{"\\u0001m":[[1,' * 300 + "1" + "]]}]" * 300).encode()
    ),
    "bytes that are none": ended(values=[{SPECIAL + "b": 5}]),
    "bytes beyond 255": ended(values=[{SPECIAL + "b": "\u0100"}]),
    "an unknown mark": ended(values=[{SPECIAL + "x": 1}]),
    "pairs that are none": ended(values=[{SPECIAL + "m": {"ab": 1}}]),
    "pairs of text": ended(values=[{SPECIAL + "m": ["ab", "cd"]}]),
    "pairs of three": ended(values=[{SPECIAL + "m": [[1, 2, 3]]}]),
    "a key that is a list": ended(values=[{SPECIAL + "m": [[[1], 2]]}]),
    "keys that all have one hash": ended(values=[{SPECIAL + "m": [[k * (2**61 - 1), 1] for k in range(20_000)]}]),
    "a key beyond 64 bits": ended(values=[{SPECIAL + "m": [[2**63, 1]]}]),
    "a key that is true": ended(values=[{SPECIAL + "m": [[True, 2]]}]),
    "rows that are none": ended(values=[{SPECIAL + "t": 1}]),
    "rows without columns": ended(values=[{SPECIAL + "t": [["a"]]}]),
    "rows of text": ended(values=[{SPECIAL + "t": [["a"], "xyz"]}]),
    "rows with names that are none": ended(values=[{SPECIAL + "t": [[1], [2]]}]),
    "rows of unlike length": ended(values=[{SPECIAL + "t": [["a", "b"], [1], [1, 2]]}]),
    "more names than columns": ended(values=[{SPECIAL + "t": [["a", "b"], [1]]}]),
    "values without what was spent": frame(VALUE, b"[]"),
    "values that are none": frame(VALUE, SPENT.pack(-1, 0, 0.0, 0)),
    "values that are a table": frame(VALUE, SPENT.pack(-1, 0, 0.0, 0) + b"{}"),
    "values nested in 500 levels": frame(VALUE, SPENT.pack(-1, 0, 0.0, 0) + b"[" * 500 + b"]" * 500),
    "values for less than no memory": frame(VALUE, SPENT.pack(-1, -1, 0.0, 0) + b"[]"),
    "values for less than no operations": frame(VALUE, SPENT.pack(-2, 0, 0.0, 0) + b"[]"),
    "values for less than no output": frame(VALUE, SPENT.pack(-1, 0, 0.0, -1) + b"[]"),
    "values for no time": frame(VALUE, SPENT.pack(-1, 0, float("nan"), 0) + b"[]"),
    "values for endless time": frame(VALUE, SPENT.pack(-1, 0, float("inf"), 0) + b"[]"),
    "no calls": calls(),
    "calls are a table": frame(CALLS, b"{}"),
    "a call is text": calls("abc"),
    "a call of two parts": calls([1, "tools.echo"]),
    "a call with arguments by name": calls([1, "tools.echo", {}]),
    "a call with a target that is a number": calls([1, 2, []]),
    "a call with an id of text": calls(["1", "tools.echo", []]),
    "a call with the id true": calls([True, "tools.echo", []]),
    "a call with a huge id": calls([10**30, "tools.echo", []]),
    "a call with the id 0": calls([0, "tools.echo", []]),
    "two calls with one id": calls([1, "tools.echo", []], [1, "tools.echo", []]),
    "calls with falling ids": calls([5, "tools.echo", []], [4, "tools.echo", []]),
    "a target of megabytes": calls([1, "tools." + "x" * 1_000_000, []]),
    "20,000 calls at once": calls(*([n, "tools.echo", []] for n in range(1, 20_001))),
    "a cancellation of text": frame(CANCEL, b'"abc"'),
    "a cancellation of floats": frame(CANCEL, b"[1.5]"),
    "a cancellation of nulls": frame(CANCEL, b"[null]"),
    "output above the limit": frame(OUTPUT, b"x" * 1001),
    "output above the limit in parts": frame(OUTPUT, b"x" * 600) * 2,
    "empty output": frame(OUTPUT, b""),
    "more elements than memory could hold": frame(DONE, json.dumps(done(values=[0] * 300_000)).encode()),
    "more rows than memory could hold": frame(
        DONE, json.dumps(done(values=[{SPECIAL + "t": [["a"], [0] * 150_000]}])).encode()
    ),
    "an unfinished string with a million escaped quotes": frame(DONE, b'{"a":"' + b'\\",' * 1_000_000),
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_ends_the_worker_and_nothing_else(said: bytes) -> None:
    with hijacked_box(says(said), honest, tools=[echo], limits=PATIENT) as box, box.repl() as repl:
        run = repl.run("anything")
        assert run.error is not None
        assert run.error.kind == "crashed"
        assert run.state_lost
        again = repl.run("anything")
        assert (again.values, again.error, again.state_lost) == ((42,), None, False)


@pytest.mark.parametrize("said", list(NONSENSE.values())[::9], ids=list(NONSENSE)[::9])
def test_nonsense_to_asyncio(said: bytes) -> None:
    async def main() -> None:
        async with hijacked_box(says(said), honest, tools=[echo], limits=PATIENT) as box, box.repl() as repl:
            run = await repl.arun("anything")
            assert run.error is not None
            assert run.error.kind == "crashed"
            assert (await repl.arun("anything")).values == (42,)

    asyncio.run(main())


NUMBERS = {
    "the largest": (b"[9223372036854775807]", 2**63 - 1),
    "the smallest": (b"[-9223372036854775808]", -(2**63)),
    "the largest float": (b"[1.7976931348623157e+308]", 1.7976931348623157e308),
    "a tiny one": (b"[1e-400]", 0.0),
    "of a name that comes twice": (b'[{"a":1,"a":2}]', {"a": 2}),
    "many digits": (b"[0.000123456789012345678901234567890]", 0.00012345678901234568),
    "in a string": (b'["1e999 99999999999999999999999"]', "1e999 99999999999999999999999"),
    "as a key": (b'[{"99999999999999999999":"1e999"}]', {"99999999999999999999": "1e999"}),
}


@pytest.mark.parametrize(("said", "value"), NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_of_an_honest_worker(said: bytes, value: Any) -> None:
    with hijacked_box(says(frame(VALUE, SPENT.pack(-1, 0, 0.0, 0) + said)), limits=PATIENT) as box:
        assert box.run("anything").value == value


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_the_frame_behind_the_greeting_is_bounded_too(awaited: bool) -> None:
    """Both arrive together, so that they are cut from the same bytes."""

    def hijacked(peer: Peer) -> None:
        peer.wait_for(RUN)
        peer.raw(frame(READY, b"") + frame(VALUE, SPENT.pack(-1, 0, 0.0, 0) + b'["' + b"x" * 4_000_000 + b'"]'))
        peer.receive()

    limits = replace(PATIENT, max_memory=1 << 20)
    with hijacked_box(hijacked, honest, limits=limits) as box, box.repl() as repl:
        run = asyncio.run(repl.arun("anything")) if awaited else repl.run("anything")
        assert run.error is not None
        assert "announced a frame of 4,000,0" in run.error.message
        assert repl.run("anything").value == 42


def dying(peer: Peer) -> None:
    peer.send(READY, b"")
    peer.wait_for(RUN)
    peer.raw(frame(DONE, json.dumps(done()).encode())[:20])


def test_a_truncated_frame() -> None:
    with hijacked_box(dying, honest, limits=PATIENT) as box, box.repl() as repl:
        run = repl.run("anything")
        assert run.error is not None
        assert run.error.kind == "crashed"
        assert repl.run("anything", limits=PATIENT).value == 42


def endless(what: bytes) -> Callable[[Peer], None]:
    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(RUN)
        while True:
            peer.raw(what)

    return hijacked


def counting_calls(target: str) -> Callable[[Peer], None]:
    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(RUN)
        number = 0
        drain = threading.Thread(target=_drain, args=(peer,), daemon=True)
        drain.start()
        while True:
            number += 1
            peer.raw(calls([number, target, ["words"]]))

    return hijacked


def _drain(peer: Peer) -> None:
    try:
        while peer.sock.recv(1 << 16):
            pass
    except OSError:
        pass


def trickling(peer: Peer) -> None:
    pause = threading.Event()  # never set: the worker takes its time
    peer.send(READY, b"")
    peer.wait_for(RUN)
    for byte in struct.pack("<BI", DONE, 100_000) + b"[" * 100_000:
        peer.raw(bytes([byte]))
        pause.wait(0.01)


def deaf(peer: Peer) -> None:
    """Never reads a byte, and never hangs up by itself."""
    peer.send(READY, b"")
    select_until_closed(peer)


def select_until_closed(peer: Peer) -> None:
    import select

    poll = select.poll()
    poll.register(peer.sock.fileno(), 0)  # only the hang-up
    poll.poll(15_000)


def calling(target: str, then: Callable[[Peer], None]) -> Callable[[Peer], None]:
    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(RUN)
        peer.raw(calls([1, target, []]))
        then(peer)

    return hijacked


def read_for_ever(peer: Peer) -> None:
    while True:
        peer.receive()


@tool
async def big() -> str:
    """Much."""
    return "x" * 3_000_000


FLOODS = {
    "cancellations": endless(frame(CANCEL, b"[]") * 50),
    "clock": counting_calls("sys.clock"),
    "documentation": counting_calls("docs.get"),
    "calls past the budget": counting_calls("tools.echo"),
    "calls of nothing": counting_calls("nowhere.echo"),
}
UNREAD = "it calls and does not read the answer"
HOLDOUTS = {
    "a frame byte by byte": trickling,
    "it does not read": deaf,
    UNREAD: calling("tools.big", select_until_closed),
    "it ignores the stop": calling("tools.echo", read_for_ever),
}


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_floods_and_silence_end_at_the_deadline(awaited: bool) -> None:
    """All at the same time, and none of them holds up the event loop."""

    async def main() -> None:
        abuses = FLOODS | HOLDOUTS
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(abuses)))
        *_, ticks = await asyncio.gather(*(_outlast(name, one, awaited) for name, one in abuses.items()), _tick())
        assert ticks == 5

    asyncio.run(asyncio.wait_for(main(), 200))


async def _outlast(name: str, abuse: Callable[[Peer], None], awaited: bool) -> None:
    source = "-- " + "x" * 900_000  # more than a socket holds
    limits = replace(LIMITS, timeout=5.0) if name == UNREAD else LIMITS  # its call must have ended before
    async with hijacked_box(abuse, honest, tools=[echo, big], limits=limits) as box, box.repl() as repl:
        run = await (repl.arun(source) if awaited else asyncio.to_thread(repl.run, source))
        assert run.error is not None, name
        assert run.error.kind in ("limit", "crashed"), name
        assert name in FLOODS or run.error.limit == "time", name
        assert name != UNREAD or run.calls[0].status == "ok"
        assert run.state_lost, name
        assert len(run.calls) <= 50, name
        assert (await repl.arun("anything", limits=PATIENT)).value == 42, name


async def _tick() -> int:
    for _ in range(5):
        await asyncio.sleep(0.01)
    return 5


def test_a_worker_that_ends_the_run_and_does_not_read_the_answer() -> None:
    """The host must not wait for ever to have its answer taken."""

    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(RUN)
        peer.raw(calls([1, "tools.big", []], [2, "tools.signal", []]))
        assert answered.wait(60)
        peer.done()
        select_until_closed(peer)

    answered = threading.Event()

    @tool
    async def signal() -> None:
        """Let the worker end the run, once the first answer fills its socket."""
        for _ in range(10):
            await asyncio.sleep(0)
        answered.set()

    async def main() -> None:
        limits = Limits(timeout=60)
        async with hijacked_box(hijacked, honest, tools=[big, signal], limits=limits) as box, box.repl() as repl:
            run = await repl.arun("anything")
            assert (run.values, run.state_lost) == ((42,), True)
            assert (await repl.arun("anything", limits=PATIENT)).value == 42

    asyncio.run(asyncio.wait_for(main(), 120))


@pytest.mark.parametrize(
    "extra",
    [
        frame(DONE, json.dumps(done(values=["stale"])).encode()),
        frame(OUTPUT, b"stale"),
        calls([1, "tools.echo", []]),
        frame(CANCEL, b"[1]"),
        b"\x14",
    ],
    ids=["another end", "output", "a call", "a cancellation", "the beginning of a frame"],
)
def test_what_comes_after_the_end_never_reaches_the_next_run(extra: bytes) -> None:
    with hijacked_box(says(ended() + extra), honest, tools=[echo], limits=LIMITS) as box, box.repl() as repl:
        assert repl.run("anything", limits=PATIENT).values == (42,)
        again = repl.run("anything", limits=PATIENT)
        assert (again.values, again.output, again.calls) == ((42,), "", ())
        assert again.state_lost  # the worker that said too much was ended


def test_a_flood_between_runs() -> None:
    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(RUN)
        peer.done()
        while True:
            peer.raw(frame(OUTPUT, b"x" * 1000) * 50)
            flooding.set()

    flooding = threading.Event()
    with hijacked_box(hijacked, honest, limits=LIMITS) as box, box.repl() as repl:
        assert repl.run("anything", limits=PATIENT).value == 42
        assert flooding.wait(60)
        assert repl.run("anything", limits=PATIENT).value == 42


def test_globals_of_a_hijacked_worker() -> None:
    from moonbox.errors import WorkerError

    for said in (b"[1]", b'[["a"]]', b"{}", b'"abc"', b"[[[]]]", b"", b"[" * 5000, b'[["\\ud800", "x"]]'):

        def hijacked(peer: Peer, said: bytes = said) -> None:
            peer.send(READY, b"")
            peer.wait_for(protocol.GLOBALS)
            peer.raw(frame(DEFINED, said))
            peer.receive()

        with hijacked_box(hijacked, honest, limits=LIMITS) as box, box.repl() as repl:
            try:
                found = repl.globals()
            except WorkerError:
                found = {}
            assert found == {}
            assert repl.run("anything", limits=PATIENT).value == 42


def test_many_names_and_frames_are_cut() -> None:
    said = ended(
        kind="runtime",
        message="script:1: attempt to call a nil value (global 'x')",
        frames=[["script", 1, "f" * 10_000]] * 1000,
        extra={"names": ["name"] * 20_000 + [5, None, "x" * 1_000_000]},
    )
    with hijacked_box(says(said), limits=Limits(timeout=5)) as box, box.repl() as repl:
        run = repl.run("x()")
        assert run.error is not None
        assert run.error.kind == "runtime"
        assert len(str(run.error.to_dict())) < 500_000


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc to measure memory")
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(lambda size: b'{"values":[' + b"[]," * (size // 3) + b"[]]}", id="empty arrays"),
        pytest.param(lambda size: b'{"values":[' + b"{}," * (size // 3) + b"{}]}", id="empty tables"),
        pytest.param(lambda size: b'{"values":[' + b"0.1," * (size // 4) + b"1]}", id="numbers"),
        pytest.param(
            lambda size: b'{"values":[{"\\u0001t":[["a"],[' + b"1," * (size // 2) + b"1]]}]}", id="rows of a number"
        ),
        pytest.param(lambda size: b'{"values":[{"\\u0001t":[["a"],"' + b"x" * size + b'"]}]}', id="rows of text"),
        pytest.param(lambda size: b'{"values":["' + b"\\u0001" * (size // 6) + b'"]}', id="escapes"),
        pytest.param(lambda size: b'{"values":"' + b'\\",[' * (size // 4), id="an unfinished string"),
        pytest.param(lambda size: b"[" * size, id="brackets"),
    ],
)
def test_memory_of_the_host_stays_bounded(payload: Callable[[int], bytes]) -> None:
    limits = Limits(timeout=20, max_memory=16_000_000, max_array=10_000_000)
    said = frame(DONE, payload(limits.max_memory))

    with hijacked_box(says(said), honest, limits=limits) as box, box.repl() as repl:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = _memory("VmRSS")
        run = repl.run("anything")
        assert run.error is not None
        assert run.error.kind == "crashed"
        assert _memory("VmHWM") - before < limits.max_memory * 10


def test_arguments_without_end_are_not_kept() -> None:
    """Fifty calls with all the memory a script may have would make the record fifty times as large."""

    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(RUN)
        threading.Thread(target=_drain, args=(peer,), daemon=True).start()
        for number in range(1, 50):
            peer.raw(calls([number, "tools.echo", [{"value": "x" * 3_000_000}]]))
        select_until_closed(peer)

    limits = Limits(timeout=10, max_memory=4_000_000)
    with hijacked_box(hijacked, honest, tools=[echo], limits=limits) as box, box.repl() as repl:
        run = repl.run("anything")
        assert run.error is not None
        assert run.error.kind == "crashed"
        assert len(run.calls) <= 6
        assert repl.run("anything", limits=PATIENT).value == 42


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)
