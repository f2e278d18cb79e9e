"""Calls in progress: a client's call from its first request to its result, with questions to the client in between.

In the earlier protocol the server asks the client while the call waits. In the current one a question goes back as the
call's result; the client answers it by calling again, and the same script, which waits in its worker, continues.

A script runs in other threads than the server's event loop. Whatever it needs of the client comes through the methods
of a Caller, which hand over to the loop; everything else here runs on the loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import INVALID_REQUEST, ElicitRequest, ElicitResult, ErrorData, InputRequiredResult

from moonbox.errors import Denied
from moonbox.mcp.caller import CALLER
from moonbox.mcp.server.notifications import CallProgress, Relay
from moonbox.mcp.server.questions import (
    NO_ANSWER,
    approval_question,
    approval_unavailable,
    decision,
    on_loop,
    request_client,
    send_log,
)
from moonbox.sandbox.decisions import Decision
from moonbox.tools.learned import OWNER
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp_types import (
        CallToolResult,
        InputRequest,
        InputResponse,
        InputResponses,
        LoggingMessageNotificationParams,
    )

    from moonbox.config.sections import ServeSettings
    from moonbox.mcp.server.sessions import Client
    from moonbox.sandbox.call_entry import CallEntry
    from moonbox.sandbox.decisions import ToolCall

    DirectName = Callable[[str], str | None]

_GATHER_SECONDS = 0.02
"""Questions of calls made together are collected this long, so that they go out together."""
_MAX_PAUSED = 1_000
_MAX_FORWARDED = 8
"""Questions of upstream servers that one call puts to a person at a time."""


@dataclass(slots=True)
class _Question:
    request: InputRequest
    answer: asyncio.Future[InputResponse | ErrorData]
    sent: bool = False


class Call:
    """One call of a client, and the Caller of whatever it calls. Its work continues while the client is asked."""

    def __init__(
        self, client: Client, settings: ServeSettings, direct_name: DirectName, *, script: bool = True
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.owner = client.owner
        self.client = client.id
        self.wants_progress = client.wants_progress
        self.log_level = client.log_level
        self.opens_addresses = client.supports("elicitation/create", "url")
        self.upstream_result: CallToolResult | None = None
        """What an upstream server returned to the call of its tool, for a client that called the tool itself."""
        self.conversation = ""
        """The conversation in which its script runs."""
        self.paused_at: float | None = None
        """When its latest question went out; None while a request of the client waits for the result."""
        self.resumed = asyncio.Event()
        """Set when the client came back after a question."""
        self._client = client
        self._settings = settings
        self._direct_name = direct_name
        self._loop = asyncio.get_running_loop()
        self._questions: dict[str, _Question] = {}
        self._question_count = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None
        self._progress = CallProgress(self._loop)
        self._relay = Relay(self._loop)
        self._script = script
        self._forwarded = 0

    @property
    def task(self) -> asyncio.Task[Any]:
        assert self._task is not None
        return self._task

    def start(self, work: Coroutine[Any, Any, CallToolResult]) -> None:
        """Begin the work in a task of its own, in a context in which this is the caller and its owner learns shapes.

        The SDK cancels a request again at every await; a script that is stopped needs several awaits to save its state.
        """
        context = contextvars.copy_context()
        context.run(CALLER.set, self)
        context.run(OWNER.set, self.owner)
        self._task = self._loop.create_task(work, context=context)
        self._task.add_done_callback(lambda _: self._news.set())

    async def drive(self, client: Client) -> CallToolResult | InputRequiredResult:
        """Wait for the result, or for a question that must be answered first. Cancelling this stops the work."""
        self._client, self.paused_at = client, None
        self.resumed.set()
        self._progress.attach(client)
        try:
            while not self.task.done():
                if self._unsent():
                    await asyncio.sleep(_GATHER_SECONDS)
                    return self._pause()
                self._news.clear()
                await self._news.wait()
            await self._relay.flush()
            result: CallToolResult = self.task.result()
            return result
        except asyncio.CancelledError:
            self.task.cancel()
            raise
        finally:
            self._progress.detach()

    # Questions

    def take_answers(self, responses: InputResponses | None) -> None:
        """Take the answers that came with the client's next request; questions left out are asked again."""
        for key, question in self._questions.items():
            question.sent = False
            if responses and key in responses and not question.answer.done():
                question.answer.set_result(responses[key])

    def _unsent(self) -> dict[str, _Question]:
        return {key: item for key, item in self._questions.items() if not item.sent and not item.answer.done()}

    def _pause(self) -> InputRequiredResult:
        questions = self._unsent()
        for item in questions.values():
            item.sent = True
        self.paused_at = time.monotonic()
        self.resumed.clear()
        requests = {key: item.request for key, item in questions.items()}
        return InputRequiredResult(input_requests=requests or None, request_state=self.id)

    async def _ask(self, request: InputRequest) -> InputResponse | ErrorData:
        """Put a question to the client, in the form of its protocol."""
        if not self._client.modern:
            return await request_client(self._client, request, self._settings.answer_seconds)
        self._question_count += 1
        key = f"question-{self._question_count}"
        self._questions[key] = question = _Question(request, self._loop.create_future())
        self._news.set()
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                return await question.answer
        except TimeoutError:
            return NO_ANSWER
        finally:
            del self._questions[key]

    # The Caller: from here on, methods are called in any thread

    async def approve(self, call: ToolCall) -> Decision:
        direct = not call.repl_id
        if not self._client.elicits:
            if direct and self._settings.direct_without_asking:
                return Decision("allow")
            raise approval_unavailable(call, None if direct else self._direct_name(call.name))
        answer = await on_loop(self._loop, self._ask(approval_question(call)))
        if isinstance(answer, ElicitResult):
            return decision(answer, self.owner)
        reason = answer.message if isinstance(answer, ErrorData) else "the client sent an invalid answer"
        raise Denied(f"the tool '{call.name}' needs approval: {reason}", code="approval_unavailable")

    async def forward(self, request: InputRequest) -> InputResponse | ErrorData:
        mode = request.params.mode if isinstance(request, ElicitRequest) else ""
        if not self._client.supports(request.method, mode):
            return ErrorData(code=INVALID_REQUEST, message=f"the client does not support {request.method}")
        if self._forwarded >= _MAX_FORWARDED:
            return ErrorData(code=INVALID_REQUEST, message="too many questions at once")
        self._forwarded += 1
        try:
            return await on_loop(self._loop, self._ask(request))
        finally:
            self._forwarded -= 1

    def received(self, result: CallToolResult) -> None:
        if not self._script:
            self.upstream_result = result

    def call_changed(self, entry: CallEntry) -> None:
        if self.wants_progress and self._script:
            self._progress.count(entry)

    def progress(self, tool: str, done: float, total: float | None, message: str | None) -> None:
        if not self.wants_progress:
            return
        if self._script:
            amount = f"{done:g}" + (f"/{total:g}" if total else "")
            self._progress.report(f"{tool}: {amount}" + (f" {visible(message[:200], keep='')}" if message else ""))
        else:  # as the server reports it
            self._relay.put(lambda: self._client.channel.report_progress(done, total, message))

    def waiting(self, ahead: int) -> None:
        """Tell the client that its call waits for its turn."""
        if self.wants_progress:
            self._relay.put(
                lambda: self._client.channel.report_progress(
                    0, None, f"waiting: {counted(ahead, 'other call')} of this client come first"
                )
            )

    def log(self, params: LoggingMessageNotificationParams) -> None:
        if self._client.wants_log(params.level):
            self._relay.put(lambda: send_log(self._client, params))


class Calls:
    """All calls in progress, including those that wait for an answer of their client."""

    def __init__(self, settings: ServeSettings, direct_name: DirectName) -> None:
        self._settings = settings
        self._direct_name = direct_name
        self._calls: dict[str, Call] = {}

    async def begin(
        self,
        client: Client,
        work: Callable[[Call], Coroutine[Any, Any, CallToolResult]],
        *,
        script: bool,
    ) -> CallToolResult | InputRequiredResult:
        """Start a new call; the result, or the first question."""
        call = Call(client, self._settings, self._direct_name, script=script)
        self._calls[call.id] = call
        call.start(work(call))
        call.task.add_done_callback(lambda _: self._done(call))
        return await self.resume(call, client)

    def find(self, state: str, client: Client) -> Call | None:
        """The paused call that a client continues; None if there is none, or another client owns it."""
        call = self._calls.get(state)
        return call if call is not None and call.owner == client.owner and call.paused_at is not None else None

    async def resume(self, call: Call, client: Client) -> CallToolResult | InputRequiredResult:
        """Wait for the result, or for the next question."""
        result = await call.drive(client)
        if result.result_type != "input_required":
            self._forget(call)
        return result

    async def wait_for_conversation(self, conversation: str) -> None:
        """Before another script runs there: give paused calls some time to continue, then stop them."""
        paused = [call for call in self._calls.values() if call.conversation == conversation and call.paused_at]
        if not paused:
            return
        waits = {asyncio.create_task(call.resumed.wait()): call for call in paused}
        try:
            _, late = await asyncio.wait(waits, timeout=self._settings.resume_seconds)
        finally:
            for task in waits:
                task.cancel()
        for task in late:
            self._stop(waits[task])

    def stop_abandoned(self) -> None:
        """Stop the calls whose client did not come back."""
        oldest = time.monotonic() - self._settings.answer_seconds
        paused = sorted((call.paused_at, call.id) for call in self._calls.values() if call.paused_at is not None)
        surplus = len(paused) - _MAX_PAUSED
        for number, (paused_at, name) in enumerate(paused):
            if number < surplus or paused_at < oldest:
                self._stop(self._calls[name])

    async def close(self) -> None:
        """Stop every call."""
        tasks = [call.task for call in self._calls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._calls.clear()

    def _stop(self, call: Call) -> None:
        call.task.cancel()
        self._forget(call)

    def _forget(self, call: Call) -> None:
        self._calls.pop(call.id, None)

    def _done(self, call: Call) -> None:
        if call.paused_at is None:  # otherwise the client comes back for the result
            self._forget(call)
