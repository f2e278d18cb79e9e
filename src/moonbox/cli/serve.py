"""The commands `moonbox serve` and `moonbox console`."""

from __future__ import annotations

import datetime as dt
import functools
import io
import json
import logging
import os
import sys
import threading
from pathlib import Path  # noqa: TC003 - read at run time by Typer
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from moonbox.cli.browser import private_browser
from moonbox.cli.options import ConfigFile, McpConfig, Place, Tools, argument, assemble_with, flag, option
from moonbox.cli.output import print_note
from moonbox.cli.trust import Trust, trusted_config
from moonbox.errors import UsageError
from moonbox.secrets import SecretRedactor
from moonbox.wording import visible

if TYPE_CHECKING:
    from moonbox.config import Config

SERVE_EXAMPLES = """[bold]Examples[/]

  moonbox serve                        over stdio, for a client to start
  moonbox serve --mcp-config mcp.json  the servers of another client
  moonbox serve --http                 at http://127.0.0.1:8808/mcp
  moonbox serve --console              the same, with the console beside it
  moonbox mcp install --client cursor  add it to a client
"""
CONSOLE_EXAMPLES = """[bold]Examples[/]

  moonbox console                      with the nearest moonbox.toml
  moonbox console --tools crm:tools    with your Python functions as tools
  moonbox console report.lua           with this script in the editor
"""

LogFormat = Literal["text", "json"]


def _port(usual: str) -> Any:
    return typer.Option(metavar="PORT", min=0, max=65_535, help="The port; 0 takes a free one.", show_default=usual)


Token = Annotated[
    str | None,
    option(
        metavar="TOKEN",
        envvar="MOONBOX_TOKEN",
        help="The token that clients send; required for any address but a loopback address.",
    ),
]
Verbose = Annotated[
    int, option("--verbose", "-v", metavar="", count=True, help="Log more on standard error; -vv logs everything.")
]


def serve(
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    tools: Tools = None,
    journal: Place = None,
    http: Annotated[bool, flag("--http", help="Serve over HTTP instead of standard input and output.")] = False,
    console: Annotated[
        bool, flag("--console", help="Serve the console's pages too, at /console; implies --http.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[int | None, _port("8808")] = None,
    token: Token = None,
    require_jail: Annotated[
        bool, flag("--require-jail", help="Refuse to start where a layer of the jail is missing.")
    ] = False,
    trust: Trust = False,
    verbose: Verbose = 0,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", metavar="text|json", help="How log lines are written.")
    ] = "text",
) -> None:
    """Serve your tools and other MCP servers to MCP clients.

    Clients see one code tool with a catalog of all tools, and the few tools
    that stay direct. Only the protocol goes to standard output.
    """
    formatter = _log(verbose, log_format)
    from moonbox.config.sections import ServeSettings
    from moonbox.project.sections import read_secrets, with_journal
    from moonbox.project.serving import run_http, run_stdio

    http = http or console
    chosen = _configured(config, trust, http=http, host=host, port=port, token=token)
    chosen = with_journal(chosen, journal)
    if require_jail:
        from moonbox.worker.jail import WHOLE_JAIL

        chosen = chosen.with_changes(sandbox={"require": list(WHOLE_JAIL)})
    settings = chosen.read(ServeSettings, "serve")
    formatter.hide = SecretRedactor(read_secrets(chosen, mcp_config))
    project = functools.partial(assemble_with, chosen, tools, mcp_config)
    if http:
        run_http(project, settings, announce=functools.partial(typer.echo, err=True), console=console)
        return
    if sys.stdin.isatty():
        print_note("serving MCP on standard input and output, for a client to start; Ctrl-C stops it")
        print_note("`moonbox mcp install` adds it to a client, `moonbox serve --http` serves it on an address")
    run_stdio(project, settings)


def console(
    script: Annotated[Path | None, argument(help="A script to begin with.", metavar="SCRIPT")] = None,
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    tools: Tools = None,
    journal: Place = None,
    port: Annotated[int | None, _port("8809")] = None,
    no_browser: Annotated[bool, flag("--no-browser", help="Print the address without opening a browser.")] = False,
    trust: Trust = False,
) -> None:
    """Open pages to try scripts, watch runs and answer approvals.

    The pages are served on this machine alone. The printed address works
    once; after that, the browser that used it stays signed in.
    """
    from moonbox.cli.script import script_text
    from moonbox.project.sections import with_journal
    from moonbox.project.serving import run_console

    source = script_text(script) if script is not None else ""

    def opened(address: str) -> None:
        typer.echo(address)
        print_note("this address works once; Ctrl-C stops the console")
        if not no_browser and _has_screen():
            visit(address)

    chosen = with_journal(trusted_config(config, trust=trust), journal)
    with private_browser() as visit:
        project = functools.partial(assemble_with, chosen, tools, mcp_config)
        run_console(project, port=port, script=source, opened=opened, renewed=typer.echo)


def _configured(
    config: Path | None, trust: bool, *, http: bool, host: str | None, port: int | None, token: str | None
) -> Config:
    """The configuration, in which options that were given replace keys of [serve]."""
    from moonbox.config.reader import read
    from moonbox.config.sections import ServeSettings

    for name, value in (("--host", host), ("--port", port)):
        if value is not None and not http:
            raise UsageError(f"{name} requires --http; without it, MCP is served on standard input and output")
    options = {"host": host, "port": port, "token": (token or None) if http else None}
    given = {key: value for key, value in options.items() if value is not None}
    read(ServeSettings, given, "")  # an invalid option is not an error in the file
    return trusted_config(config, trust=trust).with_changes(serve=given)


def _has_screen() -> bool:
    """Whether a graphical browser is likely to be there. A browser in the terminal would take the terminal over."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _log(verbose: int, form: LogFormat) -> LogFormatter:
    """Log to standard error: standard output belongs to the protocol."""
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = logging.StreamHandler(sys.stderr)
    formatter = LogFormatter(form)
    handler.setFormatter(formatter)
    if form == "json":
        sys.stderr = _JsonLines(handler)
    logging.basicConfig(handlers=[handler], level=level)
    if verbose < 2:
        for noisy in ("mcp", "client", "httpx2", "httpcore2"):
            logging.getLogger(noisy).setLevel(logging.ERROR)
    return formatter


class LogFormatter(logging.Formatter):
    """Log lines without secrets, for people or as JSON. Secrets of the configuration are known after it is read."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._form = form
        self.hide = SecretRedactor()

    def format(self, record: logging.LogRecord) -> str:
        # Control characters are made visible afterwards: a secret may have some.
        return visible(str(self.hide(self._json(record) if self._form == "json" else self._text(record))))

    def _text(self, record: logging.LogRecord) -> str:
        """Time, level, message and fields."""
        fields = "".join(f" {key}={_word(value)}" for key, value in _fields(record).items())
        return super().format(record) + fields

    def _json(self, record: logging.LogRecord) -> str:
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({**line, **_fields(record)}, default=str)


class _JsonLines(io.TextIOBase):
    """Standard error where everything is JSON: each line that is written to it becomes a line of the log."""

    def __init__(self, handler: logging.StreamHandler[Any]) -> None:
        self._handler = handler
        self._begun = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._log(line)
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._handler.stream.fileno())

    def close(self) -> None:
        """Written at the end of the process: a line that has no end."""
        if not self.closed and self._begun:
            self.write("\n")
        super().close()

    def _log(self, line: str) -> None:
        word, _, rest = line.partition(": ")
        level = {"error": "ERROR", "note": "INFO"}.get(word)
        message = line if level is None else rest
        if message.strip():
            about = {"name": "moonbox.stderr", "levelname": level or "INFO", "msg": message}
            self._handler.handle(logging.makeLogRecord(about))


def _word(value: Any) -> str:
    """A field's value as one word, quoted if it has spaces or looks like another field."""
    text = str(value)
    return text if text and not any(sign in text for sign in ' ="\n') else json.dumps(text, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}
