"""Tests of what a script is told when a tool fails."""

from __future__ import annotations

import asyncio
from email.message import Message
from socket import gaierror
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest

from moonbox.errors import ArgumentError, Denied, ToolError
from moonbox.tools.results import scrub, to_tool_error


class ReadTimeout(Exception):
    pass


class ConnectError(Exception):
    pass


class Response:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class HTTPStatusError(Exception):
    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.response = Response(status)


@pytest.mark.parametrize(
    ("error", "code", "retryable", "message"),
    [
        (ValueError("bad"), "tool_error", False, "ValueError: bad"),
        (KeyError("employee_id"), "not_found", False, "KeyError: 'employee_id'"),
        (RuntimeError(), "tool_error", False, "RuntimeError"),
        (TimeoutError("slow"), "timeout", True, "TimeoutError: slow"),
        (ReadTimeout("slow"), "timeout", True, "ReadTimeout: slow"),
        (ConnectionResetError("gone"), "unavailable", True, "ConnectionResetError: gone"),
        (ConnectError("gone"), "unavailable", True, "ConnectError: gone"),
        (
            PermissionError(13, "Permission denied", "/srv/data/x.txt"),
            "denied",
            False,
            "PermissionError: [Errno 13] Permission denied: '…/x.txt'",
        ),
        (
            FileNotFoundError(2, "No such file", "/srv/data/x.txt"),
            "not_found",
            False,
            "FileNotFoundError: [Errno 2] No such file: '…/x.txt'",
        ),
        (FileExistsError("it is there"), "conflict", False, "FileExistsError: it is there"),
        (gaierror("no such host"), "unavailable", True, "gaierror: no such host"),
        (NotImplementedError("later"), "tool_error", False, "NotImplementedError: later"),
        (asyncio.CancelledError(), "cancelled", False, "it was cancelled"),
    ],
)
def test_codes(error: BaseException, code: str, retryable: bool, message: str) -> None:
    found = to_tool_error(error, "f")
    assert (found.code, found.retryable, found.message, found.tool) == (code, retryable, message, "f")


STATUSES: dict[tuple[str, bool], tuple[int, ...]] = {
    ("invalid", False): (400, 418, 422),
    ("denied", False): (401, 403),
    ("not_found", False): (404, 410),
    ("conflict", False): (409,),
    ("timeout", True): (408, 504),
    ("rate_limited", True): (429,),
    ("unavailable", True): (503,),
    ("tool_error", True): (500,),
    ("tool_error", False): (501,),
}


@pytest.mark.parametrize(
    ("status", "code", "retryable"), [(status, *kind) for kind, listed in STATUSES.items() for status in listed]
)
def test_codes_of_http_statuses(status: int, code: str, retryable: bool) -> None:
    """The real exceptions of the clients that are installed, and one shaped like those of others."""
    request = httpx.Request("GET", "https://example.com/")
    real = [
        httpx.HTTPStatusError("no", request=request, response=httpx.Response(status)),
        HTTPError("https://example.com/", status, "no", Message(), None),
        HTTPStatusError("no", status),
    ]
    for error in real:
        found = to_tool_error(error, "f")
        assert (found.code, found.retryable, found.data) == (code, retryable, {"status": status}), type(error)
    assert to_tool_error(HTTPStatusError("moved", 302)).code == "tool_error"


def test_the_traceback_is_in_the_detail_alone() -> None:
    def broken() -> None:
        secret_local = "hush"
        raise ValueError(f"no {len(secret_local)}")

    try:
        broken()
    except ValueError as error:
        found = to_tool_error(error, "f")
    assert found.message == "ValueError: no 4"
    assert found.detail is not None and "in broken" in found.detail and __file__ in found.detail


def test_tool_errors_pass_as_they_are() -> None:
    error = ToolError("not in /srv/data/stock", code="sold_out", retryable=True, data={"left": {1, 2}})
    found = to_tool_error(error, "shop.buy")
    assert found is not error, "its author may raise it again for another tool"
    assert (found.message, found.code, found.retryable, found.data) == (
        "not in /srv/data/stock",
        "sold_out",
        True,
        {"left": [1, 2]},
    )
    assert found.tool == "shop.buy"
    assert isinstance(to_tool_error(Denied("no")), Denied)
    assert to_tool_error(ArgumentError("x", tool="inner"), "outer").tool == "inner"
    assert to_tool_error(ToolError("x", data=object())).data is None


def test_long_messages_are_cut() -> None:
    message = to_tool_error(ValueError("x" * 10_000)).message
    assert len(message) == 500
    assert message.endswith("x…")


def test_exceptions_that_cannot_be_written() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    found = to_tool_error(Broken(), "f")
    assert found.message == "Broken"
    assert found.detail is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot open /home/ann/projects/x.py", "cannot open …/x.py"),
        ("cannot open '/var/lib/app/db.sqlite'.", "cannot open '…/db.sqlite'."),
        ("path:/etc/shadow/x and ~/keys/id_rsa", "path:…/x and …/id_rsa"),
        ("file:///home/ann/x.txt is gone", "file:… is gone"),
        (r"C:\Users\ann\x.txt is gone", r"…\x.txt is gone"),
        ("GET /v1/items/3 failed", "GET /v1/items/3 failed"),
        ("see https://api.example.com/v1/items", "see https://api.example.com/v1/items"),
        ("relative src/app/x.py stays", "relative src/app/x.py stays"),
        ("1/2 and and/or stay", "1/2 and and/or stay"),
        ("https://ann:hunter2@example.com/x", "https://***@example.com/x"),
        ("https://example.com/x?api_key=abcd1234&page=2", "https://example.com/x?api_key=***&page=2"),
        ("password=hunter2, user=ann", "password=***, user=ann"),
        ('{"client_secret": "abc123"}', '{"client_secret": "***"}'),
        ("Authorization: Bearer abc.def-ghi123", "Authorization: Bearer ***"),
        ("token: 1234567890abcdef", "token: ***"),
        ("key sk-proj-abcdefghijklmnop is wrong", "key *** is wrong"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "***"),
        ("unexpected token: identifier", "unexpected token: identifier"),
        ("missing key: employee_identification", "missing key: employee_identification"),
        ("KeyError: 'employee_id'", "KeyError: 'employee_id'"),
    ],
)
def test_scrub(text: str, expected: str) -> None:
    assert scrub(text) == expected


@pytest.mark.parametrize("text", ["/a" * 100_000, "a=" * 100_000, "x/" * 100_000, "token" * 50_000, "\\" * 100_000])
def test_scrubbing_is_quick_on_anything(text: Any) -> None:
    assert len(scrub(text)) <= 2_000
