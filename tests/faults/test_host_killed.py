"""The host killed outright: nothing of it lives on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap

import pytest

from .processes import lives, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

HOST = textwrap.dedent(
    """
    import json, sys, threading, time
    from moonbox import Limits, Sandbox, tool

    @tool
    def hang() -> None:
        time.sleep(600)

    box = Sandbox([hang], limits=Limits(timeout=None), min_workers=2)
    repls = [box.repl() for _ in range(4)]
    for repl in repls:
        assert repl.run("x = 1").ok
    for repl, script in zip(repls, [
        "while true do end", "tools.hang()", "return ('a'):rep(50):find(('a-'):rep(20) .. 'b')",
    ]):
        threading.Thread(target=repl.run, args=(script,), daemon=True).start()
    time.sleep(0.2)
    pids = [box._pool._source.zygote_pid, *(repl.worker_pid for repl in repls)]
    pids += [link.pid for link in box._pool._spares]
    print(json.dumps(pids), flush=True)
    time.sleep(600)
    """
)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_no_process_survives_the_host(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as host:
        assert host.stdout is not None
        pids = json.loads(host.stdout.readline())
        assert len(pids) >= 5
        assert all(lives(pid) for pid in pids)
        host.send_signal(how)
        host.wait(20)
    wait_until(lambda: not any(lives(pid) for pid in pids), "a process survived its host")


def test_a_host_that_ends_without_closing() -> None:
    program = "from moonbox import Sandbox\nbox = Sandbox(min_workers=2)\nrepl = box.repl()\nrepl.run('x = 1')\n"
    program += "print(box._pool._source.zygote_pid, repl.worker_pid)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    pids = [int(pid) for pid in done.stdout.split()]
    wait_until(lambda: not any(lives(pid) for pid in pids), "a process survived its host")
