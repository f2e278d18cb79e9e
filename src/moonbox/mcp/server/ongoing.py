"""Ongoing calls: a client's call from its first request to its answer, questions to the client in between.

In the earlier protocol the server asks the client while the call waits. In the current one a question goes back as the
call's result; the client answers it by calling again, and the same script, which has waited in its worker, goes on.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)
from pydantic import ValidationError

from moonbox.errors import Denied
from moonbox.mcp.caller import CALLER
from moonbox.mcp.server import approval
from moonbox.sandbox.decisions import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp_types import CallToolResult, InputRequest, InputResponse, InputResponses

    from moonbox.mcp.server.peer import Peer
    from moonbox.sandbox.decisions import ToolCall
    from moonbox.sandbox.record import CallEntry

__all__ = ["Ongoing", "OngoingCalls", "Rules", "put"]

_GATHER = 0.02
"""Seconds in which questions of calls made together come together."""
_BETWEEN_PROGRESS = 0.1
_MOST_PAUSED = 1_000
_MOST_FORWARDED = 8
"""Questions of servers that a person may have before them at a time."""
_LOOK = 0.1


@dataclass(frozen=True, slots=True)
class Rules:
    """What an ongoing call needs to know of the server."""

    answer_seconds: float
    resume_seconds: float
    direct_without_asking: bool
    direct_name: Callable[[str], str | None]
    """The name under which a client may call a tool itself, by the tool's path."""


@dataclass(slots=True)
class _Question:
    request: InputRequest
    answer: asyncio.Future[InputResponse | ErrorData]
    asked: bool = False


class Ongoing:
    """One call, and the Caller of whatever it calls. Its work goes on while the client is asked something."""

    def __init__(self, peer: Peer, rules: Rules) -> None:
        self.id = secrets.token_urlsafe(16)
        self.owner = peer.owner
        self.client = peer.client
        self.wants_progress = peer.wants_progress
        self.conversation = ""
        """Where its script runs."""
        self.paused_at: float | None = None
        self._peer = peer
        self._attached = True
        self._rules = rules
        self._loop = asyncio.get_running_loop()
        self._questions: dict[str, _Question] = {}
        self._numbers = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[CallToolResult] | None = None
        self._progress: asyncio.Task[None] | None = None
        self._message = ""
        self._ticks = 0
        self._calls = [0, 0]  # begun, ended
        self._forwarded = 0

    def start(self, work: Coroutine[Any, Any, CallToolResult]) -> Ongoing:
        """Begin the work, in a context in which this is the caller."""
        context = contextvars.copy_context()
        context.run(CALLER.set, self)
        self._task = self._loop.create_task(work, context=context)
        self._task.add_done_callback(lambda _: self._news.set())
        return self

    async def carry_out(self, work: Coroutine[Any, Any, CallToolResult]) -> CallToolResult:
        """For a call that cannot pause and has nothing to save when cancelled: in the task of its only request."""
        before = CALLER.set(self)
        try:
            return await work
        finally:
            CALLER.reset(before)
            self._attached = False

    async def drive(self, peer: Peer) -> CallToolResult | InputRequiredResult:
        """Until there is an answer, or a question that must go back first. Cancelling this stops the work."""
        assert self._task is not None
        self._peer, self._attached, self.paused_at = peer, True, None
        try:
            while not self._task.done():
                if self._open():
                    await asyncio.sleep(_GATHER)
                    return self._pause()
                self._news.clear()
                await self._news.wait()
            return self._task.result()
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            self._attached = False

    def cancel(self) -> None:
        """Stop the work: the script and its calls."""
        assert self._task is not None
        self._task.cancel()

    @property
    def task(self) -> asyncio.Task[CallToolResult]:
        assert self._task is not None
        return self._task

    # Questions

    def answered(self, responses: InputResponses | None) -> None:
        """Take the answers that came with the client's next request; what it left out is asked again."""
        for key, question in self._questions.items():
            question.asked = False
            if responses and key in responses and not question.answer.done():
                question.answer.set_result(responses[key])

    def _open(self) -> dict[str, _Question]:
        return {key: item for key, item in self._questions.items() if not item.asked and not item.answer.done()}

    def _pause(self) -> InputRequiredResult:
        questions = self._open()
        for item in questions.values():
            item.asked = True
        self.paused_at = time.monotonic()
        requests = {key: item.request for key, item in questions.items()}
        return InputRequiredResult(input_requests=requests or None, request_state=self.id)

    async def _ask(self, request: InputRequest) -> InputResponse | ErrorData:
        """Put a question to the client, in the form of its protocol."""
        if not self._peer.modern:
            return await put(self._peer, request, self._rules.answer_seconds)
        self._numbers += 1
        key = f"question-{self._numbers}"
        self._questions[key] = question = _Question(request, self._loop.create_future())
        self._news.set()
        try:
            async with asyncio.timeout(self._rules.answer_seconds):
                return await question.answer
        except TimeoutError:
            return _NOBODY
        finally:
            del self._questions[key]

    # The Caller

    async def approve(self, call: ToolCall) -> Decision:
        direct = not call.repl_id
        if not self._peer.elicits:
            if direct and self._rules.direct_without_asking:
                return Decision("allow")
            raise approval.refusal(call, None if direct else self._rules.direct_name(call.name))
        answer = await self._on_loop(self._ask(approval.question(call)))
        if isinstance(answer, ElicitResult):
            return approval.decision(answer)
        said = answer.message if isinstance(answer, ErrorData) else "the client's answer makes no sense"
        raise Denied(f"the tool '{call.name}' needs a person's approval: {said}", code="approval_unavailable")

    async def forward(self, request: InputRequest) -> InputResponse | ErrorData:
        able = {
            "elicitation/create": self._peer.elicits or _is_url(self._peer, request),
            "sampling/createMessage": self._peer.samples,
            "roots/list": self._peer.has_roots,
        }
        if not able[request.method]:
            return ErrorData(code=INVALID_REQUEST, message=f"the client does not support {request.method}")
        if self._forwarded >= _MOST_FORWARDED:
            return ErrorData(code=INVALID_REQUEST, message="too many questions at once")
        self._forwarded += 1
        try:
            answer: InputResponse | ErrorData = await self._on_loop(self._ask(request))
            return answer
        finally:
            self._forwarded -= 1

    async def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # Progress

    def call_changed(self, entry: CallEntry) -> None:
        if not self.wants_progress:
            return
        self._calls[0 if entry.open else 1] += 1
        begun, ended = self._calls
        self.progress(f"{entry.tool} ({ended} of {begun} calls done)")

    def progress(self, message: str) -> None:
        if self.wants_progress and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, message)

    def _tell(self, message: str) -> None:
        self._message = message
        if self._attached and (self._progress is None or self._progress.done()):
            self._progress = self._loop.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        """Send what is new, not more often than somebody could read it."""
        while self._message and self._attached:
            message, self._message = self._message, ""
            self._ticks += 1
            await self._peer.channel.report_progress(self._ticks, None, message)
            await asyncio.sleep(_BETWEEN_PROGRESS)


class OngoingCalls:
    """Every call under way, and those whose client has to answer something first."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._calls: dict[str, Ongoing] = {}

    async def answer(
        self, peer: Peer, work: Callable[[Ongoing], Coroutine[Any, Any, CallToolResult]], *, script: bool
    ) -> CallToolResult | InputRequiredResult:
        """Carry a new call out, as far as this request goes."""
        ongoing = Ongoing(peer, self._rules)
        # A script needs a task of its own: the SDK cancels a request again at every step, and a script that is stopped
        # takes some steps to save its state.
        if not script and not (peer.modern and (peer.elicits or peer.samples or peer.has_roots)):
            return await ongoing.carry_out(work(ongoing))
        self._calls[ongoing.id] = ongoing
        ongoing.start(work(ongoing)).task.add_done_callback(lambda _: self._done(ongoing))
        return await self.go_on(ongoing, peer)

    async def go_on(self, ongoing: Ongoing, peer: Peer) -> CallToolResult | InputRequiredResult:
        """Carry a call on, as far as this request goes."""
        result = await ongoing.drive(peer)
        if result.result_type != "input_required":
            self.forget(ongoing)
        return result

    def resume(self, state: str, peer: Peer) -> Ongoing | None:
        """The call that a client goes on with; None when there is none, or it is another's."""
        found = self._calls.get(state)
        return found if found is not None and found.owner == peer.owner and found.paused_at is not None else None

    async def make_way(self, conversation: str) -> None:
        """Before another script runs there: a client that is not back with its answer soon has given its call up."""
        until = time.monotonic() + self._rules.resume_seconds
        while waiting := [
            item for item in self._calls.values() if item.conversation == conversation and item.paused_at
        ]:
            if time.monotonic() > until:
                for item in waiting:
                    item.cancel()
                    self.forget(item)
                return
            await asyncio.sleep(_LOOK)

    def forget(self, ongoing: Ongoing) -> None:
        self._calls.pop(ongoing.id, None)

    def sweep(self) -> None:
        """End the calls that nobody came back for."""
        late = time.monotonic() - self._rules.answer_seconds
        paused = [item for item in self._calls.values() if item.paused_at is not None]
        crowded = sorted(paused, key=lambda item: item.paused_at or 0.0)[: max(0, len(paused) - _MOST_PAUSED)]
        for item in {*crowded, *(item for item in paused if (item.paused_at or 0.0) < late)}:
            item.cancel()
            self.forget(item)

    async def close(self) -> None:
        """Stop every call."""
        tasks = [item.task for item in self._calls.values()]
        for item in self._calls.values():
            item.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._calls.clear()

    def _done(self, ongoing: Ongoing) -> None:
        if ongoing.paused_at is None:  # else the client will come for the answer
            self.forget(ongoing)


async def put(peer: Peer, request: InputRequest, seconds: float) -> InputResponse | ErrorData:
    """Put a question to a client of the earlier protocol."""
    metadata = None
    if peer.request_id is not None:
        metadata = ServerMessageMetadata(related_request_id=peer.request_id)
    kind: Any = {ElicitRequest: ElicitResult, ListRootsRequest: ListRootsResult}.get(type(request))
    if isinstance(request, CreateMessageRequest):
        kind = CreateMessageResultWithTools if request.params.tools else CreateMessageResult
    try:
        async with asyncio.timeout(seconds):
            answer: InputResponse = await peer.channel.send_request(request, kind, metadata=metadata)
            return answer
    except TimeoutError:
        return _NOBODY
    except MCPError as problem:
        return problem.error
    except ValidationError:
        return ErrorData(code=INVALID_REQUEST, message="the client's answer makes no sense")


_NOBODY = ErrorData(code=INVALID_REQUEST, message="nobody answered in time")


def _is_url(peer: Peer, request: InputRequest) -> bool:
    """Whether it only asks to open an address, and the client can do that."""
    offered = None if peer.capabilities is None else peer.capabilities.elicitation
    if offered is None or offered.url is None or not peer.can_be_asked:
        return False
    return isinstance(request, ElicitRequest) and request.params.mode == "url"
