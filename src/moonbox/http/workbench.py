"""The workbench: live events, approvals, playground, knowledge and diagnosis, for a person at a screen.

bench = Workbench()
sandbox = Sandbox(tools, audit=bench.sink(trail), **bench.hooks)
bench.attach(sandbox, trail=trail)
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from moonbox.audit.query import RunSummary
from moonbox.audit.records import Call, Run
from moonbox.audit.sinks import Sink, SinkAround
from moonbox.codemode.sessions import Sessions
from moonbox.durable.approvals import Answered, Approvals, Question
from moonbox.durable.index import JournalFilter, KnownRun
from moonbox.durable.questions import Questions
from moonbox.errors import MoonboxError
from moonbox.http.events import Event, Events
from moonbox.http.playground import PlaygroundSession, media_of, parameter_order
from moonbox.media import Media, MediaStore

if TYPE_CHECKING:
    from moonbox.durable.store import Journal
    from moonbox.durable.undoing import UndoStep
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.decisions import ToolCall
    from moonbox.sandbox.sandbox import Sandbox

_MAX_SESSIONS = 32
_IDLE_SECONDS = 3600.0
_RUNS_WITH_MEDIA = 1_000
_MOST_WAITING = 1_000


class Workbench:
    """What a person works with.

    others     further approvers, which are asked beside the inbox
    watch      called with each call
    timeout    seconds that an approval stays open
    """

    def __init__(
        self,
        *,
        others: Sequence[Callable[[ToolCall], Awaitable[Any]]] = (),
        watch: Callable[[CallEntry], None] = lambda _: None,
        timeout: float | None = 600.0,
    ) -> None:
        self.watch = watch
        self.events = Events()
        self.approvals = Approvals(timeout=timeout, others=others, on_change=self._tell)
        self.knowledge: KnowledgeBase | None = None
        self.diagnose: Callable[[], dict[str, Any]] | None = None
        self._find_medium: Callable[[str], Media | None] | None = None
        self._media = MediaStore()
        self._media_of_runs: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()
        self._waiting: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()
        self._sandboxes: dict[str, Sandbox] = {}
        self._own: list[Sandbox] = []
        self._new_sandbox: Callable[[str], Sandbox] | None = None
        self._options_for: Callable[[KnownRun], dict[str, Any]] | None = None
        self._trail: Any = None
        self.languages: tuple[str, ...] = ()
        """Those of the playground's sessions; the first one is usual."""
        self.sessions: Sessions[PlaygroundSession] = Sessions(
            lambda session: session.repl.close(),
            most=_MAX_SESSIONS,
            idle_seconds=_IDLE_SECONDS,
            strict=True,
            is_busy=lambda session: session.state != "idle",
        )

    @property
    def hooks(self) -> dict[str, Any]:
        """Arguments for every Sandbox of the workbench."""
        return {"approve": self.approvals.approve, "on_call": self.watch}

    def sink(self, inner: Sink) -> Sink:
        """The sink for every Sandbox of the workbench: what is written to it is also told to those who watch."""
        return SinkAround(inner, self._tell_run)

    def attach(
        self,
        sandbox: Sandbox,
        *,
        trail: Any = None,
        make: Callable[[str], Sandbox] | None = None,
        languages: Sequence[str] = (),
        knowledge: KnowledgeBase | None = None,
        diagnose: Callable[[], dict[str, Any]] | None = None,
        find_medium: Callable[[str], Media | None] | None = None,
        options_for: Callable[[KnownRun], dict[str, Any]] | None = None,
    ) -> None:
        """Work with this Sandbox, and with those that `make` gives for further languages.

        `options_for` gives the options of the Repl in which a run of the journal goes on.
        """
        self._sandboxes[sandbox.language] = sandbox
        self._options_for = options_for
        self._new_sandbox = make
        if sandbox.has_journal:
            self.approvals.keep_in(Questions(sandbox.journal.backend))
        self.knowledge, self.diagnose, self._find_medium = knowledge, diagnose, find_medium
        self._trail = trail
        self.languages = tuple(dict.fromkeys((sandbox.language, *(languages if make is not None else ()))))

    async def watch_trail(self) -> None:
        """Follow the runs that other processes write, while a page is subscribed."""
        if hasattr(self._trail, "tail"):
            await self.events.follow(self._trail.tail)

    def find_medium(self, address: str) -> Media | None:
        """What a run returned or showed, what a session holds, or what an MCP server gave."""
        places = (self._media.get, *(each.repl.find_medium for each in self.sessions.values()), self._find_medium)
        return next((medium for find in places if find is not None and (medium := find(address)) is not None), None)

    def media_of(self, run: str) -> list[dict[str, Any]]:
        """The media that a run returned or showed and that are still kept: records do not have them."""
        with self._lock:
            handles = self._media_of_runs.get(run, [])
        return [handle for handle in handles if self._media.get(handle) is not None]

    def going(self) -> list[Run]:
        """What is known of the runs that have not ended: those of the playground, and those that asked a person."""
        with self._lock:
            waiting = list(self._waiting.values())
        return [*(run for each in self.sessions.values() if (run := each.going) is not None), *waiting]

    def question(self, question: Question) -> dict[str, Any]:
        """A question with the session that it belongs to, and the order of the tool's parameters."""
        session = next((each.id for each in self.sessions.values() if each.repl.id == question.repl), "")
        return {**question.to_dict(), "session": session, "order": self.order(question.tool)}

    def answered(self, answer: Answered) -> dict[str, Any]:
        """An answer with the order of the tool's parameters."""
        return {**answer.to_dict(), "order": self.order(answer.question.tool)}

    def order(self, tool: str) -> list[str]:
        """The order of a tool's parameters, in any Sandbox of the workbench."""
        with self._lock:
            boxes = list(self._sandboxes.values())
        return parameter_order(tool, *boxes)

    def sandbox_of(self, run: str) -> Sandbox:
        """The Sandbox of the language of a run of the journal."""
        return self.sandbox_in(self.journal.known(run).language)

    def go_on(self, run: str, source: str | None, in_flight: str | None) -> None:
        """Continue a run of the journal, with a corrected script or its own, with the tools that its scripts had."""
        known = self.journal.known(run)
        options: dict[str, Any] = {} if self._options_for is None else self._options_for(known)
        sandbox = self.sandbox_in(known.language)
        if source is None:
            sandbox.resume(run, in_flight, **options)
        else:
            sandbox.patch(run, source, in_flight, **options)

    def undo_plan(self, run: str) -> tuple[UndoStep, ...]:
        """How the calls of a run are taken back; empty where there is nothing to undo, or no more."""
        with contextlib.suppress(MoonboxError):
            if self.journal.known(run).undone != "yes":
                return self.sandbox_of(run).undo_plan(run)
        return ()

    def open_languages(self) -> None:
        """Make the Sandboxes of the languages that runs of the journal that have not ended are in."""
        wanted = (JournalFilter(state=state) for state in ("interrupted", "sleeping", "waiting"))
        for language in {run.language for each in wanted for run in self.journal.runs(each, most=_MOST_WAITING)}:
            if language in self.languages:
                self.sandbox_in(language)

    def is_recorded(self, run: Run) -> bool:
        """Whether the journal has the run, so that it can be walked."""
        with contextlib.suppress(MoonboxError):
            return bool(run.calls) and self.journal.look_up(run.id) is not None
        return False

    @property
    def journal(self) -> Journal:
        """That of its Sandboxes; UsageError where they have none."""
        return next(iter(self._sandboxes.values())).journal

    def close(self) -> None:
        """End the streams, and the Sandboxes that were made here."""
        self.events.close()
        with self._lock:
            own, self._own = self._own, []
        for sandbox in own:
            sandbox.close()

    def sandbox_in(self, language: str) -> Sandbox:
        """The Sandbox of a language, made if there is none."""
        with self._lock:
            if language not in self._sandboxes:
                assert self._new_sandbox is not None
                self._sandboxes[language] = self._new_sandbox(language)
                self._own.append(self._sandboxes[language])
            return self._sandboxes[language]

    def _tell_run(self, run: Run) -> None:
        """A run was kept: its media stay for those who look at it."""
        if run.media:
            for medium in run.media:
                self._media.keep(medium)
            with self._lock:
                self._media_of_runs[run.id] = media_of(run)
                while len(self._media_of_runs) > _RUNS_WITH_MEDIA:
                    self._media_of_runs.popitem(last=False)
        with self._lock:
            self._waiting.pop(run.id, None)
        self.events.publish(Event("run", RunSummary.of(run).to_dict()))

    def _wait(self, question: Question) -> None:
        """A run outside of the playground asks: from now on it is among the runs, although its record comes later."""
        call = Call(question.index, question.tool, question.arguments, "in_flight", started=question.asked)
        source, language = (question.source, question.language) if question.source else (question.tool, "direct")
        known: Any = {"language": language, "started": question.asked, "repl": question.repl, "labels": question.labels}
        run = Run(question.run, source, calls=(call,), running=True, **known)
        with self._lock:
            self._waiting[run.id] = run
            while len(self._waiting) > _MOST_WAITING:
                self._waiting.popitem(last=False)
        self.events.publish(Event("run", RunSummary.of(run).to_dict()))

    def _tell(self, change: Question | Answered) -> None:
        if isinstance(change, Question):
            asked = self.question(change)
            if change.run and not asked["session"]:
                self._wait(change)
            self.events.publish(Event("approval", asked))
        else:
            self.events.publish(Event("answered", self.answered(change)))
