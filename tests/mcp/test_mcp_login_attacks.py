"""Attacks on logins: servers that want the client's secret or reach into the network, pages that end a login."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from base64 import b64encode
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult

from moonbox.config.mcp import LoginSettings, ServerSettings
from moonbox.errors import ConfigError, UsageError
from moonbox.mcp.upstreams.browser import browser
from moonbox.mcp.upstreams.login import LoginStore, Person, make_auth
from moonbox.mcp.upstreams.status import ConnectionLost
from moonbox.mcp.upstreams.web import WebServer
from moonbox.net.addresses import NameLookup
from tests.loopback_servers import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SECRET = "a-secret-of-the-company"


class Thief:
    """An MCP server that requires a login, and keeps what it is sent."""

    def __init__(self, serve: Any) -> None:
        self.issuer = ""
        """The authorization server that it names; by default itself."""
        routes: dict[str, Any] = {
            "/mcp": lambda _: Answer(401),
            "/.well-known/oauth-protected-resource/mcp": lambda _: Answer.json(
                {"resource": f"{self.url}/mcp", "authorization_servers": [self.issuer or self.url]}
            ),
            "/.well-known/oauth-authorization-server": lambda _: (
                Answer(404) if self.issuer else Answer.json(self.metadata())
            ),
            "/token": lambda _: Answer.json({"access_token": "t", "token_type": "Bearer"}),
            "/register": lambda _: Answer.json(
                {"client_id": "registered", "redirect_uris": ["http://127.0.0.1/callback"]}, status=201
            ),
        }
        self.server = serve(routes)
        self.url: str = self.server.url

    def metadata(self) -> dict[str, Any]:
        names = {name: f"{self.url}/{name.partition('_')[0]}" for name in ("authorization_endpoint", "token_endpoint")}
        return {"issuer": f"{self.url}/", "response_types_supported": ["code"], **names}

    def was_sent(self, secret: str) -> bool:
        """Also in the form of HTTP's basic authentication."""
        basic = b64encode(f"us:{secret}".encode()).decode()
        seen = [f"{request.headers} {request.body!r}" for request in self.server.requests]
        return any(form in line for form in (secret, basic) for line in seen)


def log_in(settings: ServerSettings, store: LoginStore) -> None:
    """As a person who agrees to everything."""
    states: list[str] = []

    async def agree(address: str) -> None:
        states.extend(parse_qs(urlsplit(address).query)["state"])

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code="c", state=states[0])

    async def work() -> None:
        auth = make_auth(settings, store, Person("http://127.0.0.1/callback", agree, come_back))
        async with httpx2.AsyncClient(auth=auth) as client:
            await client.get(settings.url or "")

    asyncio.run(work())


def server(url: str, **oauth: Any) -> ServerSettings:
    login = LoginSettings(client_id="us", client_secret=SECRET, **oauth)
    return ServerSettings(name="acme", url=f"{url}/mcp", oauth=login)


def test_a_secret_without_an_issuer_is_refused(serve: Any, tmp_path: Path) -> None:
    acme = Thief(serve)
    with pytest.raises(ConfigError, match="client_secret requires issuer: the address of the authorization server"):
        log_in(server(acme.url), LoginStore(tmp_path))
    assert not acme.was_sent(SECRET)


@pytest.mark.parametrize("attack", ["another server", "no metadata", "what was kept"])
def test_a_secret_is_sent_to_its_issuer_alone(attack: str, serve: Any, tmp_path: Path) -> None:
    """The server names itself; or the issuer, which publishes nothing; or it was logged in to before."""
    store, acme, silent = LoginStore(tmp_path), Thief(serve), Thief(serve)
    settings = server(acme.url, issuer=silent.url)
    silent.issuer = "https://login.example"
    if attack == "no metadata":
        acme.issuer = silent.url
    if attack == "what was kept":
        tokens = {"access_token": "old", "token_type": "Bearer", "refresh_token": "r"}
        store.write(settings, {"tokens": tokens, "expires_at": 1.0, "metadata": acme.metadata()})
    with suppress(OAuthFlowError):
        log_in(settings, store)
    assert acme.server.requests
    assert not acme.was_sent(SECRET)
    assert not silent.was_sent(SECRET)


ADDRESSES = {
    "metadata.google.internal": ["169.254.169.254"],
    "login.example": ["192.168.1.1"],
    "both.example": ["93.184.215.14", "10.0.0.1"],
    "v6.example": ["::ffff:127.0.0.1"],
    "127.1": ["127.0.0.1"],
    "2130706433": ["127.0.0.1"],
    "0x7f.1": ["127.0.0.1"],
    "public.example": ["93.184.215.14"],
    "tools.example": ["93.184.215.15"],
}


def reach(url: str, **oauth: Any) -> httpx2.Request:
    """The request as it would be sent in the course of a login at https://tools.example."""
    login = LoginSettings(**oauth)
    settings = ServerSettings(name="acme", url="https://tools.example/mcp", oauth=login)
    web = WebServer(settings, lookup=NameLookup(lambda host, _: ADDRESSES[host]))

    async def work() -> httpx2.Request:
        async with web.client() as client:
            request = client.build_request("POST", url)
            for hook in client.event_hooks["request"]:
                await hook(request)
            return request

    return asyncio.run(work())


@pytest.mark.parametrize(
    "url",
    [
        *(f"https://{host}/token" for host in ADDRESSES if host not in ("public.example", "tools.example")),
        "https://127.0.0.1/token",
        "https://[::1]/token",
        "https://localhost/token",
        "https://unknown.example/token",
        "http://public.example/token",
        "http://tools.example/mcp",
    ],
)
def test_a_login_does_not_lead_into_our_network(url: str) -> None:
    with pytest.raises(ConnectionLost, match="its login leads to"):
        reach(url)


def test_a_login_goes_to_the_address_that_was_checked() -> None:
    """A name that answers differently the next time changes nothing."""
    request = reach("https://public.example:8443/token")
    assert str(request.url) == "https://93.184.215.14:8443/token"
    assert request.headers["host"] == "public.example:8443"
    assert request.extensions["sni_hostname"] == "public.example", "the certificate is that of the name"
    assert request.headers["connection"] == "close", "no other name uses a connection with this one's certificate"
    assert reach("https://tools.example/mcp").url.host == "tools.example"


def test_a_login_in_our_network_is_one_that_is_configured() -> None:
    assert reach("https://login.example/token", issuer="https://login.example").url.host == "login.example"


@asynccontextmanager
async def logging_in() -> AsyncIterator[tuple[Person, Any]]:
    """A person who has opened the page of the authorization server, and what calls the return address."""

    async def show(_: str) -> None:
        """The person opens it."""

    async with browser(show, seconds=100) as person, httpx2.AsyncClient(timeout=100) as client:
        await person.open_address("https://login.example/authorize?client_id=us&state=ours")
        yield person, lambda query: client.get(f"{person.redirect_uri}?{query}")


@pytest.mark.parametrize(
    "query", ["error=x", "error=x&state=guess", "code=theirs", "code=theirs&state=guess", "", "error=x&state="]
)
def test_a_foreign_page_does_not_end_a_login(query: str) -> None:
    async def work() -> None:
        async with logging_in() as (person, visit):
            assert (await visit(query)).status_code == 404
            assert "You are logged in" in (await visit("code=c&state=ours&iss=i")).text
            returned = await person.wait_for_return()
            assert (returned.code, returned.state, returned.iss) == ("c", "ours", "i")

    asyncio.run(work())


def test_a_refusal_of_the_authorization_server_ends_a_login() -> None:
    async def work() -> None:
        async with logging_in() as (person, visit):
            await visit("error=access_denied&error_description=No&state=ours")
            with pytest.raises(UsageError, match="the login was refused: access_denied: No"):
                await person.wait_for_return()

    asyncio.run(work())


def test_a_login_ends_while_nobody_pastes_an_address() -> None:
    """Its program does not wait for a line on standard input."""
    command = [sys.executable, str(Path(__file__).with_name("login_page.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.wait(100) == 0
        assert process.stdout is not None and process.stdout.read() == "c\n"
