"""Requests: bodies and query parameters, read and checked in one place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from moonbox.http.failures import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["flag", "json_object", "number", "text"]

_LONGEST = 1_000


async def json_object(request: Request, *, allow_empty: bool = False) -> dict[str, Any]:
    """The body as a JSON object."""
    raw = await request.body()
    if not raw and allow_empty:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "unsupported_media_type", "send the body as application/json")
    try:
        data = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_json", "the body is not valid JSON") from None
    if not isinstance(data, dict):
        raise Refused(400, "invalid_arguments", "the body must be a JSON object")
    return data


def number(request: Request, name: str, default: int, maximum: int) -> int:
    """A whole number of the query."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 12 and int(given) <= maximum):
        raise Refused(400, "invalid_arguments", f"{name} must be a whole number from 0 to {maximum}")
    return int(given)


def text(request: Request, name: str) -> str | None:
    """A text of the query; an empty one counts as missing."""
    given = request.query_params.get(name)
    if given is not None and len(given) > _LONGEST:
        raise Refused(400, "invalid_arguments", f"{name} must have at most {_LONGEST:,} characters")
    return given or None


def flag(request: Request, name: str) -> bool | None:
    """true or false of the query."""
    given = text(request, name)
    if given not in (None, "true", "false"):
        raise Refused(400, "invalid_arguments", f"{name} must be true or false")
    return None if given is None else given == "true"


def _no_constant(name: str) -> Any:
    raise ValueError(name)
