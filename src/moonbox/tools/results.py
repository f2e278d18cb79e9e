"""What comes back from a tool: its value within the limits, or its failure as scripts may see it.

Text that is JSON (an object or an array) from a tool without a result schema becomes data, so that a script
need not decode it; `parse_json=False` turns that off. Text that is anything else stays text, "42" too.

A failure is a code and a bounded message. A ToolError says what its author wrote. Of any other exception the
script sees its class and text, at most 500 characters, with absolute paths cut to their last part and credentials
replaced by `***`; the traceback of the tool's own code goes into `ToolError.detail`, which is for the developer alone.

    exception                                             code          retryable
    TimeoutError, and classes named …Timeout…             timeout       yes
    ConnectionError, and classes named Connect…, Network… unavailable   yes
    with an HTTP status                                   see _STATUSES 408, 425, 429, 500, 502, 503, 504
    PermissionError                                       denied        no
    LookupError, FileNotFoundError                        not_found     no
    FileExistsError                                       conflict      no
    cancellation                                          cancelled     no
    everything else                                       see code_in_words

The tool's own `errors` come before all of these.

An HTTP status is also in the error's data: `{"status": 404}`.

A result that is nothing but a failure (`moonbox.failures`) stays data, or is raised where `failures` says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from functools import cached_property
from itertools import islice
from time import time
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConversionError, ToolError
from moonbox.failures import RETRYABLE, Failures, code_in_words, raise_failure
from moonbox.retry import retry_after
from moonbox.schema.bounds import TooCostly
from moonbox.schema.coercion import stand_in
from moonbox.schema.problems import find_problems, short
from moonbox.schema.tree import KINDS, SchemaNode, accepts
from moonbox.schema.validation import Invalid, Validator
from moonbox.values import ORDINARY, Packed, ValueLimits, pack, plain, refuse_constant
from moonbox.wording import cut

if TYPE_CHECKING:
    from moonbox.tools.tool import Tool

LONGEST_MESSAGE = 500
_MOST_FIELDS = 20  # whose types are looked at
_LONGEST_DETAIL = 20_000
_JSON_TYPES = {type_: kind for type_, kind in KINDS.items() if type_ not in (bytes, tuple)}
_RETRYABLE_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


def collect_rows(value: Any, most: int) -> Any:
    """A generator, an asynchronous one (as an awaitable) or a data frame as a list of rows; all else as it is.

    Only one row more than `most` is taken, so that the limit is noticed and an endless generator ends.
    """
    if type(value) in ORDINARY:
        return value
    if isinstance(value, Generator):
        try:
            return list(islice(value, most + 1))
        finally:
            value.close()
    if isinstance(value, AsyncGenerator):
        return _drained(value, most)
    # Known by name: neither package is imported just to be recognised.
    match (type(value).__module__.partition(".")[0], type(value).__name__):
        case ("polars", "LazyFrame"):
            return value.head(most + 1).collect().to_dicts()
        case ("polars", "DataFrame"):
            return value.head(most + 1).to_dicts()
        case ("pandas", "DataFrame"):
            rows = value.head(most + 1)
            return rows.astype(object).where(rows.notna(), None).to_dict("records")
        case ("polars", "Series"):
            return value.head(most + 1).to_list()
        case ("pandas", "Series" | "Index"):
            rows = value[: most + 1].to_series() if type(value).__name__ == "Index" else value.head(most + 1)
            return rows.astype(object).where(rows.notna(), None).to_list()
    return value


async def _drained(rows: AsyncGenerator[Any, Any], most: int) -> list[Any]:
    taken: list[Any] = []
    try:
        async for row in rows:
            taken.append(row)
            if len(taken) > most:
                break
    finally:
        await rows.aclose()
    return taken


def convert(
    value: Any,
    tool: Tool | None,
    limits: ValueLimits,
    failures: Failures = "return",
    note: Callable[[str, str], None] = lambda text, tool: None,
) -> Packed:
    """What a tool returned, as it goes to the script; raises ToolError with code `result_too_large` or `bad_result`.

    Without a tool it is the result of a function that was added, or one that the caller gave. With `failures="raise"`,
    a result that is nothing but a failure is raised too. `note` is told of a result of another type than declared, and
    of one that was not validated.
    """
    name = tool.path if tool is not None else None
    subject = f"the result of {name}" if name else "the result"
    schema, given = tool.result_schema if tool is not None else None, value
    try:
        if type(value) not in ORDINARY:
            value = collect_rows(value, limits.max_array)
        if tool is not None and tool.parse_json and tool.returns is None and isinstance(value, str):
            value = _parsed(value, limits)
        packed = pack(value, limits, "result")
        if schema is not None and tool is not None:
            unchecked = schema.check(packed.value) if tool.validate_result else None
            if (remark := unchecked or schema.other_type(given)) is not None:
                note(remark, tool.path)
        if failures == "raise":
            raise_failure(packed, name)
        return packed
    except ToolError:
        raise
    except ConversionError as error:
        code = "result_too_large" if error.limit else "bad_result"
        message = f"{subject} cannot be used: {error}" if name else str(error)
        raise ToolError(message, code=code, tool=name) from None
    except RecursionError:
        raise ToolError(f"{subject} is nested too deeply", code="result_too_large", tool=name) from None
    except Exception as error:  # noqa: BLE001 - the conversion calls code of the value's own class
        message = f"{subject} cannot be converted: {type(error).__name__}"
        raise ToolError(message, code="bad_result", tool=name, detail=str(error)) from None


class ResultSchema:
    """The schema of a tool's results, to compare them with."""

    def __init__(self, tool: str, schema: SchemaNode, *, own: bool = False) -> None:
        self._tool, self._schema, self._own = tool, schema, own
        self._others = _other_types(schema)
        self._elements = schema.heads[0] if schema.heads else schema.items

    def other_type(self, value: Any) -> str | None:
        """In words, that a result has another type than the schema says; None where it has that type, or a special one.

        Only the outermost level, the first element of a list and the fields of one object are looked at, so that it
        costs next to nothing.
        """
        subject, node = f"the result of {self._tool}", self._schema
        others = self._others
        if type(value) is list and value and list not in others:
            value, node, subject = value[0], self._elements, f"the first element of {subject}"
            others = self._others_within[""]
        kind = others.get(type(value))
        if kind is None and type(value) is dict:
            for name, types in self._others_within.items():
                if name and name in value and (kind := types.get(type(value[name]))) is not None:
                    node, subject = node.fields[name], f"the field '{name}' of {subject}"
                    break
        if kind is None:
            return None
        return f"{subject} is of type {kind}, not {'|'.join(sorted(node.kinds or ()))} as declared"

    @cached_property
    def _others_within(self) -> dict[str, dict[type, str]]:
        """The wrong types of a list's elements, under "", and of the fields of the object, or of the first element."""
        inner = self._schema if self._schema.fields else self._elements
        fields = {name: _other_types(part) for name, part in islice(inner.fields.items(), _MOST_FIELDS)}
        return {"": _other_types(self._elements), **{name: types for name, types in fields.items() if name and types}}

    def check_schema(self) -> str | None:
        """Raise ToolError if the schema is invalid. Return why it is not used, if validating would take too long."""
        try:
            self._validator.check()
        except TooCostly as problem:
            return str(problem)
        except Invalid as problem:
            message = f"the result of {self._tool} cannot be validated: its schema is invalid: {problem}"
            raise ToolError(cut(message, LONGEST_MESSAGE), code="bad_result", tool=self._tool) from None
        return None

    def check(self, value: Any) -> str | None:
        """Raise ToolError if the value does not fit. Return a remark if comparing it would take too long."""
        reason = self.check_schema()
        value = stand_in(value)
        try:
            if reason is None and self._validator.is_valid(value):
                return None
        except TooCostly as problem:
            reason = str(problem)
        if reason is not None:
            return f"the result of {self._tool} was not validated: {reason}"
        problems = find_problems(self._schema, value, self._validator.fits, name="result")
        text = problems[0] if problems else f"result: got {short(value, 200)}"
        message = f"the result of {self._tool} does not fit its declared type: {text}"
        raise ToolError(cut(message, LONGEST_MESSAGE), code="bad_result", tool=self._tool)

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self._schema, own=self._own)


def _other_types(node: SchemaNode) -> dict[type, str]:
    """The types that a schema does not accept."""
    return {
        type_: kind
        for type_, kind in _JSON_TYPES.items()
        if not accepts(node.kinds, kind) and not (kind == "number" and accepts(node.kinds, "integer"))
    }


def to_tool_error(
    error: BaseException, tool: str | None = None, codes: Mapping[type[BaseException], str] = MappingProxyType({})
) -> ToolError:
    """The error a script is given for any exception; `codes` are the tool's own, by type."""
    if isinstance(error, ToolError):
        return _completed(error, tool)
    status = _status(error)
    code, retryable = _classify(error, status)
    own = next((codes[kind] for kind in type(error).__mro__ if kind in codes), code)
    if own != code:
        code, retryable = own, own in RETRYABLE
    message = cut(scrub(_text(error)), LONGEST_MESSAGE)
    data = None if status is None else {"status": status}
    found = ToolError(message, code=code, retryable=retryable, data=data, tool=tool, detail=_detail(error))
    headers: Any = getattr(getattr(error, "response", error), "headers", None)  # of HTTP clients
    if status is not None and hasattr(headers, "get"):
        found.retry_after = retry_after(str(headers.get("Retry-After") or ""), time())
    return found


def scrub(text: str) -> str:
    """Text without absolute paths (their last part stays) and without what looks like a credential."""
    text = text[: 4 * LONGEST_MESSAGE]  # the message is cut afterwards: patterns need not read megabytes
    for pattern, replacement in _SECRETS:
        text = re.sub(pattern, replacement, text)
    text = re.sub(_FILE_URL, "file:…", text)
    text = re.sub(_WINDOWS_PATH, r"…\\\g<last>", text)
    return re.sub(_POSIX_PATH, r"…/\g<last>", text)


def _parsed(text: str, limits: ValueLimits) -> Any:
    """The data that the text encodes, or the text itself."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return plain(json.loads(text, parse_constant=refuse_constant), ValueLimits(max_depth=limits.max_depth))
    except (ValueError, RecursionError, ConversionError):
        return text


def _completed(error: ToolError, tool: str | None) -> ToolError:
    """A copy, since tools may raise one error again, with what its author left out, and without what cannot cross."""
    copy = type(error).__new__(type(error), *error.args)
    vars(copy).update(vars(error))
    copy.tool = error.tool or tool
    cause = error.__cause__ or error
    if error.detail is None and (_own_frames(error) or cause is not error):  # otherwise moonbox itself refused the call
        copy.detail = _detail(error if _own_frames(error) else cause)
    error.__traceback__ = None  # Python would add the frames of the next time to these
    copy.message = str(error.message)
    try:
        copy.data = plain(error.data)
    except Exception:  # noqa: BLE001 - lowering calls code of the value's own class; the error matters, not its data
        copy.data = None
    return copy


def code_of_status(status: int) -> tuple[str, bool]:
    """The code of a failure with this HTTP status, and whether another attempt may succeed."""
    code = _STATUSES.get(status, "invalid" if 400 <= status < 500 else "tool_error")
    return code, status in _RETRYABLE_STATUS


def _status(error: BaseException) -> int | None:
    """The HTTP status in the exceptions of HTTP clients: httpx, requests, aiohttp, urllib and the like."""
    response = getattr(error, "response", None)
    found = [getattr(response, "status_code", None), getattr(error, "status_code", None)]
    found += [getattr(response, "status", None), getattr(error, "status", None)]
    if any(base.__name__ == "HTTPError" for base in type(error).__mro__):
        found.append(getattr(error, "code", None))
    return next((status for status in found if type(status) is int and 400 <= status < 600), None)


def _classify(error: BaseException, status: int | None) -> tuple[str, bool]:
    names = [base.__name__ for base in type(error).__mro__]
    if isinstance(error, TimeoutError) or any("Timeout" in name or name == "TimedOut" for name in names):
        return "timeout", True
    if isinstance(error, ConnectionError) or any(name in _CONNECTION for name in names):
        return "unavailable", True
    if status is not None:
        return code_of_status(status)
    if "CancelledError" in names:  # asyncio's, concurrent.futures' or another loop's
        return "cancelled", False
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), None)
    code = code or code_in_words(_text(error))
    return code, code in RETRYABLE


def _text(error: BaseException) -> str:
    name = type(error).__name__
    if name == "CancelledError":
        return "it was cancelled"
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - a broken __str__ of a stranger's exception must not hide the failure
        text = ""
    return f"{name}: {text}" if text else name


def _detail(error: BaseException) -> str:
    """The traceback from the first frame of the tool's own code on, without moonbox's frames before it."""
    try:
        from traceback import format_exception  # slow to load

        text = "".join(format_exception(type(error), error, _own_frames(error) or error.__traceback__))
    except Exception:  # noqa: BLE001 - as above: formatting calls the exception's own code
        text = type(error).__name__
    return text if len(text) <= _LONGEST_DETAIL else text[:2_000] + "\n…\n" + text[-_LONGEST_DETAIL + 2_000 :]


def _own_frames(error: BaseException) -> TracebackType | None:
    """The frames of a traceback from the first that is not moonbox's; None where all are."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").partition(".")[0] == "moonbox":
        frames = frames.tb_next
    return frames


_CONNECTION = frozenset(
    {
        *("APIConnectionError", "ClientConnectionError", "ConnectError", "ConnectionError", "NetworkError"),
        *("TransportError", "gaierror"),
    }
)
_CODES: dict[type[BaseException], str] = {
    PermissionError: "denied",
    FileNotFoundError: "not_found",
    FileExistsError: "conflict",
    LookupError: "not_found",
}
_STATUSES = {
    **dict.fromkeys((401, 402, 403, 407, 451), "denied"),
    **dict.fromkeys((404, 410), "not_found"),
    **dict.fromkeys((409, 412, 423), "conflict"),
    **dict.fromkeys((408, 504), "timeout"),
    **dict.fromkeys((425, 502, 503), "unavailable"),
    429: "rate_limited",
}
"""By HTTP status; any other 4xx is `invalid`, any other 5xx `tool_error`."""
# `name=value` is a secret whenever the name says so; after a colon, prose is likelier ("unexpected token: x"),
# so there the value must look like one, except for names that prose does not use that way.
_NAMES = r"(?:token|api[_-]?key|access[_-]?key|auth|credentials?|session(?:[_-]?id)?|signature|sig|key)"
_WORSE = r"(?:pass(?:word|wd|phrase)|pwd|secret|authorization)"
_VALUE = r"[^\s\"',;&)}\]]"
_SECRETS: tuple[tuple[str, str], ...] = (
    (r"(?<=://)[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)", "***"),
    (r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}", r"\1 ***"),
    (rf"(?i)\b([\w-]{{0,40}}{_WORSE}[\"']?\s?[=:]\s?[\"']?)(?!bearer |basic ){_VALUE}{{3,}}", r"\1***"),
    (rf"(?i)\b([\w-]{{0,40}}{_NAMES}[\"']?=[\"']?){_VALUE}{{4,}}", r"\1***"),
    (rf"(?i)\b([\w-]{{0,40}}{_NAMES}[\"']?:\s?[\"']?)(?=\D{{0,200}}\d){_VALUE}{{12,}}", r"\1***"),
    (r"\b(?:sk|pk|rk|gh[pousr]|xox[abprs]|glpat|AKIA|ASIA|AIza)[-_A-Za-z0-9]{12,}", "***"),
    (r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?", "***"),
)
_PART = r"[^\s/\\'\":;,()<>|]"
_FILE_URL = r"(?i)\bfile:/{1,3}[^\s'\"]+"
# Not within a URL, and not the path of an HTTP request (`GET /v1/items`), which belongs to the message.
_POSIX_PATH = (
    r"(?<![\w/.])(?<!GET )(?<!PUT )(?<!POST )(?<!HEAD )(?<!PATCH )(?<!DELETE )"
    rf"(?:~|\.\.)?/(?!/)(?:{_PART}{{1,120}}/)+(?P<last>{_PART}{{0,120}})"
)
_WINDOWS_PATH = rf"\b[A-Za-z]:\\(?:{_PART}{{1,120}}\\)*(?P<last>{_PART}{{0,120}})"


def error_value(error: ToolError, tool: str | None) -> dict[str, Any]:
    """What the script gets of an error."""
    value: dict[str, Any] = {"code": error.code, "message": error.message, "retryable": bool(error.retryable)}
    name = error.tool or tool
    if name:
        value["tool"] = name
    if error.where:
        value["where"] = error.where
    if error.data is not None:
        try:
            value["data"] = plain(error.data)
        except ConversionError:
            value["data"] = str(error.data)[:500]
    return value
