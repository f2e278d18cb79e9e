"""Attacks on the host's time and memory: what a function does grows with what it is given, and stops at a budget.

Each case is small on the wire and was large in the host. What is counted is what the function makes: characters,
fields, copies; never seconds.
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from moonbox.errors import ArgumentError, ToolError
from moonbox.scripts.hostapi.functions import HostLimits
from tests.hostapi.conftest import refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from moonbox.scripts.hostapi.api import HostApi

    MakeApi = Callable[..., HostApi]


def peak(call: Callable[[], Any]) -> int:
    """The most memory, in bytes, that a call takes at one time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def short_rows(count: int) -> str:
    return ",".join(f"c{number}" for number in range(count)) + "\n" + "x\n" * count


def test_short_rows_cost_what_they_hold(make_api: MakeApi) -> None:
    """A wide header and many short rows: 39 kB took 517 MiB when each row was filled up to the header's width."""
    api = make_api()
    rows = api.call("csv.parse", [short_rows(5_000)])
    assert len(rows) == 5_000
    assert sum(map(len, rows)) == 5_000
    texts = [short_rows(1_000), short_rows(4_000)]
    small, large = (peak(partial(api.call, "csv.parse", [text])) for text in texts)
    assert large < small * 4 * 1.5, "four times the text takes about four times the memory"


def test_long_column_names_are_counted_for_each_row(make_api: MakeApi) -> None:
    """The names are shared in the host, but each row repeats them on its way to the script."""
    text = "n" * 100_000 + "\n" + "x\n" * 100_000
    assert refused(make_api(), "csv.parse", text).code == "too_large"
    assert len(make_api().call("csv.parse", [text, {"header": False}])) == 100_001
    limits = HostLimits(max_parsed=30)
    assert len(make_api(limits=limits).call("csv.parse", ["name\n" + "x\n" * 6])) == 6
    assert str(refused(make_api(limits=limits), "csv.parse", "name\n" + "x\n" * 7)) == (
        "the rows have more than 30 characters, column names included; use header = false"
    )


def test_a_duplicate_column_is_found_in_one_pass(make_api: MakeApi) -> None:
    """140 kB of names took 5.8 s when each was counted among all the others."""
    names = [f"column{number}" for number in range(20_000)]
    error = refused(make_api(), "csv.parse", ",".join([*names, names[-1]]))
    assert str(error) == "duplicate column 'column19999'; use header = false"
    long = "n" * 50_000
    assert str(refused(make_api(), "csv.parse", f"{long},{long}")) == (
        f"duplicate column '{'n' * 60}…'; use header = false"
    )


def test_one_large_value_in_many_columns_is_counted_before_it_is_copied(make_api: MakeApi) -> None:
    """Binary strings were decoded anew for each of the columns that name them."""
    api = make_api(limits=HostLimits(max_text=1_000_000))
    rows, options = [{"a": b"\xff" * 100_000}], {"columns": ["a"] * 10_000}
    used = peak(lambda: refused(api, "csv.encode", rows, options))
    assert used < 20_000_000
    assert str(refused(api, "csv.encode", rows, options)) == "at most 1,000,000 characters are written"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("url.encode", [{"n" * 100_000: list(range(10_000))}]),
        ("url.build", [{"host": "a", "params": {"n" * 100_000: list(range(10_000))}}]),
        ("http.get", ["http://127.0.0.1:9/", {"params": {"n" * 10_000: list(range(10_000))}}]),
        ("http.post", ["http://127.0.0.1:9/", {"form": {"n" * 100_000: list(range(10_000))}}]),
    ],
    ids=["url.encode", "url.build", "params", "form"],
)
def test_a_long_name_with_many_values_is_counted_for_each(make_api: MakeApi, name: str, args: list[Any]) -> None:
    """`{[long name] = {1, 2, …}}` became long name=1&long name=2&…: a gigabyte from 150 kB."""
    api = make_api({"http": ["127.0.0.1:9"]})
    used = peak(lambda: refused(api, name, *args))
    assert refused(api, name, *args).code == "too_large"
    assert used < 40_000_000


@pytest.mark.parametrize(
    "url",
    [
        "http://a" + "\u0327\u0301" * 500_000,
        "http://a/" + "?" * 1_000_000,
        "http://" + "[" * 1_000_000,
        "http://" + ":" * 1_000_000,
        "http://" + "@" * 1_000_000,
        "http://" + "a@" * 500_000 + "b",
        ":" * 1_000_000,
        "#" * 1_000_000,
        "a" * 1_000_000 + "?" + "%" * 1_000_000,
        "?" + "a=b;" * 200_000,
    ],
    ids=range(10),
)
def test_any_url_is_parsed_in_one_pass_and_not_kept(make_api: MakeApi, url: str) -> None:
    """Python's own reader takes hours for the first of them, and keeps the last 128 of all."""
    before = urlsplit.cache_info()  # type: ignore[attr-defined]  # typeshed does not know the cache
    try:
        make_api().call("url.parse", [url])
    except ToolError as error:
        assert len(str(error)) < 500
    assert urlsplit.cache_info() == before  # type: ignore[attr-defined]


def test_megabyte_names_are_not_compared(make_api: MakeApi) -> None:
    """Similar names are looked for only where a person could have meant one; the messages stay short."""
    name = "x" * 1_000_000
    api = make_api({"env": ["A"], "http": ["127.0.0.1:9"], "read": ["."]})
    for function, args in (
        ("base64.encode", ["x", {name: 1}]),
        ("env.get", [name]),
        ("http.request", [name, "http://127.0.0.1:9/"]),
        ("http.get", ["http://127.0.0.1:9/", {"params": {name: {}}}]),
        ("http.get", ["http://127.0.0.1:9/", {"headers": {name: "1"}}]),
        ("http.get", [name]),
        ("fs.read", [name]),
        ("time.parse", [name]),
        ("time.parse", [name, "%Y"]),
        ("url.encode", [{name: {}}]),
        ("regex.match", ["(" + "x" * 9_000, "x"]),
        (name, []),
    ):
        assert len(str(refused(api, function, *args))) < 3_000, function


def test_whole_floats_past_64_bits_are_no_integers(make_api: MakeApi, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    api = make_api({"read": ["."]})
    with pytest.raises(ArgumentError, match=r"options\.offset must be an integer, not float$"):
        api.call("fs.read", ["a", {"offset": 1e300}])
    assert api.call("fs.read", ["a", {"offset": 2**63 - 1, "length": 5}]) == ""


def test_many_handles_of_a_large_secret_stop_at_the_size_of_a_request(make_api: MakeApi) -> None:
    """A handle is 50 bytes, and the secret that takes its place may have thousands."""
    grants = {"http": ["127.0.0.1:9"], "secrets": {"PEM": {"hosts": ["127.0.0.1:9"], "places": ["body", "header"]}}}
    limits = HostLimits(max_request=100_000, max_headers=10_000)
    api = make_api(grants, environ={"PEM": "k" * 10_000}, limits=limits)
    handle = api.call("secret", ["PEM"])
    for options in ({"json": [handle] * 10_000}, {"headers": {f"h{n}": [handle] * 100 for n in range(100)}}):
        used = peak(partial(refused, api, "http.post", "http://127.0.0.1:9/", options))
        assert used < 3_000_000
        error = refused(api, "http.post", "http://127.0.0.1:9/", options)
        assert (str(error), error.code) == ("the request is larger than 110,000 bytes", "too_large")


def test_asking_for_the_same_secret_again_adds_nothing(make_api: MakeApi) -> None:
    api = make_api({"secrets": ["KEY"]}, environ={"KEY": "a secret of some length"})
    first = api.call("secret", ["KEY"])
    used = peak(lambda: [api.call("secret", ["KEY"]) for _ in range(1_000)])
    assert api.call("secret", ["KEY"]) == first
    assert used < 1_000_000
