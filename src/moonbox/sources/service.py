"""A web service behind tools: where its requests may go, how they authenticate and wait, and what its answers mean."""

from __future__ import annotations

import base64
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from moonbox.errors import ToolError, UsageError
from moonbox.failures import words_of
from moonbox.media import Media
from moonbox.net.addresses import Address, NetError, Target, is_loopback, parse_target
from moonbox.net.client import Client, PublicAddresses, Request, Response, header_value, parse_json
from moonbox.retry import retry_after
from moonbox.runs.record import CLOCK
from moonbox.secrets import SecretRedactor
from moonbox.tools.results import code_of_status
from moonbox.wording import one_line

if TYPE_CHECKING:
    from moonbox.config.sources import ApiCredentials, OpenApiSettings
    from moonbox.sources.arguments import Written

_LONGEST_MESSAGE = 400
_MARGIN = 1.0  # seconds of a run that stay for the request after a wait
_LOOK = 0.1
_CHARSET = re.compile(r"charset\s*=\s*\"?(iso-8859-\d+|windows-125\d|utf-16)\b", re.IGNORECASE)
_NEXT = re.compile(r'<([^<>]*)>[^<>,]*;\s*rel="?next\b')
_CODES = {"not_allowed": "denied", "too_large": "result_too_large"}


class Origin:
    """The policy of requests: one origin, and a private address only where a person wrote the address itself."""

    def __init__(self, server: Target, given: Iterable[Target], *, allow_private: bool = False) -> None:
        self._origin = server.origin
        self._local = {target.host for target in given if target.address is not None or is_loopback(target.host)}
        self._public = PublicAddresses(allow_private)

    def check_target(self, target: Target, redirected_by: str | None) -> None:
        if target.origin != self._origin:
            why = f"{redirected_by} redirects to {target.host}" if redirected_by else target.host
            raise NetError(f"{why}, which is not a server of this service", code="not_allowed")

    def check_address(self, host: str, address: Address, port: int) -> None:
        if host not in self._local:
            self._public.check_address(host, address, port)


class WebService:
    """One service. Safe to use from several threads."""

    def __init__(self, settings: OpenApiSettings, server: str, spec_url: str) -> None:
        self._settings, self._server = settings, parse_target(server)
        given = [parse_target(url) for url in (settings.base_url, spec_url) if url]
        self._client = client(Origin(self._server, given, allow_private=settings.allow_private))
        self._redact = SecretRedactor(settings.headers)
        self._credentials = settings.auth and _Credentials(settings.auth, self._redact, settings.timeout)
        self._not_before = 0.0
        weakref.finalize(self, self._client.close)

    def call(self, method: str, written: Written, cancelled: Callable[[], bool], *, with_next: bool = False) -> Any:
        """The answer as a value; raises ToolError for a status of 300 and above.

        With `with_next`, a list is `items` beside `next`, the address of the next page in the header Link.
        """
        try:
            response = self._send(method, written, cancelled)
            if response.status >= 300:
                raise _failure(response)
            value = _value(method, response)
            if with_next and isinstance(value, list):
                following = _NEXT.search(response.headers.get("link", ""))
                value = {"items": value, **({"next": following[1]} if following else {})}
            return self._redact(value)
        except NetError as problem:
            code, message = _CODES.get(problem.code, problem.code), self._redact(problem.message)
            raise ToolError(message, code=code, retryable=problem.retryable) from None
        except ToolError as problem:
            problem.message = self._redact(problem.message)
            raise

    def _send(self, method: str, written: Written, cancelled: Callable[[], bool]) -> Response:
        """With further tries where the service asks for patience, or a token is no longer valid."""
        until, tries, renewed = time.monotonic() + self._settings.max_wait, 0, False
        while True:
            self._wait(until, cancelled)
            request = self._request(method, written)
            response = self._client.send(request, timeout=self._settings.timeout, max_bytes=self._settings.max_bytes)
            if response.status == 401 and not renewed and self._credentials and self._credentials.forget():
                renewed = True
                continue
            unavailable = response.status == 503 and method in ("GET", "HEAD") and "retry-after" in response.headers
            wait = _retry_after(response, tries)
            if not (response.status == 429 or unavailable) or time.monotonic() + wait > latest(until):
                return response
            tries += 1
            self._not_before = max(self._not_before, time.monotonic() + wait)

    def _wait(self, until: float, cancelled: Callable[[], bool]) -> None:
        """Until the service accepts requests again, as it has told this call or another one."""
        while (left := self._not_before - time.monotonic()) > 0:
            if cancelled() or self._not_before > latest(until):
                message, data = f"the service asks to wait for {left:.0f} more seconds", {"retry_after": round(left, 1)}
                raise ToolError(message, code="rate_limited", retryable=True, data=data, retry_after=left)
            time.sleep(min(left, _LOOK))

    def _request(self, method: str, written: Written) -> Request:
        target = parse_target(self._server.url.rstrip("/") + written.path)
        headers = {"accept": b"application/json, */*;q=0.5", "user-agent": b"moonbox", **written.headers}
        headers |= {name.lower(): header_value(name, value) for name, value in self._settings.headers.items()}
        if self._credentials:
            target = self._credentials.put(target, headers)
        return Request(target, method, tuple(headers.items()), written.body, frozenset(headers), secret_body=True)


class _Credentials:
    """Puts credentials into requests; a token of client credentials is requested once, and renewed."""

    def __init__(self, settings: ApiCredentials, redact: SecretRedactor, timeout: float) -> None:
        self._settings, self._redact, self._timeout = settings, redact, timeout
        self._lock = threading.Lock()
        self._token, self._expires = "", 0.0
        redact.add("password", (settings.basic or "").partition(":")[2])
        for name in ("bearer", "api_key", "client_secret"):
            redact.add(name, getattr(settings, name) or "")
        if settings.token_url is not None:
            self._endpoint = parse_target(settings.token_url)
            self._client = client(Origin(self._endpoint, [self._endpoint]))
            weakref.finalize(self, self._client.close)

    def put(self, target: Target, headers: dict[str, bytes]) -> Target:
        """Change the headers, or return the target with a query parameter more."""
        settings = self._settings
        if settings.api_key is None:
            value = _basic(settings.basic) if settings.basic else f"Bearer {settings.bearer or self._current()}"
            headers["authorization"] = header_value("authorization", value)
            return target
        place, _, name = (settings.api_key_in or "").partition(":")
        if place == "query":
            joint = "&" if "?" in target.path else "?"
            return replace(target, path=f"{target.path}{joint}{urlencode({name: settings.api_key})}")
        key = header_value("api_key", settings.api_key)
        if place == "cookie":
            key = b"; ".join([f"{name}=".encode() + key, *([headers["cookie"]] if "cookie" in headers else [])])
        headers["cookie" if place == "cookie" else name.lower()] = key
        return target

    def forget(self) -> bool:
        """Drop the token. Returns whether there was one, which the service may have revoked."""
        with self._lock:
            had, self._token = bool(self._token), ""
        return had

    def _current(self) -> str:
        with self._lock:
            if not self._token or self._expires < time.monotonic():
                self._request_token(self._settings)
            return self._token

    def _request_token(self, settings: ApiCredentials) -> None:
        form = {"grant_type": "client_credentials", **({"scope": " ".join(settings.scopes)} if settings.scopes else {})}
        basic = _basic(f"{settings.client_id}:{settings.client_secret}").encode()
        headers = (("authorization", basic), ("content-type", b"application/x-www-form-urlencoded"))
        request = Request(self._endpoint, "POST", headers, urlencode(form).encode())
        response = self._client.send(request, timeout=self._timeout, max_bytes=65_536, redirects=0)
        answer = parse_json(response.body)
        token = answer.get("access_token") if isinstance(answer, dict) and response.status == 200 else None
        if not isinstance(token, str):
            message = f"the login failed: {self._endpoint.host} answered with HTTP {response.status} and no token"
            raise ToolError(message, code="denied")
        self._redact.add("access_token", token)
        lasts = answer.get("expires_in")
        seconds = lasts if isinstance(lasts, int | float) else 300
        self._token, self._expires = token, time.monotonic() + max(seconds - 30, seconds / 2)


def client(policy: Origin) -> Client:
    return Client(policy, extra="openapi", purpose="the service of an OpenAPI specification")


def _basic(user_and_password: str) -> str:
    return "Basic " + base64.b64encode(user_and_password.encode()).decode()


def latest(until: float) -> float:
    """The moment until which a call may wait: its run may end before."""
    clock = CLOCK.get()
    return until if clock is None or clock.deadline is None else min(until, clock.deadline - _MARGIN)


def _retry_after(response: Response, tries: int) -> float:
    """Seconds, as the service says or else longer with each try; never none, or this would be a loop of requests."""
    said = retry_after(response.headers.get("retry-after", ""), time.time())
    return 0.5 * 2.0 ** min(tries, 6) if said is None else max(_LOOK, said)


def _failure(response: Response) -> ToolError:
    """The service's words are bounded and in quotes, so that a model does not take them for ours."""
    code, retryable = code_of_status(response.status)
    answer = parse_json(response.body)
    said = words_of(answer)
    if isinstance(answer, dict):
        parts = [words_of(answer.get(key)) for key in ("title", "message", "error", "detail", "errors")]
        said = ": ".join(dict.fromkeys(part for part in parts if part)) or said
    elif not said and "html" not in response.headers.get("content-type", ""):
        said = response.body[: 4 * _LONGEST_MESSAGE].decode("utf-8", "replace")
    words = one_line(said, _LONGEST_MESSAGE).replace('"', "'")
    data: dict[str, Any] = {"status": response.status}
    if response.status == 429 or "retry-after" in response.headers:
        data["retry_after"] = round(_retry_after(response, 0), 1)
    message = f"HTTP {response.status}" + (f'; the service says: "{words}"' if words else "")
    return ToolError(message, code=code, retryable=retryable, data=data, retry_after=data.get("retry_after"))


def _value(method: str, response: Response) -> Any:
    """JSON as data, text as text, everything else as a medium."""
    body, kind = response.body, response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "HEAD" or not body:
        return dict(response.headers) if method == "HEAD" else None
    if "json" in kind or body.lstrip()[:1] in (b"{", b"["):
        value = parse_json(body)
        if value is not None or body.strip() == b"null":
            return value
    try:
        if not kind or kind.startswith("text/") or "xml" in kind or "json" in kind:
            charset = _CHARSET.search(response.headers.get("content-type", ""))
            return body.decode(charset[1] if charset else "utf-8")
        return Media(body, kind)
    except (UnicodeDecodeError, LookupError, UsageError):
        return Media(body)
