"""The processes of chores: a zygote that loads modules of ours, and its children, which call their functions.

A module of chores has `CHORES`, the functions by name, and may have two more: `load`, which the zygote calls with the
arguments that the host gives, and `opened`, which each child calls before it enters its jail. `opened` returns a state,
which every chore gets as its first argument, and the descriptors that the state needs.

A message has four bytes of length and MessagePack. The first one to a child says what it is granted; its answer has the
layers of the jail. Every further one is [function, most bytes of the answer, arguments].
"""

from __future__ import annotations

import _socket
import contextlib
import functools
import gc
import importlib
import marshal
import os
import select
import sys
from typing import Any

import msgspec

from moonbox.errors import ToolError, UsageError
from moonbox.worker import jail
from moonbox.worker.zygote import LENGTH, Zygote, ignore_interrupts

OK, ERROR, MEMORY, LARGE, STALE, FAILED = "ok", "error", "memory", "large", "stale", "failed"
"""What an answer begins with. After MEMORY, STALE and FAILED the child ends."""
IDLE_SECONDS = 60.0
"""A child that has had no chore for so long ends."""
_SOCKET = 3
_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode


class Stale(Exception):
    """A chore's state is of no more use, such as a connection that has ended; nothing was done."""


def main(fd: int, notes: int) -> None:
    """Be the zygote of all modules, until the host hangs up."""
    ignore_interrupts()
    sockets = _socket.socket(fileno=fd), _socket.socket(fileno=notes)
    _ChoreZygote(*sockets, None, jail, jail.prepare(), None).serve()


def serve_alone(module: str, arguments: tuple[Any, ...], fd: int, host: int) -> None:
    """Be a child without a zygote, where there is no fork."""
    ignore_interrupts()
    _load(module, arguments)
    _Chores(fd, jail.prepare(), host).serve()


@functools.cache
def _load(module: str, arguments: tuple[Any, ...]) -> None:
    """Load a module, and what it needs for these arguments, once."""
    load = getattr(importlib.import_module(module), "load", None)
    if load is not None:
        load(*arguments)


class _ChoreZygote(Zygote):
    """Forks children, which learn from their first message what they are granted."""

    def _configure(self, config: dict[str, Any]) -> bytes:
        for module, arguments, _, folders in config.get("modules", ()):
            sys.path += [folder for folder in folders if folder not in sys.path]
            with contextlib.suppress(Exception):  # a child tries again, and says what is wrong
                _load(module, arguments)
        gc.collect()
        gc.freeze()  # children share these pages
        return marshal.dumps(("ok",))

    def _fork(self, main_fd: int, serial: int) -> int:
        pid = os.fork()
        if pid == 0:
            status = 70
            try:
                os.dup2(main_fd, _SOCKET)
                _Chores(_SOCKET, self._prepared, self._pid).serve()
                status = 0
            finally:
                os._exit(status)
        return pid


class _Chores:
    """A child: it enters its jail, and then does what it is asked to, one chore after the other."""

    def __init__(self, fd: int, prepared: jail.PreparedJail, parent: int) -> None:
        self._socket = _socket.socket(fileno=fd)
        self._prepared, self._parent = prepared, parent
        self._module: Any = None
        self._state: Any = None

    def serve(self) -> None:
        first = self._receive()
        if first is None:
            return
        usable = self._answer(self._enter, first, 1 << 20)
        while usable and (request := self._receive()) is not None:
            name, most, arguments = request
            usable = self._answer(self._call, [name, arguments], most)

    def _enter(
        self, module: str, arguments: list[Any], memory: int, read: list[str], write: list[str], opening: Any
    ) -> list[list[Any]]:
        _load(module, tuple(arguments))
        self._module = sys.modules[module]
        keep: tuple[int, ...] = ()
        if opening is not None:
            self._state, keep = self._module.opened(*opening)
        grants = jail.JailGrants(read, write, connected=bool(keep))
        config = jail.JailConfig(
            prepared=self._prepared,
            keep_fds=(self._socket.fileno(), *keep),
            parent_pid=self._parent,
            memory=memory,
            grants=grants,
        )
        layers = jail.before_threads(config) + jail.after_threads(config)
        for _ in range(3 if grants.has_files else 0):  # what is printed must not get into a file
            os.open("/dev/null", os.O_RDONLY)
        return [list(layer) for layer in layers]

    def _call(self, name: str, arguments: list[Any]) -> Any:
        return self._module.CHORES[name](self._state, *arguments)

    def _answer(self, function: Any, arguments: list[Any], most: int) -> bool:
        """Whether this process can do another chore."""
        status, data = OK, b""
        value: Any = None
        try:
            data = _encode([OK, function(*arguments)])
        except Stale:
            status = STALE
        except (ToolError, UsageError) as problem:
            name = next(kind.__name__ for kind in type(problem).__mro__ if kind.__name__ in REFUSALS)
            status, value = ERROR, [name, str(problem), getattr(problem, "code", "")]
        except MemoryError:
            status = MEMORY
        except RecursionError:
            status, value = FAILED, "the data is nested too deeply"
        except Exception as problem:  # noqa: BLE001 - a parser may raise anything on damaged data; the answer has it
            status, value = FAILED, f"{type(problem).__name__}: {problem}"[:300]
        if status != OK:
            data = _encode([status, value])
        if len(data) > most:
            data = _encode([LARGE, None])
        self._socket.sendall(LENGTH.pack(len(data)))
        self._socket.sendall(data)
        return status in (OK, ERROR, LARGE)

    def _receive(self) -> Any:
        """The next message; None when the host has hung up, or asks for nothing for long."""
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        if not poll.poll(IDLE_SECONDS * 1000):
            return None
        head = self._exactly(LENGTH.size)
        data = head and self._exactly(*LENGTH.unpack(head))
        return _decode(data) if data else None

    def _exactly(self, size: int) -> bytes:
        """So many bytes, or none."""
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                return b""
            parts += part
        return bytes(parts)


REFUSALS = ("ArgumentError", "ToolError", "UsageError")
"""The errors of ours that pass from a child to the host."""
