"""A short-lived process that tries every layer on this machine and tells which hold."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.worker.jail.config import INHERITED, JailConfig, Prepared
from moonbox.worker.jail.layers import Layer, Plan, attempt, enforce
from moonbox.worker.jail.libc import load_libc
from moonbox.worker.jail.process import describe_exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["probe", "run_probe"]

MIB = 1024 * 1024
MEMORY, SLACK, CPU_SECONDS = 32 * MIB, 64 * MIB, 60
SECONDS = 10.0
LAYERS = (
    *(name for name, _ in INHERITED),
    *("landlock", "descriptors", "parent-death", "memory-limit", "cpu-limit", "file-limits"),
    *("process-limit", "seccomp"),
)
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from moonbox.worker.jail.probe import run_probe; run_probe()"


def probe() -> tuple[Layer, ...]:
    """Every layer, tried in a process started for this alone, as a worker would be."""
    root = str(Path(__file__).parents[3])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BOOT, root, str(theirs.fileno()), str(os.getpid())],
            env={},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        ours.settimeout(SECONDS)
        try:
            told = _read_layers(ours)
        finally:
            complaint = _reaped(child)
    why = _ending(child.returncode, complaint)
    return tuple(told.get(name, Layer(name, False, why)) for name in LAYERS)


def run_probe() -> None:
    """The probing process: put each layer in force, try to get past it, tell the outcome."""
    told = socket.socket(fileno=int(sys.argv[2]))

    def tell(layer: Layer) -> Layer:
        told.sendall(json.dumps([layer.name, layer.active, layer.detail]).encode() + b"\n")
        return layer

    libc = load_libc()
    layers = tuple(tell(attempt(name, partial(apply, libc))) for name, apply in INHERITED)
    config = JailConfig(
        prepared=Prepared(libc, layers),
        keep_fds=(told.fileno(),),
        parent_pid=int(sys.argv[3]),
        memory=MEMORY,
        memory_slack=SLACK,
        cpu_seconds=CPU_SECONDS,
    )
    for layer in _one_by_one(config.before):
        tell(verified(layer))
    second = _SecondThread()
    for layer in _one_by_one(config.after):
        tell(second.tried(verified(layer)))
    os._exit(0)


def _one_by_one(planned: Plan) -> Iterator[Layer]:
    for step in planned.steps:
        yield from enforce(Plan([step]))


class _SecondThread:
    """A thread that runs before the filter comes, as a worker's control thread does, and then tries to get past it."""

    def __init__(self) -> None:
        self._go, self._done = threading.Event(), threading.Event()
        self._escape: str | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def tried(self, layer: Layer) -> Layer:
        if layer.name != "seccomp" or not layer.active:
            return layer
        self._go.set()
        self._done.wait()
        return (
            Layer(layer.name, False, f"in force, yet the second thread could {self._escape}") if self._escape else layer
        )

    def _run(self) -> None:
        self._go.wait()
        self._escape = _escape("seccomp")
        self._done.set()


def verified(layer: Layer) -> Layer:
    """The layer, inactive if it was put in force and yet does not hold."""
    escape = _escape(layer.name) if layer.active else None
    return Layer(layer.name, False, f"in force, yet the process could {escape}") if escape else layer


def _escape(name: str) -> str | None:
    what, attempt = ATTEMPTS.get(name, ("", None))
    if attempt is None:
        return None
    try:
        attempt()
    except (OSError, MemoryError):
        return None
    return what


ATTEMPTS: dict[str, tuple[str, Callable[[], object]]] = {
    "memory-limit": ("allocate more than its limit", lambda: bytearray(2 * (MEMORY + SLACK))),
    "landlock": ("list a folder", lambda: os.listdir("/")),  # noqa: PTH208 - pathlib may open files to load itself
    "seccomp": ("make a socket", socket.socket),
}


def _read_layers(channel: socket.socket) -> dict[str, Layer]:
    received = bytearray()
    with suppress(TimeoutError, ConnectionError):
        while part := channel.recv(65536):
            received += part
    complete = received[: received.rfind(b"\n") + 1].splitlines()
    return {layer.name: layer for layer in (Layer(*json.loads(line)) for line in complete)}


def _reaped(child: subprocess.Popen[bytes]) -> bytes:
    try:
        return child.communicate(timeout=1.0)[1]
    except subprocess.TimeoutExpired:
        child.kill()
        return child.communicate()[1]


def _ending(returncode: int, complaint: bytes) -> str:
    ended = describe_exit(-returncode if returncode < 0 else returncode << 8)
    last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
    return f"the probe did not get to it: {ended}" + (f": {last}" if last else "")
