"""Functions log.debug, .info, .warn and .error: records kept up to a bound and passed on to Python's logging."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox.scripts.hostapi.functions import HostLimits

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


def functions(host: Host) -> Sequence[HostFunction]:
    parameters = (
        Parameter("message", "data", required=True),
        Parameter("fields", "table", "values that belong to the message"),
    )

    def logger(level: str) -> HostFunction:
        def run(message: bytes, fields: dict[str, Any] | None) -> None:
            host.log(level, message.decode("utf-8", "replace"), fields)

        return HostFunction(f"log.{level}", "Write to the host's log.", run, parameters, "null")

    return [logger(level) for level in _LEVELS]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One call of log.debug, .info, .warn or .error."""

    level: str
    message: str
    fields: dict[str, Any] | None
    time: float


class ScriptLog:
    """The records of one HostApi; past the bound they are counted, not kept."""

    def __init__(self, name: str, limits: HostLimits, clock: Callable[[], float]) -> None:
        self._logger = logging.getLogger(f"moonbox.script.{name}")
        self._limits, self._clock = limits, clock
        self.records: list[LogRecord] = []
        self.dropped = 0

    def add(self, level: str, message: str, fields: dict[str, Any] | None) -> None:
        """The message and fields must not contain secrets any more."""
        if len(self.records) >= self._limits.max_log_records:
            self.dropped += 1
            return
        most = self._limits.max_log_message
        text = json.dumps(to_jsonable(fields), ensure_ascii=False) if fields else ""
        if len(message) > most:
            message = message[:most] + "…"
        if len(text) > most:
            fields, text = {"cut": text[:most]}, text[:most] + "…"
        self.records.append(LogRecord(level, message, fields, self._clock()))
        self._logger.log(_LEVELS[level], "%s", _one_line(f"{message} {text}".rstrip()))


def _one_line(text: str) -> str:
    """A script must not be able to forge lines of the host's log, nor to steer a terminal that shows it."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda match: repr(match[0])[1:-1], text)
