"""Shortages: no descriptors, threads or disk left. The error names the limit, and what there is goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from moonbox import Sandbox, tool
from moonbox.native import SWITCH, extension
from tests.runs import error_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and limits other processes")


def said_by(program: str, *arguments: str, **environment: str) -> str:
    """What a program of its own prints, which must end well."""
    command = [sys.executable, "-c", program, *arguments]
    environ = {**os.environ, **environment}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


HOST = """
import asyncio, resource, sys
from moonbox import Sandbox
from moonbox.errors import MoonboxError

box = Sandbox(min_workers=0)
kept = box.repl()
assert kept.run("x = 1").ok
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
repls, problem = [], None
while problem is None:
    repl = box.repl()
    try:
        run = repl.run("x = 2") if sys.argv[1] == "run" else asyncio.run(repl.arun("x = 2"))
        assert run.ok
        repls.append(repl)
    except MoonboxError as raised:
        problem = raised
print(len(repls))
print(type(problem).__name__, problem)
repls.pop().close()
assert kept.run("return x").value == 1
assert all(repl.run("return x").value == 2 for repl in repls)
assert box.repl().run("return 3").value == 3
box.close()
"""


@pytest.mark.parametrize("way", ["run", "arun"])
def test_no_descriptors_left(way: str) -> None:
    made, problem = said_by(HOST, way).splitlines()
    assert int(made) >= 10
    assert problem == (
        "WorkerShortage a worker cannot be started: this process has used up its descriptors: the limit is 40; "
        "raise it (ulimit -n, LimitNOFILE= of systemd, --ulimit nofile= of a container), or close Repls"
    )


ZYGOTE = """
import resource
from moonbox import Sandbox
from moonbox.errors import WorkerError

before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (20, before[1]))
box = Sandbox(min_workers=0)
repls = [box.repl()]
assert repls[0].run("x = 0").ok  # the zygote has the low limit from now on
resource.setrlimit(resource.RLIMIT_NOFILE, before)
try:
    while len(repls) < 100:
        repls.append(box.repl())
        assert repls[-1].run(f"x = {len(repls) - 1}").ok
except WorkerError as problem:
    print(problem)
repls.pop().close()
assert [repl.run("return x").value for repl in repls] == list(range(len(repls)))
repls.pop().close()
repls.pop().close()
assert box.run("return 1").value == 1
assert [repl.run("return x").value for repl in repls] == list(range(len(repls)))
box.close()
"""


def test_no_descriptors_left_in_the_zygote() -> None:
    problem = said_by(ZYGOTE, **{SWITCH: "0"})
    assert problem.startswith("a worker cannot be started: the zygote process: this process has used up its descr")


@pytest.mark.skipif(extension("worker._native") is None, reason="the native part is not in use")
def test_a_native_worker_takes_no_descriptor_of_its_zygote() -> None:
    """A fork copies every descriptor, so that each worker would make the next one dearer."""
    assert said_by(ZYGOTE, **{SWITCH: "1"}) == ""


def test_a_repl_takes_one_descriptor() -> None:
    @tool
    def slow(n: int) -> int:
        """Take long enough for a thread of its own."""
        threading.Event().wait(0.02)
        return n

    with Sandbox([slow], min_workers=0) as box, box.repl() as first:
        first.run("tools.slow(1)")
        before = len(list(Path("/proc/self/fd").iterdir()))
        repls = [box.repl() for _ in range(5)]
        assert [repl.run("return tools.slow(1)").value for repl in repls] == [1] * 5
        assert len(list(Path("/proc/self/fd").iterdir())) - before <= 5


@pytest.mark.parametrize("source", ["return tools.add(1, 2)", "return 3"])
def test_no_threads_left(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that cannot be started is simulated: root has no limit of threads that a test could set."""

    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "moonbox-tool":
            raise RuntimeError("can't start new thread")
        start(thread)

    with Sandbox([add]) as box, box.repl() as repl:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        run = repl.run(source)
        if "tools" in source:
            assert error_of(run).code == "busy"
            assert error_of(run).message.startswith("no more threads can be started; raise the limit")
        else:
            assert run.value == 3
        monkeypatch.undo()
        assert repl.run("return tools.add(1, 2)").value == 3


TRAIL = """
import resource, sys
from moonbox import Sandbox
from moonbox.errors import AuditError

with Sandbox(audit=sys.argv[1]) as box, box.repl() as repl:
    assert repl.run("x = 1").ok
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        repl.run("y = ('x'):rep(5000) return y")
    except AuditError as problem:
        print(problem)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert repl.run("return x").value == 1
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trail.jsonl", "cannot write to the audit trail {}: the file is as large as the limit of file sizes"),
        (
            "trail.db",
            "the audit trail {} cannot be written: the file is as large as the limit of file sizes allows (2000 ",
        ),
    ],
)
def test_no_room_in_the_trail(name: str, message: str, tmp_path: Path) -> None:
    path = str(tmp_path / name)
    assert said_by(TRAIL, path, "2000").startswith(message.format(path))


KNOWLEDGE = """
import resource, sys
from pathlib import Path
from moonbox.errors import MoonboxError
from moonbox.knowledge import Item, KnowledgeBase

class Notes:
    items = [Item(source_id="first", body="The first note is about moths.")]
    def scan(self, known):
        yield from self.items

store = Path(sys.argv[1])
with KnowledgeBase(store, sources={"notes": Notes()}) as base:
    assert base.sync("notes").ok
    Notes.items = [*Notes.items, Item(source_id="large", body=" ".join(f"word{n}" for n in range(40_000)))]
    size = max(file.stat().st_size for file in store.parent.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        problem = base.sync("notes").error
    except MoonboxError as raised:
        problem = raised
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(problem)
    assert [hit.source_id for hit in base.search("moths")] == ["first"], "what is there can be found"
    assert base.sync("notes").ok
    assert [hit.source_id for hit in base.search("word777")] == ["large"]
"""


def test_no_room_in_the_knowledge_base(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    assert said_by(KNOWLEDGE, str(path)).startswith(
        f"the knowledge base {path} cannot be written: the file is as large as the limit of file sizes allows ("
    )


PROCESSES = """
import os, resource, sys
from moonbox import Sandbox
from moonbox.errors import WorkerError

first, second = Sandbox(min_workers=0), Sandbox(min_workers=0)
kept = first.repl()
assert kept.run("x = 1").ok
if os.getuid() == 0:
    os.setresuid(1_699_999_999, 1_699_999_999, 1_699_999_999)  # root has no such limit
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    second.run("return 1")
except WorkerError as problem:
    print(problem)
assert kept.run("return x").value == 1
"""


def test_no_processes_left() -> None:
    assert said_by(PROCESSES) == (
        "a worker cannot be started: no more processes can be started; raise the limit of processes "
        "(ulimit -u, TasksMax= of systemd, --pids-limit of a container), or lower max_workers\n"
    )
