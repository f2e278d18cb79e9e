"""All calls in progress: those that a request waits for, that wait for an answer, or that are in the background."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from moonbox.errors import UsageError
from moonbox.mcp.server.background import WaitArguments, not_in_background, still_running, stopped
from moonbox.mcp.server.call import Call
from moonbox.mcp.server.results import error_result

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    import mcp_types as types

    from moonbox.config.sections import ServeSettings
    from moonbox.journal.handles import Handles
    from moonbox.mcp.server.call import DirectName
    from moonbox.mcp.server.kept import Kept, KeptResults
    from moonbox.mcp.server.sessions import Client

    Recover = Callable[[Call, Client, str | None], Coroutine[Any, Any, types.CallToolResult]]

_MAX_PAUSED = 1_000
_STOP_SECONDS = 5.0
"""How long a script has to stop before the client is told that it was stopped."""


class Calls:
    """All calls in progress, including those that wait for an answer of their client."""

    def __init__(
        self, settings: ServeSettings, direct_name: DirectName, kept: KeptResults, handles: Handles | None = None
    ) -> None:
        self._settings = settings
        self._direct_name = direct_name
        self._kept = kept
        self._handles = handles
        self._calls: dict[str, Call] = {}
        self.recover: Recover
        """Continues a script that a restart of the server has cut off."""

    async def begin(
        self,
        client: Client,
        work: Callable[[Call], Coroutine[Any, Any, types.CallToolResult]],
        *,
        script: bool,
        wait_tool: str | None = None,
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Start a new call; the result, or the first question.

        wait_tool   gives the result of a script that takes longer than `answer_within`; without it, nothing else does
        """
        call = Call(client, self._settings, self._direct_name, script=script, wait_tool=wait_tool)
        self._start(call, work(call))
        return await self.resume(call, client)

    def _start(self, call: Call, work: Coroutine[Any, Any, types.CallToolResult]) -> None:
        self._calls[call.id] = call
        call.start(work)
        call.task.add_done_callback(lambda _: self._done(call))

    def find(self, state: str, client: Client) -> Call | None:
        """The paused call that a client continues; None if there is none, or another client owns it."""
        call = self._calls.get(state)
        return call if call is not None and call.owner == client.owner and call.paused_at is not None else None

    async def resume(
        self, call: Call, client: Client, seconds: float | None = None
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Wait for the result, or for the next question; a script that takes long continues in the background."""
        limit = call.answered_within
        result = await call.drive(client, limit if seconds is None or limit is None else min(seconds, limit))
        if result is None and not call.task.done():
            if not await self._is_in_background(call, client):
                call.answered_within = None  # there is no other way than to wait
                return await self.resume(call, client)
            return still_running(call, client, structured=self._settings.structured)
        if result is None:
            result = stopped(call.id, call.calls_made, structured=self._settings.structured)
        if result.result_type != "input_required":
            self._forget(call)
            if (kept := self._kept.find(call.id, call.owner)) is not None:
                self._kept.forget(kept)
            if call.in_background and not call.cut_off:
                await self._drop_handle(call.id, client)
        return result

    async def _is_in_background(self, call: Call, client: Client) -> bool:
        """Whether the client can come back for the result, which is possible for a limited number of calls."""
        if not call.in_background and self._kept.has_room(client):
            call.in_background = True
            self._kept.add(call.id, client, call.task, call=call)
            if self._handles is not None:
                await asyncio.to_thread(self._handles.keep, call.id, call.owner)
        return call.in_background

    async def find_kept(
        self, id: str, client: Client, wait_tool: str | None = None, in_flight: str | None = None
    ) -> Kept | None:
        """What the client was told to come back for; a script that was cut off by a restart is continued."""
        kept = self._kept.find(id, client.owner)
        if kept is not None or self._handles is None:
            return kept
        known = await asyncio.to_thread(self._handles.has, id, client.owner)
        if (kept := self._kept.find(id, client.owner)) is None and known and self._kept.has_room(client):
            call = Call(client, self._settings, self._direct_name, wait_tool=wait_tool, id=id)
            call.in_background = True
            self._start(call, self.recover(call, client, in_flight))
            kept = self._kept.add(id, client, call.task, call=call)
        return kept

    async def wait(
        self, client: Client, arguments: Mapping[str, Any], wait_tool: str | None
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Wait for a script in the background, or stop it; its result is given once."""
        try:
            asked = WaitArguments.of(arguments)
        except UsageError as problem:
            return error_result(str(problem))
        kept = self._kept.find(asked.run_id, client.owner)
        if kept is None and asked.cancel and await self._drop_handle(asked.run_id, client):
            return stopped(asked.run_id, structured=self._settings.structured)
        kept = kept or await self.find_kept(asked.run_id, client, wait_tool, asked.in_flight)
        if kept is None or kept.call is None:
            return error_result(not_in_background(asked.run_id))
        if asked.cancel and not kept.work.done():
            self._kept.forget(kept)
            await asyncio.wait((kept.work,), timeout=_STOP_SECONDS)
            await self._drop_handle(kept.id, client)
            return stopped(kept.id, kept.call.calls_made, structured=self._settings.structured)
        kept.call.take_answers(None)
        return await self.resume(kept.call, client, asked.seconds)

    async def _drop_handle(self, id: str, client: Client) -> bool:
        """Whether the journal had one of this client; a run that a restart has cut off then stays as it is."""
        return self._handles is not None and await asyncio.to_thread(self._handles.drop, id, client.owner)

    async def wait_for_conversation(self, conversation: str) -> None:
        """Before another script runs there: give paused calls some time to continue, then stop them."""
        paused = [call for call in self._calls.values() if call.conversation == conversation and call.paused_at]
        if not paused:
            return
        waits = {asyncio.create_task(call.attached.wait()): call for call in paused}
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
