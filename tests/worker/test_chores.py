"""Chores: what they may do, how they end, and that the next one works."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ArgumentError, UsageError
from moonbox.worker import chores as module
from moonbox.worker import sources
from moonbox.worker.chores import ChoreFailed, Chores, Grant
from moonbox.worker.zygote import LENGTH
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform != "linux":
    pytest.skip("the layers of Linux", allow_module_level=True)
MIB = 1024 * 1024
INSIDE, OTHER = "tests.worker.chores_inside", "tests.worker.other_chores"


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "a program"])
def chores(request: pytest.FixtureRequest) -> Iterator[Chores]:
    patch = pytest.MonkeyPatch()
    patch.setattr(module, "_OURS", ("tests.",))
    with Chores(INSIDE, packages=("tests",), memory=64 * MIB, forks=request.param) as chores:
        yield chores
    patch.undo()


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Chores]:
    monkeypatch.setattr(module, "_OURS", ("tests.",))
    with Chores(INSIDE, packages=("tests",), memory=64 * MIB) as chores:
        yield chores


def test_the_garbage_collector_may_come_in_a_request_to_the_zygote(
    forked: Chores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the children of dropped Chores there, which waited for the request to end."""
    dropped: Any = Chores(INSIDE, packages=("tests",), memory=64 * MIB)
    assert dropped.run("echo", 1) == 1
    ((_, child),) = dropped._idle
    source, serial = child._end.func.__self__, child._end.args[0].serial
    dropped.itself = dropped  # garbage, once it is dropped
    packed, collected = sources._packed, list[int]()

    def pack_and_collect(request: Any) -> bytes:
        collected.append(gc.collect())
        return packed(request)

    monkeypatch.setattr(sources, "_packed", pack_and_collect)
    del dropped
    ended = threading.Thread(target=forked.run, args=("echo", 2), kwargs={"fresh": True}, daemon=True)
    ended.start()
    ended.join(60)
    assert not ended.is_alive()
    assert collected
    assert forked.run("echo", 3) == 3
    with source._lock:
        assert source._exchange(("kill", serial), ()) == ("ok", None), "the zygote has waited for it"


@pytest.mark.parametrize("value", [None, True, 1, 2.5, "text", b"\xff", [1, [2]], {"a": {"b": None}}])
def test_data_passes(chores: Chores, value: Any) -> None:
    assert chores.run("echo", value) == value


@pytest.mark.parametrize(
    ("chore", "arguments", "reason"),
    [
        ("spin", (), "took longer than 0.5 seconds"),
        ("fill", (10**9,), "needed more than 64 MB"),
        ("large", (1001,), "answered with more than 1,000 bytes"),
        ("deep", (), "failed: the data is nested too deeply"),
        ("nothing", (), "failed: KeyError: 'nothing'"),
        ("read", ("/etc/passwd",), "failed: PermissionError: [Errno 1] Operation not permitted: '/etc/passwd'"),
        ("socket", (), "failed: PermissionError: [Errno 1] Operation not permitted"),
        ("fork", (), "failed: PermissionError: [Errno 1] Operation not permitted"),
        ("thread", (), "failed: RuntimeError: can't start new thread"),
    ],
)
def test_a_chore_that_fails_says_why_and_the_next_one_works(
    chores: Chores, chore: str, arguments: tuple[Any, ...], reason: str
) -> None:
    with pytest.raises(ChoreFailed) as caught:
        chores.run(chore, *arguments, seconds=0.5 if chore == "spin" else 30, answer=1000)
    assert caught.value.reason == reason
    assert caught.value.late == (chore == "spin")
    assert chores.run("echo", 1) == 1


@pytest.mark.parametrize(
    ("chore", "arguments", "how"),
    [
        ("abort", (), "crashed: it found its own memory damaged, or gave up (SIGABRT)"),
        ("exit", (7,), "ended with exit status 7"),
        ("execute", (), "killed by the system call filter (SIGSYS)"),
    ],
)
def test_how_a_child_ended(forked: Chores, chore: str, arguments: tuple[Any, ...], how: str) -> None:
    with pytest.raises(ChoreFailed) as caught:
        forked.run(chore, *arguments)
    assert caught.value.reason == f"ended without an answer: {how}"
    assert forked.run("echo", 1) == 1


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (LENGTH.pack(2**32 - 1), "answered with more than 100,000 bytes"),
        (LENGTH.pack(100_001), "answered with more than 100,000 bytes"),
        (LENGTH.pack(3) + b"abc", "sent an invalid answer"),
        (LENGTH.pack(1) + b"\xc0", "sent an invalid answer"),
        (LENGTH.pack(90_005) + b"\x92\xa2ok" + b"\x91" * 90_000 + b"\xc0", "sent an invalid answer"),
        (LENGTH.pack(7) + b"\x92\xa5error", "sent an invalid answer"),
        (LENGTH.pack(6) + b"\x92\xa2ok\xc1\xc1", "sent an invalid answer"),
        (b"\x01", "took longer than 0.5 seconds"),
    ],
)
def test_a_hijacked_child_cannot_harm_the_host(forked: Chores, forged: bytes, reason: str) -> None:
    for chore in ("echo", "forge"):
        if chore == "forge":
            with pytest.raises(ChoreFailed) as caught:
                forked.run(chore, forged, seconds=0.5, answer=100_000)
            assert caught.value.reason == reason
        assert forked.run("echo", 1) == 1


BOMBS = {
    "lists": b"\x90" * 3_000_000,
    "maps": b"\x80" * 3_000_000,
    "texts": b"\xa1x" * 3_000_000,
    "bytes": b"\xc4\x01x" * 3_000_000,
    "numbers": b"\xcd\xff\xff" * 3_000_000,
}


@pytest.mark.parametrize("kind", BOMBS)
def test_the_values_of_an_answer_are_counted_before_they_are_objects(forked: Chores, kind: str) -> None:
    """Three million empty lists are 3 MB on their way, and 200 MB in the host."""
    packed = b"\x92\xa2ok\xdd" + (3_000_000).to_bytes(4, "big") + BOMBS[kind]
    with pytest.raises(ChoreFailed, match=r"^answered with more than 2,000,000 values$"):
        forked.run("forge", LENGTH.pack(len(packed)) + packed)
    assert forked.run("echo", [[]] * 100_000) == [[]] * 100_000


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 65_535, 65_536])
def test_any_value_of_a_large_answer_is_counted(forked: Chores, size: int) -> None:
    values = ["x" * size, b"x" * size, list(range(size)), {str(n): n for n in range(size)}, 2.5, -1, -(2**40), 2**63]
    values = [*values, None, True, "x" * 300_000]
    assert forked.run("echo", values) == values


def test_one_zygote_has_the_modules_of_all_chores(forked: Chores) -> None:
    with Chores(OTHER, packages=("tests",)) as others, Chores("tests.worker.not_there") as broken:
        parents = {forked.run("parent"), others.run("parent"), forked.run("parent", fresh=True)}
        with pytest.raises(ChoreFailed, match=r"ModuleNotFoundError: No module named 'tests\.worker\.not_there'"):
            broken.run("parent")
        assert parents == {others.run("parent", fresh=True)}


def test_an_error_of_ours_passes_and_the_child_goes_on(chores: Chores) -> None:
    before = chores.run("pid")
    with pytest.raises(ArgumentError) as caught:
        chores.run("refuse", "no")
    assert (caught.value.message, caught.value.code) == ("no", "invalid")
    assert chores.run("pid") == before
    assert chores.run("pid", fresh=True) != before


def test_nothing_of_the_host_is_there(forked: Chores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hush")
    assert forked.run("environment").keys() <= {"LC_CTYPE"}
    assert forked.run("descriptors") == [3]


def test_only_what_is_granted_can_be_read_or_written(forked: Chores, tmp_path: Path) -> None:
    for name in ("granted", "other"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "other")
    granted, other, folder = (str(tmp_path / name) for name in ("granted", "other", "folder"))
    reading, writing = Grant(read=(granted, folder)), Grant(write=(granted,))
    assert forked.run("read", granted, grant=reading) == "granted"
    assert forked.run("list", folder, grant=reading) == ["link"]
    for chore, path, grant in (
        ("read", other, reading),
        ("read", f"{folder}/link", reading),
        ("list", str(tmp_path), reading),
        ("write", granted, reading),
        ("write", f"{folder}/new", reading),
        ("write", other, writing),
        ("read", "/proc/self/environ", reading),
    ):
        with pytest.raises(ChoreFailed, match=r"PermissionError: \[Errno 1?[13]\]"):
            forked.run(chore, path, grant=grant)
    assert forked.run("write", granted, grant=writing) == 1
    (tmp_path / "new").write_text("replaced")
    (tmp_path / "new").replace(granted)
    assert forked.run("read", granted, grant=reading) == "replaced"


def test_a_connection_is_there_before_the_jail_and_no_other_can_be_made(forked: Chores) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        grant = Grant(opening=(server.getsockname()[1],))
        taken: list[socket.socket] = []

        def accept() -> None:
            taken.append(server.accept()[0])
            taken[0].sendall(taken[0].recv(100).upper())

        thread = threading.Thread(target=accept)
        thread.start()
        assert forked.run("said", b"hello", grant=grant) == b"HELLO"
        thread.join()
        with pytest.raises(ChoreFailed, match="Operation not permitted"):
            forked.run("socket", grant=grant)
        taken[0].close()


def test_chores_run_side_by_side(forked: Chores) -> None:
    ended = threading.Event()

    def endless() -> None:
        with pytest.raises(ChoreFailed, match="took longer"):
            forked.run("spin", seconds=2)
        ended.set()

    threads = [threading.Thread(target=endless) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert forked.run("echo", "not delayed") == "not delayed"
    assert not ended.is_set()
    for thread in threads:
        thread.join()


def test_children_end_with_the_host() -> None:
    program = (
        "from moonbox.worker import chores; chores._OURS = ('tests.',); "
        f"c = chores.Chores({INSIDE!r}, packages=('tests',)); print(c.run('pid'), flush=True); "
        "c.run('spin', seconds=600)"
    )
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    assert host.stdout is not None
    child = int(host.stdout.readline())
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    host.stdout.close()
    wait_until(lambda: not _is_running(child))


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_only_functions_of_ours() -> None:
    with pytest.raises(UsageError, match="chores are functions of moonbox, not of 'os'"):
        Chores("os")


def test_the_layers_of_its_jail(forked: Chores) -> None:
    layers = {layer.name: layer for layer in forked.layers()}
    for name in ("seccomp", "landlock", "memory-limit", "descriptors", "no-new-privileges", "parent-death"):
        assert layers[name].active, layers[name]
