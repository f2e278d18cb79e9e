"""The exchange of one run, without I/O: what a frame means for the record, the budget and the calls to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.errors import ToolError
from moonbox.sandbox.conversation import Asked, Conversation, Dropped, Ended, Printed, Request
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.limits import Limits
    from moonbox.sandbox.pipeline import Pipeline, Reply
    from moonbox.sandbox.recorder import CallEntry, Recorder

__all__ = ["Exchange", "Job", "Step"]


@dataclass(slots=True)
class Job:
    """A call to carry out."""

    request: Request
    entry: CallEntry


@dataclass(slots=True)
class Step:
    """What to do after a frame."""

    jobs: tuple[Job, ...] = ()
    replies: tuple[Reply, ...] = ()
    """Answers that are known already."""
    dropped: tuple[int, ...] = ()
    halt: int | None = None
    """Stop the run for this reason instead of answering."""
    ended: Ended | None = None


class Exchange:
    """Ties one run's conversation, pipeline and recorder together."""

    def __init__(
        self,
        limits: Limits,
        pipeline: Pipeline,
        recorder: Recorder,
        number: int,
        watch: Callable[[CallEntry], None] | None = None,
    ) -> None:
        self.conversation = Conversation(limits, allow_nan=pipeline.allow_nan)
        self.pipeline = pipeline
        self.recorder = recorder
        self.number = number
        self._budget = limits.max_tool_calls
        self._watch = watch
        self.entries: dict[int, CallEntry] = {}

    def begin(self, source: bytes) -> bytes:
        return self.conversation.begin(source, self.number, self.recorder.seed)

    def feed(self, kind: int, payload: bytes) -> Step:
        """Take a frame from the worker."""
        event = self.conversation.feed(kind, payload)
        if isinstance(event, Asked):
            return self._asked(event)
        if isinstance(event, Ended):
            return Step(ended=event)
        if isinstance(event, Dropped):
            return Step(dropped=event.ids)
        assert isinstance(event, Printed)
        self.recorder.printed(event.text)
        return Step()

    def answers(self, replies: list[Reply]) -> bytes:
        """The frame for these answers; notes how large each was."""
        frame = self.conversation.answers(replies)
        share = len(frame) // len(replies)
        for call, _, _ in replies:
            entry = self.entries.pop(call, None)
            if entry is not None:
                entry.bytes_out = share
                if self._watch:
                    self._watch(entry)
        return frame

    def timed_out(self, entry: CallEntry) -> Reply | None:
        """The reply for a call whose tool took longer than its own timeout; None when it ended meanwhile."""
        error = ToolError(
            f"{entry.tool} did not answer within its timeout", code="timeout", retryable=True, tool=entry.tool
        )
        if not entry.fail(error, "timeout"):
            return None
        if entry.cancel is not None:
            entry.cancel()
        return entry.id, False, self.pipeline.error_value(error, entry)

    def drop(self, ids: tuple[int, ...]) -> None:
        """The script no longer waits for these calls."""
        for call in ids:
            entry = self.entries.pop(call, None)
            if entry is not None:
                entry.abandon("cancelled")

    def refuse(self, jobs: tuple[Job, ...]) -> None:
        """Calls that came while the run was being stopped are not made."""
        for job in jobs:
            job.entry.abandon("cancelled")

    def abandon_all(self) -> None:
        """The run is over: what is still under way goes on without us, and the record says so."""
        for entry in self.recorder.open_entries():
            entry.leave_behind()

    def _asked(self, event: Asked) -> Step:
        replies: list[Reply] = []
        calls: list[Request] = []
        for request in event.requests:
            reply = self.pipeline.immediate(request, self.recorder)
            if reply is not None:
                replies.append(reply)
            else:
                calls.append(request)
        if self._budget is not None:
            self._budget -= sum(map(self.pipeline.counts, calls))
            if self._budget < 0:
                return Step(halt=protocol.REASON_CALLS)
        batch = self.recorder.next_batch() if calls else 0
        jobs = []
        for request in calls:
            entry = self.pipeline.record(request, batch, self.recorder)
            self.entries[request.id] = entry
            jobs.append(Job(request, entry))
            if self._watch:
                self._watch(entry)
        return Step(jobs=tuple(jobs), replies=tuple(replies))
