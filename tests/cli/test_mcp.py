"""`moonbox mcp list`, `call`, `doctor` and `install`, with reference servers."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.mcp import peers as reference_servers

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Moonbox

pytest.importorskip("mcp")
from mcp_types import Tool

from moonbox.config.mcp import ServerSettings
from moonbox.mcp.upstreams.catalog import ToolCache

pytestmark = pytest.mark.timeout(600)  # the first of them may have to install the servers


@pytest.fixture(scope="module")
def peers() -> Any:
    if (reason := reference_servers.missing()) is not None:
        pytest.skip(reason)
    reference_servers.install()
    return reference_servers


@pytest.fixture
def configured(tmp_path: Path, peers: Any) -> Path:
    path = tmp_path / "moonbox.toml"
    path.write_text(
        f"""
        [mcp.servers.files]
        command = "{peers.server("filesystem")}"
        args = ["{tmp_path}"]
        tools = {{ read_file = {{ policy = "approve" }}, no_such = {{}} }}
        [mcp.servers.memory]
        command = "{peers.server("memory")}"
        lazy = true
        [tools]
        disabled = ["*directory*", "memory.*"]
        [mcp.servers.absent]
        command = "no-such-program"
        [mcp.servers.later]
        command = "whatever"
        enabled = false
        """
    )
    return path


def test_list_shows_servers_and_states(moonbox: Moonbox, configured: Path) -> None:
    done = moonbox("mcp", "list")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert rows[0][:5] == ["server", "state", "tools", "protocol", "start"]
    states = {row[0]: row[1] for row in rows[2:6]}
    assert states.pop("absent") in ("retrying", "starting")  # it is tried again and again
    assert states == {"files": "ready", "memory": "ready", "later": "off"}
    assert rows[2][2:4] == ["14", "2025-11-25"]
    assert "there is no program 'no-such-program'" in done.stdout
    assert "the configuration names a tool 'no_such'" in " ".join(done.stdout.split())


def test_list_as_json_and_of_one_server(moonbox: Moonbox, configured: Path) -> None:
    data = json.loads(moonbox("mcp", "list", "--json").stdout)
    states = {item["name"]: (item["state"], item["tools"]) for item in data}
    assert states.pop("absent") in (("retrying", 0), ("starting", 0))  # it is tried again and again
    assert states == {"files": ("ready", 14), "memory": ("ready", 9), "later": ("off", 0)}
    tools = moonbox("mcp", "list", "files").stdout.splitlines()
    assert any(line.startswith("files.write_file(path: string, content: string)") for line in tools)
    assert [line.rsplit("  ", 1)[1] for line in tools if line.startswith("files.write_file(")] == [
        "[direct: destructive]"
    ]
    assert [line.rsplit("  ", 1)[1] for line in tools if line.startswith("files.read_file(")] == ["[approve]"]
    assert [line.rsplit("  ", 1)[1] for line in tools if line.startswith("files.list_directory(")] == ["[disabled]"]
    unknown = moonbox("mcp", "list", "fils")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("error: unknown MCP server 'fils'; did you mean 'files'?")


def test_list_shows_what_a_server_that_failed_wrote(moonbox: Moonbox, tmp_path: Path) -> None:
    log = "/home/someone/.npm/_logs/2026-11-17T16_10_01_123Z-debug-0.log"
    lines = ["npm error code E404", "npm error 404 Not Found", f"npm error A complete log can be found in: {log}"]
    script = "; ".join(f"echo '{line}' >&2" for line in lines)
    (tmp_path / "moonbox.toml").write_text(
        f'[mcp.servers.loud]\ncommand = "sh"\nargs = ["-c", "{script}; exit 1"]\n'
        '[mcp.servers.absent]\ncommand = "no-such-program"\n'
    )
    shown = moonbox("mcp", "list").stdout
    assert "it exited with status 1" in shown and shown.count("complete log") == 1
    assert "loud wrote:\n" + "".join(f"   | {line}\n" for line in lines) in shown
    assert "absent wrote" not in shown


def test_the_catalog_has_the_tools_of_servers_that_were_listed_before(moonbox: Moonbox, tmp_path: Path) -> None:
    program = (sys.executable, "-c", "import time; time.sleep(1000)")
    servers = [ServerSettings(name=name, command=program[0], args=program[1:]) for name in ("known", "unknown")]
    (tmp_path / "moonbox.toml").write_text(
        "".join(
            f"[mcp.servers.{server.name}]\ncommand = '{server.command}'\nargs = {json.dumps(server.args)}\n"
            for server in servers
        )
    )
    tool = Tool(name="clock", description="The time.", input_schema={"type": "object", "properties": {}})
    cache = ToolCache(tmp_path / "home" / "mcp-tools")
    cache.put(replace(servers[0], cwd=tmp_path), [tool])
    shown = moonbox("catalog", "--wait", "0").stdout
    assert "known.clock()" in shown
    missing = "the tools of {} are missing: the server did not start; see `moonbox mcp doctor`"
    assert [line for line in shown.splitlines() if "missing" in line] == [missing.format("unknown")]


def test_run_keeps_destructive_tools_from_scripts_as_serve_does(
    moonbox: Moonbox, configured: Path, tmp_path: Path
) -> None:
    path = tmp_path / "made.txt"
    script = f"return tools.files.write_file{{path = '{path}', content = 'x'}}"
    refused = moonbox("run", "-e", script)
    assert refused.returncode == 1
    message = "the tool 'files.write_file' may delete or overwrite; to let scripts call it, use --yes"
    assert (message in refused.stderr, path.exists()) == (True, False)
    allowed = moonbox("run", "--yes", "-e", script)
    assert allowed.returncode == 0, allowed.stderr
    assert path.read_text() == "x"


def test_call_prints_data(moonbox: Moonbox, configured: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    read = moonbox("mcp", "call", "files.read_text_file", f"path={tmp_path}/a.txt", "head=1")
    assert (read.returncode, json.loads(read.stdout)) == (0, {"content": "hello"})
    failed = moonbox("mcp", "call", "files.read_text_file", "path=/etc/passwd")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: Access denied - path outside allowed directories")


def test_call_says_what_is_wrong(moonbox: Moonbox, configured: Path) -> None:
    for args, said in (
        (["files.red_text_file"], "error: unknown tool 'files.red_text_file'; did you mean 'files.read_text_file'?"),
        (["files.list_directory"], "error: the tool 'files.list_directory' is disabled: [tools] of moonbox.toml"),
        (["files"], "error: write the tool as server.tool, not 'files'"),
        (["files.read_text_file", "path"], "error: ARGUMENT must be key=value or one JSON object, not 'path'"),
    ):
        done = moonbox("mcp", "call", *args)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(said)


def test_a_server_that_is_not_there_is_told_without_promises(moonbox: Moonbox, configured: Path) -> None:
    said = "error: the MCP server 'absent' is not available: there is no program 'no-such-program'\n"
    for args in (["call", "absent.x"], ["list", "absent"]):
        done = moonbox("mcp", *args)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    off = moonbox("mcp", "list", "later")
    assert (off.returncode, off.stderr) == (1, "error: the MCP server 'later' is disabled\n")


def test_doctor_names_what_is_wrong(moonbox: Moonbox, configured: Path) -> None:
    done = moonbox("mcp", "doctor")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("!! files: secure-filesystem-server 0.2.0, protocol 2025-11-25, 14 tools, started in ")
    assert lines[1] == "   - the configuration names a tool 'no_such' that it does not have"
    assert lines[2].startswith("ok memory: memory-server 0.6.3, protocol 2025-11-25, 9 tools, started in ")
    assert lines[3:5] == ["!! absent: there is no program 'no-such-program'", "   command or address: no-such-program"]


def test_servers_of_another_client_are_listed(moonbox: Moonbox, tmp_path: Path, peers: Any) -> None:
    entry = {"mcpServers": {"memory": {"command": peers.server("memory")}}}
    (tmp_path / "mcp.json").write_text(json.dumps(entry))
    data = json.loads(moonbox("mcp", "list", "--json", "--mcp-config", "mcp.json").stdout)
    assert [(item["name"], item["state"]) for item in data] == [("memory", "ready")]
    for word in ("list", "doctor"):
        done = moonbox("mcp", word)
        assert done.stdout.startswith("no MCP servers are configured; `moonbox mcp add NAME -- "), word
        assert done.returncode == 0


def test_install_prints_or_writes(moonbox: Moonbox, configured: Path, tmp_path: Path) -> None:
    printed = moonbox("mcp", "install", "--client", "cursor", "--print")
    entry = json.loads(printed.stdout)["mcpServers"]["moonbox"]
    assert entry["args"][-3:] == ["serve", "--config", str(configured)]
    assert not (tmp_path / ".cursor").exists()
    written = moonbox("mcp", "install", "--client", "cursor")
    path = tmp_path / ".cursor" / "mcp.json"
    assert written.stdout == f"created with the entry 'moonbox': {path}\n"
    assert written.stderr == "restart Cursor to use it\n"
    assert json.loads(path.read_text())["mcpServers"]["moonbox"] == entry
    again = moonbox("mcp", "install", "--client", "cursor")
    assert (again.stdout, again.stderr) == (f"the entry 'moonbox' exists already in {path}\n", "")
    (tmp_path / "x.json").write_text('{"mcpServers": {}}')
    changed = moonbox("mcp", "install", "--client", "cursor", "--mcp-config", "x.json")
    assert changed.stdout.startswith(f"replaced the entry 'moonbox' in {path}; backup: {path}.")
    project = moonbox("mcp", "install", "--client", "vscode", "--project", "--name", "box")
    assert project.stdout == f"created with the entry 'box': {tmp_path}/.vscode/mcp.json\n"
    listed = moonbox("mcp", "install", "--client", "list").stdout.splitlines()
    assert listed[0].split() == ["claude-desktop", f"{tmp_path}/.config/Claude/claude_desktop_config.json"]


def test_install_names_the_clients(moonbox: Moonbox) -> None:
    for args, said in (
        ([], "error: --client is required; known clients: claude-desktop, claude-code, cursor, "),
        (["--client", "curser"], "error: unknown client 'curser'; did you mean 'cursor'?\n"),
        (["--client", "windsurf", "--project"], "error: Windsurf has no configuration file for projects; leave out "),
    ):
        done = moonbox("mcp", "install", *args)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(said)


def test_install_refuses_a_broken_configuration(moonbox: Moonbox, tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").write_text("[mcp\n")
    done = moonbox("mcp", "install", "--client", "cursor")
    assert done.returncode == 2
    assert "is not valid TOML" in done.stderr
    (tmp_path / "moonbox.toml").write_text("[mcp.servers.x]\ncomand = 'x'\n")
    assert "unknown key 'comand'" in moonbox("mcp", "install", "--client", "cursor").stderr
    (tmp_path / "moonbox.toml").unlink()
    assert "there is no file x.json" in moonbox("mcp", "install", "--client", "cursor", "--mcp-config", "x.json").stderr
    assert not (tmp_path / ".cursor").exists()


def test_without_the_sdk_every_command_says_what_to_install(
    moonbox: Moonbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # as Python marks what cannot be imported
    (tmp_path / "moonbox.toml").write_text('[mcp.servers.x]\ncommand = "true"\n')
    wanted = "error: talking to MCP servers needs the package 'mcp'; install it with: pip install 'moonbox[mcp]'\n"
    for command in ("list", "call x.y", "doctor", "test x", "login x", "logout x"):
        done = moonbox("mcp", *command.split())
        assert (done.returncode, done.stderr) == (2, wanted), command
    assert moonbox("mcp", "remove", "x").returncode == 0
