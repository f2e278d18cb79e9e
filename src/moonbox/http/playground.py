"""The playground: sessions in which a person runs scripts and steps through them, and runs as pages show them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import asdict

from moonbox.audit.query import RunSummary
from moonbox.audit.records import Call, Run
from moonbox.audit.reports import economy_of
from moonbox.codemode.catalog import rough_tokens
from moonbox.errors import MoonboxError, UsageError
from moonbox.http.events import Event, Events
from moonbox.limits import Limits
from moonbox.runs.decisions import Answer
from moonbox.threads import unbroken
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.options import RunOptions
    from moonbox.runs.record import ScriptProgress
    from moonbox.runs.stepped import Pause
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox

State = Literal["idle", "running", "paused"]

_KEPT_EVENTS = 4_000
_STOP_SECONDS = 1.0
_PROGRESS_SECONDS = 0.1
_LARGEST_VALUE = 2_000_000


class SessionBusy(UsageError):
    """The session's state does not allow this now."""


class PlaygroundSession:
    """One Repl and what happened in its latest run. Its methods belong to one event loop, `publish` to any thread.

    `watch` is called with each call of its scripts.
    """

    def __init__(
        self, id: str, events: Events, sandbox: Sandbox, language: str, watch: Callable[[CallEntry], None]
    ) -> None:
        self.id, self.language = id, language
        self._watch = watch
        self.state: State = "idle"
        self.source = ""
        self._hub, self._sandbox = events, sandbox
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=_KEPT_EVENTS)
        self._number = 0
        self._progress_at = 0.0
        self._latest: Run | None = None
        self._pause: Pause | None = None
        self.going: Run | None = None
        self._task: asyncio.Task[None] | None = None
        self.repl = self._new_repl()

    def past(self, after: int) -> list[Event]:
        """The events of the latest run that came after this number."""
        with self._lock:
            return [event for event in self._events if event.number > after]

    def publish(self, name: str, data: Any) -> None:
        with self._lock:
            if name == "started":
                self._events.clear()
            self._number += 1
            event = Event(name, data, self.id, self._number)
            self._events.append(event)
        self._hub.publish(event)

    def start(self, source: str, *, step: bool, limits: Mapping[str, Any]) -> None:
        """Begin a run; UsageError while another one goes on."""
        if self.state != "idle":
            raise SessionBusy("a run of this session is not over; stop it first")
        chosen = self._limits(limits)
        self.source, self._latest = source, None
        self._progress_at = 0.0
        run = self.going = Run(
            secrets.token_hex(16), source, language=self.language, started=time(), repl=self.repl.id, running=True
        )
        self._hub.publish(Event("run", RunSummary.of(run).to_dict()))
        options: RunOptions = {"limits": chosen, "run_id": run.id, "on_progress": self._advance}
        options |= {"on_call": self._called, "on_output": lambda text: self.publish("output", {"text": text})}
        begin = self.repl.astart if step else self.repl.arun
        self._go(lambda: begin(source, **options), first=True)

    def resume(self, answers: Sequence[Mapping[str, Any]] | None) -> None:
        """Go on from a pause: each answer names a call's `id` and says `kind` run, value or error."""
        pause = self._pause
        if self.state != "paused" or pause is None:
            raise SessionBusy("this session is not paused")
        prepared = None if answers is None else dict(map(answer_of, answers))
        if prepared is not None and set(prepared) != {call.id for call in pause.calls}:
            raise UsageError(f"answer each of the calls {[call.id for call in pause.calls]}, and no other")
        self._pause = None
        self._go(lambda: pause.aresume(prepared))

    async def stop(self) -> None:
        """Stop the run. A script that does not stop is ended with its worker, and its globals are lost."""
        if self._pause is not None:
            pause, self._pause = self._pause, None
            run = await unbroken(pause.cancel)
            self._finish(run)
            return
        task = self._task
        if task is None or task.done():
            return
        task.cancel()
        await asyncio.wait({task}, timeout=_STOP_SECONDS)
        if self.state != "idle":  # a step runs in a thread, which cannot be cancelled
            self.repl.close()
            self.repl = self._new_repl()
            self._lose("the run was ended with its worker; the session's globals are lost")

    def globals(self) -> dict[str, str]:
        """Names and kinds of what its scripts have defined."""
        return {} if self.state != "idle" else self.repl.globals()

    async def close(self) -> None:
        """Stop its run, if there is one, and end it."""
        with contextlib.suppress(MoonboxError):
            await self.stop()
        await unbroken(self.repl.close)

    def to_dict(self) -> dict[str, Any]:
        limits = self._sandbox.limits.to_dict()
        return {"id": self.id, "language": self.language, "state": self.state, "source": self.source, "limits": limits}

    def _new_repl(self) -> Repl:
        return self._sandbox.repl(before_write=self._keep)

    def _called(self, entry: CallEntry) -> None:
        """A call began or ended."""
        self.publish("call", call_dict(entry.to_call()))
        self._watch(entry)

    def _advance(self, progress: ScriptProgress) -> None:
        """The script says how far it is. A script that says so all the time must not displace other events."""
        now = monotonic()
        if now - self._progress_at >= _PROGRESS_SECONDS or progress.done == progress.total:
            self._progress_at = now
            self.publish("progress", asdict(progress))

    def _keep(self, run: Run) -> Run:
        """Also the record of a run that was cancelled, which its caller does not get."""
        self._latest = run
        return run

    def _limits(self, given: Mapping[str, Any]) -> Limits:
        changes = {key: value for key, value in given.items() if key != "preset"}
        preset = given.get("preset", "default")
        for name in changes:
            if name not in Limits().to_dict():
                raise UsageError(f"unknown limit {name!r}")
            if isinstance(changes[name], float) and changes[name].is_integer() and name != "timeout":
                changes[name] = int(changes[name])
        return Limits.preset(str(preset), **changes)

    def _go(self, step: Callable[[], Any], *, first: bool = False) -> None:
        self.state = "running"
        if first:
            self.publish("started", {"started": time(), "source": self.source})
        self._task = asyncio.get_running_loop().create_task(self._drive(step))

    async def _drive(self, step: Callable[[], Any]) -> None:
        repl = self.repl
        try:
            result = await step()
            if repl is self.repl:  # else it was stopped, and its end told
                self._arrive(result)
        except asyncio.CancelledError:
            if self._latest is not None:
                self._finish(self._latest)
        except Exception as problem:  # noqa: BLE001 - the person sees every failure
            if repl is self.repl:
                self._lose(str(problem) if isinstance(problem, MoonboxError) else "the run failed inside moonbox")

    def _arrive(self, result: Run | Pause) -> None:
        """A run has ended, or waits for answers."""
        if isinstance(result, Run):
            self._finish(result)
            return
        self.state, self._pause = "paused", result
        calls = [
            {
                "id": call.id,
                "tool": call.tool,
                "arguments": to_jsonable(call.arguments),
                "order": parameter_order(call.tool, self._sandbox),
            }
            for call in result.calls
        ]
        self.publish("pause", {"calls": calls})

    def _finish(self, run: Run) -> None:
        self.state, self.going = "idle", None
        self.publish("done", {"run": run_dict(run), "report": run_report(run)})

    def _lose(self, message: str) -> None:
        if self.going is not None:
            told = RunSummary.of(self.going).to_dict()
            self._hub.publish(Event("run", {**told, "state": "interrupted"}))
        self.state, self.going = "idle", None
        self.publish("lost", {"message": message})


def answer_of(given: Mapping[str, Any]) -> tuple[int, Answer]:
    """The number of a call and its answer: `id`, and `kind` run, value or error."""
    id = given.get("id")
    if isinstance(id, bool) or not isinstance(id, int):
        raise UsageError("an answer needs the id of its call")
    match given.get("kind"):
        case "run":
            return id, Answer.run()
        case "value":
            return id, Answer.value(given.get("value"))
        case "error":
            return id, Answer.error(
                str(given.get("message") or "it failed"), code=str(given.get("code") or "tool_error")
            )
    raise UsageError("the kind of an answer must be run, value or error")


def run_report(run: Run) -> dict[str, Any]:
    """The timeline, what the model was shown, and what that spared; tokens are estimates."""
    answer = run.for_model()
    economy = economy_of(run, answer, rough_tokens)
    return {
        "timeline": timeline_of(run),
        "model": {"text": answer, "tokens": economy["answer"]},
        "economy": economy,
    }


def timeline_of(run: Run) -> dict[str, Any]:
    """When each call came, waited and worked."""
    calls = [call_dict(call) for call in run.calls]
    return {"started": run.started, "wall": run.usage.wall, "running": run.running, "calls": calls}


_TIMELINE = (
    *("index", "tool", "status", "started", "queued", "duration", "batch", "retry_of"),
    *("approval", "approval_by", "approval_reason"),
)


def call_dict(call: Call) -> dict[str, Any]:
    """A call as the timeline needs it: without its arguments and result."""
    tries = {"tries": [{"started": each.started, "duration": each.duration} for each in call.tries]}
    return {name: getattr(call, name) for name in _TIMELINE} | (tries if call.tries else {})


def parameter_order(tool: str, *sandboxes: Sandbox) -> list[str]:
    """The names of a tool's parameters as its schema has them: those of a call come in any order."""
    found = next((found for sandbox in sandboxes if (found := sandbox.toolbox.get(tool)) is not None), None)
    return [] if found is None else list(found.parameter_names)


def run_dict(run: Run) -> dict[str, Any]:
    """A run as the playground shows it: without its calls, and without values that are too large for a page."""
    small = run.usage.bytes_out < _LARGEST_VALUE
    return {
        "id": run.id,
        "ok": run.ok,
        "values": [to_jsonable(value) for value in run.values] if small else [],
        "large": not small,
        "media": media_of(run),
        "output_cut": run.output_cut,
        "calls": len(run.calls),
        "usage": run.usage.to_dict(),
        "error": None if run.error is None else to_jsonable(run.error.to_dict()),
        "state_lost": run.state_lost,
    }


def media_of(run: Run) -> list[dict[str, Any]]:
    """What the script returned or showed of images, sounds and files: where they are, without their bytes."""
    return [
        {"media": medium.address, "type": medium.type, "size": medium.size, "name": medium.name} for medium in run.media
    ]
