"""The choice between the code tool and direct definitions: what either costs, and why one was taken."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.codemode.definitions import in_format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox.codemode.definitions import Definition

__all__ = ["Choice", "choose", "rough_tokens"]

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """Which way the tools are shown, and why."""

    code: bool
    code_tokens: int
    """What goes with every request in code mode: the code tool, its catalog, the direct tools and the system prompt."""
    direct_tokens: int
    """The same with every tool direct: their definitions."""
    reason: str


def choose(
    mode: str,
    with_code: Sequence[Definition],
    all_direct: Sequence[Definition],
    *,
    prompt: str,
    hidden: int,
    count: Callable[[str], int],
) -> Choice:
    """Take what the mode says; `auto` takes what is smaller. `hidden` is how many tools scripts would reach."""
    code_tokens = count(_sent(with_code)) + (count(prompt) if prompt else 0)
    direct_tokens = count(_sent(all_direct))
    if mode == "never":
        code, why = False, "mode is never"
    elif mode == "always" or not all_direct:
        code, why = True, f"mode is {mode}"
    elif not hidden:
        code, why = False, "no tool may be called from scripts"
    elif code_tokens < direct_tokens:
        code, why = True, "the code tool is smaller"
    else:
        code, why = False, "direct definitions are smaller"
    sizes = f"{code_tokens} tokens with the code tool, {direct_tokens} with every tool direct"
    return Choice(code, code_tokens, direct_tokens, f"{why} ({sizes})")


def rough_tokens(text: str) -> int:
    """About four bytes to a token: good enough to compare definitions, not to bill by."""
    return (len(text.encode("utf-8", "replace")) + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN


def _sent(definitions: Sequence[Definition]) -> str:
    """The definitions as a request carries them; the formats differ by a few characters for each tool."""
    return json.dumps(in_format(definitions, "anthropic"), ensure_ascii=False, separators=(",", ":"))
