"""Kills the example `overnight` at writes to its journal in turn, and lets a new process bring it to its end.

    python -m tests.durable.nights JOURNAL before|after STEP FOLDER

Prints one line of JSON for each place: what the tools have done, and how the run ended.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

from moonbox import Sandbox
from moonbox.durable.store import Journal
from moonbox.runs import call_ledger
from tests.durable.crashing import in_child, killing, new_database

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "overnight.py"))


def main() -> None:
    place, side, step, folder = sys.argv[1:]
    call_ledger.HELD = call_ledger._LEAST_WAIT = 0.0  # the shortest wait gives the worker back
    kill_at = 1
    while True:
        world = EXAMPLE["World"](Path(folder, f"world-{kill_at}"))
        journal = new_database(place) if "://" in place else str(Path(folder, f"{kill_at}-{place}"))

        def host(kill: int, world: object = world, journal: str = journal) -> str:
            store = Journal(killing(journal, kill, side))
            with Sandbox(world.tools(), journal=store, approve=world.approve) as box:  # type: ignore[attr-defined]
                EXAMPLE["go_on"](box, world, night=0.05)
                known, replayed = store.known(EXAMPLE["RUN"]), box.replay(EXAMPLE["RUN"])
            return json.dumps({"state": known.state, "undone": known.undone, "value": replayed.value})

        status, said = in_child(lambda kill=kill_at, host=host: host(kill))
        killed = os.WIFSIGNALED(status)
        if killed:
            _, said = in_child(lambda host=host: host(0))
        print(json.dumps({"place": kill_at, "killed": killed, **json.loads(said), "world": world.notes()}), flush=True)
        if not killed:
            return
        kill_at += int(step)


if __name__ == "__main__":
    main()
