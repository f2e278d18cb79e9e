"""The commands `moonbox tool init`, `list`, `test` and `check`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli.screen import console, print_json, told
from moonbox.errors import UsageError
from moonbox.suggest import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.scripts.library import LoadedScript
    from moonbox.tools.tool import Tool

__all__ = ["app"]

app = typer.Typer(name="tool", help="Make and test tool scripts.", no_args_is_help=True)

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The configuration; by default the nearest moonbox.toml.", metavar="FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("init")
def init(
    name: Annotated[str, typer.Argument(help="The tool's name.", metavar="NAME")],
    folder: Annotated[Path, typer.Option("--folder", "-d", help="Where to put it.", metavar="DIR")] = Path("tools"),
) -> None:
    """Write a commented tool script that works at once."""
    with told():
        from moonbox.scripts.templates import write_tool

        path = write_tool(name, folder)
        typer.echo(f"{path} is ready; try it:\n\n  moonbox tool test {path} --param name=moon\n")


@app.command("list")
def list_tools(config: ConfigFile = None, as_json: Json = False) -> None:
    """List the configured tool scripts."""
    with told():
        scripts = _library(config)
        if as_json:
            print_json([_summary(script) for script in scripts])
        elif not scripts:
            typer.echo("no tool scripts are configured; `moonbox tool init NAME` writes one")
        else:
            _print_table(scripts)


@app.command("check")
def check(config: ConfigFile = None, as_json: Json = False) -> None:
    """Load and validate every configured tool script; exit status 1 when one is broken."""
    with told():
        scripts = _library(config)
        broken = [script for script in scripts if script.problem is not None]
        if as_json:
            print_json([_summary(script) for script in scripts])
        else:
            for script in broken:
                typer.echo(f"{script.settings.name}: {script.problem}\n", err=True)
            fine, all_of_them = len(scripts) - len(broken), f"tool script{'s' * (len(scripts) != 1)}"
            typer.echo(f"{fine} of {len(scripts)} {all_of_them} {'is' if fine == len(scripts) == 1 else 'are'} fine")
        if broken:
            raise typer.Exit(1)


@app.command("test")
def test(
    path: Annotated[Path, typer.Argument(help="The script, or the name of a configured one.", metavar="PATH")],
    params: Annotated[
        list[str] | None, typer.Option("--param", "-p", help="A parameter: key=value.", metavar="KEY=VALUE")
    ] = None,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Run one tool script with the given parameters and show its result."""
    with told():
        run = _test(path, params or [], config)
        if as_json:
            print_json(run.to_dict())
        else:
            typer.echo(run.for_model(), err=run.error is not None)
        if run.error is not None:
            raise typer.Exit(1)


def _test(path: Path, params: Sequence[str], config: Path | None) -> Any:
    from moonbox.errors import ArgumentError
    from moonbox.scripts.library import ScriptLibrary

    settings = _settings_for(path, config)
    with ScriptLibrary(settings) as library:
        script = library.scripts[0]
        if script.tool is None:
            raise UsageError(str(script.problem))
        try:
            bound = script.tool.bind(_arguments(script.tool, params))
        except ArgumentError as problem:
            raise UsageError(problem.message) from None
        return library.execute(script.settings.name, bound)


def _settings_for(path: Path, config_file: Path | None) -> Any:
    """The one script: as configured where it is, else as a file of its own with no grants."""
    from moonbox.config.file import Config
    from moonbox.scripts.settings import ScriptSettings, ToolsSettings

    configured = ToolsSettings.from_config(Config.load(config_file))
    for item in configured.scripts:
        if item.name == str(path) or item.path == path.resolve():
            return ToolsSettings((item,))
    for folder in configured.folders:
        if (folder / f"{path}.lua").is_file():
            path = folder / f"{path}.lua"
    if not path.is_file():
        names = [item.name for item in configured.scripts]
        names += [file.stem for folder in configured.folders for file in sorted(folder.glob("*.lua"))]
        hint = suggestion(str(path), names) or "; `moonbox tool list` lists those that are configured"
        raise UsageError(f"there is no tool script {path}{hint}")
    return ToolsSettings((ScriptSettings(path.stem, path.resolve()),))


def _arguments(tool: Tool, params: Sequence[str]) -> dict[str, Any]:
    """key=value pairs as the schema wants them: text for strings, JSON for everything else."""
    properties = tool.parameters.get("properties", {})
    arguments: dict[str, Any] = {}
    for item in params:
        key, given, text = item.partition("=")
        if not given or not key:
            raise UsageError(f"--param takes key=value, not {item!r}")
        kind = properties.get(key, {}).get("type") if isinstance(properties.get(key), dict) else None
        arguments[key] = text if kind == "string" else _value(text)
    return arguments


def _value(text: str) -> Any:
    if re.fullmatch(r"true|false|null|-?\d+(\.\d+)?([eE][+-]?\d+)?|[\[{\"].*", text, re.DOTALL):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _library(config_file: Path | None) -> tuple[LoadedScript, ...]:
    from moonbox.config.file import Config
    from moonbox.scripts.library import ScriptLibrary

    with ScriptLibrary.from_config(Config.load(config_file)) as library:
        return library.scripts


def _summary(script: LoadedScript) -> dict[str, Any]:
    tool = script.tool
    return {
        "name": script.settings.name,
        "path": str(script.settings.path),
        "ok": tool is not None,
        "problem": script.problem,
        "description": tool.description if tool else None,
        "version": script.definition.version if script.definition else None,
        "parameters": tool.parameters if tool else None,
    }


def _print_table(scripts: Sequence[LoadedScript]) -> None:
    from rich.table import Table

    from moonbox.audit.terminal import visible
    from moonbox.tools.signature import render

    table = Table("tool", "state", "what it does", box=None, pad_edge=False)
    for script in scripts:
        if script.tool is not None:
            table.add_row(script.settings.name, "ok", visible(render(script.tool, "brief")))
        else:
            table.add_row(script.settings.name, "broken", visible((script.problem or "").partition("\n")[0]))
    console().print(table)
