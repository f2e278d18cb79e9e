"""Kills a host at every write to its journal in turn, resumes in a new process, and compares with an undisturbed run.

    python -m tests.durable.crashing JOURNAL LANGUAGE sync|async|approved before|after FOLDER

Prints one line of JSON for each place: the value, and how often each call was made. With `approved`, payments need a
person, whom a note says that they were asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox import Answer, Context, Sandbox, tool
from moonbox.durable.backends import PostgresBackend, SqliteBackend
from moonbox.durable.store import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.audit.records import Run
    from moonbox.durable.backends import Backend

SCRIPTS = {
    "lua": """
        local seen, total = os.time(), 0
        print("at", math.random(1, 1000))
        local jobs = {}
        for id = 1, 3 do jobs[id] = function() return tools.get_expenses{employee_id = id} end end
        for id, items in ipairs(parallel(jobs)) do
          local sum = 0
          for _, item in ipairs(items) do sum = sum + item.amount end
          if sum > 10 then total = total + tools.pay{employee_id = id, amount = sum}.paid end
        end
        report = {total = total, spent = os.time() >= seen}
        return report
    """,
    "rhai": """
        print(`at ${timestamp().elapsed >= 0}`);
        let total = 0;
        let id = 1;
        for items in parallel([|| get_expenses(#{employee_id: 1}), || get_expenses(#{employee_id: 2}),
                               || get_expenses(#{employee_id: 3})]) {
          let sum = 0;
          for item in items { sum += item.amount; }
          if sum > 10 { total += pay(#{employee_id: id, amount: sum}).paid; }
          id += 1;
        }
        #{total: total, spent: true}
    """,
    "python": """
import random, time
print("at", random.randint(1, 1000), time.time() > 0)
total = 0
for id, items in enumerate(parallel_map(lambda i: get_expenses(employee_id=i), [1, 2, 3]), 1):
    amount = sum(item["amount"] for item in items)
    if amount > 10:
        total += pay(employee_id=id, amount=amount)["paid"]
report = {"total": total, "spent": True}
report
""",
}


class Killing:
    """A backend whose process dies at one of its writes."""

    def __init__(self, inner: Backend, place: int, side: str) -> None:
        self._inner = inner
        self._left = place
        self._side = side

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Any]:
        with self._dying(), self._inner.writing() as db:
            yield db

    def change(self, *statement: Any) -> int:
        with self._dying():
            return self._inner.change(*statement)

    @contextlib.contextmanager
    def _dying(self) -> Iterator[None]:
        self._left -= 1
        if self._left == 0 and self._side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if self._left == 0 and self._side == "after":
            os.kill(os.getpid(), signal.SIGKILL)


class World:
    """What the tools change: a file to which each call adds a line before it returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(what + "\n")

    def notes(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []

    def approve(self, call: Any) -> Any:
        self.note(f"ask {call.arguments['employee_id']} {call.question}")
        return call.allow(by="ann")

    def tools(self, policy: Any = "auto") -> list[Any]:
        @tool(hints={"read_only": True})
        def get_expenses(employee_id: int) -> list[dict[str, int]]:
            self.note(f"get {employee_id}")
            return [{"amount": employee_id * 5}, {"amount": employee_id * 4}]

        @tool(policy=policy)
        def pay(employee_id: int, amount: int, context: Context) -> dict[str, int]:
            self.note(f"pay {context.idempotency_key} {employee_id} {amount}")
            return {"paid": amount}

        return [get_expenses, pay]


def killing(place: str, kill: int, side: str) -> Any:
    """A backend whose process dies at that write."""
    return Killing(open_backend(place), kill, side)


def open_backend(place: str) -> Backend:
    return PostgresBackend(place) if "://" in place else SqliteBackend(place)


def new_database(server: str) -> str:
    """The address of an empty database on this server."""
    import psycopg

    name = f"crash_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.rpartition("/")[0] + f"/{name}"


def execute(box: Sandbox, world: World, language: str, mode: str, resuming: bool) -> Run:
    def decide(call: Any) -> Any:
        paid = [line.split() for line in world.notes() if line.startswith(f"pay {call.key} ")]
        return Answer.value({"paid": int(paid[0][3])}) if paid else "retry"

    found = [run.run_id for run in box.interrupted()] or [run.id for run in box.journal.runs()] if resuming else []
    if not found:
        return asyncio.run(box.arun(SCRIPTS[language])) if mode == "async" else box.run(SCRIPTS[language])
    run_id = found[0]
    return asyncio.run(box.aresume(run_id, decide)) if mode == "async" else box.resume(run_id, in_flight=decide)


def in_child(work: Any) -> tuple[int, str]:
    """Do it in a process of its own: how that ended, and what it said."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            os.write(writer, work().encode())
        except BaseException as problem:  # noqa: BLE001 - told to the parent
            os.write(writer, json.dumps({"problem": repr(problem)}).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    return os.waitpid(pid, 0)[1], text


def main() -> None:
    place, language, mode, side, folder = sys.argv[1:]
    kill_at = 0
    while True:
        world = World(Path(folder, f"world-{kill_at}"))
        journal = new_database(place) if "://" in place else str(Path(folder, f"{kill_at}-{place}"))

        def host(kill: int, resuming: bool, world: World = world, journal: str = journal) -> str:
            with Sandbox(
                world.tools("approve" if mode == "approved" else "auto"),
                language=language,
                journal=Journal(killing(journal, kill, side)),
                approve=world.approve,
            ) as box:
                run = execute(box, world, language, mode, resuming)
            return json.dumps({"value": run.value, "error": str(run.error or ""), "calls": len(run.calls)})

        status, said = in_child(lambda kill=kill_at, host=host: host(kill, resuming=False))
        killed = os.WIFSIGNALED(status)
        if killed:
            _, said = in_child(lambda host=host: host(0, resuming=True))
        print(json.dumps({"place": kill_at, "killed": killed, **json.loads(said), "world": world.notes()}), flush=True)
        if kill_at and not killed:
            return
        kill_at += 1


if __name__ == "__main__":
    main()
