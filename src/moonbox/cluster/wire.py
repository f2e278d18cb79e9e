"""What a front end and the host of a node say to each other over TCP: a greeting, then messages in MessagePack."""

from __future__ import annotations

import socket
import struct
from typing import Any

from msgspec import MsgspecError, msgpack

from moonbox.errors import WorkerError

TOKEN_SIZE = 32
NAME_SIZE = 16
CONTROL, WORKER = b"C", b"W"
"""Kinds of connections: one for orders, and one for each worker."""
GREETING_SIZE = TOKEN_SIZE + 1 + NAME_SIZE
_LENGTH = struct.Struct("!I")
_LONGEST = 1 << 26  # bytes; the configuration of workers names every tool
_IDLE_SECONDS, _PROBE_SECONDS, _PROBES = 5, 3, 3


class HostLost(WorkerError):
    """The host of a node does not answer: its process, its machine, or the network between has failed."""


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


def send(sock: socket.socket, message: list[Any]) -> None:
    data = msgpack.encode(message)
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket) -> list[Any]:
    """The next message; raises OSError where the other side has hung up or sent something else."""
    (size,) = _LENGTH.unpack(exactly(sock, _LENGTH.size))
    if size > _LONGEST:
        raise OSError("a message is too long")
    try:
        return msgpack.decode(exactly(sock, size), type=list[Any])
    except MsgspecError as problem:
        raise OSError(f"a message cannot be read: {problem}") from None


def exactly(sock: socket.socket, size: int) -> bytes:
    """That many bytes; raises OSError where there are fewer."""
    data = bytearray()
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("the other side has hung up")
        data += more
    return bytes(data)
