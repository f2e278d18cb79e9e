"""Two clients of one server, each with its token, attacked against each other: what is whose, and who waits."""

from __future__ import annotations

import asyncio
import json
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import httpx2

from tests.mcp.mcp_driver import ACCEPT, HELLO, SERVE, TOKENS, Peer, bearer, over_http, served, text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mcp.mcp_driver import Driver

CONFIG = f"""{SERVE}
max_calls = 4
max_waiting = 4
max_conversations = 6
requests_per_minute = 200
"""
TOOLS = """
from moonbox import tool

@tool
def look_up(key: str):
    return {key: {"value": 1}}

@tool(policy="approve")
def delete(path: str) -> str:
    return path
"""


def test_keys_in_the_results_of_one_are_not_shown_to_the_other(as_: Any) -> None:
    reads = [
        "return docs.describe('look_up')",
        "return docs.search('look up')",
        "return tools.look_up{key = 'acme_' .. 'merger'}.acme_merge",
    ]
    with as_("alice") as alice, as_("bob") as bob:
        alice.lua("return tools.look_up{key = 'acme_merger'}")
        assert "acme_merger" in text(alice.lua(reads[0])), "its own shapes are of use to each"
        for key in ("acme_merger", "alice.smith@acme.example", "Bob Jones - HIV clinic"):
            assert not alice.lua(f"return tools.look_up{{key = {json.dumps(key)}}}").is_error
            for read in reads:
                alice.lua(read)
                assert key not in str(bob.lua(read)), "nor by a check that was made for the other"
        assert "acme_merger" not in str(bob.tools())


def test_conversations_of_one_do_not_push_out_those_of_the_other(as_: Any) -> None:
    with as_("alice") as alice, as_("bob") as bob:
        handle = bob.lua("kept = 1").structured_content["state"]
        for number in range(15):
            alice.lua(f"x = {number}")
        assert bob.value("return kept", state=handle) == 1


def test_new_conversations_are_refused_before_the_state_of_others_is_given_up(driver: Driver, tmp_path: Path) -> None:
    with (
        served(tmp_path, "[serve]\nmax_conversations = 2\n") as address,
        driver.session(over_http(address)) as client,
    ):
        handles = [client.lua(f"kept = {number}").structured_content["state"] for number in range(2)]
        refused = client.lua("kept = 2")
        assert (refused.is_error, text(refused)) == (True, "error: all 2 sessions are in use; try again later")
        assert [client.value("return kept", state=handle) for handle in handles] == [0, 1]


def test_with_a_journal_the_state_of_conversations_sleeps(driver: Driver, tmp_path: Path) -> None:
    config = '[serve]\nmax_conversations = 2\n[journal]\npath = "state.db"\n'
    with served(tmp_path, config) as address, driver.session(over_http(address)) as client:
        handles = [client.lua(f"kept = {number}").structured_content["state"] for number in range(5)]
        again = [client.value("kept = kept + 10 return kept", state=handle) for handle in handles]
        assert again == [10, 11, 12, 13, 14]
        assert [client.value("return kept", state=handle) for handle in handles] == again


def test_state_that_was_given_up_is_told_at_the_next_run(tmp_path: Path) -> None:
    told = (
        "[the state of this conversation was given up: it was not used for long, or others needed its place; "
        "this script started with new globals]"
    )
    with served(tmp_path, f"{SERVE}max_conversations = 2\n") as address:
        peers = [Peer(address, name) for name in ("alice", "alice", "bob")]
        ran = [peer.result("tools/call", name="lua_repl", arguments={"source_code": "kept = 1"}) for peer in peers]
        assert not [result for result in ran if result["isError"]], "bob has fewer than alice"
        peers[2].http.delete(address, headers=peers[2].session)
        result = peers[0].result("tools/call", name="lua_repl", arguments={"source_code": "return kept"})
        assert result["content"][0]["text"].endswith(f"\n{told}")
        for peer in peers:
            peer.close()


def test_sessions_of_one_leave_room_for_the_other(tmp_path: Path) -> None:
    tokens = {f"client{number}": f"the-token-of-client-{number:03}" for number in range(99)}
    entries = ", ".join(f'{name} = "{token}"' for name, token in tokens.items())
    with served(tmp_path, f"[serve]\ntokens = {{ {entries} }}") as address:
        peers = [Peer(address, tokens["client0"]) for _ in range(10)]  # a thousand for all
        refused = peers[0].http.post(address, json=HELLO)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_sessions")
        peers.append(Peer(address, tokens["client1"]))
        assert peers[0].http.delete(address, headers=peers[0].session).status_code == 200
        peers.append(Peer(address, tokens["client0"]))
        for peer in peers:
            peer.close()


def test_slow_clients_hold_nobody_up(as_: Any, url: str) -> None:
    place = urlsplit(url)
    assert place.hostname is not None
    slow = [socket.create_connection((place.hostname, place.port), timeout=100) for _ in range(100)]
    try:
        for number, connection in enumerate(slow):
            head = f"POST /mcp HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {TOKENS['alice']}\r\n"
            body = "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{" if number % 2 else "X-Drip: "
            connection.sendall((head + body).encode())
        with as_("bob") as bob:
            assert [bob.value(f"return {number}") for number in range(5)] == list(range(5))
    finally:
        for connection in slow:
            connection.close()


def test_an_approval_is_asked_of_the_client_that_needs_it(as_: Any) -> None:
    asked: list[str] = []

    def answering(name: str, action: Literal["accept", "decline"]) -> Any:
        async def elicit(context: Any, params: Any) -> Any:
            from mcp_types import ElicitResult

            asked.append(name)
            await asyncio.sleep(0)
            return ElicitResult(action=action, content={"always": True} if action == "accept" else None)

        return elicit

    with (
        as_("alice", elicitation_callback=answering("alice", "accept")) as alice,
        as_("bob", elicitation_callback=answering("bob", "decline")) as bob,
    ):
        assert json.dumps(text(alice.call("delete", {"path": "a"})))
        refused = bob.call("delete", {"path": "b"})
        assert refused.is_error, "what one agreed to, for ever, says nothing about the other"
    assert asked == ["alice", "bob"]


def test_the_time_to_refuse_does_not_depend_on_the_token() -> None:
    """Counted in calls: every configured token is compared, whatever was sent."""
    from moonbox.config.sections import ServeSettings
    from moonbox.mcp.server.sessions import Verifier
    from tests.counting import count_calls

    tokens = Verifier(ServeSettings(tokens=TOKENS))
    tokens.name_of("warm up")
    sent = ["", "a", TOKENS["alice"], TOKENS["bob"], TOKENS["alice"][:-1] + "x", "x" * 10_000]
    assert len({count_calls(partial(tokens.name_of, token)) for token in sent}) == 1


def test_a_flood_from_one_does_not_stop_the_other(as_: Any, url: str) -> None:
    """From the same address: a proxy, or one machine with several users. The last test: the server then has enough."""
    with httpx2.Client(headers={**ACCEPT, **bearer("alice")}, timeout=100) as client:
        statuses = [
            client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code for _ in range(260)
        ]
    assert 429 in statuses
    with as_("bob") as bob:
        assert bob.value("return 1") == 1
    with httpx2.Client(headers={**ACCEPT, "Authorization": "Bearer wrong"}, timeout=100) as client:
        statuses = [client.post(url, json=HELLO).status_code for _ in range(260)]
    assert set(statuses) == {401, 429}
    with as_("bob") as bob:
        assert bob.value("return 2") == 2, "and neither does one without a token"
