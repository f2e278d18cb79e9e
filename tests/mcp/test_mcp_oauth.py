"""Tokens of an authorization server: whose, for whom, until when, with which scopes."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from mcp import MCPError

from tests.loopback_servers import Answer, Server
from tests.mcp.mcp_driver import ACCEPT, HELLO, bearer, over_http, served, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mcp.mcp_driver import Driver

RESOURCE = "https://tools.example.com/mcp"


class Issuer:
    """An authorization server, as far as a resource server sees it: metadata and keys, over HTTP."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        routes: dict[str, Any] = {
            "/keys": lambda _: Answer.json({"keys": [self.public_key()]}),
            "/.well-known/oauth-authorization-server": lambda _: Answer.json(
                {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
            ),
        }
        self.server = Server(routes, "127.0.0.1", None)
        self.url: str = self.server.url

    def public_key(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {**public, "kid": "one", "use": "sig", "alg": "RS256"}

    def token(self, *, key: Any = None, algorithm: str = "RS256", **changes: Any) -> str:
        claims = {
            "iss": self.url,
            "aud": RESOURCE,
            "exp": time.time() + 60,
            "sub": "ada",
            "client_id": "an-editor",
            "scope": "moonbox other",
            **changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        signer: Any = None if algorithm == "none" else key or self.key
        return jwt.encode(claims, signer, algorithm=algorithm, headers={"kid": "one"})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.server.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("oauth")
    with served(folder, _config(issuer)) as address:
        yield address


def _config(issuer: Issuer, more: str = "") -> str:
    oauth = f'[serve.oauth]\nissuer = "{issuer.url}"\nresource = "{RESOURCE}"\nscopes = ["moonbox"]\n'
    return f"[serve]\n{more}\n{oauth}"


def _status(url: str, token: str) -> int:
    return httpx2.post(url, json=HELLO, headers={**ACCEPT, **bearer(token)}, timeout=100).status_code


def test_a_token_for_us_is_taken(url: str, issuer: Issuer, driver: Driver) -> None:
    assert _status(url, issuer.token()) == 200
    with driver.session(over_http(url, bearer(issuer.token()))) as session:
        assert session.value("return 6 * 7") == 42


def test_other_tokens_are_refused(url: str, issuer: Issuer) -> None:
    refused = {
        "for another server": issuer.token(aud="https://other.example.com/mcp"),
        "from another issuer": issuer.token(iss="https://other.example.com"),
        "outdated": issuer.token(exp=time.time() - 60),
        "without an end": issuer.token(exp=None),
        "for nobody": issuer.token(aud=None),
        "signed by another key": issuer.token(key=issuer.other),
        "signed by nobody": issuer.token(algorithm="none"),
        "signed with the public key as a secret": _confused(issuer),
        "nonsense": "not.a.token",
    }
    assert {what: _status(url, token) for what, token in refused.items()} == dict.fromkeys(refused, 401)


def test_scopes_are_demanded(url: str, issuer: Issuer) -> None:
    assert _status(url, issuer.token(scope="other")) == 403
    assert _status(url, issuer.token(scope=None, scp=["moonbox"])) == 200


def test_clients_are_told_where_to_get_a_token(url: str, issuer: Issuer) -> None:
    refused = httpx2.post(url, json=HELLO, headers=ACCEPT, timeout=100)
    assert refused.status_code == 401
    assert (
        'resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"'
        in (refused.headers["www-authenticate"])
    )
    metadata = httpx2.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"), timeout=100).json()
    assert metadata["resource"] == RESOURCE
    assert [server.rstrip("/") for server in metadata["authorization_servers"]] == [issuer.url]
    assert metadata["scopes_supported"] == ["moonbox"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_two_persons_share_nothing(url: str, issuer: Issuer, driver: Driver, mode: str) -> None:
    """The same application, two persons: `sub` of their tokens tells them apart."""

    def as_(person: str) -> Any:
        return driver.session(over_http(url, bearer(issuer.token(sub=person))), mode=mode)

    with as_("ada") as ada, as_("ben") as ben:
        mine = ada.lua("secret = 'hers' return secret")
        run = mine.meta["moonbox/run"]
        handle = (mine.structured_content or {}).get("state")
        state = {"state": handle} if handle else {}
        assert ada.value("return secret", **state) == "hers"
        assert ben.value("return secret", **state) is None
        assert f"moonbox://runs/{run}" not in ben.resources()
        with pytest.raises(MCPError, match="unknown resource"):
            ben.read(f"moonbox://runs/{run}")
        with as_("ada") as again:
            assert f"moonbox://runs/{run}" in again.resources(), "another token of the same person"


def test_a_session_is_not_taken_over_with_another_persons_token(url: str, issuer: Issuer) -> None:
    opened = httpx2.post(url, json=HELLO, headers={**ACCEPT, **bearer(issuer.token())}, timeout=100)
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}

    def status(person: str) -> int:
        headers = {**ACCEPT, **session, **bearer(issuer.token(sub=person))}
        return httpx2.post(url, json=listing, headers=headers, timeout=100).status_code

    assert (status("ben"), status("ada")) == (404, 200)


def test_quotas_are_a_persons_own(tmp_path: Path, issuer: Issuer, driver: Driver) -> None:
    with served(tmp_path, _config(issuer, "calls_per_minute = 3")) as url:
        ada, ben = (over_http(url, bearer(issuer.token(sub=person))) for person in ("ada", "ben"))
        with driver.session(ada) as first, driver.session(ben) as second:
            assert [first.value(f"return {number}") for number in range(3)] == [0, 1, 2]
            refused = first.lua("return 3")
            assert refused.is_error
            assert re.fullmatch(r"error: this client may make 3 calls a minute; try again in \d+ s", text(refused)), (
                text(refused)
            )
            assert second.value("return 1") == 1, "the other person has a quota of their own"
        with driver.session(over_http(url, bearer(issuer.token(sub="ada")))) as again:
            assert again.lua("return 4").is_error, "a new token or session gives no new quota"


def _confused(issuer: Issuer) -> str:
    """A token whose maker hopes that the public key is taken for a shared secret."""
    import base64
    import hashlib
    import hmac

    def part(data: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")

    claims = {"iss": issuer.url, "aud": RESOURCE, "exp": time.time() + 60, "scope": "moonbox"}
    body = f"{part({'alg': 'HS256', 'kid': 'one'})}.{part(claims)}"
    secret = jwt.algorithms.RSAAlgorithm.to_jwk(issuer.key.public_key()).encode()
    signature = hmac.new(secret, body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
