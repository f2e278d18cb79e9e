"""Repl: one live script environment with state, in one worker of its own."""

from __future__ import annotations

from contextlib import suppress
from os import getpid
from typing import TYPE_CHECKING, Any, Self, Unpack

from moonbox.closing import Closing
from moonbox.errors import ClosedError, JournalError, MoonboxError, WorkerError
from moonbox.runs.runner import Runner, not_a_script
from moonbox.runs.script_check import engine_findings
from moonbox.runs.slots import Turns
from moonbox.tools.toolbox import Toolbox
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from moonbox.audit.records import Run
    from moonbox.durable.history import ReplHistory
    from moonbox.findings import Finding
    from moonbox.limits import Limits
    from moonbox.media import Media
    from moonbox.runs.docs import Docs
    from moonbox.runs.environment import Additions
    from moonbox.runs.options import RunOptions
    from moonbox.runs.stepped import Pause
    from moonbox.sandbox.background import Background
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.worker.jail import Layer
    from moonbox.worker.link import Link


class Repl(Closing):
    """Runs scripts one after another in one environment: globals persist from run to run.

    Make it with `Sandbox.repl()`. The worker is taken from the pool on entering or at the first run.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        options: RunOptions,
        timeout: float | None,
        toolbox: Toolbox | None,
        before_write: Callable[[Run], Run | None] | None,
        check: bool | None,
        for_one_run: bool,
        repl_id: str,
    ) -> None:
        settings, services, is_recorded = sandbox._settings, sandbox._services, sandbox.has_journal
        self.id: str = repl_id or ("" if for_one_run and not is_recorded else services.new_id(6))
        self.toolbox: Toolbox = settings.toolbox if toolbox is None else Toolbox.of(toolbox)
        self._sandbox = sandbox  # which lives, and its workers with it, as long as one of its Repls
        self._settings, self._services = settings, services
        self._made_with = options, timeout, self.toolbox, before_write, check
        self._turns = Turns(services.pid, sandbox._repls.run_ended)
        self._runner = Runner(
            settings,
            services,
            self.id,
            self.toolbox,
            options,
            self._turns,
            timeout=timeout,
            before_write=before_write,
            check=check,
            is_recorded=is_recorded,
        )
        self._history: ReplHistory | None = None
        if is_recorded:
            from moonbox.durable.history import ReplHistory

            self._history = self._runner.history = ReplHistory(self._runner, sandbox.journal)

    def __repr__(self) -> str:
        state = ", closed" if self._turns.closed else ", paused" if self._turns.end_pause else ""
        number = self._runner.number
        about = f"{self._settings.language.name}, {counted(len(self.toolbox), 'tool')}, {counted(number, 'run')}"
        return f"<Repl {self.id or 'for one run'}: {about}{state}>"

    # Running

    def run(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """Run one script to its end. What the script did wrong is in the Run; nothing of it is raised.

        The options are those of `RunOptions`: limits, timeout, inputs, context, labels, on_call, on_output,
        on_progress, run_id.
        """
        return self._runner.run(source, options)

    async def arun(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """The same, awaited. Cancelling it stops the script and leaves the Repl usable."""
        return await self._runner.arun(source, options)

    def start(self, source: str, **options: Unpack[RunOptions]) -> Run | Pause:
        """Run step by step: returns a Pause at the first batch of calls, or the finished Run."""
        return self._runner.start(source, options, self)

    async def astart(self, source: str, **options: Unpack[RunOptions]) -> Run | Pause:
        """The same, awaited. If that is cancelled, the run is given up at its first calls."""
        from moonbox.runs.stepped import give_up
        from moonbox.threads import in_thread, own_thread

        return await in_thread(lambda: self.start(source, **options), start=own_thread, left=give_up)

    def submit(self, source: str, **options: Unpack[RunOptions]) -> Background:
        """Run a script in the background: returns at once, with a handle to wait for it, watch it or cancel it."""
        from moonbox.sandbox.background import Background

        if not isinstance(source, str):
            raise not_a_script(source)
        if self._turns.closed:
            raise ClosedError("the Repl is closed")
        return Background(self, source, options.get("run_id") or self._services.new_id(), options)

    def in_background(self, work: Callable[[], Coroutine[Any, Any, Run]]) -> Future[Run]:
        """Await it on the Sandbox's own event loop."""
        return self._services.loop.submit(work)

    def fork(self) -> Repl:
        """A new Repl with the same globals, made by running the recorded scripts again; needs a journal.

        It has the same tools, limits, context, labels and definitions.
        """
        recoveries, journal = self._sandbox._recorded, self.history.journal
        if journal is None:
            return self.twin()
        with self._turns.taken():
            return recoveries.fork(self.id, journal.seq, self.twin)

    def twin(self, repl_id: str = "") -> Repl:
        """A new Repl that is made as this one was, with what was defined on it. It has none of its scripts' globals."""
        twin = self._sandbox.make_repl(*self._made_with, repl_id=repl_id)
        twin._runner.change(self._runner.additions)
        return twin

    def check(self, source: str) -> tuple[Finding, ...]:
        """Look at a script without running it: what cannot work, and what is likely a mistake.

        Globals that earlier runs of this Repl have set count as known. A worker then compiles the script, unless a run
        of the Repl is under way: a finding with the code "syntax" says why it does not compile.
        """
        if not isinstance(source, str):
            raise not_a_script(source)
        runner = self._runner
        findings = runner.check.findings(source, runner.additions)
        is_refused = any(finding.severity == "error" for finding in findings)
        if is_refused or self.paused or not self._turns.idle:
            return findings
        calls = runner.call_path(self.limits)
        with self._turns.taken():
            return (*findings, *engine_findings(source, runner.worker, calls, runner.additions))

    # The environment

    def define(self, name: str, value: Any, *, doc: str = "", counted: bool = True, cleaned: bool = True) -> None:
        """Add a global: a value, or a function that scripts call by name with positional arguments.

        `space.name` puts it into a table. The name must not be one that every script finds, such as `print`. `doc` is
        its entry in `docs`; without it, a function has its docstring there.
        Calls of a function are recorded; `counted` says whether they are spent from `max_tool_calls`, and `cleaned`
        whether the Sandbox's secrets are replaced in what it returns.
        """
        additions, language = self._runner.additions, self._settings.language
        self._runner.change(additions.define(language, name, value, doc, counted=counted, cleaned=cleaned))

    def document(self, name: str, text: str) -> None:
        """Add an entry that scripts read as docs[name]."""
        self._runner.change(self._runner.additions.document(name, text))

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
        worker = self._runner.worker
        while True:
            self._runner.acquire()
            try:
                return worker.read_globals()
            except WorkerError:
                if not worker.asleep:  # its host is gone: another worker has the globals
                    raise

    @property
    def additions(self) -> Additions:
        """What its scripts find beside the tools."""
        return self._runner.additions

    def find_medium(self, handle: Any) -> Media | None:
        """The medium behind a handle, or behind the address in one, that a tool returned to this Repl's scripts."""
        return self._runner.media.get(handle)

    @property
    def may_have_globals(self) -> bool:
        """False where the check of its scripts has shown that none of them sets a global: `globals` is empty."""
        return self._runner.check.has_globals

    def reset(self) -> None:
        """Start afresh: what scripts defined is gone; what was added with `define` stays."""
        with self._turns.taken():
            if self._history is not None:
                try:
                    self._history.reset()
                except JournalError:  # whether it was written is not known: the next run finds out
                    self._runner.let_go()
                    raise
            worker = self._runner.worker
            worker.drop()
            worker.has_state = worker.asleep = False
            self._runner.forget()

    def sleep(self, idle_for: float = 0.0) -> bool:
        """Give the worker up until the next run, which restores what scripts have defined from the journal.

        Nothing happens, and the result is False, where the Repl is in use or was used in the last `idle_for` seconds.
        """
        worker = self._runner.worker
        history = self.history  # raises where there is none
        if self.idle_worker is None:
            return False
        with self._turns.taken():
            if worker.link is None or worker.link.idle_seconds() < idle_for:
                return False
            if not history.let_go():
                worker.sleep()
        return True

    def compact(self) -> int:
        """Drop from the journal the runs without which its globals are the same, where that can be proved: how many.

        They stay in lists, and can no longer be replayed, patched or undone.
        """
        with self._turns.taken():
            return self.history.compact()

    @property
    def history(self) -> ReplHistory:
        """Its recorded runs; raises UsageError where its Sandbox has no journal."""
        if self._history is None:
            self._sandbox.journal  # noqa: B018 - raises
        assert self._history is not None
        return self._history

    @property
    def sandbox(self) -> Sandbox:
        """The Sandbox that it belongs to."""
        return self._sandbox

    @property
    def limits(self) -> Limits:
        """What one of its runs may spend, where the run says nothing else."""
        return self._runner.options.get("limits") or self._settings.limits

    @property
    def docs(self) -> Docs:
        """The documentation that its scripts read as `docs`."""
        return self._runner.call_path(self.limits).docs

    @property
    def paused(self) -> bool:
        """Whether a run that was begun with `start` waits for the answers to its calls."""
        return self._turns.end_pause is not None

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return not self._turns.idle

    @property
    def idle_worker(self) -> Link | None:
        """The worker that it holds while no run needs it."""
        turns = self._turns
        return None if turns.closed or turns.end_pause or not turns.idle else self._runner.worker.link

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id; None before the first run and with isolation="inline"."""
        return None if (link := self._runner.worker.link) is None else link.pid

    @property
    def worker_jail(self) -> tuple[Layer, ...]:
        """The layers of its worker's jail, as it reported them; none before the first run and inline."""
        return () if (link := self._runner.worker.link) is None else link.layers()

    @property
    def worker_native(self) -> bool:
        """Whether its worker runs scripts on the native loop; False before the first run and inline."""
        return (link := self._runner.worker.link) is not None and link.native

    def close(self) -> None:
        """Give the worker up. A run that is going on is stopped."""
        if not self._turns.closed:
            repls = self._sandbox._repls
            repls.stopping(self._turns)
            if not self._turns.close():
                repls.run_ended(self._turns)
            if self._history is not None:
                self._history.hurry()
            if getpid() == self._services.pid:
                self._runner.worker.close(idle=self._turns.idle)
                with suppress(MoonboxError):  # a lease ends by itself; a record may not be writable
                    if self._history is not None:
                        self._history.release()
                    if (end_pause := self._turns.end_pause) is not None:
                        end_pause()
            repls.known.discard(self)

    def __del__(self) -> None:
        """One that was dropped and not closed gives its worker up when another Repl is made, or needs it."""
        with suppress(AttributeError):  # it was not complete
            if not self._turns.closed:
                if self._runner.worker.link is not None:
                    self._sandbox._repls.dropped.append(self._runner.worker)
                if self._history is not None:
                    self._history.drop()

    def __enter__(self) -> Self:
        with self._turns.taken():
            self._runner.worker.acquire()
        return self

    async def __aenter__(self) -> Self:
        async with self._turns.ataken():
            await self._runner.worker.aacquire()
        return self
