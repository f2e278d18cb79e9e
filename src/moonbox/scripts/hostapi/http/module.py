"""Functions http.get, .post, .put, .patch, .delete and .request."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from moonbox.errors import MissingExtra
from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.function import Host, HostFunction
from moonbox.scripts.hostapi.http.gate import Gate
from moonbox.scripts.hostapi.http.urls import parse_target

if TYPE_CHECKING:
    from moonbox.scripts.hostapi.http.client import Client

__all__ = ["functions"]

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_RETURNS = "{status, ok, headers, body, json, url}"


def functions(host: Host) -> list[HostFunction]:
    client = _LazyClient(host)
    url = Parameter("url", "string", 'such as "https://api.example.com/items"', required=True)
    options = Parameter("options", "options", options=_options(host))
    made = [_short(client, method, url, options) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")]
    method = Parameter("method", "string", required=True, choices=_METHODS)
    request = HostFunction(
        "http.request",
        f"Send a request with any method. {_ABOUT}",
        client.request,
        (method, url, options),
        _RETURNS,
        needs=("http",),
        refuses=True,
        blocking=True,
    )
    return [*made, request]


def _short(client: _LazyClient, method: str, url: Parameter, options: Parameter) -> HostFunction:
    def run(address: str, chosen: dict[str, Any]) -> dict[str, Any]:
        return client.request(method, address, chosen)

    name = f"http.{method.lower()}"
    return HostFunction(
        name,
        f"Send a {method} request. {_ABOUT}",
        run,
        (url, options),
        _RETURNS,
        needs=("http",),
        refuses=True,
        blocking=True,
    )


_ABOUT = (
    "An answer of any status is returned (`ok` is true for 200 to 299, `json` holds the parsed body of a JSON answer); "
    "a connection that fails raises an error with code connection, timeout or tls."
)


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
            f"seconds for everything together, {limits.http_timeout:g} unless given",
            default=limits.http_timeout,
            least=0.001,
            most=limits.max_http_timeout,
        ),
        Parameter(
            "redirects",
            "integer",
            "how many to follow, 5 unless given; 0 returns the redirect itself",
            default=min(5, limits.max_redirects),
            least=0,
            most=limits.max_redirects,
        ),
        Parameter(
            "max_bytes",
            "integer",
            f"largest body to accept, {limits.max_response:,} unless given",
            default=limits.max_response,
            least=0,
            most=limits.max_response,
        ),
    )


class _LazyClient:
    """The client, made at the first request: the library behind it takes long to load."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._gate = Gate(host)
        self._client: Client | None = None
        self._making = threading.Lock()

    def request(self, method: str, url: str, options: dict[str, Any]) -> dict[str, Any]:
        target = parse_target(url)
        self._gate.admit(target)
        return self._made().request(method, target, options)

    def _made(self) -> Client:
        with self._making:
            if self._client is None:
                try:
                    from moonbox.scripts.hostapi.http.client import Client
                except ModuleNotFoundError as missing:
                    if missing.name != "httpcore":
                        raise
                    raise MissingExtra("httpcore", "scripts", "http for scripts") from None
                self._client = Client(self._host, self._gate)
                self._host.on_close.append(self._client.close)
            return self._client
