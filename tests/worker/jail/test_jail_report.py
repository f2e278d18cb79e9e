"""The report of what holds on this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moonbox.worker import jail
from moonbox.worker.jail import probe

NAMES = [
    "session", "oom-score", "leftovers", "capabilities", "no-new-privileges", "no-debugger", "no-new-code",
    "landlock", "descriptors", "parent-death", "memory-limit", "cpu-limit", "file-limits", "process-limit", "seccomp",
]  # fmt: skip


def test_every_layer_is_reported_in_order_with_words():
    layers = jail.report()
    assert [layer.name for layer in layers] == NAMES
    assert all(layer.detail for layer in layers)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the layers of Linux")
def test_what_the_report_says_is_what_a_worker_gets(zygote):
    worker = zygote.run("session", cpu_seconds=60).layers
    assert {layer.name: layer.active for layer in jail.report()} == {name: on for name, (on, _) in worker.items()}


def test_a_probe_that_dies_is_told_for_the_layers_it_did_not_reach(monkeypatch):
    boot = """
import os, socket, sys
told = socket.socket(fileno=int(sys.argv[2]))
told.send(b'["session", true, "tried"]\\n["oom-sc')
os.kill(os.getpid(), 31)
"""
    monkeypatch.setattr(probe, "_BOOT", boot)
    first, *others = jail.report()
    assert first == jail.Layer("session", True, "tried")
    if sys.platform == "linux":
        assert {layer.detail for layer in others} == {
            "the probe did not get to it: killed by the system call filter (SIGSYS)"
        }
    assert not any(layer.active for layer in others)


def test_a_probe_that_cannot_start_is_told(monkeypatch):
    monkeypatch.setattr(probe, "_BOOT", "raise SystemExit('no such thing')")
    assert {layer.detail for layer in jail.report()} == {
        "the probe did not get to it: ended with exit status 1: no such thing"
    }


def test_a_layer_in_force_that_does_not_hold_is_not_called_active(monkeypatch):
    monkeypatch.setitem(probe._ATTEMPTS, "landlock", ("do as it likes", lambda: None))
    tried = probe._tried(jail.Layer("landlock", True, "ABI 7"))
    assert tried == jail.Layer("landlock", False, "in force, yet the process could do as it likes")
    assert probe._tried(jail.Layer("landlock", False, "old")) == jail.Layer("landlock", False, "old")


def test_the_reporting_process_is_left_as_it_was():
    script = (
        "from moonbox.worker import jail; jail.report(); open('/dev/null').close(); import os; os.fork() or os._exit(0)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=20).returncode == 0
