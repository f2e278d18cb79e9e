"""Fuzzing of the C parts: random frames and scripts for native workers, and their frames, changed, for the host.

`python -m tests.costs.sanitize` builds the C parts with AddressSanitizer and UBSan and runs this with them. There is no
jail around these workers: its filter and its limit of address space leave the sanitizers no room.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import socket
import struct
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from math import inf, nan
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import msgpack

from moonbox import Limits
from moonbox.errors import WorkerError
from moonbox.worker import protocol
from moonbox.worker.encoding import Decoder, read_calls, read_cancelled, read_done, read_value
from tests.costs import inputs

if TYPE_CHECKING:
    from moonbox.worker.link import Link

__all__ = ["Finding", "Fuzzer", "main"]

_ATTACKS = Path(__file__).parents[1] / "attacks"
_ONLY_ITS_SOCKET = struct.pack("=5q", 436, 4, 2**32 - 1, 0, 0)  # a plan for the jail: close_range(4, all)
_OUT_OF_MEMORY = 71  # the exit status of a worker without memory for its answer
_SOON = 0.05  # seconds; then a script is stopped
_PATIENCE = 3.0  # seconds; then a worker is killed
_LIMITS = {
    **Limits(max_memory=4 << 20, max_output=5_000, max_string=1 << 18, max_array=20_000).to_dict(),
    "allow_nan": True,
}
# Where operations are counted, values are encoded in Lua: the C encoder would hardly be tried.
_OTHER_LIMITS: tuple[dict[str, int], ...] = (
    {"max_operations": 300_000},
    {"max_depth": 3},
    {"max_depth": 0, "max_string": 100, "max_array": 10},
    {},
)
_CONFIG: dict[str, Any] = {
    "tools": [[name, f"tools.{name}"] for name in ("f", "same", "sample", "fails")],
    "functions": [],
    "values": [["input", {"rows": [1, None, {"a": "b"}]}]],
    "features": ["coroutines", "metatables"],
}
_FRAMES = (  # of scripts: BODY stands for another one
    "BODY",
    "local v = tools.f() BODY",
    "return pcall(function() BODY end)",
    "return coroutine.wrap(function() BODY end)()",
    "return parallel{function() BODY end, function() return tools.f() end, function() BODY end}",
    "local x <close> = setmetatable({}, {__close = function() tools.f() end}) BODY",
    "for i = 1, 30 do pcall(function() BODY end) end",
    "local function f(n) return coroutine.wrap(function() if n == 0 then BODY end return f(n - 1)() end) end f(40)()",
)
_SCRIPTS = (
    "return tools.f()",
    "local v = tools.f() return v, tools.same{value = v}",
    "local v = tools.f() for i = 1, 9 do v[i] = nil v['k' .. i] = i end return v, #v",
    "print(('x'):rep(NUMBER)) return ('é\\255'):rep(NUMBER), {a = {1, nil}, [NUMBER] = 1}, json.null, NUMBER / 3",
    "local t = {} for i = 1, NUMBER do t[i] = {id = i, s = 'v' .. i, f = i / 8} end return t, tools.same{value = t}",
    "local co = coroutine.wrap(function() while true do coroutine.yield(tools.f()) end end) return co(), co(), co()",
    "while true do print(NUMBER) end",
    "while true do coroutine.wrap(function() coroutine.wrap(function() end)() end)() end",
    "error(tools.f())",
    "error(('\\xe2\\x82\\xff'):rep(NUMBER))",
    "return setmetatable({}, {__index = tools.f()}), json.encode(tools.f()), json.decode(tools.f())",
)
_NUMBERS = (0, 1, 2, 127, 255, 256, 499, 500, 4095, 8191, 8192, 16383, 16385, 65535, 65537)
_TAGS = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x91, 0x9F, 0xA0, 0xBF, *range(0xC0, 0xE1), 0xFF)


class Finding(Exception):
    """A worker ended as it must not, or the host failed otherwise than by a WorkerError."""


class Fuzzer:
    """Forks workers from one engine, as a zygote does. A seed decides what one of them is sent."""

    def __init__(self, native: Any) -> None:
        from moonbox.languages.engine import create_engine

        self._native = native
        self._engine = create_engine(native)
        assert self._engine.is_native
        self._engine.set_limits(_LIMITS)
        self._engine.configure(_CONFIG)
        self._corpus = *_SCRIPTS, *(path.read_text() for path in sorted(_ATTACKS.glob("*.lua")))
        self.runs = self.frames = self.killed = 0

    def session(self, seed: int) -> None:
        """One worker and its runs; then its frames, changed, for the host."""
        random = Random(seed)
        link, pid = self._fork()
        received: list[tuple[int, bytes]] = []
        try:
            for number in range(1, random.randint(2, 12)):
                self._run(random, link, number, received)
        except (WorkerError, EOFError):  # it has ended, or does not stop
            pass
        link.close()
        self._reap(pid, seed)
        for kind, payload in received[:30]:
            self._receive(random, kind, payload, seed)

    def _fork(self) -> tuple[Link, int]:
        from moonbox.worker.child import NativeChild
        from moonbox.worker.link import Link

        ours, theirs = socket.socketpair()
        pid = self._native.fork_worker(theirs.fileno(), os.getpid(), _ONLY_ITS_SOCKET, b"", b"")
        if type(pid) is tuple:  # this is the worker, and Python has something to do in it
            NativeChild(self._native, self._engine).go_on(pid[1])
            os._exit(0)
        theirs.close()
        return Link(ours, _Stops(self._native, pid), pid, native=True), pid

    def _run(self, random: Random, link: Link, number: int, received: list[tuple[int, bytes]]) -> None:
        self.runs += 1
        data = protocol.pack_run(self._script(random).encode("utf-8", "replace"), number, random.getrandbits(64))
        if random.random() < 0.05:
            data = protocol.frame(protocol.GLOBALS, b"") + data
        if random.random() < 0.05:
            data = protocol.pack(protocol.CONFIGURE, {"limits": {**_LIMITS, **random.choice(_OTHER_LIMITS)}}) + data
        if random.random() < 0.1:
            given = msgpack.encode([["rows", _value(random, 4)], ["print", _value(random, 1)]])
            data = protocol.frame(protocol.INPUTS, given if random.random() < 0.9 else _changed(random, given)) + data
        if random.random() < 0.03:  # as no host of ours does
            data = random.choice((_answers(random, [1]) + data, data[:12]))
        stops, last = random.choice((0, 0, 0, 1, 3, 100)), 0
        while True:
            if stops and random.random() < 0.4:
                for _ in range(stops):
                    link.interrupt(number, random.choice((1, 2, 3, 4, 9)))
            frame = self._exchange(random, link, data, number)
            received.append(frame)
            kind, data = frame[0], b""
            if kind in (protocol.VALUE, protocol.VALUE_KEPT) or kind == protocol.DONE:
                return
            if kind == protocol.CALLS and random.random() < 0.05:
                data = protocol.frame(protocol.HALT, random.choice((b"", b"\1", b"\2", b"\xff")))
            elif kind == protocol.CALLS:
                numbers = [call[0] for call in read_calls(frame[1], Decoder(1 << 20, 70, allow_nan=True), last)]
                last = numbers[-1]
                data = _answers(random, numbers)
            self.frames += 1

    def _exchange(self, random: Random, link: Link, data: bytes, number: int) -> tuple[int, bytes]:
        """Send it, in two pieces now and then; the frame that comes. A script without end is stopped soon."""
        now = time.monotonic()
        if len(data) > 1 and random.random() < 0.2:
            cut = random.randrange(1, len(data))
            link.send(data[:cut], now + _PATIENCE)
            data = data[cut:]
        frame = link.exchange(data, now + _SOON, now + _PATIENCE)
        if frame is None:
            link.interrupt(number, 1)
            frame = link.receive(now + 4 * _SOON)
        if frame is None:  # the worker waits too, for the rest of what was changed, or does not stop
            raise EOFError
        return frame

    def _script(self, random: Random) -> str:
        if random.random() < 0.1:
            return inputs.lua(random)(random.choice((20, 200, 2000)))
        body = random.choice(self._corpus if random.random() < 0.5 else _SCRIPTS)
        for _ in range(random.choice((0, 0, 0, 1, 1, 3))):
            place, other = random.randrange(len(body) + 1), random.choice(self._corpus)
            start = random.randrange(len(other))
            body = body[:place] + other[start : start + random.randint(1, 40)] + body[place + random.randint(0, 20) :]
        script = random.choice(_FRAMES).replace("BODY", f"{body}\n") if random.random() < 0.6 else body
        return re.sub("NUMBER", lambda _: str(random.choice(_NUMBERS)), script)

    def _reap(self, pid: int, seed: int) -> None:
        fd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(_PATIENCE * 1000):
            self.killed += 1
            os.kill(pid, signal.SIGKILL)
        os.close(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in (0, _OUT_OF_MEMORY, -signal.SIGKILL):
            raise Finding(f"seed {seed}: the worker ended with {code}")

    def _receive(self, random: Random, kind: int, payload: bytes, seed: int) -> None:
        """A frame of a worker, changed, reaches the host: it is read, or refused by a WorkerError."""
        from moonbox.worker.link import Link

        ours, theirs = socket.socketpair()
        link = Link(ours, _Stops(self._native, 0))
        link.greeting = b""
        data = protocol.frame(kind, _changed(random, payload[:50_000]))
        self.frames += 1
        try:
            with theirs:
                theirs.sendall(data if random.random() < 0.8 else _changed(random, data))
            got = link.exchange(b"", time.monotonic() + _PATIENCE, None)
            if got is not None:
                _read(*got)
        except WorkerError:
            pass
        except Exception as problem:
            raise Finding(f"seed {seed}: the host raised {problem!r} for {data[:200]!r}") from problem
        finally:
            link.close()


class _Stops:
    """Control of a worker that ends by itself."""

    def __init__(self, native: Any, pid: int) -> None:
        self._native = native
        self._pid = pid

    def interrupt(self, number: int, reason: int) -> None:
        self._native.stop(self._pid, number, reason)  # its id is not another's: it is waited for later

    def freeze(self, memory: int) -> bool:
        return False

    def thaw(self) -> None: ...

    def release(self) -> None: ...


def _read(kind: int, payload: bytes) -> None:
    decoder = Decoder(10_000, 70, allow_nan=True)
    if kind == protocol.CALLS:
        read_calls(payload, decoder, 0)
    elif kind in (protocol.VALUE, protocol.VALUE_KEPT):
        read_value(payload, decoder)
    elif kind == protocol.CANCEL:
        read_cancelled(payload, decoder)
    else:
        read_done(payload, decoder)


def _answers(random: Random, numbers: list[int]) -> bytes:
    """Frames that answer these calls; where they are changed, the run is ended too, in case it waits on."""
    data = msgpack.encode([[number, random.random() < 0.8, _value(random, 4)] for number in numbers])
    if random.random() < 0.5:
        return protocol.frame(protocol.ANSWERS, data)
    frame = protocol.frame(protocol.ANSWERS, _changed(random, data))
    return (frame if random.random() < 0.97 else _changed(random, frame)) + protocol.frame(protocol.HALT, b"\2")


def _value(random: Random, depth: int) -> Any:
    count = random.choice((0, 1, 2, 3, 15, 16, 40) if depth > 2 else (0, 1, 2))
    if depth and random.random() < 0.3:
        return [_value(random, depth - 1) for _ in range(count)]
    if depth and random.random() < 0.3:
        keys = ["a", "id", "", "x" * 31, "x" * 32, "é", -1, 1, 2**40, *range(40)]
        return {random.choice(keys): _value(random, depth - 1) for _ in range(count)}
    number = random.choice(_NUMBERS)
    numbers = (number, -number, number / 7, 1e300, -0.0, 5e-324, inf, nan, 2**63 - 1, -(2**63))
    texts = ("x" * number, b"\xff" * number, "[1, null, {", '{"a": [null, 1.5]}')
    return random.choice((None, None, True, False, *numbers, *texts, [None] * (number % 3000)))


def _changed(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4, 16)) if changed else 0):
        place, way = random.randrange(len(changed)), random.random()
        if way < 0.5:
            changed[place] = random.choice(_TAGS) if random.random() < 0.6 else random.randrange(256)
        elif way < 0.7:
            changed[place:place] = changed[place : place + random.randint(1, 60)]
        elif way < 0.85 and len(changed) > 60:
            del changed[place : place + random.randint(1, 20)]
        else:
            changed[place : place + 5] = bytes((random.choice(_TAGS),)) + random.choice((b"\xff", b"\0", b"\x7f")) * 4
    return bytes(changed[: random.randrange(len(changed))] if changed and random.random() < 0.1 else changed)


def _load(folder: Path | None, name: str) -> Any:
    """That C part, as it is installed or from another folder."""
    if folder is not None:
        (path,) = folder.glob(f"worker/{name}.*.so")
        spec = spec_from_file_location(f"moonbox.worker.{name}", path)
        assert spec is not None
        module = sys.modules[spec.name] = module_from_spec(spec)
        assert spec.loader is not None
        spec.loader.exec_module(module)
    return __import__(f"moonbox.worker.{name}", fromlist=["REVISION"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--sessions", type=int, default=1 << 62, help="at most so many workers")
    parser.add_argument("--built", type=Path, default=None, help="the folder of the C parts; else the installed ones")
    options = parser.parse_args(arguments)
    _load(options.built, "_wire")
    fuzzer = Fuzzer(_load(options.built, "_native"))
    deadline, seed = time.monotonic() + options.minutes * 60, options.seed
    while time.monotonic() < deadline and seed < options.seed + options.sessions:
        try:
            fuzzer.session(seed)
        except Finding as finding:
            print(f"{finding}\n  again: --seed {seed} --sessions 1", flush=True)
            return 1
        seed += 1
    print(
        f"{seed - options.seed:,} workers, {fuzzer.runs:,} runs, {fuzzer.frames:,} frames; {fuzzer.killed} did not stop"
        " and were killed; no findings"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
