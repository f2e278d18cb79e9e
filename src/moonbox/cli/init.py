"""The command `moonbox init`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from moonbox.cli.screen import told

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("init")(init)


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write it.", metavar="[DIR]")] = Path(),
) -> None:
    """Write a commented moonbox.toml and a folder for tool scripts."""
    with told():
        from moonbox.scripts.templates import write_config

        path = write_config(folder)
        steps = ["moonbox tool init hello", "moonbox tool test hello --param name=moon"]
        if folder.resolve() != Path.cwd():
            steps.insert(0, f"cd {shlex.quote(str(folder))}")
        typer.echo("\n  ".join([f"{path} is ready. Next:\n", *steps]) + "\n")
