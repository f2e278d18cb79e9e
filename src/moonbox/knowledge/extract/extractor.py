"""The host's side of extraction: plain text is read here, HTML and PDF in a jailed process."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from moonbox.closing import Closing
from moonbox.knowledge.extract.formats import (
    Answer,
    Extracted,
    Unreadable,
    declared_charset,
    decode,
    read_markdown,
    read_rst,
)
from moonbox.worker.jail import describe_exit

if TYPE_CHECKING:
    from moonbox.knowledge.extract.formats import Kind

SECONDS = 20.0
START_SECONDS = 30.0
MAX_ANSWER = 100_000_000
_LENGTH = struct.Struct("<I")
_PARSERS = {"html": ("html-to-markdown", "web"), "pdf": ("pypdf", "pdf")}
"""The package that reads each kind of file, and the extra that brings it."""
_BOOT = "import sys; sys.path += sys.argv[4:]; from moonbox.knowledge.extract.reader import main; main()"


class Extractor(Closing):
    """Takes the text out of files. Use it as a context manager: it may hold processes.

    HTML and PDF files are hostile input: they may make a parser run forever, fill the memory, or do worse. Parsers
    therefore run in jailed processes, which are replaced when they take too long.
    """

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._readers: dict[str, _Reader] = {}

    def extract(self, data: bytes, kind: Kind, charset: str | None = None) -> Extracted:
        """The text of a file's bytes; raises Unreadable."""
        if kind == "pdf" or data.startswith(b"%PDF-"):
            return self._read("pdf", data)
        if kind == "html":
            text = decode(data, charset or declared_charset(data))
            return self._read("html", text.encode("utf-8", "replace"))
        text = decode(data, charset)
        if kind == "markdown":
            return read_markdown(text)
        return read_rst(text) if kind == "rst" else Extracted(text, markdown=False)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _read(self, kind: str, data: bytes) -> Extracted:
        reader = self._readers.get(kind)
        if reader is None:
            reader = self._readers[kind] = _Reader(kind, _folder_of(kind))
        try:
            answer = reader.ask(data, self._seconds)
        except BaseException:
            del self._readers[kind]
            reader.close()
            raise
        if answer.extracted is None:
            raise Unreadable(answer.error[:500], expected=answer.expected)
        return answer.extracted


class _Reader:
    """A reading process, seen from the host."""

    def __init__(self, kind: str, parser: str) -> None:
        root = str(Path(__file__).parents[3])
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, kind, str(theirs.fileno()), str(os.getpid()), root, parser],
                env={},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._fresh = True

    def ask(self, data: bytes, seconds: float) -> Answer:
        try:
            if self._fresh:
                self._receive(1, time.monotonic() + START_SECONDS)  # one byte when it is ready
                self._fresh = False
            deadline = time.monotonic() + seconds
            self._socket.settimeout(deadline - time.monotonic())
            self._socket.sendall(_LENGTH.pack(len(data)) + data)
            (length,) = _LENGTH.unpack(self._receive(_LENGTH.size, deadline))
            if length > MAX_ANSWER:
                raise Unreadable(f"the file has more than {MAX_ANSWER:,} bytes of text")
            return msgspec.convert(json.loads(self._receive(length, deadline)), Answer)  # the process is not trusted
        except TimeoutError:
            raise Unreadable(f"reading the file took longer than {seconds:g} s") from None
        except (OSError, ValueError, RecursionError):
            raise Unreadable(f"the reading process failed: {self._exit()}") from None

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _receive(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            part = self._socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionResetError
            parts += part
        return bytes(parts)

    def _exit(self) -> str:
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "it sent an invalid answer"
        return describe_exit(-code if code < 0 else code << 8)


def _folder_of(kind: str) -> str:
    """The folder in which the parser is installed."""
    package, extra = _PARSERS[kind]
    found = importlib.util.find_spec(package.replace("-", "_"))
    if found is None or found.origin is None:
        message = f"{kind.upper()} files need the package {package}: pip install 'moonbox[{extra}]'"
        raise Unreadable(message, expected=True)
    return str(Path(found.origin).parents[1])
