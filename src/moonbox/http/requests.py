"""Requests and errors of the HTTP API: bodies and query parameters read and checked, and each error as a response."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from moonbox.values import refuse_constant

if TYPE_CHECKING:
    from moonbox.errors import ScriptError

T = TypeVar("T")

_LONGEST = 1_000
_UNWATCHED = 0.02  # seconds after which it matters that a client has gone: most work ends before
CODE_STATUS = {
    "unknown_tool": 404,
    "invalid": 400,
    "denied": 403,
    "approval_denied": 403,
    "approval_unavailable": 403,
    "timeout": 504,
    "unavailable": 503,
    "result_too_large": 502,
    "bad_result": 502,
    "limit_time": 504,
}
"""For the error codes of tools; any other code is 502: the request was valid, and the tool failed."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
KIND_STATUS = {
    "syntax": 400,
    "runtime": 422,
    "tool": 422,
    "limit": 422,
    "denied": 403,
    "crashed": 500,
    "cancelled": 503,
}
"""For the error kinds of scripts."""


async def json_object(request: Request, *, allow_empty: bool = False) -> dict[str, Any]:
    """The body as a JSON object.

    An empty body needs the content type too: a page of another origin can send everything but that unasked.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "unsupported_media_type", "send Content-Type: application/json, also with an empty body")
    raw = await request.body()
    if not raw and allow_empty:
        return {}
    try:
        data = json.loads(raw, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_json", "the body is not valid JSON") from None
    if not isinstance(data, dict):
        raise Refused(400, "invalid", "the body must be a JSON object")
    return data


def number(request: Request, name: str, default: int, maximum: int) -> int:
    """A whole number of the query."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 12 and int(given) <= maximum):
        raise Refused(400, "invalid", f"{name} must be a whole number from 0 to {maximum}")
    return int(given)


def text(request: Request, name: str) -> str | None:
    """A text of the query; an empty one counts as missing."""
    given = request.query_params.get(name)
    if given is not None and len(given) > _LONGEST:
        raise Refused(400, "invalid", f"{name} must have at most {_LONGEST:,} characters")
    return given or None


def choice(request: Request, name: str, known: Sequence[str]) -> str | None:
    """One of these words of the query."""
    given = text(request, name)
    if given is not None and given not in known:
        raise Refused(400, "invalid", f"{name} must be one of {', '.join(known)}")
    return given


def flag(request: Request, name: str) -> bool | None:
    """true or false of the query."""
    given = choice(request, name, ("true", "false"))
    return None if given is None else given == "true"


class Refused(HTTPException):
    """Raised to answer a request with an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, message)
        self.code = code


class JsonAnswer(Response):
    """A value as JSON. Half a surrogate pair, which a script may contain, is escaped: UTF-8 has none."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return _encode(content).encode("utf-8", "backslashreplace")


@contextlib.contextmanager
def refusing(status: int, code: str, *errors: type[Exception]) -> Iterator[None]:
    """Answer a request with this status and code where one of these errors is raised."""
    try:
        yield
    except errors as problem:
        raise Refused(status, code, str(problem)) from None


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. It is cancelled when the client goes away, which raises ClientDisconnect."""

    task, loop, gone = asyncio.current_task(), asyncio.get_running_loop(), False
    watching: list[asyncio.Task[None]] = []
    assert task is not None

    async def watch() -> None:
        nonlocal gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone = task.cancel()

    timer = loop.call_later(_UNWATCHED, lambda: watching.append(loop.create_task(watch())))
    try:
        result = await work
    except asyncio.CancelledError:
        if not gone:
            raise
    finally:
        timer.cancel()
        for each in watching:
            each.cancel()
    if not gone:
        return result
    task.uncancel()
    raise ClientDisconnect


def failure(status: int, code: str, message: str, *, headers: dict[str, str] | None = None, **more: Any) -> JsonAnswer:
    return JsonAnswer({"error": {"code": code, "message": message, **more}}, status, headers)


def of_tool(error: ScriptError, run: str) -> JsonAnswer:
    code = error.code or error.kind
    return failure(CODE_STATUS.get(code, 502), code, error.message, retryable=error.retryable, run=run)


def of_script(error: ScriptError, run: str) -> JsonAnswer:
    code = f"limit_{error.limit}" if error.limit else error.kind
    status = CODE_STATUS.get(code, KIND_STATUS[error.kind])
    more: dict[str, Any] = {"line": error.line, "hint": error.hint, "traceback": error.traceback}
    return failure(status, code, error.message, run=run, **{key: value for key, value in more.items() if value})
