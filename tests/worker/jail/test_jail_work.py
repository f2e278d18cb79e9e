"""The work of a worker goes on inside the jail."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from moonbox.worker.jail import describe_exit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the layers of Linux")
MIB = 1024 * 1024


@pytest.fixture(params=["zygote", "nobody"])
def either(request):
    return request.getfixturevalue(request.param)


def test_lua_computes(either):
    assert either.run("compute").value == sum(i % 7 for i in range(1, 1000001))


def test_memory_within_the_budget_is_there(either):
    assert either.run("much_memory", memory_slack=128 * MIB).value == [50 * MIB, 20000]


def test_frames_of_every_size_pass_both_ways(either):
    worker = either.start("echo", 3 * MIB)
    sent = os.urandom(3 * MIB)
    received = bytearray()
    worker.main.sendall(sent)
    while len(received) < len(sent):
        received += worker.main.recv(min(65536, len(sent) - len(received)))
    assert received == sent
    assert worker.end().value == 3 * MIB


def test_the_control_thread_stops_lua_in_the_main_thread(either):
    worker = either.start("endless_lua")
    assert worker.hear() == "running"
    worker.control.send(b"!")
    assert worker.end().value == "stopped, then 42"


def test_both_threads_take_turns(either):
    worker = either.start("threads_take_turns", 300)
    worker.control.sendall(b"." * 300)
    assert worker.end().value == 300


def test_clocks_randomness_and_usage_can_be_read(either):
    assert either.run("clocks").value is True


def test_every_way_of_waiting_works(either):
    assert either.run("waits").value == ["EAGAIN", "TimeoutError", "EAGAIN", "[]", "False", "False"]


def test_errors_have_their_text(either):
    expected = (
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    )
    assert either.run("exception_text").value == expected


def test_several_pieces_are_written_at_once(either):
    worker = either.start("write_vector")
    assert worker.hear() == "a vector"
    assert worker.end().value == 11


def test_a_stopped_worker_goes_on_where_it_was(either):
    """A wait that a stop signal cuts short is taken up by a system call of its own."""
    worker = either.start("stopped_in_poll")
    assert worker.hear() == "running"
    wait_for_state(worker.pid, "S")
    os.kill(worker.pid, signal.SIGSTOP)
    wait_for_state(worker.pid, "T")
    os.kill(worker.pid, signal.SIGCONT)
    wait_for_state(worker.pid, "S")
    worker.main.send(b"x")
    assert worker.end().value == "x"


def test_abort_is_told_from_a_crash(either):
    aborted = describe_exit(either.run("abort").status)
    assert aborted == "crashed: it found its own memory damaged, or gave up (SIGABRT)"
    crashed = describe_exit(either.run("crash").status)
    assert crashed == "crashed: it touched memory that is not its own (SIGSEGV)"


def test_the_interpreter_ends_in_the_ordinary_way(either):
    assert describe_exit(either.run("leave").status) == "ended with exit status 3"


def wait_for_state(pid: int, state: str) -> None:
    """The state of a process is in a file that cannot be waited on: look until it is so; pytest's timeout ends it."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
        os.sched_yield()
