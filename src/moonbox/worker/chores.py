"""Chores: functions of ours that read data of strangers, in a jailed process, until a deadline.

Parsers and engines that were not made for strangers, such as SQL, YAML and PDF, run here and not in the host. A chore
gets data and returns data. It has so much time, memory and room for its answer, no environment, no descriptor but its
socket, and of files and connections what its grant has.
"""

from __future__ import annotations

import atexit
import functools
import os
import socket
import sys
import threading
import weakref
from importlib.util import find_spec
from typing import Any

import msgspec

from moonbox.closing import Closing
from moonbox.errors import ToolError, UsageError, WorkerError
from moonbox.worker.chore_child import GONE, MIB, ChoreChild, ChoreFailed, Pipes
from moonbox.worker.jail import Layer
from moonbox.worker.sources import ProcessSource

__all__ = ["ChoreFailed", "Chores", "Grant"]

_OURS = ("moonbox.",)
MEMORY = 512 * MIB
ANSWER = 64 * MIB
SECONDS = 10.0
_START_SECONDS = 30.0
_MOST, _MOST_IDLE = 8, 4
_encode = msgspec.msgpack.Encoder().encode
_Module = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Its import path, the arguments of its function `load`, and the packages that it needs."""


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
        weakref.finalize(self, _end_all, self._idle)

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
        module, arguments, packages = self._module
        alone = f"serve_alone({module!r}, {arguments!r}, {os.getpid()})"
        child = self._forked() if self._forks else ChoreChild(Pipes(_boot(packages, alone)))
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

    def _forked(self) -> ChoreChild:
        try:
            source = _zygote(os.getpid())
            source.load(self._module)
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    _, control, _ = source.fork(theirs.fileno())
                except BaseException:
                    ours.close()
                    raise
        except (WorkerError, OSError) as problem:
            raise ChoreFailed(f"did not start: {problem}") from None
        return ChoreChild(ours, source, control)


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
            self.configure({"modules": [(*each, _folders(each[2])) for each in self._modules]})
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
    folders = _folders(("moonbox", "msgspec", *packages))
    start = f"import sys; sys.path += {folders!r}; from moonbox.worker import chore_process; chore_process.{call}"
    return [sys.executable, "-I", "-S", "-c", start]


def _folders(packages: tuple[str, ...]) -> list[str]:
    """The folders that these packages are in."""
    specs = [find_spec(name) for name in packages]
    files = [(spec.submodule_search_locations or [spec.origin or ""])[0] for spec in specs if spec is not None]
    return list(dict.fromkeys(str(file).rpartition(os.sep)[0] for file in files))


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - on the way of every query
    except OSError:
        return None
    return found.st_dev, found.st_ino
