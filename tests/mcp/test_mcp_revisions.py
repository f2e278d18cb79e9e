"""Clients and servers of each published revision meet through moonbox, over every transport that the revision has.

Both sides are written on the wire, without the SDK: what a client or a server of an early revision sends does not
change with the SDK's version.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from moonbox.config.mcp import ServerSettings
from moonbox.mcp.caller import ClientFeatures
from moonbox.mcp.upstreams.manager import Upstreams
from tests.mcp.mcp_driver import ACCEPT, SECONDS, http_server, moonbox
from tests.mcp.revision_server import MODERN, REVISIONS, VERSION_KEY
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = Path(__file__).with_name("revision_server.py")
HTTP_KINDS = ("stateful", "stateless")
CLIENT = {"name": "by hand", "version": "1"}
ENVELOPE = {
    VERSION_KEY: MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def configuration(address: str) -> tuple[str, dict[str, str]]:
    """All servers of all revisions, and the revision of each."""
    servers = {}
    for revision in REVISIONS:
        command, *arguments = program(SERVER, "stdio", revision)
        servers[f"stdio-{revision}"] = f'command = "{command}"\nargs = {json.dumps(arguments)}'
    servers["sse-2024-11-05"] = f'url = "{address}/2024-11-05/sse"\ntransport = "sse"'
    for revision, kind in itertools.product(REVISIONS[1:], HTTP_KINDS):
        if (revision, kind) != (MODERN, "stateful"):  # it has no sessions
            servers[f"{kind}-{revision}"] = f'url = "{address}/{revision}/{kind}"'
    parts = [f"[mcp.servers.{name}]\n{how}\n" for name, how in servers.items()]
    return '[codemode]\nmode = "never"\n[audit]\nenabled = false\n' + "".join(parts), {
        name: name.partition("-")[2] for name in servers
    }


@pytest.fixture(scope="module")
def web_servers() -> Iterator[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program(SERVER, "http"), text=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


class Client:
    """A client of one revision; `send` carries a message over its transport."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self._ids = itertools.count(1)

    def send(self, message: dict[str, Any]) -> dict[str, Any] | None:
        raise NotImplementedError

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        if self.revision == MODERN:
            params["_meta"] = ENVELOPE
        answer = self.send({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        assert answer is not None and "result" in answer, answer
        return dict(answer["result"])

    def begin(self) -> None:
        if self.revision == MODERN:
            assert MODERN in self.request("server/discover")["supportedVersions"]
            return
        agreed = self.request("initialize", protocolVersion=self.revision, capabilities={}, clientInfo=CLIENT)
        assert agreed["protocolVersion"] == self.revision
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> dict[str, Any]:
        return {tool["name"]: tool for tool in self.request("tools/list")["tools"]}


class StdioClient(Client):
    def __init__(self, revision: str, process: subprocess.Popen[str]) -> None:
        super().__init__(revision)
        self._process = process

    def send(self, message: dict[str, Any]) -> dict[str, Any] | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        if "id" not in message:
            return None
        messages = map(json.loads, self._process.stdout)
        return next((item for item in messages if item.get("id") == message["id"] and "method" not in item), None)


class HttpClient(Client):
    def __init__(self, revision: str, url: str, http: httpx.Client) -> None:
        super().__init__(revision)
        self._url, self._http = url, http
        self._session: dict[str, str] = {}

    def send(self, message: dict[str, Any]) -> dict[str, Any] | None:
        headers = {**ACCEPT, **self._session}
        if self.revision == MODERN:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
            if "name" in message["params"]:
                headers["Mcp-Name"] = message["params"]["name"]
        elif self.revision >= "2025-06-18" and message["method"] != "initialize":
            headers["MCP-Protocol-Version"] = self.revision
        response = self._http.post(self._url, json=message, headers=headers)
        assert response.is_success, response.text
        if session := response.headers.get("mcp-session-id"):
            self._session = {"Mcp-Session-Id": session}
        if "id" not in message:
            return None
        if response.headers["content-type"].startswith("application/json"):
            return dict(response.json())
        events = [line.removeprefix("data:") for line in response.text.splitlines() if line.startswith("data:")]
        messages = [json.loads(event) for event in events if event.strip()]
        return next((dict(item) for item in messages if item.get("id") == message["id"]), None)


def check(client: Client, servers: dict[str, str]) -> None:
    """The client lists and calls the tool of every server, and gets what it and the server both know."""
    client.begin()
    paths = {f"{name}__add": revision for name, revision in servers.items()}
    wait_until(lambda: paths.keys() <= client.tools().keys())
    tools = client.tools()
    for path, revision in paths.items():
        tool = tools[path]
        assert tool["inputSchema"]["required"] == ["a", "b"]
        if min(revision, client.revision) >= "2025-03-26":
            assert tool["annotations"]["readOnlyHint"] is True, path
        if min(revision, client.revision) >= "2025-06-18":
            assert tool["title"] == "Add", path
            assert tool["outputSchema"]["required"] == ["sum"], path
        if min(revision, client.revision) >= "2025-11-25":
            assert tool["icons"][0]["src"] == "https://example.com/add.png", path
        result = client.request("tools/call", name=path, arguments={"a": 2, "b": 3})
        assert not result.get("isError"), result
        assert result["content"][0]["text"] == "5", path
        if min(revision, client.revision) >= "2025-06-18":
            assert result["structuredContent"] == {"sum": 5}, path


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_over_stdio_reaches_servers_of_every_revision(
    revision: str, web_servers: str, tmp_path: Path, env: dict[str, str]
) -> None:
    config, servers = configuration(web_servers)
    (tmp_path / "moonbox.toml").write_text(config)
    command, arguments = moonbox("serve")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([command, *arguments], cwd=tmp_path, env={**os.environ, **env}, text=True, **pipes)
    with process:
        assert process.stdin is not None
        try:
            check(StdioClient(revision, process), servers)
        finally:
            process.stdin.close()
            process.wait(SECONDS)


def test_clients_over_http_reach_servers_of_every_revision(
    web_servers: str, tmp_path: Path, env: dict[str, str]
) -> None:
    config, servers = configuration(web_servers)
    (tmp_path / "moonbox.toml").write_text(config)
    with http_server(env=env, cwd=tmp_path) as url, httpx.Client(timeout=SECONDS) as http:
        for revision in REVISIONS[1:]:  # the first has another transport
            check(HttpClient(revision, url, http), servers)


BOTH = program(SERVER.with_name("everything_server.py"), "stdio")


@pytest.mark.parametrize(
    ("server", "protocol", "clients", "spoken"),
    [
        (BOTH, "auto", "current", "2026-07-28"),
        (BOTH, "auto", "earlier", "2025-11-25"),
        (BOTH, "auto", "mixed", "2026-07-28"),
        (BOTH, "current", "earlier", "2026-07-28"),
        (BOTH, "earlier", "current", "2025-11-25"),
        (program(SERVER, "stdio", MODERN), "auto", "earlier", MODERN),
        (program(SERVER, "stdio", "2025-03-26"), "auto", "current", "2025-03-26"),
        (program(SERVER, "stdio", MODERN), "earlier", "current", 'protocol = "earlier" rules out the other protocol'),
        (program(SERVER, "stdio", "2025-03-26"), "current", "earlier", 'protocol = "current" rules out the other'),
    ],
)
def test_a_server_of_both_protocols_is_spoken_to_in_that_of_the_client(
    server: list[str], protocol: Any, clients: Any, spoken: str
) -> None:
    command, *arguments = server
    settings = ServerSettings(name="it", command=command, args=tuple(arguments), protocol=protocol)
    with Upstreams([settings]).start(ClientFeatures(elicitation=True, clients=clients)) as upstreams:
        assert upstreams.wait(100)
        status = upstreams.status("it")
        assert status.protocol == spoken or spoken in status.reason
