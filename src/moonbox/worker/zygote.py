"""The zygote: a small single-threaded process that has everything loaded and forks workers on demand.

A request is four bytes of length and a marshal tuple, ("name", argument…); with "spawn" the worker's socket travels
beside it. Answers have the same form. On a second socket come notes (NOTE), which have no answer: interrupt a worker's
run, freeze an idle worker, thaw it, let it end. When the host hangs up, the zygote kills its workers and ends.

What one more worker costs does not depend on how many there are: with the native part the zygote has no descriptor for
each worker, and it waits only for processes that it has killed.
"""

from __future__ import annotations

import _socket
import gc
import marshal
import os
import select
import struct
import sys

from moonbox.languages.engine import DEFAULT_ENGINE
from moonbox.native import extension
from moonbox.worker.child import Child, NativeChild
from moonbox.worker.protocol import STOP

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`, and without what `socket` and `signal` add
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FREEZE", "INTERRUPT", "LENGTH", "NOTE", "RELEASE", "SPAWN", "THAW", "main"]

LENGTH = struct.Struct("<I")
_SPAWN = marshal.dumps(("spawn",), 0)
SPAWN = LENGTH.pack(len(_SPAWN)) + _SPAWN
"""The request for a worker."""
NOTE = struct.Struct("<BQQB")  # action, serial number of the worker; number and reason of a STOP, or bytes of memory
INTERRUPT, FREEZE, THAW, RELEASE = 1, 2, 3, 4
_NOTES_AT_ONCE = 256
_EMFILE = 24
_REQUEST_SIZE = 4096  # bytes to receive at once; most requests have less
_DESCRIPTOR = struct.Struct("=i")
_DESCRIPTOR_SPACE = _socket.CMSG_SPACE(_DESCRIPTOR.size)
_SIGKILL, _SIGCONT, _SIGSTOP = (9, 19, 17) if sys.platform == "darwin" else (9, 18, 19)
_FREEZE_SLACK = 32 << 20  # bytes
_MAIN_FD, _CONTROL_FD = 3, 4  # the numbers of a worker's sockets
_REAP_MILLISECONDS = 100  # after the latest request; while there are some, each reaps
_WARM_UP_RUNS, _NATIVE_RUNS = 20, 2  # Python specializes the bytecode of a function after some calls


def main(fd: int, notes: int, *, native: bool = True, engine: str = DEFAULT_ENGINE, program: str | None = None) -> None:
    """Serve until the host hangs up; `fd` and `notes` are our ends of its sockets.

    `native`: use the native part if it was built. `program` is what the engine starts beside each worker.
    """
    from moonbox.languages.engine import create_engine
    from moonbox.worker import jail

    ignore_interrupts()
    compiled = extension("worker._native") if native else None
    vm = create_engine(compiled, engine)
    companion = None if program is None else jail.Companion(program)
    sockets = _socket.socket(fileno=fd), _socket.socket(fileno=notes)
    prepared = jail.prepare(for_forks=True)
    if companion is not None:
        companion.prepare(prepared)
    Zygote(*sockets, vm, jail, prepared, compiled if vm.is_native else None, companion).serve()


class Zygote:
    def __init__(
        self,
        host: _socket.socket,
        notes: _socket.socket,
        vm: Any,
        jail: Any,
        prepared: Any,
        native: Any,
        companion: Any = None,
    ) -> None:
        self._host = host
        self._notes = notes
        self._unread = b""  # the beginning of a note
        self._vm = vm
        self._jail = jail
        self._prepared = prepared
        self._native = native
        self._companion = companion  # the program that the engine starts beside each worker
        self._signal = os.kill if companion is None else os.killpg
        self._workers: dict[int, int] = {}  # serial number → process id; not waited for, so that no other has the id
        self._controls: dict[int, _socket.socket] = {}  # serial number → our end of its control; without native part
        self._killed: list[int] = []  # process ids that are still to be waited for
        self._serial = 0
        self._limits: dict[str, Any] = {}
        self._config: Any = None  # of the jail, for every worker
        self._calls: tuple[int, bytes, bytes, bytes] | None = None  # the jail for the native part, if that can make it
        self._pid = self._prepared.parent_pid()
        self._poll = select.poll()
        for sock in (notes, host):  # in this order: a worker that was released makes room for the one asked for next
            self._poll.register(sock.fileno(), select.POLLIN)

    def serve(self) -> None:
        """Never returns."""
        notes = self._notes.fileno()
        while True:
            ready = self._poll.poll(_REAP_MILLISECONDS if self._killed else None)
            if not ready:
                self._reap()
            for fd, _ in ready:
                if fd != notes:
                    if not self._serve_request():
                        self._end()
                elif not self._take_notes():
                    self._poll.unregister(fd)

    def _serve_request(self) -> bool:
        """False when the host has hung up."""
        try:
            data, ancillary, _, _ = self._host.recvmsg(_REQUEST_SIZE, _DESCRIPTOR_SPACE)
            if data != SPAWN:
                request = self._rest_of_request(data)
        except OSError:
            return False
        try:
            if data == SPAWN:
                answer = self._spawn(ancillary)
            elif request[0] == "configure":
                answer = self._configure(request[1])
            else:
                answer = self._kill(request[1])
        except OSError as problem:  # no descriptors, processes or memory left: the workers that there are go on
            answer = marshal.dumps(("failed", problem.errno, problem.strerror))
        try:
            self._host.sendall(LENGTH.pack(len(answer)) + answer)
        except OSError:
            return False
        return True

    def _rest_of_request(self, data: bytes) -> tuple[Any, ...]:
        """The request that begins with this; nothing comes after it until it is answered."""
        while len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
            more = self._host.recv(_REQUEST_SIZE)
            if not data or not more:
                raise ConnectionError
            data += more
        return marshal.loads(data[LENGTH.size :])  # type: ignore[no-any-return]

    # Requests

    def _configure(self, config: dict[str, Any]) -> bytes:
        """What every worker forked from now on starts with."""
        self._limits = config["limits"]
        self._vm.set_limits(config["limits"])
        self._vm.configure(config["environment"])
        gc.collect()
        gc.freeze()  # workers share these pages as long as no collection touches them
        gc.disable()
        child: Any = NativeChild(self._native, self._vm) if self._native else Child(None, None, self._vm)  # type: ignore[arg-type]
        for _ in range(_NATIVE_RUNS if self._native else _WARM_UP_RUNS):
            child.warm_up()
        self._plan_jail()
        return marshal.dumps(("ok",))

    def _plan_jail(self) -> None:
        self._config = config = self._jail_config((_MAIN_FD,) if self._native else (_MAIN_FD, _CONTROL_FD))
        greeting = _greeting(config.before.layers + config.after.layers)
        libc = self._prepared.libc if self._native else None
        before, after = (self._jail.native_form(plan, libc) for plan in (config.before, config.after))
        if before is not None and after is not None:
            self._calls = self._pid, before, after, greeting

    def _jail_config(self, keep_fds: tuple[int, ...], **options: Any) -> Any:
        return self._jail.JailConfig(
            prepared=self._prepared,
            keep_fds=keep_fds,
            parent_pid=self._pid,
            # Room for the script's own memory, and once more for its values on their way in and out.
            memory=self._limits["max_memory"] * 2,
            **options,
        )

    def _spawn(self, ancillary: list[tuple[int, int, bytes]]) -> bytes:
        """Fork a worker for the socket that came beside the request.

        Every page that this touches is copied, and its old content stays with the latest worker: little is done here.
        """
        if not ancillary:  # the kernel drops what there is no room for
            raise OSError(_EMFILE, "no descriptors left")
        if self._killed:
            self._reap()
        (fd,) = _DESCRIPTOR.unpack(ancillary[0][2])
        self._serial = serial = self._serial + 1
        try:
            pid = self._fork(fd, serial) if self._calls is None else self._native.fork_worker(fd, *self._calls)
            if type(pid) is tuple:  # this is the worker, and Python has something to do in it
                self._go_on_in_python(pid)
        finally:
            os.close(fd)
        self._workers[serial] = pid
        return marshal.dumps(("ok", pid, serial, self._native is not None))

    def _kill(self, serial: int) -> bytes:
        """Kill that worker; its wait status, which tells how it had ended. None where it was released."""
        pid = self._workers.get(serial)
        status = None
        if pid is not None:
            self._signal(pid, _SIGKILL)
            _, status = os.waitpid(pid, 0)
            self._forget(serial)
        return marshal.dumps(("ok", status))

    # Notes

    def _take_notes(self) -> bool:
        """False when the host has hung up."""
        try:
            data = self._notes.recv(NOTE.size * _NOTES_AT_ONCE)
        except OSError:
            data = b""
        self._unread += data
        whole = len(self._unread) // NOTE.size * NOTE.size
        for action, serial, number, reason in NOTE.iter_unpack(self._unread[:whole]):
            if serial in self._workers:
                self._act(action, serial, number, reason)
        self._unread = self._unread[whole:]
        return bool(data)

    def _act(self, action: int, serial: int, number: int, reason: int) -> None:
        pid = self._workers[serial]
        if action == INTERRUPT:
            try:
                if self._native is not None:
                    self._native.stop(pid, number, reason)
                else:
                    self._controls[serial].send(STOP.pack(number, reason))
            except OSError:
                pass  # it has ended, or takes no more: the host will have it killed
        elif action == FREEZE:
            fits = self._holds_little(pid, number or self._limits["max_memory"])
            self._signal(pid, _SIGSTOP if fits else _SIGKILL)
        elif action == THAW:
            self._signal(pid, _SIGCONT)
        elif action == RELEASE:
            self._signal(pid, _SIGKILL)
            self._killed.append(pid)
            self._forget(serial)

    def _holds_little(self, pid: int, most: int) -> bool:
        """Whether an idle worker has no more memory of its own than scripts that may hold so much leave behind."""
        try:
            _, resident, shared = self._jail.memory_of(pid)
        except OSError:  # there is no /proc
            return True
        return bool(resident - shared <= most * 2 + _FREEZE_SLACK)

    # Processes

    def _forget(self, serial: int) -> None:
        del self._workers[serial]
        control = self._controls.pop(serial, None)
        if control is not None:
            control.close()

    def _reap(self) -> None:
        """Wait for those that were killed, by their ids: a wait for any child would look at each of them."""
        self._killed = [pid for pid in self._killed if not os.waitpid(pid, os.WNOHANG)[0]]

    def _end(self) -> None:
        pids = *self._workers.values(), *self._killed
        for pid in pids:
            self._signal(pid, _SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
        os._exit(0)

    def _fork(self, main_fd: int, serial: int) -> int:
        """Fork a worker that puts its jail in force in Python, and has a control socket unless it is native."""
        ours, theirs = _socket.socketpair()
        try:
            pid = os.fork()
            if pid == 0:
                self._be_worker(main_fd, theirs.detach())
            if self._companion is not None:
                os.setpgid(pid, pid)  # the worker does the same: whoever comes first
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        if self._native is None:
            ours.setblocking(False)
            self._controls[serial] = ours
        else:
            ours.close()
        return pid

    def _be_worker(self, main_fd: int, control_fd: int) -> None:
        """Never returns."""
        status = 70
        try:
            control_fd = os.dup(control_fd) if control_fd == _MAIN_FD else control_fd
            os.dup2(main_fd, _MAIN_FD)
            os.dup2(control_fd, _CONTROL_FD)
            fds = _MAIN_FD, _CONTROL_FD
            main, control = (None, None) if self._native else [_socket.socket(fileno=fd) for fd in fds]
            config, of_program = (self._config, ()) if self._companion is None else self._start_companion()
            before = self._jail.before_threads(config)
            child: Child | NativeChild
            if self._native is not None:
                child = NativeChild(self._native, self._vm)
                self._native.attach(_MAIN_FD)
            else:
                child = Child(main, control, self._vm)  # type: ignore[arg-type]  # sockets, where there is no native part
                child.watch(lambda: os._exit(0))
            after = self._jail.after_threads(config)
            child.serve(_greeting(self._jail.combined(before + after, of_program)))
            status = 0
        finally:
            os._exit(status)

    def _start_companion(self) -> tuple[Any, Any]:
        """In the worker: start the engine's program, locked in; the worker's own jail, and the program's layers."""
        os.setpgid(0, 0)
        companion = self._companion
        used, _, _ = self._jail.memory_of("self")  # of /proc, which is out of reach from now on
        of_program = companion.enter()
        pid = self._vm.start(companion.path)
        of_program += companion.confine(pid, self._limits["max_memory"])
        return self._jail_config(companion.kept(), used=used + companion.SLACK, beside=pid), of_program

    def _go_on_in_python(self, state: Any) -> None:
        """In a worker that the native part has forked, where it needs Python; never returns."""
        status = 70
        try:
            failures, request = state
            child = NativeChild(self._native, self._vm)
            if failures is None:
                child.go_on(request)
            else:
                plans = self._config.before, self._config.after
                before, after = (self._jail.outcomes(*pair) for pair in zip(plans, failures))  # noqa: B905 - two each
                child.serve(_greeting(before + after))
            status = 0
        finally:
            os._exit(status)


def _greeting(layers: Any) -> bytes:
    return "\n".join(f"{layer.name}\t{layer.active:d}\t{layer.detail}" for layer in layers).encode()


def ignore_interrupts() -> None:
    import _signal  # type: ignore[import-not-found]  # built in; `signal` makes enumerations of it, which takes long

    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
