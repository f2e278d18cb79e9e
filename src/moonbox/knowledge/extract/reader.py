"""The reading process: parses HTML or PDF inside the jail, one file after the other."""

from __future__ import annotations

import importlib
import json
import socket
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moonbox.knowledge.extract.html import read_html
from moonbox.knowledge.extract.kinds import Extracted, Unreadable
from moonbox.worker.jail import JailConfig, after_threads, before_threads, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main"]

MEMORY = 512 * 1024 * 1024
_LENGTH = struct.Struct("<I")
# Nothing can be imported inside the jail, and codecs are imported when they are first asked for.
_CODECS = (
    "ascii", "charmap", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_7",
    "unicode_escape", "raw_unicode_escape", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "cp437", "cp850", "cp932", "cp936", "cp949", "cp950", "mac_roman", "mac_cyrillic", "mac_greek",
    "iso8859_1", "iso8859_2", "iso8859_15", "gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "euc_kr",
    "shift_jis", "iso2022_jp", "johab",
)  # fmt: skip


def main() -> None:
    """Serve the host until it hangs up. Arguments: kind, the socket's number, the host's process id."""
    kind, fd, host = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    read = _prepared(kind)
    connection = socket.socket(fileno=fd)
    config = JailConfig(keep_fds=(fd,), parent_pid=host, memory=MEMORY, prepared=prepare())
    before_threads(config)
    after_threads(config)
    connection.sendall(b"\1")
    while (data := _receive(connection)) is not None:
        answer, fit = _answer(read, data)
        del data
        connection.sendall(_LENGTH.pack(len(answer)) + answer)
        if not fit:
            return


def _prepared(kind: str) -> Callable[[bytes], Extracted]:
    for name in _CODECS:
        with suppress(ImportError, LookupError):
            importlib.import_module(f"encodings.{name}")
            "".encode(name)
    if kind == "html":
        return lambda data: read_html(data.decode())
    from moonbox.knowledge.extract import pdf

    pdf.warm_up()
    return pdf.read_pdf


def _answer(read: Callable[[bytes], Extracted], data: bytes) -> tuple[bytes, bool]:
    """The answer, and whether this process is fit for another file."""
    fit, told = True, {}
    try:
        found = read(data)
        told = {
            "text": found.text,
            "title": found.title,
            "author": found.author,
            "updated_at": found.updated_at,
            "markdown": found.markdown,
        }
        return json.dumps(told).encode(), fit
    except Unreadable as error:
        told = {"error": str(error), "expected": error.expected}
    except (MemoryError, RecursionError) as error:
        what = "memory" if isinstance(error, MemoryError) else "nesting"
        told, fit = {"error": f"it takes more {what} than is allowed to read it"}, False
    except Exception as error:  # noqa: BLE001 - parsers fail in every way on damaged files; the host is told
        told, fit = {"error": f"it is damaged ({type(error).__name__}: {error})"[:300]}, False
    return json.dumps(told).encode(), fit


def _receive(connection: socket.socket) -> bytes | None:
    head = _exactly(connection, _LENGTH.size)
    return None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part: Any = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
