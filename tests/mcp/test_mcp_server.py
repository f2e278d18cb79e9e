"""The server over stdio, for the SDK's client in the current protocol and in the earlier one."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, MCPError
from mcp_types import ImageContent

from moonbox import CodeMode, Sandbox
from moonbox.audit.sinks import open_trail
from moonbox.config.sections import ServeSettings
from moonbox.mcp.server.server import MoonboxServer
from tests.mcp.conftest import filled
from tests.mcp.mcp_driver import Session, abandoned, stdio, text
from tests.waiting import await_until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mcp.mcp_driver import Driver

CONFIG = """
[tools]
folders = ["scripts"]
[knowledge.sources.notes]
connector = "filesystem"
path = "notes"
[serve]
start_wait = 60
[codemode]
keep_visible = ["time.convert_time"]
[mcp.servers.files]
command = "<filesystem>"
args = ["<folder>"]
[mcp.servers.time]
command = "<time>"
[mcp.servers.everything]
command = "<everything>"
include = ["echo", "get-tiny-image", "trigger-long-running-operation"]
"""
PYTHON = """
from moonbox import tool
print("this is not the protocol")

@tool(hints={"read_only": True})
def loud(text: str) -> str:
    "Prints what it is given, and says how long it is."
    print(text)
    return f"{len(text)} characters"
"""
SCRIPT = """
tool = {name = "greet", description = "Greets someone. Warmly."}
tool.parameters = {{name = "who", type = "string", required = true}}
function tool.execute(params) return {greeting = "Hello, " .. params.who} end
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("server")
    (path / "scripts").mkdir()
    (path / "scripts" / "greet.lua").write_text(SCRIPT)
    (path / "notes").mkdir()
    (path / "files").mkdir()
    (path / "loud.py").write_text(PYTHON)
    (path / "moonbox.toml").write_text(filled(CONFIG, folder=path / "files"))
    return path


@pytest.fixture(scope="module", params=["2026-07-28", "2025-11-25"])
def session(request: pytest.FixtureRequest, driver: Driver, folder: Path) -> Iterator[Session]:
    mode = "auto" if request.param.startswith("2026") else "legacy"
    transport = stdio(
        "--config",
        folder / "moonbox.toml",
        "--tools",
        f"{folder}/loud.py",
        env={"MOONBOX_HOME": str(folder / "home")},
        log=folder / f"{mode}.log",
    )
    with driver.session(transport, mode=mode) as opened:
        assert opened.version == request.param
        yield opened


def test_one_code_tool_stands_for_everything_but_what_stays_direct(session: Session) -> None:
    tools = session.tools()
    assert list(tools) == [
        "lua_repl",
        "files__edit_file",
        "files__move_file",
        "files__write_file",
        "time__convert_time",
    ]
    catalog = tools["lua_repl"].description
    for line in (
        "- files.read_text_file(path: string, tail?: number, head?: number) -> {content: string} — ",
        "- greet(who: string) — Greets someone.",
        "- loud(text: string) -> string — Prints what it is given, and says how long it is.",
        "- search(query: string, ",
        "- time.get_current_time(timezone: string (e.g., 'America/New_York', ",
        "- everything.echo(message: string) — ",
    ):
        assert line in catalog
    assert "write_file" not in catalog


def test_annotations_are_honest(session: Session) -> None:
    tools = session.tools()
    code = tools["lua_repl"].annotations
    assert code.read_only_hint is False, "some of the tools change something"
    assert code.destructive_hint is True, "greet and create_directory do not deny it"
    assert code.idempotent_hint is False
    assert code.open_world_hint is True
    assert tools["files__write_file"].annotations.destructive_hint is True
    assert tools["time__convert_time"].annotations.read_only_hint is True


def test_instructions_say_how_to_use_it(session: Session) -> None:
    assert session.client.instructions.startswith("Scripts for `lua_repl` call the tools.")
    assert session.client.server_info.name == "moonbox"


def test_a_script_calls_scripts_servers_and_functions(session: Session) -> None:
    result = session.lua(
        'print("working") return tools.greet{who = "you"}.greeting, tools.loud{text = "abc"}, '
        'tools.time.get_current_time{timezone = "UTC"}.timezone, tools.sources{}'
    )
    assert not result.is_error, text(result)
    data = result.structured_content
    assert (data["value"][:3], data["output"], data["calls"]) == (["Hello, you", "3 characters", "UTC"], "working\n", 4)
    assert data["value"][3][0]["name"] == "notes"
    assert text(result).startswith('printed:\nworking\n\nreturned:\n4 values:\n1: "Hello, you"\n')


def test_globals_stay_for_the_conversation(session: Session) -> None:
    session.lua("count = (count or 0) + 1")
    assert session.value("count = count + 1 return count") == 2
    assert session.value("return count", meta={"moonbox/conversation": "another"}) is None
    assert session.value("return count") == 2


def test_a_failing_script_is_an_error_that_says_what_to_do(session: Session) -> None:
    result = session.lua("local x = tools.greet{whom = 'you'}")
    assert result.is_error
    assert result.structured_content is None
    assert "who: missing, expected string" in text(result)
    assert "did you mean 'who'?" in text(result)


def test_calls_that_make_no_sense_are_answered(session: Session) -> None:
    assert text(session.call("lua_repl", {"code": 1})).startswith('error: lua_repl takes one argument: {"source_code"')
    assert text(session.call("greet", {"who": "x"})) == (
        "error: greet is called from a script: use lua_repl and write tools.greet{...}"
    )
    unknown = text(session.call("lua_rep", {}))
    assert unknown.startswith("error: unknown tool 'lua_rep'; did you mean 'lua_repl'?")


def test_a_direct_tool_gives_structured_content_and_text(session: Session, folder: Path) -> None:
    path = str(folder / "files" / "new.txt")
    result = session.call("files__write_file", {"path": path, "content": "written"})
    assert result.structured_content == {"content": f"Successfully wrote to {path}"}
    assert text(result) == f"Successfully wrote to {path}"  # in the server's own words
    assert (folder / "files" / "new.txt").read_text() == "written"
    refused = session.call("files__write_file", {"path": "/etc/x", "content": ""})
    assert refused.is_error
    assert "Access denied - path outside allowed directories" in text(refused)


def test_an_image_that_a_script_returns_is_shown(session: Session) -> None:
    result = session.lua("return tools.everything.get_tiny_image{}.content[1]")
    label, image = result.content
    assert label.type == "text"
    assert isinstance(image, ImageContent)
    assert image.mime_type == "image/png"
    uri = result.structured_content["value"]["media"]
    read = session.driver.run(session.client.read_resource(uri)).contents[0]
    assert (read.mime_type, read.blob) == ("image/png", image.data)


def test_a_value_that_is_too_long_is_cut_in_both_forms(session: Session) -> None:
    result = session.lua("return ('x'):rep(200000)")
    assert len(text(result)) <= 50_000
    assert result.structured_content["cut"] is True
    assert "value" not in result.structured_content


def test_progress_tells_of_the_calls(session: Session) -> None:
    seen: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    session.lua(
        "for i = 1, 2 do tools.everything.trigger_long_running_operation{duration = 0.8, steps = 2} end",
        progress_callback=note,
    )
    assert [progress for progress, _ in seen] == sorted({progress for progress, _ in seen}), "it only grows"
    messages = [message or "" for _, message in seen]
    assert messages[0] == "everything.trigger-long-running-operation (0 of 1 calls done)"
    assert any(message.startswith("everything.trigger-long-running-operation: 1/2") for message in messages)
    assert any("(1 of 2 calls done)" in message for message in messages)


def test_cancelling_stops_the_script_and_keeps_the_conversation(session: Session, folder: Path) -> None:
    session.lua("before = 'still here'")

    session.driver.run(abandoned(session.client, "tools.everything.echo{message = 'here'} while true do end"))
    assert session.value("return before") == "still here"
    latest = open_trail(folder / "home" / "audit.db").list(5)
    assert "cancelled" in [run.kind for run in latest]


def test_runs_are_resources_and_in_the_trail(session: Session, folder: Path) -> None:
    result = session.lua("return 'a run to be read'")
    assert result.meta is not None
    run = result.meta["moonbox/run"]
    assert f"moonbox://runs/{run}" in session.resources()[:3]
    record = json.loads(session.read(f"moonbox://runs/{run}"))
    assert (record["id"], record["values"]) == (run, ["a run to be read"])
    assert open_trail(folder / "home" / "audit.db").get(run).value == "a run to be read"
    templates = session.driver.run(session.client.list_resource_templates()).resource_templates
    assert [item.uri_template for item in templates][:2] == ["moonbox://runs/{id}", "moonbox://media/{id}"]
    with pytest.raises(MCPError, match="unknown resource 'moonbox://runs/nothing'"):
        session.read("moonbox://runs/nothing")


def test_the_state_of_the_servers_is_a_resource(session: Session) -> None:
    def states() -> list[tuple[str, str]]:
        return [(item["name"], item["state"]) for item in json.loads(session.read("moonbox://servers"))["servers"]]

    expected = [("files", "ready"), ("time", "ready"), ("everything", "ready")]
    wait_until(lambda: not any(state == "starting" for _, state in states()))
    assert states() == expected


def test_a_new_script_appears_and_clients_are_told(session: Session, folder: Path) -> None:
    session.tools()
    seen = session.news()
    stop = session.driver.start(_listen(session)) if session.version.startswith("2026") else None
    new = folder / "scripts" / f"later_{session.version.replace('-', '_')}.lua"
    new.write_text(SCRIPT.replace('"greet"', f'"{new.stem}"'))
    while True:  # an earlier change may be announced first
        seen = session.news(beyond=seen)
        if f"- {new.stem}(who: string)" in session.tools()["lua_repl"].description:
            break
    assert session.value(f"return tools.{new.stem}{{who = 'you'}}.greeting") == "Hello, you"
    if stop is not None:
        stop.cancel()


async def _listen(session: Session) -> None:
    async with session.client.listen(tools_list_changed=True) as events:
        async for _ in events:
            pass


def test_nothing_but_the_protocol_went_to_standard_output(session: Session, folder: Path) -> None:
    session.value('return tools.loud{text = "printed by a tool"}')
    mode = "auto" if session.version.startswith("2026") else "legacy"
    log = (folder / f"{mode}.log").read_text()
    assert "this is not the protocol" in log
    assert "printed by a tool" in log
    assert not [message for message in session.messages if isinstance(message, Exception)]


def test_many_calls_at_once_are_kept_apart(session: Session) -> None:
    async def call(number: int) -> Any:
        meta: Any = {"moonbox/conversation": f"c{number}"}
        source = f"mine = {number} tools.everything.echo{{message = 'x'}} return mine"
        result = await session.client.call_tool("lua_repl", {"source_code": source}, meta=meta)
        return result.structured_content["value"]

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(call(number) for number in range(12)))

    assert session.driver.run(all_of_them()) == list(range(12))


def test_idle_conversations_end() -> None:
    async def main(mode: CodeMode) -> list[Any]:
        async def value(source: str) -> Any:
            meta: Any = {"moonbox/conversation": "idle"}
            result = await client.call_tool("lua_repl", {"source_code": source}, meta=meta)
            return result.structured_content["value"]

        server = MoonboxServer(mode, settings=ServeSettings(idle_seconds=0.5))
        async with server.running(), Client(server.app) as client:
            first = await value("kept = 1 return kept")
            await await_until(lambda: not mode.conversations)
            return [first, await value("return kept == nil")]

    with Sandbox() as box, CodeMode(box) as mode:
        assert asyncio.run(main(mode)) == [1, True]
