"""The request of a script: its options as checked headers, query and body, with secrets put in place."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError
from moonbox.net.bodies import ByteBudget
from moonbox.net.client import Request
from moonbox.scripts.hostapi.arguments import excerpt, type_word
from moonbox.scripts.hostapi.encoding import encode_query
from moonbox.scripts.hostapi.secrets import contains_handle, is_handle

if TYPE_CHECKING:
    from moonbox.net.urls import Target
    from moonbox.scripts.hostapi.functions import Host

__all__ = ["build_request"]

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


def build_request(host: Host, method: str, target: Target, options: dict[str, Any]) -> Request:
    """Raises ArgumentError for what cannot be sent, and Denied where a secret must not go."""
    secrets = _Secrets(host, target)
    target = replace(target, path=_path(target, options["params"], secrets))
    headers = _headers(options, secrets)
    body, kind, secret = _body(options, secrets)
    if kind is not None:
        headers.setdefault("content-type", kind)
    headers.setdefault("accept", b"*/*")
    headers.setdefault("user-agent", host.http.user_agent.encode())
    size = sum(len(name) + len(value) for name, value in headers.items()) + len(target.path)
    if size > host.limits.max_headers:
        raise ArgumentError(f"the URL and headers have {size:,} bytes; at most {host.limits.max_headers:,} can be sent")
    if len(body) > host.limits.max_request:
        raise ArgumentError(f"the body has {len(body):,} bytes; at most {host.limits.max_request:,} can be sent")
    given = options["headers"] or {}
    secret_headers = frozenset(name.lower() for name, value in given.items() if contains_handle(value))
    return Request(target, method, tuple(headers.items()), body, secret_headers, secret)


class _Secrets:
    """Secrets for one request, as much as fits into one: a handle is small, and its secret may be large."""

    def __init__(self, host: Host, target: Target) -> None:
        self.limits = host.limits
        self._store, self._target = host.secrets, target
        self._budget = ByteBudget(host.limits.max_request + host.limits.max_headers, "the request")

    def reveal(self, handle: dict[str, Any], place: str) -> str:
        text = self._store.reveal(handle, place, self._target)
        self._budget.spend(len(text))
        return text


def _path(target: Target, params: dict[Any, Any] | None, secrets: _Secrets) -> str:
    if not params:
        return target.path
    most = secrets.limits.max_headers
    query = encode_query(_revealed(params, "query", secrets), most, "options.params.", "surrogateescape")
    return f"{target.path}{'&' if '?' in target.path else '?'}{query}"


def _headers(options: dict[str, Any], secrets: _Secrets) -> dict[str, bytes]:
    headers: dict[str, bytes] = {}
    for name, value in (options["headers"] or {}).items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ArgumentError(f"invalid header name {excerpt(name)!r}")
        lower = name.lower()
        if lower in _OURS:
            raise ArgumentError(f"the header {name} is set by the host; leave it out")
        if lower in headers:
            raise ArgumentError(f"the header {name} is given twice")
        headers[lower] = _header_value(name, _joined(value, f"options.headers.{name}", secrets))
    if options["auth"] is not None:
        if "authorization" in headers:
            raise ArgumentError("give either options.auth or the header authorization, not both")
        headers["authorization"] = _basic(options["auth"], secrets)
    return headers


def _joined(value: Any, path: str, secrets: _Secrets) -> str:
    """A header's text: a scalar, a secret, or an array of these one after the other."""
    if is_handle(value):
        return secrets.reveal(value, "header")
    if isinstance(value, list) and 0 < len(value) <= _MAX_JOINED and not any(isinstance(item, list) for item in value):
        return "".join(_joined(item, path, secrets) for item in value)
    if isinstance(value, list | dict) or value is None:
        raise ArgumentError(f"{path} must be a string, a secret or an array of these, not {type_word(value)}")
    return _text(value)


def _header_value(name: str, text: str) -> bytes:
    data = text.strip(" \t").encode("utf-8", "surrogateescape")
    if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", data):
        raise ArgumentError(f"the value of the header {name} contains a line break or another control character")
    return data


def _basic(auth: list[Any], secrets: _Secrets) -> bytes:
    if len(auth) != 2 or not isinstance(auth[0], str) or ":" in auth[0]:
        raise ArgumentError('options.auth must be {user, password}, such as {"me", secret("MY_PASSWORD")}')
    password = _joined(auth[1], "options.auth[2]", secrets)
    return b"Basic " + base64.b64encode(f"{auth[0]}:{password}".encode("utf-8", "surrogateescape"))


def _body(options: dict[str, Any], secrets: _Secrets) -> tuple[bytes, bytes | None, bool]:
    given = [name for name in ("body", "json", "form") if options[name] is not None]
    if len(given) > 1:
        raise ArgumentError(f"give only one of options.body, options.json and options.form, not {' and '.join(given)}")
    if not given:
        return b"", None, False
    if given == ["body"]:
        return options["body"], None, False
    value = options[given[0]]
    secret = contains_handle(value)
    value = _revealed(value, "body", secrets)
    if given == ["form"]:
        form = encode_query(value, secrets.limits.max_request, "options.form.", "surrogateescape")
        return form.encode(), b"application/x-www-form-urlencoded", secret
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(), b"application/json", secret
    except (TypeError, ValueError, RecursionError) as problem:
        raise ArgumentError(f"options.json cannot be written as JSON: {problem}") from None


def _revealed(value: Any, place: str, secrets: _Secrets) -> Any:
    """The same value with its secrets in place, where the configuration allows them in a query or body."""
    if is_handle(value):
        return secrets.reveal(value, place)
    if isinstance(value, dict):
        return {key: _revealed(item, place, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_revealed(item, place, secrets) for item in value]
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
