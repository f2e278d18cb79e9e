"""The command `moonbox doctor`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - read at run time by Typer
from typing import TYPE_CHECKING, Annotated

import typer

from moonbox.audit.terminal import visible
from moonbox.cli.screen import console, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.text import Text

    from moonbox.cli.diagnosis import Check, Diagnosis, Package

__all__ = ["doctor", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("doctor")(doctor)


def doctor(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The configuration; by default the nearest moonbox.toml.", metavar="FILE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")] = False,
) -> None:
    """Show which protections hold on this machine.

    Each layer of the workers' jail is tried in a short-lived process, which
    then tries to get past it. The moonbox.toml that holds here is read, if
    there is one. The exit status is 1 when scripts cannot be run in
    processes of their own, or when the configuration is wrong.
    """
    from moonbox.cli.diagnosis import diagnose

    found = diagnose(config)
    if as_json:
        print_json(found.to_dict())
    else:
        screen = console()
        for part in _parts(found):
            screen.print(part)
    if not found.ok:
        raise typer.Exit(1)


def _parts(found: Diagnosis) -> Iterable[RenderableType]:
    from rich.text import Text

    yield Text(f"moonbox {found.moonbox}, {found.python}, {found.machine}", "bold")
    yield Text("\nrunning scripts", "bold")
    yield _table((found.isolation, found.fork, found.interrupt))
    wanted = [layer for layer in found.layers if _is_wanted(layer)]
    active = sum(layer.active for layer in wanted)
    yield Text(f"\nthe workers' jail ({active} of {len(wanted)} layers hold)", "bold")
    yield _table(found.layers)
    if found.configuration:
        yield Text("\nconfiguration", "bold")
        yield _table(found.configuration)
    yield Text("\npackages", "bold")
    yield _package_table(found.packages)
    yield Text("\n" + _verdict(found), "green" if found.ok else "bold red")


def _is_wanted(layer: Check) -> bool:
    """Not one that workers leave out on purpose, where something else does its work."""
    return layer.active or not layer.detail.startswith("not asked for")


def _verdict(found: Diagnosis) -> str:
    wrong = [check.name for check in found.configuration if not check.active]
    said = _verdict_on_scripts(found)
    return f"{said} The configuration is wrong: {', '.join(wrong)}." if wrong else said


def _verdict_on_scripts(found: Diagnosis) -> str:
    if not found.isolation.active:
        return "Scripts cannot be isolated here: run only scripts that you trust, with --isolation inline."
    missing = [layer.name for layer in found.layers if not layer.active and _is_wanted(layer)]
    if missing:
        return f"Scripts run in processes of their own. Without effect here: {', '.join(missing)}."
    return "Scripts run in processes of their own, and every layer holds."


def _table(checks: Iterable[Check]) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, min_width=17)
    table.add_column()
    for check in checks:
        table.add_row(_mark(check.active), check.name, visible(check.detail))
    return table


def _package_table(packages: Iterable[Package]) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, min_width=17)
    table.add_column()
    for package in packages:
        need = f"for moonbox[{package.extra}]" if package.extra else ""
        said = package.version or (f"not installed: pip install 'moonbox[{package.extra}]'" if need else "missing")
        table.add_row(_mark(package.version is not None), package.name, f"{said} {need if package.version else ''}")
    return table


def _mark(active: bool) -> Text:
    from rich.text import Text

    return Text("✓", "green") if active else Text("–", "yellow")
