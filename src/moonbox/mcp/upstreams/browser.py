"""A person with a browser: the loopback address to which a login returns, or an address to paste."""

from __future__ import annotations

import asyncio
import contextlib
import html
import sys
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from moonbox.audit.terminal import visible
from moonbox.errors import UsageError
from moonbox.mcp.upstreams.login import Person

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

__all__ = ["browser", "parse_return"]

_PATH = "/callback"
_MAX_REQUEST = 16_384
_PAGE = "<!doctype html><meta charset=utf-8><title>moonbox</title><p>{}</p>"


@contextlib.asynccontextmanager
async def browser(
    show: Callable[[str], Awaitable[None]], *, port: int = 0, paste: bool = False, seconds: float = 300.0
) -> AsyncIterator[Person]:
    """A Person: `show` opens an address, or shows it to them. With `paste` they can paste the address it leads to."""
    returned: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
            await _answer(head, writer, returned)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_MAX_REQUEST)
    actual = server.sockets[0].getsockname()[1]

    async def open_address(address: str) -> None:
        if urlsplit(address).scheme not in ("https", "http"):
            raise UsageError(f"the authorization server's address is invalid: {visible(address[:200], keep='')}")
        await show(address)

    async def wait_for_return() -> AuthorizationCodeResult:
        pasted = asyncio.create_task(asyncio.to_thread(sys.stdin.readline)) if paste else None
        waits: set[asyncio.Future[AuthorizationCodeResult] | asyncio.Task[str]] = {returned}
        if pasted is not None:
            waits.add(pasted)
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if returned in done:
            return returned.result()
        if pasted is not None and pasted in done:
            return parse_return(pasted.result().strip())
        raise UsageError(f"nobody logged in within {seconds:g} s")

    try:
        yield Person(f"http://127.0.0.1:{actual}{_PATH}", open_address, wait_for_return)
    finally:
        server.close()
        if returned.done() and not returned.cancelled():
            returned.exception()  # read here where nobody waited for it


def parse_return(address: str) -> AuthorizationCodeResult:
    """What the address says to which the authorization server sent the browser."""
    query = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
    if "error" in query:
        details = query.get("error_description", "")
        reason = query["error"] + (f": {details}" if details else "")
        raise UsageError(f"the login was refused: {visible(reason[:300], keep='')}")
    if not query.get("code"):
        raise UsageError("the address contains no code; paste the whole address that the browser ended at")
    return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def _answer(head: bytes, writer: asyncio.StreamWriter, returned: asyncio.Future[AuthorizationCodeResult]) -> None:
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or words[0] != "GET" or urlsplit(words[1]).path != _PATH:
        status, text = "404 Not Found", "This is not the page you are looking for."
    else:
        status, text = "200 OK", "You are logged in. You can close this page."
        try:
            result = parse_return(words[1])
        except UsageError as problem:
            text = str(problem)
            if not returned.done():
                returned.set_exception(problem)
        else:
            if not returned.done():
                returned.set_result(result)
    body = _PAGE.format(html.escape(text)).encode()
    headers = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{headers}Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode() + body)
    with contextlib.suppress(ConnectionError):
        await writer.drain()
