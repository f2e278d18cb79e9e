"""Several processes on one store, and processes that are killed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from moonbox.knowledge import KnowledgeBase
from moonbox.knowledge.connectors.filesystem import Filesystem

from .test_sync import check_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SYNC = """
import sys
from pathlib import Path
from moonbox.knowledge import KnowledgeBase, SyncBusy, sync
from moonbox.knowledge.connectors.filesystem import Filesystem
store, folder, wait, batch, pauses = *sys.argv[1:3], float(sys.argv[3]), int(sys.argv[4]), bool(sys.argv[5:])
sync.BATCH_ITEMS = batch
sync.PROGRESS_SECONDS = 0
def tell(progress):
    if progress.added and progress.added % batch == 0:
        print("added", progress.added, flush=True)
        if pauses:
            sys.stdin.readline()  # it holds the lock of the source, and no transaction is open
with KnowledgeBase(store, sources={"docs": Filesystem(path=Path(folder))}) as base:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        report = base.sync("docs", progress=tell, wait=wait)
        print("done", report.added, report.unchanged, report.documents, flush=True)
    except SyncBusy as error:
        print("busy", error, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    for number in range(400):
        (root / f"doc{number:03}.md").write_text(f"# Document {number}\n\nshared words, unique{number}\n")
    return root


@pytest.fixture
def start(store: Path, folder: Path) -> Iterator[object]:
    started: list[subprocess.Popen[str]] = []

    def run(*more: str, wait: float = 0, batch: int = 10) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SYNC, store, folder, str(wait), str(batch), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_two_processes_sync_the_same_source(start, store: Path, folder: Path) -> None:
    processes = [start(wait=250) for _ in range(2)]
    for process in processes:
        go(process)
    ends = sorted(process.communicate()[0].splitlines()[-1] for process in processes)
    assert ends == ["done 0 400 400", "done 400 0 400"]
    check_index(store)


def test_the_second_is_refused_when_it_may_not_wait(start, store: Path) -> None:
    first, second = start("pauses", batch=200), start()
    go(first)
    assert first.stdout.readline() == "added 200\n"
    go(second)
    told = second.stdout.readline()
    assert told.startswith(f"busy the source 'docs' is being synchronised by process {first.pid} (since ")
    assert first.communicate()[0].splitlines()[-1] == "done 400 0 400"


@pytest.mark.parametrize("after", [1, 7, 23])
def test_killed_in_the_middle(start, store: Path, folder: Path, after: int) -> None:
    process = start()
    go(process)
    for _ in range(after):
        assert process.stdout.readline().startswith("added ")
    process.kill()
    process.wait()
    check_index(store)
    with KnowledgeBase(store, sources={"docs": Filesystem(path=folder)}) as base:
        (info,) = base.sources()
        kept = info.documents
        assert kept >= (after - 1) * 10
        assert len(base.search("shared", limit=200)) == min(kept, 200)
        assert base.search("unique0")[0].source_id == "doc000.md" if kept else True
        report = base.sync("docs")
        assert (report.added, report.unchanged, report.documents) == (400 - kept, kept, 400)
    check_index(store)


def test_readers_in_another_process_see_whole_documents(start, store: Path) -> None:
    process = start()
    go(process)
    with KnowledgeBase(store, read_only=True) as base:
        while process.stdout.readline().startswith("added "):
            for hit in base.search("shared", limit=3):
                assert base.get(hit.id).body.endswith(f"unique{int(hit.source_id[3:6])}\n")
        assert len(base.search("shared", limit=200)) == 200
