"""Wait statuses in words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from moonbox.worker.jail import describe_exit

posix = pytest.mark.skipif(not hasattr(os, "WIFSIGNALED"), reason="needs wait statuses")


@posix
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended by itself"),
        (3 << 8, "ended with exit status 3"),
        (signal.SIGSYS, "killed by the system call filter (SIGSYS)"),
        (signal.SIGKILL, "killed, by the host or because the machine ran out of memory (SIGKILL)"),
        (signal.SIGXCPU, "killed by its CPU time limit (SIGXCPU)"),
        (signal.SIGSEGV, "crashed: it touched memory that is not its own (SIGSEGV)"),
        (signal.SIGSEGV | 0x80, "crashed: it touched memory that is not its own (SIGSEGV)"),
        (signal.SIGTERM, "killed by SIGTERM"),
        (50, "killed by signal 50"),
        (0x137F, "did not end (wait status 4991)"),
    ],
)
def test_a_status_in_words(status, words):
    assert describe_exit(int(status)) == words


@posix
def test_a_real_status():
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import os; os.abort()"], stderr=subprocess.DEVNULL)
    status = os.waitpid(child.pid, 0)[1]
    child.returncode = 0
    assert describe_exit(status) == "crashed: it found its own memory damaged, or gave up (SIGABRT)"
