"""SQLite files: creation, migrations, threads, forks, read-only use, locks, and files that cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox.database import Database, Schema
from moonbox.errors import ClosedError, MoonboxError, UsageError
from tests.forks import in_a_fork

if TYPE_CHECKING:
    from collections.abc import Iterator


class NotesError(MoonboxError):
    """The notes cannot be used."""


def create_notes(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE notes (text TEXT)")


def add_authors(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE notes ADD COLUMN author TEXT")


NOTES = Schema(
    name="note book",
    application_id=0x6E6F7465,
    migrations=(create_notes, add_authors),
    error=NotesError,
    repair="throw it away",
    upgrade="write a note to update it",
)
OLDER = replace(NOTES, migrations=(create_notes,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "books" / "notes.db"


@pytest.fixture
def book(path: Path) -> Iterator[Database]:
    book = Database(path, NOTES)
    yield book
    book.close()


def write(book: Database, text: str) -> None:
    with book.writing() as db:
        db.execute("INSERT INTO notes (text) VALUES (?)", (text,))


def notes(book: Database) -> list[str]:
    with book.reading() as db:
        return [text for (text,) in db.execute("SELECT text FROM notes ORDER BY rowid")]


def test_the_file_is_for_its_owner_alone(book: Database, path: Path) -> None:
    write(book, "a")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert files == {"notes.db": 0o600, "notes.db-shm": 0o600, "notes.db-wal": 0o600}
    book.close()
    assert [file.name for file in path.parent.iterdir()] == ["notes.db"], "the last to close tidies up"


def test_migrations_are_recorded_by_name(path: Path) -> None:
    Database(path, NOTES).close()
    Database(path, NOTES).close()
    db = sqlite3.connect(path)
    names = db.execute("SELECT position, name FROM migrations ORDER BY position").fetchall()
    assert names == [(0, "create_notes"), (1, "add_authors")]
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


@pytest.mark.parametrize("named", [True, False], ids=["names", "a count, as before there were names"])
def test_an_older_file_is_brought_up_to_date(path: Path, named: bool) -> None:
    older = Database(path, OLDER)
    write(older, "kept")
    older.close()
    if not named:
        change(path, "DROP TABLE migrations")
    for refused in ({"read_only": True}, {"create": False}):
        with pytest.raises(NotesError) as caught:
            Database(path, NOTES, **refused)
        wanted = f"the note book {path} was written by an older version of moonbox; write a note to update it"
        assert str(caught.value) == wanted
    book = Database(path, NOTES)
    with book.reading() as db:
        assert db.execute("SELECT text, author FROM notes").fetchall() == [("kept", None)]
        names = [name for (name,) in db.execute("SELECT name FROM migrations ORDER BY position")]
    assert names == ["create_notes", "add_authors"]
    book.close()


@pytest.mark.parametrize("newer", ["INSERT INTO migrations VALUES (2, 'add_colours', '')", "DROP TABLE migrations"])
def test_a_newer_file_is_refused(path: Path, newer: str) -> None:
    Database(path, NOTES).close()
    change(path, newer, "PRAGMA user_version=3")
    for read_only in (False, True):
        with pytest.raises(NotesError) as caught:
            Database(path, NOTES, read_only=read_only)
        wanted = (
            f"the note book {path} was written by a newer version of moonbox; upgrade moonbox or choose another file"
        )
        assert str(caught.value) == wanted


def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    def fail(db: sqlite3.Connection) -> None:
        db.execute("DROP TABLE notes")
        db.execute("SELECT no_such_function()")

    write(older := Database(path, OLDER), "kept")
    older.close()
    with pytest.raises(NotesError, match=r"failed: no such function: no_such_function$"):
        Database(path, replace(NOTES, migrations=(create_notes, fail)))
    book = Database(path, OLDER)
    assert notes(book) == ["kept"]
    book.close()


def change(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to look at " * 50)
    foreign = tmp_path / "foreign.db"
    change(foreign, "CREATE TABLE things (id)")
    before = foreign.read_bytes()
    for read_only in (False, True):
        with pytest.raises(NotesError, match=r"^the note book .*txt is not a SQLite database; choose another file$"):
            Database(text, NOTES, read_only=read_only)
        message = r"^the note book .* cannot be used: the file is the database of another program; choose another file$"
        with pytest.raises(NotesError, match=message):
            Database(foreign, NOTES, read_only=read_only)
    assert text.read_text().startswith("not a database")
    assert foreign.read_bytes() == before
    with pytest.raises(NotesError, match=r"^cannot open the note book .*: Is a directory$"):
        Database(tmp_path, NOTES)
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(UsageError, match=r"^the note book .*empty.db is empty: nothing was ever written to it$"):
        Database(empty, NOTES, create=False)


def test_a_damaged_file(book: Database, path: Path) -> None:
    for number in range(500):
        write(book, f"note {number} " * 20)
    book.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    with pytest.raises(NotesError, match=r"^the note book .* is damaged; throw it away$"):
        notes(Database(path, NOTES, read_only=True))


def test_a_full_disk(book: Database) -> None:
    with book.writing() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count={pages}")  # the same error as that of a file system without room
    with pytest.raises(NotesError, match=r"^the note book .* cannot grow: the disk is full; free some space$"):
        write(book, "x" * 100_000)
    assert notes(book) == []


def test_reading_alone(path: Path) -> None:
    write(book := Database(path, NOTES), "a")
    with Database(path, NOTES, read_only=True).reading() as db:
        assert db.execute("SELECT text FROM notes").fetchall() == [("a",)]
    with pytest.raises(UsageError, match=r"^the note book .* was opened read-only$"):
        write(Database(path, NOTES, read_only=True), "b")
    book.close()


def test_a_file_that_is_first_read_can_be_written_later(path: Path) -> None:
    Database(path, NOTES).close()
    book = Database(path, NOTES, create=False)
    write(book, "a")
    assert notes(book) == ["a"]
    book.close()


def test_reading_where_nothing_can_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notes.db"
        write(book := Database(path, NOTES), "a")
        book.close()
        path.chmod(0o444)
        Path(folder).chmod(0o555)

        def read(*, read_only: bool) -> str:
            if os.getuid() == 0:
                os.setuid(65534)  # root could write there
            return str(notes(Database(path, NOTES, read_only=read_only)))

        try:
            assert in_a_fork(lambda: read(read_only=True)) == "['a']"
            assert "cannot open the note book" in in_a_fork(lambda: read(read_only=False))
        finally:
            Path(folder).chmod(0o755)


def test_readers_do_not_wait_for_a_writer_and_see_the_old_state(book: Database) -> None:
    write(book, "a")
    with book.writing() as db:
        db.execute("DELETE FROM notes")
        assert notes(book) == ["a"]
    assert notes(book) == []


def test_a_transaction_that_fails_is_undone(book: Database) -> None:
    with pytest.raises(ZeroDivisionError), book.writing() as db:
        db.execute("INSERT INTO notes (text) VALUES ('a')")
        raise ZeroDivisionError
    write(book, "b")
    assert notes(book) == ["b"]


def test_a_writer_that_waits_too_long(path: Path) -> None:
    book = Database(path, NOTES, timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(NotesError) as caught:
        write(book, "a")
    waited = "another process has been writing to it for more than 0.05 s"
    assert str(caught.value) == f"the note book {path} is locked: {waited}; try again"
    other.execute("ROLLBACK")
    other.close()
    write(book, "a")
    book.close()


def test_one_holder_of_a_lock_at_a_time(book: Database) -> None:
    def busy() -> NotesError:
        return NotesError("somebody else writes a poem")

    with book.lock("poem", 0, busy), book.lock("essay", 0, busy):
        with pytest.raises(NotesError, match=r"^somebody else writes a poem$"), book.lock("poem", 0.01, busy):
            pass
        assert "somebody else" in in_a_fork(lambda: str(book.lock("poem", 0, busy).__enter__()))
    with book.lock("poem", 0, busy):
        pass


def test_many_threads_at_once(book: Database) -> None:
    def work(name: str) -> None:
        for number in range(30):
            write(book, f"{name}{number}")
            assert f"{name}{number}" in notes(book)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, "abcd"))
    assert len(notes(book)) == 120


def test_closing(book: Database) -> None:
    book.close()
    book.close()
    for use in (lambda: notes(book), lambda: write(book, "a"), book.optimize, book.shrink):
        with pytest.raises(ClosedError, match=r"^the note book .* is closed$"):
            use()


def test_closing_while_others_read(book: Database) -> None:
    write(book, "a")
    with book.reading() as db:
        book.close()
        assert db.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    with pytest.raises(sqlite3.ProgrammingError):
        db.execute("SELECT 1")


def test_a_forked_process_opens_connections_of_its_own(book: Database) -> None:
    write(book, "a")
    with book.writing():  # the parent's locks are not held there
        assert in_a_fork(lambda: str(notes(book))) == "['a']"

    def work() -> str:
        write(book, "b")
        book.close()
        return "written"

    assert in_a_fork(work) == "written"
    write(book, "c")
    assert notes(book) == ["a", "b", "c"]


def test_deleted_text_is_gone_and_the_file_smaller(book: Database, path: Path) -> None:
    with book.writing() as db:
        db.executemany(
            "INSERT INTO notes (text) VALUES (?)", [(f"a telling line {number} " * 40,) for number in range(500)]
        )
    book.optimize()
    size = path.stat().st_size
    with book.writing() as db:
        db.execute("DELETE FROM notes")
    book.shrink()
    assert path.stat().st_size < size / 4
    assert all(b"a telling line" not in file.read_bytes() for file in path.parent.iterdir())
