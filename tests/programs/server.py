"""The server of `tests.programs`: it loads what programs import, and forks for each that is asked for."""

from __future__ import annotations

import atexit
import gc
import importlib
import marshal
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import moonbox

_ELSEWHERE = ("moonbox.adapters.", "moonbox.console.", "moonbox.worker.", "moonbox.__main__")
"""Few programs need them, or they belong to processes of their own."""
_SCRIPTS = ("conformance_client", "everything_server", "login_server", "revision_server", "shared_server")
_LATE = (
    *("typer.rich_utils", "typer._adapters", "rich.markdown", "rich.table", "pygments.lexers"),
    *("anyio._backends._asyncio", "httpcore2", "truststore", "jsonschema_rs", "importlib.resources.readers"),
)
"""What libraries import when they are first used."""
_HARMLESS = {"PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


@dataclass(frozen=True, slots=True)
class Request:
    """A program that is asked for: its command, folder and environment, and the streams that it gets."""

    command: list[str]
    cwd: str
    environment: dict[str, str]
    streams: list[int]

    @property
    def fits(self) -> bool:
        """Whether a new interpreter would begin as this one has."""
        asked, mine = ({k: v for k, v in variables.items() if k.startswith("PYTHON") and k not in _HARMLESS}
                       for variables in (self.environment, os.environ))  # fmt: skip
        return asked == mine or not asked


class Server:
    """Programs that run, each with the connection to its launcher."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._running: dict[int, tuple[int, socket.socket]] = {}
        self._selector = selectors.DefaultSelector()

    def forked(self) -> Request | None:
        """In every fork, what is asked of it; in the server None, at its end."""
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ, self._start)
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    return None
                request = key.data(key.fd)
                if request is not None:
                    return request  # only from `_start`, in the fork

    def close(self) -> None:
        self._selector.close()
        self._listener.close()
        for pidfd, (_, connection) in self._running.items():
            os.close(pidfd)
            connection.close()

    def _start(self, _: int) -> Request | None:
        connection, _address = self._listener.accept()
        request = _received(connection)
        if request is None:
            connection.close()
            return None
        child = os.fork()
        if child == 0:
            connection.close()
            self.close()
            return request
        for stream in request.streams:
            os.close(stream)
        pidfd = os.pidfd_open(child)
        self._running[pidfd] = child, connection
        self._selector.register(pidfd, selectors.EVENT_READ, self._ended)
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._signalled(pidfd))
        return None

    def _ended(self, pidfd: int) -> None:
        child, connection = self._running.pop(pidfd)
        self._selector.unregister(pidfd)
        with suppress(KeyError):  # its launcher has ended before
            self._selector.unregister(connection)
        os.close(pidfd)
        _, status = os.waitpid(child, 0)
        with suppress(OSError), connection:
            connection.sendall(status.to_bytes(4, "big"))

    def _signalled(self, pidfd: int) -> None:
        if pidfd not in self._running:  # it has ended just now
            return
        child, connection = self._running[pidfd]
        numbers = b""
        with suppress(ConnectionError):
            numbers = connection.recv(16)
        for number in numbers:
            os.kill(child, number)
        if not numbers:  # the launcher was killed, and with it the program
            self._selector.unregister(connection)
            os.kill(child, signal.SIGKILL)


def _received(connection: socket.socket) -> Request | None:
    with suppress(OSError, ValueError, EOFError, TypeError):
        size, streams, _, _ = socket.recv_fds(connection, 4, 3)
        with connection.makefile("rb") as file:
            request: dict[str, Any] = marshal.loads(file.read(int.from_bytes(size, "big")))
        return Request(**request, streams=list(streams))
    return None


def load(modules: list[str]) -> None:
    """Import what the programs import; none of it may start a thread, which forks would not have."""
    for name in modules:
        importlib.import_module(name)
    if not modules or "moonbox" in modules:
        _load_moonbox()
    assert threading.active_count() == 1, threading.enumerate()


def _load_moonbox() -> None:
    names = [module.name for module in pkgutil.walk_packages(moonbox.__path__, "moonbox.")]
    for name in [*names, *(f"tests.mcp.{script}" for script in _SCRIPTS), *_LATE]:
        if not name.startswith(_ELSEWHERE):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(name)


def become(request: Request) -> None:
    """Be the program."""
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    for name in ("stdin", "stdout", "stderr"):  # what they stand for may be a pipe now
        setattr(sys, name, _opened(getattr(sys, name)))
    os.chdir(request.cwd)
    if not request.fits:
        os.execve(request.command[0], request.command, request.environment)
    os.environ.clear()
    os.environ.update(request.environment)
    _, first, *arguments = request.command
    if first == "-m":
        name, *arguments = arguments
        sys.path[0] = request.cwd
        sys.argv = [first, *arguments]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(first))  # noqa: PTH100, PTH120 - as Python itself does
        sys.argv = [first, *arguments]
        runpy.run_path(first, run_name="__main__")


def end(code: object) -> None:
    """End as an interpreter does, but leave what is loaded as it is: taking it apart costs more than most programs."""
    status = code if isinstance(code, int) else int(code is not None)
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120  # Python's own for this
    os._exit(status & 0xFF)


def _opened(stream: Any) -> Any:
    """The same stream as a new interpreter opens it."""
    file, is_error = stream.fileno(), stream is sys.stderr
    return open(
        file,
        stream.mode,
        buffering=1 if is_error or os.isatty(file) else -1,
        encoding=stream.encoding,
        errors=stream.errors,
        closefd=False,
    )


if __name__ == "__main__":
    load(sys.argv[2:])
    gc.collect()
    gc.freeze()
    server = Server(socket.socket(fileno=int(sys.argv[1])))
    request = server.forked()
    if request is not None:
        try:
            become(request)
        except SystemExit as error:
            end(error.code)
        end(None)
