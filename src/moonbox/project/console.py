"""The console of an assembly: served on a loopback address, behind a one-time key."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from moonbox.errors import UsageError
from moonbox.languages.registry import LANGUAGES
from moonbox.project.assembly import assemble
from moonbox.project.serving import listen, need_console, serve_app, service_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from moonbox.audit.sinks import Sink
    from moonbox.config import Config
    from moonbox.http.workbench import Workbench
    from moonbox.project.assembly import Assembly

HOST = "127.0.0.1"
PORT = 8809
_MAX_BODY = 4_000_000


def run_console(
    config: Config,
    load_tools: Callable[[], Any],
    mcp_config: list[Path],
    *,
    port: int | None = None,
    script: str = "",
    opened: Callable[[str], None],
    renewed: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the console until a signal stops it.

    `opened` is called with its address, which works once, and `renewed` with each further one that a person asks for.
    """
    need_console()
    from moonbox.console.app import OPEN_PATHS, PREFIX, console_routes
    from moonbox.http.app import create_app
    from moonbox.http.browser import BrowserAccess
    from moonbox.http.guard import Access
    from moonbox.http.workbench import Workbench

    bench = Workbench(timeout=None)
    with assembled_with(bench, config, load_tools, mcp_config) as assembly:
        assembly.start()
        service, browser = service_of(assembly, bench), BrowserAccess()
        access = Access(browser=browser, open_paths=OPEN_PATHS, max_body=_MAX_BODY)
        app = create_app(service, access, more=console_routes(service, browser, script=script))
        listening = _listen(port)
        place = f"http://{HOST}:{listening.getsockname()[1]}{PREFIX}/open?key="
        browser.on_renewal = lambda key: renewed(place + key)
        opened(place + browser.one_time_key())
        serve_app(app, listening, on_exit=bench.close)


def _listen(port: int | None) -> Any:
    """The usual port, so that addresses stay valid, or a free one where it is in use."""
    if port is not None:
        return listen(HOST, port)
    try:
        return listen(HOST, PORT)
    except UsageError:
        return listen(HOST, 0)


@contextlib.contextmanager
def assembled_with(
    bench: Workbench,
    config: Config,
    load_tools: Callable[[], Any],
    mcp_config: list[Path],
    wrap_sink: Callable[[Sink], Sink] = lambda sink: sink,
) -> Iterator[Assembly]:
    """An assembly whose approvals, calls and output go to a workbench; `wrap_sink` puts a sink around the trail's."""
    from moonbox.project.diagnosis import Doctor

    doctor = Doctor(config.path)
    hooks = {**bench.hooks, "wrap_sink": lambda sink: bench.sink(wrap_sink(sink))}
    with assemble(config, tools=load_tools(), mcp_config=mcp_config, **hooks) as assembly, contextlib.closing(bench):
        bench.attach(
            assembly.sandbox,
            trail=assembly.trail,
            make=assembly.sandbox_in,
            languages=tuple(LANGUAGES),
            knowledge=assembly.knowledge,
            diagnose=lambda: doctor.diagnose().to_dict(),
            find_medium=assembly.media.get if assembly.media is not None else None,
        )
        yield assembly
