"""The loopback server: every wire format at its provider's paths."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wire import anthropic, gemini, openai_chat, openai_responses
from wire.model import Brain, Refused, Seen, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Wire", "serve"]

_GEMINI = re.compile(r"/v1(?:beta|beta1|alpha)?/models/([^:/]+):(generateContent|streamGenerateContent)")


class Wire:
    """A running server, and what it has seen."""

    def __init__(self, brain: Brain, longest_description: int) -> None:
        self.brain = brain
        self.longest_description = longest_description
        self.seen: list[Seen] = []
        self.refused: list[str] = []
        """What it answered with an error."""
        self.headers: list[dict[str, str]] = []
        self.kept: openai_responses.Kept = {}
        self._number = 0
        self._lock = threading.Lock()
        wire = self

        class Handler(_Handler):
            pass

        Handler.wire = wire
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, seen: Seen) -> tuple[Turn, int]:
        """What the model says to this, and the number of the answer."""
        with self._lock:
            self.seen.append(seen)
            self._number += 1
            number = self._number
        return Turn.of(self.brain(seen)), number


@contextlib.contextmanager
def serve(brain: Brain, *, longest_description: int = openai_chat.LONGEST_DESCRIPTION) -> Iterator[Wire]:
    """A server for as long as the block lasts."""
    wire = Wire(brain, longest_description)
    wire.start()
    try:
        yield wire
    finally:
        wire.stop()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wire: Wire

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.wire.headers.append({key.lower(): value for key, value in self.headers.items()})
        error = openai_chat.error
        try:
            body = json.loads(raw)
            if path.endswith("/chat/completions"):
                self._chat(body)
            elif path.endswith("/responses"):
                self._responses(body)
            elif path.endswith("/messages"):
                error = anthropic.error
                self._messages(body)
            elif found := _GEMINI.fullmatch(path):
                error = gemini.error
                self._gemini(body, found[1], streaming=found[2] == "streamGenerateContent")
            else:
                raise Refused(f"Unknown request URL: POST {path}", 404)
        except Refused as refused:
            self.wire.refused.append(refused.message)
            self._json(error(refused), refused.status)
        except Exception as problem:  # noqa: BLE001 - a mistake in a test's model is told like a provider's
            self.wire.refused.append(repr(problem))
            self._json(error(Refused(repr(problem), 500)), 500)

    def do_GET(self) -> None:
        if urlsplit(self.path).path.endswith("/models"):
            self._json({"object": "list", "data": [{"id": "loopback", "object": "model", "owned_by": "loopback"}]})
        else:
            self._json({"error": {"message": f"Unknown request URL: GET {self.path}"}}, 404)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _chat(self, body: dict[str, Any]) -> None:
        self._authorized("authorization")
        seen = openai_chat.read(body, self.wire.longest_description)
        turn, number = self.wire.answer(seen)
        if seen.streaming:
            self._events(openai_chat.stream(turn, seen.model, number))
        else:
            self._json(openai_chat.write(turn, seen.model, number))

    def _responses(self, body: dict[str, Any]) -> None:
        self._authorized("authorization")
        seen = openai_responses.read(body, self.wire.kept)
        turn, number = self.wire.answer(seen)
        write = openai_responses.stream if seen.streaming else openai_responses.write
        self._send(write(turn, seen, number, self.wire.kept))

    def _messages(self, body: dict[str, Any]) -> None:
        self._authorized("authorization", "x-api-key")
        if "anthropic-version" not in self.headers:
            raise Refused("anthropic-version: header is required")
        seen = anthropic.read(body)
        turn, number = self.wire.answer(seen)
        self._send((anthropic.stream if seen.streaming else anthropic.write)(turn, seen, number))

    def _gemini(self, body: dict[str, Any], model: str, *, streaming: bool) -> None:
        self._authorized("x-goog-api-key")
        seen = gemini.read(body, model, streaming=streaming)
        turn, number = self.wire.answer(seen)
        self._send((gemini.stream if streaming else gemini.write)(turn, seen, number))

    def _authorized(self, *headers: str) -> None:
        if not any(self.headers.get(header) for header in headers):
            raise Refused(f"{headers[0]}: an API key is required", 401)

    def _send(self, answer: Any) -> None:
        if isinstance(answer, dict):
            self._json(answer)
        else:
            self._events(answer)

    def _json(self, data: dict[str, Any], status: int = 200) -> None:
        text = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _events(self, events: Iterable[str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            data = event.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
