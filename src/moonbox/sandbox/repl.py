"""Repl: one live script environment with state, in one worker of its own."""

from __future__ import annotations

from contextlib import suppress
from os import getpid
from typing import TYPE_CHECKING, Any, Self

from moonbox.closing import Closing
from moonbox.errors import ClosedError, JournalError, MoonboxError, WorkerError
from moonbox.runs.script_check import engine_findings
from moonbox.sandbox.repl_runs import ReplRuns, require_text
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from typing import Unpack

    from moonbox.audit.records import Run
    from moonbox.durable.background import Background
    from moonbox.findings import Finding
    from moonbox.limits import Limits
    from moonbox.media import Media
    from moonbox.runs.blocking import BlockingDriver
    from moonbox.runs.docs import Docs
    from moonbox.runs.environment import Additions
    from moonbox.runs.execution import Execution
    from moonbox.runs.options import RunOptions
    from moonbox.runs.stepped import Pause
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.jail import Layer


class Repl(ReplRuns, Closing):
    """Runs scripts one after another in one environment: globals persist from run to run.

    Make it with `Sandbox.repl()`. The worker is taken from the pool on entering or at the first run.
    """

    id: str
    toolbox: Toolbox

    def __repr__(self) -> str:
        state = ", closed" if self._turns.closed else ", paused" if self._turns.end_pause else ""
        about = f"{self._setup.language.name}, {counted(len(self.toolbox), 'tool')}, {counted(self._number, 'run')}"
        return f"<Repl {self.id or 'for one run'}: {about}{state}>"

    # Running

    def run(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """Run one script to its end. What the script did wrong is in the Run; nothing of it is raised.

        The options are those of `RunOptions`: limits, timeout, inputs, context, labels, on_call, on_output,
        on_progress, run_id.
        """
        given = self._given(options)
        return self._drive(lambda link: self._begin(link, source, given))

    async def arun(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """The same, awaited. Cancelling it stops the script and leaves the Repl usable."""
        given = self._given(options)
        return await self._adrive(lambda link: self._begin(link, source, given))

    def start(self, source: str, **options: Unpack[RunOptions]) -> Run | Pause:
        """Run step by step: returns a Pause at the first batch of calls, or the finished Run."""
        from moonbox.runs.stepped import SteppedDriver

        given = self._given(options)
        self._turns.enter()
        try:
            link = self._acquire()
            execution = self._begin(link, source, given)
        except BaseException:
            self._turns.leave()
            raise

        def move(lost: Execution) -> tuple[BlockingDriver, Execution]:
            link, again = self._move(lost)
            return self._driver(link, again), again

        driver = self._driver(link, execution)
        return SteppedDriver(driver, execution, self._turns, self._finish, self._give_up, move).begin()

    async def astart(self, source: str, **options: Unpack[RunOptions]) -> Run | Pause:
        """The same, awaited. If that is cancelled, the run is given up at its first calls."""
        from moonbox.runs.stepped import give_up
        from moonbox.threads import in_thread

        return await in_thread(lambda: self.start(source, **options), left=give_up)

    def submit(self, source: str, **options: Unpack[RunOptions]) -> Background:
        """Run a script in the background: returns at once, with a handle to wait for it, watch it or cancel it."""
        from moonbox.durable.background import Background

        require_text(source)
        if self._turns.closed:
            raise ClosedError("the Repl is closed")
        return Background(self, source, options.get("run_id") or self._setup.new_id(), options)

    def in_background(self, work: Callable[[], Coroutine[Any, Any, Run]]) -> Future[Run]:
        """Await it on the Sandbox's own event loop."""
        return self._setup.loop.submit(work)

    def fork(self) -> Repl:
        """A new Repl with the same globals, made by running the recorded scripts again; needs a journal.

        It has the same tools, limits, context, labels and definitions.
        """
        from moonbox.durable.recovery import fork

        if self._sandbox.journal and self._journal is None:
            return self.twin()
        with self._turns.taken():
            assert self._journal is not None
            return fork(self._sandbox, self.id, self._journal.seq, self.twin)

    def twin(self, repl_id: str = "") -> Repl:
        """A new Repl that is made as this one was, with what was defined on it. It has none of its scripts' globals."""
        twin = self._sandbox.make_repl(*self._made_with, repl_id=repl_id)
        twin._additions = self._additions
        return twin

    def check(self, source: str) -> tuple[Finding, ...]:
        """Look at a script without running it: what cannot work, and what is likely a mistake.

        Globals that earlier runs of this Repl have set count as known. Empty for a script that is too long or too deep
        to follow, and for one that does not compile, unless the language's engine checks types too: then a worker is
        asked what the engine finds, if the Repl has no run under way.
        """
        require_text(source)
        findings = self._check.findings(source, self._additions)
        is_refused = any(finding.severity == "error" for finding in findings)
        if is_refused or not self._setup.language.engine_checks or self.paused or not self._turns.idle:
            return findings
        calls = self._call_path(self.limits)
        with self._turns.taken():
            return (*findings, *engine_findings(source, self._worker, calls, self._additions))

    # The environment

    def define(self, name: str, value: Any, *, doc: str = "", counted: bool = True, cleaned: bool = True) -> None:
        """Add a global: a value, or a function that scripts call by name with positional arguments.

        `space.name` puts it into a table. The name must not be one that every script finds, such as `print`. `doc` is
        its entry in `docs`; without it, a function has its docstring there.
        Calls of a function are recorded; `counted` says whether they are spent from `max_tool_calls`, and `cleaned`
        whether the Sandbox's secrets are replaced in what it returns.
        """
        self._additions = self._additions.define(
            self._setup.language, name, value, doc, counted=counted, cleaned=cleaned
        )
        self._calls = None

    def document(self, name: str, text: str) -> None:
        """Add an entry that scripts read as docs[name]."""
        self._additions = self._additions.document(name, text)
        self._calls = None

    def globals(self) -> dict[str, str]:
        """Names and kinds of what scripts have defined."""
        with self._turns.taken():
            return self._read_globals()

    async def aglobals(self) -> dict[str, str]:
        """The same, awaited."""
        from moonbox.threads import unbroken

        async with self._turns.ataken():
            found: dict[str, str] = await unbroken(self._read_globals)
            return found

    def _read_globals(self) -> dict[str, str]:
        while True:
            self._acquire()
            try:
                return self._worker.read_globals()
            except WorkerError:
                if not self._worker.asleep:  # its host is gone: another worker has the globals
                    raise

    @property
    def additions(self) -> Additions:
        """What its scripts find beside the tools."""
        return self._additions

    def find_medium(self, handle: Any) -> Media | None:
        """The medium behind a handle, or behind the address in one, that a tool returned to this Repl's scripts."""
        return self._media.get(handle)

    @property
    def may_have_globals(self) -> bool:
        """False where the check of its scripts has shown that none of them sets a global: `globals` is empty."""
        return self._check.has_globals

    def reset(self) -> None:
        """Start afresh: what scripts defined is gone; what was added with `define` stays."""
        with self._turns.taken():
            if self._journal is not None:
                try:
                    self._journal.reset()
                except JournalError:  # whether it was written is not known: the next run finds out
                    self._let_go()
                    raise
            self._worker.drop()
            self._worker.has_state = self._worker.asleep = False
            self._forget()

    def sleep(self, idle_for: float = 0.0) -> bool:
        """Give the worker up until the next run, which restores what scripts have defined from the journal.

        Nothing happens, and the result is False, where the Repl is in use or was used in the last `idle_for` seconds.
        """
        if self._worker.link is None or self._turns.closed or self._turns.end_pause or not self._turns.idle:
            return False
        self._sandbox.journal  # noqa: B018 - raises where there is none
        with self._turns.taken():
            link = self._worker.link
            if link is None or link.idle_seconds() < idle_for:
                return False
            self._worker.sleep()
            if self._journal is not None:
                self._worker.asleep = True  # also without a state: the next run takes the Repl in the journal again
                self._journal.release()
        return True

    @property
    def sandbox(self) -> Sandbox:
        """The Sandbox that it belongs to."""
        return self._sandbox

    @property
    def limits(self) -> Limits:
        """What one of its runs may spend, where the run says nothing else."""
        return self._options.get("limits") or self._setup.limits

    @property
    def docs(self) -> Docs:
        """The documentation that its scripts read as `docs`."""
        return self._call_path(self.limits).docs

    @property
    def paused(self) -> bool:
        """Whether a run that was begun with `start` waits for the answers to its calls."""
        return self._turns.end_pause is not None

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return not self._turns.idle

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id; None before the first run and with isolation="inline"."""
        return None if (link := self._worker.link) is None else link.pid

    @property
    def worker_jail(self) -> tuple[Layer, ...]:
        """The layers of its worker's jail, as it reported them; none before the first run and inline."""
        return () if (link := self._worker.link) is None else link.layers()

    @property
    def worker_native(self) -> bool:
        """Whether its worker runs scripts on the native loop; False before the first run and inline."""
        return (link := self._worker.link) is not None and link.native

    def close(self) -> None:
        """Give the worker up. A run that is going on is stopped."""
        if not self._turns.closed:
            self._setup.stopped_runs.add(self._turns)
            if not self._turns.close():
                self._setup.run_ended(self._turns)
            if self._journal is not None:
                self._journal.hurry.set()
            if getpid() == self._setup.pid:
                self._worker.close(idle=self._turns.idle)
                with suppress(MoonboxError):  # a lease ends by itself; a record may not be writable
                    if self._journal is not None:
                        self._journal.release()
                    if (end_pause := self._turns.end_pause) is not None:
                        end_pause()
            self._setup.repls.known.discard(self)

    def __enter__(self) -> Self:
        with self._turns.taken():
            self._worker.acquire()
        return self

    async def __aenter__(self) -> Self:
        async with self._turns.ataken():
            await self._worker.aacquire()
        return self
