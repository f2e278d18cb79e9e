"""The official inspector in its command line form, over both transports."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from tests.mcp import peers
from tests.mcp.mcp_driver import http_server, moonbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def inspect(*args: str, folder: Path, fails: bool = False) -> Any:
    program, environment = peers.inspector()
    done = subprocess.run(
        [program, "--cli", *args], env=environment, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode != 0) is fails, done.stderr
    return json.loads(done.stdout) if not fails else done


def test_over_stdio_by_a_client_configuration(
    tmp_path: Path, env: dict[str, str], configured: Callable[..., Path]
) -> None:
    config = configured('[mcp.servers.time]\ncommand = "<time>"\n')
    command, args = moonbox("serve", "--config", config)
    entry = {"mcpServers": {"moonbox": {"command": command, "args": args, "env": env}}}
    (tmp_path / "mcp.json").write_text(json.dumps(entry))
    client = ("--config", str(tmp_path / "mcp.json"), "--server", "moonbox")
    listed = inspect(*client, "--method", "tools/list", "--strict", folder=tmp_path)
    assert [tool["name"] for tool in listed["tools"]] == ["lua_repl"]
    script = 'return tools.time.get_current_time{timezone = "UTC"}.timezone'
    call = ("--method", "tools/call", "--tool-name", "lua_repl", "--tool-arg", f"source_code={script}")
    called = inspect(*client, *call, folder=tmp_path)
    assert (called["isError"], called["structuredContent"]["value"]) == (False, "UTC")


def test_over_http_with_a_token(tmp_path: Path, env: dict[str, str]) -> None:
    token = "a-token-for-the-inspector"
    with http_server("--token", token, env=env, cwd=tmp_path) as url:
        client = ("--server-url", url, "--transport", "http", "--header", f"Authorization: Bearer {token}")
        call = ("--method", "tools/call", "--tool-name", "lua_repl", "--tool-arg", "source_code=return 6 * 7")
        assert inspect(*client, *call, folder=tmp_path)["content"] == [{"type": "text", "text": "42"}]
