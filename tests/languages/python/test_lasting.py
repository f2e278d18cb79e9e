"""What lasts in a Python Repl: checks and scripts leave little behind, and workers that are lost are replaced."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox import Limits, Sandbox, tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox import Repl

SLOW = "1" + "<1" * 30000
"""It takes a second or two to read."""


@tool
def count(id: int) -> int:
    """How many."""
    return 0


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox([count], language="python", limits=Limits(max_memory=16 * 1024 * 1024, timeout=60)) as box:
        yield box


@pytest.fixture
def repl(box: Sandbox) -> Iterator[Repl]:
    with box.repl() as repl:
        yield repl


def test_texts_that_are_checked_do_not_stay_in_memory(repl: Repl) -> None:
    assert repl.run("kept = 7").error is None
    for at in range(80):
        assert repl.check(f"# {'x' * 400_000}\nx{at} = 1") == ()
    assert repl.run("kept + 1").value == 8
    assert list(repl.globals()) == ["kept"]


def test_scripts_that_have_run_leave_no_trees_in_memory(repl: Repl) -> None:
    blocks = (f"def f{at}(x):\n    try:\n        return 1 / x\n    finally:\n        print(x)\n" for at in range(8))
    source = "".join(blocks) + "f0(1)"
    assert repl.run(source).ok
    before = resident(repl.worker_pid)
    for _ in range(40):
        assert repl.run(source).ok
    assert resident(repl.worker_pid) - before < 4 * 1024 * 1024


@pytest.mark.parametrize("body", ["d = {}", "d = {'a': count(id=1)}"])
@pytest.mark.parametrize("rest", ["", "del d['b']\n    "])
def test_a_function_of_an_earlier_script_has_its_lines(body: str, rest: str, repl: Repl) -> None:
    """Also one that was rewritten, after its text was forgotten, and after a check whose text has no number."""
    assert repl.run(f"\ndef broken(x):\n    {body}\n    d['b'] = 1\n    {rest}return (1 +\n      x / 0)\n1").ok
    assert repl.check("broken(") != ()
    for _ in range(2):
        error = repl.run("x = 1\n\nbroken(x)").error
        assert error is not None and error.line == 3
        line = 6 + bool(rest)
        assert [(frame.function, frame.line, frame.chunk) for frame in error.frames] == [("broken", line, "script")]


def test_a_check_after_much_was_printed_finds_what_is_wrong(repl: Repl) -> None:
    assert repl.run("print('x' * 200_000)").error is not None
    repl.globals()
    assert [found.message for found in repl.check("((")] == ["unexpected EOF while parsing"]


def killing(repl: Repl, name: Callable[[int], int], *, again: bool) -> threading.Event:
    """Until it is set: kill a process of a worker that reads a script; of each later worker too, if `again`."""
    done = threading.Event()

    def watch() -> None:
        killed: set[int | None] = set()
        while not done.wait(0.02):
            worker = repl.worker_pid
            if worker is not None and worker not in killed and (again or not killed):
                with suppress(OSError, IndexError):
                    fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
                    if int(fields[11]) >= 10:  # hundredths of a second of processor time
                        killed.add(worker)
                        os.kill(name(worker), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    return done


def test_a_worker_that_has_ended_is_replaced_before_a_check(repl: Repl) -> None:
    assert repl.run("x = 1").ok
    assert repl.worker_pid is not None
    os.kill(repl.worker_pid, signal.SIGKILL)
    assert [found.message for found in repl.check("((")] == ["unexpected EOF while parsing"]
    assert repl.run("2").value == 2


def test_a_worker_that_ends_in_the_middle_of_a_check_is_replaced(repl: Repl) -> None:
    done = killing(repl, lambda worker: worker, again=False)
    findings = repl.check(SLOW)
    done.set()
    assert [found.message for found in findings] == ["function too large: jump offset exceeds i16 range"]
    assert repl.run("2").value == 2


def test_a_text_that_ends_each_worker_is_a_finding(repl: Repl) -> None:
    done = killing(repl, lambda worker: worker, again=True)
    findings = repl.check(SLOW)
    done.set()
    message = "the engine cannot read the script: the worker was lost: the worker is gone"
    assert [(found.severity, found.line, found.message) for found in findings] == [("error", 1, message)]
    assert repl.run("2").value == 2


def test_a_text_that_ends_monty_itself_is_a_finding(repl: Repl) -> None:
    done = killing(repl, child_of, again=True)
    findings = repl.check(SLOW)
    done.set()
    assert [found.message.partition(":")[0] for found in findings] == ["the engine cannot read the script"]
    assert repl.run("2").value == 2


def resident(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def child_of(worker: int) -> int:
    """Monty's process, which the worker drives."""
    return int(Path(f"/proc/{worker}/task/{worker}/children").read_text().split()[0])
