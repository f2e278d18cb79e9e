"""The commands `moonbox init`, `moonbox tool …` and `moonbox script …`: writing, testing and saving tool scripts."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli.options import ConfigFile, Db, Json, argument, flag, option, parse_arguments
from moonbox.cli.output import (
    are_to_show,
    columns_table,
    console,
    print_error,
    print_json,
    print_note,
    show_error,
    show_output,
    show_values,
)
from moonbox.cli.run_options import START_SECONDS, json_or_text
from moonbox.cli.trust import Trust, trusted_config
from moonbox.config import Config
from moonbox.errors import ArgumentError, MoonboxError, UsageError
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.suggest import suggestion
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from moonbox.scripts.configured import ToolsSettings
    from moonbox.scripts.library import LoadedScript, ScriptLibrary

app = typer.Typer(name="tool", help="Create and test tool scripts.", no_args_is_help=True)


def init(
    folder: Annotated[Path, typer.Argument(help="The folder of the project.", metavar="[DIR]")] = Path(),
) -> None:
    """Write a commented moonbox.toml and a folder for tool scripts."""
    from moonbox.project.trust import TrustStore
    from moonbox.scripts.authoring import write_config

    path = write_config(folder)
    TrustStore.default().trust(Config.load(path, any_owner=True))  # the person who runs this command agrees to it
    typer.echo(f"{path} is written, and the folder {path.parent / 'tools'}{os.sep} for tool scripts. Next:\n")
    steps = ["moonbox tool init hello", "moonbox tool test hello --param name=moon"]
    if folder.resolve() != Path.cwd():
        steps.insert(0, f"cd {shlex.quote(str(folder))}")
    typer.echo("".join(f"  {step}\n" for step in steps))


@app.command("init")
def init_tool(
    name: Annotated[str, typer.Argument(help="The tool's name.", metavar="NAME")],
    folder: Annotated[Path, typer.Option("--folder", "-d", help="The folder for it.", metavar="DIR")] = Path("tools"),
) -> None:
    """Write a commented tool script that is ready to use."""
    from moonbox.scripts.authoring import write_tool

    path = write_tool(name, folder)
    typer.echo(f"{path} is ready. Try it:\n\n  moonbox tool test {path} --param name=moon\n")


@app.command("list")
def list_tools(config: ConfigFile = None, as_json: Json = False, trust: Trust = False) -> None:
    """List the configured tool scripts."""
    from moonbox.project.sections import read_tools

    chosen = trusted_config(config, trust=trust)
    _list(_library(chosen), read_tools(chosen), "no tool scripts; `moonbox tool init NAME` writes one", as_json)


@app.command("check")
def check(
    name: Annotated[str | None, argument(help="The script; by default all.", metavar="[NAME]")] = None,
    config: ConfigFile = None,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Load and validate the configured tool scripts, or one script; exit status 1 when one is broken."""
    chosen = trusted_config(config, trust=trust)
    if name is None:
        scripts = _library(chosen)
    else:
        with _opened(_chosen(Path(name), chosen), chosen) as (_, found):
            scripts = tuple(found)
    broken = [script for script in scripts if script.problem is not None]
    if as_json:
        print_json([_summary(script) for script in scripts])
    else:
        for script in broken:
            _show_broken(script)
        typer.echo(f"{counted(len(scripts), 'tool script')} checked, {len(broken)} broken")
    if broken:
        raise typer.Exit(1)


@app.command("test")
def test(
    path: Annotated[
        Path | None,
        argument(
            help="The script, or the name of a configured script; by default all that have examples.", metavar="[PATH]"
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", "-p", help="A parameter: key=value, or one JSON object. Repeatable.", metavar="KEY=VALUE|JSON"
        ),
    ] = None,
    watch: Annotated[bool, flag("--watch", "-w", help="Run again when the file changes.")] = False,
    config: ConfigFile = None,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Run one tool script with the given parameters and show its result.

    Without parameters, the examples beside the script are run, if there are
    any: web.examples.json holds a list of {"params": {…}, "result": …}, or
    {"params": {…}, "error": "a part of the message"}. The exit status is 1
    when one of them differs.
    """
    with _shown_logs():
        chosen = trusted_config(config, trust=trust)
        if watch:
            _watch(path, params or [], chosen)
            return
        if not _run_tests(path, params or [], chosen, as_json=as_json):
            raise typer.Exit(1)


def _run_tests(path: Path | None, params: Sequence[str], config: Config, *, as_json: bool = False) -> bool:
    """Run the script or its examples. Returns whether all succeeded."""
    from moonbox.scripts.authoring import examples_of, run_example

    settings = _chosen(path, config)
    once = path is not None and bool(params or not examples_of(settings.scripts[0].path))
    tested: list[dict[str, Any]] = []
    broken = 0
    with _opened(settings, config, START_SECONDS if once else 0.0) as (library, scripts):
        for script in scripts:
            if script.problem is not None:
                _show_broken(script)
                broken += 1
                continue
            if once:
                return _run_once(library, script, params, as_json=as_json)
            name = script.settings.name
            for example in examples_of(script.settings.path):
                problem = run_example(library, script, example)
                tested.append({"tool": name, "example": example.title, "ok": problem is None, "problem": problem})
                if not as_json:
                    mark = "ok" if problem is None else "failed"
                    typer.echo(f"{mark:<7} {name}: {example.title}" + (f"\n  {problem}" if problem else ""))
    failed = broken + sum(not each["ok"] for each in tested)
    if as_json and not once:
        print_json(tested)
    elif not once:
        typer.echo(f"{counted(len(tested), 'example')}, {failed} failed")
    return not failed


def _run_once(library: ScriptLibrary, script: LoadedScript, params: Sequence[str], *, as_json: bool) -> bool:
    assert script.tool is not None
    try:
        bound = script.tool.bind(parse_arguments(params, script.tool, "--param"))
    except ArgumentError as problem:
        raise UsageError(problem.message) from None
    run = library.execute(script, bound)
    if as_json:
        print_json(run.to_dict())
        return run.ok
    show_output(run)
    show_values(run, quote=False)
    sys.stdout.flush()
    if run.error is not None:
        limits = {"time": f"timeout under [tools.script.{run.tool}]"}
        show_error(run.error, language=run.language, name=_relative(script.settings.path), limits=limits)
    return run.ok


def _watch(path: Path | None, params: Sequence[str], config: Config) -> None:
    """Run it now and after each change, until Ctrl-C."""
    from moonbox.scripts.authoring import examples_file
    from moonbox.scripts.definition import file_stamp

    settings = _chosen(path, config)
    scripts = [item.path for item in settings.scripts]
    files = [*scripts, *(examples_file(script) for script in scripts)]
    stamps = None
    try:
        while True:
            now = [file_stamp(file) for file in files]
            if now != stamps:
                stamps = now
                try:
                    _run_tests(path, params, config)
                except MoonboxError as problem:  # the next change may repair the script
                    print_error(str(problem))
                print_note("waiting for changes; Ctrl-C stops")
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        print_note("")


_POLL_SECONDS = 0.2


def _show_broken(script: LoadedScript) -> None:
    """Show why a script is broken, in the way `moonbox run` shows errors."""
    if script.error is not None:
        show_error(script.error, language=DEFAULT_LANGUAGE, name=_relative(script.settings.path), limits={})
    else:
        print_error(f"{_relative(script.settings.path)}: {script.problem}")


def _relative(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


@contextlib.contextmanager
def _shown_logs() -> Iterator[None]:
    """Show on standard error what scripts log."""
    logger = logging.getLogger("moonbox.script")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("log.%(levelname)s: %(message)s"))
    level, logger.propagate = logger.level, False
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = True


@contextlib.contextmanager
def _opened(
    settings: ToolsSettings, config: Config, start: float = 0.0
) -> Iterator[tuple[ScriptLibrary, list[LoadedScript]]]:
    """These scripts and their library, with the context of their project.

    Where they may call its tools, the whole project is opened, and MCP servers have `start` seconds to start.
    """
    from moonbox.project.assembly import assemble, script_library
    from moonbox.project.sections import without_records

    with contextlib.ExitStack() as closing:
        library: Any
        if any(item.tools for item in settings.scripts):
            project = closing.enter_context(assemble(without_records(config)))
            library = (project.start(start) if start else project).scripts
        else:
            library = closing.enter_context(script_library(config, settings=settings))
        wanted = [item.path for item in settings.scripts]
        yield library, [script for script in library.scripts if script.settings.path in wanted]


def _chosen(path: Path | None, config: Config) -> ToolsSettings:
    """The script of this name or path: with its grants if it is configured, else without any. Or all with examples."""
    from moonbox.project.sections import read_tools
    from moonbox.scripts.authoring import examples_of
    from moonbox.scripts.configured import ScriptSettings, ToolsSettings

    if path is None:
        chosen = tuple(script.settings for script in _library(config) if examples_of(script.settings.path))
        if not chosen:
            raise UsageError(
                "no tool script has examples; name the script to test, or write NAME.examples.json beside it"
            )
        return ToolsSettings(chosen)
    for item in read_tools(config).scripts:
        if item.name == str(path) or item.path == path.resolve():
            return ToolsSettings((item,))
    if path.is_file():
        if path.suffix != ".lua":
            raise UsageError(f"'{path}' is not a tool script, which ends in .lua")
        tools = ("*",) if read_tools(config).saved == path.resolve().parent else ()
        return ToolsSettings((ScriptSettings(path.stem, path.resolve(), tools=tools),))
    scripts = [script.settings for script in _library(config)]
    for item in scripts:
        if item.name == str(path):
            return ToolsSettings((item,))
    for item in scripts:
        if item.path.stem == str(path):
            raise UsageError(f"{_relative(item.path)} defines the tool '{item.name}'; use that name")
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder; name one of its scripts")
    files = [str(path.with_name(file.name)) for file in sorted(path.parent.glob("*.lua"))] if path.suffix else []
    names = [item.name for item in scripts]
    hint = suggestion(str(path), [*names, *files]) or "; `moonbox tool list` lists the configured ones"
    raise UsageError(f"unknown tool script '{path}'{hint}")


def _library(config: Config) -> tuple[LoadedScript, ...]:
    from moonbox.project.assembly import script_library

    with script_library(config, context={}) as library:
        return library.scripts


def _summary(script: LoadedScript) -> dict[str, Any]:
    tool = script.tool
    return {
        "name": script.settings.name,
        "path": str(script.settings.path),
        "ok": script.problem is None,
        "problem": script.problem,
        "description": tool.description if tool else None,
        "version": script.definition.version if script.definition else None,
        "parameters": tool.parameters if tool else None,
    }


def _is_disabled(script: LoadedScript, settings: ToolsSettings) -> bool:
    return script.tool is not None and not settings.allows(script.tool)


def _list(scripts: Sequence[LoadedScript], settings: ToolsSettings, none: str, as_json: bool) -> None:
    from moonbox.tools.signature import render

    found = [{**_summary(script), "disabled": _is_disabled(script, settings)} for script in scripts]
    if not are_to_show(found, none, as_json=as_json):
        return
    rows = []
    for script in scripts:
        tool = script.tool if script.problem is None else None
        about = (script.problem or "").partition("\n")[0] if tool is None else render(tool, "brief")
        state = "broken" if tool is None else "disabled" if _is_disabled(script, settings) else "ok"
        rows.append((script.settings.name, state, visible(about)))
    console().print(columns_table(("tool", "state", "what it does"), rows, folded=("what it does",)))


# Saved scripts


script_app = typer.Typer(name="script", help="Save runs as tools, and remove them.", no_args_is_help=True)


@script_app.command("save")
def save(
    name: Annotated[str, option("--name", help="The name of the new tool.", metavar="NAME")],
    run: Annotated[str | None, argument(help="The run's id, or the beginning of it.", metavar="[RUN]")] = None,
    description: Annotated[str, option("--description", help="What the tool does, for models.")] = "",
    params: Annotated[
        list[str] | None,
        option(
            "--param",
            "-p",
            help="A parameter: a variable that a line `local NAME = …` sets, or NAME=VALUE for an input. Repeatable.",
            metavar="NAME[=VALUE]",
        ),
    ] = None,
    last: Annotated[bool, flag("--last", help="The latest run.")] = False,
    replace: Annotated[bool, flag("--replace", help="Replace the saved script of that name.")] = False,
    no_example: Annotated[bool, flag("--no-example", help="Do not record the run as a test.")] = False,
    db: Db = None,
    config: ConfigFile = None,
    trust: Trust = False,
) -> None:
    """Save a run that succeeded as a tool script of the project.

    The file is written to the folder that `saved` under [tools] names. The
    run's tool calls and its result become a test for `moonbox tool test`.
    """
    from moonbox.cli.audit import chosen_run
    from moonbox.project.assembly import assemble
    from moonbox.project.sections import without_records
    from moonbox.scripts.saving import save_run

    project, chosen = trusted_config(config, trust=trust), chosen_run(db, run, last=last)
    given = [(key.strip(), equals, value) for key, equals, value in (item.partition("=") for item in params or ())]
    with assemble(without_records(project)) as opened:
        saved = save_run(
            opened.scripts,
            chosen,
            name=name,
            description=description,
            parameters=[{"name": key, "required": True} for key, _, _ in given],
            values={key: json_or_text(value) for key, equals, value in given if equals},
            replace=replace,
            example=not no_example,
        )
    tested = f"; `moonbox tool test {saved.name}` tests it" if saved.tested else ""
    typer.echo(f"{saved.path} is version {saved.version} of the tool '{saved.name}'{tested}")


@script_app.command("list")
def list_saved(config: ConfigFile = None, as_json: Json = False, trust: Trust = False) -> None:
    """List the saved scripts."""
    from moonbox.project.sections import read_tools
    from moonbox.scripts.saving import SAVED_HINT

    chosen = trusted_config(config, trust=trust)
    settings = read_tools(chosen)
    if settings.saved is None:
        raise UsageError(f"no folder for saved scripts; {SAVED_HINT}")
    scripts = tuple(item for item in _library(chosen) if item.settings.path.parent == settings.saved)
    _list(scripts, settings, "no scripts are saved; `moonbox script save --name NAME --last` saves a run", as_json)


@script_app.command("remove")
def remove(
    name: Annotated[str, argument(help="The saved script.", metavar="NAME")],
    config: ConfigFile = None,
    trust: Trust = False,
) -> None:
    """Remove a saved script; its last version stays in the folder `history`."""
    from moonbox.project.assembly import assemble
    from moonbox.project.sections import without_records
    from moonbox.scripts.saving import remove_script

    with assemble(without_records(trusted_config(config, trust=trust))) as opened:
        kept = remove_script(opened.scripts, name)
    typer.echo(f"the tool '{name}' was removed; its last version is {kept}")
