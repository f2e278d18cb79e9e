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
    with server(fsync=fsync) as made:
        yield made.url


class Server:
    """A server of its own, which can be stopped and started."""

    def __init__(self, folder: str, programs: Path, settings: dict[str, object]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder = folder
        self.url = f"postgresql://moonbox@127.0.0.1:{port}/postgres"
        self._programs = programs
        self._as_owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []  # it refuses to run as root
        if self._as_owner:
            shutil.chown(folder, "postgres")
        self._run("initdb", "--auth=trust", "--username=moonbox", "--no-sync", f"{folder}/data")
        given = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, **settings}
        self._options = " ".join(f"-c {name}={value}" for name, value in given.items())
        self.start()

    def start(self) -> None:
        where = (f"--log={self.folder}/log", f"--options={self._options}", f"--pgdata={self.folder}/data")
        self._run("pg_ctl", "--wait", *where, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "--wait", "--mode=immediate", f"--pgdata={self.folder}/data", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_owner, f"{self._programs}/{program}", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)


@contextlib.contextmanager
def server(*, fsync: bool = False, **settings: object) -> Iterator[Server]:
    """One with these settings, until the block ends; raises LookupError where the programs are missing."""
    programs = _programs()
    if programs is None:
        raise LookupError(_HOW)
    with tempfile.TemporaryDirectory(prefix="moonbox-postgres-") as folder:
        made = Server(folder, programs, {"fsync": "on" if fsync else "off", **settings})
        try:
            yield made
        finally:
            made.stop()


def used_since(address: str, seconds: float) -> list[str]:
    """The latest statements of connections to this database that were used in so many seconds."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        latest = "state_change > clock_timestamp() - make_interval(secs => %s) AND pid <> pg_backend_pid()"
        found = connection.execute(
            f"SELECT query FROM pg_stat_activity WHERE datname = current_database() AND {latest}", (seconds,)
        )
        return [str(query) for (query,) in found]


def transactions(address: str) -> int:
    """How many there were in this database. Some are counted ten seconds late, and each call of this is two."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        return int((found.fetchone() or (0,))[0])
