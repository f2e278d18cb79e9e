"""Rhai scripts as the checker sees them, read by the compiler's own parser in a Lua state of the host.

That state only parses. It has no globals, no library but those for text, tables and numbers, and no way to load code or
to reach Python. Memory and instructions are bounded, so that no text can exhaust or hang the host.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import lupa.lua54 as lua54  # not from lupa, whose own way of loading it fails in two threads at once
import msgspec

from moonbox.languages.program import Outline, Program, packed_program
from moonbox.languages.rhai.language import PARSER, folder_source
from moonbox.languages.tables import text

_MOST_MEMORY = 64 * 2**20
_MOST_INSTRUCTIONS = 5_000_000
_DECODER = msgspec.json.Decoder(Outline)


class SyntaxProblem(NamedTuple):
    """Why a text is no script."""

    message: str
    line: int | None
    column: int | None


def rhai_program(source: str) -> Program | None:
    """The script's program; None where it cannot be followed."""
    outline = rhai_outline(source)
    return packed_program(outline, source) if isinstance(outline, Outline) else None


def rhai_outline(source: str) -> Outline | SyntaxProblem | None:
    """The script's outline, or why it has none; None where it is too long."""
    _, parse = parser_state()
    try:
        outline, message, line, column = parse(source.encode())
    except (UnicodeEncodeError, lua54.LuaError):
        return None
    if outline is not None:
        return _DECODER.decode(outline)
    return None if message is None else SyntaxProblem(message.decode("utf-8", "replace"), line, column)


@cache
def parser_state() -> tuple[Any, Callable[[bytes], tuple[bytes | None, bytes | None, int | None, int | None]]]:
    """A Lua state, and its function that reads a script: the outline, or the message, line and column of a problem."""
    state = lua54.LuaRuntime(
        encoding=None,
        register_eval=False,
        register_builtins=False,
        unpack_returned_tuples=True,
        max_memory=_MOST_MEMORY,
    )
    parts = [folder_source("compiler", (*PARSER, "outline")), f"local most={_MOST_INSTRUCTIONS}"]
    return state, state.execute("\n".join([*parts, text("rhai/parser_state.lua")]).encode())
