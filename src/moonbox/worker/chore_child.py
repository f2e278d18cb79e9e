"""A child that does chores, as the host sees it: what is sent to it, and what it answers, which is not trusted."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from moonbox.errors import ArgumentError, ToolError, UsageError
from moonbox.wording import one_line
from moonbox.worker.jail import Layer, describe_exit
from moonbox.worker.zygote import LENGTH

if TYPE_CHECKING:
    from moonbox.worker.control import ZygoteControl
    from moonbox.worker.sources import ProcessSource

MIB = 1024 * 1024
MOST_VALUES = 2_000_000
"""The most values of one answer: a value of one byte becomes an object of up to 64."""
_UNCOUNTED = 256 * 1024
"""Bytes of an answer that cannot hold so many that it matters."""
_LONGEST_WORDS = 2_000
_decode = msgspec.msgpack.Decoder(tuple[str, Any]).decode
_ERRORS = {"ArgumentError": ArgumentError, "ToolError": ToolError, "UsageError": UsageError}


class ChoreFailed(Exception):
    """A chore did not end well; the message is a phrase such as "took longer than 10 seconds"."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        self.reason, self.late = reason, late
        super().__init__(reason)


GONE = object()
"""Instead of an answer: the child had ended, or its state had, before it began."""


class _Channel(Protocol):
    """What is used of a socket."""

    def settimeout(self, seconds: float, /) -> None: ...
    def sendall(self, data: bytes, /) -> None: ...
    def recv(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


class ChoreChild:
    """A process that does chores, seen from the host, which does not trust it."""

    def __init__(
        self, channel: _Channel, source: ProcessSource | None = None, control: ZygoteControl | None = None
    ) -> None:
        self._channel, self._source, self._control = channel, source, control
        self.layers: tuple[Layer, ...] = ()

    def ask(self, request: bytes, seconds: float, most: int, memory: int) -> Any:
        deadline = time.monotonic() + seconds
        try:
            try:
                self._channel.settimeout(seconds)
                self._channel.sendall(LENGTH.pack(len(request)) + request)
                (length,) = LENGTH.unpack(self._exactly(LENGTH.size, deadline))
                if length > most:
                    raise ChoreFailed(f"answered with more than {most:,} bytes")
                status, value = decoded(self._exactly(length, deadline))
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

    def _exactly(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._channel.settimeout(max(0.001, deadline - time.monotonic()))
            part = self._channel.recv(min(size - len(parts), MIB))
            if not part:
                raise ConnectionResetError
            parts += part
        return bytes(parts)

    def end(self) -> str:
        """End the process, whatever it is doing; words for how it had ended before."""
        self._channel.close()
        source, self._source = self._source, None
        if source is not None and self._control is not None:
            return source.kill(self._control)
        return ""


class Pipes:
    """The standard streams of a process of its own, where there is no fork; it is killed when time is over."""

    def __init__(self, program: list[str]) -> None:
        self._process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_least_environment(), cwd=os.sep
        )
        self._timer: threading.Timer | None = None
        self._late = False

    def settimeout(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.daemon = True
        self._timer.start()

    def sendall(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def recv(self, size: int) -> bytes:
        assert self._process.stdout is not None
        part = os.read(self._process.stdout.fileno(), size)
        self._stop_timer()
        if not part and self._late:
            raise TimeoutError
        return part

    def close(self) -> None:
        self._stop_timer()
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()
        self._process.wait()

    def _kill(self) -> None:
        self._late = True
        self._process.kill()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _least_environment() -> dict[str, str]:
    """Windows starts no program without its own folder."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}


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
