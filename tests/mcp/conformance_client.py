"""The client of the conformance suite's client scenarios: moonbox's own connection to a server.

The suite calls it with the address of its test server, and names the scenario in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import httpx2
from mcp_types import ElicitResult

from moonbox.config.mcp import LoginSettings, ServerSettings
from moonbox.mcp.caller import Callbacks, ClientFeatures
from moonbox.mcp.upstreams.browser import parse_return
from moonbox.mcp.upstreams.connection import connect, make_transport
from moonbox.mcp.upstreams.login import LoginStore, Person, make_auth

REDIRECT = "http://127.0.0.1:39157/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Answering:
    """A client that accepts every form as it is."""

    client = "conformance"
    wants_progress = False
    opens_addresses = False
    log_level = None

    async def forward(self, _: Any) -> Any:
        return ElicitResult(action="accept", content={})

    def log(self, _: Any) -> None:
        """Nothing is shown."""


def headless() -> Person:
    """A browser whose person agrees at once: the suite's authorization server asks nothing."""
    address = ""

    async def open_address(url: str) -> None:
        nonlocal address
        async with httpx2.AsyncClient(timeout=60) as client:
            answer = await client.get(url, follow_redirects=False)
        address = answer.headers["location"]

    async def wait_for_return() -> Any:
        return parse_return(address)

    return Person(REDIRECT, open_address, wait_for_return)


async def settings_for(url: str, scenario: str, context: dict[str, Any]) -> ServerSettings:
    oauth: dict[str, Any] = {"client_metadata_url": DOCUMENT} if scenario == "auth/basic-cimd" else {}
    if scenario == "auth/pre-registration" or scenario.startswith("auth/client-credentials"):
        oauth = {"client_id": context["client_id"], "issuer": await _issuer(url)}
        if scenario != "auth/pre-registration":
            oauth["grant"] = "client_credentials"
        if "private_key_pem" in context:
            oauth |= {"private_key": context["private_key_pem"], "algorithm": context["signing_algorithm"]}
        else:
            oauth["client_secret"] = context["client_secret"]
    return ServerSettings(name="conformance", url=url, oauth=LoginSettings(**oauth) if oauth else None)


async def _issuer(url: str) -> str:
    """The authorization server, which a person would know."""
    async with httpx2.AsyncClient(timeout=60) as client:
        parts = httpx2.URL(url)
        answer = await client.get(f"{parts.scheme}://{parts.netloc.decode()}/.well-known/oauth-protected-resource/mcp")
    return str(answer.json()["authorization_servers"][0])


async def main(url: str) -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    settings = await settings_for(url, scenario, context)
    callbacks = Callbacks("conformance")
    features = ClientFeatures(elicitation=True, caller=lambda: cast(Any, Answering()))
    callbacks.features = features
    with tempfile.TemporaryDirectory() as folder:
        auth = make_auth(settings, LoginStore(Path(folder)), headless()) if scenario.startswith("auth/") else None
        async with connect(make_transport(settings, auth), features, callbacks.answer) as connection:
            for tool in await connection.tools():
                await connection.call(tool, {"a": 2, "b": 3} if tool.name == "add_numbers" else {}, None)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
