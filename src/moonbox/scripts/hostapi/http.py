"""Functions http.get, .post, .put, .patch, .delete and .request: to granted hosts, with secrets put in place."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__
from moonbox.errors import ArgumentError, Denied, MoonboxError, ToolError
from moonbox.net.addresses import Address, InvalidURL, NetError, Target, parse_target, why_refused
from moonbox.net.client import HEADER_NAME, Client, Request, Response, header_value, parse_json
from moonbox.scripts.hostapi.encoding import encode_query
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, options, scalar_text, type_word
from moonbox.scripts.hostapi.grants import excerpt, grant_text
from moonbox.scripts.hostapi.secrets import contains_handle, is_handle
from moonbox.values import text_or_bytes

if TYPE_CHECKING:
    _Reveal = Callable[[dict[str, Any], str], str]
    """The value of a secret, by its handle, for one place of a request."""

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_ABOUT = (
    "An answer of any status is returned (`ok` is true for 200 to 299, `json` is the parsed body of a JSON answer); "
    "a connection that fails raises an error with code unavailable, timeout or tls."
)
_RETURNS = "{status, ok, headers, body, json, url}"
_MAX_JOINED = 100
_LOOPBACK = IPv4Address("127.0.0.1")
_OURS = frozenset({
    "accept-encoding", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive",
    "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers that the host sets."""


def functions(host: Host) -> list[HostFunction]:
    requests = _Requests(host)
    url = Parameter("url", "string", 'such as "https://api.example.com/items"', required=True)
    method = Parameter("method", "string", ", ".join(_METHODS), required=True, choices=_METHODS)
    chosen = options(*_options(host))

    def function(name: str, summary: str, run: Any, *parameters: Parameter) -> HostFunction:
        about, given = f"{summary} {_ABOUT}", (*parameters, chosen)
        return HostFunction(f"http.{name}", about, run, given, _RETURNS, needs=("http",), refuses=True)

    def short(method: str) -> HostFunction:
        def run(address: str, chosen: dict[str, Any]) -> dict[str, Any]:
            return requests.send(method, address, chosen)

        return function(method.lower(), f"Send a {method} request.", run, url)

    return [
        *(short(method) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
        function("request", "Send a request with the given method.", requests.send, method, url),
    ]


def _options(host: Host) -> tuple[Parameter, ...]:
    limits = host.limits
    seconds = f"seconds for everything together, {limits.http_timeout:g} by default"
    followed = "how many to follow, 5 by default; 0 returns the redirect itself"
    size, largest = limits.max_response, f"largest body to accept, {limits.max_response:,} by default"
    five, longest = min(5, limits.max_redirects), limits.max_http_timeout
    return (
        Parameter("headers", "table", "values are strings, secrets, or arrays of these to be joined"),
        Parameter("params", "table", "added to the query of the URL; an array repeats its name"),
        Parameter("json", "any", "sent as a JSON body"),
        Parameter("form", "table", "sent as a form body"),
        Parameter("body", "data", "sent as it is"),
        Parameter("auth", "array", '{user, password} for HTTP Basic, such as {"me", secret("MY_PASSWORD")}'),
        Parameter("timeout", "number", seconds, default=limits.http_timeout, least=0.001, most=longest),
        Parameter("redirects", "integer", followed, default=five, least=0, most=limits.max_redirects),
        Parameter("max_bytes", "integer", largest, default=size, least=0, most=size),
    )


class _Requests:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._policy = _GrantedHosts(host)
        self._client = Client(
            self._policy,
            resolver=host.resolver,
            ssl_context=host.ssl_context,
            extra="scripts",
            purpose="http for scripts",
        )
        host.on_close.append(self._client.close)

    def send(self, method: str, url: str, options: dict[str, Any]) -> dict[str, Any]:
        try:
            target = parse_target(url)
            self._policy.check_target(target, None)  # before anything is said about the options
            response = self._client.send(
                build_request(self._host, method, target, options),
                timeout=options["timeout"],
                max_bytes=options["max_bytes"],
                redirects=options["redirects"],
            )
        except NetError as problem:
            raise _as_tool_error(problem) from None
        return self._answer(response)

    def _answer(self, response: Response) -> dict[str, Any]:
        body = response.body
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        value = parse_json(body) if kind == "application/json" or kind.endswith("+json") else None
        clean = self._host.redact(value)
        if clean is not value:
            # Escapes can spell a secret in ways that only a JSON reader sees; the script is such a reader too.
            body = json.dumps(clean, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return {
            "status": response.status,
            "ok": 200 <= response.status < 300,
            "url": response.url,
            "headers": dict(response.headers),
            "body": text_or_bytes(body),
            "json": clean,
        }


class _GrantedHosts:
    """The policy of requests: hosts that are granted, and private addresses only when granted by address."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._patterns = host.grants.patterns

    def check_target(self, target: Target, redirected_by: str | None) -> None:
        if any(pattern.allows(target.host, target.address, target.port) for pattern in self._patterns):
            return
        wanted = grant = grant_text(target.host, target.port)
        what = f"http access to {wanted}"
        if target.host == "localhost" or target.host.endswith(".localhost"):
            what, grant = f"{what} by name", grant_text("127.0.0.1", target.port)
        denied = self._host.not_granted(what, "http", grant)
        if grant != wanted and any(pattern.covers(_LOOPBACK, target.port) for pattern in self._patterns):
            denied = Denied(f"{what} is not granted; write {grant} in the URL, which is", code=denied.code)
        if redirected_by is not None:
            raise Denied(f"{redirected_by} redirects to another host: {denied.message}", code=denied.code)
        raise denied

    def check_address(self, host: str, address: Address, port: int) -> None:
        reason = why_refused(address)
        if reason is None or any(pattern.covers(address, port) for pattern in self._patterns):
            return
        what = f"{address} is {reason}" if host == str(address) else f"{host} has the address {address}, {reason}"
        advice = f'add "{grant_text(str(address), port)}" to http under [{self._host.section}]'
        raise Denied(f"{what}, which must be granted by address; {advice}", code="not_granted")


def _as_tool_error(problem: NetError) -> MoonboxError:
    if isinstance(problem, InvalidURL):
        return ArgumentError(problem.message, code=problem.code)
    if problem.code == "secret_refused":
        return Denied(problem.message, code=problem.code)
    return ToolError(problem.message, code=problem.code, retryable=problem.retryable)


def build_request(host: Host, method: str, target: Target, options: dict[str, Any]) -> Request:
    """Raises ArgumentError for what cannot be sent, and Denied where a secret must not go."""
    limits, to = host.limits, target
    most = left = limits.max_request + limits.max_headers

    def reveal(handle: dict[str, Any], place: str) -> str:
        nonlocal left
        text = host.secrets.reveal(handle, place, to)
        left -= len(text)  # a handle is small, and its secret may be large
        if left < 0:
            raise NetError(f"the request is larger than {most:,} bytes", code="too_large")
        return text

    if options["params"]:
        given = _revealed(options["params"], "query", reveal)
        query = encode_query(given, limits.max_headers, "options.params.", "surrogateescape")
        target = replace(target, path=f"{target.path}{'&' if '?' in target.path else '?'}{query}")
    headers = _headers(options, reveal)
    body, kind, secret = _body(options, reveal, limits.max_request)
    if kind is not None:
        headers.setdefault("content-type", kind)
    headers.setdefault("accept", b"*/*")
    headers.setdefault("user-agent", f"moonbox/{__version__}".encode())
    size = sum(len(name) + len(value) for name, value in headers.items()) + len(target.path)
    if size > host.limits.max_headers:
        raise ArgumentError(f"the URL and headers have {size:,} bytes; at most {host.limits.max_headers:,} can be sent")
    if len(body) > host.limits.max_request:
        raise ArgumentError(f"the body has {len(body):,} bytes; at most {host.limits.max_request:,} can be sent")
    given = options["headers"] or {}
    secret_headers = frozenset(name.lower() for name, value in given.items() if contains_handle(value))
    return Request(target, method, tuple(headers.items()), body, secret_headers, secret)


def _headers(options: dict[str, Any], reveal: _Reveal) -> dict[str, bytes]:
    headers: dict[str, bytes] = {}
    for name, value in (options["headers"] or {}).items():
        if not isinstance(name, str) or not HEADER_NAME.fullmatch(name):
            raise ArgumentError(f"invalid header name {excerpt(name)!r}")
        lower = name.lower()
        if lower in _OURS:
            raise ArgumentError(f"the header {name} is set by the host; leave it out")
        if lower in headers:
            raise ArgumentError(f"the header {name} is given twice")
        headers[lower] = header_value(name, _joined(value, f"options.headers.{name}", reveal))
    if options["auth"] is not None:
        if "authorization" in headers:
            raise ArgumentError("give either options.auth or the header authorization, not both")
        headers["authorization"] = _basic(options["auth"], reveal)
    return headers


def _joined(value: Any, path: str, reveal: _Reveal) -> str:
    """A header's text: a scalar, a secret, or an array of these one after the other."""
    if is_handle(value):
        return reveal(value, "header")
    if isinstance(value, list) and 0 < len(value) <= _MAX_JOINED and not any(isinstance(item, list) for item in value):
        return "".join(_joined(item, path, reveal) for item in value)
    if isinstance(value, list | dict) or value is None:
        raise ArgumentError(f"{path} must be a string, a secret or an array of these, not {type_word(value)}")
    return scalar_text(value)


def _basic(auth: list[Any], reveal: _Reveal) -> bytes:
    if len(auth) != 2 or not isinstance(auth[0], str) or ":" in auth[0]:
        raise ArgumentError('options.auth must be {user, password}, such as {"me", secret("MY_PASSWORD")}')
    password = _joined(auth[1], "options.auth[2]", reveal)
    return b"Basic " + base64.b64encode(f"{auth[0]}:{password}".encode("utf-8", "surrogateescape"))


def _body(options: dict[str, Any], reveal: _Reveal, most: int) -> tuple[bytes, bytes | None, bool]:
    given = [name for name in ("body", "json", "form") if options[name] is not None]
    if len(given) > 1:
        raise ArgumentError(f"give only one of options.body, options.json and options.form, not {' and '.join(given)}")
    if not given:
        return b"", None, False
    if given == ["body"]:
        return options["body"], None, False
    value = options[given[0]]
    secret = contains_handle(value)
    value = _revealed(value, "body", reveal)
    if given == ["form"]:
        form = encode_query(value, most, "options.form.", "surrogateescape")
        return form.encode(), b"application/x-www-form-urlencoded", secret
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(), b"application/json", secret
    except (TypeError, ValueError, RecursionError) as problem:
        raise ArgumentError(f"options.json cannot be written as JSON: {problem}") from None


def _revealed(value: Any, place: str, reveal: _Reveal) -> Any:
    """The same value with its secrets in place, where the configuration allows them in a query or body."""
    if is_handle(value):
        return reveal(value, place)
    if isinstance(value, dict):
        return {key: _revealed(item, place, reveal) for key, item in value.items()}
    if isinstance(value, list):
        return [_revealed(item, place, reveal) for item in value]
    return value
