"""The host of a node: its memory, and who may connect to it."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from moonbox.cluster import entrance, wire
from moonbox.cluster.host import NodeHost, memory
from moonbox.cluster.source import HostConnection
from moonbox.cluster.wire import HostLost
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def container(root: Path, *, used: int, stat: str) -> Path:
    """What a container of 1,000 MiB on a machine with 4,000 MiB free shows of its memory."""
    files = {
        "proc/meminfo": f"MemTotal: 8192000 kB\nMemAvailable: {4000 * 1024} kB\n",
        "sys/fs/cgroup/memory.max": f"{1000 * MIB}\n",
        "sys/fs/cgroup/memory.current": f"{used * MIB}\n",
        "sys/fs/cgroup/memory.stat": stat,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")
    return root


def test_page_cache_is_free_memory(tmp_path: Path) -> None:
    stat = f"anon {100 * MIB}\nfile {850 * MIB}\nshmem {50 * MIB}\nactive_file {300 * MIB}\ninactive_file {500 * MIB}\n"
    root = container(tmp_path, used=990, stat=stat + f"slab_reclaimable {20 * MIB}\n")
    assert memory(root) == (830 * MIB, 1000 * MIB)  # shared memory is not given back


def test_a_container_that_says_less_of_its_memory(tmp_path: Path) -> None:
    root = container(tmp_path, used=990, stat="anon 5\n")
    assert memory(root) == (10 * MIB, 1000 * MIB)
    (root / "sys/fs/cgroup/memory.stat").unlink()
    assert memory(root) == (10 * MIB, 1000 * MIB)
    (root / "sys/fs/cgroup/memory.max").write_text("max\n", encoding="ascii")
    assert memory(root) == (4000 * MIB, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def test_a_wrong_token_is_refused() -> None:
    address, token, _ = NodeHost("127.0.0.1").where()
    with pytest.raises(HostLost, match=r"^the host of node abcdefgh does not answer: "):
        HostConnection("abcdefghijk", address, bytes(len(token)))
    for kind in (wire.CONTROL, wire.WORKER):
        with wire.connect(address, bytes(len(token)), kind, bytes(wire.NAME_SIZE), 60) as sock:
            assert closed(sock)


def test_strangers_are_few_and_do_not_keep_others_out() -> None:
    """800 connections without the token had 800 threads."""
    address, token, _ = NodeHost("127.0.0.1").where()
    threads = threading.active_count()
    strangers = [socket.create_connection(address, 60) for _ in range(200)]
    try:
        for number, each in enumerate(strangers):
            each.sendall(b"x" * (number % wire.GREETING.size))
        connection = HostConnection("abcdefgh", address, token, 60)
        assert connection.status.workers == 0
        connection.close()
        many = len(strangers) - entrance.MOST_STRANGERS
        wait_until(lambda: sum(closed(each, now=True) for each in strangers) >= many)
        wait_until(lambda: threading.active_count() <= threads)
    finally:
        for each in strangers:
            each.close()


def closed(sock: socket.socket, *, now: bool = False) -> bool:
    """Whether the other side has closed it."""
    sock.settimeout(0.0 if now else 60.0)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
