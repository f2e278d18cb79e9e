"""The console's views with a large trail: server time and bytes of each, with 100,000 runs.

python benchmarks/console.py [--runs 100000] [--trail FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from moonbox import Run, Sandbox, tool
from moonbox.audit.records import Call, CallError, Usage
from moonbox.audit.sqlite import SqliteSink
from moonbox.console.app import OPEN_PATHS, console_routes
from moonbox.errors import ScriptError
from moonbox.http.app import Service, create_app
from moonbox.http.browser import BrowserAccess
from moonbox.http.guard import Access
from moonbox.http.workbench import Workbench
from moonbox.knowledge import Item, KnowledgeBase
from moonbox.project.diagnosis import Doctor
from moonbox.values import pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPEATS = 15
STARTED = 1_790_000_000.0


@tool
def list_orders(customer: str) -> list[dict[str, Any]]:
    """Orders of one customer."""
    return [{"id": 1, "customer": customer}]


def record(number: int) -> Run:
    """A run with a few calls, one in ten of them failed."""
    calls = tuple(
        Call(
            index=index,
            tool=f"tool_{(number + index) % 40}",
            arguments={"customer": f"c{number}", "page": index},
            status="error" if (number + index) % 17 == 0 else "ok",
            error=CallError("unavailable", "try again", True) if (number + index) % 17 == 0 else None,
            packed=pack([{"id": row, "total": row * 1.5} for row in range(8)]),
            started=STARTED + number + index * 0.01,
            queued=0.001,
            duration=0.008 + (number % 13) / 1000,
            batch=index,
        )
        for index in range(1, 4)
    )
    error = ScriptError("runtime", f"broken {number}", line=2) if number % 10 == 0 else None
    return Run(
        id=f"{number:032x}",
        source=f"-- run {number}\nlocal rows = tools.tool_1{{customer = 'c{number}'}}\nreturn #rows + {number}",
        values=() if error else (number,),
        output=f"looked at {number}\n",
        calls=calls,
        usage=Usage(wall=0.05, cpu=0.002, peak_memory=80_000, calls=3),
        error=error,
        started=STARTED + number,
        repl=f"repl{number // 5}",
        number=number % 5 + 1,
    )


class Notes:
    """A thousand documents for the view of knowledge."""

    def scan(self, known: Mapping[str, str]) -> Iterator[Item]:
        for number in range(1000):
            yield Item(source_id=f"{number}.md", body=f"# Note {number}\n\n" + f"What became of orders {number}. " * 20)


def fill(path: Path, runs: int) -> float:
    """Write the runs as a Sandbox would; seconds that it took."""
    began = time.perf_counter()
    sink = SqliteSink(path)
    for number in range(runs):
        sink.write(record(number))
    sink.close()
    return time.perf_counter() - began


async def measure(path: Path, runs: int) -> list[tuple[str, float, float, int]]:
    """For each view: the median and the slowest server time in milliseconds, and its bytes."""
    bench, trail, doctor = Workbench(), SqliteSink(path), Doctor()
    with Sandbox([list_orders], audit=bench.sink(trail), min_workers=0, **bench.hooks) as box:
        knowledge = KnowledgeBase(path.with_suffix(".knowledge"), sources={"notes": Notes()})
        knowledge.sync("notes")
        bench.attach(box, trail=trail, knowledge=knowledge, diagnose=lambda: doctor.diagnose().to_dict())
        browser = BrowserAccess(public=True)
        service = Service(box, trail=trail, workbench=bench)
        app = create_app(service, Access(browser=browser, open_paths=OPEN_PATHS), more=console_routes(service, browser))
        middle, last = f"{runs // 2:032x}", f"{runs - 1:032x}"
        views = {
            "playground": "/console/playground",
            "runs": "/console/runs",
            "runs, deep in the trail": f"/runs?limit=50&details=true&before={f'{runs // 10:032x}'}",
            "runs, failed": "/runs?limit=50&details=true&state=failed",
            "runs, one tool": "/runs?limit=50&details=true&tool=tool_7",
            "runs, a rare tool": "/runs?limit=50&details=true&tool=never_called",
            "runs, a common word": "/runs?limit=50&details=true&q=looked",
            "runs, a rare word": "/runs?limit=50&details=true&q=%22looked+at+17%5Cn",
            "one run": f"/console/runs/{middle}",
            "comparison": f"/console/compare?a={middle}&b={last}",
            "approvals": "/console/approvals",
            "tools": "/console/tools",
            "one tool": "/console/tools/list_orders",
            "knowledge": "/console/knowledge",
            "knowledge, a search": "/console/knowledge?q=orders",
            "doctor": "/console/doctor",
            "doctor, with its result": "/console/doctor?wait=1",
            "API: GET /runs": "/runs?limit=50",
            "API: GET /runs/{id}/report": f"/runs/{middle}/report",
        }
        rows = []
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            for name, address in views.items():
                times, size = [], 0
                for _ in range(REPEATS):
                    began = time.perf_counter()
                    answer = await client.get(address)
                    times.append((time.perf_counter() - began) * 1000)
                    assert answer.status_code == 200, (address, answer.text)
                    size = len(answer.content)
                rows.append((name, statistics.median(times), max(times), size))
        knowledge.close()
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--trail", type=Path, help="keep the trail here, and use it again when it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.trail or Path(folder) / "audit.db"
        if not path.exists():
            seconds = fill(path, options.runs)
            print(f"wrote {options.runs:,} runs in {seconds:.0f} s ({seconds / options.runs * 1e6:.0f} µs each)")
        print(f"{path.stat().st_size / 1e6:.0f} MB\n\n| view | median ms | slowest ms | bytes |\n|---|---|---|---|")
        for name, median, slowest, size in asyncio.run(measure(path, options.runs)):
            print(f"| {name} | {median:.1f} | {slowest:.1f} | {size:,} |")


if __name__ == "__main__":
    main()
