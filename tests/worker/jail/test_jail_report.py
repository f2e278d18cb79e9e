"""The report of what holds on this machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from moonbox.worker import jail
from moonbox.worker.jail import probe

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs the layers of Linux")
NAMES = [
    "session", "oom-score", "leftovers", "user-namespace", "network-namespace", "pid-namespace",
    "separate-user", "capabilities", "no-new-privileges", "no-debugger", "no-new-code",
    "landlock", "descriptors", "parent-death", "memory-limit", "cpu-limit", "file-limits", "process-limit", "seccomp",
]  # fmt: skip


def test_every_layer_is_reported_in_order_with_words():
    layers = jail.report()
    assert [layer.name for layer in layers] == NAMES
    assert all(layer.detail for layer in layers)


@linux
def test_what_the_report_says_is_what_a_worker_gets(zygote):
    worker = zygote.run("session", cpu_seconds=60).layers
    report = {layer.name: layer.active for layer in jail.report()}
    assert report == {name: on for name, (on, _) in worker.items()}


def test_a_probe_that_dies_is_told_for_the_layers_it_did_not_reach(monkeypatch):
    boot = """
import os
os.write(1, b'["session", true, "tried"]\\n["oom')
os.kill(os.getpid(), 31)
"""
    monkeypatch.setattr(probe, "BOOT", boot)
    first, *others = jail.report()
    assert first == jail.Layer("session", True, "tried")
    if sys.platform == "linux":
        assert {layer.detail for layer in others} == {
            "the probe did not get to it: killed by the system call filter (SIGSYS)"
        }
    assert not any(layer.active for layer in others)


def test_a_probe_that_cannot_start_is_told(monkeypatch):
    monkeypatch.setattr(probe, "BOOT", "raise SystemExit('no such thing')")
    assert {layer.detail for layer in jail.report()} == {
        "the probe did not get to it: ended with exit status 1: no such thing"
    }


def test_a_layer_in_force_that_does_not_hold_is_not_called_active(monkeypatch):
    monkeypatch.setitem(probe.ATTEMPTS, "landlock", ("do as it likes", lambda: None))
    tried = probe.verified(jail.Layer("landlock", True, "ABI 7"))
    assert tried == jail.Layer("landlock", False, "in force, yet the process could do as it likes")
    assert probe.verified(jail.Layer("landlock", False, "old")) == jail.Layer("landlock", False, "old")


def test_the_reporting_process_is_left_as_it_was():
    script = (
        "from moonbox.worker import jail; jail.report(); open('/dev/null').close(); import os; os.fork() or os._exit(0)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == 0


def in_container(policy: str) -> dict[str, tuple[bool, str]]:
    """The report of a process under a system call policy such as containers have, which answers the layers' calls."""
    script = f"""
import ctypes, errno, json, os, struct, sys
from moonbox.worker import jail
from moonbox.worker.jail import seccomp
from moonbox.worker.jail.libc import Libc
from moonbox.worker.jail.policy import ARCHITECTURES, numbers
own = numbers(ARCHITECTURES[os.uname().machine])["seccomp"]
code = seccomp.Assembler()
code.load(seccomp.NUMBER)
for number in (own, 444):
    code.if_equal(number, then="answer")
code.give(seccomp.ALLOW)
code.label("answer")
code.give({policy})
program = code.assemble()
buffer = ctypes.create_string_buffer(program, len(program))
header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
libc = Libc()
libc.prctl(38, 1)
libc.syscall(own, 1, 0, ctypes.addressof(header))
print(json.dumps(jail.report()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120, check=True)
    return {name: (active, detail) for name, active, detail in json.loads(done.stdout)}


@linux
def test_a_container_that_refuses_the_layers_is_told():
    layers = in_container("seccomp.ERRNO | errno.EPERM")
    assert layers["landlock"] == (False, "refused by the container's system call policy")
    assert layers["seccomp"] == (False, "refused by the container's system call policy")
    assert layers["memory-limit"][0]


@linux
def test_a_container_that_hides_the_layers_is_told():
    layers = in_container("seccomp.ERRNO | errno.ENOSYS")
    landlock = "the kernel is older than Linux 5.13 or built without Landlock, or a container's policy hides it"
    assert layers["landlock"] == (False, landlock)
    assert layers["seccomp"] == (False, "the kernel is older than Linux 3.17, or a container's policy hides the call")


@linux
def test_a_container_that_kills_for_the_layers_is_told():
    layers = in_container("seccomp.KILL_PROCESS")
    why = (False, "the probe did not get to it: killed by the system call filter (SIGSYS)")
    assert layers["no-new-privileges"][0]
    assert layers["landlock"] == layers["memory-limit"] == layers["seccomp"] == why
