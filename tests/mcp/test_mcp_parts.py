"""Parts that need no server: results, shares, conversations, media, throttles, the guard."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx2
import mcp_types as types
import pytest
from mcp import MCPError
from msgspec import msgpack

from moonbox import Toolbox, ToolError
from moonbox.config.sections import ServeSettings
from moonbox.mcp.caller import CALLER, MAX_OPEN, Callbacks, ClientFeatures
from moonbox.mcp.server.calls import OpenCalls
from moonbox.mcp.server.limits import ClusterCount, ClusterQuotas, Quotas, RequestRate, Shares, TokenBucket, TooMany
from moonbox.mcp.server.notifications import ChangeNotifier
from moonbox.mcp.server.passthrough import Passthrough
from moonbox.mcp.server.sessions import McpClient, conversation_of, owner_of
from moonbox.mcp.upstreams.connection import Connection
from moonbox.mcp.upstreams.status import call_error
from moonbox.mcp.upstreams.tools import result_value
from moonbox.mcp.upstreams.transport import OutputTail
from moonbox.mcp.upstreams.web import BYTES_PER_SECOND, LINE_COST, MessageLength, MeteredStream, event_cost
from moonbox.media import Media, MediaStore
from tests.mcp.mcp_driver import CURRENT, EARLIER
from tests.waiting import await_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from moonbox.cluster.ray_messages import CallActor
    from moonbox.mcp.server.call import OpenCall


def texts(*parts: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=part) for part in parts], **more)


WRAPPED = {"type": "object", "x-fastmcp-wrap-result": True, "properties": {"result": {"type": "integer"}}}
FAILED = {
    "isError": True,
    "content": [{"type": "text", "text": "no such thing"}],
    "structuredContent": {"code": "gone"},
}


@pytest.mark.parametrize(
    ("result", "schema", "value"),
    [
        (texts("a"), None, "a"),
        (texts(), None, None),
        (texts("a", "b"), None, "a\nb"),
        (texts('{"a": 1}', "[2]"), None, [{"a": 1}, [2]]),
        (texts('{"a": 1}', "and words"), None, '{"a": 1}\nand words'),
        (texts("words", structured_content={"a": 1}), None, {"a": 1}),
        (texts("words", structured_content={"result": 5}), None, {"result": 5}),
        (texts("5", structured_content={"result": 5}), WRAPPED, 5),
        (texts(structured_content={"result": [1]}, _meta={"fastmcp": {"wrap_result": True}}), None, [1]),
        (texts("", structured_content={"isError": True, "n": 1}), None, {"isError": True, "n": 1}),
    ],
)
def test_results_become_data(result: types.CallToolResult, schema: Any, value: Any) -> None:
    assert result_value(result, schema) == value


@pytest.mark.parametrize(
    ("result", "message", "code", "data"),
    [
        (texts("", structured_content=FAILED), "no such thing", "gone", None),
        (texts(json.dumps(FAILED)), "no such thing", "gone", None),
        (texts("", structured_content={"result": FAILED}), "no such thing", "gone", None),
        (
            texts("no such thing", is_error=True, structured_content={"code": "not_found", "id": 7}),
            *("no such thing", "not_found", {"code": "not_found", "id": 7}),
        ),
        (texts(is_error=True), "the tool failed without a message", "tool_error", None),
    ],
    ids=["as data", "as text", "wrapped", "with data", "without words"],
)
def test_a_failure_is_an_error_with_its_words(result: types.CallToolResult, message: str, code: str, data: Any) -> None:
    with pytest.raises(ToolError) as caught:
        result_value(result, {"type": "object", "x-fastmcp-wrap-result": True})
    assert (caught.value.message, caught.value.code) == (message, code)
    assert data is None or caught.value.data == data


def test_sounds_and_blobs_are_media() -> None:
    store = MediaStore()
    sound = types.AudioContent(data="AAAA", mime_type="audio/wav")
    blob = types.EmbeddedResource(
        resource=types.BlobResourceContents(uri="x://1/a.zip", mime_type="application/zip", blob="AAA=")
    )
    value = result_value(types.CallToolResult(content=[sound, blob]), None, store)
    assert value == {"content": [Media(bytes(3), "audio/wav"), Media(bytes(2), "application/zip", "a.zip")]}
    assert [store.get(medium.address) for medium in value["content"]] == value["content"]
    assert result_value(types.CallToolResult(content=[sound]), None) == Media(bytes(3), "audio/wav")


@pytest.mark.parametrize(
    ("data", "kind", "value"),
    [
        ("not base64 \x1b[2J", "image/png", {"type": "image", "mimeType": "image/png", "size": 11}),
        ("AAAA", "x\r\ny", Media(bytes(3), "application/octet-stream")),
    ],
)
def test_media_of_hostile_servers(data: str, kind: str, value: Any) -> None:
    assert result_value(types.CallToolResult(content=[types.ImageContent(data=data, mime_type=kind)]), None) == value


def test_the_tail_keeps_the_end() -> None:
    tail = OutputTail(100)
    for number in range(1_000):
        tail.add(f"line {number}\n".encode())
    assert tail.last_line() == "line 999"
    assert len(tail.text()) <= 100
    tail.add(b"x" * 10_000)
    assert len(tail.text()) == 100


class Clock:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(round(seconds, 6))
        self.now += seconds


def test_a_throttle_slows_whoever_spends_too_much() -> None:
    async def main() -> None:
        bucket = TokenBucket(1_000, 1_000, clock=clock, sleep=clock.sleep)
        for _ in range(13):
            await bucket.pay(100)
        clock.now += 10.0
        await bucket.pay(1_000)

    clock = Clock()
    asyncio.run(main())
    assert clock.sleeps == [0.1, 0.1, 0.1], "a second's worth is free, and free again after a rest"


def test_a_call_is_refused_only_after_it_waited_and_its_client_was_told() -> None:
    async def main() -> None:
        shares = Shares(max_calls=1, max_waiting=5, wait_seconds=0.01)
        ahead: list[int] = []
        async with shares.slot("client", ahead.append):
            with pytest.raises(TooMany, match=r"^this call waited 0.01 s for its turn: .* 1 call at a time"):
                async with shares.slot("client", ahead.append):
                    pass
        async with shares.slot("client", ahead.append):
            pass  # its turn, at once
        assert ahead == [1]
        assert not shares._shares

    asyncio.run(main())


def test_a_call_that_runs_for_longer_than_a_minute_still_counts() -> None:
    now = [0.0]
    for quotas, limit in (
        (Quotas(None, 50.0, clock=lambda: now[0]), "the calls of this client may take 50 s a minute"),
        (Quotas(1, None, clock=lambda: now[0]), "this client may make 1 call a minute"),
    ):
        with quotas.call("alice"):
            now[0] += 61.0
            for _ in range(2):
                with pytest.raises(TooMany, match=rf"^{limit}; try again in 60 s$"), quotas.call("alice"):
                    pass
                now[0] += 61.0
        with pytest.raises(TooMany), quotas.call("alice"):
            pass
        now[0] += 60.0
        with quotas.call("alice"):
            pass


def test_quotas_count_calls_and_their_time_for_each_client() -> None:
    now = [0.0]
    quotas = Quotas(2, 10.0, clock=lambda: now[0])
    for _ in range(2):
        with quotas.call("alice"):
            now[0] += 1.0
    with (
        pytest.raises(TooMany, match=r"^this client may make 2 calls a minute; try again in 59 s$"),
        quotas.call("alice"),
    ):
        pass
    with quotas.call("bob"):
        now[0] += 11.0
    expected = r"^the calls of this client may take 10 s a minute; try again in 60 s$"
    with pytest.raises(TooMany, match=expected), quotas.call("bob"):
        pass
    now[0] += 60.0
    for name in ("alice", "bob"):
        with quotas.call(name):
            pass
    free = Quotas(None, None)
    with free.call("anybody"):
        assert not free._used


def test_a_call_that_is_given_up_while_the_cluster_is_asked_takes_no_place() -> None:
    asked = asyncio.Event()

    class Ray:
        """Counts at once, as the actor of a cluster does, and answers the first time never."""

        def __init__(self) -> None:
            self._count: Any = None
            self.ray = self

        def ask(self, request: CallActor) -> Future[bytes]:
            self._count = self._count or ClusterCount(*request.given)
            answer = getattr(self._count, request.method)(*request.arguments)
            future = Future[bytes]()
            if asked.is_set():
                future.set_result(msgpack.encode(answer))
            asked.set()
            return future

    async def main() -> None:
        quotas = ClusterQuotas(ServeSettings(max_calls=1, wait_seconds=5.0), cast("Any", Ray()))

        async def call() -> None:
            async with quotas.acall("alice"):
                pass

        given_up = asyncio.create_task(call())
        await asked.wait()
        given_up.cancel()
        await asyncio.wait([given_up])
        await call()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_rate_is_counted_for_each_address() -> None:
    rate = RequestRate(per_minute=3, max_addresses=2, clock=lambda: 0.0)
    assert [rate.wait("a") > 0 for _ in range(4)] == [False, False, False, True]
    assert rate.wait("b") == 0
    assert rate.wait("a") == 20.0
    for address in "cde":
        rate.wait(address)
    assert len(rate._buckets) == 2


def _follower(owner: str, session: str) -> McpClient:
    channel: Any = object()
    return McpClient(owner, session, "127.0.0.1", False, None, channel, None, False)


def test_resources_that_clients_follow_are_bounded() -> None:
    """More sessions do not follow more, and what is followed no longer costs nothing."""
    notifier = ChangeNotifier(Toolbox(), str)
    alice = [_follower("alice", f"session-{number}") for number in range(4)]
    for number in range(200):
        notifier.subscribe(alice[number % 4], f"file:///{number}")
    with pytest.raises(MCPError, match=r"^a client can follow at most 200 resources$"):
        notifier.subscribe(alice[0], "file:///more")
    notifier.subscribe(_follower("bob", "his"), "file:///more")
    with pytest.raises(MCPError, match=r"^the address of a resource can have at most 2000 characters, not 2008$"):
        notifier.subscribe(_follower("bob", "his"), "file:///" + "x" * 2000)
    assert len(list(notifier.subscribed())) == 201
    notifier.remove(alice[0].id)
    assert len(list(notifier.subscribed())) == 151
    for client in alice:
        notifier.remove(client.id)
    assert list(notifier.subscribed()) == ["file:///more"]
    for _ in range(2):
        notifier.unsubscribe(_follower("bob", "his").id, "file:///more")
    assert list(notifier.subscribed()) == []


async def _listen(passthrough: Passthrough, *uris: str) -> None:
    session = SimpleNamespace(client_capabilities=None)
    context: Any = SimpleNamespace(
        request=None, meta=None, protocol_version=CURRENT, session=session, request_id=1, method=""
    )
    params: Any = SimpleNamespace(notifications=SimpleNamespace(resource_subscriptions=list(uris)))
    await passthrough.listen(context, params)


def test_streams_of_changes_are_bounded_for_each_client() -> None:
    """One client cannot take the streams of all, nor follow more resources by streams than by sessions."""

    class Servers:
        async def subscribe(self, uris: Any) -> Any:
            return {}

    async def main() -> None:
        servers: Any = Servers()
        resources: Any = None
        notifier = ChangeNotifier(Toolbox(), str)

        async def never() -> None:
            await asyncio.Event().wait()

        passthrough = Passthrough(servers, resources, notifier, ServeSettings(), never)
        tasks = [asyncio.create_task(_listen(passthrough, f"file:///{number}")) for number in range(100)]
        await await_until(lambda: len(list(notifier.subscribed())) == 100)
        with pytest.raises(MCPError, match=r"^a client can have at most 100 streams of changes$"):
            await _listen(passthrough, "file:///more")
        tasks.pop().cancel()
        await await_until(lambda: len(list(notifier.subscribed())) == 99)
        with pytest.raises(MCPError, match=r"^a client can follow at most 200 resources$"):
            await _listen(passthrough, *(f"file:///more/{number}" for number in range(102)))
        with pytest.raises(MCPError, match=r"^the address of a resource can have at most 2000 characters, not 2008$"):
            await _listen(passthrough, "file:///" + "x" * 2000)
        notifier.subscribe(_follower("bob", "his"), "file:///his")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert list(notifier.subscribed()) == ["file:///his"]

    asyncio.run(asyncio.wait_for(main(), 60))


class Refusing:
    """A session with a server of the earlier protocol that knows only some resources."""

    protocol_version = EARLIER
    server_capabilities = types.ServerCapabilities(resources=types.ResourcesCapability(subscribe=True))

    def __init__(self) -> None:
        self.followed: set[str] = set()

    async def send_request(self, request: Any, _: Any) -> None:
        uri = str(request.params.uri)
        if "unknown" in uri:
            raise MCPError(types.INVALID_PARAMS, f"no {uri}")
        (self.followed.add if request.method == "resources/subscribe" else self.followed.discard)(uri)


def test_a_resource_that_a_server_refuses_to_tell_of_keeps_nobody_from_others() -> None:
    async def main() -> None:
        transport: Any = None
        connection = Connection(transport, (transport, transport), ClientFeatures(), transport, transport)
        session: Any = Refusing()
        connection.session = session

        class Servers:
            async def subscribe(self, uris: Any) -> Any:
                return await connection.subscribe(set(uris))

        async def nothing() -> None:
            """There is no server to wait for."""

        async def follow(owner: str, uri: str) -> None:
            meta = SimpleNamespace(client_capabilities=None)
            context: Any = SimpleNamespace(
                request=None, meta=None, protocol_version=EARLIER, session=meta, request_id=owner
            )
            await passthrough.subscribe(context, types.SubscribeRequestParams(uri=uri))

        servers: Any = Servers()
        resources: Any = None
        passthrough = Passthrough(servers, resources, ChangeNotifier(Toolbox(), str), ServeSettings(), nothing)
        for _ in range(2):  # refused is refused, however often it is tried
            with pytest.raises(MCPError, match="no file:///unknown"):
                await follow("alice", "file:///unknown")
        await follow("bob", "file:///known")
        assert session.followed == {"file:///known"}
        session.followed.clear()
        again = Connection(
            transport, (transport, transport), ClientFeatures(), transport, transport
        )  # after a restart of the server, which has lost a resource
        again.session = session
        refused = await again.subscribe({"file:///unknown", *(f"file:///{number}" for number in range(9))})
        assert (list(refused), len(session.followed)) == (["file:///unknown"], 9)
        assert list(await again.subscribe({"file:///unknown", "file:///1"})) == ["file:///unknown"]
        assert session.followed == {"file:///1"}

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_client_that_leaves_while_it_begins_to_listen_is_forgotten() -> None:
    """Its connection ends while the servers are still starting: its list is not kept."""
    wanted: list[list[str]] = []

    class Servers:
        async def subscribe(self, uris: Any) -> Any:
            wanted.append(sorted(uris))
            return {}

    async def main() -> None:
        waiting = asyncio.Event()

        async def never() -> None:
            waiting.set()
            await asyncio.Event().wait()

        servers: Any = Servers()
        resources: Any = None
        passthrough = Passthrough(servers, resources, ChangeNotifier(Toolbox(), str), ServeSettings(), never)
        task = asyncio.create_task(_listen(passthrough, "file:///left"))
        await waiting.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert wanted == [[]], "the servers are told that nobody follows it"

    asyncio.run(main())


@pytest.mark.parametrize("steps", range(8))
def test_a_script_that_ends_just_when_its_client_has_waited_enough_is_not_told_as_stopped(steps: int) -> None:
    async def main() -> Any:
        async def work(_: Any) -> types.CallToolResult:
            for _ in range(steps):
                await asyncio.sleep(0)
            return texts("done")

        client = _follower("alice", "hers")
        calls = OpenCalls(ServeSettings(answer_within=1e-9), lambda _: None)
        answer: Any = await calls.resume(calls.start(client, work, script=True, wait_tool="wait"), client)
        while (answer.structured_content or {}).get("running"):
            answer = await calls.wait(client, {"run_id": answer.structured_content["run"]}, "wait")
        return answer.content[0].text

    assert asyncio.run(main()) == "done"


def test_the_name_of_a_conversation_cannot_name_an_owner() -> None:
    named = conversation_of(_follower("local", "s"), "mine|x", None, ()).key
    assert owner_of(named) == "local"


def test_conversations_with_different_names_are_different() -> None:
    names = ["mine|x", "mine/x", "x" * 128 + "1", "x" * 128 + "2"]
    follower = _follower("local", "s")
    assert len({conversation_of(follower, name, None, ()).key for name in names}) == len(names)
    assert len({conversation_of(follower, name, None, ()).label for name in names}) == len(names)


@pytest.mark.parametrize(
    ("capabilities", "supported"),
    [
        ({}, set()),
        ({"elicitation": {}}, {"form"}),
        ({"elicitation": {"form": {}}}, {"form"}),
        ({"elicitation": {"url": {}}}, {"url"}),
        ({"elicitation": {"form": {}, "url": {}}}, {"form", "url"}),
        ({"sampling": {}, "roots": {}}, {"sampling", "roots"}),
    ],
)
@pytest.mark.parametrize(("modern", "connected"), [(True, False), (False, True), (False, False)])
def test_a_client_is_asked_only_for_what_it_supports(
    capabilities: dict[str, Any], supported: set[str], modern: bool, connected: bool
) -> None:
    channel: Any = SimpleNamespace(can_send_request=connected)
    declared = types.ClientCapabilities.model_validate(capabilities)
    client = McpClient("local", None, "here", modern, declared, channel, request_id=1, wants_progress=False)
    able = {
        "form": client.supports("elicitation/create"),
        "url": client.supports("elicitation/create", "url"),
        "sampling": client.supports("sampling/createMessage"),
        "roots": client.supports("roots/list"),
    }
    expected = supported if modern or connected else set()
    assert {name for name, value in able.items() if value} == expected


def test_a_question_to_several_clients_at_once_is_asked_of_none() -> None:
    async def main() -> Any:
        callbacks = Callbacks("shared")
        async with asyncio.timeout(60) as timer:
            token = CALLER.set(cast("OpenCall", SimpleNamespace(client="one")))  # as far as it is looked at
            with callbacks.call(timer):
                CALLER.set(cast("OpenCall", SimpleNamespace(client="two")))
                with callbacks.call(timer):
                    CALLER.set(None)
                    answer = await callbacks.answer(types.ListRootsRequest())
            CALLER.reset(token)
        return answer

    refused = asyncio.run(main())
    assert isinstance(refused, types.ErrorData)
    assert refused.message == "roots/list refused: several clients are using this server at the moment"


def test_a_server_has_few_questions_open_at_a_time() -> None:
    async def main() -> list[Any]:
        answered = asyncio.Event()
        asked = 0

        async def forward(_: Any) -> types.ListRootsResult:
            nonlocal asked
            asked += 1
            await answered.wait()
            return types.ListRootsResult(roots=[])

        callbacks = Callbacks("curious")
        client: Any = SimpleNamespace(client="one", forward=forward)
        callbacks.features = ClientFeatures(caller=lambda: client)
        tasks = [asyncio.create_task(callbacks.answer(types.ListRootsRequest())) for _ in range(50)]
        while sum(task.done() for task in tasks) < 50 - MAX_OPEN:
            await asyncio.sleep(0)
        assert asked == MAX_OPEN
        answered.set()
        return await asyncio.gather(*tasks)

    refused = [item for item in asyncio.run(main()) if isinstance(item, types.ErrorData)]
    assert len(refused) == 42
    assert refused[0].message == "roots/list refused: 8 requests of this server are already waiting for an answer"


@pytest.mark.parametrize("end", ["\n\n", "\r\r", "\r\n\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_events_are_measured_one_by_one_however_they_arrive(end: str, size: int) -> None:
    stream = end.join(("data: 12345", "data: 1", "id: 1" + end[: len(end) // 2] + "data: 1234567890", "data")).encode()
    length = MessageLength(events=True)
    longest = max(length.add(stream[at : at + size]) for at in range(0, len(stream), size))
    assert 0 <= longest - len("id: 1data: 1234567890") <= 2 * len(end), "line breaks may be counted"
    assert MessageLength(events=False).add(stream) == len(stream)


def test_a_stream_of_events_is_read_at_a_pace() -> None:
    class Flood(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for _ in range(4):
                yield b"\n" * (BYTES_PER_SECOND // LINE_COST // 2)

    async def main() -> int:
        bucket = TokenBucket(BYTES_PER_SECOND, BYTES_PER_SECOND, clock=clock, sleep=clock.sleep)
        return sum([len(part) async for part in MeteredStream(Flood(), lambda part: bucket.pay(event_cost(part)))])

    clock = Clock()
    assert asyncio.run(main()) == 2 * BYTES_PER_SECOND // LINE_COST
    assert round(clock.now, 2) == 1.0, "two seconds' worth, of which one is free"


@pytest.mark.parametrize(
    ("number", "code", "retryable"),
    [
        (-32602, "invalid", False),
        (-32601, "unknown_tool", False),
        (-32002, "not_found", False),
        (-32001, "timeout", True),
        (-32603, "tool_error", False),
        (404, "not_found", False),
        (409, "conflict", False),
        (429, "rate_limited", True),
        (503, "unavailable", True),
        (7, "tool_error", False),
    ],
)
def test_codes_of_the_protocol(number: int, code: str, retryable: bool) -> None:
    error = call_error(MCPError(number, "no luck", {"why": "?"}), "server")
    assert (error.code, error.retryable, error.message, error.data) == (code, retryable, "no luck", {"why": "?"})


@pytest.mark.parametrize(
    ("status", "code"), [("401 Unauthorized", "denied"), ("503 Service Unavailable", "unavailable")]
)
def test_codes_of_http_statuses(status: str, code: str) -> None:
    error = call_error(MCPError(-32000, "Server returned an error response"), "server", f"it answered {status}")
    assert (error.code, error.message) == (code, f"the MCP server 'server' refused the call: it answered {status}")
