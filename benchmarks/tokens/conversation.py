"""Conversations built from known calls, each of them really made: direct, or by scripts."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox import CodeMode, Sandbox
from tokens import lua
from tokens.ledger import Bill, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox import Run, Tool

KnownCall = tuple[str, dict[str, Any]]
ALL = 10_000_000
"""Characters of a result that are shown. Nothing is cut: what is left out would look like a saving."""


@dataclass(frozen=True)
class Turn:
    """What the user says, the calls that answer it, and the model's last word."""

    message: str
    calls: tuple[KnownCall, ...]
    reply: str
    source: str | None = None
    """The script that a model would write; made from the calls where there is none."""


class Failed(Exception):
    """A script or a call that should have worked did not."""


def direct(
    tools: Sequence[Tool], turns: Sequence[Turn], count: Callable[[str], int], check: Callable[[int, list[Any]], None]
) -> tuple[Bill, Bill]:
    """One call a request, and all calls of a turn in one request: the most and the least that direct calling takes."""
    with Sandbox(tools, min_workers=0) as sandbox, CodeMode(sandbox, mode="never", max_chars=ALL) as mode:
        one, together = (Ledger(count, definition_texts(mode)) for _ in range(2))
        for number, turn in enumerate(turns):
            written = [_call(name, arguments) for name, arguments in turn.calls]
            # A copy: a tool may keep what it is given and change it later.
            replies = [mode.reply(name, copy.deepcopy(arguments)) for name, arguments in turn.calls]
            check(number, [_values(reply.run) for reply in replies])
            for ledger in (one, together):
                ledger.told(turn.message)
            for call, reply in zip(written, replies, strict=True):
                one.wrote(call)
                one.told(reply.text)
            if written:
                together.wrote(*written)
                together.told(*(reply.text for reply in replies))
            for ledger in (one, together):
                ledger.wrote(turn.reply)
    return one.bill, together.bill


def scripted(
    tools: Sequence[Tool],
    turns: Sequence[Turn],
    count: Callable[[str], int],
    check: Callable[[int, list[Any]], None],
    *,
    a_script_for_each_call: bool = False,
) -> tuple[Bill, Bill]:
    """One script a turn; or one for each call, as of a model that looks at every result before it goes on.

    With a catalog of signatures, as by default, and with one of full schemas.
    """
    with Sandbox(tools, min_workers=0) as sandbox, CodeMode(sandbox, mode="always", max_chars=ALL) as mode:
        with CodeMode(sandbox, mode="always", full_schemas=True) as full:
            ledgers = Ledger(count, definition_texts(mode)), Ledger(count, definition_texts(full))
        for number, turn in enumerate(turns):
            for ledger in ledgers:
                ledger.told(turn.message)
            values: list[Any] = []
            for source in _sources(turn, a_script_for_each_call):
                arguments = {mode.parameter: source}
                reply = mode.reply(mode.tool_name, arguments)
                if reply.run is None or not reply.run.ok:
                    raise Failed(f"{source}\n{reply.text}")
                for ledger in ledgers:
                    ledger.wrote(_call(mode.tool_name, arguments))
                    ledger.told(reply.text)
                values.extend(reply.run.values)
            check(number, values)
            for ledger in ledgers:
                ledger.wrote(turn.reply)
    return ledgers[0].bill, ledgers[1].bill


@dataclass(frozen=True)
class Auto:
    """What `mode="auto"` shows, and what a conversation costs with it."""

    bill: Bill
    shown: str
    """code, direct or both"""


def automatic(
    tools: Sequence[Tool],
    turns: Sequence[Turn],
    count: Callable[[str], int],
    known: tuple[Bill, Bill],
    *,
    learned: bool,
) -> Auto:
    """`mode="auto"` at first, or after it has seen the same conversation often enough to know its results.

    Where it shows both, a turn of one call is a direct call, and any other turn a script. `known` are the bills of
    direct calls and of scripts, which it costs where it shows only one of them.
    """
    with Sandbox(tools, min_workers=0) as sandbox:
        if learned:
            for _ in range(3):
                with CodeMode(sandbox, mode="auto", max_chars=ALL) as mode:
                    _mixed(mode, turns, count)
        with CodeMode(sandbox, mode="auto", max_chars=ALL) as mode:
            if not mode.choice.both:
                return Auto(known[mode.choice.code], "code" if mode.choice.code else "direct")
            return Auto(_mixed(mode, turns, count), "both")


def _mixed(mode: CodeMode, turns: Sequence[Turn], count: Callable[[str], int]) -> Bill:
    ledger = Ledger(count, definition_texts(mode))
    for turn in turns:
        ledger.told(turn.message)
        written: list[KnownCall] = list(turn.calls)
        if mode.choice.code and (len(turn.calls) != 1 or not mode.choice.both):
            written = [(mode.tool_name, {mode.parameter: source}) for source in _sources(turn, each=False)]
        for name, arguments in written:
            reply = mode.reply(name, copy.deepcopy(arguments))
            _values(reply.run)
            ledger.wrote(_call(name, arguments))
            ledger.told(reply.text)
        ledger.wrote(turn.reply)
    return ledger.bill


def definition_texts(mode: CodeMode) -> list[str]:
    """What goes with every request: the tool definitions, and the addition to the system prompt."""
    return [json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in mode.definitions("openai")] + (
        [mode.system_prompt] if mode.system_prompt else []
    )


def _call(name: str, arguments: dict[str, Any]) -> str:
    """As the model writes it: the name, and the arguments as JSON text."""
    return f"{name} {json.dumps(arguments, ensure_ascii=False, separators=(',', ':'))}"


def _sources(turn: Turn, each: bool) -> list[str]:
    if turn.source is not None:
        return [turn.source]
    if not turn.calls:
        return []
    return [lua.script([call]) for call in turn.calls] if each else [lua.script(turn.calls)]


def _values(run: Run | None) -> Any:
    if run is None:
        raise Failed("the call was not understood")
    if run.error is not None:
        raise Failed(str(run.error))
    return run.value
