"""A fuzz of SQL in three dialects, YAML, schemas, documents and Python, with a watchdog of what they cost the host.

    python -m tests.costs.strangers [minutes [seed]]

They are made from pieces that are slow, large or deep somewhere. A thread measures how long the others stop, and how
much memory the host takes. PostgreSQL is used if it is installed. Each line is written at once, so that a run that is
killed has said what it found, and with which seed.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import random
import resource
import sqlite3
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, get_args

from moonbox import Sandbox, Toolbox
from moonbox.errors import MoonboxError, ToolError, UsageError
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Kind, Unreadable
from moonbox.sources.specification import parse
from tests.attacks.test_schemas import answering, loops_of, schema_of, value_of
from tests.postgres import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Stranger = tuple[str, Callable[[random.Random], Any], Callable[[Any], Any]]

MIB = 1024 * 1024
MOST_MEMORY, MOST_STOP = 200 * MIB, 0.1
_TOKENS = (
    "SELECT", "FROM", "t", "a", "f", "(", ")", ",", ".", "*", "'x'", "1", "1e308", "[", "]", "ARRAY[", "CASE WHEN",
    "THEN", "END", "WITH", "RECURSIVE", "AS", "UNION ALL", "JOIN", "ON", "GROUP BY", "ORDER BY", "OVER (", "::text",
    "::jsonb", "||", "LIKE", "IN", "NOT", "-", "+", "^", "?", ":n", "$1", "--", "/*", "*/", "$$", '"', "`", "E'\\\\'",
    "printf('%9999990d', 1)", "range(100000000)", "format('%50000000s', 'x')", "format('{:>1000000000}', 'x')",
    "generate_series(1, 100000000)", "unnest(ARRAY['/etc/passwd'::text]) AS f", "f.pg_read_file", "f.pg_sleep",
    "zeroblob(9000000)", "group_concat(a)", "string_agg(a, '')", "jaro_winkler_similarity(a, a)", "instr(a, a)",
    "VALUES (1)", "EXPLAIN", "PIVOT", "LATERAL", "INTERVAL '1' DAY", "CAST(", "NULL", "\x00", "é", "😀",
)  # fmt: skip
_WHOLE = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n",
    "SELECT {} AS v FROM generate_series(1, 1000) AS n(a)",
    "SELECT {} AS v FROM range(1000) AS n(a)",
    "SELECT {}, {}, {}",
    "SELECT {} FROM t AS f WHERE {} = {}",
    "{}",
)
_YAML = (
    "&a ", "*a", "<<: *a", "<<: [*a, *a]", "- ", "[", "{", "}", "]", "? ", ": ", "k: 1\n", "1:0:0", "|\n ", "!!int ",
    "!!python/name:os.abort ", "2020-01-01", "\n", "  ", "'", '"', "# x\n", "9" * 300, ".inf", "~", "\t",
    "%YAML 1.1\n---\n",
)  # fmt: skip
_DOCUMENT = (
    "# a\n", "a: b\n", "---\n", "+++\n", "=====\n", "|", ",", ";", "\t",
    '"', "\n", "\n\n", "```\n", "User-agent: *\n", "Disallow: /", "[", "](", "é", "Ã©",
    "<p>", "<table>", "<urlset>", "<loc>",
    "<!DOCTYPE x [<!ENTITY a 'b'>]>", "&a;", "&a;" * 99, "]]>", "\xff", "\x01", "\0",
    "PK\x03\x04", "%PDF-1.7", "1 0 obj", "x" * 3000, "-" * 300, " " * 300,
)  # fmt: skip
_PYTHON = (
    "a", "b1", "x" * 300, "tools.", "f(", ")", "(", "[", "]", "{", "}", ":", "\n", "\n    ", "=", "==", "-", "not ",
    "lambda: ", "for a in ", "if ", "else ", "def f(): ", "class C: ", "try:\n ", "except E: ", "return ", "yield ",
    "await ", "import ", "from a import ", "1", "9" * 5000, "1j", "'x'", "f'{a", "}'", '"""', "\\", "# c", "@", "*",
    "**", ",", ".", "match a:\n case ", "with ", "as ", "global a", "print(", "é", "\x00", "\t", "is 1", "\u202e",
)  # fmt: skip


class Watchdog:
    """Measures the longest stop of a thread, the longest collection of garbage, and the memory of this process."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.collecting = 0.0
        self._collects_since = 0.0
        self._ended = threading.Event()
        self._start = _peak()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        gc.callbacks.append(self._collected)

    @property
    def grown(self) -> int:
        return _peak() - self._start

    def _watch(self) -> None:
        waits = _Waits()
        before, last, spent = waits.seconds(), time.monotonic(), time.process_time()
        while not self._ended.wait(0.005):
            beginning, now, used = waits.seconds(), time.monotonic(), time.process_time()
            # On a busy machine nobody runs for a while, or this thread does not: what counts is time in which this
            # process computed, and in which this thread waited for Python's lock and not for a processor. It may also
            # wait for one between two of these measurements, so that what it waited is measured around both ends.
            waited = waits.seconds() - before
            self.longest = max(self.longest, min(now - last - waited, used - spent) - 0.005)
            before, last, spent = beginning, now, used

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collects_since = time.monotonic()
        else:
            self.collecting = max(self.collecting, time.monotonic() - self._collects_since)

    def end(self) -> None:
        gc.callbacks.remove(self._collected)
        self._ended.set()
        self._thread.join()


def main(minutes: float, seed: int) -> int:
    """0 where nothing cost the host more than it may."""
    pick, failed = random.Random(seed), False
    print(f"seed {seed}", flush=True)
    with _kinds() as kinds:
        for _, make, read in kinds:  # what is loaded at the first use is no stranger's doing
            with contextlib.suppress(MoonboxError):
                read(make(random.Random(0)))
        gc.collect()
        gc.freeze()  # to collect what the test itself has loaded takes long, and is no stranger's doing either
        watchdog, count, until = Watchdog(), 0, time.monotonic() + minutes * 60
        while time.monotonic() < until:
            name, make, read = pick.choice(kinds)
            given = make(pick)
            before = watchdog.longest
            try:
                read(given)
            except (ToolError, UsageError):
                pass
            except Exception as problem:  # noqa: BLE001 - what a stranger's text must not cause
                failed = True
                print(f"{name}: {problem!r} after {count} texts, by {str(given)[:500]!r}", flush=True)
            count += 1
            if watchdog.longest > max(before, MOST_STOP) or watchdog.grown > MOST_MEMORY:
                cost = f"a stop of {watchdog.longest:.3f} s, {watchdog.grown // MIB} MiB more"
                cost += f" (collections take {watchdog.collecting:.3f} s, of {len(gc.get_objects()):,} objects)"
                print(f"{name}: {cost} after {count} texts, by {str(given)[:500]!r}", flush=True)
        watchdog.end()
    print(
        f"{count} texts, seed {seed}: longest stop {watchdog.longest:.3f} s, {watchdog.grown // MIB} MiB more",
        flush=True,
    )
    return int(failed or watchdog.longest > MOST_STOP or watchdog.grown > MOST_MEMORY)


@contextlib.contextmanager
def _kinds() -> Iterator[list[Stranger]]:
    """What is read: its name, what makes one, and what reads it."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        with contextlib.closing(sqlite3.connect(f"{folder}/t.db")) as db:
            db.execute("CREATE TABLE t (a TEXT)")
            db.execute("INSERT INTO t VALUES (printf('%100000d', 1))")
            db.commit()
        urls = {"sqlite": f"sqlite:///{folder}/t.db", "duckdb": "duckdb://"}
        with contextlib.suppress(LookupError):
            urls["postgresql"] = stack.enter_context(running())
        python = stack.enter_context(stack.enter_context(Sandbox(language="python")).repl())
        kinds: list[Stranger] = [
            ("yaml", _yaml, _read_yaml),
            ("schema", _schema, _read_schema),
            ("document", _document, functools.partial(_read_document, stack.enter_context(Extractor(seconds=1)))),
            ("python", _python, python.check),
        ]
        for name, url in urls.items():
            query = next(tool.call for tool in Toolbox.from_sql(url, timeout=1) if tool.name == "query")
            kinds.append((name, _sql, query))
        yield kinds


def _read_yaml(text: str) -> Any:
    return parse(text.encode(), "the text")


def _read_schema(given: tuple[Any, Any]) -> None:
    for job in answering(*given):
        with contextlib.suppress(MoonboxError):
            job()


def _document(pick: random.Random) -> tuple[Any, bytes]:
    text = _repeated("".join(pick.choices(_DOCUMENT, k=pick.randint(1, 40))), pick, 16 * MIB)
    return pick.choice((*get_args(Kind), "sitemap", "robots")), text.encode("latin-1")


def _read_document(extractor: Extractor, given: tuple[Any, bytes]) -> None:
    kind, data = given
    with contextlib.suppress(Unreadable):
        if kind == "robots":
            extractor.allows(data, "http://a.example/a")
        else:
            extractor.sitemap(data) if kind == "sitemap" else extractor.extract(data, kind)


def _schema(pick: random.Random) -> tuple[Any, Any]:
    make = pick.choice((schema_of, loops_of))
    while len(json.dumps(schema := make(pick))) > 64_000:
        pass
    return schema, value_of(pick)


def _python(pick: random.Random) -> str:
    return _repeated("".join(pick.choices(_PYTHON, k=pick.randint(1, 60))), pick, 100_000)


def _sql(pick: random.Random) -> str:
    def piece() -> str:
        return " ".join(pick.choices(_TOKENS, k=pick.randint(1, 12))) * pick.choice((1, 1, 1, 30, 300))

    whole = pick.choice(_WHOLE)
    return whole.format(*(piece() for _ in range(whole.count("{}"))))[:100_000]


def _yaml(pick: random.Random) -> str:
    return _repeated("".join(pick.choices(_YAML, k=pick.randint(1, 40))), pick, 16 * MIB)


def _repeated(text: str, pick: random.Random, most: int) -> str:
    """The text, once or many times; never made longer than `most`, which would stop the threads by itself."""
    return (text * min(pick.choice((1, 1, 1, 50, 2000)), most // max(1, len(text)) + 1))[:most]


class _Waits:
    """How long the thread that made it could have run and had no processor, where the kernel says so.

    To ask costs two system calls: with each of them the thread gives Python's lock away, and waits for it again.
    """

    def __init__(self) -> None:
        self._files: list[int] = []
        with contextlib.suppress(OSError):
            self._files = [os.open(f"/proc/{name}", os.O_RDONLY) for name in ("thread-self/schedstat", "stat")]

    def seconds(self) -> float:
        """Also those that a virtual machine's host took."""
        if not self._files:
            return 0.0
        of_thread, of_machine = (os.pread(file, 200, 0) for file in self._files)
        return int(of_thread.split()[1]) / 1e9 + int(of_machine.split()[8]) / os.sysconf("SC_CLK_TCK")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    minutes, seed, *_ = [*sys.argv[1:], *("10", str(int(time.time())))[len(sys.argv) - 1 :]]
    sys.exit(main(float(minutes), int(seed)))
