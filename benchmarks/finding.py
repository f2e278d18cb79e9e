"""How long a search among a million runs of a journal takes, in SQLite and PostgreSQL.

    python benchmarks/finding.py [--runs 1000000] [--postgres ADDRESS] [--no-write]

The runs are written by SQL alone, without being run. A figure is the median of five searches. The goal is 100 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.durable.backends import PostgresBackend
from moonbox.durable.index import JournalFilter
from moonbox.durable.store import Journal, open_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).with_suffix(".md")
GOAL = 0.1
NOW = 1_800_000_000.0
SEARCHES: dict[str, dict[str, Any]] = {
    "the latest": {},
    "page 1,000": {"skip": 99_900},
    "--state ok": {"state": "ok"},
    "--state failed": {"state": "failed"},
    "--state sleeping": {"state": "sleeping"},
    "--in-doubt, --interrupted": {"state": "interrupted"},
    "--label tenant=t7": {"labels": {"tenant": "t7"}},
    "--tool pay": {"tool": "pay"},
    "--since, the last hundredth": {"since": 0.99},
    "--text, a rare word": {"text": "order77777"},
    "--text, a word of every script": {"text": "pay"},
    "--label, --tool and --state": {"labels": {"tenant": "t3"}, "tool": "look", "state": "failed"},
}


def fill(journal: Journal, runs: int) -> None:
    """A thousandth is cut off, another one sleeps, a hundredth has failed; 1,000 tenants; three tools."""
    source = f"(WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {runs}) SELECT i FROM c) AS c"
    if journal.name.startswith("journal in") or "postgres" in journal.name:
        source = f"generate_series(1, {runs}) AS c(i)"
    state = (
        "CASE WHEN i % 1000 = 1 THEN '' WHEN i % 1000 = 2 THEN 'sleeping' WHEN i % 100 = 3 THEN 'runtime' ELSE 'ok' END"
    )
    began = f"{NOW} - {runs} + i"
    label = "'{\"tenant\": \"t' || (i % 1000) || '\"}'"
    script = "'local order' || i || ' = tools.pay{cents = ' || (i % 97) || '} return order' || i"
    percent = "%%" if "generate_series" in source else "%"
    with journal.backend.writing() as db:
        for n in range(100):
            row = (f"repl{n}", NOW, "lua", "{}", "", 1, "", 0.0)
            db.change("INSERT INTO repls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        first = (
            "INSERT INTO journal_runs (id, repl, began, ended, state, wakes, attempts, undone, reason, labels, source) "
            f"SELECT 'run' || i, 'repl' || (i % 100), {began}, {began}, {state}, "
            f"CASE WHEN i % 1000 = 2 THEN {began} ELSE NULL END, 1, '', '', {label}, {script} FROM {source} ORDER BY i"
        )
        tags = {"'label:tenant=t' || (n % 1000)": "1 = 1", "'tool:pay'": "n % 2 = 0", "'tool:look'": "n % 2 = 1"}
        tags["'failed'"] = "state = 'runtime'"
        statements = [first] + [
            f"INSERT INTO journal_tags SELECT {tag}, n FROM journal_runs WHERE {which}" for tag, which in tags.items()
        ]
        for statement in statements:
            db.change(statement.replace("%", percent))
        if journal.backend.index_text:
            db.change(journal.backend.index_text.replace("WHERE id = ?", ""))


def measure(journal: Journal, runs: int) -> dict[str, float]:
    found = {}
    for name, given in SEARCHES.items():
        options = dict(given)
        skip = min(options.pop("skip", 0), runs // 2)
        if "since" in options:
            options["since"] = NOW - runs * (1 - options["since"])
        times = []
        for _ in range(6):
            began = time.perf_counter()
            rows = journal.runs(JournalFilter(**options), most=100, skip=skip)
            times.append(time.perf_counter() - began)
            assert rows, name
        found[name] = statistics.median(times[1:])
    return found


@contextlib.contextmanager
def places(address: str | None) -> Iterator[dict[str, str]]:
    sys.path.append(str(PAGE.parents[1]))
    from tests.postgres import running

    with contextlib.ExitStack() as stack:
        found = {"SQLite": f"{stack.enter_context(tempfile.TemporaryDirectory())}/journal.db"}
        try:
            found["PostgreSQL"] = address or stack.enter_context(running())
        except LookupError as missing:
            print(missing)
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--postgres", help="the address of an empty database")
    parser.add_argument("--no-write", action="store_true")
    args = parser.parse_args()
    figures = {}
    with places(args.postgres) as found:
        for name, place in found.items():
            journal = open_journal(place, max_days=0)
            fill(journal, args.runs)
            if isinstance(journal.backend, PostgresBackend):
                with journal.backend.connect() as connection:
                    connection.execute("VACUUM ANALYZE")
            figures[name] = measure(journal, args.runs)
            journal.close()
    lines = [
        "# Finding a run among many",
        "",
        f"One run on one machine ({platform.machine()}, {platform.system()}, Python {platform.python_version()}):",
        f"{args.runs:,} runs in a journal, a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.",
        "`python benchmarks/finding.py` makes this file. A figure is the median of five searches for 100 runs, after a",
        "first one. The goal is 100 ms on an idle machine.",
        "",
        "| search | " + " | ".join(figures) + " |",
        "|---|" + "---:|" * len(figures),
        *(
            f"| {name} | " + " | ".join(f"{each[name] * 1e3:.1f} ms" for each in figures.values()) + " |"
            for name in SEARCHES
        ),
        "",
    ]
    print("\n".join(lines))
    if not args.no_write:
        PAGE.write_text("\n".join(lines), encoding="utf-8")
    if any(each > GOAL for found in figures.values() for each in found.values()):
        raise SystemExit("slower than the goal")


if __name__ == "__main__":
    main()
