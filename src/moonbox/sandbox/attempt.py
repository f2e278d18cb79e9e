"""Attempt: one run from the opening frame to the Run that records it, however it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.errors import ScriptError
from moonbox.languages.registry import EngineError, language
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.audit.records import Run
    from moonbox.limits import Limits
    from moonbox.sandbox.conversation import Ended
    from moonbox.sandbox.exchange import Exchange
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.link import Link

__all__ = ["Attempt"]

_REASONS = {protocol.REASON_TIME: "time", protocol.REASON_CANCELLED: "cancelled", protocol.REASON_CALLS: "calls"}


class Attempt:
    """Holds what a run needs, and makes its record."""

    def __init__(
        self,
        *,
        link: Link,
        exchange: Exchange,
        update: bytes,
        too_large: bool,
        limits: Limits,
        sources: Mapping[str, str],
        toolbox: Toolbox,
        state_lost_before: bool,
    ) -> None:
        self.link = link
        self.exchange = exchange
        self.lost = False
        """The worker did not survive."""
        self._limits = limits
        self._sources = sources
        self._toolbox = toolbox
        self._lost_before = state_lost_before
        self._counted = link.sent, link.received
        self._language = language(exchange.recorder.language)
        source = exchange.recorder.source
        self.calls_expected = bool(toolbox) and (self._language.runtime is not None or "tools" in source)
        """A guess: the script will call tools."""
        self.opening = update + exchange.begin(source.encode("utf-8", "replace"))
        self.refused: Run | None = None
        """The record of a script that is too large; then nothing is sent."""
        if too_large:
            said = f"the script has {len(source)} characters, too many for max_memory = {limits.max_memory} bytes"
            self.refused = self._record(None, self._stopped("memory", said))

    def ended(self, ended: Ended) -> Run:
        """The worker said how it ended."""
        if ended.kind == "ok":
            return self._record(ended, None, tuple(ended.values))
        return self._record(ended, self._explain(ended))

    def cancelled(self, *, drained: bool) -> Run:
        """We stopped the script because nobody waits for it any more; the worker lives if it said so to the end."""
        self.lost = not drained
        return self._record(None, self._stopped("cancelled"))

    def gone(self, reason: int, how: str) -> Run:
        """The worker is gone: ended by us for `reason`, or by itself."""
        self.lost = True
        if reason:
            return self._record(None, self._stopped(_REASONS[reason]))
        message = f"the worker process {how}; what the scripts had defined is lost"
        return self._record(None, ScriptError("crashed", message))

    def _explain(self, ended: Ended) -> ScriptError:
        report = EngineError.from_report(
            ended.kind, ended.message, limit=ended.limit, frames=ended.frames, extra=ended.extra
        )
        return self._explained(report)

    def _stopped(self, limit: str, message: str = "") -> ScriptError:
        return self._explained(EngineError("stop", message, limit=limit))

    def _explained(self, error: EngineError) -> ScriptError:
        return self._language.explain(error, sources=self._sources, tools=self._toolbox.paths(), limits=self._limits)

    def _record(self, ended: Ended | None, error: ScriptError | None, values: tuple[object, ...] = ()) -> Run:
        sent, received = self._counted
        return self.exchange.recorder.finish(
            ended=ended,
            values=values,
            error=error,
            bytes_in=self.link.sent - sent,
            bytes_out=self.link.received - received,
            state_lost=self.lost or self._lost_before,
        )
