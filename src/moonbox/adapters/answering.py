"""Answers to a model's calls: one by one, or all of one turn at once."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.codemode.mode import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.codemode.mode import CodeMode

__all__ = ["ModelCall", "aanswer", "aanswer_all", "answer", "answer_all"]

_MOST_THREADS = 8
_CUT = (
    "error: your answer ended at its token limit in the middle of this call, so it was not run; "
    "write a shorter script, or several smaller ones"
)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call that the model made, out of whichever object it came in."""

    id: str
    name: str
    arguments: Any
    """A dict, or the JSON text that should be one."""
    cut: bool = False
    """The model's answer ended at its token limit, perhaps inside this call."""
    origin: Any = None
    """The provider's own object, for what its result must repeat."""


def answer(mode: CodeMode, call: ModelCall, conversation: str) -> Reply:
    return Reply(_CUT, True) if call.cut else mode.reply(call.name, call.arguments, conversation=conversation)


async def aanswer(mode: CodeMode, call: ModelCall, conversation: str) -> Reply:
    return Reply(_CUT, True) if call.cut else await mode.areply(call.name, call.arguments, conversation=conversation)


def answer_all(mode: CodeMode, calls: Sequence[ModelCall], conversation: str) -> list[Reply]:
    lanes = _lanes(mode, calls)

    def drive(lane: list[int]) -> list[Reply]:
        return [answer(mode, calls[index], conversation) for index in lane]

    if len(lanes) <= 1:
        return [reply for lane in lanes for reply in drive(lane)]
    with ThreadPoolExecutor(min(len(lanes), _MOST_THREADS), "moonbox-calls") as threads:
        waiting = [threads.submit(contextvars.copy_context().run, drive, lane) for lane in lanes]
        return _in_order(lanes, [future.result() for future in waiting])


async def aanswer_all(mode: CodeMode, calls: Sequence[ModelCall], conversation: str) -> list[Reply]:
    lanes = _lanes(mode, calls)

    async def drive(lane: list[int]) -> list[Reply]:
        return [await aanswer(mode, calls[index], conversation) for index in lane]

    return _in_order(lanes, await asyncio.gather(*(drive(lane) for lane in lanes)))


def _lanes(mode: CodeMode, calls: Sequence[ModelCall]) -> list[list[int]]:
    """Which calls may run together: scripts share their state and follow each other, other calls are independent."""
    scripts = [index for index, call in enumerate(calls) if call.name == mode.tool_name]
    others = [[index] for index in range(len(calls)) if index not in scripts]
    return [scripts, *others] if scripts else others


def _in_order(lanes: list[list[int]], replies: Sequence[list[Reply]]) -> list[Reply]:
    placed: dict[int, Reply] = {}
    for lane, done in zip(lanes, replies, strict=True):
        placed.update(zip(lane, done, strict=True))
    return [placed[index] for index in sorted(placed)]
