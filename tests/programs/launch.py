"""The launcher of `tests.programs`: it stands for a program that the server forks."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
STREAMS = (0, 1, 2)


def main(path: str, command: list[str]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # the request comes first on the connection
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    for number in FORWARDED:
        signal.signal(number, lambda number, _: connection.send(bytes([number])) and None)
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer than the rest
    request = json.dumps({"command": command, "cwd": folder, "environment": dict(os.environ)}).encode()
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], STREAMS)
    connection.sendall(request)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:  # pipes end with the program
        os.dup2(nothing, stream)
    status = connection.recv(4)
    if not status:
        os._exit(70)  # the server has ended
    code = os.waitstatus_to_exitcode(int.from_bytes(status, "big"))
    if code < 0:
        if -code in FORWARDED:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
