"""Chores that misbehave, for the tests of what holds them."""

from __future__ import annotations

import os
import select
import socket
import threading
from pathlib import Path
from typing import Any

from moonbox.errors import ArgumentError


def opened(*arguments: Any) -> tuple[Any, tuple[int, ...]]:
    """A connection that is there before the jail is."""
    sock = socket.create_connection(("127.0.0.1", arguments[0]))
    return sock, (sock.fileno(),)


def spin(_: Any) -> None:
    while True:
        pass


def refuse(_: Any, words: str) -> None:
    raise ArgumentError(words)


def deep(_: Any) -> Any:
    value: Any = []
    for _number in range(100_000):
        value = [value]
    return value


def forge(_: Any, data: bytes) -> None:
    os.write(3, data)
    spin(None)


def start_thread(_: Any) -> None:
    threading.Thread(target=print).start()


def said(sock: socket.socket, text: bytes) -> bytes:
    sock.sendall(text)
    return sock.recv(100)


CHORES = {
    "echo": lambda _, value: value,
    "spin": spin,
    "fill": lambda _, size: len(bytearray(size)),
    "large": lambda _, size: b"x" * size,
    "refuse": refuse,
    "deep": deep,
    "forge": forge,
    "abort": lambda _: os.abort(),
    "exit": lambda _, status: os._exit(status),
    "read": lambda _, path: Path(path).read_text(),
    "write": lambda _, path: Path(path).write_text("x"),
    "list": lambda _, path: sorted(os.listdir(path)),  # noqa: PTH208 - what an attacker writes
    "environment": lambda _: dict(os.environ),
    "descriptors": lambda _: [fd for fd in range(1000) if _is_open(fd)],
    "socket": lambda _: socket.socket().fileno(),
    "fork": lambda _: os.fork(),
    "execute": lambda _: os.execv("/bin/true", ["true"]),
    "thread": start_thread,
    "pid": lambda _: os.getpid(),
    "parent": lambda _: os.getppid(),
    "said": said,
}


def _is_open(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd)
    return not any(event & select.POLLNVAL for _, event in poll.poll(0))
