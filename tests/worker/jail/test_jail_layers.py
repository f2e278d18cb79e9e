"""The layers one by one, without the system call filter before them, and the limits."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from moonbox.errors import UsageError
from moonbox.worker import jail
from moonbox.worker.jail.config import PreparedJail
from moonbox.worker.jail.landlock import handled_rights
from moonbox.worker.jail.layers import Layer, Plan, Step, Unavailable, attempt, enforce, outcomes, plan
from moonbox.worker.jail.libc import Libc

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
MIB = 1024 * 1024


@linux
def test_every_layer_is_told(zygote):
    layers = zygote.run("session", cpu_seconds=60).layers
    assert list(layers) == [layer.name for layer in jail.report()]


@linux
def test_workers_share_the_zygotes_session_without_a_terminal(zygote):
    assert zygote.run("session", filter=False).value is True


@linux
def test_every_descriptor_but_the_two_sockets_is_closed(zygote):
    assert zygote.run("only_sockets_open").value is True


@linux
def test_descriptors_are_closed_without_close_range_too():
    script = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from moonbox.worker.jail.process import close_descriptors
from moonbox.worker.jail.layers import Plan, enforce
a, b = socket.socketpair()
high = os.dup2(0, 200)
keep = (b.fileno(), a.fileno())
layers = enforce(Plan([close_descriptors(None, keep)]))
open_now = []
for fd in range(256):
    try:
        os.fstat(fd)
        open_now.append(fd)
    except OSError:
        pass
a.send(repr((open_now == sorted(keep), layers[0].active)).encode())
os._exit(b.recv(100) != b"(True, True)")
"""
    source = jail.__file__.rpartition("/moonbox/")[0]
    assert subprocess.run([sys.executable, "-I", "-S", "-c", script, source], env={}, timeout=120).returncode == 0


@linux
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("read a file", "EACCES"),
        ("write a file", "EACCES"),
        ("list a folder", "EACCES"),
        ("read its environment", "EACCES"),
        ("delete a file", "EACCES"),
        ("connect to TCP", "EACCES"),
        ("kill the first process", "EPERM"),
        ("make a pipe", "worked: (0, 1)"),
    ],
)
def test_landlock_alone_refuses_to(zygote, what, error):
    needs_landlock(zygote, 6)
    assert zygote.run("python", what, filter=False).value == error


@linux
def test_landlock_alone_refuses_abstract_sockets_of_others(zygote):
    needs_landlock(zygote, 6)
    name = f"moonbox-jail-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0" + name)
        listening.listen()
        refused = "ECONNREFUSED" if zygote.run("session").layers["network-namespace"][0] else "EPERM"  # not there
        assert zygote.run("connect_abstract", name, filter=False).value == refused
        assert zygote.run("connect_abstract", name).value == "EPERM"


@linux
def test_the_descriptor_limit_alone_leaves_no_room(zygote):
    assert zygote.run("duplicates", filter=False).value == "EMFILE"


@linux
def test_root_keeps_no_capability(zygote):
    set_bounding_read, set_securebits_get = 23, 27
    assert zygote.run("capabilities", filter=False).value == [0] * 6
    if os.getuid() == 0:
        assert [zygote.run("prctl", set_bounding_read, n, filter=False).value for n in (0, 7, 21)] == [0, 0, 0]
        assert zygote.run("prctl", set_securebits_get, 0, filter=False).value == 0xEF


@linux
def test_no_new_privileges_and_no_debugger_are_set(zygote):
    get_dumpable, get_no_new_privs = 3, 39
    assert zygote.run("prctl", get_dumpable, 0, filter=False).value == 0
    assert zygote.run("prctl", get_no_new_privs, 0, filter=False).value == 1


@linux
def test_memory_does_not_become_code_even_without_the_filter(zygote):
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 3):
        pytest.skip("needs Linux 6.3")
    assert zygote.run("protect", 1 | 4, filter=False).value == "EACCES"


@linux
def test_whoever_is_not_root_has_every_layer(nobody):
    ending = nobody.run("limits")
    assert ending.value["RLIMIT_NPROC"] == [0, 0]
    assert ending.layers["process-limit"] == (True, "no new processes or threads")
    namespaces = ("user-namespace", "network-namespace", "pid-namespace")
    optional = ("cpu-limit", "no-new-code", "landlock", "separate-user", *namespaces)
    assert {name for name, (active, _) in ending.layers.items() if not active} <= set(optional)


@linux
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="is about root")
def test_workers_of_root_have_a_user_of_their_own(zygote):
    ending = zygote.run("python", "become root", filter=False)
    assert ending.value == "EPERM"
    active, detail = ending.layers["separate-user"]
    assert active
    assert detail.startswith("workers are user ")
    assert zygote.run("limits").layers["process-limit"] == (True, "no new processes or threads")


@linux
def test_workers_have_no_number_for_their_parent(zygote):
    ending = zygote.run("parent")
    if not ending.layers["pid-namespace"][0]:
        pytest.skip(ending.layers["pid-namespace"][1])
    assert ending.value == 0


@linux
def test_limits_are_set(zygote):
    limits = zygote.run("limits", cpu_seconds=7).value
    assert limits["RLIMIT_CPU"] == [7, 8]
    assert limits["RLIMIT_NOFILE"] == [2, 2]
    for name in ("RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
        assert limits[name] == [0, 0], name
    assert 160 * MIB < limits["RLIMIT_AS"][0] == limits["RLIMIT_AS"][1] < 512 * MIB


@linux
def test_memory_beyond_the_limit_is_an_error_that_python_and_lua_can_report(zygote):
    assert zygote.run("allocate", 512 * MIB).value == "MemoryError: "
    assert zygote.run("lua_allocate", 512 * MIB).value == "LuaMemoryError"
    assert zygote.run("lua_allocate", 20 * MIB).value == str(20 * MIB)


@linux
def test_cpu_time_ends_a_worker_that_nobody_kills(zygote):
    ending = zygote.run("burn_cpu", cpu_seconds=1)
    assert jail.describe_exit(ending.status) == "killed by its CPU time limit (SIGXCPU)"


@linux
def test_cpu_time_ends_a_worker_that_blocks_the_signal(zygote):
    ending = zygote.run("burn_cpu_deaf", where="only thread", cpu_seconds=1)
    assert os.WTERMSIG(ending.status) == signal.SIGKILL


@linux
def test_killing_the_zygote_kills_its_workers(fresh_zygote):
    workers = [fresh_zygote.start("endless_lua") for _ in range(3)]
    assert [worker.hear() for worker in workers] == ["running"] * 3
    fresh_zygote.process.kill()
    # The control sockets are still open: only the parent-death signal can end these.
    assert [worker.main.recv(1) for worker in workers] == [b""] * 3
    for worker in workers:
        worker.lines.close()
        worker.main.close()
        worker.control.close()


@linux
def test_a_worker_whose_zygote_is_gone_already_ends_at_once(zygote):
    ending = zygote.run("session", parent_pid=1)
    assert ending.value is None
    assert jail.describe_exit(ending.status) == "ended with exit status 1"


def test_config_refuses_what_cannot_work():
    prepared = PreparedJail.__new__(PreparedJail)
    good: dict[str, Any] = {"prepared": prepared, "keep_fds": (3, 4), "parent_pid": 1, "memory": 1}
    for changes, message in (
        ({"keep_fds": ()}, "keep_fds must name the worker's sockets, not be empty"),
        ({"keep_fds": (5, 2)}, "keep_fds must be 3 or more, not 2: what the C library prints would reach the host"),
        ({"memory": 0}, "memory must be at least 1 byte and memory_slack at least 0"),
        ({"memory_slack": -1}, "memory must be at least 1 byte and memory_slack at least 0"),
        ({"cpu_seconds": 0}, "cpu_seconds must be None or at least 1, not 0"),
    ):
        with pytest.raises(UsageError) as caught:
            jail.JailConfig(**good | changes)
        assert str(caught.value) == message


def test_a_platform_without_the_layers_is_told_why():
    """What macOS gets: the same steps, planned without the calls of Linux."""
    prepared = PreparedJail(None, ())
    config = jail.JailConfig(prepared=prepared, keep_fds=(3, 4), parent_pid=os.getpid(), memory=MIB)
    why = f"only Linux has it; this is {sys.platform}"
    layers = {layer.name: layer for layer in config.before.layers + config.after.layers}
    assert [layers[name] for name in ("landlock", "parent-death", "seccomp")] == [
        Layer(name, False, why) for name in ("landlock", "parent-death", "seccomp")
    ]
    assert layers["cpu-limit"] == Layer("cpu-limit", False, "not asked for: the host's clock ends a run")
    assert layers["descriptors"].active


def test_a_layer_that_fails_is_told_with_its_reason_and_the_others_go_on():
    made = []

    def fails() -> None:
        raise OSError(38, "Function not implemented")

    steps = Plan(
        [
            Layer("inherited", True, "from the zygote"),
            Step(Layer("first", True, "fine"), lambda: made.append(1)),
            Step(Layer("known", True, "fine"), fails, reasons={38: "the kernel is too old"}),
            Step(Layer("unknown", True, "fine"), fails),
            Step(Layer("value", True, "fine"), lambda: int("x")),
            Step(Layer("thread", True, "fine"), lambda: 77),
            Step(Layer("last", True, "fine"), lambda: 0, lambda: made.append(2)),
        ]
    )
    assert enforce(steps) == (
        Layer("inherited", True, "from the zygote"),
        Layer("first", True, "fine"),
        Layer("known", False, "the kernel is too old"),
        Layer("unknown", False, "Function not implemented"),
        Layer("value", False, "invalid literal for int() with base 10: 'x'"),
        Layer("thread", False, "thread 77 is under a filter of its own and could not be brought under this one"),
        Layer("last", True, "fine"),
    )
    assert made == [1, 2]


@linux
def test_a_system_call_that_fails_is_told_by_its_errno():
    close_range, backwards = 436, (5, 4)
    assert enforce(Plan([Step(Layer("x", True, ""), Libc().ready(close_range, *backwards))])) == (
        Layer("x", False, "Invalid argument"),
    )


def test_planning_and_attempting_tell_why_a_layer_is_missing():
    def missing():
        raise Unavailable("the kernel is too old")

    assert plan("x", missing) == Layer("x", False, "the kernel is too old")
    assert attempt("x", missing) == Layer("x", False, "the kernel is too old")
    assert attempt("x", lambda: "done") == Layer("x", True, "done")


@pytest.mark.parametrize(
    ("abi", "masks"),
    [
        (1, [0x1FFF]),
        (2, [0x3FFF]),
        (3, [0x7FFF]),
        (4, [0x7FFF, 0x3]),
        (5, [0xFFFF, 0x3]),
        (6, [0xFFFF, 0x3, 0x3]),
        (7, [0xFFFF, 0x3, 0x3]),
        (9, [0x1FFFF, 0x3, 0x3]),
        (10, [0x1FFFF, 0xF, 0x3]),
        (99, [0x1FFFF, 0xF, 0x3]),
    ],
)
def test_landlock_handles_all_that_each_kernel_knows(abi, masks):
    assert handled_rights(abi) == b"".join(mask.to_bytes(8, sys.byteorder) for mask in masks)


def test_importing_the_jail_brings_nothing_heavy():
    script = """
import sys
sys.path.insert(0, sys.argv[1])
import moonbox.worker.jail
heavy = set("typing dataclasses inspect signal subprocess json pathlib platform socket threading".split())
sys.exit(", ".join(sorted(heavy & set(sys.modules))) or 0)
"""
    source = jail.__file__.rpartition("/moonbox/")[0]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script, source], env={}, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def needs_landlock(zygote, abi: int) -> None:
    active, detail = zygote.run("session", filter=False).layers["landlock"]
    if not active or int(detail.split()[1].rstrip(":")) < abi:
        pytest.skip(f"needs Landlock of ABI {abi}: {detail}")


@linux
def test_what_the_native_part_tells_of_its_calls_becomes_layers():
    def call() -> None:
        raise AssertionError("made by the native part")

    first = Step(Layer("first", True, "on"), call, reasons={1: "not here"})
    second, third = Step(Layer("second", True, "on"), lambda: None), Layer("third", False, "missing")
    planned = Plan([first, second, third])
    assert outcomes(planned, [0, 0]) is planned.layers
    assert outcomes(planned, [1, 0]) == (Layer("first", False, "not here"), second.layer, third)
    failed = outcomes(planned, [0, -77])[1]
    assert (failed.active, failed.detail.startswith("thread 77 ")) == (False, True)


@linux
def test_a_plan_that_needs_python_has_no_native_form():
    libc = Libc()
    raw = partial(os.getpid)
    ready = Plan([Step(Layer("a", True, ""), libc.ready(39), libc.ready_prctl(4, 1))])
    assert len(jail.native_form(ready, libc) or b"") == 2 * 40
    assert jail.native_form(ready, None) is None
    assert jail.native_form(Plan([Step(Layer("a", True, ""), raw)]), libc) is None
    assert jail.native_form(Plan([]), libc) == b""


@linux
@pytest.mark.parametrize("native", ["1", "0"])
def test_a_layer_that_fails_after_the_fork_is_told(native):
    """Landlock takes 16 domains at most: the workers of a host that has used them up cannot enter theirs."""
    script = """
import ctypes, sys
sys.path[:0] = sys.argv[1:]
from moonbox import Sandbox
from moonbox.worker.jail.landlock import SYS_CREATE_RULESET, SYS_RESTRICT_SELF
from moonbox.worker.jail.libc import Libc
libc = Libc()
libc.prctl(38, 1)
rights = ctypes.create_string_buffer((1 << 12).to_bytes(8, "little"), 8)  # to make symbolic links: nobody here does
for _ in range(16):
    libc.syscall(SYS_RESTRICT_SELF, libc.syscall(SYS_CREATE_RULESET, ctypes.addressof(rights), 8, 0), 0)
with Sandbox(min_workers=0) as box, box.repl() as repl:
    assert repl.run("x = 2 return x").value == 2
    assert repl.globals() == {"x": "number"}
    for layer in repl.worker_jail:
        print(layer.name, layer.active, layer.detail, sep="|")
"""
    if not any(layer.name == "landlock" and layer.active for layer in jail.report()):
        pytest.skip("needs Landlock")
    done = subprocess.run(
        [sys.executable, "-c", script, *sys.path],
        env={"MOONBOX_NATIVE": native, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
    )
    layers = {line.split("|")[0]: line.split("|")[1:] for line in done.stdout.splitlines()}
    assert layers["landlock"][0] == "False", done.stderr
    assert "16 Landlock domains" in layers["landlock"][1]
    assert layers["seccomp"][0] == "True"
