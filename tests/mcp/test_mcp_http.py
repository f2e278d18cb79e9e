"""The server over streamable HTTP: who may use it, what is whose, and many clients at once."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client, MCPError

from moonbox.audit.sinks import open_trail
from tests.mcp.mcp_driver import (
    ACCEPT,
    HELLO,
    HOLD,
    SECONDS,
    SERVE,
    TOKENS,
    Peer,
    bearer,
    give_up,
    modern,
    over_http,
    served,
    text,
)
from tests.waiting import await_until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mcp.mcp_driver import Driver

CONFIG = f"""{SERVE}
origins = ["https://app.example"]
max_calls = 4
max_waiting = 4
"""
TOOLS = f"""{HOLD}
from moonbox import Tool

@tool
async def wait(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds

@tool
def broken() -> str:
    raise ValueError("no")

BADGE = Media(b"body", "text/plain")

@tool
def badge() -> Media:
    return BADGE

region = {{"type": "object", "properties": {{"region": {{"type": "string", "x-mcp-header": "Region"}}}}}}
place = Tool.from_schema(name="place", parameters=region, call=lambda given: given, policy="direct")
"""


def _post(url: str, **headers: str) -> httpx2.Response:
    return httpx2.post(url, json=HELLO, headers={**ACCEPT, **headers}, timeout=100)


def test_a_token_is_demanded(url: str) -> None:
    for headers in ({}, bearer("wrong"), bearer(TOKENS["alice"] + "x"), {"Authorization": TOKENS["alice"]}):
        refused = _post(url, **headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert _post(url, **bearer("alice")).status_code == 200


def test_pages_of_other_sites_are_kept_out(url: str) -> None:
    token = bearer("alice")
    foreign = _post(url, Origin="https://evil.example", **token)
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "wrong_origin")
    rebound = _post(url, Host="evil.example", **token)
    assert (rebound.status_code, rebound.json()["error"]["code"]) == (421, "wrong_host")
    plain = httpx2.post(
        url, content=json.dumps(HELLO), headers={**ACCEPT, **token, "Content-Type": "text/plain"}, timeout=100
    )
    assert plain.status_code == 400
    assert "access-control-allow-origin" not in foreign.headers


def test_pages_of_configured_origins_use_it(url: str) -> None:
    page, wanted = (
        {"Origin": "https://app.example"},
        "authorization, content-type, mcp-session-id, mcp-protocol-version",
    )
    asked = {
        **page,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": f"{wanted}, last-event-id, mcp-method, mcp-param-region",
    }
    allowed = httpx2.options(url, headers=asked)
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, page["Origin"])
    assert {"DELETE", "GET", "POST"} <= set(allowed.headers["access-control-allow-methods"].split(", "))
    for origin in ("https://evil.example", "http://localhost:5173"):
        assert httpx2.options(url, headers={**asked, "Origin": origin}).status_code in (400, 403)
    opened = _post(url, **page, **bearer("alice"))
    assert opened.headers["access-control-allow-origin"] == page["Origin"]
    assert {"Mcp-Session-Id", "WWW-Authenticate"} <= set(opened.headers["access-control-expose-headers"].split(", "))
    refused = _post(url, **page)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, page["Origin"])


def test_clients_do_not_get_the_tracebacks_of_tools(as_: Any) -> None:
    with as_("alice") as alice:
        answer = alice.lua("local ok, problem = pcall(tools.broken) return problem")
        record = alice.read(f"moonbox://runs/{answer.meta['moonbox/run']}")
    assert json.loads(record)["calls"][0]["error"]["detail"] is None
    assert "in broken" not in record
    assert "in broken" not in str(answer)


def test_state_goes_by_handle_where_there_is_no_session(as_: Any) -> None:
    with as_("alice") as alice, as_("bob") as bob:
        schema = alice.tools()["lua_repl"].input_schema
        assert list(schema["properties"]) == ["source_code", "state"]
        assert schema["required"] == ["source_code"]
        first = alice.lua("count = 1")
        handle = first.structured_content["state"]
        assert text(first).endswith(f'[to continue with these globals, pass state = "{handle}"]')
        assert first.meta["moonbox/conversation"] == handle
        assert alice.value("count = count + 1 return count", state=handle) == 2
        assert alice.value("return count") is None, "without a handle every call begins afresh"
        stranger = bob.lua("return count", state=handle)
        assert stranger.structured_content.get("value") is None
        assert f"the state '{handle}' no longer exists; this script started with new globals" in text(stranger)
        assert "state" not in alice.lua("return 1").structured_content, "nothing to go on with"


def test_the_earlier_protocol_has_sessions(as_: Any, url: str) -> None:
    with as_("alice", "legacy") as alice, as_("alice", "legacy") as other:
        assert list(alice.tools()["lua_repl"].input_schema["properties"]) == ["source_code"]
        alice.lua("mine = 1")
        assert alice.value("return mine") == 1
        assert other.value("return mine") is None
    opened = _post(url, **bearer("alice"))
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    stolen = httpx2.post(url, json=listing, headers={**ACCEPT, **session, **bearer("bob")}, timeout=100)
    assert stolen.status_code == 404, "a session belongs to the token that opened it"
    ended = httpx2.delete(url, headers={**session, **bearer("alice")}, timeout=100)
    assert ended.status_code == 200
    gone = httpx2.post(url, json=listing, headers={**ACCEPT, **session, **bearer("alice")}, timeout=100)
    assert gone.status_code == 404


def test_media_of_tools_are_resources_of_whom_they_were_returned_to(as_: Any) -> None:
    with as_("alice") as alice, as_("bob") as bob:
        badge = {client.value("return tools.badge()")["media"] for client in (alice, bob)}.pop()  # the same for both
        for client in (alice, bob):
            assert client.driver.run(client.client.read_resource(badge)).contents[0].blob == "Ym9keQ=="
        picture = alice.value("return tools.picture()")["media"]
        assert alice.driver.run(alice.client.read_resource(picture)).contents[0].mime_type == "image/png"
        with pytest.raises(MCPError, match="unknown resource"):
            bob.read(picture)


def test_the_trail_tells_clients_and_conversations_apart(as_: Any) -> None:
    def labels(client: Any, **arguments: Any) -> tuple[dict[str, str], Any]:
        answer = client.lua("count = 1", **arguments)
        return json.loads(client.read(f"moonbox://runs/{answer.meta['moonbox/run']}"))["labels"], answer

    with as_("alice") as alice, as_("bob", "legacy") as bob:
        first, answer = labels(alice)
        state = answer.structured_content["state"]
        again, _ = labels(alice, state=state)
        other, _ = labels(alice)
        of_bob, _ = labels(bob)
        assert (of_bob, first["conversation"]) == (labels(bob)[0], again["conversation"])
    assert {first["client"], of_bob["client"]} == {"alice", "bob"}
    assert len({first["conversation"], other["conversation"], of_bob["conversation"]}) == 3
    assert state not in first["conversation"], "what continues a conversation is not written"


def test_one_client_has_a_share_and_no_more(as_: Any, tmp_path: Path) -> None:
    gate = tmp_path / "open"
    results: list[Any] = []
    with as_("alice") as alice, as_("bob") as bob:

        async def call() -> None:
            source = f"return tools.hold{{path = '{gate}'}}"
            results.append(await alice.client.call_tool("lua_repl", {"source_code": source}))

        async def crowd() -> None:
            await asyncio.gather(*(call() for _ in range(10)))

        waiting = alice.driver.start(crowd())
        wait_until(lambda: len(results) == 2)
        assert bob.value("return 1") == 1, "another client is not kept waiting"
        gate.touch()
        waiting.result(100)
        refused = [text(result) for result in results if result.is_error]
        assert len(refused) == 2
        assert refused[0] == ("error: this client already has 8 calls running or waiting; try again later")
        assert [result.structured_content["value"] for result in results if not result.is_error] == ["released"] * 8


@pytest.fixture
def asking() -> Iterator[httpx2.Client]:
    """Of the current protocol, without the SDK."""
    with httpx2.Client(headers={**ACCEPT, **bearer("alice")}, timeout=SECONDS) as client:
        yield client


def _script(source: str, **meta: Any) -> dict[str, Any]:
    return modern("tools/call", {"name": "lua_repl", "arguments": {"source_code": source}}, **meta)


def test_an_answer_is_json_unless_the_client_wants_more(url: str, asking: httpx2.Client, tmp_path: Path) -> None:
    plain = asking.post(url, **_script("return 6 * 7"))
    assert plain.headers["content-type"] == "application/json"
    assert plain.json()["result"]["structuredContent"]["value"] == 42
    gate, lines = tmp_path / "gate", []
    source = f"return tools.hold{{path = '{gate}'}}"
    with asking.stream("POST", url, **_script(source, progressToken="p")) as streamed:
        assert streamed.headers["content-type"].startswith("text/event-stream")
        for line in streamed.iter_lines():
            lines.append(line)
            if "notifications/progress" in line:
                gate.touch()
    assert '"value":"released"' in "".join(lines)


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Mcp-Param-Region": "north"}, 200), ({"Mcp-Param-Region": "south"}, 400), ({}, 400)],
    ids=["equal", "different", "missing"],
)
def test_an_argument_that_is_bound_to_a_header_must_equal_it(
    url: str, asking: httpx2.Client, headers: dict[str, str], status: int
) -> None:
    call = modern("tools/call", {"name": "place", "arguments": {"region": "north"}})
    assert asking.post(url, json=call["json"], headers={**call["headers"], **headers}).status_code == status


@pytest.mark.parametrize("meta", [{}, {"progressToken": "p"}], ids=["plain", "streamed"])
def test_a_client_that_hangs_up_stops_its_script(
    driver: Driver, folder: Path, url: str, asking: httpx2.Client, tmp_path: Path, meta: dict[str, Any]
) -> None:
    async def hang_up() -> None:
        async with httpx2.AsyncClient(headers=asking.headers, timeout=SECONDS) as client:
            source = f"return tools.hold{{path = '{tmp_path / 'gate'}'}}"
            await give_up(client.post(url, **_script(source, **meta)), await_until((tmp_path / "gate.entered").exists))

    driver.run(hang_up())
    wait_until((tmp_path / "gate.cancelled").exists)
    trail = open_trail(folder / "home" / "audit.db")
    wait_until(lambda: trail.list(1)[0].kind == "cancelled")
    assert asking.post(url, **_script("return 1")).json()["result"]["structuredContent"]["value"] == 1


def test_a_client_that_lost_its_connection_gets_even_a_large_result(url: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"tools.hold{{path = '{gate}'}} return tools.picture()"
    call = {"name": "lua_repl", "arguments": {"source_code": script}}
    peer = Peer(url, "alice")
    request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    with peer.http.stream("POST", url, json=request, headers=peer.session) as stream:
        event = next(line for line in stream.iter_lines() if line.startswith("id:")).removeprefix("id:").strip()
    wait_until(gate.with_name("gate.entered").exists)
    other = Peer(url, "alice")
    before = other.result("resources/list")["resources"]
    gate.touch()
    wait_until(lambda: other.result("resources/list")["resources"] != before)
    with peer.http.stream("GET", url, headers={**peer.session, "Last-Event-ID": event}) as stream:
        answer = json.loads(next(line for line in stream.iter_lines() if '"id":2' in line).removeprefix("data: "))
    peer.close()
    other.close()
    assert len(answer["result"]["content"][1]["data"]) == 8 << 20


def test_a_session_that_ended_because_it_was_idle_follows_nothing(tmp_path: Path) -> None:
    with served(tmp_path, "[serve]\nidle_seconds = 3") as address:
        lost = Peer(address)
        for number in range(200):
            assert lost.result("resources/subscribe", uri=f"note://{number}") == {}
        later = Peer(address)
        assert "at most 200 resources" in str(later.ask("resources/subscribe", uri="note://200"))
        wait_until(lambda: "result" in later.ask("resources/subscribe", uri="note://200"))
        for peer in (lost, later):
            peer.close()


def test_the_http_api_has_the_same_limits(tmp_path: Path) -> None:
    limits = "[serve]\ntoken = 'shared-by-everybody'\ncalls_per_minute = 3\nrequests_per_minute = 40\nmax_body = 1000"
    with served(tmp_path, limits, HOLD) as address:
        peer, api = Peer(address, "shared-by-everybody"), address.removesuffix("/mcp")

        def post(path: str, body: Any, token: str = "shared-by-everybody") -> tuple[int, str]:
            answer = peer.http.post(api + path, json=body, headers=bearer(token))
            return answer.status_code, answer.json().get("error", {}).get("code", "")

        gate = tmp_path / "gate"
        gate.touch()
        assert post("/run", {"source_code": "return '" + "x" * 1000 + "'"}) == (413, "too_large")
        assert post("/tools/hold", {"path": str(gate)}) == (200, "")
        assert "released" in str(peer.result("tools/call", name="lua_repl", arguments={"source_code": "'released'"}))
        assert post("/tools/hold", {"path": str(gate)}, token="wrong") == (401, "unauthorized")
        for path, body in (("/run", {"source_code": "return 1"}), ("/tools/hold", {"path": str(gate)})):
            assert post(path, body) == (429, "too_many_calls")
        refused = peer.result("tools/call", name="lua_repl", arguments={"source_code": "return 1"})
        assert "3 calls a minute" in refused["content"][0]["text"]
        answers = [peer.http.get(f"{api}/tools/list") for _ in range(41)]
        assert answers[-1].json()["error"]["code"] == "too_many_requests"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert peer.http.get(f"{api}/health").status_code == 200
        peer.close()


def test_fifty_clients_at_once(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fifty")

    async def client(url: str, number: int) -> list[Any]:
        mode = "legacy" if number % 2 else "auto"
        async with Client(over_http(url), mode=mode) as opened:
            assert [tool.name for tool in (await opened.list_tools()).tools] == ["lua_repl", "place"]
            values: list[Any] = []
            state: dict[str, str] = {}
            for step in range(3):
                source = f"total = (total or {number}) + tools.wait{{seconds = 0.01}} * 0 + 1 return total"
                result = await opened.call_tool("lua_repl", {"source_code": source, **state})
                assert not result.is_error, (number, step, text(result))
                if "state" in result.structured_content:
                    state = {"state": result.structured_content["state"]}
                values.append(result.structured_content["value"])
            return values

    async def crowd(url: str) -> list[list[Any]]:
        return await asyncio.gather(*(client(url, number) for number in range(50)))

    with served(folder, "", TOOLS) as url:
        results = driver.run(crowd(url), 250)
        assert results == [[number + 1, number + 2, number + 3] for number in range(50)]
        beside = httpx2.get(url.replace("/mcp", "/health"), timeout=100).json()
        assert beside["status"] == "ok", "without tokens the HTTP API is served on the same address"
