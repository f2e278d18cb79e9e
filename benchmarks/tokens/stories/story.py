"""A story: one question that tools and a little arithmetic answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox import Sandbox, Tool
from tokens.conversation import KnownCall, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Story:
    """One question."""

    name: str
    title: str
    tools: tuple[Tool, ...]
    question: str
    calls: tuple[KnownCall, ...]
    answer: Callable[[list[Any]], Any]
    """What follows from the results of the calls; the script must come to the same."""
    reply: Callable[[Any], str]
    """The model's last word, given the answer."""
    script: Path

    def known(self) -> Any:
        """The answer, from the calls made one after the other."""
        with Sandbox(self.tools, min_workers=0) as sandbox:
            return self.answer([sandbox.call(name, arguments).unwrap() for name, arguments in self.calls])

    def turn(self, *, script: bool = True) -> Turn:
        """The conversation; without the script, one is made from the calls."""
        source = self.script.read_text(encoding="utf-8").strip() if script else None
        return Turn(self.question, self.calls, self.reply(self.known()), source)
