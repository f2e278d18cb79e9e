"""Logins of a person with a browser: where they return to, and how the person behind a client is asked for one."""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import mcp_types as types
from mcp.shared.auth import AuthorizationCodeResult

from moonbox.errors import ToolError, UsageError
from moonbox.mcp.caller import CALLER, Callbacks, ClientFeatures
from moonbox.mcp.upstreams.connection import connect, make_transport
from moonbox.mcp.upstreams.login import Login, LoginRequired, LoginStore, Person, make_auth
from moonbox.mcp.upstreams.status import describe
from moonbox.runs.record import CLOCK
from moonbox.threads import in_thread, own_thread
from moonbox.wording import visible

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.server.call import OpenCall

log = logging.getLogger("moonbox.mcp")

_PATH = "/callback"
_MAX_REQUEST = 16_384
_PAGE = "<!doctype html><meta charset=utf-8><title>moonbox</title><p>{}</p>"


@contextlib.asynccontextmanager
async def browser(
    show: Callable[[str], Awaitable[None]], *, port: int = 0, paste: bool = False, seconds: float = 300.0
) -> AsyncIterator[Person]:
    """A Person: `show` opens an address, or shows it to them. With `paste` they can paste the address it leads to."""
    returned: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
    expected = ""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
            await _answer(head, writer, returned, expected)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_MAX_REQUEST)
    actual = server.sockets[0].getsockname()[1]

    async def open_address(address: str) -> None:
        if urlsplit(address).scheme not in ("https", "http"):
            raise UsageError(f"the authorization server's address is invalid: {visible(address[:200], keep='')}")
        nonlocal expected
        expected = _query(address).get("state", "")
        await show(address)

    async def read_pasted() -> AuthorizationCodeResult:
        return parse_return((await in_thread(sys.stdin.readline, start=own_thread)).strip())

    async def wait_for_return() -> AuthorizationCodeResult:
        waits = [returned, *([asyncio.ensure_future(read_pasted())] if paste else [])]
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise UsageError(f"nobody logged in within {seconds:g} s")
        return next(future for future in waits if future in done).result()

    try:
        yield Person(f"http://127.0.0.1:{actual}{_PATH}", open_address, wait_for_return)
    finally:
        server.close()
        if returned.done() and not returned.cancelled():
            returned.exception()  # read here: no task waits for it


def parse_return(address: str) -> AuthorizationCodeResult:
    """What the address says to which the authorization server sent the browser."""
    query = _query(address)
    if "error" in query:
        details = query.get("error_description", "")
        reason = query["error"] + (f": {details}" if details else "")
        raise UsageError(f"the login was refused: {visible(reason[:300], keep='')}")
    if not query.get("code"):
        raise UsageError("the address contains no code; paste the whole address that the browser ended at")
    return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


def _query(address: str) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}


async def _answer(
    head: bytes, writer: asyncio.StreamWriter, returned: asyncio.Future[AuthorizationCodeResult], expected: str
) -> None:
    """Answer the browser's return. Any page can send a browser here; only our own login has the expected state."""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    status, text = "404 Not Found", "This is not the page you are looking for."
    if len(words) == 3 and words[0] == "GET" and urlsplit(words[1]).path == _PATH:
        state = _query(words[1]).get("state", "")
        if expected and secrets.compare_digest(state.encode(), expected.encode()):
            status, text = "200 OK", "You are logged in. You can close this page."
            try:
                result = parse_return(words[1])
                if not returned.done():
                    returned.set_result(result)
            except UsageError as problem:
                text = str(problem)
                if not returned.done():
                    returned.set_exception(problem)
    body = _PAGE.format(html.escape(text)).encode()
    headers = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{headers}Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode() + body)
    with contextlib.suppress(ConnectionError):
        await writer.drain()


async def log_in(
    settings: ServerSettings, logins: LoginStore, show: Callable[[str], Awaitable[None]], *, paste: bool = False
) -> None:
    """Let a person log in at a server, as `browser` describes; the store has the tokens then."""
    port = 0 if settings.oauth is None else settings.oauth.redirect_port
    async with browser(show, port=port, paste=paste) as person:
        auth = await in_thread(make_auth, settings, logins, person)
        answer = Callbacks(settings.name).answer
        async with connect(make_transport(settings, auth), ClientFeatures(), answer) as connection:
            await connection.tools()


class ServerLogin:
    """The login at one server: what is kept of it, and a new one by the person behind a client."""

    def __init__(self, settings: ServerSettings, logins: LoginStore | None) -> None:
        self.kept: Login | None = None
        """As it was read for the latest start."""
        self.required = False
        """Whether the server has refused what we have."""
        self.renewals = 0
        """How often a person has logged in: a start that began before the latest was made with older tokens."""
        self._settings = settings
        self._logins = logins
        self._asking = asyncio.Lock()

    def auth(self) -> OAuthClientProvider | None:
        """The tokens of an earlier login; read in a thread, because a keyring may take its time."""
        if self._logins is None or self._settings.url is None:
            return None
        self.kept = self._logins.login(self._settings)
        return make_auth(self._settings, self._logins, on_required=self._require)

    def error(self) -> ToolError:
        """What a call fails with before a person has logged in."""
        reason = f"the MCP server '{self._settings.name}': {LoginRequired(self._settings.name)}"
        return ToolError(reason, code="login_required")

    async def ask(self, alone: OpenCall | None) -> bool:
        """Ask the person behind the current call to log in, by an address that their client opens; whether that worked.

        Only over stdio: the browser returns to this machine, and the login is this person's own. `alone` is the only
        client there is; None of a server for many clients.
        """
        caller = CALLER.get() or alone
        if self._logins is None or alone is None or caller is None or not caller.opens_addresses:
            return False
        clock = CLOCK.get()
        with contextlib.nullcontext() if clock is None else clock.standing_still():  # a person's time is free
            return await self.log_in(lambda address: self._show(address, caller))

    async def log_in(self, show: Callable[[str], Awaitable[None]]) -> bool:
        """Let a person log in at the address that `show` gets; whether that worked."""
        async with self._asking:
            if not self.required or self._logins is None:
                return not self.required
            try:
                await log_in(self._settings, self._logins, show)
            except Exception as problem:  # noqa: BLE001 - the call fails with the reason that it had
                log.warning("the login at the MCP server '%s' failed: %s", self._settings.name, describe(problem))
                return False
            self.required = False
            self.renewals += 1
            return True

    def _require(self) -> None:
        self.required = True

    async def _show(self, address: str, caller: OpenCall) -> None:
        message = f"Log in to use the MCP server '{self._settings.name}'."
        params = types.ElicitRequestURLParams(message=message, url=address, elicitation_id=secrets.token_hex(8))
        answer = await caller.forward(types.ElicitRequest(params=params))
        if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
            raise LoginRequired(self._settings.name)
