"""Attacks on a person's time: a script that computes while somebody decides about one of its calls."""

from __future__ import annotations

import asyncio
import sys
import threading
from time import process_time
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Run, Sandbox, ToolCall, tool
from moonbox.worker.protocol import CALLS, READY, RUN
from tests.long import LONG

from .hijacked import hijacked_box

if TYPE_CHECKING:
    from .hijacked import Peer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a worker's processor time")

LIMITS = Limits(timeout=0.8)  # a busy machine may need some of it until the question is asked
BUSY = "parallel{ function() return tools.pay(1) end, function() tools.quick() while true do end end }"
MANY = 60.0


@tool(policy="approve")
def pay(amount: int) -> int:
    """Pay."""
    return amount


@tool
def quick() -> int:
    """Answer at once."""
    return 1


class Person:
    """Decides when the run is over, which must not wait for them."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked = threading.Event()
        self.left_alone = False

    def __call__(self, call: ToolCall) -> bool:
        self.asked.set()
        self.left_alone = not self.over.wait(MANY)
        return True

    async def think(self, call: ToolCall) -> bool:
        self.asked.set()
        await asyncio.sleep(MANY)
        self.left_alone = True
        return True


def assert_stopped(run: Run, person: Person) -> None:
    assert person.asked.is_set()
    assert not person.left_alone
    assert run.error is not None
    assert (run.error.kind, run.error.limit) == ("limit", "time")


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_loop_beside_a_question(isolation: Any) -> None:
    person = Person()
    with Sandbox([pay, quick], approve=person, limits=LIMITS, isolation=isolation) as box:
        run = box.run(BUSY)
        person.over.set()
    assert_stopped(run, person)


@pytest.mark.parametrize("isolation", ["process", "inline"] if LONG else ["process"])
def test_a_loop_beside_a_question_awaited(isolation: Any) -> None:
    person = Person()

    async def main() -> Run:
        async with Sandbox([pay, quick], approve=person.think, limits=LIMITS, isolation=isolation) as box:
            return await box.arun(BUSY)

    assert_stopped(asyncio.run(main()), person)


def computing(peer: Peer) -> None:
    """A worker that asks for approval and does not wait for the answer."""
    peer.send(READY, b"")
    peer.wait_for(RUN)
    peer.send(CALLS, [[1, "tools.pay", [{"amount": 1}]]])
    peer.sock.setblocking(False)
    while True:
        try:
            if not peer.sock.recv(1 << 16):
                return
        except BlockingIOError:
            pass


@pytest.mark.parametrize("way", ["run", "arun"])
def test_a_hijacked_worker_beside_a_question(way: str) -> None:
    person = Person()

    async def arun() -> Run:
        async with hijacked_box(computing, tools=[pay], approve=person.think, limits=LIMITS) as box:
            return await box.arun("anything")

    if way == "arun":
        run = asyncio.run(arun())
    else:
        with hijacked_box(computing, tools=[pay], approve=person, limits=LIMITS) as box:
            run = box.run("anything")
            person.over.set()
    assert_stopped(run, person)


def test_a_hijacked_worker_during_a_pause() -> None:
    """Step by step nobody looks at the worker while the caller thinks; what it computed is on the run's account."""
    timeout = 0.4
    with hijacked_box(computing, tools=[pay], limits=Limits(timeout=timeout)) as box, box.repl() as repl:
        pause = repl.start("anything")
        assert not isinstance(pause, Run)
        moment, before = threading.Event(), process_time()
        while process_time() < before + 2 * timeout:
            moment.wait(0.01)  # nothing else computes in this process
        run = pause.resume([1])
        assert isinstance(run, Run)
        assert run.error is not None
        assert run.error.limit == "time"


@pytest.mark.parametrize("way", ["run", "arun"])
def test_a_worker_that_waits_has_all_the_time(way: str) -> None:
    """The person takes longer than the timeout, and the script only waits for them."""
    waited = threading.Event()

    async def think(call: ToolCall) -> bool:
        await asyncio.sleep(2 * LIMITS.timeout)  # type: ignore[operator]  # it is not None
        return True

    def decide(call: ToolCall) -> bool:
        waited.wait(2 * LIMITS.timeout)  # type: ignore[operator]
        return True

    async def arun() -> Run:
        async with Sandbox([pay], approve=think, limits=LIMITS) as box:
            return await box.arun("return tools.pay(5)")

    if way == "arun":
        run = asyncio.run(arun())
    else:
        with Sandbox([pay], approve=decide, limits=LIMITS) as box:
            run = box.run("return tools.pay(5)")
    assert run.value == 5
