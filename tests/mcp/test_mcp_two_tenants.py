"""Two clients of one server go through every method and route: no byte of one reaches the other.

The methods are those of the SDK's request types that the server handles, the routes those of the applications: a new
one without a case fails the test.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import httpx2
import mcp_types
import pytest

from moonbox import Sandbox
from moonbox.codemode.mode import CodeMode
from moonbox.config.sections import ServeSettings
from moonbox.console.app import console_routes
from moonbox.http.app import Service, routes
from moonbox.http.browser import BrowserAccess
from moonbox.http.workbench import Workbench
from moonbox.mcp.server.server import MoonboxServer
from moonbox.mcp.server.web import create_app
from tests.mcp.mcp_driver import (
    CURRENT,
    EARLIER,
    HELLO,
    SERVE,
    TOKENS,
    Peer,
    answer_in,
    modern,
    server_process,
)
from tests.programs import program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = Path(__file__).with_name("shared_server.py")
CONFIG = f"""{SERVE}
max_body = 100000
answer_within = 0.5

[limits]
timeout = 1000

[mcp.servers.shared]
command = {json.dumps(program(SERVER)[0])}
args = {json.dumps(program(SERVER)[1:])}
scripts = ["resources", "prompts"]
"""
TOOLS = """
import asyncio
from moonbox import tool

@tool(policy="approve")
def delete(path: str) -> str:
    return path

@tool
async def hold() -> None:
    await asyncio.sleep(1000)

@tool(policy="direct")
def refuse(text: str) -> str:
    raise ValueError(text)
"""
META = {
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/logLevel": "debug",
}
EVERYTHING = """
local found = {}
for key, value in pairs(_G) do found[#found + 1] = key .. " = " .. tostring(value) end
return found
"""
LISTENED = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


class Tenant(Peer):
    """A client that keeps every byte that it receives. Everything that it says of its own contains its word."""

    def __init__(self, url: str, token: str, word: str) -> None:
        self.word = word
        self.seen = bytearray()
        super().__init__(url, token)
        self.ids = {"session": self.session["Mcp-Session-Id"]}
        self._read({"method": "GET", "headers": self.session})

    def post(self, message: dict[str, Any], headers: dict[str, str] | None = None) -> httpx2.Response:
        answer = super().post(message, headers)
        self.seen += str(answer.headers).encode() + answer.content
        return answer

    def send(self, version: str, method: str, params: dict[str, Any]) -> Any:
        """The result, or None."""
        if version == EARLIER:
            answer = self.post({"id": 2, "method": method, "params": params})
        else:
            request = modern(method, params, **META)
            if method == "subscriptions/listen":
                self._read({"method": "POST", **request})
                return None
            answer = self.post(request["json"], request["headers"])
        return (answer_in(answer) or {}).get("result") if answer.content else None

    def script(self, version: str, source: str, *, held: bool = False, **more: Any) -> Any:
        """The result, however long it takes; of one that is `held`, what is said of it meanwhile."""
        arguments = {"source_code": source, **more.pop("arguments", {})}
        result = self.send(version, "tools/call", {"name": "lua_repl", "arguments": arguments, **more})
        while not held and ((result or {}).get("structuredContent") or {}).get("running"):
            result = self.wait(version, result["structuredContent"]["run"], seconds=60)
        return result

    def wait(self, version: str, run_id: str, **more: Any) -> Any:
        arguments = {"run_id": run_id, "seconds": 0, **more}
        return self.send(version, "tools/call", {"name": "lua_repl_wait", "arguments": arguments})

    def has_seen(self, *texts: str) -> bool:
        return all(text.encode() in self.seen for text in texts)

    def knows(self, other: Tenant) -> list[str]:
        """What it has seen of another tenant."""
        forms = [other.word, b64encode(other.word.encode()).decode()]
        return [form for form in forms if form.lower().encode() in bytes(self.seen).lower()]

    def _read(self, request: dict[str, Any]) -> None:
        """Read a stream until the server ends it."""

        def work() -> None:
            with suppress(httpx2.HTTPError), self.http.stream(url=self.url, **request) as answer:
                for part in answer.iter_raw():
                    self.seen.extend(part)

        threading.Thread(target=work, daemon=True).start()


def calls(me: Tenant, version: str) -> None:
    """Calls with values, names, keys, errors, logs and media of its own."""
    word = me.word
    made = me.script(version, f"{word}_global = '{word}' print('{word}') return {{{word} = '{word}'}}")
    me.ids["run"] = made["_meta"]["moonbox/run"]
    if version == CURRENT:
        me.ids["state"] = made["structuredContent"]["state"]
    me.script(version, f"{word}_named = '{word}'", _meta={"moonbox/conversation": "ours"})
    for source in (
        f"error('{word}')",
        f"return tools.{word}()",
        f"return tools.shared.keep{{{word} = 1}}",
        f"return tools.shared.keep{{text = '{word}'}}",
        f"return tools.shared.fail{{text = '{word}'}}",
        f"return tools.shared.log{{text = '{word}'}}",
        f"return tools.shared.touch{{text = '{word}'}}",
        f"return mcp.read('note://{word}'), mcp.prompt('shared_greet', {{text = '{word}'}})",
    ):
        me.script(version, source)
    held = f"progress(1, 2, '{word}') print('{word}') tools.hold() return '{word}'"
    begun = me.script(version, held, held=True, _meta={"moonbox/conversation": word + version})
    me.ids["background"] = begun["structuredContent"]["run"]
    me.wait(version, me.ids["background"])
    picture = me.script(version, f"return tools.shared.picture{{text = '{word}'}}")
    me.ids["media"] = picture["structuredContent"]["value"]["media"]
    me.send(version, "tools/call", {"name": "refuse", "arguments": {"text": word}})
    asked = me.send(version, "tools/call", {"name": "delete", "arguments": {"path": word}})
    if version == CURRENT:
        me.ids["request"] = asked["requestState"]
    else:
        task = {"name": "lua_repl", "arguments": {"source_code": f"return '{word}'"}, "task": {"ttl": 600_000}}
        me.ids["task"] = me.send(version, "tools/call", task)["task"]["taskId"]


def stolen_calls(me: Tenant, version: str, other: dict[str, str]) -> None:
    """Calls that look for what is another's."""
    for more in ({}, {"cancel": True}):
        me.wait(version, other["background"], **more)
    me.script(version, EVERYTHING)
    me.script(version, EVERYTHING, arguments={"state": other["state"]})
    me.script(version, EVERYTHING, _meta={"moonbox/conversation": "ours"})
    me.script(version, EVERYTHING, _meta={"moonbox/conversation": other["state"]})
    for source in (
        "return tools.shared.keep{text = 'x'}",
        "return docs.list(), docs.search('keep')",
        f"return mcp.read('moonbox://runs/{other['run']}')",
        f"return mcp.read('{other['media']}')",
    ):
        me.script(version, source)
    answers = {"question-1": {"action": "accept", "content": {}}}
    state = {"requestState": other["request"], "inputResponses": answers}
    me.send(version, "tools/call", {"name": "delete", "arguments": {"path": "x"}, **state})


def own(word: str, ids: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """For each method the parameters with which a client sends it for itself; calls of tools have a function."""
    task, note = {"taskId": ids.get("task", "x")}, {"uri": f"note://{word}"}
    listened = {**dict.fromkeys(LISTENED, True), "resourceSubscriptions": [note["uri"]]}
    argument = {"ref": {"type": "ref/prompt", "name": "shared_greet"}, "argument": {"name": "text", "value": word}}
    return {
        "initialize": [HELLO["params"]],
        "ping": [{}],
        "server/discover": [{}],
        "tools/list": [{}],
        "tools/call": [],
        "prompts/list": [{}],
        "prompts/get": [{"name": "shared_greet", "arguments": {"text": word}}, {"name": word}],
        "completion/complete": [argument],
        "resources/list": [{}],
        "resources/templates/list": [{}],
        "resources/read": [note, {"uri": f"moonbox://{word}"}, {"uri": "moonbox://servers"}],
        "resources/subscribe": [note],
        "resources/unsubscribe": [{"uri": f"note://{word}2"}],
        "subscriptions/listen": [{"notifications": listened}],
        "logging/setLevel": [{"level": "debug"}],
        "tasks/list": [{}],
        "tasks/get": [task],
        "tasks/result": [task],
        "tasks/cancel": [{"taskId": word}],
    }


def stolen(ids: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The same with the names of what is another's, where a method names something."""
    named: list[dict[str, Any]] = [{"uri": uri} for uri in resources(ids).values()]
    uris = [item["uri"] for item in named]
    return {
        **{method: params for method, params in own("x", {}).items() if params == [{}]},
        "tools/call": [],
        **{method: [{"taskId": ids["task"]}] for method in ("tasks/get", "tasks/result", "tasks/cancel")},
        **dict.fromkeys(("resources/read", "resources/subscribe", "resources/unsubscribe"), named),
        "subscriptions/listen": [{"notifications": {"resourceSubscriptions": uris}}],
    }


def resources(ids: dict[str, str]) -> dict[str, str]:
    """An address of every kind of resource that moonbox has."""
    return {"run": f"moonbox://runs/{ids['run']}", "media": ids["media"], "servers": "moonbox://servers"}


def go_through(me: Tenant, other: Tenant | None = None) -> None:
    """Every method for itself, or every method with what is the other's."""
    for version in (EARLIER, CURRENT):
        if other is None:
            calls(me, version)
        else:
            stolen_calls(me, version, other.ids)
        for method, several in (own(me.word, me.ids) if other is None else stolen(other.ids)).items():
            for params in several:
                me.send(version, method, params)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("tenants")
    (folder / "moonbox.toml").write_text(CONFIG)
    (folder / "kit.py").write_text(TOOLS)
    home = {"MOONBOX_HOME": str(folder / "home")}
    with server_process("--tools", "kit.py", env=home, cwd=folder) as (address, _):
        yield address  # killed then: the streams that are open would keep it from ending at once


def has_progress(one: Tenant) -> bool:
    return "progress" in one.wait(CURRENT, one.ids["background"])["structuredContent"]


@pytest.fixture(scope="module")
def tenants(url: str) -> Iterator[tuple[Tenant, Tenant]]:
    """After each has used every method."""
    alice, bob = Tenant(url, "alice", "kestrel"), Tenant(url, "bob", "osprey")
    for one in (alice, bob):
        go_through(one)
        assert len(one.ids) == 7, one.ids
        wait_until(partial(has_progress, one))
        assert one.wait(CURRENT, one.ids["background"])["structuredContent"]["progress"]["text"] == one.word
        assert b'restarts\\": 0' in one.seen, "an error with the code -32000 is not the end of a connection"
        assert b'restarts\\": 1' not in one.seen
        one.script(EARLIER, f"return tools.shared.touch{{text = '{one.word}'}}")
        wait_until(partial(one.has_seen, f"note://{one.word}", "notifications/resources/updated"))
    yield alice, bob


def _methods() -> set[str]:
    """The methods that the server handles, of all request types that the SDK has."""
    with Sandbox() as box:
        app = MoonboxServer(CodeMode(box)).app
    fields = [getattr(getattr(mcp_types, name), "model_fields", {}) for name in dir(mcp_types)]
    named = {name for field in fields if "method" in field for name in get_args(field["method"].annotation)}
    return {name for name in named if name == "initialize" or app.get_request_handler(name) is not None}


def test_every_method_has_a_case() -> None:
    assert set(own("x", {})) == _methods()


def test_nothing_is_seen_in_the_ordinary_course(tenants: tuple[Tenant, Tenant]) -> None:
    alice, bob = tenants
    for one, other in ((alice, bob), (bob, alice)):
        assert one.word.encode() in one.seen
        assert one.knows(other) == []
        assert [name for name, id in other.ids.items() if id.encode() in one.seen] == []


def test_every_resource_of_ours_has_a_case(tenants: tuple[Tenant, Tenant]) -> None:
    alice, _ = tenants
    templates = alice.send(EARLIER, "resources/templates/list", {})["resourceTemplates"]
    listed = alice.send(EARLIER, "resources/list", {})["resources"]
    ours = [item.get("uriTemplate", item.get("uri")) for item in (*templates, *listed)]
    kinds = {uri.removeprefix("moonbox://").partition("/")[0] for uri in ours if uri.startswith("moonbox://")}
    assert kinds == {uri.removeprefix("moonbox://").partition("/")[0] for uri in resources(alice.ids).values()}


def test_nothing_is_had_by_its_name(tenants: tuple[Tenant, Tenant]) -> None:
    """With the ids, handles and sessions of the other; and after the other has made the server that they share fail."""
    alice, bob = tenants
    for one, other in ((alice, bob), (bob, alice)):
        for _ in range(4):  # until the server is given time before its next start
            other.script(CURRENT, f"return tools.shared.crash{{text = '{other.word}'}}")
        go_through(one, other)
        taken = {**one.session, "Mcp-Session-Id": other.ids["session"]}
        for method in own("x", {}):
            assert one.post({"id": 2, "method": method, "params": {}}, taken).status_code == 404
        for verb in ("GET", "DELETE"):
            answer = one.http.request(verb, one.url, headers={**taken, "Last-Event-ID": "1"})
            one.seen += answer.content
            assert answer.status_code == 404
        assert one.knows(other) == []
        still = other.wait(CURRENT, other.ids["background"])
        assert "error" not in still["content"][0]["text"], "the other's script was not stopped"
        kept = other.script(EARLIER, f"return {other.word}_global")
        assert kept["structuredContent"]["value"] == other.word, "the other still has its session"


def test_shapes_of_results_are_not_shared(tenants: tuple[Tenant, Tenant]) -> None:
    alice, bob = tenants
    for one, other in ((alice, bob), (bob, alice)):
        for version in (EARLIER, CURRENT):
            one.script(version, "return docs.describe('shared.keep')")
        assert one.knows(other) == []


def _paths() -> list[tuple[str, str]]:
    """Every route of the HTTP API and of the console."""
    with Sandbox() as box:
        service = Service(box, workbench=Workbench())
        found: list[Any] = [*routes(service), *console_routes(service, BrowserAccess())]
    named = [(verb, route.path) for route in found for verb in getattr(route, "methods", None) or ("GET",)]
    return [(verb, path.replace("{index:int}", "0").replace("{name:path}", "refuse")) for verb, path in named]


def test_the_http_api_serves_neither_of_them(tenants: tuple[Tenant, Tenant]) -> None:
    alice, bob = tenants
    mcp = create_app(MoonboxServer(CodeMode(Sandbox()), settings=ServeSettings(tokens=TOKENS)))
    assert [getattr(route, "path", None) for route in mcp.routes] == ["/mcp"]
    paths = _paths()
    assert len(paths) > 20
    for verb, path in paths:
        for id in (alice.ids["run"], "x"):
            answer = bob.http.request(verb, bob.url.replace("/mcp", path.replace("{id}", id)))
            bob.seen += answer.content
            assert answer.status_code == 404, path
    assert bob.knows(alice) == []


@pytest.mark.parametrize("chunked", [False, True])
def test_every_route_bounds_its_body(tenants: tuple[Tenant, Tenant], chunked: bool) -> None:
    """Of the whole application, in both protocols and whatever the verb; a path that is not there reads nothing."""
    alice, _ = tenants
    for headers in ({}, {"MCP-Protocol-Version": CURRENT}):
        for verb in ("POST", "GET", "DELETE", "PUT"):
            content = iter([b"x" * 50_000] * 4) if chunked else b"x" * 200_000
            answer = alice.http.request(verb, alice.url, content=content, headers=headers)
            assert answer.status_code == 413, verb
