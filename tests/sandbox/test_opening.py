"""The opening of a run: one that its first frame ends needs no Execution, all else is left to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox
from moonbox.errors import WorkerError
from moonbox.sandbox.opening import Opening
from moonbox.worker import protocol
from moonbox.worker.link import Gone, Unread

if TYPE_CHECKING:
    from moonbox.sandbox.calls import CallPath

SPENT = protocol.SPENT.pack(-1, 10, 0.5, 3)


class ScriptedLink:
    """Stands for a worker that says one thing."""

    native = True

    def __init__(self, answer: tuple[int, bytes] | BaseException | None, *, gone: bool = False) -> None:
        self.answer, self.gone = answer, gone
        self.asked: list[Any] = []

    def begin_use(self) -> None:
        if self.gone:
            raise Gone

    def end_use(self) -> None:
        pass

    def exchange(self, *asked: Any) -> tuple[int, bytes] | None:
        self.asked.append(asked)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def path() -> CallPath:
    from tests.sandbox.test_execution import make

    return make().calls


def opened(path: CallPath) -> Opening:
    opening = Opening(path, "the source", "id", "repl", 3, 7, True)
    opening.data = b"frames"
    return opening


def test_the_first_frame_ends_it(path: CallPath) -> None:
    opening = opened(path)
    link: Any = ScriptedLink((protocol.VALUE, SPENT + b"[1,null]"))
    run = opening.run(link)
    assert run is not None
    assert (run.id, run.source, run.repl, run.number, run.seed, run.state_lost) == (
        "id",
        "the source",
        "repl",
        3,
        7,
        True,
    )
    assert (run.values, run.error, run.calls, run.output_cut, run.limits) == ((1, None), None, (), 3, path.limits)
    usage = run.usage
    assert (usage.cpu, usage.operations, usage.peak_memory, usage.calls, usage.native) == (0.5, None, 10, 0, True)
    assert (usage.bytes_in, usage.bytes_out) == (6, protocol.HEADER.size + len(SPENT) + 8)
    assert (opening.sent, opening.over, opening.first) == (True, True, None)
    timeout = path.limits.timeout
    assert timeout is not None
    assert link.asked == [(b"frames", opening.began + timeout, opening.began + timeout + 1.0)]


@pytest.mark.parametrize(("values", "name"), [(b"[1]", "_3"), (b"[]", "")])
def test_a_value_that_stays_in_the_worker_has_a_name(path: CallPath, values: bytes, name: str) -> None:
    opening = opened(path)
    link: Any = ScriptedLink((protocol.VALUE_KEPT, SPENT + values))
    run = opening.run(link)
    assert run is not None
    assert (run.kept, run.kept_output, opening.over) == (name, "", True)


@pytest.mark.parametrize(
    "answer",
    [
        (protocol.OUTPUT, b"hello\n"),
        (protocol.KEPT, b"\1"),
        (protocol.CALLS, b'[[1,"tools.add",[]]]'),
        (protocol.DONE, b"{}"),
        None,
        Unread(),
        KeyboardInterrupt(),
        MemoryError(),
    ],
    ids=["output", "kept", "calls", "failed", "deadline", "unread", "interrupt", "memory"],
)
def test_all_else_is_left_to_an_execution(path: CallPath, answer: Any) -> None:
    opening = opened(path)
    link: Any = ScriptedLink(answer)
    assert opening.run(link) is None
    assert (opening.sent, opening.over, opening.first) == (True, False, answer)


@pytest.mark.parametrize("payload", [b"", SPENT, SPENT + b"1", SPENT + b"[1", SPENT + b"[1e999]", SPENT + b"[NaN]"])
def test_a_malformed_value_is_the_workers_fault(path: CallPath, payload: bytes) -> None:
    opening = opened(path)
    link: Any = ScriptedLink((protocol.VALUE, payload))
    assert opening.run(link) is None
    assert isinstance(opening.first, WorkerError)
    assert not opening.over


def test_nothing_was_sent_to_a_worker_that_is_gone(path: CallPath) -> None:
    opening = opened(path)
    link: Any = ScriptedLink(None, gone=True)
    assert opening.run(link) is None
    assert (opening.sent, type(opening.first)) == (False, Gone)


def test_what_the_budget_allows_is_counted_for_each_run_anew() -> None:
    limits = Limits(max_array=100)
    with Sandbox(limits=limits) as box, box.repl() as repl:
        for _ in range(40):  # 1,000 elements each; one run may have 28,000
            assert repl.run("local t = {} for i = 1, 90 do t[i] = {1, 2, 3, 4, 5, 6, 7, 8, 9, i} end return t").ok
