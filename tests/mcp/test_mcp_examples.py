"""The examples: they run, and their configuration is understood."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from moonbox.config import Config
from moonbox.config.mcp import servers_from_config

EXAMPLES = Path(__file__).parents[2] / "examples" / "mcp"


def test_the_client_that_asks() -> None:
    command = [sys.executable, str(EXAMPLES / "approvals.py"), "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    *questions, result = done.stdout.splitlines()
    assert questions.count("Allow a call of the tool 'order'?") == 2
    assert "  count = 47" in questions
    assert json.loads(result) == {"gear": "47 x gear ordered", "washer": "50 x washer ordered"}


def test_the_configuration() -> None:
    servers = {server.name: server for server in servers_from_config(Config.load(EXAMPLES / "moonbox.toml"))}
    assert list(servers) == ["time", "fetch", "files", "memory"]
    assert servers["files"].setting_of("write_file", "policy") == "approve"
    assert servers["memory"].lazy
