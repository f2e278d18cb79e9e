"""Serving an assembly: MCP over stdio, or MCP and the HTTP API on one address."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from typing import TYPE_CHECKING, Any

from moonbox.config.sections import STATE_FOLDER
from moonbox.errors import MissingExtra, UsageError
from moonbox.project.assembly import assemble
from moonbox.project.sections import need_mcp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from moonbox.config import Config
    from moonbox.config.serve import ServeSettings
    from moonbox.mcp.server.server import MoonboxServer
    from moonbox.project.assembly import Assembly

__all__ = ["http_app", "mcp_server", "run_http", "run_stdio"]

_GRACE = 10
"""Seconds that running scripts have to end when the server is stopped."""
_BACKLOG = 2048


def run_stdio(config: Config, settings: ServeSettings, load_tools: Callable[[], Any], mcp_config: list[Path]) -> None:
    """Serve MCP on standard input and output until the client closes it or a signal stops it."""
    need_mcp()
    from moonbox.mcp.server.stdio import capture_stdio, serve_stdio

    async def serve(assembly: Assembly, stdin: int, stdout: int) -> None:
        with _stopped_by_signals():
            await serve_stdio(mcp_server(assembly, settings), stdin, stdout)

    # The streams come first, because a module with tools may print while it is loaded.
    with capture_stdio() as (stdin, stdout), _assembled(config, load_tools, mcp_config) as assembly:
        asyncio.run(serve(assembly, stdin, stdout))


def run_http(
    config: Config,
    settings: ServeSettings,
    load_tools: Callable[[], Any],
    mcp_config: list[Path],
    *,
    announce: Callable[[str], None],
) -> None:
    """Serve MCP at /mcp and, unless clients have tokens of their own, the HTTP API at the same address.

    `announce` is called with one line as soon as clients can connect.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("uvicorn", "serve", "serving over HTTP") from None
    need_mcp()
    settings.check_address()
    with _assembled(config, load_tools, mcp_config) as assembly:
        app = http_app(assembly, settings)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                log_config=None,
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        listening = _listen(settings.host, settings.port)
        port = listening.getsockname()[1]
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        announce(f"serving MCP on http://{name}:{port}/mcp")
        # uvicorn stops at a signal and then raises it again: it must not end the process before everything is closed.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address; UsageError says which part of the address is wrong."""
    host = host.strip("[]")
    name = f"[{host}]" if ":" in host else host
    try:
        [family, kind, protocol, _, address] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        raise UsageError(f"the host '{name}' has no address; choose another with --host") from None
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)  # clients may connect as soon as they know the address
    except OSError as problem:
        listening.close()
        match problem.errno:
            case errno.EADDRINUSE:
                message = f"{name}:{port} is in use; choose another port with --port"
            case errno.EACCES | errno.EPERM:
                message = f"permission denied for port {port}; choose one above 1023 with --port"
            case errno.EADDRNOTAVAIL:
                message = f"{name} is not an address of this machine; choose another with --host"
            case _:
                message = f"cannot listen on {name}:{port}: {problem.strerror}"
        raise UsageError(message) from None
    return listening


def mcp_server(assembly: Assembly, settings: ServeSettings) -> MoonboxServer:
    """The MCP server of an assembly that was made with `caller.approve` and `caller.watch`."""
    from moonbox.mcp.server.server import MoonboxServer

    return MoonboxServer(
        assembly.mode,
        settings=settings,
        upstreams=assembly.upstreams,
        trail=assembly.trail,
        media=assembly.media,
        refresh=assembly.refresh if assembly.scripts is not None else None,
    )


def http_app(assembly: Assembly, settings: ServeSettings) -> Any:
    """The ASGI application: MCP, and the HTTP API unless clients have tokens of their own."""
    from moonbox.mcp.server.web import create_app

    other = None
    if not settings.tokens and settings.oauth is None:
        other = _api(assembly, settings)
    return create_app(mcp_server(assembly, settings), other=other)


def _api(assembly: Assembly, settings: ServeSettings) -> Any:
    from moonbox.http.app import Service, create_app
    from moonbox.http.guard import Access

    names = settings.host_names
    if not names:
        return None  # the API accepts only Host headers that it knows
    service = Service(assembly.sandbox, builtin=assembly.builtin, trail=assembly.trail, refresh=assembly.refresh)
    access = Access(token=settings.token, hosts=tuple(sorted(names)), origins=settings.origins)
    return create_app(service, access)


@contextlib.contextmanager
def _assembled(config: Config, load_tools: Callable[[], Any], mcp_config: list[Path]) -> Iterator[Assembly]:
    from moonbox.mcp import caller

    with assemble(
        config, tools=load_tools(), mcp_config=mcp_config, approve=caller.approve, on_call=caller.watch
    ) as assembly:
        if config.path is not None:
            assembly.sandbox.toolbox.learned.keep_in(config.folder / STATE_FOLDER / "shapes.json")
        yield assembly


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Stop as if the client had closed the connection, so that servers and workers are stopped too."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    except asyncio.CancelledError:
        task.uncancel()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)
