"""Hosts of workers in processes of their own, which tests can kill: a cluster without Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress

from moonbox.cluster.source import HostConnection
from moonbox.cluster.wire import HostLost
from tests.faults.processes import descendants

_PROGRAM = """
import json, sys
from moonbox.cluster.host import NodeHost
host = NodeHost("127.0.0.1")
address, token, _ = host.where()
print(json.dumps([address, token.hex()]), flush=True)
sys.stdin.read()
"""


class HostProcesses:
    """Knows its hosts as a `moonbox.cluster.membership.Membership` knows those of a Ray cluster."""

    def __init__(self, count: int, silence: float = 60.0) -> None:
        self.silence = silence
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._connections: list[HostConnection] = []
        for _ in range(count):
            self.add()

    def add(self) -> None:
        """Start another host."""
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        address, token = json.loads(process.stdout.readline())
        name = str(process.pid)
        self._processes[name] = process
        self._connections.append(HostConnection(name, tuple(address), bytes.fromhex(token), self.silence))

    def busiest(self) -> str:
        """The node with the most workers."""
        for connection in self.connections():
            with suppress(HostLost):
                connection.refresh()
        return max(self.connections(), key=lambda each: each.status.workers).node

    def kill(self, node: str) -> None:
        """As if the machine had failed."""
        os.kill(self._processes[node].pid, signal.SIGKILL)

    def stop(self, node: str) -> list[int]:
        """As if the machine hung: its host, its zygotes and its workers. Their process ids."""
        pids = [self._processes[node].pid, *descendants(self._processes[node].pid)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    def go_on(self, pids: list[int]) -> None:
        """The machine hangs no more."""
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def connections(self) -> list[HostConnection]:
        return [connection for connection in self._connections if not connection.lost]

    def refusal(self) -> str:
        return ""

    def advice(self) -> str:
        return "add a node, or close a Repl"

    def one_waits(self) -> nullcontext[None]:
        return nullcontext()

    def close(self) -> None:
        """A Sandbox ends; others may use the same hosts."""

    def __enter__(self) -> HostProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes.values():
            process.kill()
            process.communicate()
