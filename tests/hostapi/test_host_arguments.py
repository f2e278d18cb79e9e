"""Arguments of host functions: each wrong one is named, with what is right instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.scripts.hostapi import HostApi


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("http.get", [3], "http.get(url, options): url must be a string, not integer"),
        ("http.get", [], "http.get(url, options): url is missing"),
        ("http.get", [None], "http.get(url, options): url is missing"),
        ("http.get", [b"\xff"], "http.get(url, options): url must be text, but this string is not UTF-8"),
        ("http.get", ["u", 1, 2], "http.get(url, options): takes at most 2 arguments, not 3"),
        ("http.get", ["u", {"header": {}}], "http.get(url, options): unknown option 'header'; did you mean 'headers'?"),
        ("http.get", ["u", {"timeout": "5"}], "http.get(url, options): options.timeout must be a number, not string"),
        ("http.get", ["u", {"timeout": 500}], "http.get(url, options): options.timeout must be at most 120, not 500"),
        (
            "http.get",
            ["u", {"timeout": float("nan")}],
            "http.get(url, options): options.timeout must be a number, not nan",
        ),
        (
            "http.get",
            ["u", {"redirects": 1.5}],
            "http.get(url, options): options.redirects must be an integer, not float",
        ),
        (
            "http.get",
            ["u", {"redirects": True}],
            "http.get(url, options): options.redirects must be an integer, not boolean",
        ),
        ("http.get", ["u", {"headers": "x"}], "http.get(url, options): options.headers must be a table, not string"),
        ("http.get", ["u", [1]], "http.get(url, options): options must be a table, not array"),
        (
            "http.request",
            ["CONNECT", "u"],
            (
                'http.request(method, url, options): method must be one of "GET", "HEAD", "POST", "PUT", "PATCH", '
                '"DELETE", "OPTIONS", not "CONNECT"'
            ),
        ),
        ("crypto.uuid", [1], "crypto.uuid(): takes no arguments, not 1"),
        ("crypto.random_bytes", [1e9], "crypto.random_bytes(size): size must be at most 65536, not 1000000000"),
        ("crypto.random_bytes", [-1], "crypto.random_bytes(size): size must be at least 0, not -1"),
        (
            "base64.encode",
            ["\ud800"],
            "base64.encode(data, options): data contains half of a surrogate pair, which is not a character",
        ),
        (
            "base64.encode",
            ["x", {7: 1}],
            "base64.encode(data, options): unknown option '7'; known options: urlsafe, padding",
        ),
        ("url.build", [{}], "url.build(parts): parts.host is missing"),
        ("log.info", [{}], "log.info(message, fields): message must be a string, not table"),
    ],
)
def test_wrong_arguments_are_named(make_api: Callable[..., HostApi], name: str, args: list[Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        make_api({"http": ["api.example.com"]}).call(name, args)
    assert str(caught.value) == message
    assert caught.value.code == "invalid"


def test_an_empty_table_may_arrive_as_an_array(make_api: Callable[..., HostApi]) -> None:
    assert make_api().call("base64.encode", ["x", []]) == "eA=="
    assert make_api().call("csv.encode", [{}]) == ""


def test_a_whole_float_is_an_integer(make_api: Callable[..., HostApi]) -> None:
    assert len(make_api().call("crypto.random_bytes", [8.0])) == 8
