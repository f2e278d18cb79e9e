"""Functions crypto.sha256, .hmac_sha256, .uuid and .random_bytes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, Wrong, options, type_word
from moonbox.scripts.hostapi.secrets import is_handle

_ENCODERS: dict[str, Callable[[bytes], str | bytes]] = {
    "hex": bytes.hex,
    "base64": lambda digest: base64.b64encode(digest).decode(),
    "base64url": lambda digest: base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
    "raw": bytes,
}
_OPTIONS = options(
    Parameter(
        "encoding",
        "string",
        "of the result: hex (the default), base64, base64url (without padding), or raw for the 32 bytes themselves",
        default="hex",
        choices=tuple(_ENCODERS),
    )
)


def functions(host: Host) -> Sequence[HostFunction]:
    def sha256(data: bytes, options: dict[str, Any]) -> str | bytes:
        return _ENCODERS[options["encoding"]](hashlib.sha256(data).digest())

    def hmac_sha256(key: Any, data: bytes, options: dict[str, Any]) -> str | bytes:
        key = host.secrets.key(key) if is_handle(key) else key
        key = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
        if not isinstance(key, bytes):
            raise Wrong(f"key must be a string or a secret, not {type_word(key)}")
        return _ENCODERS[options["encoding"]](hmac.digest(key, data, "sha256"))

    def random_uuid() -> str:
        return str(uuid.UUID(bytes=host.entropy(16), version=4))

    most = host.limits.max_text
    data = Parameter("data", "data", "text or binary", required=True, most=most)
    key = Parameter("key", "any", "a string, or a secret from secret(name)", required=True, most=most)
    size = Parameter("size", "integer", required=True, least=0, most=host.limits.max_random)
    signing = "The HMAC-SHA-256 of data, for signing requests."
    return [
        HostFunction("crypto.sha256", "The SHA-256 hash of data.", sha256, (data, _OPTIONS), "string"),
        HostFunction("crypto.hmac_sha256", signing, hmac_sha256, (key, data, _OPTIONS), "string"),
        HostFunction("crypto.uuid", "A random UUID, version 4.", random_uuid, (), "string"),
        HostFunction("crypto.random_bytes", "Random bytes.", host.entropy, (size,), "string"),
    ]
