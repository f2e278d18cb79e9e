"""The commands `moonbox init`, and `moonbox tool init`, `list`, `check` and `test`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli.options import ConfigFile, Json, parse_arguments
from moonbox.cli.output import console, print_json, reporting_errors
from moonbox.cli.trust import Trust, trusted_config
from moonbox.errors import UsageError
from moonbox.suggest import suggestion
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.scripts.library import LoadedScript

__all__ = ["app", "register"]

app = typer.Typer(name="tool", help="Create and test tool scripts.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the command `init` to the application."""
    app.command("init")(init_project)


def init_project(
    folder: Annotated[Path, typer.Argument(help="The folder of the project.", metavar="[DIR]")] = Path(),
) -> None:
    """Write a commented moonbox.toml and a folder for tool scripts."""
    with reporting_errors():
        from moonbox.config import Config
        from moonbox.project.trust import TrustStore
        from moonbox.scripts.templates import write_config

        path = write_config(folder)
        TrustStore.default().trust(Config.load(path, any_owner=True))  # whoever makes it agrees to it
        steps = ["moonbox tool init hello", "moonbox tool test hello --param name=moon"]
        if folder.resolve() != Path.cwd():
            steps.insert(0, f"cd {shlex.quote(str(folder))}")
        typer.echo("\n  ".join([f"{path} is ready. Next:\n", *steps]) + "\n")


@app.command("init")
def init(
    name: Annotated[str, typer.Argument(help="The tool's name.", metavar="NAME")],
    folder: Annotated[Path, typer.Option("--folder", "-d", help="The folder for it.", metavar="DIR")] = Path("tools"),
) -> None:
    """Write a commented tool script that is ready to use."""
    with reporting_errors():
        from moonbox.scripts.templates import write_tool

        path = write_tool(name, folder)
        typer.echo(f"{path} is ready. Try it:\n\n  moonbox tool test {path} --param name=moon\n")


@app.command("list")
def list_tools(config: ConfigFile = None, as_json: Json = False) -> None:
    """List the configured tool scripts."""
    with reporting_errors():
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
    with reporting_errors():
        scripts = _library(config)
        broken = [script for script in scripts if script.problem is not None]
        if as_json:
            print_json([_summary(script) for script in scripts])
        else:
            for script in broken:
                typer.echo(f"{script.settings.name}: {script.problem}\n", err=True)
            typer.echo(f"{counted(len(scripts), 'tool script')} checked, {len(broken)} broken")
        if broken:
            raise typer.Exit(1)


@app.command("test")
def test(
    path: Annotated[Path, typer.Argument(help="The script, or the name of a configured script.", metavar="PATH")],
    params: Annotated[
        list[str] | None, typer.Option("--param", "-p", help="A parameter: key=value. Repeatable.", metavar="KEY=VALUE")
    ] = None,
    config: ConfigFile = None,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Run one tool script with the given parameters and show its result."""
    with reporting_errors():
        run = _test(path, params or [], config, trust)
        if as_json:
            print_json(run.to_dict())
        else:
            typer.echo(run.for_model(), err=run.error is not None)
        if run.error is not None:
            raise typer.Exit(1)


def _test(path: Path, params: Sequence[str], config: Path | None, trust: bool) -> Any:
    from moonbox.errors import ArgumentError
    from moonbox.scripts.library import ScriptLibrary

    settings = _settings_for(path, config, trust)
    with ScriptLibrary(settings) as library:
        script = library.scripts[0]
        if script.tool is None:
            raise UsageError(str(script.problem))
        try:
            bound = script.tool.bind(parse_arguments(params, script.tool, "--param"))
        except ArgumentError as problem:
            raise UsageError(problem.message) from None
        return library.execute(script.settings.name, bound)


def _settings_for(path: Path, config_file: Path | None, trust: bool) -> Any:
    """The one script: with its grants if it is configured, else without any."""
    from moonbox.project.sections import read_tools
    from moonbox.scripts.configured import ScriptSettings, ToolsSettings

    configured = read_tools(trusted_config(config_file, trust=trust))
    for item in configured.scripts:
        if item.name == str(path) or item.path == path.resolve():
            return ToolsSettings((item,))
    for folder in configured.folders:
        if (folder / f"{path}.lua").is_file():
            path = folder / f"{path}.lua"
    if not path.is_file():
        names = [item.name for item in configured.scripts]
        names += [file.stem for folder in configured.folders for file in sorted(folder.glob("*.lua"))]
        hint = suggestion(str(path), names) or "; `moonbox tool list` lists the configured ones"
        raise UsageError(f"unknown tool script '{path}'{hint}")
    return ToolsSettings((ScriptSettings(path.stem, path.resolve()),))


def _library(config_file: Path | None) -> tuple[LoadedScript, ...]:
    from moonbox.config import Config
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
