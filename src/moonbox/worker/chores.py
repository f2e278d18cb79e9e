"""Chores: functions of ours that read data of strangers, in a jailed process, until a deadline.

Parsers and engines that were not made for strangers, such as SQL, YAML and PDF, run here and not in the host. A chore
gets data and returns data. It has so much time, memory and room for its answer, no environment, no descriptor but its
socket, and of files and connections what its grant has.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import msgspec

from moonbox.closing import Closing
from moonbox.errors import ArgumentError, ToolError, UsageError, WorkerError
from moonbox.wording import one_line
from moonbox.worker.jail import Layer, describe_exit
from moonbox.worker.sources import ProcessSource, exactly, folders_of
from moonbox.worker.zygote import LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ChoreFailed", "Chores", "Grant"]

_OURS = ("moonbox.",)
MIB = 1024 * 1024
MEMORY = 512 * MIB
ANSWER = 64 * MIB
MOST_VALUES = 2_000_000
"""The most values of one answer: a value of one byte becomes an object of up to 64."""
SECONDS = 10.0
_START_SECONDS = 30.0
_MOST, _MOST_IDLE = 8, 4
_UNCOUNTED = 256 * 1024
"""Bytes of an answer that cannot hold so many that it matters."""
_LONGEST_WORDS = 2_000
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, Any]).decode
_ERRORS = {"ArgumentError": ArgumentError, "ToolError": ToolError, "UsageError": UsageError}
_Module = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Its import path, the arguments of its function `load`, and the packages that it needs."""


class ChoreFailed(Exception):
    """A chore did not end well; the message is a phrase such as "took longer than 10 seconds"."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        self.reason, self.late = reason, late
        super().__init__(reason)


GONE = object()
"""Instead of an answer: the child had ended, or its state had, before it began."""


class Grant(msgspec.Struct, frozen=True):
    """What a child may reach: files and folders, and what `opened` of its module opens with these arguments."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    opening: tuple[Any, ...] | None = None

    def identity(self) -> tuple[Any, ...]:
        """Differs when one of the files is another one by now: a child may use those that it was granted."""
        return self, *map(_inode, self.read), *map(_inode, self.write)


class Chores(Closing):
    """Runs the chores of one module of ours. Safe to use from several threads.

    Each chore has a child for itself, of which up to four stay ready for the next one. The children of all modules are
    forked from one zygote.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        packages: tuple[str, ...] = (),
        memory: int = MEMORY,
        forks: bool | None = None,
    ) -> None:
        if not module.startswith(_OURS):
            raise UsageError(f"chores are functions of moonbox, not of {module!r}")
        self._module: _Module = module, arguments, packages
        self._memory = memory
        self._forks = hasattr(os, "fork") if forks is None else forks
        self._room = threading.BoundedSemaphore(_MOST)
        self._lock = threading.Lock()
        self._idle: list[tuple[Any, ChoreChild]] = []
        self._closed = False
        weakref.finalize(self, _drop, self._idle)

    def begin(self) -> None:
        """Start its zygote without waiting for it: a first chore is expected soon."""
        if self._forks:
            _zygote(os.getpid()).load(self._module, wait=False)

    def run(
        self,
        name: str,
        *arguments: Any,
        grant: Grant | None = None,
        seconds: float = SECONDS,
        answer: int = ANSWER,
        fresh: bool = False,
    ) -> Any:
        """What the function of that name returns. Raises ChoreFailed, or the error of ours that it raises.

        `fresh`: in a process that does nothing before and after.
        """  # fmt: skip
        if not self._room.acquire(timeout=seconds):
            raise ChoreFailed(f"waited longer than {seconds:.3g} seconds: {_MOST} others are running", late=True)
        try:
            request = _encode([name, answer, arguments])
            while True:
                child, identity, used = self._child(grant or Grant(), fresh)
                try:
                    value = child.ask(request, seconds, answer, self._memory)
                except (ToolError, UsageError):
                    self._give_back(child, identity, fresh)
                    raise
                except BaseException:
                    child.end()
                    raise
                if value is not GONE:
                    self._give_back(child, identity, fresh)
                    return value
                if not used:
                    raise ChoreFailed("lost its connection")
        finally:
            self._room.release()

    def layers(self) -> tuple[Layer, ...]:
        """The layers of the jail that a child has here."""
        child, identity, _ = self._child(Grant(), False)
        self._give_back(child, identity, False)
        return child.layers

    def close(self) -> None:
        with self._lock:
            self._closed = True
        _end_all(self._idle)

    def _child(self, grant: Grant, fresh: bool) -> tuple[ChoreChild, tuple[Any, ...], bool]:
        """A child with that grant, what identifies it, and whether it was used before."""
        identity = grant.identity()
        found = None
        with self._lock:
            if self._closed:
                raise ChoreFailed("cannot run: it is closed")
            for place, (key, child) in enumerate(self._idle):
                if key == identity and not fresh:
                    found = child
                    del self._idle[place]
                    break
        return (found, identity, True) if found is not None else (self._start(grant), identity, False)

    def _give_back(self, child: ChoreChild, identity: tuple[Any, ...], fresh: bool) -> None:
        with self._lock:
            if not fresh and not self._closed:
                self._idle.append((identity, child))
                child = self._idle.pop(0)[1] if len(self._idle) > _MOST_IDLE else None  # type: ignore[assignment]
        if child is not None:
            child.end()

    def _start(self, grant: Grant) -> ChoreChild:
        with contextlib.suppress(IndexError):  # there are no more
            while True:
                _end_all(_dropped.pop())
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    end = (self._fork if self._forks else self._launch)(theirs.fileno())
                except BaseException:
                    ours.close()
                    raise
        except (WorkerError, OSError) as problem:
            raise ChoreFailed(f"did not start: {problem}") from None
        child, (module, arguments, _) = ChoreChild(ours, end), self._module
        try:
            first = [module, arguments, self._memory, grant.read, grant.write, grant.opening]
            layers = child.ask(_encode(first), _START_SECONDS, MIB, self._memory)
            if layers is GONE:
                raise ChoreFailed("did not start")
            child.layers = tuple(Layer(*layer) for layer in layers)
        except BaseException:
            child.end()
            raise
        return child

    def _fork(self, fd: int) -> Callable[[], str]:
        """Start a process on that socket; returns what ends it, with words for how it had ended before."""
        source = _zygote(os.getpid())
        source.load(self._module)
        _, control, _ = source.fork(fd)
        return functools.partial(source.kill, control)

    def _launch(self, fd: int) -> Callable[[], str]:
        """The same where there is no fork."""
        module, arguments, packages = self._module
        program = _boot(packages, f"serve_alone({module!r}, {arguments!r}, {fd}, {os.getpid()})")
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(program, pass_fds=(fd,), env={}, stdin=nowhere, stdout=nowhere, cwd=os.sep)

        def end() -> str:
            process.kill()
            process.wait()
            return ""

        return end


_dropped: list[list[tuple[Any, ChoreChild]]] = []
"""The children of Chores that are gone and were not closed."""


def _drop(idle: list[tuple[Any, ChoreChild]]) -> None:
    """The garbage collector calls this at any moment, also in a request to the zygote, whose lock is held then.

    The children end by themselves; the next one that is started has the zygote wait for them.
    """
    for _, child in idle:
        child.hang_up()
    _dropped.append(idle)


def _end_all(idle: list[tuple[Any, ChoreChild]]) -> None:
    while idle:
        idle.pop()[1].end()


class _ChoreSource(ProcessSource):
    """The zygote of all chores, which loads a module when its first chore is asked for."""

    reply_seconds = _START_SECONDS

    def __init__(self) -> None:
        super().__init__({})
        self._loading = threading.Lock()
        self._modules: list[_Module] = []

    def load(self, module: _Module, *, wait: bool = True) -> None:
        """Have the module loaded; without `wait`, only where that starts the zygote."""
        with self._loading:
            if module in self._modules or not (wait or self.zygote_pid is None):
                return
            self._modules = [*self._modules, module]
            self.configure({"modules": [(*each, folders_of(each[2])) for each in self._modules]})
            if not wait:
                self.begin()

    def _boot(self, fd: int, notes: int) -> list[str]:
        return _boot((), f"main({fd}, {notes})")


@functools.cache
def _zygote(pid: int) -> _ChoreSource:
    """One for each process: a process that was forked from this one has a zygote of its own."""
    source = _ChoreSource()
    atexit.register(source.close)
    return source


def _boot(packages: tuple[str, ...], call: str) -> list[str]:
    """The command that starts a process for chores: only the folders of these packages are on its path."""
    folders = folders_of(("moonbox", "msgspec", *packages))
    start = f"import sys; sys.path += {folders!r}; from moonbox.worker import chore_process; chore_process.{call}"
    return [sys.executable, "-I", "-S", "-c", start]


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - on the way of every query
    except OSError:
        return None
    return found.st_dev, found.st_ino


# A child, as the host sees it: what it answers is not trusted


class ChoreChild:
    """A process that does chores, seen from the host, which does not trust it."""

    def __init__(self, sock: socket.socket, end: Callable[[], str]) -> None:
        self._socket, self._end = sock, end
        self.layers: tuple[Layer, ...] = ()

    def ask(self, request: bytes, seconds: float, most: int, memory: int) -> Any:
        deadline = time.monotonic() + seconds
        try:
            try:
                self._socket.settimeout(seconds)
                self._socket.sendall(LENGTH.pack(len(request)) + request)
                (length,) = LENGTH.unpack(exactly(self._socket, LENGTH.size, deadline))
                if length > most:
                    raise ChoreFailed(f"answered with more than {most:,} bytes")
                status, value = decoded(exactly(self._socket, length, deadline))
            except TimeoutError:
                raise ChoreFailed(f"took longer than {seconds:.3g} seconds", late=True) from None
            except (msgspec.MsgspecError, RecursionError):
                raise ChoreFailed("sent an invalid answer") from None
            return self._outcome(status, value, most, memory)
        except OSError:
            how = self.end()
            if how in ("", describe_exit(0)):
                return GONE
            raise ChoreFailed(f"ended without an answer: {how}") from None

    def _outcome(self, status: str, value: Any, most: int, memory: int) -> Any:
        if status == "ok":
            return value
        if status == "stale":
            self.end()
            return GONE
        if status == "error":
            kind, message, code = (str(part)[:_LONGEST_WORDS] for part in value)
            error = _ERRORS.get(kind, ToolError)
            raise error(message) if error is UsageError else error(message, code=code)
        if status == "large":
            raise ChoreFailed(f"answered with more than {most:,} bytes")
        if status == "memory":
            raise ChoreFailed(f"needed more than {memory // MIB} MB")
        raise ChoreFailed(f"failed: {one_line(str(value), 300)}")

    def hang_up(self) -> None:
        """No more is asked of the process, which ends when it has nothing to do."""
        self._socket.close()

    def end(self) -> str:
        """End the process, whatever it is doing; words for how it had ended before."""
        self.hang_up()
        end, self._end = self._end, lambda: ""
        return end()


# Decoding


_FIXED = {0xC0: 1, 0xC1: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
_FIXED |= {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18}
_FIXED |= {0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
_LENGTHS = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_LENGTHS |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
"""Of MessagePack, by the first byte of a value: its size, or the bytes of its length and what it has besides."""


def decoded(data: bytes) -> tuple[str, Any]:
    """What an answer says. Its values are counted before they become objects."""
    if len(data) > _UNCOUNTED:
        _count(data)
    return _decode(data)


def _count(data: bytes) -> None:
    place, end, count = 0, len(data), 0
    while place < end:
        byte = data[place]
        count += 1
        if count > MOST_VALUES:
            raise ChoreFailed(f"answered with more than {MOST_VALUES:,} values")
        if byte < 0xA0 or byte >= 0xE0:  # a small number, or the beginning of a small list or map
            place += 1
        elif byte < 0xC0:  # a short text
            place += byte - 0x9F
        elif byte in _FIXED:
            place += _FIXED[byte]
        else:
            size, more = _LENGTHS[byte]
            place += 1 + size + more + int.from_bytes(data[place + 1 : place + 1 + size], "big")
