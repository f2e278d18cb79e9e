"""Faults of upstreams: killed, hung, flooding, slow, broken, gone; each costs itself and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, ToolError
from moonbox.config.mcp import ServerSettings
from moonbox.mcp.upstreams.manager import Upstreams
from moonbox.mcp.upstreams.status import Timing
from moonbox.mcp.upstreams.transport import ServerProcess
from moonbox.mcp.upstreams.upstream import MAX_ATTEMPTS
from tests.faults.processes import lives
from tests.mcp import peers
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


def server(name: str, **more: Any) -> ServerSettings:
    return ServerSettings(name=name, command=peers.server(name), **more)


def shell(name: str, script: str, **more: Any) -> ServerSettings:
    """A reference server behind a few lines of shell that spoil it."""
    return ServerSettings(name=name, command="/bin/sh", args=("-c", script), **more)


def started(*servers: ServerSettings, **timing: float) -> AbstractContextManager[Upstreams]:
    return Upstreams(servers, timing=Timing(**timing))


def test_a_server_killed_in_the_middle_of_a_script_is_told_and_comes_back() -> None:
    with started(server("everything"), server("memory")) as upstreams:
        assert upstreams.wait(100)
        killed = upstreams.pid("everything")
        assert killed is not None
        with Sandbox(upstreams.toolbox, globals={"kill": lambda: os.kill(killed, signal.SIGKILL)}) as box:
            run = box.run(
                """
                local before = tools.everything.echo{message = "a"}
                local results = parallel.settle{
                  function() return tools.everything.trigger_long_running_operation{duration = 20, steps = 2} end,
                  function()
                    for i = 1, 20 do tools.everything.echo{message = "the other call is there meanwhile"} end
                    kill()
                  end,
                }
                local lost = results[1].error
                local again = tools.everything.echo{message = "b"}
                return before, {lost.code, lost.message, lost.retryable}, again, tools.memory.read_graph{}
                """
            )
        assert run.error is None, run.error
        before, lost, again, graph = run.values
        assert (before, again, graph) == ("Echo: a", "Echo: b", {"entities": [], "relations": []})
        assert lost[0] == "unavailable"
        assert lost[1] == "the MCP server 'everything' was lost during this call: it was killed by SIGKILL"
        assert lost[2] is True, "a tool that only reads may be tried again"
        assert upstreams.status("everything").restarts == 1
        assert upstreams.pid("everything") != killed


def test_a_call_that_may_have_taken_effect_is_not_called_retryable(tmp_path: Path) -> None:
    memory = server("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    with started(memory) as upstreams:
        assert upstreams.wait(100)
        pid = upstreams.pid("memory")
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)

        def kill_during_the_call() -> None:
            wait_until(lambda: upstreams._find("memory").callbacks.calls)
            os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_during_the_call)
        killer.start()
        with pytest.raises(ToolError) as caught:
            upstreams.call("memory.create_entities", {"entities": []})
        killer.join()
    assert caught.value.message.endswith("it was killed by SIGKILL; the call may have taken effect")
    assert (caught.value.code, caught.value.retryable) == ("unavailable", False)


def test_a_server_that_hangs_is_given_up_and_replaced() -> None:
    with started(server("everything", timeout=1.5), server("memory"), health_check=0.5) as upstreams:
        assert upstreams.wait(100)
        hung = upstreams.pid("everything")
        assert hung is not None
        os.kill(hung, signal.SIGSTOP)
        with Sandbox(upstreams.toolbox, limits=Limits(timeout=40)) as box:
            run = box.run(
                """
                local ok, problem = pcall(tools.everything.echo, {message = "x"})
                return problem.code, problem.message, tools.memory.read_graph{}.entities
                """
            )
        assert run.values == ("timeout", "the MCP server 'everything' did not answer echo within 1.5 s", [])
        wait_until(lambda: upstreams.pid("everything") != hung and upstreams.status("everything").state == "ready")

        def answers() -> bool:
            with contextlib.suppress(ToolError):  # on a busy machine 1.5 s can be too short for any server
                return bool(upstreams.call("everything.echo", {"message": "y"}) == "Echo: y")
            return False

        wait_until(answers)
        with pytest.raises(ProcessLookupError):
            os.kill(hung, 0)


def test_floods_of_output_are_bounded_and_leave_the_others_alone() -> None:
    memory = peers.server("memory")
    with started(
        shell("stderr", f"yes 'a flood of words' >&2 & exec {memory}"),
        shell("stdout", f"yes noise | head -c 300000 & exec {memory}"),
        shell("endless", f"yes noise & exec {memory}"),  # which may drown out its own answers
        server("everything"),
    ) as upstreams:
        wait_until(lambda: all(upstreams.status(name).state == "ready" for name in ("stderr", "stdout", "everything")))
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(5):
            assert upstreams.call("everything.echo", {"message": "x"}) == "Echo: x"
        assert upstreams.call("stderr.read_graph")["entities"] == []
        assert upstreams.call("stdout.read_graph")["entities"] == []
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size < 50_000, "kilobytes of memory"


def test_what_cannot_start_says_why_and_costs_only_itself(serve_raw: Any) -> None:
    def liar(length: int) -> str:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        answer = head.encode() + b'{"jsonrpc": "2.0", "id": 1, "result": {}}'
        return f"{serve_raw(lambda peer: peer.sendall(answer)).url}/mcp"

    def flood(kind: str, begin: str = "") -> str:
        answer = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n{begin}data: {{".encode() + b" " * 1_100_000
        return f"{serve_raw(lambda peer: peer.sendall(answer)).url}/mcp"

    events, endpoint = "text/event-stream", "event: endpoint\ndata: /messages\n\nevent: message\n"
    with (
        _port() as port,
        started(
            ServerSettings(name="absent", command="no-such-program-anywhere"),
            shell("broken", "echo 'first line' >&2; echo 'KEY is not set' >&2; exit 3"),
            shell("mute", "sleep 60", start_timeout=0.5),
            ServerSettings(name="closed", url=f"http://127.0.0.1:{port}/mcp"),
            shell("endless", "tr '\\0' a < /dev/zero", max_message=1_000_000),
            ServerSettings(name="json", url=flood("application/json"), max_message=1_000),
            ServerSettings(name="events", url=flood(events, ": \r\n\r\n"), max_message=1_000),
            ServerSettings(name="sse", url=flood(events, endpoint), transport="sse", max_message=1_000),
            ServerSettings(name="sse_default", url=flood(events, endpoint), transport="sse"),
            ServerSettings(name="overlong", url=liar(10_000), start_timeout=5),
            ServerSettings(name="overshort", url=liar(5), start_timeout=5),
            shell("chatty", f"echo 'Welcome!'; echo '{{not json'; exec {peers.server('memory')}"),
            first_delay=100.0,
            max_delay=100.0,
        ) as upstreams,
    ):
        assert upstreams.wait(100)
        statuses = {status.name: status for status in upstreams.statuses()}
        assert statuses.pop("chatty").state == "ready"
        assert upstreams.call("chatty.read_graph")["entities"] == []
        assert {status.state for status in statuses.values()} == {"retrying"}
        assert statuses.pop("overlong").reason
        assert statuses.pop("overshort").reason
        assert {name: status.reason for name, status in statuses.items()} == {
            "absent": "there is no program 'no-such-program-anywhere'",
            "broken": "it exited with status 3; its last output: KEY is not set",
            "mute": "it did not answer within 0.5 s",
            "closed": "cannot connect: All connection attempts failed",
            "endless": "it sent a message of more than 1,000,000 bytes (max_message)",
            **dict.fromkeys(("json", "events", "sse"), "it sent a message of more than 1,000 bytes (max_message)"),
            "sse_default": 'it sent a message of more than 1,048,576 bytes (the limit of transport = "sse")',
        }
        with Sandbox(upstreams.toolbox) as box:
            run = box.run("local ok, problem = pcall(tools.broken.unavailable) return problem.code, problem.message")
        assert run.values[0] == "unavailable"
        reason, _, retry = run.values[1].rpartition("; ")
        assert reason == (
            "the MCP server 'broken' is not available: it exited with status 3; its last output: KEY is not set"
        )
        assert retry.startswith("next attempt in ")


def test_after_many_attempts_it_waits_until_it_is_called(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = tmp_path / "server"
    late = ServerSettings(name="late", command=str(program))
    with started(late, first_delay=0.01, max_delay=0.02) as upstreams:
        wait_until(lambda: upstreams.status("late").state == "failed")
        assert upstreams.status("late").attempts == MAX_ATTEMPTS
        program.symlink_to(peers.server("memory"))
        with pytest.raises(ToolError) as caught:
            upstreams.call("late.unavailable")
        assert caught.value.message == (
            f"the MCP server 'late' is not available after 6 attempts: there is no program '{program}'; "
            "trying once more now"
        )
        wait_until(lambda: upstreams.status("late").state == "ready")
        assert upstreams.call("late.read_graph")["entities"] == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"the MCP server 'late' is not available: there is no program '{program}'",  # once, not at each attempt
        "the MCP server 'late' is available again",
    ]


def test_a_slow_server_does_not_hold_up_the_others(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    slow = shell("slow", f"read line < {gate}; exec {peers.server('memory')}", start_timeout=100)
    with started(slow, server("memory")) as upstreams:
        wait_until(lambda: upstreams.status("memory").state == "ready")
        assert upstreams.status("slow").state == "starting"
        assert upstreams.call("memory.read_graph")["entities"] == []
        gate.write_text("go\n")
        wait_until(lambda: upstreams.status("slow").state == "ready")


@pytest.fixture
def web_server() -> Iterator[tuple[str, Any]]:
    """The reference server over streamable HTTP, and what starts it anew."""
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        environment = {**os.environ, "PORT": str(port)}
        command = [peers.server("everything"), "streamableHttp"]
        running.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        wait_until(lambda: _is_open(port))

    def stop() -> None:
        running[-1].kill()
        running[-1].wait()

    with _port() as port:
        start()
        yield f"http://127.0.0.1:{port}/mcp", (start, stop)
        stop()


def test_a_server_over_http_that_goes_away_is_found_again(web_server: tuple[str, Any]) -> None:
    url, (start, stop) = web_server
    with started(ServerSettings(name="web", url=url)) as upstreams:
        assert upstreams.wait(100)
        assert upstreams.status("web").state == "ready", upstreams.status("web").reason
        assert upstreams.call("web.get-sum", {"a": 1, "b": 2}) == "The sum of 1 and 2 is 3."
        stop()
        with pytest.raises(ToolError) as caught:
            upstreams.call("web.echo", {"message": "x"})
        assert caught.value.code == "unavailable"
        start()
        wait_until(lambda: upstreams.status("web").state == "ready")
        assert upstreams.call("web.echo", {"message": "y"}) == "Echo: y"


def test_a_process_is_ended_however_often_one_gives_up() -> None:
    pids: list[int | None] = []
    stubborn = shell("stubborn", "trap '' TERM; while :; do sleep 0.1; done")

    async def connect(up: asyncio.Event) -> None:
        process = ServerProcess(stubborn)
        async with process.connect():
            pids.append(process.pid)
            up.set()
            await asyncio.Event().wait()

    async def main() -> None:
        up = asyncio.Event()
        task = asyncio.create_task(connect(up))
        await up.wait()
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.2)
        assert task.cancelled()

    asyncio.run(main())
    [pid] = pids
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


HOST = """
import asyncio, sys
from moonbox.config.mcp import ServerSettings
from moonbox.mcp.upstreams.transport import ServerProcess

async def main():
    async with ServerProcess(ServerSettings(name="deaf", command="sh", args=("-c", sys.argv[1]))).connect():
        print("up", flush=True)
        if sys.argv[2] == "kill":
            await asyncio.Event().wait()
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""
DEAF = "trap '' TERM HUP INT; echo $$ >> pids; exec sleep 600"
CHILDREN = "sh deaf & setsid sh deaf & (setsid sh deaf &)"
"""In its group, in another session, and a daemon."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("end", ["kill", "close"])
def test_a_server_that_ignores_every_end_dies_with_the_host(end: str, tmp_path: Path) -> None:
    """Also what it has started, in another session or as a daemon, and also when the host is killed outright."""
    pids = tmp_path / "pids"
    (tmp_path / "deaf").write_text(DEAF)
    (tmp_path / "host.py").write_text(HOST)
    command = program(tmp_path / "host.py", f"{CHILDREN}\nexec sh deaf", end)
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"up\n"
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 4)
        started = [int(pid) for pid in pids.read_text().split()]
        assert all(lives(pid) for pid in started)
        if end == "kill":
            host.kill()
        host.communicate()
    try:
        wait_until(lambda: not any(lives(pid) for pid in started))
    finally:
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _port() -> Iterator[int]:
    """A port that nobody else is given meanwhile, on which nothing listens until a test lets something."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
