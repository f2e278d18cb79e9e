"""The zygote: a small single-threaded process that has everything loaded and forks workers on demand.

A request is four bytes of length and a marshal tuple, ("name", argument…); with "spawn" the worker's socket travels
beside it. Answers have the same form. On a second socket come notes (NOTE), which have no answer: interrupt a worker's
run, freeze an idle worker, thaw it, let it end. When the host hangs up, the zygote kills its workers and ends.
"""

from __future__ import annotations

import _socket
import gc
import marshal
import os
import select
import struct
import sys

from moonbox.native import extension
from moonbox.worker.child import Child, NativeChild
from moonbox.worker.protocol import STOP

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`, and without what `socket` and `signal` add
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FREEZE", "INTERRUPT", "LENGTH", "NOTE", "RELEASE", "SPAWN", "THAW", "main"]

LENGTH = struct.Struct("<I")
_SPAWN = marshal.dumps(("spawn",), 0)  # as the first version of the format has it, which is the same in every process
SPAWN = LENGTH.pack(len(_SPAWN)) + _SPAWN
"""The request for a worker."""
NOTE = struct.Struct("<BQQB")  # action, serial number of the worker; number and reason of a STOP, or bytes of memory
INTERRUPT, FREEZE, THAW, RELEASE = 1, 2, 3, 4
_NOTES_AT_ONCE = 256
_MOST_STATUSES = 4096
_EMFILE = 24
_NUMBER = struct.Struct("=i")  # of a descriptor
_SIGKILL, _SIGUSR1, _SIGCONT, _SIGSTOP = (9, 30, 19, 17) if sys.platform == "darwin" else (9, 10, 18, 19)
_MOST_PLANS = 64
_SLACK = 32 << 20
_FIXED = (3, 4)  # the numbers that the native part gives a worker's sockets
_REHEARSALS = 20  # Python changes the code of a function for speed when it has run some times


def main(fd: int, notes: int, *, native: bool = True) -> None:
    """Serve until the host hangs up; `fd` and `notes` are our ends of its sockets.

    `native`: use the native part if it was built.
    """
    from moonbox.languages.engine import create_engine
    from moonbox.worker import jail

    _ignore_interrupts()
    compiled = extension("worker._native") if native else None
    engine = create_engine(compiled)
    sockets = _socket.socket(fileno=fd), _socket.socket(fileno=notes)
    prepared = jail.prepare(for_forks=True)
    _Zygote(*sockets, engine, jail, prepared, compiled if engine.is_native else None).serve()


class _Zygote:
    def __init__(
        self, host: _socket.socket, notes: _socket.socket, vm: Any, jail: Any, prepared: Any, native: Any
    ) -> None:
        self._host = host
        self._notes = notes
        self._unread = b""
        self._vm = vm
        self._jail = jail
        self._prepared = prepared
        self._native = native
        self._children: dict[int, int] = {}  # process id → serial number
        self._controls: dict[int, tuple[int, _socket.socket]] = {}  # serial number → process id, our end of its control
        self._serial = 0
        self._ended: dict[int, int] = {}
        self._limits: dict[str, Any] = {}
        self._planned: dict[tuple[int, ...], _PlannedJail] = {}
        self._pid = self._prepared.parent_pid()
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._deaf = False  # the host has closed the socket of the notes
        self._tended: _PlannedJail | None = None  # the jail of workers that the native part makes and looks after

    def serve(self) -> None:
        while self._next_request():
            request, fds = self._receive()
            if request is None:
                break
            self._reap()
            try:
                answer = getattr(self, "_do_" + request[0])(*request[1:], fds)
            except OSError as problem:  # no descriptors, processes or memory left: the workers that there are go on
                answer = _failed(problem)
                for fd in fds:
                    os.close(fd)
            if not self._answer(answer):
                break
        self._end()

    def _next_request(self) -> bool:
        """Wait for it, and act on notes meanwhile; False when the host has hung up."""
        if self._tended is not None:
            return self._tend(self._tended)
        poll = select.poll()
        poll.register(self._host.fileno(), select.POLLIN)
        if not self._deaf:
            poll.register(self._notes.fileno(), select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._notes.fileno() in ready and not self._take_notes():
                self._deaf = True
                poll.unregister(self._notes.fileno())
            if self._host.fileno() in ready:
                return True

    def _tend(self, jail: _PlannedJail) -> bool:
        """The same by the native part, which makes workers and looks after them by itself."""
        assert jail.calls is not None
        while True:
            try:
                state = self._native.tend(
                    self._host.fileno(),
                    self._notes.fileno(),
                    SPAWN,
                    *_ANSWER,
                    self._limits["max_memory"],
                    self._pid,
                    *jail.calls,
                    jail.greeting,
                )
            except OSError as problem:
                if not self._answer(_failed(problem)):
                    return False
                continue
            if type(state) is tuple:  # this is a worker, and Python has something to do in it
                self._be_native_worker(state, jail)
            return state is True

    def _answer(self, answer: tuple[Any, ...]) -> bool:
        """False when the host has hung up."""
        data = marshal.dumps(answer)
        try:
            self._host.sendall(LENGTH.pack(len(data)) + data)
        except OSError:
            return False
        return True

    def _receive(self) -> tuple[Any, list[int]]:
        fds: list[int] = []
        data = b""
        try:
            data, ancillary, _, _ = self._host.recvmsg(LENGTH.size, _socket.CMSG_SPACE(_NUMBER.size))
            for _, _, raw in ancillary:
                fds += (fd for (fd,) in _NUMBER.iter_unpack(raw[: len(raw) - len(raw) % _NUMBER.size]))
            data += self._exactly(LENGTH.size - len(data)) if data else b""
            if len(data) == LENGTH.size:
                return marshal.loads(self._exactly(LENGTH.unpack(data)[0])), fds
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
        self._planned.clear()
        self._vm.set_limits(config["limits"])
        self._vm.configure(config["environment"])
        gc.collect()
        gc.freeze()  # workers share these pages as long as no collection touches them
        gc.disable()
        self._rehearse()
        if self._native is not None:
            jail = self._jail_for(_FIXED)
            self._tended = jail if jail.calls is not None else None
        return ("ok",)

    def _rehearse(self) -> None:
        """Do what every worker does: what Python finds out on the way is then found out for all of them."""
        child: Any = NativeChild(self._native, self._vm) if self._native else Child(None, None, self._vm)  # type: ignore[arg-type]
        for _ in range(_REHEARSALS):
            child.rehearse()

    def _take_notes(self) -> bool:
        """False when the host has hung up."""
        try:
            data = self._notes.recv(NOTE.size * _NOTES_AT_ONCE)
        except OSError:
            data = b""
        self._unread += data
        whole = len(self._unread) // NOTE.size * NOTE.size
        for action, serial, number, reason in NOTE.iter_unpack(self._unread[:whole]):
            if serial in self._controls:  # it lives, or has not been waited for: its process id is no other's
                self._act(action, serial, number, reason)
        self._unread = self._unread[whole:]
        return bool(data)

    def _act(self, action: int, serial: int, number: int, reason: int) -> None:
        pid, control = self._controls[serial]
        if action == INTERRUPT:
            try:
                control.send(STOP.pack(number, reason))
            except OSError:
                return  # it has ended, or does not read: the host will have it killed
            if self._native is not None:
                os.kill(pid, _SIGUSR1)  # it looks at its control socket then; in Python a thread waits for that
        elif action == FREEZE:
            os.kill(pid, _SIGSTOP if self._holds_little(pid, number or self._limits["max_memory"]) else _SIGKILL)
        elif action == THAW:
            os.kill(pid, _SIGCONT)
        elif action == RELEASE:
            self._controls.pop(serial)[1].close()
            os.kill(pid, _SIGKILL)

    def _holds_little(self, pid: int, most: int) -> bool:
        """Whether an idle worker has no more memory of its own than scripts that may hold so much leave behind."""
        try:
            fd = os.open(f"/proc/{pid}/statm", os.O_RDONLY)
        except OSError:  # there is no /proc
            return True
        try:
            _, resident, shared, *_ = os.read(fd, 128).split()
        finally:
            os.close(fd)
        return (int(resident) - int(shared)) * self._page <= most * 2 + _SLACK

    def _do_spawn(self, fds: list[int]) -> tuple[str, int, int, bool]:
        if not fds:  # the kernel drops what there is no room for
            raise OSError(_EMFILE, "no descriptors left")
        ours, theirs = _socket.socketpair()
        jail = self._jail_for((fds[0], theirs.fileno()))
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            self._be_worker(fds[0], theirs.detach(), jail)
        os.close(fds[0])
        theirs.close()
        ours.setblocking(False)
        self._serial += 1
        self._children[pid] = self._serial
        self._controls[self._serial] = pid, ours
        return ("ok", pid, self._serial, self._native is not None)

    def _jail_for(self, keep: tuple[int, ...]) -> _PlannedJail:
        """The jail of a worker that keeps these descriptors. Their numbers mostly recur."""
        planned = self._planned.get(keep)
        if planned is None:
            config = self._jail.JailConfig(
                prepared=self._prepared,
                keep_fds=keep,
                parent_pid=self._pid,
                # Room for the script's own memory, and once more for its values on their way in and out.
                memory=self._limits["max_memory"] * 2,
            )
            planned = _PlannedJail(config, self._jail, self._prepared.libc if self._native else None)
            if len(self._planned) >= _MOST_PLANS:
                self._planned.clear()
            self._planned[keep] = planned
        return planned

    def _do_kill(self, pid: int, _: list[int]) -> tuple[str, int | None]:
        """Kill that worker if it still lives, and tell its wait status."""
        if self._tended is not None:
            return ("ok", self._native.kill_worker(pid))
        if pid in self._children:
            os.kill(pid, _SIGKILL)
            self._wait(pid, 0)
        return ("ok", self._ended.get(pid))

    def _reap(self) -> None:
        while self._children and self._wait(-1, os.WNOHANG):
            pass

    def _wait(self, pid: int, options: int) -> bool:
        """Whether one has ended; a pid of -1 stands for any of them."""
        pid, status = os.waitpid(pid, options)
        if pid in self._children:
            _, control = self._controls.pop(self._children.pop(pid), (0, None))
            if control is not None:
                control.close()
            if len(self._ended) >= _MOST_STATUSES:
                del self._ended[next(iter(self._ended))]
            self._ended[pid] = status
        return pid > 0

    def _end(self) -> None:
        if self._native is not None:
            self._native.end_workers()
        for pid in self._children:
            os.kill(pid, _SIGKILL)
        for pid in tuple(self._children):
            self._wait(pid, 0)
        os._exit(0)

    def _be_worker(self, main_fd: int, control_fd: int, jail: _PlannedJail) -> None:
        """Never returns."""
        status = 70
        try:
            config = jail.config
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
            child.serve(jail.greeting if as_planned else _greeting(before + after))
            status = 0
        finally:
            os._exit(status)

    def _be_native_worker(self, state: Any, jail: _PlannedJail) -> None:
        """Go on where the native part needs Python; never returns."""
        status = 70
        try:
            failures, request = state
            child = NativeChild(self._native, self._vm)
            if failures is None:
                child.go_on(request)
            else:
                plans = jail.config.before, jail.config.after
                before, after = (self._jail.outcomes(*pair) for pair in zip(plans, failures))  # noqa: B905 - two each
                child.serve(_greeting(before + after))
            status = 0
        finally:
            os._exit(status)


class _PlannedJail:
    """A worker's jail, its greeting where nothing fails, and its calls for the native part, if that can make them."""

    __slots__ = ("calls", "config", "greeting")

    def __init__(self, config: Any, jail: Any, libc: Any) -> None:
        self.config = config
        self.greeting = _greeting(config.before.layers + config.after.layers)
        before, after = (jail.native_form(plan, libc) for plan in (config.before, config.after))
        self.calls: tuple[bytes, bytes] | None = None if before is None or after is None else (before, after)


def _failed(problem: OSError) -> tuple[Any, ...]:
    return "failed", problem.errno, problem.strerror


def _answer_with_gaps() -> tuple[bytes, int, int]:
    """The answer to a request for a worker, and where in it the process id and the serial number go."""
    pid, serial = 0x5A5A5A51, 0x5A5A5A52
    data = marshal.dumps(("ok", pid, serial, True))
    message = LENGTH.pack(len(data)) + data
    return message, message.index(pid.to_bytes(4, "little")), message.index(serial.to_bytes(4, "little"))


_ANSWER = _answer_with_gaps()


def _greeting(layers: Any) -> bytes:
    return "\n".join(f"{layer.name}\t{layer.active:d}\t{layer.detail}" for layer in layers).encode()


def _ignore_interrupts() -> None:
    import _signal  # type: ignore[import-not-found]  # built in; `signal` makes enumerations of it, which takes long

    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
