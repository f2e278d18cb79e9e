"""The launcher of `tests.programs`: it stands for a program that the server forks.

It is started for every one of them, and so imports only what is built in: `json`, `signal` and `socket` would take
longer than all of its work.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps in enumerations
import _socket
import marshal
import os
import sys

FORWARDED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)
STREAMS = (0, 1, 2)


def main(path: str, command: list[str]) -> None:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, FORWARDED)  # the request comes first on the connection
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(path)
    for number in FORWARDED:
        _signal.signal(number, lambda number, _: connection.send(bytes([number])) and None)
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer than the rest
    request = marshal.dumps({"command": command, "cwd": folder, "environment": dict(os.environ)})
    rights = b"".join(stream.to_bytes(4, sys.byteorder) for stream in STREAMS)
    size = len(request).to_bytes(4, "big")
    connection.sendmsg([size], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    connection.sendall(request)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, FORWARDED)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:  # pipes end with the program
        os.dup2(nothing, stream)
    status = connection.recv(4)
    if not status:
        os._exit(70)  # the server has ended
    code = os.waitstatus_to_exitcode(int.from_bytes(status, "big"))
    if code < 0:
        if -code in FORWARDED:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
