"""Programs that tests start again and again, forked from a process that has loaded what they import.

    subprocess.run(program("-m", "moonbox", "run", "-e", "1"))    as with [sys.executable, "-m", "moonbox", …]

    with Programs("litellm", python=another) as programs:         the same with another Python and its packages
        subprocess.run(programs.command("example.py"))

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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Programs", "program"]

_FOLDER = Path(__file__).parent


def program(*arguments: str | os.PathLike[str]) -> list[str]:
    """The command that does what the Python of the tests would do with these arguments."""
    return _programs().command(*arguments)


@functools.cache
def _programs() -> Programs:
    programs = Programs()
    atexit.register(programs.close)
    return programs


class Programs:
    """A server that has loaded these modules, and the commands that have it fork.

    `moonbox` stands for all that moonbox's own programs import, which is what it loads if it is told nothing.
    """

    def __init__(
        self,
        *modules: str,
        python: str | os.PathLike[str] = sys.executable,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Who connects to its socket waits until it has loaded everything."""
        self._start = [os.fspath(python), *options]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if not hasattr(os, "pidfd_open"):
            return
        self._folder = tempfile.TemporaryDirectory(prefix="moonbox-tests-")
        self._socket = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._socket)
            listener.listen(64)
            self._process = subprocess.Popen(
                [*self._start, "-m", "tests.programs.server", str(listener.fileno()), *modules],
                stdin=subprocess.PIPE,  # it ends when this does
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                cwd=_FOLDER.parents[1],
                env=None if env is None else dict(env),
            )

    def command(self, *arguments: str | os.PathLike[str]) -> list[str]:
        """The command that does what this Python, with its options, would do with these arguments."""
        if self._folder is None:
            return [*self._start, *(os.fspath(argument) for argument in arguments)]
        launcher = [sys.executable, "-I", "-S", str(_FOLDER / "launch.py"), self._socket]
        return [*launcher, self._start[0], *(os.fspath(argument) for argument in arguments)]

    def close(self) -> None:
        if self._folder is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.terminate()  # in case that a fork of this process has the other end of the pipe too
            self._process.wait()
            self._folder.cleanup()

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
