"""Functions log.debug, .info, .warn and .error: bounded messages to Python's logging."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from typing import Any

from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter
from moonbox.scripts.hostapi.grants import excerpt
from moonbox.values import to_jsonable

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


def functions(host: Host) -> Sequence[HostFunction]:
    logger, left = logging.getLogger(f"moonbox.script.{host.name}"), host.limits.max_log_records
    parameters = (
        Parameter("message", "data", required=True),
        Parameter("fields", "table", "values that belong to the message"),
    )

    def function(level: str) -> HostFunction:
        def run(message: bytes, fields: dict[str, Any] | None) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                return
            said = host.redact(message.decode("utf-8", "replace"))
            more = json.dumps(to_jsonable(host.redact(fields)), ensure_ascii=False) if fields else ""
            text = " ".join(excerpt(part, host.limits.max_log_message) for part in (said, more)).rstrip()
            # A script must not be able to forge lines of the host's log, nor to steer a terminal that shows it.
            line = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda match: repr(match[0])[1:-1], text)
            logger.log(_LEVELS[level], "%s", line)

        return HostFunction(f"log.{level}", "Write to the host's log.", run, parameters, "null")

    return [function(level) for level in _LEVELS]
