"""Leases: which process may continue a Repl, and whether it still lives."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from moonbox.audit.writers import Writer
from moonbox.errors import UsageError

LEASE_SECONDS = 20.0
"""A lease that its holder does not renew for so long is lost."""


class InUse(UsageError):
    """A living process holds the Repl."""


class Held(Struct, frozen=True, kw_only=True):
    """The right to write to one Repl's journal, until another process takes it."""

    repl: str
    fence: int


def this_process(journal: str) -> str:
    """The name under which this process holds leases through one open journal."""
    return f"{journal} {msgspec.json.encode(Writer.current()).decode()}"


def is_held(holder: str, expires: float, now: float) -> bool:
    """Whether the lease still counts. A dead process loses it at once, where its death can be seen."""
    if not holder or expires <= now:
        return False
    return _process(holder).state() != "interrupted"


def in_words(holder: str) -> str:
    """For messages."""
    process = _process(holder)
    return f"process {process.pid}" + ("" if process.state() == "running" else " in another container or machine")


def _process(holder: str) -> Writer:
    return msgspec.json.decode(holder.partition(" ")[2], type=Writer)
