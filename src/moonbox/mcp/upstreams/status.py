"""The state of an upstream, as a value that any thread may read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

__all__ = ["STATES", "State", "Status"]

State = Literal["off", "idle", "starting", "ready", "retrying", "failed", "closed"]
STATES: tuple[str, ...] = get_args(State)


@dataclass(frozen=True, slots=True)
class Status:
    """How one server is.

    off        switched off in the configuration
    idle       started at the first call
    starting   being started, or connected to
    ready      answers
    retrying   lost or not reached; tried again after a while
    failed     given up after several attempts; a call tries once more
    closed     ended with us
    """

    name: str
    state: State
    where: str = ""
    reason: str = ""
    """Why it is not ready."""
    tools: int = 0
    problems: tuple[str, ...] = ()
    """Tools that could not be taken, and why."""
    protocol: str = ""
    server: str = ""
    """What the server calls itself."""
    seconds: float | None = None
    """How long the latest start took."""
    attempts: int = 0
    """Starts that failed since it was last ready."""
    retry_at: float | None = None
    """On the monotonic clock: when it is tried again."""
    restarts: int = 0
    said: str = ""
    """The end of what the process wrote to its standard error."""

    @property
    def settled(self) -> bool:
        """Whether the first attempt is over, however it ended."""
        return self.state != "starting"

    def why(self) -> str:
        """One sentence for whoever wants to call it."""
        match self.state:
            case "retrying":
                again = f"{self.reason}; it is tried again in {self._rest():.0f} s"
                return f"the MCP server '{self.name}' is not available: {again}"
            case "failed":
                tried = f"after {self.attempts} attempts: {self.reason}; it is tried once more now"
                return f"the MCP server '{self.name}' is not available {tried}"
            case "starting":
                return f"the MCP server '{self.name}' is still starting"
            case "off":
                return f"the MCP server '{self.name}' is switched off"
            case "closed":
                return f"the MCP server '{self.name}' was ended"
        return f"the MCP server '{self.name}' is {self.state}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": self.state,
            "where": self.where,
            "reason": self.reason,
            "tools": self.tools,
            "problems": list(self.problems),
            "protocol": self.protocol,
            "server": self.server,
            "seconds": self.seconds,
            "attempts": self.attempts,
            "retry_in": None if self.retry_at is None else round(self._rest(), 1),
            "restarts": self.restarts,
            "said": self.said,
        }

    def _rest(self) -> float:
        return max(0.0, (self.retry_at or 0.0) - time.monotonic())
