"""The http client of scripts: one request with its redirects, every hop through the gate."""

from __future__ import annotations

import json
import ssl
import time
from typing import TYPE_CHECKING, Any

import httpcore

from moonbox.errors import ArgumentError, Denied, ToolError
from moonbox.scripts.hostapi.http.body import parse_json, read_body
from moonbox.scripts.hostapi.http.connect import CheckedBackend, Deadlines, default_ssl_context
from moonbox.scripts.hostapi.http.message import Message, build
from moonbox.scripts.hostapi.http.urls import follow
from moonbox.scripts.hostapi.text import text_or_bytes

if TYPE_CHECKING:
    from moonbox.scripts.hostapi.function import Host
    from moonbox.scripts.hostapi.http.gate import Gate
    from moonbox.scripts.hostapi.http.urls import Target

__all__ = ["Client"]

_REDIRECTS = (301, 302, 303, 307, 308)


class Client:
    """Requests of one HostApi, over connections that it keeps open between them. Safe to use from several threads."""

    def __init__(self, host: Host, gate: Gate) -> None:
        self._host, self._gate = host, gate
        self._deadlines = Deadlines()
        self._pool = httpcore.ConnectionPool(
            ssl_context=host.http.ssl_context or default_ssl_context(),
            max_connections=20,
            max_keepalive_connections=5,
            keepalive_expiry=4.0,
            network_backend=CheckedBackend(self._gate, self._deadlines),
        )

    def close(self) -> None:
        self._pool.close()

    def request(self, method: str, target: Target, options: dict[str, Any]) -> dict[str, Any]:
        """The response to a request to an admitted target; raises Denied, or ToolError with a code for what failed."""
        message = build(self._host, method, target, options)
        with self._deadlines.until(time.monotonic() + options["timeout"]):
            for _ in range(options["redirects"] + 1):
                answer = self._exchange(message, options)
                if not isinstance(answer, Message):
                    return answer
                message = answer
        raise ToolError(
            f"more than {options['redirects']} redirects, the last one to {message.target}", code="redirects"
        )

    def _exchange(self, message: Message, options: dict[str, Any]) -> Message | dict[str, Any]:
        """The response, or the request to make next."""
        target = message.target
        try:
            response = self._send(message)
            try:
                headers = _headers(response.headers)
                if response.status in _REDIRECTS and "location" in headers and options["redirects"]:
                    return self._redirected(message, response.status, headers["location"])
                body = b""
                if message.method != "HEAD":
                    body = read_body(response.iter_stream(), headers.get("content-encoding", ""), options["max_bytes"])
                return self._answer(target, response.status, headers, body)
            finally:
                response.close()
        except (TimeoutError, httpcore.TimeoutException):
            seconds = f"{options['timeout']:g} second{'s' * (options['timeout'] != 1)}"
            raise ToolError(f"{target.host} did not answer within {seconds}", code="timeout", retryable=True) from None
        except ssl.SSLCertVerificationError as problem:
            raise ToolError(
                f"the certificate of {target.host} is not valid: {problem.verify_message}", code="tls"
            ) from None
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError) as problem:
            raise ToolError(
                f"the connection to {target.authority} failed: {_reason(problem)}", code="connection", retryable=True
            ) from None

    def _send(self, message: Message) -> httpcore.Response:
        target = message.target
        url = httpcore.URL(
            scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
        )
        left = self._deadlines.left()
        return self._pool.handle_request(
            httpcore.Request(
                message.method,
                url,
                headers=message.raw_headers(),
                content=message.body,
                extensions={"timeout": {"pool": left}},
            )
        )

    def _redirected(self, message: Message, status: int, location: str) -> Message:
        try:
            target = follow(message.target, location)
            self._gate.admit(target)
        except ArgumentError as problem:
            raise ToolError(f"{message.target.host} redirects to {problem.message}", code="redirects") from None
        except Denied as problem:
            raise Denied(f"{message.target.host} redirects elsewhere: {problem.message}", code=problem.code) from None
        return message.redirected(target, status)

    def _answer(self, target: Target, status: int, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        value = parse_json(body) if kind == "application/json" or kind.endswith("+json") else None
        clean = self._host.scrub(value)
        if clean is not value:
            # Escapes can spell a secret in ways that only a JSON reader sees; the script is such a reader too.
            body = json.dumps(clean, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return {
            "status": status,
            "ok": 200 <= status < 300,
            "url": target.url,
            "headers": headers,
            "body": text_or_bytes(body),
            "json": clean,
        }


def _reason(problem: Exception) -> str:
    """Never what the other side sent, which the library quotes and which may be anything."""
    if isinstance(problem, httpcore.ProtocolError):
        silent = str(problem).startswith("Server disconnected")
        return "the server closed it without an answer" if silent else "the answer is not valid HTTP"
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__


def _headers(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Names in lower case; the values of a repeated header joined by commas, cookies by line breaks."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("latin-1").lower()
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        separator = "\n" if key == "set-cookie" else ", "
        headers[key] = f"{headers[key]}{separator}{text}" if key in headers else text
    return headers
