"""A server reached over HTTP: the SDK's transports with bounds on what they may be sent."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from moonbox._version import __version__
from moonbox.mcp.server.limits import TokenBucket
from moonbox.mcp.upstreams.status import ConnectionLost
from moonbox.mcp.upstreams.transport import Transport
from moonbox.net.addresses import NameLookup, NetError, is_loopback
from moonbox.net.client import PublicAddresses, is_compressed
from moonbox.threads import in_thread

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from moonbox.config.mcp import ServerSettings

BYTES_PER_SECOND, LINE_COST = 32 * 1024 * 1024, 8 * 1024
"""How fast a stream of events is read, and what each of its lines costs beside its bytes."""
_CONNECT_SECONDS = 30.0
_NAMED = "moonbox_named_url"
"""In a request's extensions: its address with the name, where it is sent to an address that was checked."""
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LONGEST_OF_SSE = 1024 * 1024
"""The most that the SDK takes in one event of the transport of 2024-11-05."""
_SILENT_SECONDS = 600.0
"""How long a stream may stay open without a byte; calls have their own, shorter time."""


class WebServer(Transport):
    """Connects to a server by its address. A lost server is noticed at the next request."""

    def __init__(
        self, settings: ServerSettings, auth: httpx2.Auth | None = None, *, lookup: NameLookup | None = None
    ) -> None:
        super().__init__(settings)
        self._auth = auth
        self._lookup = lookup or NameLookup()

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[TransportStreams]:
        settings = self.settings
        assert settings.url is not None
        if settings.kind == "sse":
            async with sse_client(
                settings.url, headers=dict(settings.headers), httpx_client_factory=self.client, auth=self._auth
            ) as streams:
                yield streams
            return
        async with (
            self.client(dict(settings.headers), auth=self._auth) as client,
            streamable_http_client(
                settings.url, http_client=client, max_sse_event_size=settings.max_message
            ) as streams,
        ):
            yield streams

    def client(
        self, headers: dict[str, str] | None = None, timeout: Any = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        """The HTTP client for this server and for the login at it."""
        return httpx2.AsyncClient(
            headers={"user-agent": f"moonbox/{__version__}", **(headers or {}), "accept-encoding": "identity"},
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_SILENT_SECONDS),
            auth=auth,
            event_hooks={"request": [self._check_address], "response": [self._bound]},
        )

    async def _check_address(self, request: httpx2.Request) -> None:
        """A login goes to addresses that the server names: none of them may be an address inside of our network.

        The request goes to an address that was checked: the name is not resolved again. TLS verifies the certificate
        of the name, so no other request may use the connection.
        """
        oauth, url = self.settings.oauth, request.url
        configured = (self.settings.url, None if oauth is None else oauth.issuer)
        own = [httpx2.URL(text) for text in configured if text is not None]
        if is_loopback(own[0].host):
            return  # a server on this machine is trusted with this machine
        if any((one.scheme, one.host, one.port) == (url.scheme, url.host, url.port) for one in own):
            return
        try:
            if url.scheme != "https":
                raise NetError("it is not an https address", code="not_allowed")
            addresses = await in_thread(self._lookup.addresses, url.host, url.port or 443, _CONNECT_SECONDS)
            for address in addresses:
                PublicAddresses().check_address(url.host, address, url.port or 443)
        except (NetError, OSError) as problem:
            message = f"its login leads to {url.scheme}://{url.host}: {problem}"
            raise ConnectionLost(f"{message}; if it belongs to you, set it as issuer") from None
        request.extensions = {**request.extensions, "sni_hostname": url.host, _NAMED: url}
        request.headers["connection"] = "close"
        request.url = url.copy_with(host=str(addresses[0]))

    async def _bound(self, response: httpx2.Response) -> None:
        """Stop a body that is too long while it is read; events of a stream are bounded one by one.

        A compressed body may unpack to any length: none is requested, and none is accepted.
        """
        status = response.status_code
        self.refusal = f"it answered {status} {httpx2.codes.get_reason_phrase(status)}".strip() if status >= 400 else ""
        response.request.url = response.request.extensions.get(_NAMED, response.request.url)  # for redirects
        if is_compressed(response.headers.get("content-encoding", "")):
            raise ConnectionLost("it sent a compressed response, although none was requested")
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        limit, setting = self.settings.max_message, "max_message"
        if events and self.settings.kind == "sse" and limit > _LONGEST_OF_SSE:
            limit, setting = _LONGEST_OF_SSE, 'the limit of transport = "sse"'
        length, bucket = MessageLength(events=events), TokenBucket(BYTES_PER_SECOND, BYTES_PER_SECOND)

        async def spend(part: bytes) -> None:
            if length.add(part) > limit:
                self.end(f"it sent a message of more than {limit:,} bytes ({setting})")
                raise httpx2.SSEError(self.end_reason())  # the only error for which the SDK ends a stream at once
            if events:
                await bucket.pay(event_cost(part))

        response.stream = MeteredStream(response.stream, spend)


class MessageLength:
    """How long the message is that a body is at: the whole body, or an event, which ends with an empty line."""

    def __init__(self, *, events: bool) -> None:
        self._events = events
        self._length = 0
        self._end = b""

    def add(self, part: bytes) -> int:
        """The length of the longest message that has a piece in this part."""
        text = self._end + part
        first, *others = _EVENT_END.split(text) if self._events else [text]
        longest = self._length + len(first) - len(self._end)
        self._length = len(others[-1]) if others else longest
        self._end = text[-3:]  # where the end of an event may begin
        return max(longest, *map(len, others), 0)


def event_cost(part: bytes) -> int:
    """What a part of a stream of events costs: it is read only as fast as leaves time for other servers."""
    return len(part) + LINE_COST * (part.count(b"\n") or part.count(b"\r"))


@dataclass(slots=True)
class MeteredStream(httpx2.AsyncByteStream):
    """A body of which each part is paid for before it is read: `spend` waits, or raises an error."""

    _inner: Any
    _spend: Callable[[bytes], Awaitable[None]]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            await self._spend(part)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
