"""The front end's side of its Ray process: starts it, keeps what it tells of nodes, starts it again where it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from typing import Any

from msgspec.structs import replace

from moonbox._version import __version__
from moonbox.cluster import wire
from moonbox.cluster.ray_messages import (
    AskNodes,
    CallActor,
    CallFunction,
    NodesChanged,
    RayAnswer,
    RayFailure,
    RayLoaded,
    RayProcessMessage,
    RayRefused,
)
from moonbox.errors import MissingExtra, UsageError, WorkerError

JOIN_SECONDS = 10.0
"""How long the cluster may take to answer, once Ray is loaded."""
_LOAD_SECONDS = 60.0
_AGAIN_SECONDS = 1.0
_LEAVE_SECONDS = 5.0
_LONGEST_MESSAGE = 1 << 27
_FORMS = '"auto", "ray://host:port" or "host:port"'
_VARIABLES = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "USER")
"""What the process finds in its environment, besides Ray's own settings (`RAY_…`)."""


class RayLost(WorkerError):
    """The Ray process ended, or is not there now. `sent` says whether the request had been sent."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


class RequestFailed(WorkerError):
    """Ray could not do what was requested."""


class RayProcess:
    """One for each cluster, which all Sandboxes of a process share; `close` gives it up. Thread-safe."""

    nodes: NodesChanged | None = None
    """What it told last."""
    pid = 0
    """Its number; another one after it was started again."""
    problem = ""
    """Why the cluster cannot be reached now; empty where it can."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.users = 0
        self._numbers = count(1)
        self._lock = threading.Lock()  # guards the two below, and what is sent
        self._open: dict[int, Future[bytes]] = {}
        self._sock: socket.socket | None = None
        self._closed = threading.Event()
        process, sock = self._start()
        threading.Thread(target=self._keep, args=(process, sock), name="moonbox-ray", daemon=True).start()

    @classmethod
    def shared(cls, address: str) -> RayProcess:
        """The process for that cluster; raises WorkerError where the cluster cannot be reached."""
        if not isinstance(address, str) or not address:
            raise UsageError(f"cluster must be {_FORMS}, not {address!r}")
        if find_spec("ray") is None:
            raise MissingExtra("ray", "ray", "Sandbox(cluster=…)")
        lock, processes = _processes(os.getpid())
        with lock:
            if address not in processes:
                processes[address] = cls(address)
            processes[address].users += 1
            return processes[address]

    def close(self) -> None:
        """One user less; after the last one the process ends."""
        lock, processes = _processes(os.getpid())
        with lock:
            self.users -= 1
            if self.users or processes.get(self._address) is not self:
                return
            del processes[self._address]
        self.end()

    def end(self) -> None:
        """End the process, for all users."""
        self._closed.set()
        with self._lock:
            if self._sock is not None:
                with suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)

    def tell(self, message: wire.Message) -> None:
        """Send a message that has no answer; nothing happens where the process is not there."""
        with suppress(RayLost):
            self._send(message)

    def ask(self, message: CallActor | CallFunction | AskNodes) -> Future[bytes]:
        """Send a request; its answer as MessagePack. The future may raise RayLost or RequestFailed."""
        number = next(self._numbers)
        future = self._open[number] = Future()
        future.set_running_or_notify_cancel()  # the future cannot be cancelled: Ray answers it
        try:
            self._send(replace(message, number=number))
        except RayLost as problem:
            self._open.pop(number, None)
            if not future.done():
                future.set_exception(problem)
        return future

    def request(self, message: CallActor | CallFunction | AskNodes, kind: Any, seconds: float | None = None) -> Any:
        """Send a request and wait for its answer, which is of that kind."""
        try:
            return wire.decoded(self.ask(message).result(seconds), kind)
        except TimeoutError:
            raise RayLost("the Ray process did not answer in time", sent=True) from None
        except OSError as problem:
            raise RequestFailed(str(problem)) from None

    def _send(self, message: wire.Message) -> None:
        with self._lock:
            if self._sock is None:
                raise RayLost(f"the cluster cannot be reached now: {self.problem}", sent=False)
            try:
                wire.send(self._sock, message)
            except OSError as problem:
                raise RayLost(f"the Ray process ended: {problem}", sent=True) from None

    # The process

    def _keep(self, process: subprocess.Popen[bytes], sock: socket.socket) -> None:
        """Read what it says; where it ends, start it again."""
        while True:
            try:
                while True:
                    self._take(wire.receive(sock, RayProcessMessage, _LONGEST_MESSAGE))
            except OSError:
                self._lose(process, sock)
            while not self._closed.wait(_AGAIN_SECONDS):
                try:
                    process, sock = self._start()
                    break
                except WorkerError as problem:
                    self.problem = str(problem)
            else:
                return

    def _take(self, message: Any) -> None:
        if isinstance(message, NodesChanged):
            self.nodes = message
        elif isinstance(message, RayAnswer | RayFailure) and (future := self._open.pop(message.number, None)):
            if isinstance(message, RayAnswer):
                future.set_result(message.data)
            else:
                future.set_exception(RequestFailed(message.message))

    def _lose(self, process: subprocess.Popen[bytes], sock: socket.socket) -> None:
        with self._lock:
            self._sock = None
            self.problem = "the Ray process ended, and is started again"
            sock.close()
        for number in list(self._open):
            if (future := self._open.pop(number, None)) is not None:
                future.set_exception(RayLost("the Ray process ended before it had the answer", sent=True))
        _end(process, _LEAVE_SECONDS)

    def _start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair()
        paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109 - '' means this
        with theirs:
            call = f"main({theirs.fileno()}, {self._address!r}, {__version__!r}, paths)"
            boot = f"import sys; paths = sys.path[:] = {paths!r}; from moonbox.cluster.ray_member import main; {call}"
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", boot],
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            self._receive(ours, RayLoaded, _LOAD_SECONDS, "Ray could not be loaded")
            reason = f"the cluster {self._address!r} cannot be reached"
            told = self._receive(ours, NodesChanged | RayRefused, JOIN_SECONDS, reason)
            if isinstance(told, RayRefused):
                raise WorkerError(f"{reason}: {told.message}")
        except BaseException:
            ours.close()
            _end(process, 0.0)
            raise
        ours.settimeout(None)
        with self._lock:
            self.nodes, self._sock, self.problem, self.pid = told, ours, "", process.pid
        return process, ours

    @staticmethod
    def _receive(sock: socket.socket, kind: Any, seconds: float, failed: str) -> Any:
        try:
            return wire.receive(sock, kind, _LONGEST_MESSAGE, seconds)
        except TimeoutError:
            raise WorkerError(f"{failed}: it did not answer within {seconds:g} seconds") from None
        except OSError as problem:
            raise WorkerError(f"{failed}: {problem}") from None


@cache
def _processes(pid: int) -> tuple[threading.Lock, dict[str, RayProcess]]:
    """Those of this process; a fork of it has none."""
    return threading.Lock(), {}


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _VARIABLES or name.startswith("RAY_")}
    return {"RAY_USAGE_STATS_ENABLED": "0", **kept}


def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
