"""Stops of runs, as a worker takes them from its zygote: in Lua, in coroutines, in Python, and before a run."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from moonbox import Limits
from moonbox.native import SWITCH
from moonbox.worker import protocol
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.worker.link import Link

if os.name != "posix":
    pytest.skip("workers are processes", allow_module_level=True)

CANCELLED = protocol.REASON_CANCELLED
ENDLESS = {
    "loop": "while true do end",
    "protected": "while true do pcall(function() while true do end end) end",
    "coroutine": "coroutine.wrap(function() coroutine.wrap(function() while true do end end)() end)()",
    "switching": "local c = coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end",
    "new coroutines": "while true do coroutine.wrap(function() coroutine.yield() end)() end",
    "printing": "while true do print('more') end",
    "allocating": "while true do local t = {} for i = 1, 100 do t[i] = {i} end end",
    "in Python": "while true do json.decode('[1, 2, {\"a\": 3}]') end",
    "sorting": "local t = {} for i = 1, 9 do t[i] = i end while true do table.sort(t, function() return false end) end",
}


@pytest.fixture(scope="module", params=["1", "0"], ids=["native", "python"])
def source(request: pytest.FixtureRequest) -> Iterator[ProcessSource]:
    """Its zygote is started by a thread that blocks signals, which child processes inherit."""
    limits = {**Limits(max_output=1 << 40).to_dict(), "allow_nan": False}
    environment = {"tools": [], "functions": [], "values": [], "features": ["coroutines"], "runtime": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, request.param)
        source = ProcessSource({"limits": limits, "environment": environment})
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        source.begin()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    yield source
    source.close()


@pytest.fixture
def link(source: ProcessSource) -> Iterator[Link]:
    link = source.spawn()
    link.wait_until_ready(time.monotonic() + 60)
    yield link
    link.close()


def next_frame(link: Link) -> tuple[int, bytes]:
    frame = link.receive(time.monotonic() + 60)
    assert frame is not None
    return frame


def start(link: Link, number: int, script: str) -> None:
    """Run it, and wait until it has begun."""
    link.send(protocol.pack_run(b"print('begun') " + script.encode(), number, 1))
    assert next_frame(link) == (protocol.OUTPUT, b"begun\n")


def end_of_run(link: Link) -> tuple[str, str]:
    while True:
        kind, payload = next_frame(link)
        if kind == protocol.DONE:
            done = json.loads(payload)
            return done["kind"], done["limit"] or done["message"]
        if kind == protocol.VALUE:
            return "ok", ""


@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
def test_one_run_after_another_is_stopped_and_the_worker_lives(link: Link, script: str) -> None:
    for number in range(1, 21):
        start(link, number, script)
        link.interrupt(number, CANCELLED)
        assert end_of_run(link) == ("stop", "cancelled")
    link.send(protocol.pack_run(b"return 1", 21, 1))
    assert end_of_run(link) == ("ok", "")


@pytest.mark.parametrize("frozen", [False, True])
def test_many_stops_of_one_run(link: Link, frozen: bool) -> None:
    """Those for a frozen worker are queued, as far as the system has room for them; the rest is dropped."""
    start(link, 1, ENDLESS["switching"])
    if frozen:
        assert link.freeze_idle(math.inf)
    for _ in range(5000 if frozen else 200):
        link.interrupt(1, CANCELLED)
    with link:
        assert end_of_run(link) == ("stop", "cancelled")
    link.send(protocol.pack_run(b"return 1", 2, 1))
    assert end_of_run(link) == ("ok", "")


def test_stops_of_other_runs_stop_nothing(link: Link) -> None:
    start(link, 5, "local t = 0 for i = 1, 3000000 do t = t + i end return t")
    for number in (1, 4, 6, 1000):
        link.interrupt(number, CANCELLED)
    assert end_of_run(link) == ("ok", "")


def test_a_stop_that_comes_before_its_run(link: Link) -> None:
    start(link, 1, ENDLESS["loop"])
    link.interrupt(1, CANCELLED)
    link.interrupt(2, CANCELLED)
    assert end_of_run(link) == ("stop", "cancelled")
    link.send(protocol.pack_run(b"while true do end", 2, 1))
    assert end_of_run(link) == ("stop", "cancelled")


def test_what_was_printed_arrives_although_nothing_stops_the_script(link: Link) -> None:
    for number in range(1, 1000):
        # What is printed right after the first line waits for more of it, or for the end of the run.
        start(link, number, "print('last words') return (('a'):rep(50)):find(('a-'):rep(20) .. 'b')")
        time.sleep(number / 1000)  # every stop comes a little later
        link.interrupt(number, CANCELLED)
        kind, payload = next_frame(link)
        if kind == protocol.OUTPUT:
            assert payload == b"last words\n"
            return
        assert kind == protocol.DONE  # the stop came before it had printed that
    raise AssertionError("no run was stopped after it had printed something")
