"""The command `moonbox doctor`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from moonbox.cli.options import ConfigFile, Json  # noqa: TC001 - read at run time by Typer
from moonbox.cli.output import console, print_json
from moonbox.wording import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moonbox.project.diagnosis import Check, Diagnosis, Package


def doctor(config: ConfigFile = None, as_json: Json = False) -> None:
    """Show which protections are active on this machine.

    Each layer of the workers' jail is tested in a short-lived process that
    tries to get past it. The nearest moonbox.toml is checked too, if there
    is one. The exit status is 1 when scripts cannot run in processes of
    their own, or when the configuration is invalid.
    """
    from moonbox.project.diagnosis import diagnose

    diagnosis = diagnose(config)
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        screen = console()
        for part in _parts(diagnosis):
            screen.print(part)
    if not diagnosis.ok:
        raise typer.Exit(1)


def _parts(diagnosis: Diagnosis) -> Iterable[RenderableType]:
    from rich.text import Text

    yield Text(f"moonbox {diagnosis.moonbox}, {diagnosis.python}, {diagnosis.machine}", "bold")
    yield Text("\nrunning scripts", "bold")
    yield _table((diagnosis.isolation, diagnosis.native, diagnosis.fork, diagnosis.interrupt, diagnosis.chores))
    active, missing = sum(layer.active for layer in diagnosis.layers), len(_missing(diagnosis.layers))
    unneeded = len(diagnosis.layers) - active - missing
    counts = ((active, "active"), (unneeded, "not needed"), (missing, "missing"))
    counted = ", ".join(f"{count} {what}" for count, what in counts if count)
    yield Text(f"\nthe workers' jail ({counted})", "bold")
    yield _table(diagnosis.layers)
    if diagnosis.configuration:
        yield Text("\nconfiguration", "bold")
        yield _table(diagnosis.configuration, problem=("✗", "bold red"))
    yield Text("\npackages", "bold")
    yield _table(map(_as_check, diagnosis.packages))
    yield Text("\n" + _verdict(diagnosis), "green" if diagnosis.ok else "bold red")


def _missing(layers: Iterable[Check]) -> list[str]:
    """The layers that are not active, without those that are left out on purpose because another does their work."""
    left_out = ("not asked for", "not needed")
    return [layer.name for layer in layers if not layer.active and not layer.detail.startswith(left_out)]


def _verdict(diagnosis: Diagnosis) -> str:
    if not diagnosis.isolation.active:
        verdict = "Scripts cannot be isolated here: run only scripts that you trust, with --isolation inline."
    elif missing := _missing(diagnosis.layers):
        verdict = f"Scripts run in processes of their own. Missing here: {', '.join(missing)}."
    else:
        verdict = "Scripts run in processes of their own, and every layer that they need is active."
    wrong = [check.name for check in diagnosis.configuration if not check.active]
    return f"{verdict} The configuration is invalid: {', '.join(wrong)}." if wrong else verdict


def _table(checks: Iterable[Check], problem: tuple[str, str] = ("–", "yellow")) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, min_width=17)
    table.add_column()
    for check in checks:
        mark = Text("✓", "green") if check.active else Text(*problem)
        table.add_row(mark, check.name, visible(check.detail))
    return table


def _as_check(package: Package) -> Check:
    from moonbox.project.diagnosis import Check

    need = f"for moonbox[{package.extra}]" if package.extra else ""
    state = package.version or (f"not installed: pip install 'moonbox[{package.extra}]'" if need else "missing")
    return Check(package.name, package.version is not None, f"{state} {need if package.version else ''}")
