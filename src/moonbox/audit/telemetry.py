"""OpenTelemetry spans of runs and calls, made while they happen."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

    from moonbox.audit.records import Call, Run

UNKNOWN_TOOL = "unknown"
_CALL_FIELDS = ("status", "batch", "bytes_in", "bytes_out", "approval", "approval_by", "approval_reason", "retry_of")


class Telemetry:
    """Starts spans. A run's parent is the caller's current span, a call's parent is its run.

    What scripts passed, got and printed stays out of the spans, and so do error messages, which may quote it; with
    `content` they hold arguments, results and messages. Span names and `error.type` come from closed sets.
    """

    def __init__(self, tracer: Tracer, *, content: bool = False) -> None:
        self._tracer, self._content = tracer, content

    @classmethod
    def create(cls, *, tracer_provider: TracerProvider | None = None, content: bool = False) -> Telemetry | None:
        """None when the package opentelemetry-api is not installed."""
        try:
            from opentelemetry import trace
        except ImportError:
            return None
        return cls(trace.get_tracer("moonbox", __version__, tracer_provider), content=content)

    def start_run(self, run_id: str, language: str, repl: str = "", labels: Mapping[str, str] | None = None) -> RunSpan:
        """A span for one run. Call it where the run was asked for: in the caller's thread or task."""
        from opentelemetry import context

        around = context.get_current()
        attributes = {"moonbox.run.id": run_id, "moonbox.language": language, "moonbox.repl": repl}
        labels = labels or {}
        attributes |= {f"moonbox.label.{name}": text for name, text in labels.items()}
        if "conversation" in labels:
            attributes["gen_ai.conversation.id"] = labels["conversation"]
        span = self._tracer.start_span("moonbox.run", context=around, attributes=attributes)
        return RunSpan(span, around, content=self._content, run_id=run_id)

    def start_call(self, parent: RunSpan, index: int, tool: str, *, known: bool = True) -> CallSpan:
        """A span for one call, from any thread or task.

        `known` is False for a name that no tool has: the script made it up, so that it must not become a span's name.
        """
        name = tool if known else UNKNOWN_TOOL
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"{parent.run_id}.{index}",
            "moonbox.call.index": index,
        }
        span = self._tracer.start_span(f"execute_tool {name}", context=parent.context, attributes=attributes)
        return CallSpan(span, parent.context, content=self._content, run_id=parent.run_id)


class _Recorded:
    """A span under way."""

    def __init__(self, span: Span, around: Context, *, content: bool, run_id: str) -> None:
        from opentelemetry import trace

        self.span, self.run_id = span, run_id
        self.context = trace.set_span_in_context(span, around)
        self._content = content

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make this the current span of the thread or task, so that what a tool traces itself hangs below it."""
        from opentelemetry import context

        token = context.attach(self.context)
        try:
            yield
        finally:
            context.detach(token)

    def leave(self, state: str) -> None:
        """End the span of what goes on later, or elsewhere, with another span."""
        self._end({"moonbox.state": state}, None, "")

    def _end(self, attributes: Mapping[str, Any], error_type: str | None, message: str) -> None:
        if not self.span.is_recording():  # not wanted, or ended before
            return
        self.span.set_attributes({name: value for name, value in attributes.items() if value not in (None, "")})
        if error_type is not None:
            from opentelemetry.trace import Status, StatusCode

            said = {"exception.message": message} if self._content else {}
            self.span.set_attribute("error.type", error_type)
            self.span.add_event("exception", {"exception.type": error_type, **said})
            self.span.set_status(Status(StatusCode.ERROR, message if self._content else error_type))
        self.span.end()


class RunSpan(_Recorded):
    """The span of a run."""

    def end(self, run: Run | None = None) -> None:
        """End the span with what the run's record says; without a record it ends as cancelled."""
        if run is None:
            self._end({}, "cancelled", "the run ended without a record")
            return
        error = run.error
        attributes = {
            "moonbox.run.number": run.number,
            "moonbox.run.calls": len(run.calls),
            "moonbox.run.failed_calls": sum(not call.ok for call in run.calls),
            "moonbox.run.cpu_time": run.usage.cpu,
            "moonbox.run.peak_memory": run.usage.peak_memory,
            "moonbox.run.state_lost": run.state_lost,
        }
        kind = None if error is None else f"limit.{error.limit}" if error.limit else error.kind
        self._end(attributes, kind, error.message if error else "")


class CallSpan(_Recorded):
    """The span of a call."""

    def end(self, call: Call | None = None) -> None:
        """End the span with what the call's record says; without a record it ends as cancelled."""
        if call is None:
            self._end({}, "cancelled", "the call ended without a record")
            return
        attributes: dict[str, Any] = {f"moonbox.call.{name}": getattr(call, name) for name in _CALL_FIELDS}
        attributes["moonbox.call.queue_time"] = call.queued
        if self._content and self.span.is_recording():
            record = call.to_dict()
            attributes["gen_ai.tool.call.arguments"] = json.dumps(record["arguments"])
            attributes["gen_ai.tool.call.result"] = json.dumps(record["result"])
            if call.original_arguments is not None:
                attributes["moonbox.call.original_arguments"] = json.dumps(record["original_arguments"])
        self._end(attributes, None if call.ok else call.status, call.error.message if call.error else call.status)
