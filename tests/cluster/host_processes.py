"""Hosts of workers in processes of their own, which tests can kill: a cluster without Ray."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress

from moonbox.cluster.source import HostConnection
from moonbox.cluster.wire import HostLost
from tests.faults.processes import descendants

_PROGRAM = """
import json, sys
from moonbox.cluster.host import NodeHost
host = NodeHost("127.0.0.1", int(sys.argv[1]))
address, token, _ = host.where()
print(json.dumps([address, token.hex()]), flush=True)
sys.stdin.read()
"""


class Network:
    """Between a front end and a host; it can be cut, so that nothing arrives any more and no connection is closed."""

    def __init__(self, host: tuple[str, int]) -> None:
        self._host = host
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._socks: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        """What was sent meanwhile arrives now."""
        self._whole.set()

    def close(self) -> None:
        self.mend()
        for sock in (self._listener, *self._socks):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._host)
                self._socks += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._whole.wait()
                target.sendall(data)
        self._whole.wait()
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


class HostProcesses:
    """Knows its hosts as a `moonbox.cluster.membership.Membership` knows those of a Ray cluster."""

    def __init__(self, count: int, silence: float = 60.0) -> None:
        self.silence = silence
        self.networks: dict[str, Network] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._connections: list[HostConnection] = []
        for _ in range(count):
            self.add()

    def add(self, places: int = 0) -> None:
        """Start another host, which takes so many workers at most."""
        command = [sys.executable, "-c", _PROGRAM, str(places)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        address, token = json.loads(process.stdout.readline())
        name = str(process.pid)
        self._processes[name] = process
        network = self.networks[name] = Network(tuple(address))
        self._connections.append(HostConnection(name, network.address, bytes.fromhex(token), self.silence))

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
        for network in self.networks.values():
            network.close()
        for process in self._processes.values():
            process.kill()
            process.communicate()
