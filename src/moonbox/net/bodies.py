"""Bodies of answers, read and decompressed up to a bound."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from moonbox.net.errors import NetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["ACCEPT_ENCODING", "ByteBudget", "is_compressed", "read_body", "unpack_gzip"]

ACCEPT_ENCODING = "gzip, deflate"
_STEP = 65_536


class ByteBudget:
    """A count of bytes that may not grow past its bound."""

    def __init__(self, most: int, what: str = "the response") -> None:
        self._most, self._what, self._used = most, what, 0

    def spend(self, size: int) -> None:
        """Raises NetError as soon as the total is larger than the bound."""
        self._used += size
        if self._used > self._most:
            raise NetError(f"{self._what} is larger than {self._most:,} bytes", code="too_large")


def is_compressed(encoding: str) -> bool:
    """Whether a Content-Encoding header says anything but identity."""
    return encoding.strip().lower() not in ("", "identity")


def read_body(chunks: Iterable[bytes], encoding: str, most: int) -> bytes:
    """The decoded body; raises NetError as soon as it is known to be larger than `most`."""
    encoding = encoding.strip().lower()
    body = bytearray()  # not a list of pieces: a server chooses how many there are, and each has its overhead
    budget = ByteBudget(most)
    pieces: Iterable[bytes] = chunks
    if is_compressed(encoding):
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise NetError(f"the response has the unexpected encoding {encoding[:40]!r}", code="protocol")
        pieces = _inflated(_bounded(chunks, most), encoding)
    for piece in pieces:
        budget.spend(len(piece))
        body += piece
    return bytes(body)


def unpack_gzip(data: bytes, most: int) -> bytes:
    """A gzip file unpacked; raises NetError when it is invalid or unpacks to more than `most` bytes."""
    return read_body([data], "gzip", most)


def _bounded(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Compressed data, which is hardly ever larger than what it unpacks to: parts that are empty must end too."""
    received = 0
    for chunk in chunks:
        yield chunk
        received += len(chunk)
        if received > most + most // 64 + _STEP:
            raise NetError(f"the response is larger than {most:,} bytes", code="too_large")


def _inflated(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Decompressed pieces of bounded size, so that the caller can stop a bomb in time."""
    try:
        decoder = None
        for chunk in chunks:
            rest = chunk
            while rest:
                if decoder is None or decoder.eof:
                    decoder = zlib.decompressobj(_window_bits(encoding, rest))
                piece = decoder.decompress(rest, _STEP)
                yield piece
                rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
                while not rest and not decoder.eof and len(piece) == _STEP:
                    piece = decoder.decompress(b"", _STEP)  # all input is taken in, but more output may wait
                    yield piece
        if decoder is not None and not decoder.eof:
            raise zlib.error("it ends too early")
    except zlib.error:
        raise NetError(f"the response is not valid {encoding} data", code="protocol") from None


def _window_bits(encoding: str, start: bytes) -> int:
    if encoding != "deflate":
        return 31
    # Some servers send "deflate" with the zlib header that the standard asks for, some without.
    return 15 if start[0] & 0x0F == 8 and (len(start) < 2 or (start[0] << 8 | start[1]) % 31 == 0) else -15
