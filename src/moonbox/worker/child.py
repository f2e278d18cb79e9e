"""The worker's side: serves one Repl over its socket until the host hangs up."""

from __future__ import annotations

import _thread
import marshal
import time
from _json import encode_basestring_ascii as _quote

from moonbox.languages.engine import EngineLost
from moonbox.worker import protocol
from moonbox.worker.protocol import HEADER, RUN_HEAD, SPENT, STOP

TYPE_CHECKING = False  # see protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any, Protocol

    from moonbox.languages.engine import Engine, EngineReport

    class Stream(Protocol):
        """What is used of the main socket."""

        def recv(self, size: int, /) -> bytes: ...
        def sendall(self, data: bytes, /) -> None: ...


_CHUNK = 65536
_FLUSH_SECONDS = 0.005
_FLUSH_BYTES = 8192
_RESCUE_SECONDS = 0.05


class HangUp(Exception):
    """The host closed the connection."""


class Child:
    """A worker's loop in Python. It is the engine's `Wire`: it sends calls and output, and receives answers."""

    def __init__(self, sock: Stream, control: _socket.socket, vm: Engine) -> None:
        self._sock = sock
        self._control = control
        self._vm = vm
        self._buffer = bytearray()
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._flushed = 0.0
        self._sending = _thread.allocate_lock()  # the control thread sends output too
        vm.connect(self)

    def watch(self, on_hang_up: Callable[[], None], start: Callable[..., Any] = _thread.start_new_thread) -> None:
        """Start the control thread, which interrupts a run on a STOP and calls `on_hang_up` when the host is gone.

        Returns when the thread runs: starting it needs system calls that the jail refuses. It is a bare thread by
        default, because `threading` costs every worker memory.
        """
        running = _thread.allocate_lock()
        running.acquire()
        start(self._watch, (on_hang_up, running.release))
        running.acquire()

    def _watch(self, on_hang_up: Callable[[], None], runs: Callable[[], None]) -> None:
        runs()
        data = b""
        while True:
            try:
                more = self._control.recv(STOP.size - len(data))
            except OSError:
                more = b""
            if not more:
                on_hang_up()
                return
            data += more
            if len(data) == STOP.size:
                number, reason = STOP.unpack(data)
                data = b""
                self._vm.interrupt(number, reason)
                self._rescue_output()

    def _rescue_output(self) -> None:
        """Send what was printed before the host kills a script that does not stop."""
        time.sleep(_RESCUE_SECONDS)
        try:  # noqa: SIM105 - a worker does without contextlib
            self._flush()
        except HangUp:
            pass

    def serve(self, greeting: bytes = b"") -> None:
        """Say READY, then answer frames until the host hangs up."""
        self.warm_up()
        self._send(protocol.READY, greeting)
        try:
            while True:
                self._answer()
        except (HangUp, EngineLost):
            return

    def warm_up(self) -> None:
        """Make an empty run whose answer is not sent: it copies the pages that a run writes to."""
        if self._vm.warm_up is None:
            return
        sock, self._sock = self._sock, _WarmUp(self._vm.warm_up)
        self._answer()
        self._sock = sock

    def _answer(self) -> None:
        kind, payload = self._receive()
        if kind == protocol.RUN:
            number, seed = RUN_HEAD.unpack_from(payload)
            self._run(payload[RUN_HEAD.size :], number, seed)
        elif (reply := _reply(self._vm, kind, payload)) is not None:
            self._send(*reply)

    def _run(self, source: bytes, number: int, seed: int) -> None:
        self._flushed = 0.0
        outcome = self._vm.run(source, number, seed)
        self._flush()
        kept = outcome.kept
        value_kept = kept == 1 and outcome.kind == "ok"
        if kept and not value_kept:
            self._send(protocol.KEPT, bytes((kept,)))
        if outcome.kind == "ok":
            operations = -1 if outcome.operations is None else outcome.operations
            spent = SPENT.pack(operations, outcome.memory, outcome.cpu, self._vm.output_cut)
            self._send(protocol.VALUE_KEPT if value_kept else protocol.VALUE, spent + outcome.values)
        else:
            self._send(protocol.DONE, _done(outcome, self._vm.output_cut))
        if outcome.last:
            raise HangUp

    # The engine's Wire

    def exchange(self, calls: bytes) -> list[tuple[int, bool, Any]] | None:
        self._flush()
        if calls:
            self._send(protocol.CALLS, calls)
        while True:
            kind, payload = self._receive()
            if kind == protocol.ANSWERS:
                answers: list[tuple[int, bool, Any]] = marshal.loads(payload)
                return answers
            if kind == protocol.INSPECT:
                self._send(protocol.INSPECTED, self._vm.inspect(*protocol.LOOK.unpack(payload)))
            if kind == protocol.HALT:
                self._vm.halt(payload[0])
                return None

    def cancel(self, ids: bytes) -> None:
        self._send(protocol.CANCEL, ids)

    def emit(self, text: bytes) -> None:
        self._pending.append(text)
        self._pending_size += len(text)
        now = time.monotonic()
        if self._pending_size >= _FLUSH_BYTES or now - self._flushed > _FLUSH_SECONDS:
            self._flush()
            self._flushed = now

    def _flush(self) -> None:
        if self._pending:
            with self._sending:
                pending, self._pending = self._pending, []
                self._pending_size = 0
                if pending:
                    self._send_now(protocol.OUTPUT, b"".join(pending))

    # Bytes

    def _send(self, kind: int, payload: bytes) -> None:
        with self._sending:
            self._send_now(kind, payload)

    def _send_now(self, kind: int, payload: bytes) -> None:
        try:
            self._sock.sendall(HEADER.pack(kind, len(payload)) + payload)
        except OSError:
            raise HangUp from None

    def _receive(self) -> tuple[int, bytes]:
        buffer = self._buffer
        while True:
            if len(buffer) >= HEADER.size:
                kind, length = HEADER.unpack_from(buffer)
                end = HEADER.size + length
                if len(buffer) >= end:
                    payload = bytes(memoryview(buffer)[HEADER.size : end])
                    del buffer[:end]
                    return kind, payload
                buffer += self._recv(min(end - len(buffer), 1 << 20))
            else:
                buffer += self._recv(_CHUNK)

    def _recv(self, size: int) -> bytes:
        try:
            data = self._sock.recv(size)
        except OSError:
            data = b""
        if not data:
            raise HangUp
        return data


class NativeChild:
    """A worker's native loop. It runs scripts and makes calls in C; every other request is answered here."""

    def __init__(self, native: Any, vm: Engine) -> None:
        self._native = native
        self._vm = vm

    def warm_up(self) -> None:
        self._native.warm_up()

    def serve(self, greeting: bytes = b"") -> None:
        native = self._native
        native.warm_up()
        native.send(protocol.READY, greeting)
        self.go_on(native.serve())

    def go_on(self, request: tuple[int, bytes] | None) -> None:
        """Answer this request and those after it until the host hangs up."""
        while request is not None:
            reply = _reply(self._vm, *request)
            if reply is not None:
                self._native.send(*reply)
            request = self._native.serve()


def _reply(vm: Engine, kind: int, payload: bytes) -> tuple[int, bytes] | None:
    """What answers a request that runs no script; None where nothing is sent."""
    if kind == protocol.CONFIGURE:
        apply_configuration(vm, marshal.loads(payload))
    elif kind == protocol.INPUTS:
        vm.set_inputs(marshal.loads(payload))
    elif kind == protocol.GLOBALS:
        return protocol.DEFINED, vm.globals()
    elif kind == protocol.CHECK:
        return protocol.CHECKED, _done(vm.check(payload), 0)
    return None


def apply_configuration(vm: Engine, config: dict[str, Any]) -> None:
    """Apply the parts of a configuration that are given."""
    if "limits" in config:
        vm.set_limits(config["limits"])
    if "environment" in config:
        vm.configure(config["environment"])


class _WarmUp:
    """Replaces the socket: asks for an empty run and drops the answer."""

    def __init__(self, source: bytes) -> None:
        self._run = protocol.pack_run(source, 0, 0)

    def recv(self, _: int) -> bytes:
        return self._run

    def sendall(self, _: bytes) -> None:
        return


def _done(outcome: EngineReport, cut: int) -> bytes:
    """JSON, written without the json module, which would copy many more pages of the zygote."""
    operations = b"null" if outcome.operations is None else b"%d" % outcome.operations
    message = _quote(outcome.message.decode("utf-8", "replace")) if outcome.message else '""'
    return (
        b'{"kind":"%s","limit":"%s","message":%s,"operations":%s,"memory":%d,"cpu":%f,"cut":%d,"values":%s,"frames":%s,"extra":%s}'
        % (
            outcome.kind.encode(),
            outcome.limit.encode(),
            message.encode(),
            operations,
            outcome.memory,
            outcome.cpu,
            cut,
            outcome.values,
            outcome.frames,
            outcome.extra,
        )
    )
