"""Errors as HTTP responses: {"error": {"code", "message"}}, and a status that depends only on the code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from moonbox.errors import ScriptError

__all__ = ["CODE_STATUS", "KIND_STATUS", "Refused", "failure", "of_script", "of_tool"]

CODE_STATUS = {
    "unknown_tool": 404,
    "invalid_arguments": 400,
    "denied": 403,
    "approval_denied": 403,
    "approval_unavailable": 403,
    "permission": 403,
    "timeout": 504,
    "connection": 502,
    "unavailable": 503,
    "result_too_large": 502,
    "bad_result": 502,
    "limit_time": 504,
}
"""For the error codes of tools; any other code is 502: the request was valid, and the tool failed."""

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


class Refused(Exception):
    """Raised to answer a request with an error."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.code, self.message, self.headers = status, code, message, headers
        super().__init__(message)


def failure(
    status: int, code: str, message: str, *, headers: dict[str, str] | None = None, **more: Any
) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, **more}}, status, headers)


def of_tool(error: ScriptError, run: str) -> JSONResponse:
    code = error.code or error.kind
    return failure(CODE_STATUS.get(code, 502), code, error.message, retryable=error.retryable, run=run)


def of_script(error: ScriptError, run: str) -> JSONResponse:
    code = f"limit_{error.limit}" if error.limit else error.kind
    status = CODE_STATUS.get(code, KIND_STATUS[error.kind])
    more: dict[str, Any] = {"line": error.line, "hint": error.hint, "traceback": error.traceback}
    return failure(status, code, error.message, run=run, **{key: value for key, value in more.items() if value})
