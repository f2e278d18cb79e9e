"""A call in progress: from the client's first request to the result, with questions to the client in between.

In the earlier protocol the server asks the client while the call waits. In the current one a question goes back as the
call's result; the client answers it by calling again, and the same script, which waits in its worker, continues.

A script runs in other threads than the server's event loop. Whatever it needs of the client comes through the methods
below "From any thread", which hand over to the loop; everything else here runs on the loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types

from moonbox.errors import Denied
from moonbox.mcp.caller import CALLER, is_set_within
from moonbox.mcp.server import results
from moonbox.mcp.server.notifications import CallProgress, Relay
from moonbox.mcp.server.sessions import McpClient, owner_name
from moonbox.runs.decisions import Answer, Decision, ToolCall
from moonbox.schema.learned import OWNER
from moonbox.threads import on_loop
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from moonbox.config.sections import ServeSettings
    from moonbox.mcp.caller import Response
    from moonbox.runs.call_entry import CallEntry

    DirectName = Callable[[str], str | None]
    Outcome = types.CallToolResult | types.InputRequiredResult

_GATHER_SECONDS = 0.02
"""Questions of calls made together are collected this long, so that they go out together."""
_MAX_FORWARDED = 8
"""Questions of upstream servers that one call puts to a person at a time."""


@dataclass(slots=True)
class _Question:
    request: types.InputRequest
    answer: asyncio.Future[Response]
    sent: bool = False


class OpenCall:
    """One call of a client, and the caller of whatever it calls. Its work continues while the client is asked.

    One that is never started is the caller of a request for a prompt or a resource.
    """

    upstream_result: types.CallToolResult | None = None
    """What an upstream server returned to the call of its tool, for a client that called the tool itself."""
    conversation = ""
    paused_at: float | None = None
    """When its latest question went out; None while a request of the client waits for the result."""
    in_background = False
    """Whether the client comes back for the result."""
    seconds: float | None = None
    """How long a task is kept, from its start; it is stopped then. None: as long as it runs, and some time more."""
    cancelled = False
    """Whether its client has cancelled it."""
    size = 0
    """Of its result, while it is kept."""
    has_handle = False
    """Whether the journal says so too: any front end answers for it."""
    cut_off = False
    """Whether its script could not be continued after a restart: the client may come back."""
    _question_count = _forwarded = 0
    _open_questions = 0
    """Those that are now put to a client of the earlier protocol."""
    _task: asyncio.Task[Any] | None = None

    def __init__(
        self,
        client: McpClient,
        settings: ServeSettings,
        direct_name: DirectName = lambda _: None,
        *,
        script: bool = True,
        wait_tool: str | None = None,
        id: str | None = None,
    ) -> None:
        self.id = id or secrets.token_hex(16)
        """Of the call, and of its script's run. It cannot be guessed."""
        self.owner, self.client, self.share = client.owner, client.id, client.share
        self.modern, self.log_level = client.modern, client.log_level
        self.attached = asyncio.Event()
        """Set while a request of the client waits for the result."""
        self.attached.set()
        self.wait_tool = wait_tool
        """The tool that gives the result if it takes long; None if the client waits for it however long it takes."""
        self.created = self.updated = time.time()
        self.answered_within = settings.answer_within if wait_tool is not None else None
        self._client, self._settings, self._direct_name, self._script = client, settings, direct_name, script
        self._loop = asyncio.get_running_loop()
        self._questions: dict[str, _Question] = {}
        self._news = asyncio.Event()
        self.reported = CallProgress(self._loop)
        """What is known of a script while it runs."""
        self._relay = Relay(self._loop)

    @property
    def task(self) -> asyncio.Task[Any]:
        assert self._task is not None
        return self._task

    def start(self, work: Coroutine[Any, Any, types.CallToolResult]) -> None:
        """Begin the work in a task of its own, in a context in which this is the caller and its owner learns shapes.

        The SDK cancels a request again at every await; a script that is stopped needs several awaits to save its state.
        """
        context = contextvars.copy_context()
        context.run(CALLER.set, self)
        context.run(OWNER.set, self.owner)
        self._task = self._loop.create_task(work, context=context)
        self._task.add_done_callback(lambda _: self._news.set())

    def enter_background(self, seconds: float | None = None) -> None:
        """From now on no request need wait for the result."""
        self.in_background, self.seconds = True, seconds
        self.attached.clear()

    def cancel(self) -> None:
        self.cancelled, self.updated = True, time.time()
        self.task.cancel()

    async def drive(self, client: McpClient, seconds: float | None = None) -> Outcome | None:
        """Wait for the result, or for a question that must be answered first; None if neither comes in time.

        Cancelling this stops the work, unless it is in the background.
        """
        self._client, self.paused_at = client, None
        self.attached.set()
        self.reported.attach(client)
        deadline = None if seconds is None else self._loop.time() + seconds
        try:
            while not self.task.done():
                if client.modern and self._unsent():
                    await asyncio.sleep(_GATHER_SECONDS)
                    return self._pause()
                if not await self._wait_for_news(deadline):
                    await self._relay.flush()
                    if not self.task.done():  # it may have ended at the same moment
                        return None
            await self._relay.flush()
            self._relay.close()
            was_stopped = self.in_background and self.task.cancelled()
            result: types.CallToolResult | None = None if was_stopped else self.task.result()
            return result
        except asyncio.CancelledError:
            if not self.in_background:
                self.task.cancel()
            raise
        finally:
            if self._client is client:  # else another request waits since then
                self.attached.clear()
                self.reported.attach(None)

    async def _wait_for_news(self, deadline: float | None) -> bool:
        """False when the time is over; while a person is asked, it does not end."""
        self._news.clear()
        try:
            async with asyncio.timeout_at(None if self._open_questions else deadline):
                await self._news.wait()
        except TimeoutError:
            return self._open_questions > 0
        return True

    # Questions

    def take_answers(self, responses: types.InputResponses | None) -> None:
        """Take the answers that came with the client's next request; questions left out are asked again."""
        for key, question in self._questions.items():
            question.sent = False
            if responses and key in responses and not question.answer.done():
                question.answer.set_result(responses[key])

    def _unsent(self) -> dict[str, _Question]:
        return {key: item for key, item in self._questions.items() if not item.sent and not item.answer.done()}

    def _pause(self) -> types.InputRequiredResult:
        questions = self._unsent()
        for item in questions.values():
            item.sent = True
        self.paused_at = time.monotonic()
        requests = {key: item.request for key, item in questions.items()}
        return types.InputRequiredResult(input_requests=requests or None, request_state=self.id)

    async def _ask(self, request: types.InputRequest) -> Response:
        """Put a question to the client, in the form of its protocol."""
        if not self._client.modern:
            return await self._ask_earlier(request)
        self._question_count += 1
        key = f"question-{self._question_count}"
        self._questions[key] = question = _Question(request, self._loop.create_future())
        self._news.set()
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                return await question.answer
        except TimeoutError:
            return results.NO_ANSWER
        finally:
            del self._questions[key]

    async def _ask_earlier(self, request: types.InputRequest) -> Response:
        """In the earlier protocol, while a request of the client waits."""
        if not await self._until_attached():
            return results.NO_ANSWER
        self._open_questions += 1
        try:
            return await results.request_client(self._client, request, self._settings.answer_seconds)
        finally:
            self._open_questions -= 1
            self._news.set()

    async def _until_attached(self) -> bool:
        """Wait until a request of an earlier client waits for the result; False if none comes in time."""
        return self.modern or await is_set_within(self.attached, self._settings.answer_seconds)

    async def answer(self, call: ToolCall) -> Answer:
        """Let the person answer a call of a client-side tool."""
        if not self._client.elicits:
            return results.NO_CLIENT
        return results.form_answer(call, await self._ask(results.answer_form(call)))

    # From any thread: what the tools of a script, and the servers behind them, need of the client

    @property
    def opens_addresses(self) -> bool:
        return self._can_ask and self._client.supports("elicitation/create", "url")

    @property
    def _can_ask(self) -> bool:
        """In the current protocol questions go out with the result of a call."""
        return not self.modern or self._task is not None

    @property
    def wants_progress(self) -> bool:
        return self._client.wants_progress

    async def approve(self, call: ToolCall) -> Decision:
        direct = call.kind == "call" and not call.repl_id
        declared = self._client.capabilities
        if self.in_background and declared is not None and declared.elicitation is not None:
            await on_loop(self._loop, self._until_attached())  # an earlier client can be asked only while it waits
        if not self._client.elicits:
            if direct and self._settings.direct_without_asking:
                return Decision("allow")
            raise results.approval_unavailable(call, None if direct else self._direct_name(call.tool))
        answer = await on_loop(self._loop, self._ask(results.approval_question(call)))
        if isinstance(answer, types.ElicitResult):
            return results.decision(answer, owner_name(self.owner))
        reason = answer.message if isinstance(answer, types.ErrorData) else "the client sent an invalid answer"
        raise Denied(f"the tool '{call.tool}' needs approval: {reason}", code="approval_unavailable")

    async def forward(self, request: types.InputRequest) -> Response:
        if not self._can_ask:
            message = f"{request.method} is possible only during a call"
            return types.ErrorData(code=types.INVALID_REQUEST, message=message)
        mode = request.params.mode if isinstance(request, types.ElicitRequest) else ""
        if not self._client.supports(request.method, mode):
            return types.ErrorData(code=types.INVALID_REQUEST, message=f"the client does not support {request.method}")
        if self._forwarded >= _MAX_FORWARDED:
            return types.ErrorData(code=types.INVALID_REQUEST, message="too many questions at once")
        self._forwarded += 1
        try:
            return await on_loop(self._loop, self._ask(request))
        finally:
            self._forwarded -= 1

    def received(self, result: types.CallToolResult) -> None:
        if not self._script:
            self.upstream_result = result

    def call_changed(self, entry: CallEntry) -> None:
        if self._script:
            self.reported.count(entry)

    async def progress(self, tool: str, done: float, total: float | None, message: str | None) -> None:
        if self._script:
            amount = f"{done:g}" + (f"/{total:g}" if total else "")
            self.reported.report(f"{tool}: {amount}" + (f" {visible(message[:200], keep='')}" if message else ""))
        else:  # as the server reports it
            self._relay.put(lambda: self._client.channel.report_progress(done, total, message))

    def waiting(self, ahead: int) -> None:
        """Tell the client that its call waits for its turn."""
        if self.wants_progress:
            text = f"waiting: {counted(ahead, 'other call')} of this client come first"
            self._relay.put(lambda: self._client.channel.report_progress(0, None, text))

    def log(self, params: types.LoggingMessageNotificationParams) -> None:
        if self.attached.is_set() and self._client.wants_log(params.level):
            self._relay.put(lambda: results.send_log(self._client, params))
