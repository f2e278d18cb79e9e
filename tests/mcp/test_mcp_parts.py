"""Parts that need no server: results, shares, conversations, media, the gate."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp_types import AudioContent, BlobResourceContents, CallToolResult, EmbeddedResource, TextContent
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from moonbox import ToolError
from moonbox.mcp.media import Media, Medium
from moonbox.mcp.server.conversations import Busy, Conversations
from moonbox.mcp.server.guard import guarded
from moonbox.mcp.server.settings import ServeSettings
from moonbox.mcp.server.shares import Rate, Shares, TooMany
from moonbox.mcp.upstreams.process import Pace, Tail
from moonbox.mcp.upstreams.results import unwrap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def texts(*parts: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=part) for part in parts], **more)


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (texts("a"), "a"),
        (texts(), None),
        (texts("a", "b"), "a\nb"),
        (texts('{"a": 1}', "[2]"), [{"a": 1}, [2]]),
        (texts('{"a": 1}', "and words"), '{"a": 1}\nand words'),
        (texts("words", structured_content={"a": 1}), {"a": 1}),
        (texts("words", structured_content={"result": 5}), {"result": 5}),
    ],
)
def test_results_become_data(result: CallToolResult, value: Any) -> None:
    assert unwrap(result, None) == value


def test_a_value_wrapped_for_the_protocol_is_unwrapped() -> None:
    schema = {"type": "object", "x-fastmcp-wrap-result": True, "properties": {"result": {"type": "integer"}}}
    assert unwrap(texts("5", structured_content={"result": 5}), schema) == 5


def test_sounds_and_blobs_are_kept_outside() -> None:
    media = Media()
    sound = AudioContent(data="AAAA", mime_type="audio/wav")
    blob = EmbeddedResource(resource=BlobResourceContents(uri="x://1", mime_type="application/zip", blob="AAA="))
    value = unwrap(CallToolResult(content=[sound, blob]), None, media)
    assert [item["size"] for item in value["content"]] == [3, 2]
    assert media.get(value["content"][0]["uri"]) == Medium("audio", "audio/wav", "AAAA")
    assert media.get(value["content"][1]["media"]) == Medium("resource", "application/zip", "AAA=")
    without = unwrap(CallToolResult(content=[sound]), None)
    assert without == {"type": "audio", "mimeType": "audio/wav", "size": 3}


def test_an_error_keeps_its_words_and_its_data() -> None:
    with pytest.raises(ToolError) as caught:
        unwrap(texts("no such thing", is_error=True, structured_content={"code": "not_found", "id": 7}), None)
    assert (caught.value.message, caught.value.code) == ("no such thing", "not_found")
    assert caught.value.data == {"code": "not_found", "id": 7}
    with pytest.raises(ToolError, match=r"^the tool reported an error without words$"):
        unwrap(texts(is_error=True), None)


def test_media_give_way_when_there_are_too_many() -> None:
    media = Media(most_bytes=1_000, most=3)
    addresses = [media.keep(Medium("image", "image/png", "x" * 10)) for _ in range(5)]
    assert [media.get(address or "") is not None for address in addresses] == [False, False, True, True, True]
    assert media.keep(Medium("image", "image/png", "x" * 300)) is None
    assert len(set(addresses)) == 5


def test_the_tail_keeps_the_end() -> None:
    tail = Tail(100)
    for number in range(1_000):
        tail.add(f"line {number}\n".encode())
    assert tail.last_line() == "line 999"
    assert len(tail.text()) <= 100
    tail.add(b"x" * 10_000)
    assert len(tail.text()) == 100


def test_a_pace_slows_whoever_spends_too_much() -> None:
    async def main() -> float:
        pace = Pace(1_000)
        began = time.monotonic()
        for _ in range(13):
            await pace.spend(100)
        return time.monotonic() - began

    assert 0.2 < asyncio.run(main()) < 30


def test_shares_wait_in_a_bounded_line() -> None:
    async def main() -> None:
        shares = Shares(most=1, waiting=1)
        order: list[str] = []

        async def use(name: str, hold: asyncio.Event) -> None:
            async with shares.slot("client"):
                order.append(name)
                await hold.wait()

        hold = asyncio.Event()
        tasks = [asyncio.create_task(use("first", hold)), asyncio.create_task(use("second", hold))]
        await asyncio.sleep(0)
        with pytest.raises(TooMany, match="2 calls under way or waiting"):
            async with shares.slot("client"):
                pass
        async with shares.slot("another"):
            order.append("another")
        hold.set()
        await asyncio.gather(*tasks)
        assert order == ["first", "another", "second"]
        assert not shares._shares, "nothing is remembered of those who are done"

    asyncio.run(main())


def test_a_rate_is_counted_for_each_address() -> None:
    rate = Rate(per_minute=3, most_addresses=2)
    assert [rate.wait("a") > 0 for _ in range(4)] == [False, False, False, True]
    assert rate.wait("b") == 0
    assert 15 < rate.wait("a") <= 20
    for address in "cde":
        rate.wait(address)
    assert len(rate._buckets) == 2


@dataclass
class _Peer:
    owner: str = "local"
    session: str | None = None


def test_conversations_go_by_name_handle_and_session() -> None:
    ended: list[str] = []
    kept = Conversations(ended.append, idle_seconds=0.0, most=2)
    peer: Any = _Peer()
    fresh = kept.place(peer, None, None)
    assert fresh.handle is not None
    with kept.using(fresh.key):
        assert kept.place(peer, None, fresh.handle).key == fresh.key
        kept.sweep()
        assert len(kept) == 1, "what is running does not end"
    other: Any = _Peer(owner="other")
    assert kept.place(other, None, fresh.handle).key != fresh.key
    session: Any = _Peer(session="s")
    assert kept.place(session, None, None).handle is None
    assert kept.place(session, "mine", None).key == "local|named|mine"
    kept.sweep()
    assert (ended, len(kept)) == ([fresh.key], 0)


def test_the_oldest_idle_conversation_makes_room() -> None:
    ended: list[str] = []
    kept = Conversations(ended.append, idle_seconds=100.0, most=2)
    for key in ("a", "b"):
        with kept.using(key):
            pass
    with kept.using("a"), kept.using("c"):
        assert ended == ["b"]
        with (
            pytest.raises(Busy, match=r"^2 conversations are under way; try again when one has ended$"),
            kept.using("d"),
        ):
            pass


def test_whoever_has_most_conversations_gives_one_up() -> None:
    ended: list[str] = []
    kept = Conversations(ended.append, idle_seconds=100.0, most=4)
    modest: Any = _Peer(owner="modest")
    greedy: Any = _Peer(owner="greedy")
    for peer, name in ((modest, "only"), (greedy, "1"), (greedy, "2"), (greedy, "3"), (greedy, "4|x"), (greedy, "5")):
        with kept.using(kept.place(peer, name, None).key):
            pass
    assert ended == ["greedy|named|1", "greedy|named|2"]


def test_the_gate_counts_requests_and_looks_at_names() -> None:
    async def main() -> list[int]:
        async def answer(_: Any) -> PlainTextResponse:
            return PlainTextResponse("in")

        settings = ServeSettings(requests_per_minute=3, hosts=("tools.example",), origins=("https://ok.example",))
        app = guarded(Starlette(routes=[Route("/", answer)]), settings)
        statuses = []
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as client:
            for headers in (
                {"Host": "tools.example:80"},
                {"Host": "127.0.0.1.evil.example"},
                {"Origin": "https://ok.example"},
                {"Origin": "null"},
                {"Host": "[::1]:8808"},
                {},
            ):
                statuses.append((await client.get("http://localhost/", headers=headers)).status_code)
        return statuses

    assert asyncio.run(main()) == [200, 421, 200, 403, 200, 429]


def test_a_question_to_several_clients_at_once_is_asked_of_none() -> None:
    from mcp_types import ErrorData, ListRootsRequest

    from moonbox.mcp.caller import CALLER
    from moonbox.mcp.upstreams.underway import UnderWay

    async def main() -> Any:
        under_way = UnderWay("shared")
        async with asyncio.timeout(5) as timer:
            token = CALLER.set(SimpleNamespace(client="one"))  # type: ignore[arg-type]  # as far as it is looked at
            with under_way.call(timer):
                CALLER.set(SimpleNamespace(client="two"))  # type: ignore[arg-type]
                with under_way.call(timer):
                    CALLER.set(None)
                    answer = await under_way.answer(ListRootsRequest())
            CALLER.reset(token)
        return answer

    refused = asyncio.run(main())
    assert isinstance(refused, ErrorData)
    assert refused.message == "roots/list is refused: several clients use this server at the moment"


def test_a_server_has_few_questions_open_at_a_time() -> None:
    from mcp_types import ErrorData, ListRootsRequest, ListRootsResult

    from moonbox.mcp.upstreams.broker import Broker
    from moonbox.mcp.upstreams.underway import MOST_OPEN, UnderWay

    async def main() -> list[Any]:
        answered = asyncio.Event()
        asked = 0

        async def forward(_: Any) -> ListRootsResult:
            nonlocal asked
            asked += 1
            await answered.wait()
            return ListRootsResult(roots=[])

        under_way = UnderWay("curious")
        client: Any = SimpleNamespace(client="one", forward=forward)
        under_way.broker = Broker(alone=lambda: client)
        tasks = [asyncio.create_task(under_way.answer(ListRootsRequest())) for _ in range(50)]
        while sum(task.done() for task in tasks) < 50 - MOST_OPEN:
            await asyncio.sleep(0)
        assert asked == MOST_OPEN
        answered.set()
        return await asyncio.gather(*tasks)

    refused = [item for item in asyncio.run(main()) if isinstance(item, ErrorData)]
    assert len(refused) == 42
    assert refused[0].message == "roots/list is refused: 8 questions of this server are open already"


def test_a_stream_of_events_is_read_at_a_pace() -> None:
    from moonbox.mcp.upstreams.web import BYTES_PER_SECOND, LINE_COST, _Paced

    class Flood(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for _ in range(4):
                yield b"\n" * (BYTES_PER_SECOND // LINE_COST // 2)

    async def main() -> float:
        began = time.monotonic()
        assert sum([len(part) async for part in _Paced(Flood())]) == 2 * BYTES_PER_SECOND // LINE_COST
        return time.monotonic() - began

    assert asyncio.run(main()) > 0.9, "two seconds' worth, of which one is free"
