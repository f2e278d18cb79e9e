"""Serving an assembly: MCP over stdio, MCP and the HTTP API on one address, or the console behind a one-time key."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.audit.reports import tracebacks
from moonbox.audit.sinks import Sink, SinkAround
from moonbox.config.sections import STATE_FOLDER, ServeSettings
from moonbox.errors import MissingExtra, MoonboxError, UsageError
from moonbox.languages.registry import LANGUAGES
from moonbox.project.sections import need_mcp

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.http.app import Service
    from moonbox.http.workbench import Workbench
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.mcp.server.server import MoonboxServer
    from moonbox.project.assembly import Assembly
    from moonbox.runs.call_entry import CallEntry

    OpenProject = Callable[..., Assembly]
    """Opens the project that is served; its arguments are hooks of `assemble`."""

_LOG = logging.getLogger("moonbox.serve")
_RUNS = logging.getLogger("moonbox.runs")
_CALLS = logging.getLogger("moonbox.calls")
_HTTP = logging.getLogger("moonbox.http")
_GRACE, _LAST_ANSWERS = 8, 1
"""Seconds that requests have to end when the server is stopped, and that are left to answer them with an error then.

Together less than the ten seconds after which containers are killed."""
_KEEP_ALIVE = 60
"""Seconds that a connection stays open between two requests: a model thinks for longer than the usual five."""
_BACKLOG = 2048
_MAX_BODY = 4_000_000
_CONSOLE_HOST, _CONSOLE_PORT = "127.0.0.1", 8809
_NAMES = "the names by which clients reach this server: set hosts in [serve]"


def run_stdio(open_project: OpenProject, settings: ServeSettings) -> None:
    """Serve MCP on standard input and output until the client closes it or a signal stops it."""
    need_mcp()
    with contextlib.ExitStack() as stack:
        with _quick_start():
            from moonbox.mcp.stdio import capture_stdio, serve_stdio

            # The streams come first, because a module with tools may print while it is loaded.
            stdin, stdout = stack.enter_context(capture_stdio())
            assembly, _ = stack.enter_context(_assembled(open_project))
            server = mcp_server(assembly, settings, on_ready=assembly.recover)

        async def serve() -> None:
            with _stopped_by_signals():
                await serve_stdio(server, stdin, stdout)

        asyncio.run(serve())


@contextlib.contextmanager
def _quick_start() -> Iterator[None]:
    """While everything is loaded, nothing is garbage: looking for it would take a tenth of the start.

    What was loaded stays for good, and is left out of later searches.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def run_http(
    open_project: OpenProject, settings: ServeSettings, *, announce: Callable[[str], None], console: bool = False
) -> None:
    """Serve MCP at /mcp and, unless clients have tokens of their own, the HTTP API at the same address.

    With `console`, its pages are at /console. `announce` is called with one line as soon as clients can connect.
    """
    need_mcp()
    settings.check_address()
    if console:
        if settings.tokens or settings.oauth is not None:  # the console shows the runs of all clients
            raise UsageError("--console requires a server with one token or none, not [serve] tokens or oauth")
        if not settings.host_names:
            raise UsageError(f"--console on {settings.host} requires {_NAMES}")
        _need_console()
    with contextlib.ExitStack() as stack:
        with _quick_start():
            from sse_starlette.sse import AppStatus

            from moonbox.mcp.server.web import create_app

            assembly, bench = stack.enter_context(_assembled(open_project, settings, console=console))
            server = mcp_server(assembly, settings, on_ready=partial(_recover, assembly, bench))
            app = create_app(server, other=_api(assembly, settings, bench))
        listening = listen(settings.host, settings.port)
        address = f"http://{_written(settings.host)}:{listening.getsockname()[1]}"
        lacks_names = not (settings.host_names or settings.tokens or settings.oauth)
        announce(f"serving MCP on {address}/mcp" + (f"; the HTTP API requires {_NAMES}" if lacks_names else ""))
        if bench is not None:
            announce(f"the console is at {address}/console/")
        logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_disconnect)
        AppStatus.enable_automatic_graceful_drain = False  # it cuts off calls that are in progress
        serve_app(app, listening, on_exit=bench.close if bench is not None else None, wind_down=server.wind_down)


def run_console(
    open_project: OpenProject,
    *,
    port: int | None = None,
    script: str = "",
    opened: Callable[[str], None],
    renewed: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the console until a signal stops it.

    `opened` is called with its address, which works once, and `renewed` with each further one that a person asks for.
    """
    _need_console()
    from moonbox.console.app import OPEN_PATHS, PREFIX, console_routes
    from moonbox.http.app import create_app
    from moonbox.http.browser import BrowserAccess, key_of_project
    from moonbox.http.guard import Access
    from moonbox.http.workbench import Workbench

    bench = Workbench(timeout=None)
    with _assembled_with(bench, open_project) as assembly:
        assembly.start()
        ready = partial(_recover, assembly, bench, wait=True)
        threading.Thread(target=ready, name="moonbox-ready", daemon=True).start()
        service = service_of(assembly, bench)
        browser = BrowserAccess(key=key_of_project("console", assembly.config.path or Path.cwd()))
        access = Access(browser=browser, open_paths=OPEN_PATHS, max_body=_MAX_BODY)
        app = create_app(service, access, more=console_routes(service, browser, script=script))
        try:  # the usual port, so that addresses stay valid
            listening = listen(_CONSOLE_HOST, _CONSOLE_PORT if port is None else port)
        except UsageError:
            if port is not None:
                raise
            listening = listen(_CONSOLE_HOST, 0)
        place = f"http://{_CONSOLE_HOST}:{listening.getsockname()[1]}{PREFIX}/open?key="
        browser.on_renewal = lambda key: renewed(place + key)
        opened(place + browser.one_time_key())
        serve_app(app, listening, on_exit=bench.close)


def _need_console() -> None:
    """MissingExtra where the console's packages are not installed."""
    for package in ("jinja2", "starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra(package, "console", "the console")


def serve_app(
    app: Any,
    listening: socket.socket,
    *,
    on_exit: Callable[[], None] | None = None,
    wind_down: Callable[[float], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve until a signal stops it.

    on_exit     called at the signal, to end answers that would go on for ever
    wind_down   awaited from then on, with the seconds that requests have to end
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("uvicorn", "serve", "serving over HTTP") from None
    from moonbox.project.connections import ReadConnection

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            if on_exit is not None:
                on_exit()
            super().handle_exit(sig, frame)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            ending = None if wind_down is None else asyncio.create_task(wind_down(_GRACE))
            await super().shutdown(sockets)
            if ending is not None:
                ending.cancel()

    options = uvicorn.Config(
        _logged(app),
        log_config=None,
        access_log=False,
        http=ReadConnection,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE + _LAST_ANSWERS,
    )
    # uvicorn stops at a signal and then raises it again: it must not end the process before everything is closed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        Server(options).run(sockets=[listening])


def _is_no_disconnect(record: logging.LogRecord) -> bool:
    """A filter of the SDK's log, which has a traceback for each client that goes away in the middle of its request."""
    from starlette.requests import ClientDisconnect

    return record.exc_info is None or not isinstance(record.exc_info[1], ClientDisconnect)


def _logged(app: Any) -> Any:
    """The ASGI application, which logs each HTTP request without its query, which may hold a key.

    A request that the end of the server stops is answered, where it has no answer yet. A client that goes away before
    its request is complete is no error.
    """
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse

    async def logged(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, watched)
        except asyncio.CancelledError:
            if not status:
                problem = {"code": "unavailable", "message": "the server is being stopped, and the request with it"}
                await JSONResponse({"error": problem}, 503)(scope, receive, watched)
        except ClientDisconnect:
            _HTTP.debug("the client has closed the connection")
        finally:
            if _HTTP.isEnabledFor(logging.INFO):
                ms = round((time.monotonic() - began) * 1000)
                fields = {"method": scope["method"], "path": scope["path"], "status": status, "ms": ms}
                _HTTP.info("request", extra={"fields": fields})

    return logged


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address; UsageError says which part of the address is wrong."""
    host = host.strip("[]")
    name = _written(host)
    try:
        [family, _, _, _, address] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError:
        raise UsageError(f"the host '{name}' has no address; choose another with --host") from None
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        listening = socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as problem:
        known = {
            errno.EADDRINUSE: f"{name}:{port} is in use; choose another port with --port",
            errno.EACCES: f"permission denied for port {port}; choose one above 1023 with --port",
            errno.EADDRNOTAVAIL: f"{name} is not an address of this machine; choose another with --host",
        }
        message = known.get(problem.errno or 0, f"cannot listen on {name}:{port}: {problem.strerror}")
        raise UsageError(message) from None
    # Inherited by connections. asyncio sets it only on sockets that were made with IPPROTO_TCP.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _recover(assembly: Assembly, bench: Workbench | None, *, wait: bool = False) -> None:
    """Continue interrupted runs, those of the playground too; with `wait`, once the servers are ready."""
    if wait and assembly.upstreams is not None:
        assembly.upstreams.wait(None, "started")
    try:
        assembly.recover()
        if bench is not None and assembly.recovers:
            bench.open_languages()
    except MoonboxError as problem:
        _LOG.warning("interrupted runs are not continued: %s", problem)


def mcp_server(
    assembly: Assembly, settings: ServeSettings, on_ready: Callable[[], object] = lambda: None
) -> MoonboxServer:
    """The MCP server of an assembly that was made with `caller.approve` and `caller.watch`."""
    from moonbox.mcp.server.server import MoonboxServer

    return MoonboxServer(
        assembly.mode,
        settings=settings,
        upstreams=assembly.upstreams,
        trail=assembly.trail,
        refresh=assembly.refresh if assembly.scripts is not None else None,
        on_ready=on_ready,
    )


def _api(assembly: Assembly, settings: ServeSettings, bench: Workbench | None) -> Any:
    """The HTTP API, with the console's pages; None where clients have tokens of their own."""
    names = settings.host_names
    if settings.tokens or settings.oauth is not None or not names:  # it answers only to names that it was told
        return None
    from moonbox.http.app import create_app
    from moonbox.http.guard import Access

    service = service_of(assembly, bench)
    known: Any = {"token": settings.token, "hosts": tuple(sorted(names)), "origins": settings.origins}
    known["max_body"] = settings.max_body
    if bench is None:
        return create_app(service, Access(**known))
    from moonbox.console.app import OPEN_PATHS, console_routes
    from moonbox.http.browser import BrowserAccess, key_of_project

    key = key_of_project("serve", assembly.config.path or Path.cwd())
    browser = BrowserAccess(settings.token, public=settings.token is None, key=key)
    access = Access(**known, browser=browser, open_paths=OPEN_PATHS)
    return create_app(service, access, more=console_routes(service, browser))


def service_of(assembly: Assembly, bench: Workbench | None = None) -> Service:
    """What the HTTP API serves of an assembly."""
    from moonbox.http.app import Service

    return Service(
        assembly.sandbox,
        builtin=assembly.builtin,
        trail=assembly.trail,
        refresh=assembly.refresh,
        servers=assembly.upstreams,
        workbench=bench,
        scripts=assembly.scripts,
    )


@contextlib.contextmanager
def _assembled_with(
    bench: Workbench, open_project: OpenProject, wrap_sink: Callable[[Sink], Sink] = lambda sink: sink
) -> Iterator[Assembly]:
    """An assembly whose approvals, calls and output go to a workbench; `wrap_sink` puts a sink around the trail's."""
    from moonbox.project.diagnosis import Doctor

    hooks = {**bench.hooks, "wrap_sink": lambda sink: bench.sink(wrap_sink(sink))}
    with open_project(**hooks) as assembly, contextlib.closing(bench):
        doctor = Doctor(assembly.config.path)
        bench.attach(
            assembly.sandbox,
            trail=assembly.trail,
            make=assembly.sandbox_in,
            languages=tuple(LANGUAGES),
            knowledge=assembly.knowledge,
            diagnose=lambda: doctor.diagnose().to_dict(),
            find_medium=assembly.media.get if assembly.media is not None else None,
            options_for=assembly.mode.options_for,
        )
        yield assembly


@contextlib.contextmanager
def _assembled(
    open_project: OpenProject, settings: ServeSettings | None = None, *, console: bool = False
) -> Iterator[tuple[Assembly, Workbench | None]]:
    from moonbox.mcp import caller

    bench: Workbench | None = None
    watch = _watcher(caller.watch)
    opened: contextlib.AbstractContextManager[Assembly]
    if console and settings is not None:
        from moonbox.http.workbench import Workbench

        # A client that can show a question is asked beside the console's inbox; the first answer counts.
        bench = Workbench(others=(caller.approve,), watch=watch, timeout=settings.answer_seconds)
        opened = _assembled_with(bench, open_project, _LoggedSink)
    else:
        opened = open_project(approve=caller.approve, on_call=watch, wrap_sink=_LoggedSink)
    with opened as assembly:
        config = assembly.config
        if config.path is not None:  # what results look like is known again after the next start
            assembly.sandbox.toolbox.learned.keep_in(config.folder / STATE_FOLDER / "shapes.json")
        assembly.report_broken()
        if assembly.knowledge is not None:  # beside the start: the first search of a client finds the model loaded
            threading.Thread(target=_warm, args=(assembly.knowledge,), name="moonbox-warm", daemon=True).start()
        yield assembly, bench


def _watcher(inform: Callable[[CallEntry], None]) -> Callable[[CallEntry], None]:
    """Logs calls, and informs the client."""

    def watch(entry: CallEntry) -> None:
        level = logging.INFO if entry.status == "ok" else logging.WARNING
        if not entry.open and _CALLS.isEnabledFor(level):
            ended = time.monotonic() if entry.ended is None else entry.ended
            ms = round((ended - entry.received) * 1000)
            # The message of an error is in the record, where fields are redacted.
            error = {} if entry.error is None else {"error": entry.error.code}
            fields = {"run": entry.run_id, "tool": entry.tool, "status": entry.status, "ms": ms, **error}
            _CALLS.log(level, "call", extra={"fields": fields})
        inform(entry)

    return watch


class _LoggedSink(SinkAround):
    """A sink that logs each run, and the tracebacks of its tools, before it passes it on. The records are redacted."""

    def write(self, run: Run) -> None:
        level = logging.INFO if run.error is None else logging.WARNING
        if _RUNS.isEnabledFor(level):
            fields: dict[str, Any] = {
                "id": run.id,
                "result": "ok" if run.error is None else run.error.kind,
                "calls": len(run.calls),
                "ms": round(run.usage.wall * 1000),
                "tool": run.tool,
                "parent": run.parent,
                "error": "" if run.error is None else run.error.message[:500],
            }
            optional = ("tool", "parent", "error")
            fields = {key: value for key, value in fields.items() if value or key not in optional}
            _RUNS.log(level, "run", extra={"fields": fields})
        for call, text in tracebacks(run) if _CALLS.isEnabledFor(logging.DEBUG) else ():
            about = {"run": run.id, "call": call.index, "tool": call.tool, "traceback": text}
            _CALLS.debug("traceback", extra={"fields": about})
        super().write(run)


def _warm(knowledge: KnowledgeBase) -> None:
    try:
        knowledge.warm()
    except MoonboxError as problem:
        _LOG.warning("semantic search is not available: %s", problem)


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
