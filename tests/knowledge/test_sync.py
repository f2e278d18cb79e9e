"""Synchronisation: what is added, updated, kept, removed and reported."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import UsageError
from moonbox.knowledge import Failed, KnowledgeBase, Progress, Skipped, SyncBusy, Total, Unchanged, sync
from moonbox.knowledge import store as store_module

from .conftest import Listed, item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from moonbox.knowledge.records import Scanned


@pytest.fixture
def listed() -> Listed:
    return Listed(item("a", "first text"), item("b", "second text"), item("c", "third text"))


@pytest.fixture
def base(store: Path, listed: Listed) -> Iterator[KnowledgeBase]:
    with KnowledgeBase(store, sources={"notes": listed}) as base:
        yield base
    check_index(store)


def check_index(store: Path) -> None:
    """The index agrees with the chunks, and every chunk has its document."""
    db = sqlite3.connect(store, isolation_level=None)
    db.execute("INSERT INTO passage_index (passage_index, rank) VALUES ('integrity-check', 1)")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    orphans = "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM passages)"
    assert db.execute(orphans).fetchone() == (0,)
    strangers = "SELECT count(*) FROM coarse_vectors WHERE chunk NOT IN (SELECT id FROM chunks)"
    assert db.execute(strangers).fetchone() == (0,)
    db.close()


def counts(report: Any) -> tuple[int, ...]:
    return report.added, report.updated, report.unchanged, report.removed, report.documents


def test_only_changes_are_written(base: KnowledgeBase, listed: Listed) -> None:
    assert counts(base.sync("notes")) == (3, 0, 0, 0, 3)
    ids = {hit.source_id: hit.id for hit in base.search("text")}
    assert counts(base.sync("notes")) == (0, 0, 3, 0, 3)
    listed.scanned[1] = item("b", "changed text", title="New")
    listed.scanned[2] = item("d", "fourth text")
    assert counts(base.sync("notes")) == (1, 1, 1, 1, 3)
    found = {hit.source_id: hit.id for hit in base.search("text")}
    assert set(found) == {"a", "b", "d"}
    assert (found["a"], found["b"]) == (ids["a"], ids["b"])
    assert found["d"] not in ids.values()
    assert base.search("second") == []
    assert base.search("new")[0].title == "New"


@pytest.mark.parametrize(
    "change", [{"author": "x"}, {"metadata": {"x": 1}}, {"updated_at": 1}, {"source_url": "http://x"}]
)
def test_changes_beside_the_text_count(base: KnowledgeBase, listed: Listed, change: dict[str, Any]) -> None:
    base.sync("notes")
    listed.scanned[0] = item("a", "first text", **change)
    assert counts(base.sync("notes")) == (0, 1, 2, 0, 3)


def test_fingerprints_come_back_and_spare_the_reading(base: KnowledgeBase, listed: Listed) -> None:
    listed.scanned[0] = item("a", "first text", fingerprint="v1")
    base.sync("notes")
    assert listed.known == {}
    listed.scanned[0] = Unchanged("a")
    assert counts(base.sync("notes")) == (0, 0, 3, 0, 3)
    assert listed.known == {"a": "v1"}
    listed.scanned[0] = item("a", "first text", fingerprint="v2")
    assert counts(base.sync("notes")) == (0, 0, 3, 0, 3)
    listed.scanned[0] = Unchanged("a")
    base.sync("notes")
    assert listed.known == {"a": "v2"}


def test_everything_is_read_again_when_the_reading_changed(
    base: KnowledgeBase, listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed.scanned[0] = item("a", "first text", fingerprint="v1")
    base.sync("notes")
    monkeypatch.setattr(store_module, "PIPELINE", 99)
    monkeypatch.setattr(sync, "PIPELINE", 99)
    assert counts(base.sync("notes")) == (0, 3, 0, 0, 3)
    assert listed.known == {}


def test_claiming_that_an_unknown_item_is_unchanged_does_nothing(base: KnowledgeBase, listed: Listed) -> None:
    listed.scanned = [Unchanged("never seen"), item("a", "first text")]
    assert counts(base.sync("notes")) == (1, 0, 0, 0, 1)


def test_a_broken_item_is_reported_and_its_old_version_stays(base: KnowledgeBase, listed: Listed) -> None:
    base.sync("notes")
    listed.scanned = [
        Failed("a", "cannot be read: Permission denied"),
        {"source_id": "b", "body": 7},
        {"body": "x"},
        "nonsense",
        {"source_id": "e", "body": "fifth text", "titel": "x"},
        {"source_id": "f", "body": "sixth text"},
    ]
    report = base.sync("notes")
    assert report.ok
    assert [(problem.source_id, problem.message) for problem in report.problems] == [
        ("a", "cannot be read: Permission denied"),
        ("b", "body must be a string, not int"),
        ("(an item without source_id)", "source_id is missing"),
        ("(an item without source_id)", "an item must be a table with source_id and body, not str"),
    ]
    assert {hit.source_id for hit in base.search("text")} == {"a", "b", "e", "f"}
    assert report.removed == 1
    [info] = base.sources()
    assert (info.healthy, info.notes[0]) == (
        False,
        "4 items could not be read, first a: cannot be read: Permission denied",
    )


def test_an_unknown_key_is_ignored_and_told(base: KnowledgeBase, listed: Listed) -> None:
    keys = {"titel": "x", "k" * 5000: 1}
    listed.scanned = [{"source_id": name, "body": f"{name} text", **keys} for name in ("a", "b")]
    report = base.sync("notes")
    assert (report.problems, report.documents) == ((), 2)
    assert report.notes[0] == "ignored in 2 items: unknown key 'titel'; did you mean 'title'?"
    assert len(report.notes[1]) < 250
    [info] = base.sources()
    assert (info.healthy, info.notes) == (True, report.notes)


def test_a_skipped_item_goes_and_is_counted_by_reason(base: KnowledgeBase, listed: Listed) -> None:
    base.sync("notes")
    listed.scanned = [
        Skipped("a", "binary file"),
        Skipped("x", "binary file"),
        Skipped("b", "too large"),
        *listed.scanned[2:],
    ]
    report = base.sync("notes")
    assert report.notes == ("2 skipped: binary file", "1 skipped: too large")
    assert counts(report) == (0, 0, 1, 2, 1)


def test_a_source_id_given_twice_is_reported(base: KnowledgeBase, listed: Listed) -> None:
    listed.scanned.append(item("a", "another text"))
    report = base.sync("notes")
    assert [problem.message for problem in report.problems] == [
        "the scan yielded this source_id twice; the first one is kept"
    ]
    assert base.get("notes:a").body == "first text"


def test_many_problems_are_counted_and_some_kept(base: KnowledgeBase, listed: Listed) -> None:
    listed.scanned = [Failed(str(number), "no") for number in range(300)]
    report = base.sync("notes")
    assert (report.problem_count, len(report.problems)) == (300, 100)


@pytest.mark.parametrize(
    ("failure", "told"), [(OSError("the disk is on fire"), "OSError: the disk is on fire"), (UsageError("bad"), "bad")]
)
def test_a_scan_that_fails_removes_nothing(base: KnowledgeBase, listed: Listed, failure: Exception, told: str) -> None:
    base.sync("notes")
    listed.scanned = [item("d", "fourth text")]
    listed.fails = failure
    report = base.sync("notes")
    assert (report.ok, report.error) == (False, told)
    assert counts(report) == (1, 0, 0, 0, 4)
    (info,) = base.sources()
    assert (info.healthy, info.notes) == (False, (f"the last scan failed: {told}",))
    listed.fails = None
    assert counts(base.sync("notes")) == (0, 0, 1, 3, 1)
    assert base.sources()[0].healthy


def test_an_interrupted_sync_keeps_what_it_wrote_and_goes_on(
    base: KnowledgeBase, listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH_ITEMS", 2)

    listed.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        base.sync("notes")
    (info,) = base.sources()
    assert (info.documents, info.healthy) == (2, False)
    assert info.notes == ("the last synchronisation was interrupted; the next one continues it",)
    listed.fails = None
    assert counts(base.sync("notes")) == (1, 0, 2, 0, 3)


def test_progress_is_told(base: KnowledgeBase, listed: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "PROGRESS_SECONDS", 0)
    told: list[Progress] = []
    base.sync("notes")
    listed.scanned = [Total(2), item("a", "changed"), Failed("b", "no")]
    base.sync("notes", progress=told.append)
    assert [(one.phase, one.done, one.total) for one in told] == [
        ("scan", 1, 2),
        ("scan", 2, 2),
        ("remove", 1, 1),
        ("done", 2, 2),
    ]
    assert told[1].rate > 0
    assert (told[-1].updated, told[-1].removed, told[-1].problems) == (1, 1, 1)


def test_one_sync_of_a_source_at_a_time(store: Path, listed: Listed) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
            entered.set()
            leave.wait(30)
            yield item("slow", "text")

    with KnowledgeBase(store, sources={"slow": Slow(), "notes": listed}) as base:
        thread = threading.Thread(target=base.sync, args=("slow",))
        thread.start()
        entered.wait(30)
        with pytest.raises(
            SyncBusy, match=r"^the source 'slow' is being synchronised by process \d+ \(since .*Z\); try again"
        ):
            base.sync("slow")
        with pytest.raises(SyncBusy):
            base.forget("slow")
        assert base.sync("notes").ok  # other sources are not held up
        waiting = threading.Thread(target=base.sync, args=("slow",), kwargs={"wait": 30})
        waiting.start()
        leave.set()
        thread.join()
        waiting.join()
        assert base.sync("slow").unchanged == 1


def test_unknown_sources(base: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match=r"^unknown source 'note'; did you mean 'notes'\?$"):
        base.sync("note")
    with pytest.raises(UsageError, match=r"^unknown source 'xyz'; known sources: notes$"):
        base.sync("xyz")


def test_sources_tell_how_they_are(store: Path, listed: Listed) -> None:
    with KnowledgeBase(store, sources={"notes": listed, "new": Listed()}) as base:
        listed.scanned.append(Failed("x", "out of luck"))
        listed.scanned.append(Skipped("y", "binary file"))
        base.sync("notes")
        new, notes = base.sources()
        assert new.to_dict() == {
            "name": "new",
            "configured": True,
            "healthy": False,
            "documents": 0,
            "last_sync": None,
            "notes": ["never synchronised; run: moonbox sync new"],
        }
        assert (notes.healthy, notes.documents) == (False, 3)
        assert notes.notes == ("1 item could not be read, first x: out of luck", "1 skipped: binary file")
        assert notes.last_sync is not None
    with KnowledgeBase(store) as base:
        (info,) = base.sources()
        assert (info.configured, info.notes[0]) == (
            False,
            "no longer in the configuration; `moonbox sync --prune` removes it",
        )
        assert base.forget("notes") == 3
        assert base.sources() == []
        assert base.search("text") == []
        with pytest.raises(UsageError, match=r"^unknown source 'notes'; there are no sources$"):
            base.forget("notes")


def test_only_the_last_runs_are_kept(base: KnowledgeBase, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "KEPT_RUNS", 3)
    for _ in range(5):
        base.sync("notes")
    db = sqlite3.connect(store)
    assert db.execute("SELECT id FROM sync_runs").fetchall() == [(3,), (4,), (5,)]
    db.close()


def test_stats(base: KnowledgeBase, store: Path) -> None:
    base.sync("notes")
    stats = base.stats()
    assert stats.to_dict() == {
        "path": str(store),
        "bytes": stats.bytes,
        "sources": 1,
        "documents": 3,
        "chunks": 3,
        "embedded": 0,
        "embedder": None,
    }
    assert stats.bytes > 4096


def test_large_documents_are_written_in_batches_of_bounded_size(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "BATCH_CHARS", 10_000)
    sizes: list[int] = []
    original = store_module.write
    monkeypatch.setattr(
        sync, "write", lambda db, source, batch: (sizes.append(len(batch)), original(db, source, batch))
    )
    with KnowledgeBase(store, sources={"notes": Listed(*(item(str(n), "word " * 1000) for n in range(6)))}) as base:
        base.sync("notes")
    assert sizes == [2, 2, 2]
