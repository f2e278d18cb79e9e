"""A PostgreSQL server of its own for the tests that need one."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOW = "PostgreSQL is not installed here; on Debian: apt-get install postgresql"


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    here = shutil.which("initdb")
    return found[-1].parent if found else Path(here).parent if here else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an empty database."""
    pytest.importorskip("psycopg")
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(running())
        except LookupError as missing:
            pytest.skip(str(missing))
        yield address


@contextlib.contextmanager
def running(*, fsync: bool = False) -> Iterator[str]:
    """The same, until the block ends; raises LookupError where the programs are missing."""
    programs = _programs()
    if programs is None:
        raise LookupError(_HOW)
    as_owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []  # it refuses to run as root
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="moonbox-postgres-") as folder:
        if as_owner:
            shutil.chown(folder, "postgres")
        data = f"{folder}/data"

        def run(*command: str) -> None:
            subprocess.run([*as_owner, *command], check=True, capture_output=True, cwd=folder)

        run(f"{programs}/initdb", "--auth=trust", "--username=moonbox", "--no-sync", data)
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        options += f" -c fsync={'on' if fsync else 'off'}"
        run(f"{programs}/pg_ctl", "--wait", f"--log={folder}/log", f"--options={options}", f"--pgdata={data}", "start")
        try:
            yield f"postgresql://moonbox@127.0.0.1:{port}/postgres"
        finally:
            run(f"{programs}/pg_ctl", "--wait", "--mode=immediate", f"--pgdata={data}", "stop")
