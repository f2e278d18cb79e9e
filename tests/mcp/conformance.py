"""The protocol's own conformance suite, run against moonbox from both sides.

`python tests/mcp/conformance.py` runs everything and writes the tables of docs/mcp-conformance.md; the tests compare
their own runs with these tables.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.mcp import peers
from tests.mcp.mcp_driver import server_process
from tests.programs import program

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "mcp-conformance.md"
SERVER_RUNS = ("alone", "everything", "everything-earlier", "everything-both", "moonbox")
"""The everything-server by itself; moonbox before it, in the current protocol, before one of the earlier protocol, and
before one of both that asks its client only in the earlier one; moonbox by itself."""
_FLAGS = {"everything-earlier": ["--legacy"], "everything-both": ["--asks"]}
CLIENT_SCENARIOS = (
    *("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"),
    *("auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd"),
    *("auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined"),
    *("auth/scope-step-up", "auth/scope-retry-limit", "auth/token-endpoint-auth-basic"),
    *("auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none", "auth/pre-registration"),
    *("auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"),
    *("auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported"),
    *("auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/cross-app-access-complete-flow"),
)
_TIMED = "sse-retry"
"""It fails where a client is half a second late."""
_LINE = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.M)
_COUNTS = re.compile(r"Passed: (\d+)/(\d+), (\d+) failed")
_BEHIND = """
[codemode]
mode = "never"

[mcp.servers.everything]
url = "{url}"
prefix = ""
sampling = true
"""


def run_server(url: str) -> dict[str, str]:
    """Every server scenario: `passed`, or `failed`."""
    suite, environment = peers.conformance()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [suite, "server", "--url", url, "--suite", "all"],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    results = {
        name: "failed" if int(failed) else "passed" if int(passed) else "no checks"
        for name, passed, failed in _LINE.findall(done.stdout)
    }
    assert results, done.stdout + done.stderr
    return results


def run_clients() -> dict[str, str]:
    """Every client scenario, with moonbox's connection as the client: `passed`, or `failed`.

    One process of the suite runs all of them side by side, which is a quarter of the work of a process for each.
    """
    output = _client_output("--suite", "all")
    results = {
        name: "passed" if failed == "0" and passed != "0" else "failed"
        for name, passed, failed in _LINE.findall(output)
    }
    assert results, output
    for _ in range(5):
        if results[_TIMED] == "passed":
            break
        counts = _COUNTS.search(_client_output("--scenario", _TIMED))  # a busy machine comes late; by itself, less so
        results[_TIMED] = "passed" if counts and counts[3] == "0" and counts[1] != "0" else "failed"
    return results


def _client_output(*selection: str) -> str:
    suite, environment = peers.conformance()
    client = " ".join(program(HERE / "conformance_client.py"))
    command = [suite, "client", *selection, "--command", client, "--timeout", "120000"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=250, check=False
        )
    return done.stdout + done.stderr


@contextlib.contextmanager
def server_for(run: str, folder: Path) -> Iterator[str]:
    """The address of the server of one of SERVER_RUNS."""
    with contextlib.ExitStack() as stack:
        if run == "moonbox":
            yield stack.enter_context(_moonbox("", folder))
            return
        url = stack.enter_context(_everything(*_FLAGS.get(run, ())))
        if run != "alone":
            protocol = 'protocol = "current"\n' if run == "everything" else ""
            url = stack.enter_context(_moonbox(_BEHIND.format(url=url) + protocol, folder))
        yield url.replace("127.0.0.1", "localhost")


@contextlib.contextmanager
def _moonbox(config: str, folder: Path) -> Iterator[str]:
    (folder / "moonbox.toml").write_text(f"[audit]\nenabled = false\n{config}")
    with server_process(env={"MOONBOX_HOME": str(folder / "home"), "MOONBOX_TRUST": "1"}, cwd=folder) as (url, _):
        yield url.replace("127.0.0.1", "localhost")


@contextlib.contextmanager
def _everything(*flags: str) -> Iterator[str]:
    """The everything-server, which writes its address."""
    command = program(HERE / "everything_server.py", "http", "0", *flags)
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout as output:
        try:
            yield output.readline().strip()
        finally:
            process.kill()
            process.wait(30)


def expected(table: str) -> dict[str, dict[str, str]]:
    """The results that the page shows, by scenario and column."""
    part = PAGE.read_text().split(f"<!-- {table} -->")[1].split("<!-- end -->")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in part.splitlines() if "|" in line]
    head, _, *body = rows
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def _write_servers() -> None:
    servers: dict[str, dict[str, str]] = {}
    for run in SERVER_RUNS:
        with tempfile.TemporaryDirectory() as folder, server_for(run, Path(folder)) as url:
            servers[run] = run_server(url)
    rows = [f"| scenario | {' | '.join(SERVER_RUNS)} |", "|---|" + "---|" * len(SERVER_RUNS)]
    rows += [
        f"| `{name}` | {' | '.join(servers[run].get(name, 'failed') for run in SERVER_RUNS)} |"
        for name in servers["alone"]
    ]
    PAGE.write_text(_replaced(PAGE.read_text(), "server scenarios", rows))


def _write_clients() -> None:
    results = run_clients()
    rows = ["| scenario | moonbox |", "|---|---|", *(f"| `{name}` | {results[name]} |" for name in CLIENT_SCENARIOS)]
    PAGE.write_text(_replaced(PAGE.read_text(), "client scenarios", rows))


def _replaced(text: str, table: str, rows: list[str]) -> str:
    before, _, rest = text.partition(f"<!-- {table} -->")
    after = rest.partition("<!-- end -->")[2]
    return f"{before}<!-- {table} -->\n\n" + "\n".join(rows) + f"\n\n<!-- end -->{after}"


if __name__ == "__main__":
    peers.install()
    _write_servers()
    _write_clients()
