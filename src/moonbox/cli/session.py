"""One Repl as the command line drives it: calls shown as they happen, approvals asked, Ctrl-C stops the script only."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from moonbox.cli.approval import Approver
from moonbox.cli.calls import CallLine
from moonbox.cli.screen import console, is_terminal

if TYPE_CHECKING:
    from types import TracebackType

    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Sink
    from moonbox.cli.settings import Settings
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox

__all__ = ["Session"]


class Session:
    """Opens the Sandbox that the settings describe, and one Repl in it."""

    def __init__(self, settings: Settings, language: str) -> None:
        self._closing = contextlib.ExitStack()
        self._line: CallLine | None = None
        self._approver: Approver | None = None
        if is_terminal(stderr=True):
            screen = console(stderr=True)
            self._line = CallLine(screen)
            self._approver = Approver.at_terminal(screen, self._line)
        if self._approver is not None:
            self._closing.callback(self._approver.close)
        try:
            self._latest = _Latest(settings.trail)
            self.sandbox: Sandbox = settings.open(
                language=language, approve=self._approver, on_call=self._line, audit=self._latest
            )
            self._closing.callback(self.sandbox.close)
            self.repl: Repl = self.sandbox.repl()
        except BaseException:
            self._closing.close()
            raise

    @property
    def latest(self) -> Run | None:
        """The run before."""
        return self._latest.run

    def run(self, source: str) -> Run:
        """Run a script. After Ctrl-C it is the record of what the script did until then, with the error `cancelled`."""
        before = self._latest.run
        if self._approver is not None:
            self._approver.begin()
        try:
            with self._line.watching() if self._line is not None else contextlib.nullcontext():
                return self.repl.run(source)
        except KeyboardInterrupt:
            if self._approver is not None:
                self._approver.withdraw()
            run = self._latest.run
            if run is None or run is before:  # it was not even begun
                raise
            return run

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()


class _Latest:
    """A sink that remembers the latest run and passes every run on to the trail, if there is one."""

    def __init__(self, trail: Any) -> None:
        self.run: Run | None = None
        self._trail: Sink | None = None
        if trail is not None:
            from moonbox.audit.sinks import open_sink

            self._trail = open_sink(trail)

    def write(self, run: Run) -> None:
        self.run = run
        if self._trail is not None:
            self._trail.write(run)

    def close(self) -> None:
        if self._trail is not None:
            self._trail.close()
