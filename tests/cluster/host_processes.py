"""Hosts of workers in processes of their own, which tests can kill: a cluster without Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

from moonbox.cluster.source import HostConnection
from moonbox.cluster.wire import HostLost

_PROGRAM = """
import json, sys
from moonbox.cluster.host import NodeHost
host = NodeHost("127.0.0.1")
address, token = host.where()
print(json.dumps([address, token.hex()]), flush=True)
sys.stdin.read()
"""


class HostProcesses:
    """Knows its hosts as a `moonbox.cluster.membership.Membership` knows those of a Ray cluster."""

    def __init__(self, count: int) -> None:
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
        self._connections.append(HostConnection(name, tuple(address), bytes.fromhex(token)))

    def busiest(self) -> str:
        """The node with the most workers."""
        for connection in self.connections():
            with suppress(HostLost):
                connection.ask("status")
        return max(self.connections(), key=lambda each: each.status["workers"]).node

    def kill(self, node: str) -> None:
        """As if the machine had failed."""
        os.kill(self._processes[node].pid, signal.SIGKILL)

    def connections(self) -> list[HostConnection]:
        return [connection for connection in self._connections if not connection.lost]

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
