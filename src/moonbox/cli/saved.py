"""The commands `moonbox script save` and `remove`."""

from __future__ import annotations

from typing import Annotated

import typer

from moonbox.cli.audit import Db, chosen_run
from moonbox.cli.options import ConfigFile, argument, flag, option
from moonbox.cli.run_options import json_or_text
from moonbox.cli.trust import Trust, trusted_config

app = typer.Typer(name="script", help="Save runs as tools, and remove them.", no_args_is_help=True)


@app.command("save")
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
    from moonbox.project.assembly import assemble
    from moonbox.scripts.saving import save_run

    project, chosen = trusted_config(config, trust=trust), chosen_run(db, run, last=last)
    given = [(key.strip(), equals, value) for key, equals, value in (item.partition("=") for item in params or ())]
    with assemble(project) as opened:
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


@app.command("remove")
def remove(
    name: Annotated[str, argument(help="The saved script.", metavar="NAME")],
    config: ConfigFile = None,
    trust: Trust = False,
) -> None:
    """Remove a saved script; its last version stays in the folder `history`."""
    from moonbox.project.assembly import assemble
    from moonbox.scripts.saving import remove_script

    with assemble(trusted_config(config, trust=trust)) as opened:
        kept = remove_script(opened.scripts, name)
    typer.echo(f"the tool '{name}' was removed; its last version is {kept}")
