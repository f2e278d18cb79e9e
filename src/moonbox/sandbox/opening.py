"""The opening of a run: what is known of it before its worker has said anything.

Most runs end with the first frame that their worker sends. Those need nothing of an Execution but its record; whatever
else happens is an Execution's to deal with, which is made then and goes on from there.
"""

from __future__ import annotations

import math
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from moonbox.frozen import NATIVE
from moonbox.sandbox.execution import GRACE, Execution
from moonbox.sandbox.intents import Intents
from moonbox.sandbox.messages import LARGEST_COUNT, value_of
from moonbox.sandbox.record import make_run, make_usage
from moonbox.worker.protocol import ENDS_WELL, HEADER, VALUE_KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moonbox.audit.records import Run
    from moonbox.errors import ScriptError
    from moonbox.findings import Finding
    from moonbox.languages.registry import EngineError
    from moonbox.sandbox.calls import CallPath
    from moonbox.sandbox.setup import Setup
    from moonbox.worker.link import Link

__all__ = ["Opening", "ShortWaits"]

_LONGEST_WAIT = 0.0001  # seconds that an event loop may stand still
_BREATH = 0.001  # seconds after which others have their turn
_SHORT = 1 << 15  # bytes that a socket takes at once, even one whose worker reads nothing
_WITHOUT_WAIT = 8  # runs


class Opening:
    """One run at its beginning."""

    __slots__ = (
        "began", "calls", "data", "first", "id", "lost_before", "notes", "number", "over", "refusal",
        "repl_id", "seed", "sent", "source", "started",
    )  # fmt: skip

    def __init__(
        self,
        calls: CallPath,
        source: str,
        run_id: str,
        repl_id: str = "",
        number: int = 1,
        seed: int = 0,
        lost_before: bool = False,
    ) -> None:
        self.calls = calls
        self.source = source
        self.id = run_id
        self.repl_id = repl_id
        self.number = number
        self.seed = seed
        self.lost_before = lost_before
        self.notes: tuple[Finding, ...] = ()
        """What a look at the script showed."""
        self.refusal: EngineError | ScriptError | None = None
        """Why the script cannot be run."""
        self.data = b""
        """The frames that start it."""
        self.sent = self.over = False
        self.first: tuple[int, bytes] | BaseException | None = None
        """What came first where it did not end the run: a frame, or what went wrong."""
        self.started = time()
        self.began = monotonic()

    @staticmethod
    def of(
        calls: CallPath, source: str, run_id: str, repl_id: str, number: int, seed: int, lost_before: bool
    ) -> Opening:
        """The same, made quickly where the native parts are in use."""
        if _make is None:
            return Opening(calls, source, run_id, repl_id, number, seed, lost_before)
        # By position, in the order of the slots.
        return _make(  # type: ignore[no-any-return]
            monotonic(), calls, b"", None, run_id, lost_before, (), number, False, None, repl_id, seed, False, source,
            time(),
        )  # fmt: skip

    def run(self, link: Link, patience: float | None = None) -> Run | None:
        """The record, if the worker's first frame ends the run well; `first` has what came otherwise.

        With `patience`, only if that comes within so many seconds.
        """
        calls = self.calls
        limits = calls.limits
        deadline = None if limits.timeout is None else self.began + limits.timeout
        give_up = None if deadline is None else deadline + GRACE
        if patience is not None:
            deadline = give_up = min(monotonic() + patience, math.inf if deadline is None else deadline)
        try:
            link.begin_use()
            try:
                self.sent = True
                frame = link.exchange(self.data, deadline, give_up)
                if frame is None or frame[0] not in ENDS_WELL:
                    self.first = frame
                    return None
                kind, payload = frame
                decoder = calls.bounds.first_decoder
                ended = decoder.lone_end(payload, LARGEST_COUNT) or value_of(payload, decoder.decode_first)
                values, operations, memory, cpu, cut = ended
                self.over = True
            finally:
                link.end_use()
        except BaseException as problem:  # noqa: BLE001 - the driver raises it again, and knows what to do about it
            self.first = problem
            return None
        media = calls.media
        kept = calls.language.kept_name(self.number) if kind == VALUE_KEPT and self.repl_id and values else ""
        return make_run(
            self.id,
            self.source,
            calls.language.name,
            tuple(values),
            "",
            cut,
            (),
            make_usage(
                monotonic() - self.began,
                cpu,
                operations,
                memory,
                0,
                len(self.data),
                len(payload) + HEADER.size,
                link.native,
            ),
            None,
            self.started,
            self.repl_id,
            self.number,
            self.seed,
            (),
            "",
            "",
            self.lost_before,
            kept,
            "",
            self.notes,
            media.found_in(values) if media.kept else (),
            limits,
        )

    def execution(
        self,
        link: Link,
        setup: Setup,
        sources: Iterable[tuple[int, str]],
        on_output: Callable[[str], None] | None,
        before_write: Callable[[Run], Run | None] | None,
    ) -> Execution:
        """The run from here on; it is over where its script was refused."""
        expected = self.calls.are_expected(self.source)
        output = on_output or setup.on_output
        watched = output is not None or setup.on_call is not None or setup.telemetry is not None
        if not watched and setup.sink is None and self.refusal is None:
            return Execution.of(self, link, sources, expected)
        execution = Execution(
            self,
            language=self.calls.language.name,
            sources=sources,
            on_call=setup.on_call,
            telemetry=setup.telemetry,
            intents=None if setup.sink is None else Intents.to(setup.sink, setup.redactor, before_write),
            on_output=output,
        )
        execution.clock.worker = link
        if self.refusal is not None:
            execution.refuse(self.refusal)
        else:
            execution.calls_expected = expected
            execution.begin(self.data, native=link.native, sent=self.sent)
        return execution


class ShortWaits:
    """Waits for runs of one Repl that end so soon that an event loop does better to stand still for them."""

    __slots__ = ("_breathe_at", "_next")

    def __init__(self) -> None:
        self._breathe_at = 0.0
        self._next = 0

    async def breathe(self) -> None:
        """Before a run: a task whose runs never suspend would keep all others from theirs."""
        if monotonic() >= self._breathe_at:
            from asyncio import sleep

            await sleep(0)
            self._breathe_at = monotonic() + _BREATH

    def run(self, opening: Opening, link: Link) -> Run | None:
        """The record, if the run ends in time; after one that did not, the next ones are not waited for.

        Without the native parts a wait cannot be that short.
        """
        if not link.native or opening.number < self._next or len(opening.data) > _SHORT:
            return None
        run = opening.run(link, _LONGEST_WAIT)
        if run is None:
            self._next = opening.number + _WITHOUT_WAIT
        return run


_make: Any = None if NATIVE is None else NATIVE.maker(Opening, Opening.__slots__, Opening)
