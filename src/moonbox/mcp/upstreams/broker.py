"""The broker: who answers when servers ask back, and what is promised to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.mcp.caller import Caller

__all__ = ["Broker", "Offers"]


@dataclass(frozen=True, slots=True)
class Offers:
    """What is promised to servers: that these can be asked for."""

    sampling: bool = False
    elicitation: bool = False
    roots: bool = False


@dataclass(frozen=True, slots=True)
class Broker:
    """What all servers share. Questions go to whoever's call they concern."""

    offers: Offers = field(default_factory=Offers)
    alone: Callable[[], Caller | None] = lambda: None
    """Who is asked while no call is under way; None where nobody is."""
