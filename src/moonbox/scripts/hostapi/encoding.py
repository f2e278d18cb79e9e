"""Functions url.encode, .decode, .parse and .build, base64.encode and .decode."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, quote, unquote_to_bytes, urlencode

from moonbox.errors import ToolError
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, Wrong, options
from moonbox.scripts.hostapi.grants import excerpt
from moonbox.values import text_or_bytes

_MAX_PARAMS = 10_000
# As RFC 3986 splits a URI, in its appendix B.
_URL = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_HOST = re.compile(r"(?:[^@]*@)?(?P<host>\[[^\[\]]*\]|[^:@\[\]]*)(?::(?P<port>[0-9]{0,9}))?", re.ASCII | re.DOTALL)


def functions(host: Host) -> Sequence[HostFunction]:
    most = host.limits.max_text

    def encode(value: Any) -> str:
        if isinstance(value, dict):
            return encode_query(value, most, "value.")
        if isinstance(value, str | bytes):
            return quote(value, safe="", errors="surrogatepass") if isinstance(value, str) else quote(value, safe="")
        raise Wrong("value must be a string, or a table for a whole query")

    def build(parts: dict[str, Any]) -> str:
        return _built(parts, most)

    parts = (
        Parameter("scheme", "string", "https by default", default="https", most=most),
        Parameter("host", "string", required=True, most=most),
        Parameter("port", "integer", least=1, most=65535),
        Parameter("path", "string", "already percent-encoded", default="/", most=most),
        Parameter("params", "table", "encoded into the query; an array repeats its name", default={}),
        Parameter("fragment", "string", most=most),
    )
    form = options(
        Parameter("urlsafe", "boolean", "the alphabet with - and _", default=False),
        Parameter("padding", "boolean", "end with = as needed, true by default", default=True),
    )
    text = Parameter("text", "data", required=True, most=most)
    data = Parameter("data", "data", required=True, most=most)
    plus = options(Parameter("plus", "boolean", "+ means a space", default=False))
    value = Parameter("value", "any", "a string, or a table for a whole query", required=True, most=most)
    whole = Parameter("parts", "options", required=True, options=parts)
    address = Parameter("url", "string", required=True, most=most)
    parsing = "The parts of a URL; params is its query decoded, with an array for a name that occurs repeatedly."
    skipping = "Decode either alphabet, with or without padding; line breaks and spaces are skipped."
    return [
        HostFunction("url.encode", "Percent-encode a string, or a table as name=value&…", encode, (value,), "string"),
        HostFunction("url.decode", "Undo percent-encoding.", _decoded_url, (text, plus), "string"),
        HostFunction("url.parse", parsing, _parsed, (address,), "{scheme, host, port, path, query, params, fragment}"),
        HostFunction("url.build", "A URL from its parts.", build, (whole,), "string"),
        HostFunction("base64.encode", "Encode text or binary data.", _encoded_base64, (data, form), "string"),
        HostFunction("base64.decode", skipping, _decoded_base64, (text,), "string"),
    ]


def _encoded_base64(data: bytes, options: dict[str, Any]) -> str:
    encoded = base64.urlsafe_b64encode(data) if options["urlsafe"] else base64.b64encode(data)
    return (encoded if options["padding"] else encoded.rstrip(b"=")).decode()


def _decoded_base64(text: bytes) -> str | bytes:
    compact = re.sub(rb"[ \t\r\n]", b"", text).rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    if len(compact) % 4 == 1 or not re.fullmatch(rb"[A-Za-z0-9+/]*", compact):
        raise ToolError("text is not base64", code="invalid_data")
    return text_or_bytes(base64.b64decode(compact + b"=" * (-len(compact) % 4)))


def _decoded_url(text: bytes, options: dict[str, Any]) -> str | bytes:
    return text_or_bytes(unquote_to_bytes(text.replace(b"+", b" ") if options["plus"] else text))


def _parsed(text: str) -> dict[str, Any]:
    """Not with urlsplit: it takes quadratic time for some hosts, and keeps the last 128 URLs in memory."""
    parts = _URL.fullmatch(text)
    assert parts is not None  # every text matches: what has no other part is the path
    host, port = _host_and_port(text, parts["authority"])
    query = parts["query"] or ""
    if query.count("&") >= _MAX_PARAMS:
        raise _invalid(text, f"its query has more than {_MAX_PARAMS:,} parameters")
    params = parse_qs(query, keep_blank_values=True)
    return {
        "scheme": parts["scheme"].lower() if parts["scheme"] else None,
        "host": host,
        "port": port,
        "path": parts["path"],
        "query": query or None,
        "params": {name: values if len(values) > 1 else values[0] for name, values in params.items()},
        "fragment": parts["fragment"] or None,
    }


def _host_and_port(text: str, authority: str | None) -> tuple[str | None, int | None]:
    if not authority:
        return None, None
    parts = _HOST.fullmatch(authority)
    if parts is None:
        raise _invalid(text, "invalid host and port")
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and port > 65535:
        raise _invalid(text, f"the port must be from 0 to 65535, not {port}")
    return parts["host"].removeprefix("[").removesuffix("]").lower() or None, port


def _invalid(text: str, reason: str) -> ToolError:
    return ToolError(f"invalid URL {excerpt(text, 100)!r}: {reason}", code="invalid_data")


def _built(parts: dict[str, Any], most: int) -> str:
    host = f"[{parts['host']}]" if ":" in parts["host"] and not parts["host"].startswith("[") else parts["host"]
    port = f":{parts['port']}" if parts["port"] is not None else ""
    path = quote(parts["path"], safe="/%:@!$&'()*+,;=~-._")
    query = encode_query(parts["params"], most, "parts.params.")
    fragment = "#" + quote(parts["fragment"], safe="/?:@!$&'()*+,;=~-._") if parts["fragment"] else ""
    slash = "" if path.startswith("/") or not path else "/"
    return f"{parts['scheme']}://{host}{port}{slash}{path}{'?' * bool(query)}{query}{fragment}"


def encode_query(table: dict[Any, Any], most: int, where: str, errors: str = "surrogatepass") -> str:
    """The table as name=value&…, from at most `most` characters; `where` begins the messages."""
    pairs: list[tuple[str, Any]] = []
    size = 0
    for key in sorted(table, key=str):
        name = str(key)
        for item in table[key] if isinstance(table[key], list) else [table[key]]:
            if isinstance(item, list | dict) or item is None:
                raise Wrong(f"{where}{excerpt(name)} must be a string, a number, a boolean or an array of these")
            size += len(name) + (len(item) if isinstance(item, str | bytes) else 1)  # the name is repeated for each
            if size > most:
                raise Wrong(f"{where}{excerpt(name)} is past the limit of {most:,} bytes", code="too_large")
            pairs.append((name, str(item).lower() if isinstance(item, bool) else item))
    return urlencode(pairs, quote_via=quote, errors=errors)
