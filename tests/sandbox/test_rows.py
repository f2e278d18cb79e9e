"""Rows from tools: generators, asynchronous ones and data frames, up to the limits; numbers of other libraries."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, Tool
from tests.lazy import lazy
from tests.runs import error_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import mpmath
    import pandas
    import polars
else:
    mpmath, pandas, polars = lazy("mpmath"), lazy("pandas"), lazy("polars")

COLUMNS = {"name": ["a", "b"], "amount": [1.5, None], "day": [dt.datetime(2026, 1, 2), None]}
ROWS = [{"name": "a", "amount": 1.5, "day": "2026-01-02T00:00:00"}, {"name": "b", "amount": None, "day": None}]


def numbers(most: int) -> Iterator[int]:
    """Numbers from 1."""
    yield from range(1, most + 1)


async def later(most: int) -> AsyncIterator[dict[str, int]]:
    """Rows that come one by one."""
    for number in range(most):
        await asyncio.sleep(0)
        yield {"number": number}


def called(source: str, *tools: Any, **options: Any) -> Any:
    with Sandbox(list(tools), **options) as box:
        return box.run(source)


def test_a_generator_is_a_list() -> None:
    assert called("return tools.numbers(4)", numbers).value == [1, 2, 3, 4]
    assert Tool.from_function(numbers).returns == {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize("awaited", [False, True])
def test_an_asynchronous_generator_too(awaited: bool) -> None:
    with Sandbox([later]) as box:
        source = "return #tools.later(3), tools.later(1)[1].number"
        run = asyncio.run(box.arun(source)) if awaited else box.run(source)
    assert run.values == (3, 0)


@pytest.mark.parametrize("awaited", [False, True])
def test_one_without_an_end_is_closed_at_the_limit(awaited: bool) -> None:
    closed = []

    def endless() -> Iterator[int]:
        """Without an end."""
        try:
            while True:
                yield 1
        finally:
            closed.append("endless")

    async def aendless() -> AsyncIterator[int]:
        """Without an end."""
        try:
            while True:
                yield 1
        finally:
            closed.append("aendless")

    with Sandbox([endless, aendless], limits=Limits(max_array=100)) as box:
        for name in ("endless", "aendless"):
            source = f"return tools.{name}()"
            run = asyncio.run(box.arun(source)) if awaited else box.run(source)
            assert "an array of 101 elements; max_array is 100" in error_of(run).message
    assert closed == ["endless", "aendless"]


@pytest.mark.parametrize(
    "frame",
    [lambda: pandas.DataFrame(COLUMNS), lambda: polars.DataFrame(COLUMNS), lambda: polars.DataFrame(COLUMNS).lazy()],
    ids=["pandas", "polars", "polars-lazy"],
)
def test_a_data_frame_is_a_list_of_rows(frame: Callable[[], Any]) -> None:
    def table() -> Any:
        """A table."""
        return frame()

    assert called("return tools.table()", table).value == ROWS
    error = called("return tools.table()", table, limits=Limits(max_array=1)).error
    assert error is not None and "max_array is 1" in error.message


@pytest.mark.parametrize(
    "column", [lambda: pandas.Series([1, 2, None]), lambda: polars.Series([1.0, 2.0, None])], ids=["pandas", "polars"]
)
def test_a_series_is_a_list(column: Callable[[], Any]) -> None:
    assert called("return tools.column()", Tool.from_schema(name="column", call=lambda _: column())).value == [
        1,
        2,
        None,
    ]


def test_numbers_of_other_libraries_are_floats() -> None:
    tool = Tool.from_schema(name="root", call=lambda _: {"root": mpmath.mpf(2) ** 0.5})
    assert called("return tools.root().root", tool).value == pytest.approx(2**0.5)
