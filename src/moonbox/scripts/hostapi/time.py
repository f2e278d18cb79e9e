"""Functions time.now, time.parse, time.format (seconds since 1970 and text, always in UTC) and sleep."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from moonbox.errors import ToolError
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, Wrong
from moonbox.scripts.hostapi.grants import excerpt

_MAX_TEXT = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Not from `calendar`, whose names depend on the locale.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DIRECTIVES = "YmdHIMSfjypzbBaA%"
_KNOWN = " ".join("%" + directive for directive in _DIRECTIVES)
_FORMAT = Parameter("format", "string", f"ISO 8601 by default; else a text with {_KNOWN}", most=200)


def functions(host: Host) -> Sequence[HostFunction]:
    def sleep(seconds: float) -> None:
        if host.closing.wait(seconds):
            raise ToolError("the host is closing", code="cancelled")

    longest = host.limits.max_sleep
    pause = Parameter("seconds", "number", f"at most {longest:g}", required=True, least=0, most=longest)
    seconds = Parameter("seconds", "number", "since 1970-01-01T00:00:00Z", required=True)
    text = Parameter("text", "string", "a time without a zone is in UTC", required=True)
    return [
        HostFunction("time.now", "Seconds since 1970 in UTC, with fractions.", host.clock, (), "number"),
        HostFunction("time.parse", "The seconds since 1970 that a text means.", _parse, (text, _FORMAT), "number"),
        HostFunction("time.format", "Seconds since 1970 as text in UTC.", _format, (seconds, _FORMAT), "string"),
        HostFunction("sleep", "Wait; the time counts towards the run's.", sleep, (pause,), "null"),
    ]


def _parse(text: str, form: str | None) -> int | float:
    try:
        if len(text) > _MAX_TEXT:
            raise ValueError("too long")
        moment = datetime.fromisoformat(text.strip()) if form is None else _read(text, form)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        wanted = "ISO 8601, such as 2026-01-31T12:00:00Z" if form is None else f"the format {form!r}"
        raise ToolError(f"invalid time {excerpt(text)!r}; expected {wanted}", code="invalid_data") from None
    whole = since.days * 86_400 + since.seconds
    return whole + since.microseconds / 1e6 if since.microseconds else whole


def _format(seconds: float, form: str | None) -> str:
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise Wrong("seconds must be in the years 1 to 9999") from None
    if form is None:
        return moment.isoformat().replace("+00:00", "Z")
    return _each(form, lambda directive: _written(moment, directive))


def _written(moment: datetime, directive: str) -> str:
    month, day = _MONTHS[moment.month - 1], _DAYS[moment.weekday()]
    half = "AM" if moment.hour < 12 else "PM"
    named = {"Y": f"{moment.year:04}", "B": month, "b": month[:3], "A": day, "a": day[:3], "p": half, "z": "+0000"}
    return named.get(directive) or moment.strftime("%" + directive)


def _read(text: str, form: str) -> datetime:
    used = re.findall(r"%(.)", form)
    for directive in used:
        if used.count(directive) > 1 and directive not in "aA%":
            raise Wrong(f"%{directive} is used twice in the format")
    checked = _each(form, "%{}".format)
    moment = datetime.strptime(text.strip(), checked)
    return moment if "Y" in used or "y" in used else moment.replace(year=1970)


def _each(form: str, directive: Callable[[str], str]) -> str:
    """The format with its directives replaced."""

    def replaced(found: re.Match[str]) -> str:
        if not found[1] or found[1] not in _DIRECTIVES:
            raise Wrong(f"unknown directive '{found[0]}'; known: {_KNOWN}")
        return directive(found[1])

    return re.sub(r"%(.?)", replaced, form, flags=re.DOTALL)
