"""Functions log.debug, .info, .warn and .error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.function import Host, HostFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["functions"]

_MESSAGE = Parameter("message", "data", required=True)
_FIELDS = Parameter("fields", "table", "values that belong to the message")


def functions(host: Host) -> Sequence[HostFunction]:
    def logger(level: str) -> HostFunction:
        def run(message: bytes, fields: dict[str, Any] | None) -> None:
            host.log(level, message.decode("utf-8", "replace"), fields)

        return HostFunction(f"log.{level}", "Write to the host's log.", run, (_MESSAGE, _FIELDS), "null")

    return [logger(level) for level in ("debug", "info", "warn", "error")]
