"""Journals whose surroundings fail: faults of SQLite's file and of PostgreSQL's server, which begin and end."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.durable.backends import PostgresBackend, SqliteBackend
from moonbox.durable.store import Journal
from tests.durable.crashing import new_database
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.postgres import Server

PATIENT, IMPATIENT = 60.0, 0.05
"""Seconds that a run waits: longer than any fault here, or hardly."""
SQLITE_FAULTS = ("lock", "slow disk", "full disk", "read-only file", "deleted file", "replaced file")
POSTGRES_FAULTS = (
    "lock", "slow disk", "full disk", "read-only file", "restart", "terminated connections", "too many connections"
)  # fmt: skip


class Faults:
    """A journal, and what can happen to it. `begin` makes it fail until `end`; some are over at once."""

    journal: Journal

    def __init__(self) -> None:
        self._ends: list[Callable[[], object]] = []

    def begin(self, fault: str) -> None:
        getattr(self, "_" + fault.replace(" ", "_").replace("-", "_"))()

    def end(self) -> None:
        while self._ends:
            self._ends.pop()()

    def end_soon(self) -> None:
        timer = threading.Timer(0.3, self.end)
        timer.start()
        self._timer = timer

    def close(self) -> None:
        self.end()

    def _holding(self, hold: Callable[[], object], let_go: Callable[[], object]) -> None:
        """The lock is taken again and again, for a moment each time, as on a disk that is slow."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(0.01):
                hold()
                over.wait(0.05)
                let_go()

        thread = threading.Thread(target=work)
        thread.start()
        self._ends += [thread.join, over.set]


class SqliteFaults(Faults):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._disk = folder / "disk"
        self._disk.mkdir()
        self.path = self._disk / "journal.db"
        self._mounted = False
        if os.getuid() == 0 and shutil.which("mount"):
            mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(self._disk)]
            self._mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
        self._backend = SqliteBackend(self.path, timeout=0.1)
        self.journal = Journal(self._backend, wait=PATIENT)

    def close(self) -> None:
        super().close()
        if self._mounted:
            subprocess.run(["umount", "-l", str(self._disk)], check=True)

    def _other(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=20)

    def _lock(self) -> None:
        other = self._other()
        other.execute("BEGIN IMMEDIATE")
        self._ends.append(other.close)

    def _slow_disk(self) -> None:
        other = self._other()
        self._ends.append(other.close)
        self._holding(lambda: other.execute("BEGIN IMMEDIATE"), lambda: other.execute("COMMIT"))

    def _full_disk(self) -> None:
        if not self._mounted:
            pytest.skip("no file system can be mounted here")
        filler = self._disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            for size in (65_536, 4096, 512, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        self._ends.append(filler.unlink)

    def _read_only_file(self) -> None:
        """A change of the permissions does not concern a file that is open, and root not at all."""
        database: Any = self._backend._database
        database._own_writer().execute("PRAGMA query_only=ON")
        self._ends.append(lambda: database._own_writer().execute("PRAGMA query_only=OFF"))

    def _deleted_file(self) -> None:
        moved = self._disk / "moved"
        moved.mkdir()
        for file in self._disk.glob("journal.db*"):
            file.rename(moved / file.name)

        def put_back() -> None:
            for file in moved.iterdir():
                file.rename(self._disk / file.name)
            moved.rmdir()

        self._ends.append(put_back)

    def _replaced_file(self) -> None:
        """By a copy of itself, as a backup that is restored."""
        copy = self._disk / "copy"
        with contextlib.closing(self._other()) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        for file in self._disk.glob("journal.db*"):
            file.unlink()
        copy.rename(self.path)


class PostgresFaults(Faults):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._url = new_database(server.url)
        self._backend = PostgresBackend(f"{self._url}?options=-c%20lock_timeout%3D300")
        self.journal = Journal(self._backend, wait=PATIENT)

    def _connect(self, **options: Any) -> Any:
        import psycopg

        return psycopg.connect(self._url, autocommit=True, **options)

    def _lock(self) -> None:
        other = self._connect()
        other.execute("BEGIN")
        other.execute("LOCK TABLE events, repls, questions IN ACCESS EXCLUSIVE MODE")
        self._ends.append(other.close)

    def _slow_disk(self) -> None:
        other = self._connect()
        self._ends.append(other.close)

        def hold() -> None:
            other.execute("BEGIN")
            other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")

        self._holding(hold, lambda: other.execute("COMMIT"))

    def _full_disk(self) -> None:
        if os.getuid() != 0 or not shutil.which("mount"):
            pytest.skip("no file system can be mounted here")
        disk = Path(self._server.folder, "disk")
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
        shutil.chown(disk, "postgres")
        with self._connect() as other:
            other.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
            other.execute("ALTER TABLE events SET TABLESPACE small")
        filler = disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)

        def end() -> None:
            filler.unlink()
            with self._connect() as other:
                other.execute("ALTER TABLE events SET TABLESPACE pg_default")
                other.execute("DROP TABLESPACE small")
            subprocess.run(["umount", "-l", str(disk)], check=True)
            disk.rmdir()

        self._ends.append(end)

    def _read_only_file(self) -> None:
        """As a database that has become the standby of another."""

        def switch(state: str) -> None:
            with self._connect() as other:
                other.execute("SET default_transaction_read_only = off")
                other.execute(f"ALTER SYSTEM SET default_transaction_read_only = {state}")
                other.execute("SELECT pg_reload_conf()")
            wait_until(lambda: shown() == state)  # the server has told all its processes

        def shown() -> str:
            with self._connect() as other:
                return str(other.execute("SHOW default_transaction_read_only").fetchone()[0])

        switch("on")
        self._ends.append(lambda: switch("off"))

    def _restart(self) -> None:
        self._server.stop()
        self._ends.append(self._server.start)

    def _terminated_connections(self) -> None:
        with self._connect() as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def _too_many_connections(self) -> None:
        import psycopg

        others = [self._connect()]
        ours = "backend_type = 'client backend' AND pid <> ALL(%s)"
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                mine = [each.info.backend_pid for each in others]
                others[0].execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}", (mine,))
                others.append(self._connect())
        self._ends += [each.close for each in others]
