"""The commands `moonbox catalog` and `moonbox check`: the tools as a model sees them, and mistakes in scripts."""

from __future__ import annotations

import contextlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from moonbox.cli.options import ConfigFile, Json, Language, McpConfig, Tools, Wait, argument, assemble_with, flag
from moonbox.cli.output import console, is_terminal, print_json, print_note
from moonbox.cli.run_options import START_SECONDS, CommandRunOptions
from moonbox.cli.script import Script, read_script
from moonbox.cli.trust import Trust, trusted_config
from moonbox.config import Config
from moonbox.wording import counted, noun, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from moonbox.codemode.mode import CodeMode
    from moonbox.findings import Finding
    from moonbox.project.assembly import Assembly

Mode = Literal["always", "auto", "never"]
Form = Literal["text", "json", "openai", "openai-responses", "anthropic", "gemini", "mcp"]

CATALOG_EXAMPLES = """[bold]Examples[/]

  moonbox catalog --tools crm:tools              your tools as a model sees them
  moonbox catalog --mcp-config ~/.cursor/mcp.json
  moonbox catalog --tokens 500                   what is left in 500 tokens
  moonbox catalog --format anthropic             the definitions for a request
"""


def catalog(
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    tools: Tools = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            metavar="|".join(get_args(Mode)),
            help="Whether the model gets the code tool; auto: where it is smaller, or else beside every tool.",
            show_default="always",
        ),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Above this size the catalog shows less; 0 means no limit.", show_default="8000"
        ),
    ] = None,
    full_schemas: Annotated[bool, flag("--full-schemas", help="Add each tool's JSON Schema to the catalog.")] = False,
    form: Annotated[
        Form, typer.Option("--format", metavar="NAME", help=f"How to print it: {', '.join(get_args(Form))}.")
    ] = "text",
    wait: Wait = START_SECONDS,
    trust: Trust = False,
) -> None:
    """Show what the model sees of your tools, and its size.

    The output has the code tool with its catalog, the direct tools, the
    system prompt, and their size compared with the definitions of every
    tool. Tokens are estimated at four bytes each.
    """
    changes: dict[str, Any] = {"mode": mode, "full_schemas": full_schemas or None}
    changes = {key: value for key, value in changes.items() if value is not None}
    if tokens is not None:
        changes["catalog_tokens"] = tokens or None
    with assembled(trusted_config(config, trust=trust), mcp_config, tools, wait, codemode=changes) as parts:
        if form == "text":
            shown = ("ready", "off", "idle")
            statuses = () if parts.upstreams is None else parts.upstreams.statuses()
            _show(parts.mode, [each.name for each in statuses if each.state not in shown and not each.tools])
        elif form == "json":
            print_json(_summary(parts.mode))
        else:
            print_json(parts.mode.definitions(form))


def assembled(
    config: Config,
    mcp_config: list[Path] | None,
    tools: Sequence[str] | None,
    wait: float,
    *,
    codemode: Mapping[str, Any] = MappingProxyType({}),
    sources: Sequence[str] | None = None,
) -> Assembly:
    """The project with its servers started, without trail, journal and cluster: nothing runs in it."""
    from moonbox.project.sections import without_records

    changed = without_records(config).with_changes(codemode=codemode)
    return assemble_with(changed, tools, mcp_config, sources=sources).start(wait)


def _show(mode: CodeMode, missing: list[str]) -> None:
    from moonbox.tools.signature import render

    choice = mode.choice
    if choice.code:
        _heading(f"{mode.tool_name} · the code tool")
        typer.echo(visible(mode.description))
    if mode.direct_tools:
        _heading("direct tools")
        for tool in mode.direct_tools:
            typer.echo(visible(f"- {render(tool, 'brief')}"))
    if mode.system_prompt:
        _heading(f"system prompt · {counted(len(mode.system_prompt.encode()), 'byte')}")
        typer.echo(visible(mode.system_prompt))
    _heading("size")
    for line in _sizes(mode):
        typer.echo(line)
    shown = "every tool itself" if not choice.code else "both" if choice.both else "the code tool"
    typer.echo(f"shown: {shown}; {choice.reason.partition(' (')[0]}")
    for name in missing:
        typer.echo(f"the tools of {visible(name)} are missing: the server did not start; see `moonbox mcp doctor`")


def _sizes(mode: CodeMode) -> list[str]:
    choice, catalog = mode.choice, mode.catalog
    every = len(mode.sandbox.toolbox)
    listed = f"{counted(catalog.tools, 'tool')} in its catalog ({catalog.detail})" if catalog.tools else "no catalog"
    rows = [
        ("code mode", choice.code_tokens, f"the code tool, {listed}, {every - catalog.tools} direct"),
        ("every tool direct", choice.direct_tokens, counted(every, "tool")),
        *([("both", choice.both_tokens, "every tool direct, and a lean code tool")] if choice.both else []),
    ]
    width = max(len(f"{tokens:,}") for _, tokens, _ in rows)
    lines = [f"{name:<17}  {tokens:>{width},} {noun(tokens, 'token'):<6}  {what}" for name, tokens, what in rows]
    if every:
        share = choice.code_tokens / choice.direct_tokens
        compared = f"{1 - share:.0%} less" if share <= 1 else f"{share:.1f} times as much"
        lines.append(f"code mode takes {compared}")
    return lines


def _summary(mode: CodeMode) -> dict[str, Any]:
    choice, catalog = mode.choice, mode.catalog
    return {
        "code_tool": mode.tool_name if choice.code else None,
        "description": mode.description if choice.code else None,
        "system_prompt": mode.system_prompt,
        "catalog": {"detail": catalog.detail, "tools": catalog.tools, "tokens": catalog.tokens},
        "direct_tools": [tool.path for tool in mode.direct_tools],
        "hidden_tools": [tool.path for tool in mode.hidden_tools],
        "tokens": {
            "code_mode": choice.code_tokens,
            "every_tool_direct": choice.direct_tokens,
            "both": choice.both_tokens,
        },
        "reason": choice.reason,
    }


def _heading(text: str) -> None:
    line = f"── {text} "
    typer.echo(typer.style(line, bold=True) if is_terminal() else line.rstrip())


# moonbox check


CHECK_EXAMPLES = """[bold]Examples[/]

  moonbox check report.lua --tools crm:tools
  moonbox check scripts/*.lua --strict
  moonbox check report.rhai --json

The exit status is 0 when there is no error, 1 when there is one (with --strict also for a note), 2 for wrong use.
"""


def check(
    files: Annotated[list[str], argument(metavar="FILE|-…", help="The scripts; - is standard input.")],
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    tools: Tools = None,
    *,
    language: Language = None,
    strict: Annotated[bool, flag("--strict", help="Count notes as errors.")] = False,
    as_json: Json = False,
    wait: Wait = START_SECONDS,
) -> None:
    """Find mistakes in scripts without running them.

    Looks for unknown tools and fields, arguments that do not fit, and
    typical slips, with the tools of moonbox.toml and of --tools. An error
    cannot work; a note is likely a mistake.
    """
    options = CommandRunOptions(config=config)
    scripts = [read_script(file, None, language, options) for file in files]
    sources = [script.text for script in scripts]
    with (
        assembled(options.project or Config(), mcp_config, tools, wait, sources=sources) as parts,
        contextlib.ExitStack() as closing,
    ):
        boxes = {parts.sandbox.language: parts.sandbox}
        for name in {script.language for script in scripts} - boxes.keys():
            boxes[name] = closing.enter_context(parts.sandbox_in(name))
        results = []
        for script in scripts:
            with boxes[script.language].repl() as repl:
                results.append((script, repl.check(script.text)))
    if as_json:
        print_json([{"file": script.name, **finding.to_dict()} for script, findings in results for finding in findings])
    else:
        _show_findings(results)
    worst = {finding.severity for _, findings in results for finding in findings}
    if "error" in worst or (strict and worst):
        raise typer.Exit(1)


def _show_findings(results: list[tuple[Script, tuple[Finding, ...]]]) -> None:
    from rich.text import Text

    from moonbox.languages.explanations import pointed

    screen = console()
    errors = notes = 0
    for script, findings in results:
        for finding in findings:
            errors += finding.severity == "error"
            notes += finding.severity == "note"
            text = Text(f"{visible(script.name or 'script')}:{finding.line}: ", "bold")
            text.append(f"{finding.severity}: ", "bold red" if finding.severity == "error" else "bold yellow")
            text.append(visible(finding.message))
            text.append(f"\n{visible(pointed(script.text, finding.line, finding.column))}", "dim")
            if finding.hint:
                text.append(f"\n  hint: {visible(finding.hint)}")
            screen.print(text, soft_wrap=True)
    checked = counted(len(results), "script")
    result = ", ".join([counted(errors, "error")] * (errors > 0) + [counted(notes, "note")] * (notes > 0))
    print_note(f"{checked} checked: {result or 'nothing found'}")
