"""Tools that end as no tool should, and results that lie: they cost their call, never the run's time or the host."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import count
from typing import Any

import pytest

from moonbox import Limits, Sandbox, tool
from moonbox.errors import ConversionError
from moonbox.values import ValueLimits, pack

LIMITS = Limits(timeout=60, max_tool_calls=1000)
RAISED = [
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    BaseException,
    StopIteration,
    asyncio.CancelledError,
    MemoryError,
]


@tool
def fails(which: int) -> None:
    """Raise what is not an Exception."""
    raise RAISED[which]("no")


@tool
async def afails(which: int) -> None:
    """The same, in the event loop of the Sandbox."""
    raise RAISED[which]("no")


@tool
async def fine(n: int) -> int:
    """An async tool, for which the same event loop is used."""
    return n


@tool
def echo(n: int) -> int:
    """Give it back."""
    return n


CAUGHT = "local ok, e = pcall({}, {{which = {}}}) return ok, tools.fine{{n = 1}}"


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox([fails, afails, fine, echo], limits=LIMITS) as box:
        yield box


@pytest.mark.parametrize("which", range(len(RAISED)), ids=[kind.__name__ for kind in RAISED])
def test_whatever_a_tool_raises_fails_its_call_alone(box: Sandbox, which: int) -> None:
    for name in ("tools.fails", "tools.afails"):
        run = box.run(CAUGHT.format(name, which))
        assert (run.error, run.values) == (None, (False, 1))
        assert [call.status for call in run.calls] == ["error", "ok"]
        direct = box.call(name.removeprefix("tools."), {"which": which})
        assert direct.error is not None
        assert box.run("return tools.fine{n = 2}").value == 2  # the event loop goes on
    awaited = asyncio.run(box.arun(CAUGHT.format("tools.fails", which)))
    assert (awaited.error, awaited.values) == (None, (False, 1))


def test_hundreds_of_calls_at_once_and_calls_that_end_after_their_run() -> None:
    free = threading.Event()

    @tool
    def slow(n: int) -> int:
        """Wait for the test."""
        free.wait(60)
        return n

    each = "local f = {{}} for i = 1, {} do f[i] = function() return tools.{}{{n = i}} end end return #parallel(f)"
    with Sandbox([slow, echo], limits=Limits(timeout=60, max_tool_calls=1000)) as box, box.repl() as repl:
        assert repl.run(each.format(300, "echo")).value == 300
        late = repl.run(each.format(40, "slow"), limits=Limits(timeout=0.3))
        assert late.error is not None
        assert late.error.limit == "time"
        free.set()  # their results come while the next run is under way
        run = repl.run(each.format(300, "echo"))
        assert (run.value, {call.status for call in run.calls}, {call.tool for call in run.calls}) == (
            300,
            {"ok"},
            {"echo"},
        )


# Results


class _Items(Sequence[int]):
    """Says that it has three elements, and never ends."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: Any) -> Any:
        return place

    def __iter__(self) -> Iterator[int]:
        return _endless()


class _Fields(Mapping[int, int]):
    __len__ = _Items.__len__
    __getitem__ = _Items.__getitem__
    __iter__ = _Items.__iter__


class _Members(Set[int]):
    __len__ = _Items.__len__
    __iter__ = _Items.__iter__

    def __contains__(self, item: object) -> bool:
        return True


def _endless() -> Iterator[int]:
    for number in count():
        assert number < 100, "it was read past its end"
        yield number


class _Array:
    """As large as numpy says."""

    size = 10**12

    def tolist(self) -> list[int]:
        raise AssertionError("it was copied before it was counted")

    __float__ = tolist


def _shared(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value, value]
    return value


def _cycle() -> list[Any]:
    value: list[Any] = []
    value.extend([value, value])
    return value


SMALL = ValueLimits(max_array=1000, max_string=1000, max_depth=20, max_elements=5000)


@pytest.mark.parametrize(
    ("given", "value"), [(_Items(), [0, 1, 2]), (_Fields(), {0: 0, 1: 1, 2: 2}), (_Members(), [0, 1, 2])]
)
def test_a_result_that_never_ends_is_read_as_far_as_its_length(given: Any, value: Any) -> None:
    assert pack(given, SMALL).value == value


@pytest.mark.parametrize(
    "given",
    [
        _shared(60),
        _cycle(),
        range(10**12),
        _Array(),
        {"k" * 2000: 1},
        {"a": [{"k" * 2000: 1}]},
        "\ud800" * 1000,
        10**5000,
        {10**30: 1},
    ],
    ids=["shared", "cycle", "range", "array", "key", "inner key", "surrogates", "digits", "integer key"],
)
def test_a_result_that_is_too_large_is_refused_before_it_is_copied(given: Any) -> None:
    with pytest.raises(ConversionError):
        pack(given, SMALL)


class _Class:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise GeneratorExit("who asks")


class _Length(_Items):
    def __len__(self) -> int:
        return -1


@pytest.mark.parametrize("kind", [_Class, _Length])
def test_a_result_that_raises_when_it_is_looked_at_fails_its_call(kind: Any) -> None:
    @tool
    def hostile() -> Any:
        """Give it."""
        return kind()

    with Sandbox([hostile, echo], limits=LIMITS) as box:
        assert box.run("return pcall(tools.hostile), tools.echo{n = 1}").values == (False, 1)
