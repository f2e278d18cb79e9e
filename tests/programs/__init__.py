"""Programs that tests start again and again, forked from a process that has loaded what they import.

    subprocess.run(program("-m", "moonbox", "run", "-e", "1"))    as with [sys.executable, "-m", "moonbox", …]

What is started is a small launcher. It gives its arguments, folder, environment and standard streams to a server that
has loaded everything, which forks; it passes signals on, and ends as the fork does. So a program costs its work and not
its imports, and is still a process of its own. Where the start itself is tested, a terminal, a tree of processes or
their descriptors, tests start `sys.executable`; on systems without pidfds this does so too.
"""

from __future__ import annotations

import atexit
import functools
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["program"]

_FOLDER = Path(__file__).parent


def program(*arguments: str | os.PathLike[str]) -> list[str]:
    """The command that does what the Python of the tests would do with these arguments."""
    command = [sys.executable, *(os.fspath(argument) for argument in arguments)]
    if not hasattr(os, "pidfd_open"):
        return command
    return [sys.executable, "-I", "-S", str(_FOLDER / "launch.py"), _server(), *command]


@functools.cache
def _server() -> str:
    """The socket of this process's server; who connects to it waits until it has loaded everything."""
    folder = tempfile.TemporaryDirectory(prefix="moonbox-tests-")
    path = str(Path(folder.name) / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.programs.server", str(listener.fileno())],
            stdin=subprocess.PIPE,  # it ends when this does
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            cwd=_FOLDER.parents[1],
        )

    def end() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return path
