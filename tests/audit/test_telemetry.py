"""Spans, as the OpenTelemetry SDK receives them."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from moonbox.audit.records import Call, CallError, Run, Usage
from moonbox.audit.telemetry import Telemetry
from moonbox.errors import ScriptError
from moonbox.values import pack

if TYPE_CHECKING:
    import pytest
    from opentelemetry.sdk.trace import ReadableSpan


class Traced:
    """Telemetry, and the spans that come out of it."""

    def __init__(self, *, content: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        telemetry = Telemetry.create(tracer_provider=self.provider, content=content)
        assert telemetry is not None
        self.start_run, self.start_call = telemetry.start_run, telemetry.start_call
        self.app = self.provider.get_tracer("app")

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


def test_a_call_hangs_below_its_run_and_a_run_below_its_caller() -> None:
    traced = Traced()
    with traced.app.start_as_current_span("agent"):
        run_span = traced.start_run("run-1", "lua", "repl-1", {"conversation": "c1", "user": "ann"})
    call_span = traced.start_call(run_span, 1, "github.search")
    with call_span.active(), traced.app.start_as_current_span("inside the tool"):
        pass
    call = Call(
        1, "github.search", {"q": "secret"}, packed=pack("secret"), queued=0.5, bytes_in=14, bytes_out=8, batch=1
    )
    call = replace(
        call, approval="edited", approval_by="bob", approval_reason="as agreed", original_arguments={"q": "secret"}
    )
    call_span.end(call)
    run_span.end(Run("run-1", "return 'secret'", calls=(call,), usage=Usage(cpu=0.25, peak_memory=99), number=3))
    found = traced.spans()
    assert list(found) == ["agent", "inside the tool", "execute_tool github.search", "moonbox.run"]
    assert _parent(found["moonbox.run"]) == found["agent"].context.span_id
    assert _parent(found["execute_tool github.search"]) == found["moonbox.run"].context.span_id
    assert _parent(found["inside the tool"]) == found["execute_tool github.search"].context.span_id
    assert len({span.context.trace_id for span in found.values()}) == 1
    assert dict(found["moonbox.run"].attributes or {}) == {
        "moonbox.run.id": "run-1",
        "moonbox.language": "lua",
        "moonbox.repl": "repl-1",
        "moonbox.label.conversation": "c1",
        "moonbox.label.user": "ann",
        "gen_ai.conversation.id": "c1",
        "moonbox.run.number": 3,
        "moonbox.run.calls": 1,
        "moonbox.run.failed_calls": 0,
        "moonbox.run.cpu_time": 0.25,
        "moonbox.run.peak_memory": 99,
        "moonbox.run.state_lost": False,
    }
    assert dict(found["execute_tool github.search"].attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "github.search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "run-1.1",
        "moonbox.call.index": 1,
        "moonbox.call.status": "ok",
        "moonbox.call.batch": 1,
        "moonbox.call.queue_time": 0.5,
        "moonbox.call.bytes_in": 14,
        "moonbox.call.bytes_out": 8,
        "moonbox.call.approval": "edited",
        "moonbox.call.approval_by": "bob",
        "moonbox.call.approval_reason": "as agreed",
    }
    assert all(span.status.is_unset for span in found.values())


def test_failures_are_recorded_by_kind_without_what_the_script_saw() -> None:
    traced = Traced()
    run_span = traced.start_run("run-1", "lua")
    call_span = traced.start_call(run_span, 1, "send")
    call = Call(1, "send", {"to": "secret"}, "timeout", error=CallError("timeout", "secret took too long"))
    call_span.end(call)
    error = ScriptError("limit", "secret loop ran too long", limit="time")
    run_span.end(Run("run-1", "", calls=(call,), error=error))
    for name, kind in (("execute_tool send", "timeout"), ("moonbox.run", "limit.time")):
        span = traced.spans()[name]
        assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, kind)
        assert (span.attributes or {})["error.type"] == kind
        (event,) = span.events
        assert (event.name, dict(event.attributes or {})) == ("exception", {"exception.type": kind})
        assert "secret" not in span.to_json()


def test_content_is_there_when_asked_for() -> None:
    traced = Traced(content=True)
    run_span = traced.start_run("run-1", "lua")
    call_span = traced.start_call(run_span, 1, "send")
    call_span.end(Call(1, "send", {"to": "a"}, "error", error=CallError("bad", "no such person")))
    span = traced.spans()["execute_tool send"]
    assert (span.attributes or {})["gen_ai.tool.call.arguments"] == '{"to": "a"}'
    assert (span.attributes or {})["gen_ai.tool.call.result"] == "null"
    assert span.status.description == "no such person"
    run_span.end()


def test_names_that_scripts_make_up_do_not_become_span_names() -> None:
    traced = Traced()
    run_span = traced.start_run("run-1", "lua")
    traced.start_call(run_span, 1, "made-up-1", known=False).end(Call(1, "made-up-1", {}, "error"))
    run_span.end()
    span = traced.spans()["execute_tool unknown"]
    assert "made-up" not in span.to_json()


def test_a_span_without_a_record_ends_as_cancelled_and_only_once() -> None:
    traced = Traced()
    run_span = traced.start_run("run-1", "lua")
    call_span = traced.start_call(run_span, 1, "slow")
    call_span.end()
    call_span.end(Call(1, "slow", {}))
    run_span.end()
    assert [(span.attributes or {})["error.type"] for span in traced.exporter.get_finished_spans()] == ["cancelled"] * 2


def test_parents_hold_across_threads_and_tasks() -> None:
    traced = Traced()

    def call(parent: object, index: int) -> None:
        span = traced.start_call(parent, index, "threaded")  # type: ignore[arg-type]
        with span.active(), traced.app.start_as_current_span(f"inside {index}"):
            pass
        span.end(Call(index, "threaded", {}))

    async def one_run(name: str) -> None:
        with traced.app.start_as_current_span(name):
            run_span = traced.start_run(name, "lua")

            async def task(index: int) -> None:
                span = traced.start_call(run_span, index, "awaited")
                with span.active():
                    await asyncio.sleep(0)
                    assert trace.get_current_span() is span.span
                span.end(Call(index, "awaited", {}))

            threads = [threading.Thread(target=call, args=(run_span, index)) for index in (1, 2)]
            for thread in threads:
                thread.start()
            await asyncio.gather(task(3), task(4))
            for thread in threads:
                thread.join()
            run_span.end(Run(name, ""))

    async def both() -> None:
        await asyncio.gather(one_run("one"), one_run("two"))

    asyncio.run(both())
    finished = traced.exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in finished}
    calls = [span for span in finished if span.name.startswith("execute_tool")]
    assert len(calls) == 8
    for span in calls:
        run = by_id[_parent(span)]
        assert by_id[_parent(run)].name == (run.attributes or {})["moonbox.run.id"]
        assert str((span.attributes or {})["gen_ai.tool.call.id"]).startswith(by_id[_parent(run)].name)
    inside = [span for span in finished if span.name.startswith("inside")]
    assert all(by_id[_parent(span)].name == "execute_tool threaded" for span in inside)


def test_without_the_package_there_is_no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert Telemetry.create() is None


def _parent(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id
