"""Many servers at once: lazy ones cost nothing until they are called, and a slow one delays nobody."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_types import Tool

from moonbox.config.mcp import ServerSettings
from moonbox.mcp.upstreams.manager import Upstreams
from moonbox.mcp.upstreams.tools import ToolCache, default_cache_folder
from tests.mcp.mcp_driver import stdio

if TYPE_CHECKING:
    from tests.mcp.mcp_driver import Driver

EVERYTHING = Path(__file__).with_name("everything_server.py")
TEXT = Tool(name="test_simple_text", description="Text.", input_schema={"type": "object", "properties": {}})


def server(name: str) -> ServerSettings:
    return ServerSettings(name=name, command=sys.executable, args=(str(EVERYTHING), "stdio"), lazy=True)


def hanging(name: str) -> ServerSettings:
    return ServerSettings(name=name, command=sys.executable, args=("-c", "import time; time.sleep(1000)"))


def test_fifty_servers_start_as_they_are_called(tmp_path: Path) -> None:
    cache = ToolCache(tmp_path)
    servers = [server(f"s{number}") for number in range(50)]
    for settings in servers:
        cache.put(settings, [TEXT])
    slow = hanging("slow")
    cache.put(slow, [TEXT])
    with Upstreams([*servers, slow], cache=cache) as upstreams:
        assert upstreams.wait(100)
        assert len(upstreams.toolbox) == 51
        assert [status.state for status in upstreams.statuses()][:50] == ["idle"] * 50
        for name in ("s0", "s7", "s49"):
            assert upstreams.call(f"{name}.test_simple_text") == "This is a simple text response for testing."
        running = [status.name for status in upstreams.statuses() if upstreams.pid(status.name) is not None]
        assert running == ["s0", "s7", "s49", "slow"]
        assert upstreams.status("slow").state == "starting"


def test_the_first_list_of_tools_needs_no_server(driver: Driver, tmp_path: Path, env: dict[str, str]) -> None:
    config = tmp_path / "moonbox.toml"
    names = [f"slow{number}" for number in range(20)]
    config.write_text(
        '[codemode]\nmode = "never"\n'
        + "".join(
            f'[mcp.servers.{name}]\ncommand = "{sys.executable}"\nargs = ["-c", "import time; time.sleep(1000)"]\n'
            for name in names
        )
    )
    cache = ToolCache(default_cache_folder())  # in the home of this test
    for name in names:
        cache.put(replace(hanging(name), cwd=tmp_path), [TEXT])
    with driver.session(stdio("--config", config, env=env)) as session:
        assert list(session.tools()) == sorted(f"{name}__test_simple_text" for name in names)
