"""Where workers come from: processes that are forked from a zygote, or threads of this process."""

from __future__ import annotations

import _socket
import array
import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.errors import WorkerError
from moonbox.languages.engine import DEFAULT_ENGINE
from moonbox.native import wanted
from moonbox.shortage import shortage
from moonbox.wording import noun
from moonbox.worker.control import CpuClock, Notes, SocketControl, ZygoteControl, socket_pairs, wait_at_most
from moonbox.worker.zygote import LENGTH, SPAWN

if TYPE_CHECKING:
    from moonbox.worker.link import Link

_START_SECONDS = 20.0
REPLY_SECONDS = 5.0
_ANSWER_SIZE = 256  # bytes; most answers have less
_CHUNK = 1 << 18
_SOCKET_BUFFER = 32 * 1024  # bytes that a socket takes before the other side reads


_DEFAULT = {"name": DEFAULT_ENGINE, "packages": ("lupa",), "program": None}


class WorkerSource(Protocol):
    """Makes workers for the pool. `Sandbox(isolation=…)` takes one of its user's own too."""

    def spawn(self) -> Link:
        """A new, configured worker, whose READY frame is still to be read."""

    def configure(self, config: dict[str, Any]) -> None:
        """Set what workers start with that are spawned from now on."""

    def close(self) -> None: ...


class ProcessSource:
    """Workers forked from a zygote process, which is started when first needed and again if it dies."""

    reply_seconds = REPLY_SECONDS

    def __init__(self, config: dict[str, Any] | None) -> None:
        self._config = config  # None until `configure` is called
        self._engine: dict[str, Any] = {}  # what the zygote has loaded
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._notes: Notes | None = None
        self._unanswered: bytes | None = None  # the configuration; b"" when it was sent, None when it was answered
        self._closed = False

    @classmethod
    def started(cls) -> ProcessSource:
        """A source whose zygote is loading already, for a Sandbox that is made later: `Sandbox(isolation=source)`."""
        source = cls(None)
        source.begin()
        return source

    def begin(self) -> None:
        """Start the zygote without waiting for it. If that fails, `spawn` tries again and reports the error."""
        with self._lock:
            if self._socket is None and not self._closed:
                try:
                    self._launch()
                except (OSError, WorkerError):
                    self._end()

    def spawn(self) -> Link:
        try:
            near, theirs = _socket.socketpair()
        except OSError as problem:
            raise _cannot_start(problem) from problem
        main = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, near.detach())
        try:
            pid, control, native = self.fork(theirs.fileno())
        except BaseException:
            main.close()
            raise
        finally:
            theirs.close()
        from moonbox.worker.link import Link  # here: loaded while the zygote starts

        return Link(main, control, pid, kill=lambda: self.kill(control), native=native, cpu=_process_clock(pid))

    def fork(self, fd: int) -> tuple[int, ZygoteControl, bool]:
        """A new worker whose socket is a copy of this one: its process id, its control, and whether it is native."""
        (_, pid, serial, native), notes = self._request(SPAWN, (fd,))
        return pid, ZygoteControl(notes, serial), native

    def configure(self, config: dict[str, Any]) -> None:
        with self._lock:
            early = self._config is None
            self._config = config
            if self._socket is not None and self._engine != config.get("engine", _DEFAULT):
                self._end()  # it has loaded another one: `spawn` starts it again
            if self._socket is None:
                return
            if early:
                try:
                    self._send_configuration(self._socket, config)
                except OSError:
                    self._end()  # `spawn` tries again
                return
        self._request(("configure", config))

    def kill(self, control: ZygoteControl) -> str:
        """Kill that worker; words for how it had ended, which are empty where its zygote is gone.

        Its zygote kills it: only a parent can be sure that a process id is not another's by now.
        """
        try:
            (_, status), _ = self._request(("kill", control.serial), only=control.notes)
        except WorkerError:
            return ""
        if status is None:
            return ""
        from moonbox.worker.jail import describe_exit  # the jail itself is the zygote's to load

        return describe_exit(status)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._end()

    @property
    def zygote_pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _request(
        self, request: tuple[Any, ...] | bytes, fds: tuple[int, ...] = (), *, only: Notes | None = None
    ) -> tuple[Any, Notes]:
        """Send a request, packed or not, to the zygote. Returns its answer, and where to send notes about it.

        With `only`, to the zygote that takes these notes: another has workers with the same serial numbers.
        """
        with self._lock:
            if self._closed:
                raise WorkerError("the Sandbox is closed")
            if only is not None and only is not self._notes:
                raise WorkerError("the zygote is gone")
            for attempt in (1, 2, 3):
                try:
                    if self._socket is None:
                        self._launch()
                    if self._unanswered is not None:
                        self._await_configuration(self._unanswered)
                    assert self._notes is not None
                    return self._exchange(request, fds), self._notes
                except WorkerShortage:
                    raise
                except (OSError, WorkerError) as problem:
                    self._end()
                    if attempt == 3 or only is not None:
                        raise WorkerError(f"the zygote process does not answer: {problem}") from None
                except BaseException:  # interrupted: its answer would be read as that of the next request
                    self._end()
                    raise
        raise AssertionError

    def _launch(self) -> None:
        """Start the zygote. Its first request is always the configuration."""
        if not sys.executable:
            raise WorkerError('no Python interpreter was found to start workers with; use Sandbox(isolation="inline")')
        try:
            ours, notes, theirs, their_notes = socket_pairs()
        except OSError as problem:
            raise _cannot_start(problem) from problem
        wait_at_most(ours, _START_SECONDS)
        self._engine = (self._config or {}).get("engine", _DEFAULT)
        with theirs, their_notes:
            try:
                self._process = subprocess.Popen(
                    self._boot(theirs.fileno(), their_notes.fileno()),
                    pass_fds=(theirs.fileno(), their_notes.fileno()),
                    env={},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                )
            except OSError as problem:
                ours.close()
                notes.close()
                raise _cannot_start(problem) from problem
        self._socket = ours
        self._notes = Notes(notes)
        if self._config is not None:
            self._send_configuration(ours, self._config)

    def _boot(self, fd: int, notes: int) -> list[str]:
        """The command that starts the zygote."""
        return [sys.executable, "-I", "-S", "-c", _boot(fd, notes, self._engine)]

    def _send_configuration(self, zygote: socket.socket, config: dict[str, Any]) -> None:
        self._unanswered = _packed(("configure", config))
        if len(self._unanswered) <= _SOCKET_BUFFER:
            zygote.sendall(self._unanswered)
            self._unanswered = b""

    def _await_configuration(self, unsent: bytes) -> None:
        assert self._socket is not None
        try:
            self._exchange(unsent, ())
        except (OSError, WorkerError) as problem:
            raise WorkerError(f"the zygote process did not start: {problem}") from problem
        self._unanswered = None
        wait_at_most(self._socket, self.reply_seconds)

    def _exchange(self, request: tuple[Any, ...] | bytes, fds: tuple[int, ...]) -> Any:
        assert self._socket is not None
        payload = request if isinstance(request, bytes) else _packed(request)
        if fds:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            try:
                sent = self._socket.sendmsg([payload], rights)
            except OSError as problem:
                if shortage(problem):  # nothing was sent: the zygote and its workers go on
                    raise _cannot_start(problem) from problem
                raise
            payload = payload[sent:]
        if payload:
            self._socket.sendall(payload)
        data = self._at_least(LENGTH.size, b"")
        size = LENGTH.size + LENGTH.unpack_from(data)[0]
        if len(data) < size:
            data = self._at_least(size, data)
        answer = marshal.loads(data[LENGTH.size :])
        if answer[0] == "failed":
            raise _cannot_start(OSError(*answer[1:]), "the zygote process: ")
        return answer

    def _at_least(self, size: int, data: bytes) -> bytes:
        """Receive until `data` has at least that size; nothing comes after an answer."""
        assert self._socket is not None
        while len(data) < size:
            try:
                more = self._socket.recv(max(size - len(data), _ANSWER_SIZE))
            except BlockingIOError:
                raise WorkerError("it took too long") from None
            if not more:
                raise WorkerError("it has ended")
            data += more
        return data

    def _end(self) -> None:
        """Hang up and wait for the zygote to end, which ends its workers."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._notes is not None:
            self._notes.close()
            self._notes = None
        if self._process is not None:
            try:
                self._process.wait(4.0)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None


def _packed(request: tuple[Any, ...]) -> bytes:
    payload = marshal.dumps(request)
    return LENGTH.pack(len(payload)) + payload


class WorkerShortage(WorkerError):
    """No further worker can be started. The running ones are not affected."""


def _cannot_start(problem: OSError, where: str = "") -> WorkerShortage:
    return WorkerShortage(f"a worker cannot be started: {where}{shortage(problem) or problem}")


def _boot(fd: int, notes: int, engine: dict[str, Any]) -> str:
    """The zygote's program: only the folders of moonbox and of the engine's packages are on its path."""
    folders = folders_of(("moonbox", *engine["packages"]))
    options = f"native={wanted()}, engine={engine['name']!r}, program={engine['program']!r}"
    start = f"from moonbox.worker.zygote import main; main({fd}, {notes}, {options})"
    return f"import sys; sys.path[:0] = {folders!r}; {start}"


def exactly(sock: socket.socket, size: int, deadline: float | None = None) -> bytes:
    """That many bytes; raises OSError where there are fewer."""
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            if (left := deadline - time.monotonic()) <= 0:
                raise TimeoutError("timed out")
            sock.settimeout(left)
        more = sock.recv(min(size - len(data), _CHUNK))
        if not more:
            raise ConnectionError("the other side has hung up")
        data += more
    return bytes(data)


def folders_of(packages: Sequence[str]) -> list[str]:
    """The folders that these packages are in."""
    from importlib.util import find_spec

    specs = [find_spec(name) for name in packages]
    files = [(spec.submodule_search_locations or [spec.origin or ""])[0] for spec in specs if spec is not None]
    return list(dict.fromkeys(str(file).rpartition(os.sep)[0] for file in files))


def _process_clock(pid: int) -> CpuClock | None:
    """The processor-time clock of a process; its number is computed as the kernel's headers do."""
    return CpuClock((~pid << 3) | 2) if sys.platform == "linux" else None


def check_layers(link: Link, required: Collection[str]) -> None:
    """End a worker that lacks a required layer of the jail, and raise WorkerError."""
    try:
        link.wait_until_ready(time.monotonic() + REPLY_SECONDS)
        layers = {layer.name: layer for layer in link.layers()}
        missing = [
            f"'{name}' ({layers[name].detail if name in layers else 'the worker does not have it'})"
            for name in required
            if name not in layers or not layers[name].active
        ]
        if missing:
            raise WorkerError(
                f"required {noun(len(missing), 'layer')} of the jail missing: {', '.join(missing)}; "
                "`moonbox doctor` shows all of them"
            )
    except BaseException:
        link.close()
        raise


class InlineSource:
    """Makes workers that are threads. They cannot be killed: a script that does not stop keeps its thread."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._threads: list[threading.Thread] = []

    def spawn(self) -> Link:
        from moonbox.worker.link import Link

        main, control, theirs, theirs_control = socket_pairs()
        thread = threading.Thread(
            target=_serve, args=(theirs, theirs_control, self._config), name="moonbox-inline", daemon=True
        )
        thread.start()
        self._threads = [*(old for old in self._threads if old.is_alive()), thread]
        return Link(main, SocketControl(control), cpu=_thread_clock(thread))

    def configure(self, config: dict[str, Any]) -> None:
        self._config = config

    def close(self) -> None:
        """Wait for the threads, whose sockets are closed by now. One that is stuck in a script is left running."""
        for thread in self._threads:
            thread.join(0.5)


def _serve(sock: Any, control: Any, config: dict[str, Any]) -> None:
    from moonbox.languages.engine import DEFAULT_ENGINE, create_engine
    from moonbox.worker.child import Child, HangUp

    engine = config.get("engine", {})
    vm = create_engine(name=engine.get("name", DEFAULT_ENGINE))
    vm.set_limits(config["limits"])
    vm.configure(config["environment"])
    if engine.get("program") is not None:
        vm.start(engine["program"])
    child = Child(sock, control, vm)
    watchers: list[threading.Thread] = []

    def start(target: Any, arguments: tuple[Any, ...]) -> None:
        watchers.append(threading.Thread(target=target, args=arguments, name="moonbox-control", daemon=True))
        watchers[0].start()

    child.watch(lambda: vm.interrupt_any(2), start)
    try:
        child.serve()
    except HangUp:
        pass
    finally:
        sock.close()
        watchers[0].join(1.0)
        control.close()


def _thread_clock(thread: threading.Thread) -> CpuClock | None:
    if sys.platform != "linux" or thread.ident is None:
        return None
    return CpuClock(time.pthread_getcpuclockid(thread.ident))
