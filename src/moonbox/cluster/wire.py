"""What a front end says to the hosts of nodes over TCP, and they to it: typed messages in MessagePack.

A host gets a greeting first. Each side takes a message only within its bound of bytes, and decodes it into the types
that it expects next.
"""

from __future__ import annotations

import socket
import struct
from time import monotonic
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, msgpack

from moonbox.errors import WorkerError
from moonbox.worker.sources import exactly

TOKEN_SIZE = 32
NAME_SIZE = 16
CONTROL, WORKER = b"C", b"W"
"""Kinds of connections: one for orders (or for heartbeats), and one for each worker."""
GREETING = struct.Struct(f"{TOKEN_SIZE}sc{NAME_SIZE}s")
"""The token, the kind and the name of a connection."""
LONGEST_ORDER = 1 << 26
"""Bytes of an order; the configuration of workers names every tool."""
LONGEST_ANSWER = 1 << 16
"""Bytes of what a host answers."""
_LENGTH = struct.Struct("!I")
_IDLE_SECONDS, _PROBE_SECONDS, _PROBES = 5, 3, 3
Count = Annotated[int, Meta(ge=0, le=2**62)]
Line = Annotated[str, Meta(max_length=4_000)]
Name = Annotated[str, Meta(max_length=200)]


class HostLost(WorkerError):
    """The host of a node does not answer: its process, its machine, or the network between has failed."""


class Message(Struct, tag=True, array_like=True, forbid_unknown_fields=True):
    """A message of either side."""


# To the host of a node, and back


class SpawnOrder(Message):
    """Start a worker on the connection of that name. The configuration is needed once for each zygote."""

    digest: bytes
    name: bytes
    config: bytes | None
    """As MessagePack."""


class KillOrder(Message):
    """End a worker, and say how it had ended."""

    worker: int


class StatusOrder(Message):
    """Say how many workers there are; also the heartbeat."""


class ActOrder(Message):
    """Do something to a worker; there is no answer."""

    action: Literal["interrupt", "freeze", "thaw", "release"]
    worker: int
    details: list[int]


Order = SpawnOrder | KillOrder | StatusOrder | ActOrder


class HostStatus(Message):
    """How many workers a node has, and how many more fit."""

    workers: Count
    room: Count
    free_memory: Count
    version: Annotated[str, Meta(max_length=100)]


class WorkerSpawned(Message):
    """A worker has started."""

    pid: Annotated[int, Meta(ge=1, le=2**31)]
    worker: Count
    native: bool


class ConfigUnknown(Message):
    """The host has no zygote of that configuration."""


class NodeFull(Message):
    """The node has no room for another worker."""


class SpawnFailed(Message):
    """Why no worker could be started."""

    message: Line


class WorkerEnded(Message):
    """How it had ended in words, which are empty where its zygote is gone, and all workers with it."""

    how: Line


SpawnAnswer = WorkerSpawned | ConfigUnknown | NodeFull | SpawnFailed


# Connections


def connect(address: tuple[str, int], token: bytes, kind: bytes, name: bytes, seconds: float) -> socket.socket:
    """A connection to a host, introduced by its token."""
    sock: socket.socket | None = None
    try:
        sock = socket.create_connection(address, seconds)
        watch(sock)
        sock.sendall(token + kind + name)
    except OSError as problem:
        if sock is not None:
            sock.close()
        raise HostLost(f"{address[0]}:{address[1]} cannot be reached: {problem}") from None
    return sock


def watch(sock: socket.socket) -> None:
    """Send small messages at once, and let the kernel notice when the other machine is gone."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limit = (_IDLE_SECONDS + _PROBE_SECONDS * _PROBES) * 1000
    options = {"TCP_KEEPIDLE": _IDLE_SECONDS, "TCP_KEEPINTVL": _PROBE_SECONDS, "TCP_KEEPCNT": _PROBES}
    for name, value in {**options, "TCP_USER_TIMEOUT": limit}.items():
        if (number := getattr(socket, name, None)) is not None:  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


def send(sock: socket.socket, message: Struct) -> None:
    data = msgpack.encode(message)
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket, kind: Any, longest: int, seconds: float | None = None) -> Any:
    """The next message, which is of that kind; raises OSError where the other side has hung up or sent another.

    With `seconds`, the whole of it arrives within them.
    """
    deadline = None if seconds is None else monotonic() + seconds
    (size,) = _LENGTH.unpack(exactly(sock, _LENGTH.size, deadline))
    if size > longest:
        raise OSError(f"a message of {size:,} bytes is too long")
    return decoded(exactly(sock, size, deadline), kind)


def decoded(data: bytes, kind: Any) -> Any:
    """A message of that kind; raises OSError where it is none."""
    try:
        return msgpack.decode(data, type=kind)
    except (ValueError, RecursionError) as problem:  # msgspec's errors are ValueErrors
        raise OSError(f"a message cannot be read: {str(problem)[:200]}") from None
