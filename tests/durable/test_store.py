"""The journal's database: leases and fences, damage, deletion; the same in SQLite and PostgreSQL."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox
from moonbox.audit.sqlite import SqliteSink
from moonbox.durable import leases, store
from moonbox.durable.backends import SqliteBackend
from moonbox.durable.index import JournalFilter
from moonbox.durable.questions import Questions
from moonbox.durable.store import Journal, open_journal
from moonbox.errors import JournalError, UsageError
from moonbox.runs.events import Begin, CallsAsked, End
from tests.postgres import postgres  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "journal.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest.fixture
def journal(place: str) -> Iterator[Journal]:
    opened = open_journal(place)
    yield opened
    opened.close()


def begin(run: str) -> Begin:
    return Begin(run=run, number=1, source="return 1", inputs=[], limits={}, seed=1, started=0.0)


def new_id() -> str:
    return secrets.token_hex(6)


def test_a_repl_has_one_holder(journal: Journal, place: str) -> None:
    repl = new_id()
    held = journal.create(repl, "lua", {})
    other = open_journal(place)
    with pytest.raises(
        UsageError, match=rf"the Repl '{repl}' is in use by process {os.getpid()}; close it there first"
    ):
        other.take(repl)
    journal.release(held)
    assert other.take(repl).fence == held.fence + 1
    other.close()


def test_who_was_replaced_cannot_write(journal: Journal, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repl = new_id()
    held = journal.create(repl, "lua", {})
    assert journal.create(repl, "lua", {}) == held  # as after Ctrl-C, before the caller had it
    journal.append(held, 0, "r", [begin("r" + repl)])
    other = open_journal(place)
    for second in (journal, other):
        with pytest.raises(UsageError, match=rf"has a Repl '{repl}' already; restore it, or choose another id$"):
            second.create(repl, "lua", {})
    with monkeypatch.context() as patch:  # its lease has run out, as after a long pause of the process
        patch.setattr(store, "is_held", lambda *_: False)
        taken = other.take(repl)
    with pytest.raises(JournalError, match="was taken over by another process"):
        journal.append(held, 1, "r", [End(run="r" + repl, outcome="ok")])
    other.append(taken, 1, "r", [End(run="r" + repl, outcome="ok")])
    assert len(other.read(repl)) == 2
    other.close()


def test_a_dead_process_loses_its_lease_at_once(place: str) -> None:
    repl = new_id()
    code = (
        "import os, sys; from moonbox.durable.store import open_journal\n"
        "open_journal(sys.argv[1]).create(sys.argv[2], 'lua', {}); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, place, repl], check=False)
    journal = open_journal(place)
    assert journal.take(repl).fence == 2
    journal.close()


def test_one_of_many_racers_wins(place: str) -> None:
    repl = new_id()
    first = open_journal(place)
    first.release(first.create(repl, "lua", {}))
    code = (
        "import sys; from moonbox.durable.store import open_journal\n"
        f"journal = open_journal({place!r}); sys.stdin.readline()\n"
        "try: print('won', journal.take(sys.argv[1]).fence, flush=True)\n"
        "except Exception as problem: print('lost', flush=True)\n"
        "sys.stdin.readline()"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", code, repl], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = [racer.stdout.readline().split()[0] for racer in racers if racer.stdout is not None]
    assert sorted(said) == ["lost", "lost", "lost", "won"]
    for racer in racers:
        racer.communicate("\n", timeout=30)
    first.close()


def test_which_leases_count() -> None:
    """One of another machine until it expires; one of a dead process never, whatever the clock says."""
    mine = leases.this_process("x")
    elsewhere, dead = mine.replace(platform.node(), "elsewhere"), mine.replace(f":{os.getpid()},", f":{2**22 + 1},")
    for holder in (mine, elsewhere):
        assert [leases.is_held(holder, expires=100.0, now=now) for now in (0.0, 99.0, 100.0)] == [True, True, False]
    for holder in (dead, ""):
        assert not leases.is_held(holder, expires=1e12, now=0.0)


@pytest.mark.skipif(shutil.which("unshare") is None or os.getuid() != 0, reason="needs root, to make a container")
def test_a_process_of_another_container_is_not_taken_for_a_dead_one(place: str) -> None:
    repl = new_id()
    code = (
        "import sys; from moonbox.durable.store import open_journal\n"
        "open_journal(sys.argv[1]).create(sys.argv[2], 'lua', {}); print('held', flush=True); sys.stdin.readline()"
    )
    container = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code, place, repl]
    with subprocess.Popen(container, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        journal = open_journal(place)
        with pytest.raises(UsageError, match="in another container or machine; close it there first"):
            journal.take(repl)
        journal.close()
        holder.communicate("\n", timeout=30)


FORKED = """
import os, sys
from moonbox.durable.store import open_journal

def session():
    with journal.backend.reading() as db:
        return db.rows("SELECT pg_backend_pid()")[0][0]

journal = open_journal(sys.argv[1])
before, child = session(), os.fork()
if child == 0:
    print(session() != before)
    sys.exit()
os.waitpid(child, 0)
print(session() == before)
journal.close()
"""


def test_a_forked_process_has_connections_of_its_own(postgres: str) -> None:  # noqa: F811 - the fixture
    command = [sys.executable, "-u", "-c", FORKED, postgres]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")


def test_closing_while_old_repls_are_looked_for(tmp_path: Path) -> None:
    looking, closed = threading.Event(), threading.Event()

    class Slow(Journal):
        def prune(self) -> None:
            looking.set()
            closed.wait(60)
            super().prune()

    journal = Slow(SqliteBackend(tmp_path / "journal.db"), max_days=1)
    journal.create(new_id(), "lua", {})
    looking.wait(60)
    (thread,) = [each for each in threading.enumerate() if each.name == "moonbox-leases"]
    journal.close()
    closed.set()
    thread.join()  # an exception there fails this test


def test_many_threads_share_a_few_connections(journal: Journal) -> None:
    together = threading.Barrier(150)

    def work(_: int) -> int:
        together.wait()
        for _ in range(3):
            journal.release(journal.create(new_id(), "lua", {}))
            asked = Questions(journal.backend).pending()
        return len(asked)

    with ThreadPoolExecutor(150) as threads:
        assert list(threads.map(work, range(150))) == [0] * 150


def test_damage_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    held = journal.create("abc", "lua", {})
    for seq in range(3):
        journal.append(held, seq, "r", [CallsAsked(calls=[(seq, "tools.add", [1])])])
    journal.close()
    rewrite(path, "UPDATE events SET data = x'9100' WHERE seq = 1")
    before = path.read_bytes()
    again = open_journal(path)
    with pytest.raises(JournalError, match=r"is damaged: record 1 of the Repl 'abc' cannot be read"):
        again.read("abc")
    again.backend.close()
    assert path.read_bytes() == before
    rewrite(path, "DELETE FROM events WHERE seq = 0")
    with pytest.raises(JournalError, match="record 0"):
        open_journal(path).read("abc")


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("hello " * 1000)
    with pytest.raises(JournalError, match="is not a SQLite database"):
        open_journal(path)
    assert path.read_text() == "hello " * 1000


def test_one_file_holds_trail_and_journal(tmp_path: Path) -> None:
    path = tmp_path / "both.db"
    with Sandbox(audit=path, journal=path) as box:
        run = box.run("return 1")
    trail = SqliteSink(path)
    assert trail.get(run.id).values == (1,)
    trail.close()
    journal = open_journal(path, create=False)
    journal.create("abc", "lua", {"tenant": "acme"})
    assert [repl.id for repl in journal.repls({"tenant": "acme"})] == ["abc"]
    assert journal.repls({"tenant": "other"}) == ()
    journal.close()


def test_in_one_file_the_trail_is_redacted_and_the_journal_is_not(tmp_path: Path) -> None:
    path = tmp_path / "both.db"
    code = (
        "import os, sys; from moonbox import Sandbox, tool\n"
        "@tool\ndef login(password: str) -> str: os._exit(9)\n"
        "place = sys.argv[1]; box = Sandbox([login], audit=place, journal=place, redact=['password'])\n"
        "box.run(\"tools.login{password = 'hunter22'}\")"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    journal = open_journal(path, create=False)
    (known,) = journal.runs(JournalFilter(state="interrupted"))
    asked = [record for records in journal.read(known.repl) for record in records if isinstance(record, CallsAsked)]
    assert asked[0].calls[0][2] == [{"password": "hunter22"}]
    journal.close()
    trail = SqliteSink(path)
    (call,) = trail.get(known.id).calls
    trail.close()
    assert (call.tool, call.status) == ("login", "in_flight")
    assert "hunter22" not in str(call.arguments)


def test_a_trail_without_a_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trail.db"
    with Sandbox(audit=path) as box:
        box.run("return 1")
    with pytest.raises(JournalError, match="there is no journal in"):
        open_journal(path, create=False)


def rewrite(path: Path, script: str) -> None:
    db = sqlite3.connect(path)
    db.executescript(script)
    db.close()


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    ("version", "message"),
    [
        (99, "written by a newer version of moonbox; upgrade moonbox"),
        (3, "before 0.3; end its runs with that version, and choose another place for the journal"),
    ],
)
def test_a_journal_of_another_version_is_refused(tmp_path: Path, version: int, message: str, create: bool) -> None:
    path = tmp_path / "journal.db"
    open_journal(path).close()
    rewrite(path, f"UPDATE moonbox_journal SET version = {version}; ALTER TABLE events ADD COLUMN other TEXT")
    before = path.read_bytes()
    with pytest.raises(JournalError, match=message):
        open_journal(path, create=create)
    assert path.read_bytes() == before


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "journal.db")
    journal.create("abc", "lua", {})
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    journal.close()


def test_deletion_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    held = journal.create("abc", "lua", {})
    journal.append(held, 0, "r", [CallsAsked(calls=[(1, "tools.add", ["a tenant's secret"])])])
    with pytest.raises(UsageError, match="in use"):
        journal.delete(["abc"])
    journal.release(held)
    assert journal.delete(["abc", "unknown"]) == 1
    assert journal.repls() == ()
    journal.close()
    assert b"a tenant's secret" not in path.read_bytes()


@pytest.mark.skipif(shutil.which("mount") is None or os.getuid() != 0, reason="needs root, for a small file system")
def test_a_full_disk_is_an_error_that_says_so(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        journal = open_journal(disk / "journal.db")
        held = journal.create("abc", "lua", {})
        with pytest.raises(JournalError, match=r"full"):
            for seq in range(1000):
                journal.append(held, seq, "r", [CallsAsked(calls=[(seq, "tools.add", ["x" * 10_000])])])
        assert journal.read("abc")
        journal.backend.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("place", ["", 5, "postgresql://127.0.0.1:1/none"])
def test_a_place_that_is_none(place: object) -> None:
    with pytest.raises((UsageError, JournalError)):
        open_journal(place)


def test_old_repls_are_deleted_by_themselves(place: str) -> None:
    opened = open_journal(place, max_days=1)
    old, cut_off, used = new_id(), new_id(), new_id()
    for repl in (old, cut_off, used):
        held = opened.create(repl, "lua", {})
        opened.append(held, 0, repl, [begin(repl)])
        if repl != cut_off:
            opened.append(held, 1, repl, [End(run=repl, outcome="ok")])
        if repl != used:
            opened.release(held)
    with opened.backend.writing() as db:
        for repl in (old, cut_off, used):
            db.change("UPDATE repls SET created = created - 100000 WHERE id = ?", (repl,))
            db.change("UPDATE journal_runs SET began = began - 100000, ended = ended - 100000 WHERE repl = ?", (repl,))
    opened.prune()
    left = {repl.id for repl in opened.repls()}
    opened.close()
    assert (old in left, cut_off in left, used in left) == (False, True, True)


def test_repls_are_chosen_by_label_among_many(journal: Journal) -> None:
    """In the database, whatever their number; a name or a value that only looks alike does not count."""
    tenant = new_id()
    alike = [
        {f'x"{tenant}': "acme"},
        {tenant: "acme2"},
        {tenant: 'acme"'},
        {"other": f'"{tenant}": "acme"'},
        {f"x{tenant}": "acme"},
        {tenant: "ACME"},
    ]
    wanted = [journal.create(new_id(), "lua", {"a": "1", tenant: "acme", "z": 'q"'}).repl for _ in range(3)]
    many = [(new_id(), 1e12 + at, "lua", "{}", "", 1, "", 0.0) for at in range(10_050)]
    with journal.backend.writing() as db:  # the latest, so that they come first
        for start in range(0, len(many), 50):
            rows = many[start : start + 50]
            values = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(rows))
            db.change(f"INSERT INTO repls VALUES {values}", [value for row in rows for value in row])
    for labels in alike:
        journal.create(new_id(), "lua", labels)
    assert {repl.id for repl in journal.repls({tenant: "acme"})} == set(wanted)
    assert [repl.id for repl in journal.repls({tenant: "acme", "z": 'q"'}, most=2)] == wanted[:0:-1]
    assert [repl.id for repl in journal.repls({tenant: "acme"}, most=2, skip=2)] == wanted[:1]
    assert len(journal.repls(most=7)) == 7
    for labels in alike:
        assert len(journal.repls(labels)) == 1
    with journal.backend.writing() as db:
        db.change("DELETE FROM repls WHERE created >= 1e12")
