"""Results that are nothing but a failure: the forms in which tools return an error as data instead of raising it.

    `error`             text, an object, a list, or true: {"error": "cannot write: No such file"}
    `errors`            text, an object or a list: {"errors": [{"message": "bad field"}]}
    `success`           false: {"success": false, "message": "quota"}
    `status`            "error": {"status": "error", "detail": "quota"}
    a list of one such object, and text that is JSON of one of these forms

One of them is enough. Beside it there may be `ok`, `code`, `message`, `detail` and `details`, and fields that are null.
A result with any other field is data, as is one that says `success: true`, `ok: true` or a status of success, and one
whose `error` is empty or a number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from moonbox.compact import json_in
from moonbox.errors import ToolError
from moonbox.wording import one_line

if TYPE_CHECKING:
    from moonbox.values import Packed

Failures = Literal["return", "raise"]
"""What becomes of such a result: the script gets it as data, or as an error."""
FAILURES: tuple[str, ...] = get_args(Failures)
CODES = frozenset({"not_found", "invalid", "denied", "conflict", "rate_limited", "timeout", "unavailable"})
"""The codes that a result may give its error."""
RETRYABLE = frozenset({"rate_limited", "timeout", "unavailable"})
PROBES = frozenset({"error", "errors", "success", "ok"})
"""The fields that show whether a result is a failure."""
_FIELDS = frozenset({"error", "errors", "success", "ok", "status", "code", "message", "detail", "details"})
_KEYS = frozenset(name.encode() for name in _FIELDS)
_SUCCESS = frozenset({"ok", "success", "succeeded", "complete", "completed", "done"})
_LONGEST_TEXT = 500
_LONGEST_JSON = 4_096
_DEEPEST = 3
_MOST_FIELDS = 15


def failure_in(packed: Packed) -> str | None:
    """What a result that is nothing but a failure says, on one line; None for every other result."""
    failure = _failure(packed)
    return None if failure is None else failure.text


def raise_failure(packed: Packed, tool: str | None) -> None:
    """Raise ToolError where the result is nothing but a failure."""
    failure = _failure(packed)
    if failure is not None:
        is_retryable = failure.code in RETRYABLE
        raise ToolError(failure.text, code=failure.code, retryable=is_retryable, data=packed.value, tool=tool)


def _failure(packed: Packed) -> Failure | None:
    return failure_of(packed.value) if _is_possible(packed.data) else None


class Failure(NamedTuple):
    """What a result that is nothing but a failure says."""

    text: str
    code: str


def failure_of(value: Any) -> Failure | None:
    """What a value that is nothing but a failure says; None for every other value."""
    if type(value) is str and len(value) <= _LONGEST_JSON:
        value = json_in(value)
    if type(value) is list and len(value) == 1:
        value = value[0]
    if type(value) is not dict or len(value) > _MOST_FIELDS:
        return None
    fields = {key: item for key, item in value.items() if item is not None}
    return Failure(_text(fields), _code(fields)) if _is_failure(fields) else None


def _is_possible(data: bytes) -> bool:
    """Judge by the first bytes of the MessagePack, so that large results are not decoded."""
    at = 1 if data[0] == 0x91 else 0  # a list of one element
    if 0x81 <= data[at] <= 0x8F:  # an object of up to 15 fields
        key = data[at + 2 : at + 2 + (data[at + 1] & 0x1F)]
        return key in _KEYS or data[at + 2 + len(key) :][:1] == b"\xc0"  # null
    is_text = 0xA0 <= data[0] <= 0xBF or data[0] in (0xD9, 0xDA)
    return is_text and len(data) <= _LONGEST_JSON


def _is_failure(fields: dict[str, Any]) -> bool:
    if not fields.keys() <= _FIELDS or not isinstance(fields.get("message", ""), str):
        return False
    if fields.get("success", False) is not False or fields.get("ok", False) is not False:
        return False
    if not _may_fail(fields.get("status", "error")):
        return False
    return _first(fields) is not None or "success" in fields or fields.get("status") == "error"


def _first(fields: dict[str, Any]) -> Any:
    """The first of `error` and `errors` that says something; None where neither does."""
    if fields.get("error") is True:
        return True
    named = (fields.get(name) for name in ("error", "errors"))
    return next((error for error in named if isinstance(error, str | dict | list) and error), None)


def _may_fail(status: Any) -> bool:
    """Whether the status can be that of a failure; a number is an HTTP status."""
    if isinstance(status, bool):
        return not status
    if isinstance(status, int | float):
        return status >= 400
    return isinstance(status, str) and status.lower() not in _SUCCESS


def _code(fields: dict[str, Any]) -> str:
    error = _first(fields)
    if isinstance(error, list):
        error = error[0]
    inner = error.get("code") if isinstance(error, dict) else None
    said = next((code for code in (fields.get("code"), inner) if isinstance(code, str) and code in CODES), None)
    return said or code_in_words(_text(fields))


def code_in_words(text: str) -> str:
    """The code of a failure of which only a text is known, by the usual words; `tool_error` where it has none."""
    beginning = text[:_LONGEST_TEXT]
    return next((code for code, words in _WORDS.items() if re.search(words, beginning, re.IGNORECASE)), "tool_error")


_WORDS = {
    "not_found": r"not ?found|does ?n[o']t ?exist|does ?not ?exist|\bno such\b|\b(?:HTTP|status(?: code)?):? 404\b",
    "conflict": r"already ?exists",
    "denied": r"(?:permission|access) ?denied|unauthori[sz]ed|not (?:authori[sz]ed|allowed)\b",
    "rate_limited": r"rate ?limit|too ?many ?requests",
}
"""Also within the names of exceptions: `OrderNotFound`."""


def _text(fields: dict[str, Any]) -> str:
    said = words_of(fields.get("error")) or words_of(fields.get("errors"))
    message = words_of(fields.get("message"))
    parts = [part for part in (said, message if message != said else "") if part]
    text = ": ".join(parts) or words_of(fields.get("detail")) or words_of(fields.get("details"))
    if text:
        return text
    if _first(fields) is not None:
        return "an error without a text"
    return "success is false" if "success" in fields else "status is error"


def words_of(value: Any, depth: int = 0) -> str:
    """The text in a value: of an object its message or else its plain fields, of a list its first element's."""
    if isinstance(value, str):
        return one_line(value, _LONGEST_TEXT)
    if depth == _DEEPEST:
        return ""
    if isinstance(value, list) and value:
        more = f" (and {len(value) - 1} more)" if len(value) > 1 else ""
        text = words_of(value[0], depth + 1)
        return text and text + more
    if not isinstance(value, dict):
        return ""
    for name in ("message", "error", "detail"):
        if text := words_of(value.get(name), depth + 1):
            return text
    plain = [f"{key}: {item}" for key, item in value.items() if type(item) in (str, int)]
    return one_line(", ".join(plain), _LONGEST_TEXT)
