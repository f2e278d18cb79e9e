"""Functions base64.encode and base64.decode."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from moonbox.errors import ToolError
from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.function import Host, HostFunction
from moonbox.scripts.hostapi.text import bounded, text_or_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["functions"]

_OPTIONS = Parameter(
    "options",
    "options",
    options=(
        Parameter("urlsafe", "boolean", "the alphabet with - and _", default=False),
        Parameter("padding", "boolean", "end with = as needed, true unless given", default=True),
    ),
)


def functions(host: Host) -> Sequence[HostFunction]:
    def encode(data: bytes, options: dict[str, Any]) -> str:
        bounded("base64.encode", data, host.limits.max_text)
        encoded = base64.urlsafe_b64encode(data) if options["urlsafe"] else base64.b64encode(data)
        return (encoded if options["padding"] else encoded.rstrip(b"=")).decode()

    def decode(text: bytes) -> str | bytes:
        bounded("base64.decode", text, host.limits.max_text)
        compact = re.sub(rb"[ \t\r\n]", b"", text).rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        if len(compact) % 4 == 1 or not re.fullmatch(rb"[A-Za-z0-9+/]*", compact):
            raise ToolError("base64.decode(text): text is not base64", code="invalid_data")
        return text_or_bytes(base64.b64decode(compact + b"=" * (-len(compact) % 4)))

    return [
        HostFunction(
            "base64.encode",
            "Encode text or binary data.",
            encode,
            (Parameter("data", "data", required=True), _OPTIONS),
            "string",
        ),
        HostFunction(
            "base64.decode",
            "Decode either alphabet, with or without padding; line breaks and spaces are skipped.",
            decode,
            (Parameter("text", "data", required=True),),
            "string",
        ),
    ]
