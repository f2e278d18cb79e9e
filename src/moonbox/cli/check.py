"""The command `moonbox check`: what is wrong with scripts, without running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli.catalog import assembled
from moonbox.cli.options import ConfigFile, Json, McpConfig, Tools, Wait, argument, flag, language_names, option
from moonbox.cli.output import console, print_json, print_note
from moonbox.cli.run_options import START_SECONDS
from moonbox.cli.script import Script, read_script
from moonbox.cli.trust import trusted_config

if TYPE_CHECKING:
    from moonbox.findings import Finding
    from moonbox.project.assembly import Assembly

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
    language: Annotated[
        str | None,
        option(metavar="NAME", help="Their language; by default that of the suffix.", autocompletion=language_names),
    ] = None,
    strict: Annotated[bool, flag("--strict", help="Count notes as errors.")] = False,
    as_json: Json = False,
    wait: Wait = START_SECONDS,
) -> None:
    """Find mistakes in scripts without running them.

    Looks for unknown tools and fields, arguments that do not fit, and
    typical slips, with the tools of moonbox.toml and of --tools. An error
    cannot work; a note is likely a mistake.
    """
    scripts = [read_script(file, None, language) for file in files]
    sources = [script.text for script in scripts]
    with assembled(trusted_config(config), mcp_config, tools, wait, sources=sources) as parts:
        results = [(script, _findings(script, parts)) for script in scripts]
    if as_json:
        print_json([{"file": script.name, **finding.to_dict()} for script, findings in results for finding in findings])
    else:
        _show(results)
    worst = {finding.severity for _, findings in results for finding in findings}
    if "error" in worst or (strict and worst):
        raise typer.Exit(1)


def _findings(script: Script, parts: Assembly) -> tuple[Finding, ...]:
    from moonbox.check.checker import Checker
    from moonbox.check.tools import ToolView
    from moonbox.languages.registry import language

    spoken = language(script.language)
    syntax = _syntax_error(script.text, spoken, parts)
    if syntax is not None:
        return (syntax,)
    opened = [name for feature in parts.sandbox.lua_features for name in spoken.features.get(feature, ())]
    view = ToolView(parts.sandbox.toolbox, spoken)
    return Checker(spoken).check(script.text, view, frozenset(opened))


def _syntax_error(source: str, spoken: Any, parts: Assembly) -> Finding | None:
    """What the language's own compiler says."""
    from moonbox.findings import Finding
    from moonbox.languages.explanations import syntax_error

    problem = syntax_error(source, spoken)
    if problem is None:
        return None
    error = spoken.explain(
        problem,
        sources={"script": source},
        tools=parts.sandbox.toolbox.paths(),
        limits=parts.sandbox.limits,
    )
    return Finding("error", error.message, error.line or 1, error.column, error.hint, code="syntax")


def _show(results: list[tuple[Script, tuple[Finding, ...]]]) -> None:
    from rich.text import Text

    from moonbox.languages.explanations import pointed
    from moonbox.wording import counted, visible

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
