"""A host that forks itself: the fork can neither use nor end what belongs to its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

PROGRAM = textwrap.dedent(
    """
    import os, sys
    from moonbox import Sandbox
    from moonbox.errors import UsageError

    box = Sandbox(min_workers=1)
    repl = box.repl()
    repl.run("x = 1")
    pid = os.fork()
    if pid == 0:
        try:
            repl.run("return x")
        except UsageError as problem:
            print(problem)
        repl.close()
        box.close()
        with Sandbox(min_workers=0) as own:
            print("own", own.run("return 5").value)
        sys.exit(0)
    _, status = os.waitpid(pid, 0)
    run = repl.run("return x")
    print("parent", os.waitstatus_to_exitcode(status), run.value, run.state_lost, box.run("return 2").value)
    box.close()
    """
)


def test_a_fork_leaves_its_parents_workers_alone() -> None:
    done = subprocess.run([sys.executable, "-u", "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "this process was forked from the one that made the Sandbox: make a new Sandbox here",
        "own 5",
        "parent 0 1 False 2",
    ]
