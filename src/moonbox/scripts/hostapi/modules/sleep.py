"""Function sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.errors import ToolError
from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.function import Host, HostFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["functions"]


def functions(host: Host) -> Sequence[HostFunction]:
    def sleep(seconds: float) -> None:
        if host.closing.wait(seconds):
            raise ToolError("the host is closing", code="cancelled")

    most = host.limits.max_sleep
    seconds = Parameter("seconds", "number", f"at most {most:g}", required=True, least=0, most=most)
    return [HostFunction("sleep", "Wait; the time counts towards the run's.", sleep, (seconds,), "null", blocking=True)]
