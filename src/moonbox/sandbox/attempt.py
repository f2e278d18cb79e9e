"""Attempt: one run from the opening frame to the Run that records it, however it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.errors import ScriptError
from moonbox.languages.lua.explain import Ending, explain
from moonbox.sandbox.guest_errors import explain_guest, explain_syntax
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.audit.records import Run
    from moonbox.languages.registry import BadSyntax
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
        translated: str,
        bad: BadSyntax | None,
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
        self._guest = exchange.recorder.language != "lua"
        self.calls_expected = bool(toolbox) and (self._guest or "tools" in translated)
        """A guess: the script will call tools."""
        self.opening = update + exchange.begin(translated.encode("utf-8", "replace"))
        self.refused: Run | None = None
        """The record of a script that does not compile or is too large; then nothing is sent."""
        if bad is not None:
            self.refused = self._record(None, explain_syntax(bad, exchange.recorder.source))
        elif too_large:
            said = f"the script has {len(translated)} characters, too many for max_memory = {limits.max_memory} bytes"
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
        if self._guest and ended.extra:
            return explain_guest(ended, self.exchange.recorder.source)
        data = ended.extra.get("data")
        names = ended.extra.get("names")
        return explain(
            Ending(
                kind=ended.kind,
                limit=ended.limit,
                message=ended.message,
                frames=ended.frames,
                data=data[0] if isinstance(data, list) and data else None,
                names=tuple(str(name) for name in names) if isinstance(names, list) else (),
            ),
            sources=self._sources,
            tools=self._toolbox.paths(),
            limits=self._limits,
        )

    def _stopped(self, limit: str, message: str = "") -> ScriptError:
        ending = Ending(kind="stop", limit=limit, message=message, frames=(), data=None, names=())
        return explain(ending, sources=self._sources, tools=self._toolbox.paths(), limits=self._limits)

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
