"""The command `moonbox catalog`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.audit.terminal import visible
from moonbox.cli.screen import is_terminal, print_json, told
from moonbox.cli.serve import ConfigFile, McpConfig  # noqa: TC001 - read at run time by Typer
from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from moonbox.codemode.mode import CodeMode
    from moonbox.config.file import Config
    from moonbox.project import Assembly
    from moonbox.tools.tool import Tool

__all__ = ["catalog", "register"]

_PATIENCE = 30.0
_MODES = ("always", "auto", "never")
_FORMATS = ("text", "json", "openai", "openai-responses", "anthropic", "gemini", "mcp")

_EXAMPLES = """[bold]Examples[/]

  moonbox catalog --tools crm:tools              your tools as a model sees them
  moonbox catalog --mcp-config ~/.cursor/mcp.json
  moonbox catalog --tokens 500                   what is left in 500 tokens
  moonbox catalog --format anthropic             the definitions for a request
"""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("catalog", epilog=_EXAMPLES)(catalog)


def catalog(
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            "--tools",
            "-t",
            metavar="MODULE:NAME",
            help="Python tools to show too. May be repeated.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(_MODES),
            autocompletion=lambda: list(_MODES),
            help="Whether the model gets the code tool; auto takes what is smaller.",
            show_default="always",
        ),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Past this the catalog shows less; 0 is without a limit.", show_default="8000"),
    ] = None,
    full_schemas: Annotated[
        bool, typer.Option("--full-schemas", metavar="", help="Add each tool's JSON Schema to the catalog.")
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            autocompletion=lambda: list(_FORMATS),
            help=f"How to print it: {', '.join(_FORMATS)}.",
        ),
    ] = "text",
    wait: Annotated[float, typer.Option(help="Seconds to wait for MCP servers to start.", metavar="SECONDS")] = (
        _PATIENCE
    ),
) -> None:
    """Show what the model would see of your tools, and its size.

    The code tool with its catalog, the tools that stay direct and the system
    prompt go to standard output, then what they cost against the definitions
    of every tool. Tokens are estimated at four bytes each.
    """
    with told():
        if form not in _FORMATS:
            raise UsageError(f"--format: there is no {form!r}; choose one of: {', '.join(_FORMATS)}")
        if mode is not None and mode not in _MODES:
            raise UsageError(f"--mode: there is no {mode!r}; choose one of: {', '.join(_MODES)}")
        if tokens is not None and tokens < 0:
            raise UsageError(f"--tokens must be 0 or more, not {tokens}")
        changes: dict[str, Any] = {"mode": mode, "full_schemas": full_schemas or None}
        changes = {key: value for key, value in changes.items() if value is not None}
        if tokens is not None:
            changes["catalog_tokens"] = tokens or None
        with _assembled(config, mcp_config, tools or (), changes, wait) as parts:
            if form == "text":
                _show(parts.mode, _silent_servers(parts))
            elif form == "json":
                print_json(_summary(parts.mode))
            else:
                typer.echo(json.dumps(parts.mode.definitions(form), indent=2))  # type: ignore[arg-type]  # checked


def _assembled(
    config: Path | None, mcp_config: list[Path] | None, tools: Sequence[str], changes: dict[str, Any], wait: float
) -> Assembly:
    from moonbox.cli.toolrefs import load_tools
    from moonbox.config.file import Config
    from moonbox.project import assemble

    found = _changed(Config.load(config), changes)
    return assemble(found, tools=load_tools(tools), mcp_config=mcp_config or []).start(wait)


def _changed(config: Config, changes: dict[str, Any]) -> Config:
    """The configuration with what the options say, and without a trail: nothing runs here."""
    from moonbox.config.file import Config

    section = {**config.section("codemode"), **changes}
    return Config(config.path, {**config.data, "codemode": section, "audit": {"enabled": False}})


def _silent_servers(parts: Assembly) -> list[str]:
    if parts.upstreams is None:
        return []
    return [status.name for status in parts.upstreams.statuses() if status.state not in ("ready", "off")]


def _show(mode: CodeMode, silent: list[str]) -> None:
    choice = mode.choice
    if choice.code:
        _heading(f"{mode.tool_name} · the code tool")
        typer.echo(visible(mode.description))
    if mode.direct_tools:
        _heading("direct tools")
        for tool in mode.direct_tools:
            typer.echo(visible(f"- {_brief(tool)}"))
    if mode.system_prompt:
        _heading(f"system prompt · {len(mode.system_prompt.encode())} bytes")
        typer.echo(visible(mode.system_prompt))
    _heading("size")
    for line in _sizes(mode):
        typer.echo(line)
    typer.echo(f"shown: {'the code tool' if choice.code else 'every tool itself'}; {choice.reason.partition(' (')[0]}")
    for name in silent:
        typer.echo(f"without the tools of {visible(name)}: the server did not start; see `moonbox mcp doctor`")


def _sizes(mode: CodeMode) -> list[str]:
    choice, catalog = mode.choice, mode.catalog
    every = len(mode.sandbox.toolbox)
    listed = f"{_count(catalog.tools)} in its catalog ({catalog.detail})" if catalog.tools else "no catalog"
    rows = [
        ("code mode", choice.code_tokens, f"the code tool, {listed}, {every - catalog.tools} direct"),
        ("every tool direct", choice.direct_tokens, _count(every)),
    ]
    width = max(len(f"{tokens:,}") for _, tokens, _ in rows)
    lines = [f"{name:<17}  {tokens:>{width},} tokens  {what}" for name, tokens, what in rows]
    return [*lines, *([_compared(choice.code_tokens, choice.direct_tokens)] if every else [])]


def _compared(code: int, direct: int) -> str:
    if code <= direct:
        return f"code mode takes {1 - code / direct:.0%} less"
    return f"code mode takes {code / direct:.1f} times as much"


def _summary(mode: CodeMode) -> dict[str, Any]:
    choice, catalog = mode.choice, mode.catalog
    return {
        "code_tool": mode.tool_name if choice.code else None,
        "description": mode.description if choice.code else None,
        "system_prompt": mode.system_prompt,
        "catalog": {"detail": catalog.detail, "tools": catalog.tools, "tokens": catalog.tokens},
        "direct_tools": [tool.path for tool in mode.direct_tools],
        "hidden_tools": [tool.path for tool in mode.hidden_tools],
        "tokens": {"code_mode": choice.code_tokens, "every_tool_direct": choice.direct_tokens},
        "reason": choice.reason,
    }


def _brief(tool: Tool) -> str:
    from moonbox.tools.signature import render

    return render(tool, "brief")


def _count(number: int) -> str:
    return f"{number} tool" if number == 1 else f"{number} tools"


def _heading(text: str) -> None:
    line = f"── {text} "
    typer.echo(typer.style(line, bold=True) if is_terminal() else line.rstrip())
