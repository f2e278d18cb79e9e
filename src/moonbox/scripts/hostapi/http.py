"""Functions http.get, .post, .put, .patch, .delete and .request: to granted hosts, with secrets put in place."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, Denied, MoonboxError, ToolError
from moonbox.net.addresses import why_refused
from moonbox.net.client import Client
from moonbox.net.errors import InvalidURL, NetError
from moonbox.net.urls import parse_target
from moonbox.scripts.hostapi.arguments import Parameter, text_or_bytes
from moonbox.scripts.hostapi.functions import Host, HostFunction
from moonbox.scripts.hostapi.host_patterns import grant_text
from moonbox.scripts.hostapi.http_request import build_request
from moonbox.values import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from moonbox.net.addresses import Address
    from moonbox.net.client import Response
    from moonbox.net.urls import Target

__all__ = ["functions", "parse_json"]

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_ABOUT = (
    "An answer of any status is returned (`ok` is true for 200 to 299, `json` is the parsed body of a JSON answer); "
    "a connection that fails raises an error with code connection, timeout or tls."
)
_RETURNS = "{status, ok, headers, body, json, url}"
_MOST_VALUES = 1_000_000


def functions(host: Host) -> list[HostFunction]:
    requests = _Requests(host)
    url = Parameter("url", "string", 'such as "https://api.example.com/items"', required=True)
    method = Parameter("method", "string", required=True, choices=_METHODS)
    options = Parameter("options", "options", options=_options(host))

    def function(name: str, summary: str, run: Any, *parameters: Parameter) -> HostFunction:
        return HostFunction(
            f"http.{name}",
            f"{summary} {_ABOUT}",
            run,
            (*parameters, options),
            _RETURNS,
            needs=("http",),
            refuses=True,
            blocking=True,
        )

    def short(method: str) -> HostFunction:
        def run(address: str, chosen: dict[str, Any]) -> dict[str, Any]:
            return requests.send(method, address, chosen)

        return function(method.lower(), f"Send a {method} request.", run, url)

    return [
        *(short(method) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
        function("request", "Send a request with any method.", requests.send, method, url),
    ]


def _options(host: Host) -> tuple[Parameter, ...]:
    limits = host.limits
    return (
        Parameter("headers", "table", "values are strings, secrets, or arrays of these to be joined"),
        Parameter("params", "table", "added to the query of the URL; an array repeats its name"),
        Parameter("json", "any", "sent as a JSON body"),
        Parameter("form", "table", "sent as a form body"),
        Parameter("body", "data", "sent as it is"),
        Parameter("auth", "array", '{user, password} for HTTP Basic, such as {"me", secret("MY_PASSWORD")}'),
        Parameter(
            "timeout",
            "number",
            f"seconds for everything together, {limits.http_timeout:g} by default",
            default=limits.http_timeout,
            least=0.001,
            most=limits.max_http_timeout,
        ),
        Parameter(
            "redirects",
            "integer",
            "how many to follow, 5 by default; 0 returns the redirect itself",
            default=min(5, limits.max_redirects),
            least=0,
            most=limits.max_redirects,
        ),
        Parameter(
            "max_bytes",
            "integer",
            f"largest body to accept, {limits.max_response:,} by default",
            default=limits.max_response,
            least=0,
            most=limits.max_response,
        ),
    )


class _Requests:
    """The requests of one HostApi."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._policy = _GrantedHosts(host)
        self._client = Client(
            self._policy,
            resolver=host.http.resolver,
            ssl_context=host.http.ssl_context,
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


def parse_json(data: bytes) -> Any:
    """The value, or None when the body is not JSON, is nested too deeply or contains too many values."""
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
