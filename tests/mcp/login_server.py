"""An MCP server that requires a login, with its own authorization server; a person who logs in agrees at once.

python tests/mcp/login_server.py SECONDS     prints its address; negative: tokens are not renewed
"""

from __future__ import annotations

import secrets
import socket
import sys
import time
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl


class Provider(OAuthAuthorizationServerProvider[Any, Any, Any]):
    """Clients, codes and tokens in memory."""

    def __init__(self, seconds: int, *, renews: bool) -> None:
        self.seconds = seconds
        self.renews = renews
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(20),
            client_id=client.client_id,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            expires_at=time.time() + 60,
            scopes=params.scopes or ["use"],
            code_challenge=params.code_challenge,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> Any:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client.client_id, authorization_code.scopes, authorization_code.resource)

    def _tokens(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        token, renewal = secrets.token_urlsafe(20), secrets.token_urlsafe(20)
        expires = int(time.time()) + self.seconds
        self.access[token] = AccessToken(
            token=token, client_id=client, scopes=scopes, expires_at=expires, resource=resource
        )
        if self.renews:
            self.refresh[renewal] = RefreshToken(token=renewal, client_id=client, scopes=scopes)
        return OAuthToken(
            access_token=token,
            expires_in=self.seconds,
            scope=" ".join(scopes),
            refresh_token=renewal if self.renews else None,
        )

    async def load_refresh_token(self, client: Any, refresh_token: str) -> Any:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: list[str]) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self._tokens(client.client_id, scopes, None)

    async def load_access_token(self, token: str) -> Any:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.access.pop(token.token, None)


async def list_tools(*_: Any) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {}}
    return types.ListToolsResult(tools=[types.Tool(name="hello", description="Greets.", input_schema=schema)])


async def call_tool(*_: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text="hello")])


def main(seconds: int) -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
    app: Server[Any] = Server("login", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    provider = Provider(abs(seconds), renews=seconds > 0)
    web = app.streamable_http_app(
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
            required_scopes=["use"],
            validate_token_resource=False,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["use"], default_scopes=["use"]
            ),
        ),
        auth_server_provider=provider,
        token_verifier=ProviderTokenVerifier(provider),
    )
    print(f"{origin}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(web, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main(int(sys.argv[1]))
