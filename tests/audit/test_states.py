"""States of runs and calls: what a trail shows while a host lives, and after it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from msgspec.structs import asdict, replace
from typer.testing import CliRunner

from moonbox import Run, Sandbox, tool
from moonbox.audit import writers
from moonbox.audit.query import RunFilter
from moonbox.audit.sinks import MemorySink, open_sink, open_trail
from moonbox.cli.app import app
from moonbox.errors import AuditError, ScriptError
from moonbox.http.app import Service, create_app
from tests.audit.runs import make_run
from tests.http_api.conftest import serving
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOST = '''
import asyncio, sys, time
from moonbox import Sandbox, tool

@tool
def good(password: str) -> str:
    """Work."""
    return "done-" + password

@tool
def bad() -> str:
    """Fail."""
    raise ValueError("no")

@tool(policy="approve")
def forbidden() -> str:
    """Nobody approves."""

@tool
def slow() -> str:
    """Wait."""
    time.sleep(600)
    return ""

source = "tools.good{password = 'hunter-22'} pcall(tools.bad) pcall(tools.forbidden) " + sys.argv[2]
box = Sandbox(tools=[good, bad, forbidden, slow], audit=sys.argv[1], redact=["password"])
if sys.argv[3] == "async":
    asyncio.run(box.arun(source))
else:
    box.run(source)
'''
SLOW, LOOP = "tools.slow()", "while true do end"
FINISHED = [("good", "ok"), ("bad", "error"), ("forbidden", "denied")]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    (tmp_path / "host.py").write_text(HOST)
    started: list[subprocess.Popen[bytes]] = []

    def start(path: Path, last: str, how: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, str(tmp_path / "host.py"), str(path), last, how]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("name", "last", "how"),
    [
        ("trail.db", SLOW, "async"),
        ("trail.db", LOOP, "sync"),
        ("trail.jsonl", SLOW, "sync"),
        ("trail.jsonl", LOOP, "async"),
    ],
)
def test_a_run_is_running_and_then_interrupted_and_its_calls_are_told_apart(
    tmp_path: Path, host: Callable[..., subprocess.Popen[bytes]], name: str, last: str, how: str
) -> None:
    path = tmp_path / name
    calls = [*FINISHED, *([("slow", "in_flight")] if last == SLOW else [])]
    process = host(path, last, how)
    wait_until(lambda: path.exists() and _calls(path) == calls)
    waiting = len(calls) - 3
    assert _states(path) == [("running", "running", len(calls), 2, waiting)]
    os.kill(process.pid, signal.SIGSTOP)  # a host that is stopped lives
    assert _states(path) == [("running", "running", len(calls), 2, waiting)]
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: _states(path) == [("interrupted", "interrupted", len(calls), 2, waiting)])
    process.wait()
    assert _states(path) == [("interrupted", "interrupted", len(calls), 2, waiting)]
    assert _calls(path) == calls
    assert open_trail(path).verify().ok
    stored = b"".join(file.read_bytes() for file in tmp_path.glob(f"{name}*"))
    assert b"hunter-22" not in stored


def _states(path: Path) -> list[tuple[str, str, int, int, int]]:
    """The state of each run, as the listing and as the run says it, with its calls."""
    trail = open_trail(path)
    return [
        (item.state, trail.get(item.id).state, item.calls, item.failed_calls, item.open_calls) for item in trail.list()
    ]


def _calls(path: Path) -> list[tuple[str, str]]:
    try:
        trail = open_trail(path)
        return [(call.tool, call.status) for item in trail.list() for call in trail.get(item.id).calls]
    except (AuditError, ValueError):  # its host has not made it yet
        return []


@pytest.fixture(params=["trail.db", "trail.jsonl"])
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A trail with a run in each state."""
    path = tmp_path / str(request.param)
    sink: Any = open_sink(path)
    sink.write(make_run("done", calls=make_run().calls[:2]))
    sink.write(make_run("failed", started=1001.0, error=ScriptError("runtime", "it broke")))
    for n, id in enumerate(("running", "interrupted", "unfinished"), 2):
        _start(sink, make_run(id, started=1000.0 + n, calls=(), values=()), id)
        sink.start_call(id, replace(make_run().calls[0], status="in_flight", packed=None))
    sink.close()
    return path


def _start(sink: Any, run: Run, state: str) -> None:
    """Write the start of a run as this process, as one that has ended, or as one of another machine would."""
    with pytest.MonkeyPatch.context() as patch:
        if state != "running":
            child = subprocess.Popen([sys.executable, "-c", ""])
            child.wait()
            gone = asdict(writers.Writer.current()) | {"pid": child.pid}
            other = gone | {"machine": "elsewhere", "boot": "another"}
            writer = writers.Writer(**(gone if state == "interrupted" else other))
            patch.setattr(writers.Writer, "current", classmethod(lambda cls: writer))
        sink.start_run(run)


def test_every_reader_shows_the_same_states(mixed: Path) -> None:
    trail = open_trail(mixed)
    states = {"unfinished": "unfinished", "interrupted": "interrupted", "running": "running"}
    states |= {"failed": "failed", "done": "ok"}
    assert {item.id: item.state for item in trail.list()} == states
    assert {id: trail.get(id).state for id in states} == states
    for state, id in ((state, id) for id, state in states.items()):
        assert [item.id for item in trail.list(state=state)] == [id]
        assert [item.id for item in trail.page(where=RunFilter(state=state)).runs] == [id]
    assert [item.id for item in trail.list(ok=False)] == ["failed"]
    assert [item.id for item in trail.list(ok=True)] == ["done"]
    stats = trail.stats()
    assert (stats.runs, stats.failures, stats.kinds) == (5, 1, {"runtime": 1})
    assert stats.states == dict.fromkeys(("failed", "interrupted", "ok", "running", "unfinished"), 1)
    assert [(tool.tool, tool.calls, tool.failures) for tool in stats.tools] == [("get_expenses", 7, 0), ("send", 1, 1)]
    assert [(day.runs, day.failures) for day in stats.days] == [(5, 1)]
    memory = MemorySink()
    memory.write(trail.get("failed"))
    assert memory.stats().states == {"failed": 1}


def test_a_run_that_goes_on_has_not_failed(mixed: Path) -> None:
    trail = open_trail(mixed)
    running, interrupted = trail.get("running"), trail.get("interrupted")
    assert (running.ok, running.error, running.state_lost) == (False, None, False)
    assert Run.from_json(running.to_json()) == running
    with pytest.raises(ValueError, match=r"^the run is still running$"):
        running.unwrap()
    assert interrupted.error is not None
    assert (interrupted.error.kind, interrupted.error.code, interrupted.state_lost) == ("crashed", "interrupted", True)
    assert interrupted.error.message == (
        "the host process ended before the run did; calls that are in flight may have taken effect"
    )


def test_the_command_line_shows_the_states(mixed: Path) -> None:
    def said(*args: str) -> list[str]:
        result = CliRunner().invoke(app, ["audit", *args, "--db", str(mixed)])
        assert result.exit_code == 0, result.output
        return [" ".join(line.split()) for line in result.output.splitlines() if line.strip()]

    rows = [line.split(maxsplit=3)[2:] for line in said("list")[2:]]
    assert [(id, rest.partition(" 500 ms")[0]) for id, rest in rows] == [
        ("unfinish", "unfinished 1 (1 in doubt)"),
        ("interrup", "interrupted 1 (1 in doubt)"),
        ("running", "running 1 (1 running)"),
        ("failed", "runtime 3 (1 failed)"),
        ("done", "ok 2"),
    ]
    assert said("stats")[0] == "5 runs, 1 failed (1 runtime), 1 running, 1 interrupted, 1 unfinished, 8 calls"
    shown = said("show", "running")
    assert shown[0] == "run running running"
    assert shown[-1] == '1 get_expenses {"employee_id":1} → running'
    assert "error" not in shown
    assert said("show", "interrupted")[-2] == '1 get_expenses {"employee_id":1} → in doubt: it may have taken effect'
    listed = json.loads("".join(CliRunner().invoke(app, ["audit", "list", "--json", "--db", str(mixed)]).output))
    assert [run["state"] for run in listed] == ["unfinished", "interrupted", "running", "failed", "ok"]


def test_the_http_api_shows_the_states(mixed: Path) -> None:
    with (
        Sandbox(min_workers=0) as box,
        serving(create_app(Service(box, trail=open_trail(mixed)))) as url,
        httpx.Client(base_url=url, timeout=30) as api,
    ):
        runs = api.get("/runs").json()["runs"]
        assert [(run["id"], run["state"]) for run in runs[:3]] == [
            ("unfinished", "unfinished"),
            ("interrupted", "interrupted"),
            ("running", "running"),
        ]
        assert [run["id"] for run in api.get("/runs?state=running").json()["runs"]] == ["running"]
        assert [run["id"] for run in api.get("/runs?state=running&offset=0&limit=5").json()["runs"]] == ["running"]
        assert api.get("/runs?state=odd").status_code == 400
        for run in runs:
            assert api.get(f"/runs/{run['id']}").json()["state"] == run["state"]


def test_a_sink_without_ends_of_calls_still_gets_their_starts() -> None:
    class Starts:
        def __init__(self) -> None:
            self.said: list[str] = []

        def start_run(self, run: Run) -> None:
            self.said.append("run")

        def start_call(self, run: str, call: Any) -> None:
            self.said.append(call.tool)

        def write(self, run: Run) -> None:
            self.said.append(run.state)

        def close(self) -> None:
            """Nothing to close."""

    @tool
    def add(a: int) -> int:
        """Add."""
        return a + 1

    sink = Starts()
    with Sandbox([add], audit=sink) as box:
        assert box.run("return tools.add{a = 1}").value == 2
    assert sink.said == ["run", "add", "ok"]
