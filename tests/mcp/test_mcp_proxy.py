"""What servers offer, through moonbox: prompts, resources, completions, logs, progress, and results as they came."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError

from moonbox.config.mcp import ServerSettings
from moonbox.errors import ToolError
from moonbox.mcp.server.web import EventLog
from moonbox.mcp.upstreams.catalog import Directory, Offers
from tests.mcp.everything_server import ICON, PNG, WAV
from tests.mcp.mcp_driver import ACCEPT, Session, http_server, over_http, stdio, text
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.mcp.mcp_driver import Driver

SERVER = Path(__file__).with_name("everything_server.py")
DIRECT = '[codemode]\nmode = "never"\n'


def server(name: str, *args: str, more: str = "") -> str:
    command, *arguments = program(SERVER, "stdio", *args)
    return f'[mcp.servers.{name}]\ncommand = "{command}"\nargs = {json.dumps(arguments)}\n{more}\n'


@pytest.fixture
def connect(driver: Driver, configured: Callable[..., Path], env: dict[str, str]) -> Callable[..., Any]:
    """Makes a client of moonbox with this configuration."""
    return lambda config, **options: driver.session(stdio("--config", configured(config), env=env), **options)


ERAS = pytest.mark.parametrize("era", [(), ("--legacy",)], ids=["current", "earlier"])
"""The protocol of the server."""


class Every(NamedTuple):
    """A client, in one of the protocols, and what was logged to it."""

    session: Session
    logged: list[Any]


@pytest.fixture(
    scope="module",
    params=[(mode, era) for mode in ("auto", "legacy") for era in ((), ("--legacy",))],
    ids=["auto-current", "auto-earlier", "legacy-current", "legacy-earlier"],
)
def every(request: pytest.FixtureRequest, driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Every]:
    """A client of each protocol, behind which is a server of each."""
    mode, era = request.param
    folder = tmp_path_factory.mktemp("every")
    (folder / "moonbox.toml").write_text(DIRECT + server("every", *era))
    logged: list[Any] = []

    async def on_log(params: Any) -> None:
        logged.append((params.level, params.logger, params.data))

    transport = stdio("--config", folder / "moonbox.toml", env={"MOONBOX_HOME": str(folder / "home")})
    with driver.session(transport, mode=mode, logging_callback=on_log) as session:
        wait_until(lambda: "every__test_weather" in session.tools())
        yield Every(session, logged)


def test_definitions_and_results_come_as_they_are(every: Every) -> None:
    session, _ = every
    tools = session.tools()
    weather = tools["every__test_weather"]
    assert (weather.title, weather.annotations.read_only_hint) == ("Weather", True)
    assert tools["every__json_schema_2020_12_tool"].input_schema["$schema"].endswith("2020-12/schema")
    [image] = session.call("every__test_image_content").content
    assert isinstance(image, types.ImageContent)
    assert (image.type, image.data, image.mime_type) == ("image", PNG, "image/png")
    [audio] = session.call("every__test_audio_content").content
    assert isinstance(audio, types.AudioContent)
    assert (audio.type, audio.data) == ("audio", WAV)
    kinds = [block.type for block in session.call("every__test_multiple_content_types").content]
    assert kinds == ["text", "image", "resource"]
    result = session.call("every__test_weather", {"city": "Oslo"})
    assert result.structured_content == {"city": "Oslo", "celsius": 21.5}
    assert result.meta is not None and result.meta["station"] == "7"
    failed = session.call("every__test_error_handling")
    assert (failed.is_error, text(failed)) == (True, "This tool intentionally returns an error for testing")


def test_prompts_templates_and_completions(every: Every, driver: Driver) -> None:
    session, client = every.session, every.session.client
    prompts = {item.name: item for item in driver.run(client.list_prompts()).prompts}
    assert [item.name for item in prompts["every__test_prompt_with_arguments"].arguments] == ["arg1", "arg2"]
    got = driver.run(client.get_prompt("every__test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}))
    assert got.messages[0].content.text == "Prompt with arguments: arg1='a', arg2='b'"
    templates = driver.run(client.list_resource_templates()).resource_templates
    assert "test://template/{id}/data" in [item.uri_template for item in templates]
    assert '"id": "7"' in session.read("test://template/7/data")
    argument = {"name": "arg1", "value": "par"}
    values = driver.run(client.complete(types.PromptReference(name="every__test_prompt_with_arguments"), argument))
    assert values.completion.values == ["paris", "park", "party"]
    template = types.ResourceTemplateReference(uri="test://template/{id}/data")
    assert driver.run(client.complete(template, argument)).completion.values == ["paris", "park", "party"]
    with pytest.raises(MCPError, match="unknown prompt 'every__test_simple_promt'; did you mean"):
        driver.run(client.get_prompt("every__test_simple_promt"))
    with pytest.raises(MCPError, match="unknown resource test://none"):  # in the server's own words
        session.read("test://none")


def test_icons_reach_the_client(every: Every, driver: Driver) -> None:
    session, client = every.session, every.session.client
    offers = {
        **session.tools(),
        **{item.name: item for item in driver.run(client.list_prompts()).prompts},
        **{item.uri: item for item in driver.run(client.list_resources()).resources},
        **{item.uri_template: item for item in driver.run(client.list_resource_templates()).resource_templates},
    }
    with_icons = ("every__test_weather", "every__test_simple_prompt", "test://static-text")
    for name in (*with_icons, "test://template/{id}/data"):
        assert offers[name].icons == [ICON], name
    [status] = json.loads(session.read("moonbox://servers"))["servers"]
    assert status["icons"] == [ICON.model_dump(mode="json", by_alias=True, exclude_none=True)]


def test_log_messages_at_the_level_that_the_client_wants(every: Every, driver: Driver) -> None:
    session, logged = every
    if session.version.startswith("2026"):
        return  # in the current protocol each request says it

    def set_level(level: Any) -> None:
        request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
        driver.run(session.client.session.send_request(request, types.EmptyResult))
        logged.clear()

    set_level("info")
    session.call("every__test_tool_with_logging")
    wait_until(lambda: len(logged) == 3)
    assert logged[0] == ("info", "every.everything", "Tool execution started")
    set_level("error")
    session.call("every__test_tool_with_logging")
    assert logged == []


def test_progress_as_the_server_reports_it(every: Every) -> None:
    steps: list[Any] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    every.session.call("every__test_tool_with_progress", progress_callback=on_progress)
    wait_until(lambda: len(steps) == 3)
    assert steps == [(step, 100, f"Completed step {step} of 100") for step in (0, 50, 100)]


def test_cancelling_a_call_cancels_it_at_the_server(every: Every, driver: Driver) -> None:
    client = every.session.client

    async def give_up() -> None:
        call = asyncio.create_task(client.call_tool("every__test_wait", {}))
        await client.call_tool("every__test_simple_text", {})  # answered after the other has begun
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    driver.run(give_up())
    wait_until(lambda: "1 cancelled" in every.session.read("test://watched-resource"))


def test_two_servers_have_names_of_their_own(driver: Driver, connect: Any) -> None:
    with connect(DIRECT + server("one") + server("two", more='prefix = "second"')) as session:
        assert {"one__test_simple_text", "second__test_simple_text"} <= set(session.tools())
        prompts = [item.name for item in driver.run(session.client.list_prompts()).prompts]
        assert {"one__test_simple_prompt", "second__test_simple_prompt"} <= set(prompts)
        resources = session.resources()
        assert {"test://static-text", "moonbox://servers/two/test://static-text"} <= set(resources)
        assert session.read("test://static-text") == session.read("moonbox://servers/two/test://static-text")
        again = driver.run(session.client.read_resource("moonbox://servers/two/test://static-text"))
        assert again.contents[0].uri == "moonbox://servers/two/test://static-text"


@ERAS
def test_names_without_a_prefix_lists_that_change_and_resources_that_are_followed(
    driver: Driver, connect: Any, era: tuple[str, ...]
) -> None:
    with connect(DIRECT + server("every", *era, more='prefix = ""'), mode="legacy") as session:
        client = session.client
        assert {"test_simple_text", "test_weather", "json_schema_2020_12_tool"} <= set(session.tools())
        driver.run(client.list_prompts())
        follow = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="test://watched-resource"))
        driver.run(client.session.send_request(follow, types.EmptyResult))
        session.call("test_change_lists")
        kinds = {"PromptListChangedNotification", "ResourceListChangedNotification", "ToolListChangedNotification"}
        wait_until(lambda: kinds <= {type(message).__name__ for message in session.messages})
        wait_until(lambda: "test_extra_1" in [item.name for item in driver.run(client.list_prompts()).prompts])
        wait_until(lambda: "test_extra_1" in session.tools())
        wait_until(lambda: "test://extra/1" in session.resources())

        def updated() -> list[str]:
            return [str(item.params.uri) for item in session.messages if "ResourceUpdated" in type(item).__name__]

        session.call("test_touch_resource", {"uri": "test://watched-resource"})
        wait_until(lambda: updated() == ["test://watched-resource"])
        session.call("test_touch_resource", {"uri": "test://static-text"})  # which nobody follows
        session.call("test_touch_resource", {"uri": "test://watched-resource"})
        wait_until(lambda: len(updated()) == 2)
        assert updated() == ["test://watched-resource"] * 2


def test_what_the_configuration_allows_and_no_more(driver: Driver, connect: Any) -> None:
    """Of one server sampling, and what scripts read; of another nothing, and neither prompts nor resources."""
    asked: list[Any] = []

    async def sample(_: Any, params: Any) -> types.CreateMessageResult:
        asked.append(params)
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="42"), model="m")

    config = (
        server("open", "--legacy", more='sampling = true\nscripts = ["resources", "prompts"]')
        + server("closed", "--legacy")
        + server("off", more="prompts = false\nresources = false")
    )
    with connect(config, sampling_callback=sample) as session:
        said = session.value('return tools.open.test_sampling{prompt = "6 * 7?"}')
        assert said == "LLM response: 42"
        assert session.lua('return tools.closed.test_sampling{prompt = "6 * 7?"}').is_error
        assert len(asked) == 1
        assert session.value('return mcp.read("test://static-text")').startswith("This is the content")
        picture = session.value('return mcp.read("test://static-binary")')
        assert (picture["type"], picture["media"][:16]) == ("image/png", "moonbox://media/")
        said = session.value('return mcp.prompt("open__test_prompt_with_arguments", {arg1 = {2, "x"}, arg2 = true})')
        assert said == [{"role": "user", "content": "Prompt with arguments: arg1='[2, \"x\"]', arg2='true'"}]
        for source in (
            'return mcp.read("moonbox://servers/closed/test://static-text")',
            'return mcp.prompt("closed__test_simple_prompt")',
        ):
            refused = session.lua(source)
            assert refused.is_error
            assert "unknown" in text(refused)
        prompts = [item.name for item in driver.run(session.client.list_prompts()).prompts]
        assert not [name for name in prompts if name.startswith("off")]
        assert not [uri for uri in session.resources() if uri.startswith("moonbox://servers/off")]
        with pytest.raises(MCPError, match="unknown resource"):
            session.read("moonbox://servers/off/test://static-text")


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
def test_scripts_ask_the_model_of_the_client(connect: Any, protocol: str) -> None:
    asked: list[Any] = []

    async def sample(_: Any, params: Any) -> types.CreateMessageResult:
        asked.append(params)
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text='{"sum": 42}'), model="m")

    config = '[llm]\nprovider = "client"\nmax_calls = 2\n'
    script = "return llm('6 * 7?', {type = 'object', required = {'sum'}}, 'Compute.').sum"
    with connect(config, sampling_callback=sample, mode=protocol) as session:
        assert text(session.lua(script)) == "42"
    assert [(item.messages[0].content.text, item.max_tokens) for item in asked] == [("6 * 7?", 1024)]
    assert asked[0].system_prompt.startswith("Compute.")
    with connect(config, mode=protocol) as session:
        assert "does not support sampling/createMessage" in text(session.lua(script))


def test_without_a_grant_scripts_read_nothing_and_what_is_switched_off_is_not_found(connect: Any) -> None:
    with connect(server("off", more="prompts = false\nresources = false")) as session:
        assert session.value("return mcp == nil") is True
        with pytest.raises(MCPError, match="unknown resource"):
            session.read("test://static-text")


def test_a_reconnecting_client_gets_what_it_missed_and_nobody_elses(
    driver: Driver, configured: Callable[..., Path], env: dict[str, str], tmp_path: Path
) -> None:
    config = configured(DIRECT + server("every", more='prefix = ""'))
    with http_server("--config", config, env=env, cwd=tmp_path) as url:
        with driver.session(over_http(url), mode="legacy") as one, driver.session(over_http(url), mode="legacy") as two:
            for session, city in ((one, "Oslo"), (two, "Rome")):
                session.call("test_weather", {"city": city})
        assert "Oslo" not in _replayed(url, reading="Rome")


def test_no_server_passes_for_us_or_learns_of_our_addresses() -> None:
    offers = Offers(
        resources=(types.Resource(uri="moonbox://runs/1", name="r"), types.Resource(uri="MOONBOX://servers", name="s")),
        templates=(types.ResourceTemplate(uri_template="moonbox://media/{id}", name="t"),),
    )
    catalog = SimpleNamespace(offers=offers, has_resources=True)
    evil: Any = SimpleNamespace(settings=ServerSettings(name="evil", command="x"), catalog=catalog)
    directory = Directory({"evil": evil})
    assert [item.uri for item in directory.listed("resources")] == [
        "moonbox://servers/evil/moonbox://runs/1",
        "moonbox://servers/evil/MOONBOX://servers",
    ]
    assert [item.uri_template for item in directory.listed("templates")] == [
        "moonbox://servers/evil/moonbox://media/{id}"
    ]
    with pytest.raises(ToolError, match="unknown resource"):
        directory.find("resources", "moonbox://media/guess")
    assert directory.find("resources", "moonbox://servers/evil/moonbox://runs/1") == (evil, "moonbox://runs/1")


def test_an_event_log_keeps_the_latest_events_of_each_stream() -> None:
    async def replay(after: int) -> tuple[Any, list[str]]:
        log = EventLog(max_events=3)
        names = [
            await log.store_event(
                "a" if number % 2 else "b", types.JSONRPCNotification(jsonrpc="2.0", method=str(number))
            )
            for number in range(5)
        ]
        seen: list[str] = []

        async def take(event: Any) -> None:
            seen.append(event.message.method)

        return await log.replay_events_after(names[after], take), seen

    assert asyncio.run(replay(after=2)) == ("b", ["4"])
    assert asyncio.run(replay(after=0)) == ("b", ["2", "4"]), "an event that was dropped still says what comes after it"


def _replayed(url: str, reading: str) -> str:
    """All that a session is sent when it asks for what came after its first event."""
    head = {**ACCEPT, "content-type": "application/json"}

    def message(method: str, params: Any, number: int | None) -> str:
        return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({"id": number} if number else {})})

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with httpx2.Client(headers=head, timeout=60) as client:
        opened = client.post(url, content=message("initialize", hello, 1))
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        client.post(url, headers=session, content=message("notifications/initialized", {}, None))
        call = message("tools/call", {"name": "test_weather", "arguments": {"city": reading}}, 2)
        with client.stream("POST", url, headers=session, content=call) as answer:
            body = "".join(answer.iter_text())
        assert reading in body
        first = next(line for line in body.splitlines() if line.startswith("id:")).removeprefix("id:").strip()
        seen = ""
        with client.stream("GET", url, headers={**session, "last-event-id": first}) as stream:
            for line in stream.iter_lines():
                seen += line + "\n"
                if reading in seen:
                    break
        other = {**session, "last-event-id": "0000000000000000-1"}
        with client.stream("GET", url, headers=other) as stream:
            assert next(stream.iter_lines(), "") == ""
    assert reading in seen
    return seen
