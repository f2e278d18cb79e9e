"""What calls.txt cannot say of the functions that compute: logs, waiting, entropy, and the bounds of regex."""

from __future__ import annotations

import itertools
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.scripts.hostapi.functions import HostLimits
from tests.hostapi.conftest import refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.scripts.hostapi.api import HostApi

    MakeApi = Callable[..., HostApi]


def fails(api: HostApi, name: str, *args: Any) -> str:
    return str(refused(api, name, *args))


def test_random_values_differ(make_api: MakeApi) -> None:
    api = make_api()
    assert api.call("crypto.uuid") != api.call("crypto.uuid")


def test_logs_are_bounded_lines_of_text(make_api: MakeApi, caplog: pytest.LogCaptureFixture) -> None:
    api = make_api(limits=HostLimits(max_log_records=4, max_log_message=40))
    with caplog.at_level(logging.DEBUG, "moonbox.script.weather"):
        api.call("log.debug", ["100%s %(name)s"])
        api.call("log.error", ["two\nERROR forged \x1b[31m\u2028line", {"n": 1}])
        for _ in range(5):
            api.call("log.info", ["x" * 100, {"k": "y" * 100}])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("DEBUG", "100%s %(name)s"),
        ("ERROR", 'two\\nERROR forged \\x1b[31m\\u2028line {"n": 1}'),
        *[("INFO", f'{"x" * 40}… {{"k": "{"y" * 33}…')] * 2,
    ]
    assert {record.name for record in caplog.records} == {"moonbox.script.weather"}


def test_sleep_ends_when_the_api_is_closed(make_api: MakeApi) -> None:
    api = make_api()
    messages: list[str] = []
    thread = threading.Thread(target=lambda: messages.append(fails(api, "sleep", 30)))
    thread.start()
    api.close()
    thread.join(60)
    assert messages == ["the host is closing"]


def test_half_of_a_surrogate_pair_is_no_character(make_api: MakeApi) -> None:
    wrong = "base64.encode(data, options): data contains half of a surrogate pair, which is not a character"
    assert fails(make_api(), "base64.encode", "\ud800") == wrong
    assert fails(make_api(), "sleep", float("nan")) == "sleep(seconds): seconds must be a number, not nan"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("csv.parse", ["x" * 11]),
        ("csv.encode", [[["x" * 11]]]),
        ("url.encode", ["x" * 11]),
        ("url.decode", ["x" * 11]),
        ("url.parse", ["x" * 11]),
        ("url.build", [{"host": "x" * 11}]),
        ("base64.encode", ["x" * 11]),
        ("base64.decode", ["x" * 11]),
        ("crypto.sha256", ["x" * 11]),
        ("crypto.hmac_sha256", ["x" * 11, ""]),
        ("crypto.hmac_sha256", ["", "x" * 11]),
        ("regex.match", ["a", "x" * 11]),
    ],
)
def test_the_size_of_what_is_computed_with_is_bounded(make_api: MakeApi, name: str, args: list[Any]) -> None:
    assert "at most 10 " in fails(make_api(limits=HostLimits(max_text=10)), name, *args)


@pytest.mark.parametrize("name", ["regex.find_all", "regex.replace", "regex.split"])
def test_many_searches_over_the_whole_text_end_with_the_clock(make_api: MakeApi, name: str) -> None:
    """Each match makes the engine look through all the rest: quadratic in any engine."""
    clock = itertools.count()  # each look at it takes a second
    api = make_api(limits=HostLimits(regex_seconds=20, max_matches=1_000_000), timer=lambda: next(clock))
    args = [".*[^A]|[A]", "A" * 20_000, *(["x"] if name == "regex.replace" else [])]
    assert fails(api, name, *args) == "the search took more than 20 s of processor time"
    assert next(clock) == 22, "it stopped at the first match after the time was up"


def test_groups_of_matches_are_counted_before_they_are_copied(make_api: MakeApi) -> None:
    for name in ("regex.match", "regex.find_all"):
        api = make_api(limits=HostLimits(max_text=100_000))
        assert fails(api, name, "(" * 20 + ".*" + ")" * 20, "a" * 10_000) == "the matches have more than 100,000 bytes"
    api = make_api(timer=lambda: 0.0)
    assert "the matches have more than" in fails(api, "regex.find_all", "(x)?" * 60 + "a", "a" * 9_000)


def test_patterns_do_not_pile_up(make_api: MakeApi) -> None:
    import re2

    api = make_api()
    for number in range(100):
        api.call("regex.match", [f"a{number}", "a"])
    assert re2._Regexp._make.cache_info().currsize == 0
