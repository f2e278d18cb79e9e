"""Requests of scripts: options turned into checked headers, query and body, with secrets put in place."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from moonbox.errors import ArgumentError, Denied
from moonbox.scripts.hostapi.arguments import type_word
from moonbox.scripts.hostapi.http.body import ACCEPT_ENCODING
from moonbox.scripts.hostapi.vault import is_handle, mentions_handle

if TYPE_CHECKING:
    from moonbox.scripts.hostapi.function import Host
    from moonbox.scripts.hostapi.http.urls import Target

__all__ = ["Message", "build"]

_MAX_JOINED = 100
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# Everything else may be a credential, so it stays with the origin that the script named.
_HARMLESS = frozenset({"accept", "accept-language", "user-agent", "content-type", "accept-encoding"})


@dataclass(frozen=True, slots=True)
class Message:
    """One request, ready to be sent. Header names are in lower case."""

    method: str
    target: Target
    headers: tuple[tuple[str, bytes], ...]
    body: bytes = b""
    secret_headers: frozenset[str] = frozenset()
    secret_body: bool = False
    """Neither is ever sent to another origin."""

    def redirected(self, target: Target, status: int) -> Message:
        """The request that follows a redirect: without credentials when it leaves the origin."""
        message = replace(self, target=target)
        if status == 303 or (status in (301, 302) and self.method == "POST"):
            method = "HEAD" if self.method == "HEAD" else "GET"
            headers = tuple(item for item in message.headers if item[0] != "content-type")
            message = replace(message, method=method, headers=headers, body=b"", secret_body=False)
        if target.origin != self.target.origin:
            if message.secret_body:
                raise Denied(f"the server redirects a body with a secret to {target.host}", code="secret_refused")
            kept = _HARMLESS - self.secret_headers
            message = replace(message, headers=tuple(item for item in message.headers if item[0] in kept))
        return message

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """With those that belong to the connection."""
        own = [(b"host", self.target.authority.encode())]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            own.append((b"content-length", str(len(self.body)).encode()))
        return own + [(name.encode(), value) for name, value in self.headers]


def build(host: Host, method: str, target: Target, options: dict[str, Any]) -> Message:
    """Raises ArgumentError for what cannot be sent, and Denied where a secret must not go."""
    target = replace(target, path=_path(host, target, options["params"]))
    headers = _headers(host, target, options)
    body, kind, secret = _body(host, target, options)
    if kind is not None:
        headers.setdefault("content-type", kind)
    headers.setdefault("accept", b"*/*")
    headers.setdefault("user-agent", host.http.user_agent.encode())
    headers["accept-encoding"] = ACCEPT_ENCODING.encode()
    size = sum(len(name) + len(value) for name, value in headers.items()) + len(target.path)
    if size > host.limits.max_headers:
        raise ArgumentError(f"the URL and headers have {size:,} bytes; at most {host.limits.max_headers:,} can be sent")
    if len(body) > host.limits.max_request:
        raise ArgumentError(f"the body has {len(body):,} bytes; at most {host.limits.max_request:,} can be sent")
    given = options["headers"] or {}
    secret_headers = frozenset(name.lower() for name, value in given.items() if mentions_handle(value))
    return Message(method, target, tuple(headers.items()), body, secret_headers, secret)


def _path(host: Host, target: Target, params: dict[Any, Any] | None) -> str:
    if not params:
        return target.path
    query = _encoded(_revealed(host, target, params, "query"), "options.params")
    return f"{target.path}{'&' if '?' in target.path else '?'}{query}"


def _headers(host: Host, target: Target, options: dict[str, Any]) -> dict[str, bytes]:
    headers: dict[str, bytes] = {}
    for name, value in (options["headers"] or {}).items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ArgumentError(f"{str(name)[:60]!r} is not the name of a header")
        lower = name.lower()
        if lower in _OURS:
            raise ArgumentError(f"the header {name} is set by the host and cannot be given")
        if lower in headers:
            raise ArgumentError(f"the header {name} is given twice")
        headers[lower] = _header_value(name, _joined(host, target, value, f"options.headers.{name}"))
    if options["auth"] is not None:
        if "authorization" in headers:
            raise ArgumentError("give either options.auth or the header authorization, not both")
        headers["authorization"] = _basic(host, target, options["auth"])
    return headers


def _joined(host: Host, target: Target, value: Any, path: str) -> str:
    """A header's text: a scalar, a secret, or an array of these one after the other."""
    if is_handle(value):
        return host.vault.reveal(value, "header", target)
    if isinstance(value, list) and 0 < len(value) <= _MAX_JOINED and not any(isinstance(item, list) for item in value):
        return "".join(_joined(host, target, item, path) for item in value)
    if isinstance(value, list | dict) or value is None:
        raise ArgumentError(f"{path} must be a string, a secret or an array of these, not {type_word(value)}")
    return _text(value)


def _header_value(name: str, text: str) -> bytes:
    data = text.strip(" \t").encode("utf-8", "surrogateescape")
    if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", data):
        raise ArgumentError(f"the value of the header {name} holds a line break or another control character")
    return data


def _basic(host: Host, target: Target, auth: list[Any]) -> bytes:
    if len(auth) != 2 or not isinstance(auth[0], str) or ":" in auth[0]:
        raise ArgumentError('options.auth must be {user, password}, such as {"me", secret("MY_PASSWORD")}')
    password = _joined(host, target, auth[1], "options.auth[2]")
    return b"Basic " + base64.b64encode(f"{auth[0]}:{password}".encode("utf-8", "surrogateescape"))


def _body(host: Host, target: Target, options: dict[str, Any]) -> tuple[bytes, bytes | None, bool]:
    given = [name for name in ("body", "json", "form") if options[name] is not None]
    if len(given) > 1:
        raise ArgumentError(f"give only one of options.body, options.json and options.form, not {' and '.join(given)}")
    if not given:
        return b"", None, False
    if given == ["body"]:
        return options["body"], None, False
    value = options[given[0]]
    secret = mentions_handle(value)
    value = _revealed(host, target, value, "body")
    if given == ["form"]:
        return _encoded(value, "options.form").encode(), b"application/x-www-form-urlencoded", secret
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(), b"application/json", secret
    except (TypeError, ValueError, RecursionError) as problem:
        raise ArgumentError(f"options.json cannot be written as JSON: {problem}") from None


def _revealed(host: Host, target: Target, value: Any, place: str) -> Any:
    """The same value with its secrets in place, where the configuration lets them stand in a query or body."""
    if is_handle(value):
        return host.vault.reveal(value, place, target)
    if isinstance(value, dict):
        return {key: _revealed(host, target, item, place) for key, item in value.items()}
    if isinstance(value, list):
        return [_revealed(host, target, item, place) for item in value]
    return value


def _encoded(table: dict[Any, Any], path: str) -> str:
    pairs: list[tuple[str, bytes]] = []
    for key in sorted(table, key=str):
        for item in table[key] if isinstance(table[key], list) else [table[key]]:
            if isinstance(item, list | dict) or item is None:
                raise ArgumentError(f"{path}.{key} must be a string, a number, a boolean or an array of these")
            pairs.append((str(key), _text(item).encode("utf-8", "surrogateescape")))
    return urlencode(pairs, quote_via=quote)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
