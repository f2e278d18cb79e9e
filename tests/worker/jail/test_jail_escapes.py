"""Attempts to get out of the jail: every one is refused or ends the worker."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from moonbox.worker.jail import describe_exit
from moonbox.worker.jail.policy import ARCHITECTURES, HOSTILE, numbers
from tests.worker.jail.jail_inside import NUMBERS, UNNAMED

if sys.platform != "linux" or os.uname().machine not in ARCHITECTURES:
    pytest.skip("needs seccomp, on a machine whose system calls are known", allow_module_level=True)

MINE = numbers(ARCHITECTURES[os.uname().machine])
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_HUGETLB = 1, 2, 0x20, 0x40000


@pytest.mark.parametrize("name", sorted(set(UNNAMED) & set(NUMBERS)))
def test_a_call_that_the_policy_does_not_name_is_refused(zygote, name):
    ending = zygote.run("raw", name)
    assert ending.value == "EPERM"
    assert ending.status == 0


@pytest.mark.parametrize("name", [name for name in HOSTILE if name in MINE])
def test_a_hostile_call_ends_the_worker(zygote, name):
    ending = zygote.run("raw", name)
    assert ending.value is None
    assert os.WTERMSIG(ending.status) == signal.SIGSYS
    assert describe_exit(ending.status) == "killed by the system call filter (SIGSYS)"


def test_the_second_thread_is_under_the_filter_too(zygote):
    assert zygote.run("raw", "socket", 1, 1, 0, where="second thread").value == "EPERM"
    assert zygote.run("python", "read a file", where="second thread").value == "EPERM"


def test_a_hostile_call_in_the_second_thread_ends_the_whole_worker(zygote):
    ending = zygote.run("raw", "ptrace", 0, 0, 0, 0, where="second thread")
    assert ending.value is None
    assert os.WTERMSIG(ending.status) == signal.SIGSYS


@pytest.mark.parametrize(
    "what",
    [
        "read a file",
        "write a file",
        "list a folder",
        "read its environment",
        "delete a file",
        "make a socket",
        "fork",
        "kill the first process",
        "kill everyone",
        "become root",
        "leave its session",
        "duplicate a descriptor",
        "make a pipe",
    ],
)
def test_python_is_refused_to(zygote, what):
    assert zygote.run("python", what).value == "EPERM"


def test_python_cannot_start_a_thread(zygote):
    assert zygote.run("python", "start a thread").value == "RuntimeError: can't start new thread"


def test_python_cannot_import(zygote):
    assert zygote.run("python", "import a module").value == "ModuleNotFoundError: No module named 'this'"


def test_starting_a_program_ends_the_worker(zygote):
    ending = zygote.run("python", "start a program")
    assert describe_exit(ending.status) == "killed by the system call filter (SIGSYS)"


def test_signals_reach_only_the_worker_itself(zygote):
    assert zygote.run("signal_itself").value == "0"
    assert zygote.run("signal_other", os.getpid()).value == "EPERM"
    assert zygote.run("signal_other", zygote.process.pid).value == "EPERM"


def test_memory_can_be_had_but_not_as_code(zygote):
    ordinary = MAP_PRIVATE | MAP_ANONYMOUS
    assert zygote.run("map", PROT_READ | PROT_WRITE, ordinary).value.isdigit()
    assert zygote.run("map", PROT_READ | PROT_EXEC, ordinary).value == "EPERM"
    assert zygote.run("map", PROT_READ | PROT_WRITE | PROT_EXEC, ordinary).value == "EPERM"
    assert zygote.run("protect", PROT_READ).value == "0"
    assert zygote.run("protect", PROT_READ | PROT_EXEC).value == "EPERM"


@pytest.mark.parametrize(
    "flags",
    [MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB],
    ids=["shared", "file", "shared file", "huge pages"],
)
def test_only_private_memory_of_the_ordinary_kind_can_be_mapped(zygote, flags):
    assert zygote.run("map", PROT_READ | PROT_WRITE, flags).value == "EPERM"


def test_sockets_send_to_their_host_only(zygote):
    assert zygote.run("send_to_path", "/run/systemd/notify").value == "EPERM"
    assert zygote.run("send_out_of_band").value == "EPERM"
    assert zygote.run("receive_out_of_band").value == "EPERM"


@pytest.mark.parametrize("operation", [6, 7, 8, 11, 12, 13], ids=lambda number: f"operation {number}")
def test_priority_inheriting_locks_are_refused(zygote, operation):
    assert zygote.run("raw", "futex", 0, operation, 0, 0).value == "EPERM"


def test_other_processes_clocks_cannot_be_read(zygote):
    parents_clock = (~zygote.process.pid << 3) | 2
    assert zygote.run("raw", "clock_gettime", parents_clock & 0xFFFFFFFF, 0).value == "EPERM"


def test_settings_cannot_be_undone_by_prctl(zygote):
    set_death_signal, set_dumpable, set_no_new_privs = 1, 4, 38
    for option in (set_death_signal, set_dumpable, set_no_new_privs):
        assert zygote.run("raw", "prctl", option, 0, 0, 0, 0).value == "EPERM"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is a convention of x86_64")
def test_a_call_of_the_x32_convention_ends_the_worker(zygote):
    ending = zygote.run("raw_number", 0x40000000 | NUMBERS["getpid"])
    assert os.WTERMSIG(ending.status) == signal.SIGSYS


@pytest.mark.parametrize("number", [451, 471, 1000])
def test_a_call_newer_than_the_tables_looks_as_if_the_kernel_lacked_it(zygote, number):
    assert zygote.run("raw_number", number).value == "ENOSYS"


def test_limits_cannot_be_lifted(zygote):
    refused = "ValueError: not allowed to raise maximum limit"
    for name in ("RLIMIT_AS", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_CORE"):
        assert zygote.run("lift_limit", name).value == refused, name
    assert zygote.run("lift_limit", "RLIMIT_CPU", cpu_seconds=5).value == refused
    assert zygote.run("raw", "prlimit64", 0, 9, 1, 0).value == "EPERM"
    assert zygote.run("raw", "prlimit64", zygote.process.pid, 0, 1, 0).value == "EPERM"
