"""Leases: which process may continue a Repl. A dead process loses its leases at once, where its death can be seen."""

from __future__ import annotations

from msgspec import DecodeError, json

from moonbox.audit.writers import Writer

LEASE_SECONDS = 20.0
"""A lease that its holder does not renew for so long is lost."""


def this_process(journal: str) -> str:
    """The name under which this process holds leases through one open journal."""
    return f"{journal} {json.encode(Writer.current()).decode()}"


def is_held(holder: str, expires: float, now: float) -> bool:
    """Whether the lease still counts."""
    if not holder or expires <= now:
        return False
    process = _process(holder)
    return process is None or process.state() != "interrupted"


def in_words(holder: str) -> str:
    """For messages."""
    process = _process(holder)
    if process is None:
        return "another process"
    return f"process {process.pid}" + ("" if process.state() == "running" else " in another container or machine")


def _process(holder: str) -> Writer | None:
    """None for the name of an earlier version."""
    try:
        return json.decode(holder.partition(" ")[2], type=Writer)
    except DecodeError:
        return None
