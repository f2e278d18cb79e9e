"""A real server on loopback, with a few tools."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn

from moonbox import Limits, Sandbox, ToolError, tool
from moonbox.http.app import Service, create_app
from moonbox.http.guard import Access

if TYPE_CHECKING:
    from collections.abc import Iterator


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(code: str) -> str:
    """Fail with that code."""
    raise ToolError("it failed", code=code, retryable=True)


@tool
def crash() -> str:
    """Raise an ordinary exception."""
    raise ValueError("in /etc/secret/place")


@tool(policy="approve")
def risky() -> str:
    """Needs a person."""
    return "done"


@contextlib.contextmanager
def serving(app: Any, port: int = 0) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    listener = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    with Sandbox([add, fail, crash, risky], limits=Limits(timeout=2, max_tool_calls=20)) as box:
        yield Service(box, builtin={"add"})


@pytest.fixture(scope="session")
def address(service: Service) -> Iterator[str]:
    with serving(create_app(service)) as url:
        yield url


@pytest.fixture(scope="session")
def guarded(service: Service) -> Iterator[str]:
    with serving(create_app(service, Access(token="s3cret", max_body=2000, origins=("https://good.example",)))) as url:
        yield url


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=30) as http:
        yield http
