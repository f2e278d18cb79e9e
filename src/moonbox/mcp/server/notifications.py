"""Notifications to clients: changes of tools, prompts and resources, and what a call reports on its way."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

from moonbox.mcp.server.sessions import LOG_LEVELS, McpClient
from moonbox.runs.record import ScriptProgress, progress_words
from moonbox.threads import soon
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from mcp.shared.subscriptions import ServerEvent

    from moonbox.runs.call_entry import CallEntry
    from moonbox.tools.toolbox import Toolbox

_SETTLE_SECONDS = 0.1
_SEND_SECONDS = 5.0
_PROGRESS_SECONDS = 0.1
_STEP = 1e-6
"""By how much progress grows at least, as the protocol wants it: so little that a script's own numbers stay exact."""
_FLUSH_SECONDS = 5.0
_MAX_RELAYED = 500
"""Notifications of one call that wait to be sent."""
_MAX_SESSIONS = 1_000
_MAX_SUBSCRIPTIONS = 200
"""Resources that one client can follow, in all of its sessions and streams."""
_MAX_STREAMS = 100
"""Of one client; the SDK bounds those of all clients together."""
_MAX_ADDRESS = 2000


class ChangeNotifier:
    """Notifies clients of changes: in the earlier protocol on their sessions, in the current one on open streams."""

    def __init__(self, toolbox: Toolbox, shown: Callable[[], object]) -> None:
        """`shown` gives something that is not equal to what it was exactly if clients see other tools than before."""
        self._toolbox, self._shown = toolbox, shown
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._changed = asyncio.Event()
        self._offers_changed = False
        self._followers: dict[object, _Follower] = {}
        """Sessions by the ids of their clients, the most recently used last; and streams."""
        self._sending: set[asyncio.Task[None]] = set()

    def add(self, client: McpClient) -> None:
        """Notify this client from now on: it has listed something."""
        if not client.modern:
            self._session(client)

    def _session(self, client: McpClient) -> _Follower:
        """The session of a client of the earlier protocol; of too many, the one that was not used for longest ends."""
        session = self._followers.pop(client.id, None) or _Follower(client.share)
        session.client = client
        self._followers[client.id] = session
        sessions = [key for key, one in self._followers.items() if one.client is not None]
        if len(sessions) > _MAX_SESSIONS:
            del self._followers[sessions[0]]
        return session

    def remove(self, client: str) -> None:
        """The client with this id has ended its session."""
        self._followers.pop(client, None)

    # Log levels

    def level_of(self, client: McpClient) -> str | None:
        """The level that a client has set for its session."""
        session = self._followers.get(client.id)
        return None if session is None else session.level

    def set_level(self, client: McpClient, level: types.LoggingLevel) -> types.LoggingLevel:
        """Set the level of a session; the most verbose level of all of them."""
        self._session(client).level = level
        levels = [one.level for one in self._followers.values() if one.level is not None]
        return min(levels, key=LOG_LEVELS.index)

    # Resources that clients follow

    def subscribe(self, client: McpClient, uri: str) -> None:
        """A client of the earlier protocol follows a resource."""
        self._check_room(client, [uri])
        self._session(client).uris.add(uri)

    @contextlib.contextmanager
    def stream(self, client: McpClient, uris: list[str]) -> Iterator[None]:
        """A client of the current protocol has a stream of changes open, and follows these resources on it."""
        streams = sum(one.client is None and one.share == client.share for one in self._followers.values())
        if streams >= _MAX_STREAMS:
            raise MCPError(types.INVALID_PARAMS, f"a client can have at most {_MAX_STREAMS} streams of changes")
        self._check_room(client, uris)
        key = object()
        self._followers[key] = _Follower(client.share, uris=set(uris))
        try:
            yield
        finally:
            del self._followers[key]

    def _check_room(self, client: McpClient, uris: list[str]) -> None:
        longest = max(map(len, uris), default=0)
        if longest > _MAX_ADDRESS:
            message = f"the address of a resource can have at most {_MAX_ADDRESS} characters, not {longest}"
            raise MCPError(types.INVALID_PARAMS, message)
        followed = sum(len(one.uris) for one in self._followers.values() if one.share == client.share)
        if followed + len(uris) > _MAX_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, f"a client can follow at most {_MAX_SUBSCRIPTIONS} resources")

    def unsubscribe(self, client: str, uri: str) -> None:
        if (follower := self._followers.get(client)) is not None:
            follower.uris.discard(uri)

    def subscribed(self) -> set[str]:
        return {uri for follower in self._followers.values() for uri in follower.uris}

    def resource_updated(self, uri: str) -> None:
        """Notify the clients that follow this resource."""
        sending = self._notify(ResourceUpdated(uri), lambda session: session.send_resource_updated(uri), uri)
        task = asyncio.get_running_loop().create_task(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    # Lists

    def offers_changed(self) -> None:
        """Prompts or resources of a server have changed."""
        self._offers_changed = True
        self._changed.set()

    async def run(self) -> None:
        """Notify until this is cancelled."""
        loop = asyncio.get_running_loop()
        unsubscribe = self._toolbox.subscribe(lambda _: soon(loop, self._changed.set))  # in whichever thread changed it
        before = self._shown()
        try:
            while True:
                await self._changed.wait()
                await asyncio.sleep(_SETTLE_SECONDS)  # servers that start together cause one notification
                self._changed.clear()
                now = self._shown()
                if now != before:
                    before = now
                    await self._notify(ToolsListChanged(), lambda session: session.send_tool_list_changed())
                if self._offers_changed:
                    self._offers_changed = False
                    await self._notify(PromptsListChanged(), lambda session: session.send_prompt_list_changed())
                    await self._notify(ResourcesListChanged(), lambda session: session.send_resource_list_changed())
        finally:
            unsubscribe()

    async def _notify(
        self, event: ServerEvent, send: Callable[[ServerSession], Awaitable[None]], uri: str | None = None
    ) -> None:
        """On all streams and sessions; with a `uri` on those that follow this resource."""
        await self._bus.publish(event)
        followers = [one for one in self._followers.values() if uri is None or uri in one.uris]
        clients = [one.client for one in followers if one.client is not None]
        await asyncio.gather(*(self._send(client, send(client.channel)) for client in clients))

    async def _send(self, client: McpClient, sending: Awaitable[None]) -> None:
        """Notify one session; one that is gone or does not read does not delay the others."""
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await sending
        except Exception:  # noqa: BLE001 - however a session fails, it is of no more use
            session = self._followers.get(client.id)
            if session is not None and session.client is client:
                self.remove(client.id)


@dataclass(eq=False, slots=True)
class _Follower:
    """A session of the earlier protocol, or a stream of the current one, and what it is told of."""

    share: str
    client: McpClient | None = None
    """As it sent its latest request; None for a stream."""
    uris: set[str] = field(default_factory=set)
    level: types.LoggingLevel | None = None
    """The log level that the session has set."""


class Relay:
    """Notifications of upstream servers on their way to a client: in order, off the servers' loop, and bounded.

    A client that does not read must not hold up a server that others use, nor may a server fill our memory: what comes
    while too much waits is dropped.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], Coroutine[Any, Any, None]]] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._closed = False

    def put(self, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """In any thread: `send` is awaited on the server's loop."""
        soon(self._loop, partial(self._take, send))

    async def flush(self) -> None:
        """Wait, not for ever, until everything is sent: a result must not overtake it."""
        await asyncio.sleep(0)  # what was put is taken now
        if self._sending is not None:
            await asyncio.wait((self._sending,), timeout=_FLUSH_SECONDS)

    def close(self) -> None:
        """Drop what was not sent."""
        self._closed = True
        self._waiting.clear()

    def _take(self, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._closed or len(self._waiting) >= _MAX_RELAYED:
            return
        self._waiting.append(send)
        if self._sending is None or self._sending.done():
            self._sending = self._loop.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            try:
                await self._waiting.popleft()()
            except Exception:  # noqa: BLE001 - a client that is gone needs nothing more
                self.close()


class CallProgress:
    """Progress notifications of one call: the latest report, at a readable rate, while a request waits.

    What the script says of itself is sent as it is, and replaces what is reported of its calls.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._client: McpClient | None = None
        self._waiting: ScriptProgress | None = None
        self._sent = 0.0
        self.begun = 0
        self._ended = 0
        self.own: ScriptProgress | None = None
        """What the script said last."""
        self._sending: asyncio.Task[None] | None = None

    def words(self) -> str:
        calls = f"{counted(self.begun, 'call')} made"
        return calls if self.own is None else f"{progress_words(self.own)} ({calls})"

    def attach(self, client: McpClient | None) -> None:
        """Another request waits, with a token of its own; or none does."""
        self._client, self._sent = client, 0.0
        if self.own is not None:
            self._put(self.own)

    def count(self, entry: CallEntry) -> None:
        if entry.open:
            self.begun += 1
        else:
            self._ended += 1
        self.report(f"{entry.tool} ({self._ended} of {self.begun} calls done)")

    def advance(self, progress: ScriptProgress) -> None:
        """The script says how far it is."""
        self.own = progress
        self._put(progress)

    def report(self, message: str) -> None:
        if self.own is None:
            self._put(ScriptProgress(0, None, message))

    def _put(self, progress: ScriptProgress) -> None:
        if self._client is not None and self._client.wants_progress:
            soon(self._loop, partial(self._schedule, progress))  # reported in a script's thread

    def _schedule(self, progress: ScriptProgress) -> None:
        self._waiting = progress
        if self._client is not None and (self._sending is None or self._sending.done()):
            self._sending = self._loop.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting is not None and self._client is not None:
            progress, self._waiting = self._waiting, None
            self._sent = max(progress.done, self._sent + _STEP)
            text = visible(progress.text, keep="") or None
            await self._client.channel.report_progress(self._sent, progress.total, text)
            await asyncio.sleep(_PROGRESS_SECONDS)
