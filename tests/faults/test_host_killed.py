"""The host killed outright: nothing of it lives on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.waiting import wait_until

from .processes import lives, parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

HOST = textwrap.dedent(
    """
    import json, threading
    from moonbox import Limits, Sandbox, tool

    started = threading.Event()

    @tool
    def hang() -> None:
        started.set()
        threading.Event().wait()

    box = Sandbox([hang], limits=Limits(timeout=None), min_workers=2)
    repls = [box.repl() for _ in range(4)]
    for repl in repls:
        assert repl.run("x = 1").ok
    for repl, script in zip(repls, [
        "while true do end", "tools.hang()", "return ('a'):rep(50):find(('a-'):rep(20) .. 'b')",
    ]):
        threading.Thread(target=repl.run, args=(script,), daemon=True).start()
    started.wait(60)
    print(json.dumps([*(repl.worker_pid for repl in repls), *box.workers.spare_pids]), flush=True)
    threading.Event().wait()
    """
)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_no_process_survives_the_host(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as host:
        assert host.stdout is not None
        pids = json.loads(host.stdout.readline())
        assert len(pids) >= 4
        pids.append(parent(pids[0]))
        assert all(lives(pid) for pid in pids)
        host.send_signal(how)
        host.wait(20)
    wait_until(lambda: not any(lives(pid) for pid in pids), "a process survived its host")


def test_a_host_that_ends_without_closing() -> None:
    program = "from moonbox import Sandbox\nbox = Sandbox(min_workers=2)\nrepl = box.repl()\nrepl.run('x = 1')\n"
    program += "from pathlib import Path\nstat = Path(f'/proc/{repl.worker_pid}/stat').read_text()\n"
    program += "print(stat.rpartition(')')[2].split()[1], repl.worker_pid)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    pids = [int(pid) for pid in done.stdout.split()]
    wait_until(lambda: not any(lives(pid) for pid in pids), "a process survived its host")
