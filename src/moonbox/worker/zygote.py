"""The zygote: a small single-threaded process that has everything loaded and forks workers on demand.

A request is four bytes of length and a marshal tuple, ("name", argument…); with "spawn" the worker's two sockets travel
beside it. Answers have the same form. When the host hangs up, the zygote kills its workers and ends.
"""

from __future__ import annotations

import _socket
import array
import gc
import marshal
import os
import struct

from moonbox.worker.child import Child, NativeChild

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`, and without what `socket` and `signal` add
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LENGTH", "main"]

LENGTH = struct.Struct("<I")
_MOST_STATUSES = 4096
_FDS = 2
_SIGKILL = 9
_REHEARSALS = 20  # Python changes the code of a function for speed when it has run some times


def main(fd: int, *, native: bool = True) -> None:
    """Serve until the host hangs up. `fd` is our end of the Unix _socket; `native`: use the native part, if built."""
    from moonbox.languages.engine import create_engine
    from moonbox.worker import jail

    _ignore_interrupts()
    extension = _load_native() if native else None
    engine = create_engine(extension)
    _Zygote(_socket.socket(fileno=fd), engine, jail, extension if engine.is_native else None).serve()


class _Zygote:
    def __init__(self, host: _socket.socket, vm: Any, jail: Any, native: Any) -> None:
        self._host = host
        self._vm = vm
        self._jail = jail
        self._prepared = jail.prepare()
        self._native = native
        self._children: set[int] = set()
        self._ended: dict[int, int] = {}
        self._limits: dict[str, Any] = {}
        self._pid = os.getpid()

    def serve(self) -> None:
        while True:
            request, fds = self._receive()
            if request is None:
                self._end()
                return
            self._reap()
            answer = marshal.dumps(getattr(self, "_do_" + request[0])(*request[1:], fds))
            self._host.sendall(LENGTH.pack(len(answer)) + answer)

    def _receive(self) -> tuple[Any, list[int]]:
        fds = array.array("i")
        data = b""
        try:
            data, ancillary, _, _ = self._host.recvmsg(LENGTH.size, _socket.CMSG_SPACE(_FDS * fds.itemsize))
            for _, _, raw in ancillary:
                fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
            data += self._exactly(LENGTH.size - len(data)) if data else b""
            if len(data) == LENGTH.size:
                return marshal.loads(self._exactly(LENGTH.unpack(data)[0])), list(fds)
        except OSError:
            pass
        return None, []

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._host.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return bytes(data)

    def _do_configure(self, config: dict[str, Any], _: list[int]) -> tuple[str]:
        """What every worker forked from now on starts with."""
        self._limits = config["limits"]
        self._vm.set_limits(config["limits"])
        self._vm.configure(config["environment"])
        gc.collect()
        gc.freeze()  # workers share these pages as long as no collection touches them
        gc.disable()
        self._rehearse()
        return ("ok",)

    def _rehearse(self) -> None:
        """Do what every worker does: what Python finds out on the way is then found out for all of them."""
        child: Any = NativeChild(self._native, self._vm) if self._native else Child(None, None, self._vm)  # type: ignore[arg-type]
        for _ in range(_REHEARSALS):
            child.rehearse()

    def _do_spawn(self, fds: list[int]) -> tuple[str, int, bool]:
        # Room for the script's own memory, and once more for its values on their way in and out.
        config = self._jail.JailConfig(
            prepared=self._prepared,
            keep_fds=tuple(fds),
            parent_pid=self._pid,
            memory=self._limits["max_memory"] * 2,
        )
        greeting = _greeting(config.before.layers + config.after.layers)
        pid = os.fork()
        if pid == 0:
            try:
                self._be_worker(fds[0], fds[1], config, greeting)
            finally:
                os._exit(70)
        for fd in fds:
            os.close(fd)
        self._children.add(pid)
        return ("ok", pid, self._native is not None)

    def _do_kill(self, pid: int, _: list[int]) -> tuple[str, int | None]:
        """Kill that worker if it still lives, and tell its wait status."""
        if pid in self._children:
            os.kill(pid, _SIGKILL)
            self._wait(pid, 0)
        return ("ok", self._ended.get(pid))

    def _reap(self) -> None:
        for pid in tuple(self._children):
            self._wait(pid, os.WNOHANG)

    def _wait(self, pid: int, options: int) -> None:
        done, status = os.waitpid(pid, options)
        if done:
            self._children.discard(pid)
            if len(self._ended) >= _MOST_STATUSES:
                del self._ended[next(iter(self._ended))]
            self._ended[pid] = status

    def _end(self) -> None:
        for pid in self._children:
            os.kill(pid, _SIGKILL)
        for pid in tuple(self._children):
            self._wait(pid, 0)
        os._exit(0)

    def _be_worker(self, main_fd: int, control_fd: int, config: Any, greeting: bytes) -> None:
        before = self._jail.before_threads(config)
        child: Child | NativeChild
        if self._native:
            child = NativeChild(self._native, self._vm)
            child.attach(main_fd, control_fd)
        else:
            child = Child(_socket.socket(fileno=main_fd), _socket.socket(fileno=control_fd), self._vm)
            child.watch(lambda: os._exit(0))
        after = self._jail.after_threads(config)
        as_planned = before is config.before.layers and after is config.after.layers
        child.serve(greeting if as_planned else _greeting(before + after))
        os._exit(0)


def _greeting(layers: Any) -> bytes:
    return "\n".join(f"{layer.name}\t{layer.active:d}\t{layer.detail}" for layer in layers).encode()


def _load_native() -> Any:
    """The native part of a worker, where it was built."""
    try:
        from moonbox.worker import _native  # type: ignore[attr-defined]
    except ImportError:
        return None
    return _native


def _ignore_interrupts() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
