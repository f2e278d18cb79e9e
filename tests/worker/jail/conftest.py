"""Zygotes for the tests of the jail: one as whoever runs the tests, one as nobody where root does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lupa
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATHS = [str(ROOT), str(ROOT / "src"), str(Path(lupa.__file__).parents[1])]
MIB = 1024 * 1024
CONFIG = {"memory": 96 * MIB, "memory_slack": 64 * MIB}
NOBODY = 65534


@dataclass
class Ending:
    """What a worker told, and its wait status."""

    value: object
    layers: dict[str, tuple[bool, str]]
    status: int


class Worker:
    """A jailed worker that is running."""

    def __init__(self, zygote: Zygote, pid: int, main: socket.socket, control: socket.socket) -> None:
        self.zygote, self.pid, self.main, self.control = zygote, pid, main, control
        self.lines = main.makefile("rb")

    def hear(self) -> Any:
        line = self.lines.readline()
        return json.loads(line) if line else None

    def end(self) -> Ending:
        told = self.hear() or {}
        status = self.zygote.ask({"wait": self.pid})
        for thing in (self.lines, self.main, self.control):
            thing.close()
        return Ending(told.get("value"), {name: (on, why) for name, on, why in told.get("layers", ())}, status)


class Zygote:
    """The program of jail_zygote.py."""

    def __init__(self, uid: int = -1) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(20)
        command = [sys.executable, "-I", "-S", str(HERE / "jail_zygote.py"), str(theirs.fileno()), str(uid), *PATHS]
        self.process = subprocess.Popen(command, env={}, pass_fds=[theirs.fileno()])
        theirs.close()

    def ask(self, request: dict[str, Any], fds: tuple[int, ...] = ()) -> int:
        socket.send_fds(self.socket, [json.dumps(request).encode()], list(fds))
        return json.loads(self.socket.recv(65536))

    def start(self, attempt, *arguments, where="main thread", filter=True, parent_pid=None, **config) -> Worker:
        main, their_main = socket.socketpair()
        control, their_control = socket.socketpair()
        main.settimeout(20)
        request = {"attempt": attempt, "arguments": arguments, "where": where, "filter": filter}
        request["config"] = CONFIG | config
        if parent_pid is not None:
            request["parent_pid"] = parent_pid
        with their_main, their_control:
            pid = self.ask(request, (their_main.fileno(), their_control.fileno()))
        return Worker(self, pid, main, control)

    def run(self, attempt, *arguments, **options) -> Ending:
        return self.start(attempt, *arguments, **options).end()

    def close(self) -> None:
        self.socket.close()
        self.process.wait(20)


@pytest.fixture(scope="session")
def zygote():
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture(scope="session")
def nobody():
    """A zygote without any privilege, for what root is exempt from."""
    zygote = Zygote(NOBODY if os.getuid() == 0 else -1)
    yield zygote
    zygote.close()


@pytest.fixture
def fresh_zygote():
    """One that the test may kill."""
    zygote = Zygote()
    yield zygote
    zygote.process.kill()
    zygote.close()
