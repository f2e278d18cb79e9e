"""Runs in the background: a handle for a run that goes on while its caller does something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from moonbox.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future

    from moonbox.audit.records import Run
    from moonbox.durable.watch import Sleeping
    from moonbox.runs.options import RunOptions
    from moonbox.runs.record import ScriptProgress
    from moonbox.sandbox.repl import Repl


class Background:
    """A run in the background. `Repl.submit` gives it; `await` it, or `wait` for it, to have its Run."""

    def __init__(self, repl: Repl, source: str, run_id: str, options: RunOptions) -> None:
        self.run_id = run_id
        self.progress: ScriptProgress | None = None
        """How far the script said that it is, with `progress(done, total, text)`."""
        self._repl = ref(repl)  # a handle that is kept for its Run keeps no worker
        self._reported = options.get("on_progress")
        given: RunOptions = {**options, "on_progress": self._advance, "run_id": run_id}
        self._future: Future[Run] = repl.in_background(lambda: repl.arun(source, **given))

    def __repr__(self) -> str:
        return f"<Background {self.run_id[:8]}: {self.status()}>"

    def status(self) -> str:
        """`running`, `sleeping`, `ok`, `cancelled`, or the kind of the error that it ended with."""
        if not self._future.done():
            return "running" if self._sleep() is None else "sleeping"
        if self._future.cancelled():
            return "cancelled"
        problem = self._future.exception()
        if problem is not None:
            return "failed"
        error = self._future.result().error
        return "ok" if error is None else error.kind

    def wait(self, timeout: float | None = None) -> Run:
        """The finished Run. Raises TimeoutError where it is not finished in so many seconds; it then goes on."""
        from concurrent.futures import CancelledError  # slow to load: only where it is there already

        try:
            return self._future.result(timeout)
        except CancelledError:
            raise ClosedError("the run was cancelled, or its Sandbox closed, before it had ended") from None
        except TimeoutError:
            if self._future.done():
                raise
            raise TimeoutError(f"the run has not ended within {timeout:g} seconds; it goes on") from None

    def cancel(self) -> None:
        """Stop the script. The Repl stays usable."""
        if (sleep := self._sleep()) is not None:
            sleep.cancelled = True  # the Sandbox may be closed before its event loop hears of it
        self._future.cancel()

    def _sleep(self) -> Sleeping | None:
        """The wait of the run, if it sleeps."""
        repl = self._repl()
        sleep = None if repl is None or repl._history is None else repl._history.sleeping
        return sleep if sleep is not None and sleep.record.id == self.run_id else None

    def __await__(self) -> Generator[Any, None, Run]:
        import asyncio

        return asyncio.shield(asyncio.wrap_future(self._future)).__await__()

    def _advance(self, progress: ScriptProgress) -> None:
        self.progress = progress
        if self._reported is not None:
            self._reported(progress)
