"""Bodies of responses: decompressed and read up to a bound, then text, bytes and JSON."""

from __future__ import annotations

import json
import math
import zlib
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError
from moonbox.values import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["ACCEPT_ENCODING", "parse_json", "read_body"]

ACCEPT_ENCODING = "gzip, deflate"
_STEP = 65_536
_MOST_VALUES = 1_000_000


def read_body(chunks: Iterable[bytes], encoding: str, most: int) -> bytes:
    """The decoded body; raises ToolError as soon as it is known to be larger than `most`."""
    decoded: list[bytes] = []
    size = 0
    for piece in _decoded(chunks, encoding.strip().lower()):
        size += len(piece)
        if size > most:
            raise ToolError(f"the response is larger than {most:,} bytes", code="too_large")
        decoded.append(piece)
    return b"".join(decoded)


def parse_json(data: bytes) -> Any:
    """The value, or None when the body is not JSON, is nested too deeply or holds too many values."""
    if sum(map(data.count, (b"[", b"{", b","))) > _MOST_VALUES:  # each would take far more memory than it has bytes
        return None
    try:
        return json.loads(data, parse_int=_whole, parse_float=_fraction, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _whole(digits: str) -> int | float | str:
    """Scripts have 64-bit integers; larger ones become floats, as most JSON readers do."""
    if len(digits) <= 20 and INT64_MIN <= int(digits) <= INT64_MAX:
        return int(digits)
    return _fraction(digits)


def _fraction(digits: str) -> float | str:
    """What no float can hold stays text, because infinity is not a JSON value."""
    value = float(digits)
    return value if math.isfinite(value) else digits


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _decoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    if encoding in ("", "identity"):
        yield from chunks
    elif encoding in ("gzip", "x-gzip", "deflate"):
        try:
            yield from _inflated(chunks, zipped=encoding != "deflate")
        except zlib.error:
            raise ToolError(f"the response is not valid {encoding} data", code="protocol") from None
    else:
        raise ToolError(f"the response is encoded as {encoding[:40]!r}, which was not asked for", code="protocol")


def _inflated(chunks: Iterable[bytes], *, zipped: bool) -> Iterator[bytes]:
    """Decompressed pieces of bounded size, so that the caller can stop a bomb in time."""
    decoder = None
    for chunk in chunks:
        rest = chunk
        while rest:
            if decoder is None or decoder.eof:
                decoder = zlib.decompressobj(31 if zipped else _deflate_kind(rest))
            piece = decoder.decompress(rest, _STEP)
            yield piece
            rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            while not rest and not decoder.eof and len(piece) == _STEP:
                piece = decoder.decompress(b"", _STEP)  # all input is taken in, but more output may wait
                yield piece
    if decoder is not None and not decoder.eof:
        raise zlib.error("it ends too early")


def _deflate_kind(start: bytes) -> int:
    """Some servers send "deflate" with the zlib header that the standard asks for, some without."""
    return 15 if start[0] & 0x0F == 8 and (len(start) < 2 or (start[0] << 8 | start[1]) % 31 == 0) else -15
