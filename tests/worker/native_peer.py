"""Drives the native part of a worker in this process: answers from standard input, what it sent to standard output.

Reads a JSON list of answers in hex, runs one script for each that makes a call, and prints a list of [frame, payload].
"""

from __future__ import annotations

import json
import os
import socket
import sys
from importlib import import_module
from typing import Any

from moonbox import Limits
from moonbox.languages.engine import create_engine
from moonbox.worker import protocol
from moonbox.worker.child import NativeChild

_native: Any = import_module("moonbox.worker._native")  # there only where it was built

SOURCE = b"local value = tools.f() return value"


def main() -> None:
    answers = [bytes.fromhex(answer) for answer in json.load(sys.stdin)]
    vm = create_engine(_native)
    assert vm.is_native
    child = NativeChild(_native, vm)
    vm.set_limits({**Limits().to_dict(), "max_memory": 8 << 20, "allow_nan": True})
    vm.configure({"tools": [["f", "tools.f"]], "functions": [], "values": [], "features": []})
    results = []
    for number, answer in enumerate(answers, 1):
        ours, theirs = socket.socketpair()
        ours.sendall(protocol.pack_run(SOURCE, number, 1))
        ours.sendall(protocol.frame(protocol.ANSWERS, answer))
        ours.sendall(protocol.frame(protocol.HALT, bytes((2,))))  # in case the script waits on
        ours.shutdown(socket.SHUT_WR)
        _native.attach(theirs.fileno())
        while _native.serve() is not None:
            pass
        theirs.close()
        with ours.makefile("rb") as sent:
            frames = []
            while head := sent.read(protocol.HEADER.size):
                kind, length = protocol.HEADER.unpack(head)
                frames.append((kind, sent.read(length)))
        kind, payload = frames[-1]
        if kind in (protocol.VALUE, protocol.VALUE_KEPT):
            kind, payload = protocol.VALUE, payload[protocol.SPENT.size :]
        results.append([kind, payload.decode()])
        ours.close()
    del child
    print(json.dumps(results), flush=True)
    os._exit(0)


main()
