"""A short-lived process that tries every layer on this machine and tells which hold."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from moonbox.worker.jail.config import LAYERS, OF_THE_ZYGOTE, JailConfig, PreparedJail
from moonbox.worker.jail.layers import Layer, Plan, attempt, enforce
from moonbox.worker.jail.libc import load_libc
from moonbox.worker.jail.process import describe_exit

MIB = 1024 * 1024
MEMORY, SLACK, CPU_SECONDS = 32 * MIB, 64 * MIB, 60
SECONDS = 20.0
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from moonbox.worker.jail.probe import run_probe; run_probe()"


def probe() -> tuple[Layer, ...]:
    """Every layer, tried in a process started for this alone, as a worker would be."""
    command = [sys.executable, "-I", "-S", "-c", BOOT, str(Path(__file__).parents[3])]
    try:
        done = subprocess.run(command, env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        told, ended = done.stdout, _ending(done.returncode, done.stderr)
    except subprocess.TimeoutExpired as late:
        told, ended = late.stdout or b"", f"it took longer than {SECONDS:g} seconds"
    complete = told[: told.rfind(b"\n") + 1].splitlines()
    layers = {layer.name: layer for layer in (Layer(*json.loads(line)) for line in complete)}
    why = f"the probe did not get to it: {ended}"
    return tuple(layers.get(name, Layer(name, False, why)) for name in LAYERS)


def run_probe() -> None:
    """The probing process: put each layer in force, try to get past it, tell the outcome."""
    channel = os.dup(1)

    def tell(layer: Layer) -> Layer:
        os.write(channel, json.dumps([layer.name, layer.active, layer.detail]).encode() + b"\n")
        return layer

    libc = load_libc()
    layers = tuple(attempt(name, partial(apply, libc)) for name, apply in OF_THE_ZYGOTE)
    layers = tuple(tell(verified(layer)) for layer in layers)  # now: what one gives up, another makes final
    prepared = PreparedJail(libc, layers)
    _go_on_in_a_fork()  # as a worker is one: processes that have left the machine's numbers start no threads
    config = JailConfig(
        prepared=prepared,
        keep_fds=(channel,),
        parent_pid=os.getppid(),
        memory=MEMORY,
        memory_slack=SLACK,
        cpu_seconds=CPU_SECONDS,
    )
    for layer in _one_by_one(config.before):
        if layer not in layers:  # those are the zygote's, and were tried there
            tell(verified(layer))
    second = ThreadPoolExecutor(1)  # its thread runs before the filter comes, as a worker's control thread does
    second.submit(int).result()
    for layer in _one_by_one(config.after):
        tell(second.submit(verified, verified(layer), "the second thread").result())
    os._exit(0)


def _go_on_in_a_fork() -> None:
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            os.kill(os.getpid(), os.WTERMSIG(status))
        os._exit(os.waitstatus_to_exitcode(status))


def _one_by_one(planned: Plan) -> Iterator[Layer]:
    for step in planned.steps:
        yield from enforce(Plan([step]))


def verified(layer: Layer, who: str = "the process") -> Layer:
    """The layer, inactive if it was put in force and yet does not hold for the thread that calls this."""
    escape = _escape(layer.name) if layer.active else None
    return Layer(layer.name, False, f"in force, yet {who} could {escape}") if escape else layer


def _escape(name: str) -> str | None:
    what, attempt = ATTEMPTS.get(name, ("", None))
    if attempt is None:
        return None
    try:
        attempt()
    except (OSError, MemoryError):
        return None
    return what


def _use_another_user() -> None:
    users = [int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    if sum(users) == 1:
        raise PermissionError


def _reach_the_machine() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("127.0.0.1", 9))


def _number_like_the_parents() -> None:
    """Raises where a forked process has another number for itself than we have for it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, str(os.getpid()).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    number = int(os.read(read, 20))
    os.close(read)
    os.close(write)
    if number != pid:
        raise ProcessLookupError


ATTEMPTS: dict[str, tuple[str, Callable[[], object]]] = {
    "user-namespace": ("use another user's id", _use_another_user),
    "network-namespace": ("reach the machine's network", _reach_the_machine),
    "pid-namespace": ("see processes by the machine's numbers", _number_like_the_parents),
    "separate-user": ("become root", lambda: os.setresuid(0, 0, 0)),
    "memory-limit": ("allocate more than its limit", lambda: bytearray(2 * (MEMORY + SLACK))),
    "landlock": ("list a folder", lambda: os.listdir("/")),  # noqa: PTH208 - pathlib may open files to load itself
    "seccomp": ("make a socket", socket.socket),
}


def _ending(returncode: int, complaint: bytes) -> str:
    ended = describe_exit(-returncode if returncode < 0 else returncode << 8)
    last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
    return f"{ended}: {last}" if last else ended
