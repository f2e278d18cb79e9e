"""Functions url.encode, url.decode, url.parse and url.build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urlsplit

from moonbox.errors import ArgumentError, ToolError
from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.function import Host, HostFunction
from moonbox.scripts.hostapi.text import bounded, text_or_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["functions"]

_MAX_PARAMS = 10_000
_PARTS = (
    Parameter("scheme", "string", "https unless given", default="https"),
    Parameter("host", "string", required=True),
    Parameter("port", "integer", least=1, most=65535),
    Parameter("path", "string", "as it stands in the URL, already encoded", default="/"),
    Parameter("params", "table", "encoded into the query; an array repeats its name", default={}),
    Parameter("fragment", "string"),
)


def functions(host: Host) -> Sequence[HostFunction]:
    most = host.limits.max_text

    def encode(value: Any) -> str:
        if isinstance(value, dict):
            return _query("url.encode(value)", value)
        if isinstance(value, str | bytes):
            bounded("url.encode", value, most)
            return quote(value, safe="", errors="surrogatepass") if isinstance(value, str) else quote(value, safe="")
        raise ArgumentError("url.encode(value): value must be a string, or a table for a whole query")

    def decode(text: bytes, options: dict[str, Any]) -> str | bytes:
        bounded("url.decode", text, most)
        return text_or_bytes(unquote_to_bytes(text.replace(b"+", b" ") if options["plus"] else text))

    def parse(text: str) -> dict[str, Any]:
        bounded("url.parse", text, most)
        return _parsed(text)

    text = Parameter("text", "data", required=True)
    plus = Parameter("options", "options", options=(Parameter("plus", "boolean", "+ means a space", default=False),))
    value = Parameter("value", "any", "a string, or a table for a whole query", required=True)
    parts = Parameter("parts", "options", required=True, options=_PARTS)
    return [
        HostFunction("url.encode", "Percent-encode a string, or a table as name=value&…", encode, (value,), "string"),
        HostFunction("url.decode", "Undo percent-encoding.", decode, (text, plus), "string"),
        HostFunction(
            "url.parse",
            "The parts of a URL; params holds its query decoded, an array for a name that stands there repeatedly.",
            parse,
            (Parameter("url", "string", required=True),),
            "{scheme, host, port, path, query, params, fragment}",
        ),
        HostFunction("url.build", "A URL from its parts.", _built, (parts,), "string"),
    ]


def _parsed(text: str) -> dict[str, Any]:
    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_MAX_PARAMS)
        port = parts.port
    except ValueError as problem:
        raise ToolError(f"url.parse(url): {text[:100]!r} is not a URL: {problem}", code="invalid_data") from None
    params: dict[str, Any] = {}
    for name, value in pairs:
        if name not in params:
            params[name] = value
        elif isinstance(params[name], list):
            params[name].append(value)
        else:
            params[name] = [params[name], value]
    return {
        "scheme": parts.scheme or None,
        "host": parts.hostname,
        "port": port,
        "path": parts.path,
        "query": parts.query or None,
        "params": params,
        "fragment": parts.fragment or None,
    }


def _built(parts: dict[str, Any]) -> str:
    host = f"[{parts['host']}]" if ":" in parts["host"] and not parts["host"].startswith("[") else parts["host"]
    port = f":{parts['port']}" if parts["port"] is not None else ""
    path = quote(parts["path"], safe="/%:@!$&'()*+,;=~-._")
    query = _query("url.build(parts)", parts["params"])
    fragment = "#" + quote(parts["fragment"], safe="/?:@!$&'()*+,;=~-._") if parts["fragment"] else ""
    slash = "" if path.startswith("/") or not path else "/"
    return f"{parts['scheme']}://{host}{port}{slash}{path}{'?' * bool(query)}{query}{fragment}"


def _query(signature: str, table: dict[Any, Any]) -> str:
    pairs: list[tuple[str, Any]] = []
    for key in sorted(table, key=str):
        for item in table[key] if isinstance(table[key], list) else [table[key]]:
            if isinstance(item, list | dict) or item is None:
                raise ArgumentError(f"{signature}: {key} must be a string, a number, a boolean or an array of these")
            pairs.append((str(key), str(item).lower() if isinstance(item, bool) else item))
    return urlencode(pairs, quote_via=quote, errors="surrogatepass")
