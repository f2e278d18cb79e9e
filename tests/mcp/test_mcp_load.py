"""Many servers at once: lazy ones cost nothing until they are called, and a slow one delays nobody."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_types import Tool

from moonbox.config.mcp import ServerSettings
from moonbox.mcp.upstreams.catalog import ToolCache, default_cache_folder
from moonbox.mcp.upstreams.manager import Upstreams
from tests.mcp.mcp_driver import stdio
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.mcp.mcp_driver import Driver, Session

EVERYTHING = Path(__file__).with_name("everything_server.py")
TEXT = Tool(name="test_simple_text", description="Text.", input_schema={"type": "object", "properties": {}})


def server(name: str) -> ServerSettings:
    command, *arguments = program(EVERYTHING, "stdio")
    return ServerSettings(name=name, command=command, args=tuple(arguments), lazy=True)


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
        wait_until(lambda: upstreams.pid("slow") is not None)  # it starts beside the calls
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
        assert _cached(session) == names, "the list says of which servers it is not sure"


def test_a_list_from_the_last_start_is_corrected(driver: Driver, tmp_path: Path, env: dict[str, str]) -> None:
    config = tmp_path / "moonbox.toml"
    command, *arguments = program(EVERYTHING, "stdio")
    config.write_text(
        f'[codemode]\nmode = "never"\n[mcp.servers.every]\ncommand = "{command}"\nargs = {json.dumps(arguments)}\n'
    )
    old = Tool(name="long_gone", description="Not there any more.", input_schema={"type": "object", "properties": {}})
    ToolCache(default_cache_folder()).put(replace(server("every"), cwd=tmp_path), [old])
    with driver.session(stdio("--config", config, env=env), mode="legacy") as session:
        assert list(session.tools()) == ["every__long_gone"]
        assert _cached(session) in (["every"], [])  # it may have started meanwhile
        session.news(beyond=0)
        wait_until(lambda: "every__test_simple_text" in session.tools())
        assert "every__long_gone" not in session.tools()
        assert _cached(session) == []


def test_a_lazy_server_stops_when_it_is_idle_and_starts_again(tmp_path: Path) -> None:
    cache = ToolCache(tmp_path)
    lazy = replace(server("lazy"), idle_seconds=0.2)
    cache.put(lazy, [TEXT])
    with Upstreams([lazy], cache=cache) as upstreams:
        for _ in range(2):
            assert upstreams.call("lazy.test_simple_text") == "This is a simple text response for testing."
            wait_until(lambda: upstreams.status("lazy").state == "idle")
            assert upstreams.pid("lazy") is None
            assert upstreams.status("lazy").restarts == 0, "it was not lost"


def test_of_two_tools_with_one_name_the_first_server_s_counts_and_this_is_told(tmp_path: Path) -> None:
    cache = ToolCache(tmp_path)
    other = Tool(name="other", description="Another.", input_schema={"type": "object", "properties": {}})
    servers = [replace(server(name), prefix="") for name in ("one", "two", "three")]
    for settings, tools in zip(servers, ([TEXT], [TEXT, other], [other]), strict=True):
        cache.put(settings, tools)
    with Upstreams(servers, cache=cache) as upstreams:
        assert [tool.path for tool in upstreams.toolbox] == ["test_simple_text", "other"]
        assert upstreams.status("one").problems == ()
        assert upstreams.status("two").problems == (
            "its tool 'test_simple_text' is not offered: the server 'one' has that name",
        )
        assert upstreams.status("three").problems == (
            "its tool 'other' is not offered: the server 'two' has that name",
        )


def _cached(session: Session) -> list[str]:
    listed = session.driver.run(session.client.list_tools())
    return (listed.meta or {}).get("moonbox/cached", [])
