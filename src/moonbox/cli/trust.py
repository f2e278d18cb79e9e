"""The command `moonbox trust`, and the question to the person before an unknown configuration is used."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from moonbox.cli.options import flag
from moonbox.cli.output import confirmed, is_terminal
from moonbox.config import FILE_NAME, Config, find
from moonbox.errors import ConfigError, UsageError
from moonbox.wording import visible

Trust = Annotated[bool, flag("--trust", help="Use moonbox.toml without asking, for CI; MOONBOX_TRUST=1 does the same.")]


def trust(
    path: Annotated[Path, typer.Argument(help="A project's folder, or its moonbox.toml.", metavar="[PATH]")] = Path(),
    revoke: Annotated[bool, flag("--revoke", help="Take the agreement back.")] = False,
    show: Annotated[bool, flag("--list", help="List the trusted configurations.")] = False,
) -> None:
    """Agree to what a project's moonbox.toml starts and reaches.

    Programs, servers, sources and grants of a configuration are used only
    after a person has agreed to them. A change in them asks again.
    """
    from moonbox.project.trust import TrustStore, powers

    store = TrustStore.default()
    if show:
        for known in store.entries():
            typer.echo(visible(known, keep=""))
        return
    file = path / FILE_NAME if path.is_dir() else path
    if revoke:
        done = store.revoke(file)
        typer.echo(f"{file} is no longer trusted" if done else f"{file} was not trusted")
        return
    config = Config.load(file, any_owner=True)
    store.trust(config)
    typer.echo(f"{file} is trusted. It may:" if powers(config) else f"{file} is trusted")
    for line in powers(config):
        typer.echo(f"  {visible(line, keep='')}")


@contextlib.contextmanager
def keeping_trust(path: Path) -> Iterator[None]:
    """Keep a trusted configuration trusted while a command of moonbox changes it."""
    from moonbox.project.trust import TrustStore

    store, agreed = TrustStore.default(), True
    if path.exists():
        before = Config.load(path, any_owner=store.knows(path))
        agreed = store.is_trusted(before)
    yield
    if agreed:
        store.trust(Config.load(path, any_owner=True))


def trusted_config(path: Path | None, *, trust: bool = False) -> Config:
    """The configuration, if a person has agreed to it: earlier, at the terminal now, or with --trust.

    Otherwise, raises UsageError with what the configuration would do.
    """
    used = path if path is not None else find()
    if used is None:
        return Config()
    from moonbox.project.trust import TrustStore, powers, trusts_all

    store, trust = TrustStore.default(), trust or trusts_all()
    config = Config.load(used, any_owner=trust or store.knows(used))
    if trust or store.is_trusted(config):
        return config
    shown = "\n".join(f"  {visible(line, keep='')}" for line in powers(config))
    changed = "has changed since you trusted it" if store.knows(used) else "is not trusted yet"
    if not (sys.stdin.isatty() and is_terminal(stderr=True)):
        raise UsageError(
            f"{used} {changed}. It would:\n{shown}\nLook at it and run `moonbox trust {used}`; "
            "for CI, set MOONBOX_TRUST=1"
        )
    typer.echo(f"{used} {changed}. It would:\n{shown}", err=True)
    if not confirmed("Do you trust it?"):
        raise ConfigError(f"{used} is not trusted; nothing was started")
    store.trust(config)
    return config
