"""Monty, or the worker beside it, in other hands: what it says, and what its process can reach."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox
from moonbox.errors import MoonboxError
from moonbox.worker import protocol
from moonbox.worker.protocol import CHECKED, DEFINED, DONE, READY, frame

from .hijacked import done, hijacked_box, honest, says

if TYPE_CHECKING:
    from .hijacked import Peer

HERE = Path(__file__).parent
LIMITS = Limits(timeout=20)

# What explains errors, in the host


TYPES: list[Any] = [
    5,
    "text",
    {"a": 1},
    [5],
    [[]],
    [[1]],
    [[1, 2, 3, 4]],
    [["line", "column", "message"]],
    [[10**15, -(10**15), "x"]],
    [[1, 1, None]],
    [[True, False, ["x"]]],
    [[1, 1, "`" * 10**6]] * 50,
    [[1, 1, "fine"], 5, [2, 2]],
]


@pytest.mark.parametrize("types", TYPES, ids=range(len(TYPES)))
def test_lies_about_types(types: Any) -> None:
    said = {"kind": "syntax", "values": [], "extra": {"data": [{"types": types}]}}

    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(protocol.CHECK)
        peer.send(CHECKED, done(**said))
        peer.wait_for(protocol.RUN)
        peer.send(DONE, done(**said))
        peer.receive()

    with hijacked_box(hijacked, honest, limits=LIMITS, language="python") as box, box.repl() as repl:
        assert [(found.severity, len(found.message) < 20_000) for found in repl.check("1")] == [("error", True)]
        run = repl.run("1")
        assert run.error is not None and run.error.kind in ("check", "syntax")
        assert len(run.for_model()) < 40_000


MESSAGES = {
    "methods": "AttributeError: 'dict' object has no attribute '" + "x" * 10**6,
    "tools": "AttributeError: module 'tools.a' has no attribute 'b'" * 1000,
    "names": "NameError: name '" + "a" * 60 + "' is not defined",
    "callbacks": "RuntimeError: external function '" + "a." * 40 + "' cannot suspend",
    "syntax": "NotImplementedError: The monty syntax parser does not yet support " + "\x1b[2J" * 100,
    "places": {"line": 10**15, "column": -1},
    "text for a line": {"line": "1", "column": [1]},
}


@pytest.mark.parametrize("name", MESSAGES)
def test_lies_about_errors(name: str) -> None:
    lie = MESSAGES[name]
    said = {"message": lie} if isinstance(lie, str) else {"extra": lie, "message": "x"}
    end = frame(DONE, json.dumps(done(kind="runtime", values=[], **said)).encode())
    with hijacked_box(says(end), honest, limits=LIMITS, language="python") as box, box.repl() as repl:
        run = repl.run("1")
        assert run.error is not None and run.error.kind == "runtime"
        assert len(run.error.message) <= 4000 and run.error.line in (None, 10**15)


NONSENSE = {
    "another frame": frame(DEFINED, b"[]"),
    "a run's end": frame(DONE, json.dumps(done()).encode()),
    "not JSON": frame(CHECKED, b"{"),
    "a list": frame(CHECKED, b"[]"),
    "unknown kind": frame(CHECKED, json.dumps(done(kind="fine")).encode()),
    "deep": frame(CHECKED, json.dumps(done()).replace("{}", "[" * 500 + "]" * 500).encode()),
    "wide": frame(CHECKED, json.dumps(done(values=[1] * 100_000)).encode()),
    "giant": protocol.HEADER.pack(CHECKED, 2**32 - 1),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_instead_of_findings(name: str) -> None:
    def hijacked(peer: Peer) -> None:
        peer.send(READY, b"")
        peer.wait_for(protocol.CHECK)
        peer.raw(NONSENSE[name])
        peer.receive()

    with hijacked_box(hijacked, honest, limits=LIMITS, language="python") as box, box.repl() as repl:
        (finding,) = repl.check("1")
        assert finding.severity == "error" and "worker" in finding.message and len(finding.message) < 1_000
        assert repl.run("1").value == 42


# A program in Monty's place

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the jail of a program is Linux's")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    folder.chmod(0o755)
    source = HERE / "hijacked_program.c"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-o", folder / "escapes", source], check=True)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-DBABBLES", "-o", folder / "babbles", source], check=True)
    return folder


JAILED = """
import json, os, signal, sys
from moonbox.worker import jail
companion = jail.Companion(sys.argv[1])
companion.prepare(jail.prepare(for_forks=True))
(stdin, go), (heard, stdout), (result, told) = os.pipe(), os.pipe(), os.pipe()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
if (bystander := os.fork()) == 0:
    os.close(told), os.close(stdout)
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    signal.pause()
if os.fork() == 0:
    os.setpgid(0, 0)
    layers = companion.enter()
    pid = os.fork()
    if pid == 0:
        os.dup2(stdin, 0), os.dup2(stdout, 1)
        os.execve(companion.path, ["monty"], {})
    os.close(stdout)
    os.read(heard, 1)
    layers += companion.confine(pid, 64 << 20)
    os.write(go, b"!")
    text = b""
    while more := os.read(heard, 4096):
        text += more
    layers = {layer.name: layer.detail if layer.active else None for layer in layers}
    os.write(told, text + json.dumps([os.waitpid(pid, 0)[1], layers]).encode() + b"\\n")
    os._exit(0)
os.close(told), os.close(stdout)
while more := os.read(result, 4096):
    sys.stdout.write(more.decode())
print(os.waitpid(bystander, os.WNOHANG)[1])
os.kill(bystander, signal.SIGKILL)
"""
REFUSED = {
    "read a file": ("EMFILE", "EACCES"),
    "read the environment of another": ("EMFILE", "EACCES"),
    "read the C library": ("EMFILE", "EACCES"),
    "write a file": ("EMFILE", "EACCES"),
    "make a descriptor": ("EMFILE", "EPERM"),
    "make a pipe": ("EMFILE", "EPERM"),
    "connect": ("EPERM",),
    "local socket": ("EPERM",),
    "execute a shell": ("EACCES",),
    "raise its limit": ("EPERM",),
    "much memory": ("ENOMEM",),
    "namespaces by clone": ("EPERM", "EAGAIN"),
    "fork": ("EAGAIN", "EPERM"),
}


@needs_linux
def test_a_hijacked_program_cannot_get_out(programs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JAILED, programs / "escapes"], capture_output=True, text=True, timeout=60, check=True
    )
    *lines, end, bystander = done.stdout.splitlines()
    seen = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines}
    assert seen.keys() == REFUSED.keys()
    assert {what: came for what, came in seen.items() if came not in REFUSED[what]} == {}
    status, layers = json.loads(end)
    assert os.WTERMSIG(status) == signal.SIGSYS, "at ptrace"
    assert None not in layers.values()
    assert bystander == "0" or "signals to others" not in layers["landlock"]


@needs_linux
def test_a_program_that_babbles_ends_its_worker_only(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox(language="python") as sound:
        assert sound.run("1 + 1").value == 2
        monkeypatch.setenv("MONTY_BIN", str(programs / "babbles"))
        with Sandbox(language="python", limits=LIMITS) as box:
            try:
                error = box.run("1 + 1").error
            except MoonboxError as problem:
                error = problem  # type: ignore[assignment]
            assert error is not None
        assert sound.run("1 + 1").value == 2
