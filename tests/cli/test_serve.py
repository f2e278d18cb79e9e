"""`moonbox serve` as a client starts it: what it says on which stream, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.audit.sqlite import SqliteSink
from moonbox.project.serving import listen
from tests.long import only_long
from tests.programs import program
from tests.runs import error_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from .conftest import Moonbox

pytest.importorskip("mcp")
import httpx2

from tests.mcp.mcp_driver import ACCEPT, HOLD, Peer, answer_in, bearer, modern, server_process

pytestmark = pytest.mark.timeout(600)  # a machine may be slow

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def lines(*messages: dict[str, Any]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


@pytest.fixture
def server(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A server with pipes, which is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: str, itself: bool = False) -> subprocess.Popen[str]:
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = ["-m", "moonbox", "serve", *args]
        command = [sys.executable, *command] if itself else program(*command)
        started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def ask(process: subprocess.Popen[str], *messages: dict[str, Any]) -> dict[str, Any]:
    """Send messages and read one answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines(*messages))
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def test_it_speaks_the_protocol_and_nothing_else(server: Any, tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text(
        "import os, sys\nprint('loading')\nos.write(1, b'from C\\n')\nout = sys.stdout\n"
        "def shout() -> str:\n    print('hey')\n    out.write('held on to')\n    return 'done'\n"
    )
    process = server("--tools", "kit.py:shout")
    assert ask(process, HELLO)["result"]["serverInfo"]["name"] == "moonbox"
    answer = ask(process, READY, call(2, "lua_repl", source_code="return tools.shout{}"))
    assert answer["result"]["content"] == [{"type": "text", "text": "done"}]
    process.stdin.close()
    assert process.wait(100) == 0
    assert process.stdout.read() == "", "not even when it ends"
    said = process.stderr.read()
    for text in ("loading", "from C", "hey", "held on to"):
        assert text in said


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_earlier_revision_is_spoken(server: Any, revision: str) -> None:
    process = server()
    hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": revision}}  # type: ignore[dict-item]
    assert ask(process, hello)["result"]["protocolVersion"] == revision
    answer = ask(process, READY, call(2, "lua_repl", source_code="return 6 * 7"))
    assert answer["result"]["content"] == [{"type": "text", "text": "42"}]


def test_it_ends_with_its_client_in_the_middle_of_a_script(server: Any) -> None:
    process = server()
    ask(process, HELLO)
    process.stdin.write(lines(READY, call(2, "lua_repl", source_code="while true do end")))
    process.stdin.flush()
    process.stdin.close()
    assert process.wait(100) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_everything_that_it_started(server: Any, number: signal.Signals) -> None:
    process = server(itself=True)
    ask(process, HELLO)
    ask(process, READY, call(2, "lua_repl", source_code="return 1"))
    children = _children(process.pid)
    assert children
    process.send_signal(number)
    assert process.wait(100) == 0
    assert process.stderr.read() == ""
    assert not [pid for pid in children if _is_alive(pid)]


def test_it_can_be_fed_from_a_file(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "in").write_text(lines(HELLO, READY, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
    with (tmp_path / "in").open() as source, (tmp_path / "out").open("w") as sink:
        done = subprocess.run(
            program("-m", "moonbox", "serve"),
            stdin=source,
            stdout=sink,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["tools"][0]["name"] == "lua_repl"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--port", "80"], "error: --port requires --http; without it, MCP is served on standard input and output"),
        (["--http", "--host", "0.0.0.0"], "error: serving on 0.0.0.0 requires a token: use --token or [serve] token"),
        (["--http", "--token", "short"], "error: a token must have at least 16 characters"),
        (
            ["--http", "--host", "nowhere.invalid", "--token", "x" * 16],
            "error: the host 'nowhere.invalid' has no address; choose another with --host",
        ),
        (
            ["--http", "--host", "203.0.113.7", "--token", "x" * 16],
            "error: 203.0.113.7 is not an address of this machine; choose another with --host",
        ),
        (
            ["--http", "--console", "--host", "0.0.0.0", "--token", "x" * 16],
            "error: --console on 0.0.0.0 requires the names by which clients reach this server: set hosts in [serve]",
        ),
        (["--config", "none.toml"], "error: the file 'none.toml' does not exist; `moonbox init` creates one"),
        (["--mcp-config", "none.json"], "error: there is no file none.json"),
        (["--tools", "kti"], "error: --tools kti: the module 'kti' does not exist"),
    ],
)
def test_wrong_use_is_told_in_one_line(moonbox: Moonbox, args: list[str], said: str) -> None:
    done = moonbox("serve", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_a_server_for_all_addresses_says_why_it_has_no_http_api(server: Any) -> None:
    process = server("--http", "--host", "0.0.0.0", "--port", "0", "--token", "x" * 16)
    said = "; the HTTP API requires the names by which clients reach this server: set hosts in [serve]\n"
    assert process.stderr.readline().endswith(said)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_small_answer_is_sent_at_once(host: str) -> None:
    """With Nagle's algorithm, the second packet of an answer waits 40 ms for the client's acknowledgement."""
    with listen(host, 0) as listening, socket.create_connection(listening.getsockname()[:2]):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("path", ["/run", "/mcp"])
def test_a_client_that_goes_away_within_its_body_is_one_line(server: Any, path: str) -> None:
    process = server("--http", "--port", "0", "-vv")
    port = int(next(match[1] for line in process.stderr if (match := re.search(r"http://127\.0\.0\.1:(\d+)/", line))))
    with socket.create_connection(("127.0.0.1", port)) as client:
        kinds = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{kinds}Content-Length: 100\r\n\r\n{{".encode())
    logged: list[str] = []
    for line in process.stderr:
        logged.append(line)
        if f"path={path} " in line:  # the request has ended
            break
    process.terminate()
    logged += process.stderr
    assert process.wait(100) == 0
    assert "Traceback" not in "".join(logged)
    assert [line for line in logged if f"path={path} " in line and "request" in line], logged


def test_a_port_that_is_taken_is_told(moonbox: Moonbox) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = moonbox("serve", "--http", "--port", port)
    assert done.returncode == 2
    assert done.stderr == f"error: 127.0.0.1:{port} is in use; choose another port with --port\n"


def test_a_setting_that_is_wrong_is_named(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text("[serve]\nprot = 1\n")
    done = moonbox("serve")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: moonbox.toml: [serve] unknown key 'prot'; did you mean 'port'?\n"


def _children(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(item) for item in done.stdout.split()]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("form", ["text", "json"])
def test_requests_runs_and_calls_are_logged_over_stdio(process: Moonbox, form: str) -> None:
    given = lines(HELLO, READY, call(2, "lua_repl", source_code="return tools.add{a = 1}"))
    done = process("serve", "--tools", "kit", "-v", "--log-format", form, input=given)
    assert done.returncode == 0, done.stderr
    if form == "json":
        logged = [json.loads(line) for line in done.stderr.splitlines()]
        assert all(line["time"].endswith("+00:00") for line in logged)
        assert {"method": "tools/call"}.items() <= next(x for x in logged if x.get("method") == "tools/call").items()
        assert any(line["logger"] == "moonbox.calls" and line["tool"] == "add" for line in logged)
        assert any(line["logger"] == "moonbox.runs" and line["result"] == "ok" for line in logged)
    else:
        assert re.search(r"INFO moonbox\.mcp: request method=tools/call result=ok ms=\d+\n", done.stderr)
        assert re.search(r"INFO moonbox\.calls: call run=\w{32} tool=add status=ok ms=\d+\n", done.stderr)
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", done.stderr)
        assert re.search(r"INFO moonbox\.runs: run id=\w+ result=ok calls=1 ms=\d+", done.stderr)


LISTED = {
    "plain": ("", False),
    "gone": ("hints = {destructive = true}", True),
    "ask": ('policy = "approve"', True),
    "only": ('policy = "direct"', True),
    "kept": ("", True),
}
"""Tool scripts by name: what their definition says, and whether tools/list has them, as docs/mcp.md says."""


@pytest.mark.parametrize("mode", ["always", "never"])
def test_tool_scripts_are_listed_as_the_documentation_says(process: Moonbox, tmp_path: Path, mode: str) -> None:
    for name, (setting, _) in LISTED.items():
        (tmp_path / f"{name}.lua").write_text(
            f"tool = {{description = 'It is {name}.', {setting}}}\nfunction tool.execute() return 1 end\n"
        )
    (tmp_path / "notes").mkdir()
    (tmp_path / "moonbox.toml").write_text(
        f"""
        [tools]
        folders = ["."]
        [knowledge.sources.notes]
        connector = "filesystem"
        path = "notes"
        [codemode]
        keep_visible = ["kept"]
        mode = "{mode}"
        """
    )
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    done = process("serve", input=lines(HELLO, READY, listing))
    answers = {answer.get("id"): answer for answer in map(json.loads, done.stdout.splitlines())}
    tools = {tool["name"]: tool["description"] for tool in answers[2]["result"]["tools"]}
    built_in = {"search", "get", "sources"}
    if mode == "never":
        assert set(tools) == {*LISTED, *built_in}
        return
    catalog = tools.pop("lua_repl")
    assert set(tools) == {name for name, (_, listed) in LISTED.items() if listed}
    for name, (_, listed) in LISTED.items():
        assert (f"\n- {name}(" in catalog) is not listed, name
    assert all(f"\n- {name}(" in catalog for name in built_in)


UPSTREAM = """
import sys
from mcp.server import MCPServer

server = MCPServer("clock")


@server.tool()
def now() -> int:
    '''The time.'''
    return 1


sys.stderr.write("first\\nsecond \\x1b[2J half")
sys.stderr.flush()
sys.stderr.write(" line\\n")
sys.stderr.flush()
server.run("stdio")
"""


def test_what_upstream_servers_write_is_logged(server: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    (tmp_path / "clock.py").write_text(UPSTREAM)
    command, *arguments = program("clock.py")
    (tmp_path / "moonbox.toml").write_text(
        f'[mcp.servers.clock]\ncommand = "{command}"\nargs = {json.dumps(arguments)}\n[audit]\nenabled = false\n'
    )
    process = server("-v", "--log-format", "json")
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(lines(HELLO, READY, call(2, "lua_repl", source_code="return tools.clock.now{}")))
    process.stdin.flush()
    while json.loads(process.stdout.readline()).get("id") != 2:
        pass
    process.stdin.close()
    logged = [json.loads(line) for line in process.stderr]
    said = [line["message"] for line in logged if line["logger"] == "moonbox.mcp.stderr"]
    assert said[:2] == ["first", "second \x1b[2J half line"]
    assert any(line["message"] == "server ready" and line["server"] == "clock" for line in logged)
    assert any(line["logger"] == "moonbox.calls" and line["tool"] == "clock.now" for line in logged)


@pytest.mark.parametrize("option", ["--http", "--console"])
def test_requests_runs_and_calls_are_logged_over_http(
    server: Callable[..., subprocess.Popen[str]], moonbox: Moonbox, option: str
) -> None:
    import httpx

    process = server(option, "--port", "0", "--tools", "kit", "-v", "--log-format", "json")
    assert process.stderr is not None
    kept = []
    for line in process.stderr:
        kept.append(line)
        if match := re.search(r"serving MCP on (http://\S+)/mcp", line):
            break
    assert match is not None
    script = {"source_code": "return tools.add{a = 1}"}
    answer = httpx.post(f"{match[1]}/run?key=hidden", json=script, timeout=30)
    assert answer.status_code == 200, answer.text
    process.send_signal(signal.SIGTERM)
    logged = [json.loads(line) for line in [*kept, *process.stderr]]
    by_logger = {line["logger"]: line for line in logged}
    assert {"method": "POST", "path": "/run", "status": 200}.items() <= by_logger["moonbox.http"].items()
    assert by_logger["moonbox.calls"]["tool"] == "add"
    assert by_logger["moonbox.runs"]["result"] == "ok"
    assert "hidden" not in json.dumps(logged)


def test_as_json_everything_on_standard_error_is_json(process: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import sys, warnings\nfrom moonbox import tool\nprint('printed')\nsys.stderr.write('one\\ntwo')\n"
        "warnings.warn('careful')\n@tool\ndef f() -> int: return 1\n"
    )
    done = process("serve", "--tools", "loud", "--log-format", "json", input="")
    logged = [json.loads(line) for line in done.stderr.splitlines()]
    said = [line["message"] for line in logged]
    assert said[:3] == ["printed", "one", "two" + said[2][3:]] and any("careful" in line for line in said)
    wrong = process("serve", "--tools", "nowhere", "--log-format", "json", input="")
    assert wrong.returncode == 2
    [line] = [json.loads(line) for line in wrong.stderr.splitlines()]
    assert line["level"] == "ERROR" and "nowhere" in line["message"]


def test_a_log_format_that_is_unknown(moonbox: Moonbox) -> None:
    done = moonbox("serve", "--log-format", "jsn", input="")
    assert (done.returncode, "Invalid value for '--log-format'" in done.stderr) == (2, True)


def test_broken_tool_scripts_are_reported(process: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "bad.lua").write_text("tool = {")
    (tmp_path / "moonbox.toml").write_text('[tools]\nfolders = ["tools"]\n')
    assert "WARNING moonbox.scripts: the tool script bad.lua is broken" in process("serve", input="").stderr
    done = process("doctor")
    assert done.returncode == 1
    assert "bad.lua cannot be loaded" in done.stdout


def _contains(log: Path, part: str) -> bool:
    return part in log.read_text()


def test_clients_that_go_away_are_no_errors(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    options = ("-v", "--log-format", "json")
    with server_process(*options, env={"MOONBOX_HOME": str(tmp_path / "home")}, cwd=tmp_path) as (url, _):
        for path in ("/run", "/mcp"):
            with socket.create_connection(("127.0.0.1", httpx2.URL(url).port or 0)) as client:
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                accept = "Accept: application/json, text/event-stream\r\n"
                client.sendall(f"{head}{accept}Content-Length: 1000\r\n\r\n{{".encode())
            wait_until(partial(_contains, log, json.dumps(path)))
        assert "Traceback" not in log.read_text()


TOKEN = "a-token-of-some-length"


@contextmanager
def three_calls(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Peer, list[Future[httpx2.Response]]]]:
    """A server in which a tool is called over HTTP, by an MCP client of the earlier protocol, and by one of today's.

    The tool returns when the file `go` exists.
    """
    (folder / "moonbox.toml").write_text(f'[serve]\ntoken = "{TOKEN}"\n[audit]\npath = "trail.db"\n')
    (folder / "kit.py").write_text(HOLD)
    sources = [f"return tools.hold('{folder / name}')" for name in ("http", "earlier", "current")]
    home = {"MOONBOX_HOME": str(folder / "home")}
    header = bearer(TOKEN)
    with ThreadPoolExecutor() as pool, server_process("--tools", "kit.py", env=home, cwd=folder) as (url, process):
        api = f"{url.removesuffix('/mcp')}/run"
        peer = Peer(url, TOKEN)
        tool = {"name": "lua_repl", "arguments": {"source_code": sources[1]}}
        current = modern("tools/call", {"name": "lua_repl", "arguments": {"source_code": sources[2]}})
        current["headers"] |= {**ACCEPT, **header}
        yield (
            process,
            peer,
            [
                pool.submit(httpx2.post, api, json={"source_code": sources[0]}, headers=header, timeout=100),
                pool.submit(peer.post, {"id": 7, "method": "tools/call", "params": tool}),
                pool.submit(httpx2.post, url, timeout=100, **current),
            ],
        )
        peer.close()


def _entered(folder: Path) -> bool:
    return all((folder / f"{name}.entered").exists() for name in ("http", "earlier", "current"))


def test_every_kind_of_client_gets_its_answer_from_a_server_that_is_stopped(tmp_path: Path) -> None:
    with three_calls(tmp_path) as (process, peer, answers):
        wait_until(lambda: _entered(tmp_path))
        with peer.http.stream("GET", peer.url, headers=peer.session) as notifications:
            process.terminate()
            for _ in notifications.iter_lines():
                pass  # until the server ends what no call waits for
        for name in ("http", "earlier", "current"):
            (tmp_path / name).touch()
        http, earlier, current = (answer.result(60) for answer in answers)
        assert process.wait(100) == 0
    assert (http.status_code, http.json()["result"]) == (200, "released")
    for answer in (answer_in(earlier), answer_in(current)):
        assert answer["result"]["content"][0]["text"].startswith("released")
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


@only_long
def test_a_request_that_the_end_of_the_server_stops_is_answered_and_recorded(tmp_path: Path) -> None:
    """It takes the time that the server leaves to requests."""
    with three_calls(tmp_path) as (process, _, answers):
        wait_until(lambda: _entered(tmp_path))
        process.terminate()
        http, earlier, current = (answer.result(60) for answer in answers)
        assert process.wait(100) == 0
    assert (http.status_code, http.json()["error"]["code"]) == (503, "unavailable")
    for answer in (answer_in(earlier), answer_in(current)):
        assert answer["error"]["message"] == "the server is being stopped, and the request with it"
    assert "Traceback" not in (tmp_path / "serve.log").read_text()
    with closing(SqliteSink(tmp_path / "trail.db")) as sink:
        kinds = [error_of(sink.get(summary.id)).kind for summary in sink.list()]
    assert kinds == ["cancelled"] * 3
