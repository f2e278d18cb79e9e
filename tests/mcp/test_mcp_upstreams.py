"""Upstreams: the reference servers behind a toolbox, in both protocols."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, ToolError
from moonbox.config.mcp import ServerSettings, ToolRule
from moonbox.errors import UsageError
from moonbox.mcp.upstreams.catalog import ToolCache
from moonbox.mcp.upstreams.manager import Upstreams
from tests.mcp import peers
from tests.mcp.mcp_driver import stdio
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.mcp.mcp_driver import Driver, Session


def settings(name: str, *args: str, server: str | None = None, **more: Any) -> ServerSettings:
    return ServerSettings(name=name, command=peers.server(server or name), args=args, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    (path / "a.txt").write_text("one\ntwo\n")
    subprocess.run(["git", "init", "-q", str(path / "repo")], check=True)
    return path


@pytest.fixture(scope="module")
def upstreams(folder: Path) -> Iterator[Upstreams]:
    """All seven reference servers, started together."""
    servers = [
        settings("everything"),
        settings("filesystem", str(folder)),
        settings("memory", env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}),
        settings("sequential-thinking"),
        settings("time"),
        settings("git", "--repository", str(folder / "repo")),
        settings("fetch"),
    ]
    with Upstreams(servers) as started:
        assert started.wait(100)
        yield started


def test_all_seven_are_ready_in_both_protocols(upstreams: Upstreams) -> None:
    statuses = {status.name: status for status in upstreams.statuses()}
    assert {name: status.state for name, status in statuses.items()} == dict.fromkeys(statuses, "ready")
    assert statuses["everything"].protocol == "2025-11-25"
    assert statuses["time"].protocol == "2026-07-28"
    assert {name: status.tools for name, status in statuses.items()} == {
        "everything": 13,
        "filesystem": 14,
        "memory": 9,
        "sequential-thinking": 1,
        "time": 2,
        "git": 12,
        "fetch": 1,
    }
    assert all(not status.problems for status in statuses.values())
    assert upstreams.toolbox.namespaces() == tuple(statuses), "in the order of the configuration"


def test_scripts_call_them_by_server_and_name(upstreams: Upstreams) -> None:
    with Sandbox(upstreams.toolbox) as box:
        run = box.run(
            """
            local times = parallel.map({"UTC", "Asia/Tokyo"}, function(zone)
              return tools.time.get_current_time{timezone = zone}.timezone
            end)
            return times, tools.everything.get_sum{a = 2, b = 3}, tools.sequential_thinking.sequentialthinking{
              thought = "x", nextThoughtNeeded = false, thoughtNumber = 1, totalThoughts = 1}.thoughtNumber
            """
        )
    assert run.unwrap() == ["UTC", "Asia/Tokyo"]
    assert run.values[1:] == ("The sum of 2 and 3 is 5.", 1)
    assert [call.tool for call in run.calls][2:] == ["everything.get-sum", "sequential-thinking.sequentialthinking"]


def test_structured_content_comes_first(upstreams: Upstreams) -> None:
    weather = upstreams.call("everything.get-structured-content", {"location": "Chicago"})
    assert set(weather) == {"temperature", "conditions", "humidity"}
    assert upstreams.call("filesystem.read_text_file", {"path": _allowed(upstreams) + "/a.txt"}) == {
        "content": "one\ntwo\n"
    }


def test_images_and_resources_are_references(upstreams: Upstreams) -> None:
    image = upstreams.call("everything.get-tiny-image")
    assert image["text"] == "Here's the image you requested:\nThe image above is the MCP logo."
    [reference] = image["content"]
    assert reference["media"].startswith("moonbox://media/")
    assert (reference["type"], reference["size"]) == ("image/png", 4033)
    links = upstreams.call("everything.get-resource-links", {"count": 2})["content"]
    assert [(link["type"], link["uri"]) for link in links] == [
        ("resource_link", "demo://resource/dynamic/blob/1"),
        ("resource_link", "demo://resource/dynamic/text/2"),
    ]
    held = upstreams.call("everything.get-resource-reference", {"resourceType": "Text", "resourceId": 1})["content"][0]
    assert (held["type"], held["uri"]) == ("resource", "demo://resource/dynamic/text/1")
    assert held["text"].startswith("Resource 1: This is a plaintext resource")


def test_errors_of_a_server_are_tool_errors(upstreams: Upstreams) -> None:
    with pytest.raises(ToolError) as caught:
        upstreams.call("filesystem.read_text_file", {"path": "/etc/passwd"})
    assert caught.value.message.startswith("Access denied - path outside allowed directories: /etc/passwd")
    assert (caught.value.code, caught.value.retryable) == ("tool_error", False)
    with pytest.raises(ToolError, match="Invalid timezone"):
        upstreams.call("time.get_current_time", {"timezone": "Mars"})
    with pytest.raises(ToolError, match=r"timezone: missing, expected string\n- zone: unknown parameter"):
        upstreams.call("time.get_current_time", {"zone": "UTC"})


def test_a_tool_that_runs_only_as_a_task_is_awaited(upstreams: Upstreams) -> None:
    report = upstreams.call("everything.simulate-research-query", {"topic": "bees"})
    assert report.startswith("# Research Report: bees")


def test_hints_and_policies_come_from_annotations(upstreams: Upstreams) -> None:
    toolbox = upstreams.toolbox
    assert toolbox["filesystem.read_text_file"].hints.to_dict() == {"read_only": True, "open_world": False}
    assert toolbox["filesystem.write_file"].hints.destructive is True
    assert toolbox["git.git_commit"].hints.destructive is False
    assert toolbox["fetch.fetch"].hints.open_world is True
    assert {tool.policy for tool in toolbox} == {"auto"}


def test_cancelling_a_call_cancels_it_at_the_server(upstreams: Upstreams) -> None:
    async def main() -> None:
        long = upstreams.acall("everything.trigger-long-running-operation", {"duration": 3_000, "steps": 30})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(long, 0.3)
        assert await upstreams.acall("everything.echo", {"message": "still there"}) == "Echo: still there"

    asyncio.run(main())
    assert not upstreams._find("everything").callbacks.calls


def test_calls_go_side_by_side_from_threads(upstreams: Upstreams) -> None:
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(upstreams.call("everything.get-sum", {"a": n, "b": n})))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(results) == sorted(f"The sum of {n} and {n} is {2 * n}." for n in range(20))


def test_an_unknown_server_or_tool_is_told(upstreams: Upstreams) -> None:
    with pytest.raises(UsageError, match=r"^unknown MCP server 'tim'; did you mean 'time'\?$"):
        upstreams.status("tim")
    with pytest.raises(ToolError, match=r"did you mean 'time\.get_current_time'"):
        upstreams.call("time.current_time")


def test_the_configuration_decides_what_is_offered(folder: Path) -> None:
    chosen = settings(
        "fs",
        str(folder),
        server="filesystem",
        include=("*_file", "list_directory"),
        exclude=("edit_*",),
        tools={
            "write_file": ToolRule(policy="auto"),
            "move_file": ToolRule(policy="approve"),
            "read_file": ToolRule(enabled=False),
            "no_such": ToolRule(policy="direct"),
        },
    )
    with Upstreams([chosen]) as started:
        assert started.wait(100)
        status = started.status("fs")
        tools = {tool.name: tool for tool in started.toolbox}
    assert sorted(tools) == ["list_directory", "move_file", "read_media_file", "read_text_file", "write_file"]
    assert (tools["write_file"].policy, tools["write_file"].hints.destructive) == ("auto", None)
    assert (tools["move_file"].policy, tools["move_file"].hints.destructive) == ("approve", True)
    assert status.problems == ("the configuration names a tool 'no_such' that it does not have",)


def test_a_lazy_server_starts_at_the_first_call(folder: Path, tmp_path: Path) -> None:
    cache = ToolCache(tmp_path)
    lazy = settings("fs", str(folder), server="filesystem", lazy=True)
    with Upstreams([lazy], cache=cache) as first:
        assert first.wait(100)
        assert first.status("fs").state == "ready", "what it offers is not known yet, so it starts at once"
    with Upstreams([lazy], cache=cache) as second:
        assert second.wait(100)
        assert (second.status("fs").state, second.pid("fs"), len(second.toolbox)) == ("idle", None, 14)
        assert second.call("fs.list_allowed_directories")["content"].endswith(str(folder))
        assert second.status("fs").state == "ready"
    [kept] = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def changing(tmp_path: Path) -> tuple[ServerSettings, Path]:
    """A server of the current protocol whose tools change with a folder: moonbox itself."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (tmp_path / "inner.toml").write_text('[tools]\nfolders = ["scripts"]\n[codemode]\nkeep_visible = ["first"]\n')
    (scripts / "first.lua").write_text(SCRIPT)
    command, *arguments = program("-m", "moonbox", "serve", "--config", tmp_path / "inner.toml")
    home = {"MOONBOX_HOME": str(tmp_path / "home")}
    return ServerSettings(name="other", command=command, args=tuple(arguments), env=home), scripts


SCRIPT = 'tool = {description = "Says hello."} function tool.execute() return "hello" end'


def test_changes_of_a_servers_tools_are_followed(changing: tuple[ServerSettings, Path]) -> None:
    server, scripts = changing
    with Upstreams([server]) as started:
        assert started.wait(100)
        assert started.status("other").protocol == "2026-07-28"
        assert [tool.path for tool in started.toolbox] == ["other.lua_repl", "other.first"]
        (scripts / "later.lua").write_text(SCRIPT)
        wait_until(lambda: "- later()" in started.toolbox["other.lua_repl"].description)

        def remove() -> None:
            (scripts / "first.lua").unlink()
            wait_until(lambda: "other.first" not in started.toolbox)

        with Sandbox(tools=started.toolbox, limits=Limits(timeout=100)) as box:
            box.toolbox.add(remove)
            run = box.run("""
                local before = tools.other.first()
                tools.remove()
                local ok, problem = pcall(function() return tools.other.first() end)
                return before, ok, tostring(problem)
            """)
        assert run.ok, run.error
        assert run.values[:2] == ("hello", False), "a script goes on when tools change under it"
        assert "other.first" in run.values[2]


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., ServerSettings]:
    """A server that answers as planned, in the earlier protocol."""

    def make(**plan: Any) -> ServerSettings:
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        command, *arguments = program(Path(__file__).with_name("hostile.py"), tmp_path / "plan.json")
        return ServerSettings(name="other", command=command, args=tuple(arguments))

    return make


def listed(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {}}, **more}


def test_changes_are_followed_in_the_earlier_protocol_too(planned: Callable[..., ServerSettings]) -> None:
    with Upstreams([planned(tools=[listed("before")], later=[listed("after")], changes=1)]) as started:
        assert started.wait(100)
        assert started.status("other").protocol == "2025-11-25"
        wait_until(lambda: [tool.path for tool in started.toolbox] == ["other.after"])


def test_a_result_matches_the_schema_of_its_tool(planned: Callable[..., ServerSettings]) -> None:
    wanted = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    levels: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(26)}
    levels["d26"] = {"required": ["other"]}
    tools = [
        listed("strict", outputSchema=wanted),
        listed("broken", outputSchema={"type": "object", "properties": {"a": {"minLength": "x"}}}),
        listed("costly", outputSchema={"type": "object", "$ref": "#/$defs/d0", "$defs": levels}),
    ]
    result = {"content": [{"type": "text", "text": "five"}], "structuredContent": {"sum": "five"}}
    with Upstreams([planned(tools=tools, result=result)]) as started:
        assert started.wait(100)
        with pytest.raises(ToolError, match=r"^the result of other\.strict does not fit ") as caught:
            started.call("other.strict")
        assert caught.value.message == (
            "the result of other.strict does not fit its declared type: "
            'result.sum: expected integer, got "five" (string)'
        )
        assert caught.value.code == "bad_result"
        assert started.call("other.broken") == {"sum": "five"}, "nothing can be checked against an invalid schema"
        with Sandbox(started.toolbox) as box:
            run = box.run("return tools.other.costly{}.sum")
        assert (run.value, [note.message for note in run.notes]) == (
            "five",
            [
                (
                    "the result of other.costly was not validated: "
                    "its schema nests too many alternatives within alternatives"
                )
            ],
        )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_clients_are_told_of_changes_behind_us(
    driver: Driver, changing: tuple[ServerSettings, Path], tmp_path: Path, mode: str
) -> None:
    server, scripts = changing
    args = ", ".join(json.dumps(argument) for argument in server.args)
    (tmp_path / "outer.toml").write_text(
        f'[serve]\nstart_wait = 60\n[mcp.servers.other]\ncommand = "{server.command}"\nargs = [{args}]\n'
    )
    outer = stdio("--config", tmp_path / "outer.toml", env={"MOONBOX_HOME": str(tmp_path / "outer")})
    with driver.session(outer, mode=mode) as session:
        assert "- other.first()" in session.tools()["lua_repl"].description
        listening = driver.start(_listen(session)) if mode == "auto" else None
        (scripts / "first.lua").unlink()
        seen = 0
        while "other.first" in session.tools()["lua_repl"].description:  # a client lists anew whenever it is told
            wait_until(partial(_has_news, session, seen))
            seen = _news(session)
        assert seen
        if listening is not None:
            listening.cancel()


async def _listen(session: Session) -> None:
    async with session.client.listen(tools_list_changed=True) as events:
        async for _ in events:
            pass


def _has_news(session: Session, beyond: int) -> bool:
    return _news(session) > beyond


def _news(session: Session) -> int:
    return sum(type(message).__name__ == "ToolListChangedNotification" for message in session.messages)


def test_only_a_safe_environment_and_what_is_configured_reaches_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    with Upstreams([settings("everything", env={"GIVEN": "yes"})]) as started:
        assert started.wait(100)
        seen = started.call("everything.get-env")
    assert seen["GIVEN"] == "yes"
    assert "PATH" in seen
    assert "AWS_SECRET_ACCESS_KEY" not in seen
    allowed = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"}
    assert set(seen) <= allowed | {"GIVEN", "MOONBOX_SERVER"}


def test_closing_ends_the_processes() -> None:
    started = Upstreams([settings("time"), settings("memory")]).start()
    assert started.wait(100)
    pids = [started.pid("time"), started.pid("memory")]
    started.close()
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert [status.state for status in started.statuses()] == ["closed", "closed"]
    with pytest.raises(ToolError, match=r"^the MCP servers are not running$"):
        asyncio.run(_call(started))


async def _call(started: Upstreams) -> Any:
    return await started.toolbox["time.get_current_time"].call({"timezone": "UTC"})


def _allowed(upstreams: Upstreams) -> str:
    said: str = upstreams.call("filesystem.list_allowed_directories")["content"]
    return said.splitlines()[-1]
