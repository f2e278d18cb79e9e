"""The pool: checkouts, spares, limits, and a source of workers that fails."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ClosedError, PoolTimeout, WorkerError
from moonbox.worker.control import SocketControl, socket_pairs
from moonbox.worker.link import Gone, Link, Unread
from moonbox.worker.pool import Pool
from moonbox.worker.protocol import READY, frame
from tests.waiting import wait_until

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator


class Source:
    """Workers that are bare sockets."""

    def __init__(self) -> None:
        self.spawned = 0
        self.failing = 0
        self.closed = False
        self.theirs: list[socket.socket] = []
        self.links: list[Link] = []
        self._lock = threading.Lock()

    def spawn(self) -> Link:
        with self._lock:
            if self.failing:
                self.failing -= 1
                raise WorkerError("no worker today")
            main, control, theirs, theirs_control = socket_pairs()
            self.theirs += [theirs, theirs_control]
            self.spawned += 1
        theirs.sendall(frame(READY, b""))
        link = Link(main, SocketControl(control))
        self.links.append(link)
        return link

    def configure(self, config: dict[str, Any]) -> None:
        raise AssertionError("only a Sandbox configures its source")

    def close(self) -> None:
        self.closed = True
        for end in self.theirs:
            end.close()


@pytest.fixture
def source() -> Iterator[Source]:
    source = Source()
    yield source
    source.close()


def test_workers_are_made_when_needed_and_not_used_twice(source: Source) -> None:
    pool = Pool(source, spares=0, most=3)
    first, second = pool.checkout(1), pool.checkout(1)
    assert first is not second
    pool.discard(first)
    assert first.closed
    assert pool.checkout(1) not in (first, second)
    assert source.spawned == 3
    pool.close()
    assert source.closed
    assert second.closed


def test_spares(source: Source) -> None:
    pool = Pool(source, spares=2, most=10)
    assert source.spawned == 0
    pool.warm()
    wait_until(lambda: source.spawned == 2, "no worker was started")
    link = pool.try_spare()
    assert link is not None
    wait_until(lambda: source.spawned == 3, "no worker was started")
    pool.close()


def test_a_retired_worker_ends_soon(source: Source) -> None:
    pool = Pool(source, spares=1, most=10)
    link = pool.checkout(1)
    pool.retire(link)
    wait_until(lambda: link.closed, "the worker lives on")
    wait_until(lambda: pool.counts().in_use == 0, "the counts do not settle")
    wait_until(lambda: pool.counts().live == pool.counts().spare == 1, "the counts do not settle")
    pool.close()


def test_retired_workers_make_room_at_once(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moonbox.worker.pool.SPAWN_DELAY", 0.5)  # they would not end by themselves before that
    pool = Pool(source, spares=1, most=3)
    retired, kept = pool.checkout(1), pool.checkout(1)
    wait_until(lambda: pool.counts().spare > 0, "no spare")
    pool.retire(retired)
    assert retired.closed  # there was no room for it
    pool.retire(kept)
    closed_before = kept.closed
    links = [pool.checkout(0.2) for _ in range(3)]
    assert (closed_before, kept.closed) == (False, True)
    assert pool.counts().live == 3
    for link in links:
        pool.retire(link)
    pool.close()
    assert all(link.closed for link in links)


def test_never_more_than_the_most(source: Source) -> None:
    """However many threads and tasks wait for them."""
    pool = Pool(source, spares=1, most=3)

    def blocking() -> None:
        for _ in range(20):
            link = pool.checkout(20)
            assert pool.counts().in_use <= 3
            pool.discard(link)

    async def awaited() -> None:
        for _ in range(10):
            link = await pool.acheckout(20)
            assert pool.counts().in_use <= 3
            await asyncio.sleep(0)
            pool.discard(link)

    async def main() -> None:
        threads = [asyncio.to_thread(blocking) for _ in range(5)]
        await asyncio.gather(*threads, *(awaited() for _ in range(5)))

    asyncio.run(main())
    assert (pool.counts().in_use, pool.counts().live <= 3) == (0, True)
    pool.close()


def futures() -> int:
    gc.collect()
    return sum(isinstance(thing, Future) for thing in gc.get_objects())


def test_checkouts_that_need_not_wait_or_stop_waiting_leave_nothing_behind(source: Source) -> None:
    pool = Pool(source, spares=0, most=20)
    before = futures()

    async def main() -> None:
        for _ in range(20):
            await pool.acheckout(20)
        for _ in range(20):
            with pytest.raises(PoolTimeout):
                await pool.acheckout(0.0)

    asyncio.run(main())
    assert futures() == before
    pool.close()


def test_timeouts(source: Source) -> None:
    pool = Pool(source, spares=0, most=1)
    link = pool.checkout(1)
    message = (
        r"all 1 workers are in use and none became free within 0\.05 s; close a Repl, or raise Sandbox\(max_workers=…\)"
    )
    with pytest.raises(PoolTimeout, match=message):
        pool.checkout(0.05)
    with pytest.raises(PoolTimeout, match=message):
        asyncio.run(pool.acheckout(0.05))
    assert isinstance(PoolTimeout("x"), TimeoutError)
    pool.discard(link)
    assert pool.checkout(1) is not link
    pool.close()


def test_a_worker_that_cannot_be_made_leaves_room(source: Source) -> None:
    pool = Pool(source, spares=0, most=1)
    source.failing = 3
    for _ in range(2):
        with pytest.raises(WorkerError, match="no worker today"):
            pool.checkout(1)
    with pytest.raises(WorkerError, match="no worker today"):
        asyncio.run(pool.acheckout(1))
    assert pool.checkout(1) is not None
    pool.close()


def test_spares_that_cannot_be_made_are_tried_again(source: Source) -> None:
    pool = Pool(source, spares=1, most=5)
    source.failing = 1
    pool.warm()
    wait_until(lambda: source.spawned == 1, "no worker was started")
    assert pool.checkout(1).alive()
    pool.close()


def test_dead_spares_are_replaced(source: Source) -> None:
    pool = Pool(source, spares=1, most=2)
    pool.warm()
    wait_until(lambda: source.spawned == 1, "no worker was started")
    for end in source.theirs:
        end.close()
    link = pool.checkout(5)
    assert link.alive()
    pool.close()


def test_closing(source: Source) -> None:
    pool = Pool(source, spares=1, most=1)
    link = pool.checkout(1)
    problems: list[str] = []

    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        try:
            pool.checkout(20)
        except ClosedError as problem:
            problems.append(str(problem))

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(60)
    pool.close()
    thread.join(60)
    assert problems == ["the Sandbox is closed"]
    assert link.closed
    for use in (lambda: pool.checkout(1), pool.try_spare, pool.try_checkout):
        with pytest.raises(ClosedError):
            use()
    pool.discard(link)
    pool.close()


# Links


def soon() -> float:
    return time.monotonic() + 60


@pytest.fixture
def ends() -> Iterator[tuple[Link, socket.socket, socket.socket]]:
    main, control, theirs, theirs_control = socket_pairs()
    link = Link(main, SocketControl(control))
    yield link, theirs, theirs_control
    link.close()
    theirs.close()
    theirs_control.close()


def test_who_waits_can_be_woken(ends: Any) -> None:
    link, theirs, _ = ends
    theirs.sendall(frame(READY, b""))
    link.wake()  # nobody has asked for it
    link.let_wake()
    link.let_wake()
    for _ in range(1000):  # more than its socket holds: nobody is held up
        link.wake()
    assert link.receive() is None
    theirs.sendall(frame(20, b"x"))
    assert link.receive(soon()) == (20, b"x")
    assert link.alive()
    link.close()
    link.wake()
    link.let_wake()


def test_alive(ends: Any) -> None:
    link, theirs, _ = ends
    assert link.alive()
    theirs.sendall(frame(READY, b"")[:3])
    assert link.alive()
    theirs.sendall(frame(READY, b"")[3:])
    assert link.alive()
    assert link.greeting == b""
    theirs.close()
    assert not link.alive()


@pytest.mark.parametrize("extra", [frame(READY, b"again"), b"x", frame(20, b"")])
def test_a_worker_that_says_more_than_its_greeting_unasked(extra: bytes, ends: Any) -> None:
    link, theirs, _ = ends
    theirs.sendall(frame(READY, b"layers") + extra)
    assert not link.alive()


def test_hanging_up_wakes_a_sender_and_a_receiver(ends: Any) -> None:
    link, _, _ = ends
    problems: list[str] = []
    entered = threading.Semaphore(0)
    number = link.fileno()

    def use(action: Any) -> None:
        try:
            with link:
                entered.release()
                action()
        except WorkerError as problem:
            problems.append(str(problem))

    threads = [
        threading.Thread(target=use, args=(lambda: link.send(b"x" * 5_000_000),)),
        threading.Thread(target=use, args=(lambda: link.receive(None),)),
    ]
    for thread in threads:
        thread.start()
        assert entered.acquire(timeout=60)
    link.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert problems == ["the worker is gone", "the worker is gone"]
    assert (number >= 0, link.fileno()) == (True, -1)


def test_a_closed_link_cannot_be_used(ends: Any) -> None:
    link, _, _ = ends
    link.close()
    link.close()
    with pytest.raises(WorkerError, match="the worker is gone"), link:
        pass
    link.interrupt(1, 1)
    assert not link.alive()


def test_an_exchange_sends_and_takes_the_next_frame(ends: Any) -> None:
    link, theirs, _ = ends
    theirs.sendall(frame(READY, b"layers") + frame(20, b"one") + frame(20, b"two") + frame(20, b"three")[:4])
    assert link.exchange(b"asked", soon(), soon()) == (20, b"one")
    assert theirs.recv(100) == b"asked"
    assert link.exchange(b"", soon(), soon()) == (20, b"two")
    theirs.sendall(frame(20, b"three")[4:])
    assert link.exchange(b"again", soon(), soon()) == (20, b"three")
    assert (theirs.recv(100), link.greeting) == (b"again", b"layers")
    assert link.exchange(b"", time.monotonic(), time.monotonic()) is None
    large = frame(20, bytes(300_000))
    sender = threading.Thread(target=theirs.sendall, args=(large,))
    sender.start()
    assert link.exchange(b"", soon(), soon()) == (20, bytes(300_000))
    sender.join()


def test_an_exchange_ends_with_its_worker(ends: Any) -> None:
    link, theirs, _ = ends
    link.exchange(b"asked", time.monotonic(), time.monotonic())
    theirs.close()
    for data in (b"", b"more"):
        with pytest.raises(Gone):
            link.exchange(data, soon(), soon())


def test_an_exchange_with_a_worker_that_does_not_read_ends(ends: Any) -> None:
    link, theirs, _ = ends
    with pytest.raises(Unread):
        link.exchange(bytes(10_000_000), time.monotonic(), time.monotonic())
    assert theirs.recv(1) == b"\0"


def test_an_exchange_can_be_woken(ends: Any) -> None:
    link, theirs, _ = ends
    link.let_wake()
    link.wake()
    assert link.exchange(b"asked", None, None) is None
    assert theirs.recv(100) == b"asked"
