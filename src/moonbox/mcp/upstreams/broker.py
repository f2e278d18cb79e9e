"""The broker: finds who can answer a question that a server asks back, and passes it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_types import INVALID_REQUEST, ErrorData

from moonbox.mcp.caller import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_types import InputRequest, InputResponse

    from moonbox.mcp.caller import Caller

__all__ = ["Broker", "Offers"]


@dataclass(frozen=True, slots=True)
class Offers:
    """What is promised to servers: that these can be asked for."""

    sampling: bool = False
    elicitation: bool = False
    roots: bool = False


class Broker:
    """Knows which calls are under way on which server.

    A question of the newer protocol belongs to a call and comes with it. One of the earlier protocol comes by itself:
    it is passed on when all calls under way on that server are of one client, and refused when they are of several,
    so that nobody is asked about another's affairs. `alone` answers when no call is under way.
    """

    def __init__(self, offers: Offers, alone: Callable[[], Caller | None] = lambda: None) -> None:
        self.offers = offers
        self._alone = alone
        self._under_way: dict[str, list[Caller]] = {}

    def began(self, server: str, caller: Caller) -> None:
        self._under_way.setdefault(server, []).append(caller)

    def ended(self, server: str, caller: Caller) -> None:
        self._under_way[server].remove(caller)

    async def answer(self, server: str, request: InputRequest) -> InputResponse | ErrorData:
        caller = CALLER.get()
        if caller is None:
            under_way = self._under_way.get(server, [])
            if len({item.client for item in under_way}) > 1:
                return _refusal(f"{request.method} is refused: several clients use this server at the moment")
            caller = under_way[-1] if under_way else self._alone()
        if caller is None:
            return _refusal(f"{request.method} is refused: no client is there to answer it")
        return await caller.forward(request)


def _refusal(message: str) -> ErrorData:
    return ErrorData(code=INVALID_REQUEST, message=message)
