"""Servers of each published revision of the protocol, written on the wire and without the SDK, as strict as they were.

python tests/mcp/revision_server.py stdio REVISION   one server
python tests/mcp/revision_server.py http             prints its address; under it:
    /<revision>/stateful    streamable HTTP with sessions, answers as streams
    /<revision>/stateless   the same without sessions, answers as JSON
    /2024-11-05/sse         HTTP with a separate stream of events, which came before
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
MODERN = REVISIONS[-1]
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CACHE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Refused(Exception):
    """A request that this revision does not allow."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class Server:
    """One server; `initialized` is the state of one connection."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.initialized = False

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The response; None to a notification."""
        if "id" not in message:
            return None
        try:
            result = self._result(message["method"], message.get("params") or {})
        except Refused as refusal:
            return {"jsonrpc": "2.0", "id": message["id"], "error": refusal.error}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.revision == MODERN:
            if params.get("_meta", {}).get(VERSION_KEY) != MODERN:
                versions = {"supported": [MODERN], "requested": params.get("protocolVersion", "")}
                raise Refused(-32022, "unsupported protocol version", versions)
            if method == "server/discover":
                return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **CACHE}
        elif method == "initialize":
            self.initialized = True
            info = {"name": "old", "version": self.revision}
            return {"protocolVersion": self.revision, "capabilities": {"tools": {}}, "serverInfo": info}
        elif not self.initialized and method != "ping":
            raise Refused(-32602, "received a request before the initialization was complete")
        if method == "tools/list":
            return {"tools": [self._tool()], **(CACHE if self.revision == MODERN else {})}
        if method == "tools/call" and params.get("name") == "add":
            return self._sum(params["arguments"])
        raise Refused(-32601, f"unknown method {method}")

    def _tool(self) -> dict[str, Any]:
        """With what a tool could have in this revision."""
        number = {"type": "number"}
        schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
        tool: dict[str, Any] = {"name": "add", "description": "Add two numbers.", "inputSchema": schema}
        if self.revision >= "2025-03-26":
            tool["annotations"] = {"readOnlyHint": True}
        if self.revision >= "2025-06-18":
            tool["title"] = "Add"
            tool["outputSchema"] = {"type": "object", "properties": {"sum": number}, "required": ["sum"]}
        if self.revision >= "2025-11-25":
            tool["icons"] = [{"src": "https://example.com/add.png", "mimeType": "image/png", "sizes": ["48x48"]}]
        return tool

    def _sum(self, arguments: dict[str, Any]) -> dict[str, Any]:
        total = arguments["a"] + arguments["b"]
        result: dict[str, Any] = {"content": [{"type": "text", "text": str(total)}]}
        if self.revision >= "2025-06-18":
            result["structuredContent"] = {"sum": total}
        if self.revision == MODERN:
            result["resultType"] = "complete"
        return result


def over_stdio(revision: str) -> None:
    server = Server(revision)
    for line in sys.stdin:
        response = server.answer(json.loads(line))
        if response is not None:
            print(json.dumps(response), flush=True)


class Handler(BaseHTTPRequestHandler):
    """All revisions and kinds, by the path."""

    protocol_version = "HTTP/1.1"
    sessions: ClassVar[dict[str, Server]] = {}
    streams: ClassVar[dict[str, queue.SimpleQueue[str]]] = {}

    def do_GET(self) -> None:
        if self.path != "/2024-11-05/sse":
            self._send(405)
            return
        name = uuid.uuid4().hex
        self.sessions[name], self.streams[name] = Server("2024-11-05"), queue.SimpleQueue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        event = f"event: endpoint\ndata: /2024-11-05/messages?session={name}\n\n"
        while True:
            try:
                self.wfile.write(event.encode())
                self.wfile.flush()
            except OSError:
                return  # the client is gone
            event = f"event: message\ndata: {self.streams[name].get()}\n\n"

    def do_DELETE(self) -> None:
        self.sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
        self._send(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/2024-11-05/messages?session="):
            name = self.path.rpartition("=")[2]
            response = self.sessions[name].answer(message)
            if response is not None:
                self.streams[name].put(json.dumps(response))
            self._send(202)
            return
        _, revision, kind = self.path.split("/")
        problem, server = self._admit(revision, kind, message)
        if server is None:
            self._send(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": problem}})
            return
        response = server.answer(message)
        self._send(202 if response is None else 200, response, stream=kind == "stateful", session=problem)

    def _admit(self, revision: str, kind: str, message: dict[str, Any]) -> tuple[str, Server | None]:
        """The new session's name and the server; or why the request is refused, and None."""
        told = self.headers.get("MCP-Protocol-Version")
        server = Server(revision)
        server.initialized = kind == "stateless"
        first = message["method"] in ("initialize", "server/discover")
        if revision == MODERN:
            if (self.headers.get("Mcp-Method"), told) != (message["method"], MODERN):
                return "the headers do not match the body", None
            return "", server
        if not first and revision >= "2025-06-18" and told != revision:
            return f"the header MCP-Protocol-Version is {told}", None
        if kind == "stateless" or message["method"] == "server/discover":
            return "", server
        if message["method"] == "initialize":
            name = uuid.uuid4().hex
            self.sessions[name] = server
            return name, server
        name = self.headers.get("Mcp-Session-Id", "")
        return ("", self.sessions[name]) if name in self.sessions else ("unknown session", None)

    def _send(self, status: int, body: Any = None, *, stream: bool = False, session: str = "") -> None:
        data = b"" if body is None else json.dumps(body).encode()
        kind = "application/json"
        if stream and status == 200:
            kind, data = "text/event-stream", b"event: message\r\ndata: " + data + b"\r\n\r\n"
        self.send_response(status)
        if session:
            self.send_header("Mcp-Session-Id", session)
        if data:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def over_http() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # until whoever started it is gone


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        over_stdio(sys.argv[2])
    else:
        over_http()
