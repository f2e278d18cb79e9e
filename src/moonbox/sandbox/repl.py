"""Repl: one live script environment with state, in one worker of its own."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from moonbox.errors import ClosedError, UsageError, WorkerError
from moonbox.languages.registry import LANGUAGES
from moonbox.sandbox.attempt import Attempt
from moonbox.sandbox.blocking import BlockingDrive, Lost
from moonbox.sandbox.clock import RunClock
from moonbox.sandbox.docs import Docs
from moonbox.sandbox.environment import describe_environment
from moonbox.sandbox.exchange import Exchange
from moonbox.sandbox.holding import Holding
from moonbox.sandbox.pipeline import Pipeline
from moonbox.sandbox.recorder import Recorder
from moonbox.sandbox.slots import Gate
from moonbox.worker import protocol
from moonbox.worker.incoming import Decoder
from moonbox.worker.link import TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from moonbox.audit.records import Run
    from moonbox.limits import Limits
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.sandbox.stepping import Pause
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.jail import Layer

__all__ = ["Repl"]

_KEPT_SOURCES = 20
_ID_BYTES, _SEED_BYTES = 16, 7
_ANSWER_SECONDS = 10.0
_MOST_GLOBALS = 200_000  # nodes of the answer; the engine tells at most 10 000 names
_SOURCE_SHARE = 4  # the compiler holds a script more than once


class Repl:
    """Runs scripts one after another in one environment: globals persist from run to run.

    Make it with `Sandbox.repl()`. The worker is taken from the pool on entering or at the first run.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        limits: Limits | None = None,
        timeout: float | None = 30.0,
        toolbox: Toolbox | None = None,
        before_write: Callable[[Run], Run] | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._before_write = before_write
        self.toolbox = sandbox.toolbox if toolbox is None else toolbox
        self._limits = limits or sandbox.limits
        self._held = Holding(sandbox._pool, timeout, sandbox._template_environment, sandbox.limits)
        self._number = 0
        self._closed = False
        self._paused = False
        """A step-by-step run waits for its caller's answers."""
        self._always: set[str] = set()
        self._gate = Gate()
        self._additions = sandbox._additions.copy()
        self._sources: dict[str, str] = {}
        self.id = os.urandom(6).hex()
        self._pipeline = self._make_pipeline(self._limits)

    # Running

    def run(self, source: str, *, limits: Limits | None = None) -> Run:
        """Run one script to its end. What the script did wrong is in the Run; nothing of it is raised."""
        source = _checked_source(source)
        self._enter()
        try:
            self._held.acquire()
            attempt = self._attempt(source, limits or self._limits)
            if attempt.refused is not None:
                return self._conclude(attempt, attempt.refused)
            drive = BlockingDrive(attempt.link, attempt.exchange, self._sandbox._threads, self._sandbox._loop)
            try:
                ended = drive.run(attempt.opening, calls_expected=attempt.calls_expected)
            except Lost as lost:
                run = self._conclude(attempt, attempt.gone(lost.reason, lost.how))
                if lost.cancelled:
                    self._held.loss_unseen = True
                    raise KeyboardInterrupt from None
                return run
            except KeyboardInterrupt:
                self._held.loss_unseen = not drive.drained
                self._conclude(attempt, attempt.cancelled(drained=drive.drained))
                raise
            except BaseException:
                self._held.lose()  # something of ours failed: nobody knows what the worker is doing now
                raise
            return self._conclude(attempt, attempt.ended(ended))
        finally:
            self._gate.leave()

    async def arun(self, source: str, *, limits: Limits | None = None) -> Run:
        """The same, awaited. Cancelling it stops the script and leaves the Repl usable."""
        from moonbox.sandbox.awaited import AwaitedDrive

        source = _checked_source(source)
        await self._aenter()
        try:
            await self._held.aacquire()
            attempt = self._attempt(source, limits or self._limits)
            if attempt.refused is not None:
                return self._conclude(attempt, attempt.refused)
            drive = AwaitedDrive(attempt.link, attempt.exchange, self._sandbox._threads)
            try:
                ended = await drive.run(attempt.opening)
            except Lost as lost:
                run = self._conclude(attempt, attempt.gone(lost.reason, lost.how))
                if lost.cancelled:
                    self._held.loss_unseen = True
                    raise asyncio.CancelledError from None
                return run
            except asyncio.CancelledError:
                self._held.loss_unseen = not drive.drained
                self._conclude(attempt, attempt.cancelled(drained=drive.drained))
                raise
            except BaseException:
                self._held.lose()  # something of ours failed: nobody knows what the worker is doing now
                raise
            return self._conclude(attempt, attempt.ended(ended))
        finally:
            self._gate.leave()

    def start(self, source: str, *, limits: Limits | None = None) -> Run | Pause:
        """Run step by step: returns a Pause at the first batch of calls, or the finished Run."""
        from moonbox.sandbox.stepping import Stepper

        source = _checked_source(source)
        self._enter()
        try:
            self._held.acquire()
            stepper = Stepper(self, source, limits or self._limits)
        except BaseException:
            self._gate.leave()
            raise
        return stepper.begin()  # which lets the next run in when this one is over

    async def astart(self, source: str, *, limits: Limits | None = None) -> Run | Pause:
        """The same, awaited."""
        return await asyncio.to_thread(self.start, source, limits=limits)

    # The environment

    def define(self, name: str, value: Any, *, doc: str = "", counted: bool = True) -> None:
        """Add a global: a value, or a function that scripts call by name with positional arguments.

        `space.name` puts it into a table. Calls of a function are recorded; `counted` says whether they are spent from
        `max_tool_calls`.
        """
        self._additions.define(name, value, doc, counted=counted)

    def document(self, name: str, text: str) -> None:
        """Add an entry that scripts read as docs[name]."""
        self._additions.docs[name] = text

    def globals(self) -> dict[str, str]:
        """Names and kinds of what scripts have defined."""
        self._enter()
        try:
            self._held.acquire()
            link = self._held.link
            assert link is not None
            try:
                with link.in_use():
                    link.send(protocol.frame(protocol.GLOBALS, b""), _ANSWER_SECONDS)
                    kind, payload = link.receive(_ANSWER_SECONDS)
            except TimedOut:
                raise WorkerError("the worker did not answer") from None
            if kind != protocol.DEFINED:
                raise WorkerError("the worker answered something else")
            data = Decoder(_MOST_GLOBALS, max_depth=1).decode(payload)
            return dict(sorted(_pairs(data)))
        except (WorkerError, ValueError, TypeError) as problem:
            self._held.lose()
            raise WorkerError(f"the worker was lost: {problem}") from None
        finally:
            self._gate.leave()

    def reset(self) -> None:
        """Start afresh: what scripts defined is gone; what was added with `define` stays."""
        self._enter()
        try:
            self._held.start_afresh()
            self._sources.clear()
            self._number = 0
        finally:
            self._gate.leave()

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id; None before the first run and with isolation="inline"."""
        return None if self._held.link is None else self._held.link.pid

    @property
    def worker_jail(self) -> tuple[Layer, ...]:
        """The layers of its worker's jail, as the worker told when it came up; none before the first run and inline."""
        return self._held.layers()

    def close(self) -> None:
        """Give the worker up. A run under way is stopped."""
        if not self._closed:
            self._closed = True
            if self._sandbox._is_ours():
                self._held.close(idle=not self._gate.taken)
            self._sandbox._forget(self)

    async def aclose(self) -> None:
        self.close()

    def __enter__(self) -> Repl:
        self._enter()
        try:
            self._held.acquire()
        finally:
            self._gate.leave()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Repl:
        await self._aenter()
        try:
            await self._held.aacquire()
        finally:
            self._gate.leave()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # One run after another

    def _enter(self) -> None:
        self._check_open()
        future = self._gate.enter()
        if future is not None:
            try:
                future.result()
            except BaseException:
                self._gate.give_up(future)
                raise
        self._check_still_open()

    async def _aenter(self) -> None:
        self._check_open()
        future = self._gate.enter()
        if future is not None:
            try:
                await asyncio.wrap_future(future)
            except BaseException:
                self._gate.give_up(future)
                raise
        self._check_still_open()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the Repl is closed")
        if self._paused:
            raise UsageError("a run of this Repl waits for answers to its calls: resume or cancel its Pause first")
        if not self._sandbox._is_ours():
            raise UsageError("this process was forked from the one that made the Sandbox: make one of its own here")

    def _check_still_open(self) -> None:
        if self._closed:
            self._gate.leave()
            raise ClosedError("the Repl is closed")

    # What the worker is told

    def _update_worker(self, limits: Limits) -> bytes:
        """The frame that brings the worker up to date; empty when it is."""
        mark = (id(self.toolbox), self.toolbox.revision, self._additions.revision)
        return self._held.update(mark, limits, self._describe, self._sandbox._limits_for_worker)

    def _describe(self) -> dict[str, Any]:
        additions = self._additions
        return describe_environment(self.toolbox, additions.functions, additions.values, self._sandbox.lua_features)

    def _make_pipeline(self, limits: Limits) -> Pipeline:
        sandbox = self._sandbox
        return Pipeline(
            toolbox=self.toolbox,
            functions=self._additions.functions,
            docs=Docs(self.toolbox, self._additions.docs, sandbox.language),
            limits=limits,
            middleware=sandbox._middleware,
            approve=sandbox._approve,
            slots=sandbox._slots,
            context=sandbox.context,
            allow_nan=sandbox.allow_nan,
            first_index=LANGUAGES[sandbox.language].first_index,
            always=self._always,
        )

    # One run

    def _attempt(self, source: str, limits: Limits) -> Attempt:
        """Everything for one run."""
        assert self._held.link is not None
        self._number += 1
        lost_before, self._held.loss_unseen = self._held.loss_unseen, False
        chunk = "script" if self._number == 1 else f"script#{self._number}"
        self._sources[chunk] = source
        if len(self._sources) > _KEPT_SOURCES:
            del self._sources[next(iter(self._sources))]
        entropy = os.urandom(_ID_BYTES + _SEED_BYTES)
        recorder = Recorder(
            run_id=entropy[:_ID_BYTES].hex(),
            repl=self.id,
            number=self._number,
            source=source,
            language=self._sandbox.language,
            seed=int.from_bytes(entropy[_ID_BYTES:]),
            clock=RunClock(limits.timeout),
            telemetry=self._sandbox._telemetry,
        )
        pipeline = self._pipeline if limits is self._limits else self._make_pipeline(limits)
        exchange = Exchange(limits, pipeline, recorder, self._number, self._sandbox._on_call)
        too_large = len(source) > limits.max_memory // _SOURCE_SHARE
        return Attempt(
            link=self._held.link,
            exchange=exchange,
            update=b"" if too_large else self._update_worker(limits),
            too_large=too_large,
            limits=limits,
            sources=self._sources,
            toolbox=self.toolbox,
            state_lost_before=lost_before,
        )

    def _conclude(self, attempt: Attempt, run: Run) -> Run:
        """The run is over: keep the record, and the worker if it lives."""
        self._held.ran(lost=attempt.lost)
        if self._before_write is not None:
            run = self._before_write(run)
        self._sandbox._write(run)
        return run


def _pairs(data: Any) -> list[tuple[str, str]]:
    if not isinstance(data, list):
        raise ValueError("a malformed answer")
    return [(name, what) for name, what in data if isinstance(name, str) and isinstance(what, str)]


def _checked_source(source: str) -> str:
    if not isinstance(source, str):
        raise UsageError(f"the script must be a string, not {type(source).__name__}")
    return source
