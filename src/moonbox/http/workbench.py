"""The workbench: live events, approvals, playground, knowledge and diagnosis, for a person at a screen.

bench = Workbench()
sandbox = Sandbox(tools, audit=bench.sink(trail), **bench.hooks)
bench.attach(sandbox, trail=trail)
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from moonbox.audit.query import RunSummary
from moonbox.http.events import Event, Events, TrailWatch
from moonbox.http.playground import Playground, watch_call, watch_output
from moonbox.http.reports import media_of
from moonbox.media import MediaStore
from moonbox.sandbox.approvals import Answered, Approvals, Question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Sink
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.media import Media
    from moonbox.sandbox.decisions import ToolCall
    from moonbox.sandbox.sandbox import Sandbox

__all__ = ["Workbench"]

_RUNS_WITH_MEDIA = 1_000


class Workbench:
    """What a person works with.

    others    further approvers, which are asked beside the inbox
    timeout   seconds that an approval stays open
    """

    def __init__(
        self, *, others: Sequence[Callable[[ToolCall], Awaitable[Any]]] = (), timeout: float | None = 600.0
    ) -> None:
        self.events = Events()
        self.approvals = Approvals(timeout=timeout, others=others, on_change=self._tell)
        self.knowledge: KnowledgeBase | None = None
        self.diagnose: Callable[[], dict[str, Any]] | None = None
        self._find_medium: Callable[[str], Media | None] | None = None
        self._media = MediaStore()
        self._media_of_runs: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()
        self._sandboxes: dict[str, Sandbox] = {}
        self._own: list[Sandbox] = []
        self._make: Callable[[str], Sandbox] | None = None
        self._watch: TrailWatch | None = None
        self._playground: Playground | None = None

    @property
    def hooks(self) -> dict[str, Any]:
        """Arguments for every Sandbox of the workbench."""
        return {"approve": self.approvals.approve, "on_call": watch_call, "on_output": watch_output}

    def sink(self, inner: Sink) -> Sink:
        """The sink for every Sandbox of the workbench: what is written to it is also told to those who watch."""
        return _ToldSink(inner, self._tell_run)

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
    ) -> None:
        """Work with this Sandbox, and with those that `make` gives for further languages."""
        self._sandboxes[sandbox.language] = sandbox
        self._make = make
        self.knowledge, self.diagnose, self._find_medium = knowledge, diagnose, find_medium
        if hasattr(trail, "tail"):
            self._watch = TrailWatch(self.events, trail.tail)
        names = dict.fromkeys((sandbox.language, *(languages if make is not None else ())))
        self._playground = Playground(self.events, self._sandbox, languages=tuple(names))

    @property
    def playground(self) -> Playground:
        assert self._playground is not None, "attach a Sandbox first"
        return self._playground

    async def watch_trail(self) -> None:
        """Follow the runs that other processes write, while somebody watches."""
        if self._watch is not None:
            await self._watch.start()

    def find_medium(self, address: str) -> Media | None:
        """What a run returned or showed, what a session holds, or what an MCP server gave."""
        places = (self._media.get, self.playground.find_medium, self._find_medium)
        return next((medium for find in places if find is not None and (medium := find(address)) is not None), None)

    def media_of(self, run: str) -> list[dict[str, Any]]:
        """The media that a run returned or showed and that are still kept: records do not have them."""
        with self._lock:
            handles = self._media_of_runs.get(run, [])
        return [handle for handle in handles if self._media.get(handle) is not None]

    def question(self, question: Question) -> dict[str, Any]:
        """A question with the session that it belongs to."""
        session = "" if self._playground is None else self._playground.session_of(question.repl)
        return {**question.to_dict(), "session": session}

    def close(self) -> None:
        """End the streams, and the Sandboxes that were made here."""
        self.events.close()
        with self._lock:
            own, self._own = self._own, []
        for sandbox in own:
            sandbox.close()

    def _sandbox(self, language: str) -> Sandbox:
        with self._lock:
            sandbox = self._sandboxes.get(language)
            if sandbox is None:
                assert self._make is not None
                sandbox = self._sandboxes[language] = self._make(language)
                self._own.append(sandbox)
            return sandbox

    def _tell_run(self, run: Run) -> None:
        """A run was kept: its media stay for those who look at it."""
        if run.media:
            for medium in run.media:
                self._media.keep(medium)
            with self._lock:
                self._media_of_runs[run.id] = media_of(run)
                while len(self._media_of_runs) > _RUNS_WITH_MEDIA:
                    self._media_of_runs.popitem(last=False)
        self.events.publish(Event("run", RunSummary.of(run).to_dict()))

    def _tell(self, change: Question | Answered) -> None:
        if isinstance(change, Question):
            self.events.publish(Event("approval", self.question(change)))
        else:
            self.events.publish(Event("answered", change.to_dict()))


class _ToldSink:
    """A sink that tells of each run once it is kept."""

    def __init__(self, inner: Sink, tell: Callable[[Run], None]) -> None:
        self._inner, self._tell = inner, tell

    def write(self, run: Run) -> None:
        self._inner.write(run)
        self._tell(run)

    def close(self) -> None:
        self._inner.close()
