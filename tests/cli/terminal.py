"""A real pseudo-terminal with a command in it: type, and wait for what appears."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.programs import program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SCRIPT = Path(__file__).with_name("in_terminal.py")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>78]|\r")


class Terminal:
    """`moonbox` in a terminal of its own."""

    def __init__(self, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], rows: int = 40, columns: int = 100):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            program(_SCRIPT, *args),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"},
        )
        os.close(slave)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0
        self.raw = ""
        """Everything that was written to the screen, escape codes and all."""

    @property
    def text(self) -> str:
        """The same without escape codes."""
        return _ESCAPES.sub("", self.raw)

    def type(self, text: str, *expected: str) -> None:
        """Type a text, and wait until each of these texts appears after it."""
        os.write(self._master, text.encode())
        for wanted in expected:
            self.expect(wanted)

    def expect(self, wanted: str, seconds: float = 100.0) -> str:
        """Wait until the text appears after what was expected before; what came until then."""
        deadline = time.monotonic() + seconds
        while (at := self.text.find(wanted, self._seen)) < 0:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{wanted!r} did not appear; on the screen: {self.text[self._seen :]!r}")
        before = self.text[self._seen : at]
        self._seen = at + len(wanted)
        return before

    def ended(self, seconds: float = 100.0) -> int:
        """Wait for the command's end; its status."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        return self._process.wait(max(0.1, deadline - time.monotonic()))

    @property
    def rest(self) -> str:
        """What came since the last text that was expected."""
        return self.text[self._seen :]

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side has closed it
            return False
        self.raw += self._decoder.decode(data)
        return bool(data)
