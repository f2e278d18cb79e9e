"""Host functions that compute: time, url, csv, base64, crypto, log, sleep, env."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import Denied, ToolError
from moonbox.scripts.hostapi import HostApi, HostLimits, LogRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeApi = Callable[..., HostApi]


def fails(api: HostApi, name: str, *args: Any) -> str:
    with pytest.raises(ToolError) as caught:
        api.call(name, args)
    return str(caught.value)


def test_time_now_is_the_clock_it_was_given(make_api: MakeApi) -> None:
    assert make_api(clock=lambda: 1234.5).call("time.now") == 1234.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01", 0),
        ("2026-01-31T12:00:00+02:00", 1769853600),
        ("2026-01-31T10:00:00", 1769853600),
        ("20260131T100000Z", 1769853600),
        ("2026-01-31 10:00:00.25Z", 1769853600.25),
        ("1969-12-31T23:59:59Z", -1),
        ("2026-W05-6T10:00:00Z", 1769853600),
    ],
)
def test_time_parse_reads_iso_8601(make_api: MakeApi, text: str, seconds: float) -> None:
    assert make_api().call("time.parse", [text]) == seconds


@pytest.mark.parametrize(
    ("text", "form", "seconds"),
    [
        ("Sun, 09 Sep 2001 01:46:40 GMT", "%a, %d %b %Y %H:%M:%S GMT", 1000000000),
        ("9/9/01 1:46:40 am", "%m/%d/%y %I:%M:%S %p", 1000000000),
        ("12 PM", "%I %p", 43200),
        ("2001-252", "%Y-%j", 999993600),
        ("september 9 2001 +0230", "%B %d %Y %z", 999984600),
        ("100% 1999", "100%% %Y", 915148800),
        ("00:00:00.5", "%H:%M:%S.%f", 0.5),
    ],
)
def test_time_parse_reads_formats(make_api: MakeApi, text: str, form: str, seconds: float) -> None:
    assert make_api().call("time.parse", [text, form]) == seconds


def test_time_format(make_api: MakeApi) -> None:
    api = make_api()
    assert api.call("time.format", [0]) == "1970-01-01T00:00:00Z"
    assert api.call("time.format", [1.5]) == "1970-01-01T00:00:01.500000Z"
    form = "%A %a %B %b %d %j %y %Y %H %I %p %M %S %f %z %%"
    expected = "Sunday Sun September Sep 09 252 01 2001 01 01 AM 46 40 000000 +0000 %"
    assert api.call("time.format", [1000000000, form]) == expected


def test_time_failures(make_api: MakeApi) -> None:
    api = make_api()
    known = "%Y %m %d %H %I %M %S %f %j %y %p %z %b %B %a %A %%"
    assert fails(api, "time.parse", "soon") == (
        "time.parse(text, format): invalid time 'soon'; expected ISO 8601, such as 2026-01-31T12:00:00Z"
    )
    assert fails(api, "time.parse", "2026-02-30", "%Y-%m-%d") == (
        "time.parse(text, format): invalid time '2026-02-30'; expected the format '%Y-%m-%d'"
    )
    assert fails(api, "time.parse", "x", "%Q") == f"time.parse(text, format): unknown directive '%Q'; known: {known}"
    assert fails(api, "time.format", 0, "50%") == f"time.format(seconds, format): unknown directive '%'; known: {known}"
    assert fails(api, "time.parse", "x", "%Y %Y") == "time.parse(text, format): %Y is used twice in the format"
    assert fails(api, "time.format", 1e15) == "time.format(seconds, format): seconds must be in the years 1 to 9999"
    assert fails(api, "time.format", 0, "%Y" * 200).endswith("format is longer than 200 characters")


def test_url_functions(make_api: MakeApi) -> None:
    api = make_api()
    assert api.call("url.encode", ["a b/ü?&"]) == "a%20b%2F%C3%BC%3F%26"
    assert api.call("url.encode", [b"\xff"]) == "%FF"
    assert api.call("url.encode", [{"b": [1, "x y"], "a": True}]) == "a=true&b=1&b=x%20y"
    assert api.call("url.decode", ["a%20b+c%C3%BC"]) == "a b+cü"
    assert api.call("url.decode", ["a+b", {"plus": True}]) == "a b"
    assert api.call("url.decode", ["%FF"]) == b"\xff"
    assert api.call("url.parse", ["HTTPS://User@Example.com:8443/a/b?x=1&y=&x=2&x=3#top"]) == {
        "scheme": "https",
        "host": "example.com",
        "port": 8443,
        "path": "/a/b",
        "query": "x=1&y=&x=2&x=3",
        "params": {"x": ["1", "2", "3"], "y": ""},
        "fragment": "top",
    }
    parts = {"host": "::1", "port": 80, "path": "a b", "params": {"q": "ü"}, "fragment": "x y"}
    assert api.call("url.build", [parts]) == "https://[::1]:80/a%20b?q=%C3%BC#x%20y"
    assert fails(api, "url.parse", "http://[x") == "url.parse(url): invalid URL 'http://[x': invalid host and port"
    assert fails(api, "url.parse", "http://a:999999").endswith(": the port must be from 0 to 65535, not 999999")
    assert fails(api, "url.parse", "http://a/?" + "a&" * 20_000).endswith("its query has more than 10,000 parameters")
    assert fails(api, "url.encode", 5) == "url.encode(value): value must be a string, or a table for a whole query"


def test_csv_parse(make_api: MakeApi) -> None:
    api = make_api()
    text = 'name,n\n"Ann, ""A""",1\n\nBob\n"two\nlines",3\r\n'
    assert api.call("csv.parse", [text]) == [
        {"name": 'Ann, "A"', "n": "1"},
        {"name": "Bob"},
        {"name": "two\nlines", "n": "3"},
    ]
    assert api.call("csv.parse", ["\ufeffa;b\n1;2", {"delimiter": ";", "header": False}]) == [["a", "b"], ["1", "2"]]
    assert api.call("csv.parse", [b"a\n\xe9", {"encoding": "latin-1"}]) == [{"a": "é"}]
    assert api.call("csv.parse", [""]) == []


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2,3", {}, "csv.parse: line 2 has 3 fields, but the header has 2"),
        ("a,a\n1,2", {}, "csv.parse: duplicate column 'a'; use header = false"),
        ('a\n"x', {}, "csv.parse: line 2: unexpected end of data"),
        ('a\n"x"y', {}, "csv.parse: line 2: ',' expected after '\"'"),
        ("a", {"delimiter": ",,"}, "(text, options): options.delimiter must be one character, such as ; or a tab"),
        ("a", {"delimiter": "\n"}, "(text, options): options.delimiter must be one character, such as ; or a tab"),
        (b"\xff", {}, 'give options.encoding as one of "utf-8", "latin-1", "windows-1252", "utf-16"'),
        ("," * 600_000, {}, "csv.parse takes at most 500,000 fields, not 600,000"),
        ("\n" * 600_000, {}, "csv.parse takes at most 500,000 fields, not 600,000"),
        ("x" * 200_000, {}, "csv.parse: line 1: field larger than field limit (131072)"),
        ("x" * 10_000_001, {}, "csv.parse takes at most 10,000,000 bytes, not 10,000,001"),
    ],
    ids=range(11),
)
def test_csv_failures_and_bombs(make_api: MakeApi, text: Any, options: dict[str, Any], message: str) -> None:
    error = fails(make_api(), "csv.parse", text, options)
    assert error.startswith("csv.parse")
    assert error.endswith(message)


def test_csv_encode(make_api: MakeApi) -> None:
    api = make_api()
    rows = [{"b": 'x"y', "a": 1}, {"a": None, "c": True}]
    assert api.call("csv.encode", [rows]) == 'a,b,c\n1,"x""y",\n,,true\n'
    assert api.call("csv.encode", [rows, {"columns": ["b", "a"], "delimiter": "\t"}]) == 'b\ta\n"x""y"\t1\n\t\n'
    assert api.call("csv.encode", [[[1, 2.5], ["a", "b,c"]]]) == '1,2.5\na,"b,c"\n'
    assert fails(api, "csv.encode", [{}, []]) == "csv.encode(rows, options): row 2 must be a table, not array"
    assert (
        fails(api, "csv.encode", [[{}]]) == "csv.encode(rows, options): a field must be a string or number, not table"
    )
    assert fails(api, "csv.encode", [{f"c{number}": 1} for number in range(1000)]) == (
        "csv.encode writes at most 500,000 fields"
    )
    assert fails(api, "csv.encode", [{"a": "x" * 100_000}], {"columns": ["a"] * 1000}) == (
        "csv.encode writes at most 10,000,000 characters"
    )
    assert api.call("csv.parse", [api.call("csv.encode", [rows])])[0] == {"a": "1", "b": 'x"y', "c": ""}


def test_base64(make_api: MakeApi) -> None:
    api = make_api()
    data = bytes(range(256))
    for options in ({}, {"urlsafe": True}, {"padding": False}, {"urlsafe": True, "padding": False}):
        encoded = api.call("base64.encode", [data, options])
        assert api.call("base64.decode", [encoded]) == data
    assert api.call("base64.encode", [b"\xfb\xff", {"urlsafe": True, "padding": False}]) == "-_8"
    assert api.call("base64.decode", ["aGk=\n"]) == "hi"
    for wrong in ("a", "aGk*", "a=Gk"):
        assert fails(api, "base64.decode", wrong) == "base64.decode(text): text is not base64"


def test_crypto(make_api: MakeApi) -> None:
    api = make_api(entropy=lambda size: bytes(range(size)))
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert api.call("crypto.sha256", [""]) == empty
    assert api.call("crypto.sha256", ["", {"encoding": "raw"}]) == bytes.fromhex(empty)
    assert api.call("crypto.sha256", ["", {"encoding": "base64"}]) == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    assert api.call("crypto.sha256", ["", {"encoding": "base64url"}]) == "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    known = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
    text = "The quick brown fox jumps over the lazy dog"
    assert api.call("crypto.hmac_sha256", ["key", text]) == known
    assert api.call("crypto.uuid") == "00010203-0405-4607-8809-0a0b0c0d0e0f"
    assert api.call("crypto.random_bytes", [3]) == b"\x00\x01\x02"
    assert fails(api, "crypto.hmac_sha256", 5, "x") == (
        "crypto.hmac_sha256(key, data, options): key must be a string or a secret, not integer"
    )


def test_random_values_differ(make_api: MakeApi) -> None:
    api = make_api()
    assert api.call("crypto.uuid") != api.call("crypto.uuid")


def test_logs_are_collected_and_passed_on(make_api: MakeApi, caplog: pytest.LogCaptureFixture) -> None:
    api = make_api(clock=lambda: 7.0)
    with caplog.at_level(logging.DEBUG, "moonbox.script.weather"):
        api.call("log.debug", ["one"])
        api.call("log.error", ["two\nERROR forged \x1b[31m\u2028line", {"n": 1}])
    assert api.logs == (
        LogRecord("debug", "one", None, 7.0),
        LogRecord("error", "two\nERROR forged \x1b[31m\u2028line", {"n": 1}, 7.0),
    )
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("moonbox.script.weather", "DEBUG", "one"),
        ("moonbox.script.weather", "ERROR", 'two\\nERROR forged \\x1b[31m\\u2028line {"n": 1}'),
    ]


def test_logs_are_bounded(make_api: MakeApi) -> None:
    api = make_api(limits=HostLimits(max_log_records=3, max_log_message=10))
    for number in range(5):
        api.call("log.info", ["x" * 100, {"k": "y" * 100, "n": number}])
    assert len(api.logs) == 3
    assert api.logs_dropped == 2
    assert api.logs[0].message == "x" * 10 + "…"
    assert api.logs[0].fields == {"cut": '{"k": "yyy'}


def test_percent_signs_in_logs_are_text(make_api: MakeApi, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "moonbox.script.weather"):
        make_api().call("log.info", ["100%s %(name)s"])
    assert caplog.messages == ["100%s %(name)s"]


def test_sleep_waits_and_ends_when_the_api_is_closed(make_api: MakeApi) -> None:
    api = make_api()
    assert api.call("sleep", [0.02]) is None
    assert fails(api, "sleep", 31) == "sleep(seconds): seconds must be at most 30, not 31"
    assert fails(api, "sleep", -1) == "sleep(seconds): seconds must be at least 0, not -1"
    messages: list[str] = []
    thread = threading.Thread(target=lambda: messages.append(fails(api, "sleep", 30)))
    thread.start()
    api.close()
    thread.join(60)
    assert messages == ["the host is closing"]


def test_env_get(make_api: MakeApi) -> None:
    api = make_api({"env": ["A", "MISSING"]}, environ={"A": "1", "HOME": "/root"})
    assert api.call("env.get", ["A"]) == "1"
    assert api.call("env.get", ["MISSING"]) is None
    assert api.call("env.get", ["MISSING", "default"]) == "default"
    with pytest.raises(Denied) as caught:
        api.call("env.get", ["HOME"])
    assert str(caught.value) == (
        'the environment variable HOME is not granted; add "HOME" to env under [tools.script.weather]'
    )
    assert fails(make_api(), "env.get", "HOME") == (
        'the environment variable HOME is not granted; add env = ["HOME"] under [tools.script.weather]'
    )
