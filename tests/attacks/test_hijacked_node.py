"""A hijacked node answers orders with what it likes: too long, too deep, empty, of other types, cut off, slowly.

The front end leaves such a node with `HostLost`, and nothing else happens. The messages are generated.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct, msgpack

from moonbox._version import __version__
from moonbox.cluster import wire
from moonbox.cluster.ray_messages import (
    FrontEndReport,
    NodeAddress,
    NodeProblem,
    NodesChanged,
    RayAnswer,
    RayFailure,
    RayProcessMessage,
    RayRefused,
    ToolOutcome,
)
from moonbox.cluster.source import HostConnection
from moonbox.cluster.wire import HostLost, HostStatus, SpawnAnswer, SpawnFailed, WorkerEnded, WorkerSpawned
from moonbox.worker.sources import exactly
from tests.long import times

if TYPE_CHECKING:
    from collections.abc import Iterator

HONEST: list[tuple[Any, Any]] = [
    (HostStatus, HostStatus(3, 400, 1 << 33, __version__)),
    (SpawnAnswer, WorkerSpawned(4711, 1, native=True)),
    (SpawnAnswer, SpawnFailed("no")),
    (WorkerEnded, WorkerEnded("SIGKILL")),
    (RayProcessMessage, NodesChanged([NodeAddress("n", "::1", 9, b"t" * 32)], [NodeProblem("m", "no")], 0)),
    (RayProcessMessage, RayAnswer(1, b"\x80")),
    (RayProcessMessage, RayFailure(1, "no")),
    (RayProcessMessage, RayRefused("no")),
    (ToolOutcome, ToolOutcome(b"1", [], None)),
    (FrontEndReport, FrontEndReport("a:1", {"repls": {"awake": 1.0}})),
]
DEEP = 60_000
VALUES: list[Any] = [None, -1, 2**64 - 1, 1.5, float("nan"), "", "x" * 60_000, b"", [], {}, [[]], {"": 0}, True, {1: 2}]
HOSTILE = {
    "nothing": b"",
    "an empty list": b"\x90",
    "an empty map": b"\x80",
    "nil": b"\xc0",
    "deep lists": b"\x91" * DEEP,
    "deep maps": b"\x81\xa1a" * (DEEP // 3),
    "deep within the fields": b"\x95\xaaHostStatus" + b"\x91" * DEEP,
    "deep after the fields": msgpack.encode(HONEST[0][1])[:-1] + b"\x91" * DEEP,
    "no text": b"\x92\xabSpawnFailed\xa2\xff\xfe",
    "a list that has less than it says": b"\xdd\xff\xff\xff\xff",
    "a map that has less than it says": b"\xdf\xff\xff\xff\xff",
    "bytes that are fewer than they say": b"\xc6\xff\xff\xff\xff",
    "an extension": b"\xc7\x04\x05abcd",
    "two messages in one": msgpack.encode(HONEST[0][1]) * 2,
}


def mistyped(message: Any) -> Iterator[bytes]:
    """The message with every field of another type, one too few, one too many, and another tag."""
    fields = msgpack.decode(msgpack.encode(message))
    yield msgpack.encode(fields[:-1])
    yield msgpack.encode([*fields, 1])
    yield msgpack.encode(dict(enumerate(fields)))
    for place in range(len(fields)):
        for value in VALUES:
            yield msgpack.encode([*fields[:place], value, *fields[place + 1 :]])


def mutated(message: Any, source: random.Random) -> bytes:
    """The message with bytes changed, taken out and put in."""
    data = bytearray(msgpack.encode(message))
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(data) + 1)
        data[place : place + source.randint(0, 2)] = source.randbytes(source.randint(0, 2))
    return bytes(data)


@pytest.mark.parametrize(("kind", "message"), HONEST, ids=lambda value: type(value).__name__)
def test_a_message_is_of_its_types_or_refused(kind: Any, message: Any) -> None:
    source = random.Random(3)
    assert wire.decoded(msgpack.encode(message), kind) == message
    for data in HOSTILE.values():
        with pytest.raises(OSError, match="a message cannot be read: "):
            wire.decoded(data, kind)
    refused = 0
    for data in [*mistyped(message), *(mutated(message, source) for _ in range(times(4_000)))]:
        try:
            found = wire.decoded(data, kind)
        except OSError:
            refused += 1
        else:  # by chance it is another message of that type
            assert msgpack.decode(msgpack.encode(found), type=kind) == found or b"\xcb" in data
            assert isinstance(found, Struct)
    assert refused > 100


class FakeHost:
    """Answers heartbeats; what it answers to orders is `answer`, as it stands."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        for serve in (self._beat, self._lie, self._lie):
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    def _beat(self, sock: socket.socket) -> None:
        try:
            with sock:
                exactly(sock, wire.GREETING.size)
                while True:
                    wire.receive(sock, wire.Order, wire.LONGEST_ORDER)
                    wire.send(sock, HONEST[0][1])
        except OSError:
            pass

    def _lie(self, sock: socket.socket) -> None:
        try:
            with sock:
                exactly(sock, wire.GREETING.size)
                wire.receive(sock, wire.Order, wire.LONGEST_ORDER)
                sock.sendall(self._answer)
                sock.recv(1)  # until the front end hangs up
        except OSError:
            pass

    def close(self) -> None:
        self._listener.close()


def framed(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


ANSWERS = {name: framed(data) for name, data in HOSTILE.items()} | {
    "60 MB of empty maps": framed(b"\xdd" + struct.pack("!I", 60_000_000) + b"\x80" * 60_000_000),
    "a length of 4 GB": b"\xff" * 4,
    "the answer to another order": framed(msgpack.encode(HONEST[3][1])),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_front_end_leaves_a_node_that_lies(name: str) -> None:
    before = peak()
    with closing(FakeHost(ANSWERS[name])) as host:
        connection = HostConnection("abcdefgh", host.address, bytes(wire.TOKEN_SIZE), 60)
        with pytest.raises(HostLost, match=r"^the host of node abcdefgh does not answer: a message "):
            connection.refresh()
        assert connection.lost
    assert peak() - before < 20_000  # kB


def test_an_answer_that_never_ends_is_lost_with_its_heartbeats() -> None:
    """A host that trickles its heartbeat, a byte now and then, has no more time for it than others."""
    near, far = socket.socketpair()
    with near, far:
        far.sendall(framed(msgpack.encode(HONEST[0][1]))[:-3])
        with pytest.raises(TimeoutError):
            wire.receive(near, HostStatus, wire.LONGEST_ANSWER, 0.2)


def peak() -> int:
    """The most memory that this process has had, in kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
