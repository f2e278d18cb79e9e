"""The question to the person at the terminal before a tool with policy "approve" runs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from typing import TYPE_CHECKING, Any

from moonbox.audit.terminal import visible
from moonbox.cli.screen import is_terminal
from moonbox.sandbox.decisions import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from moonbox.cli.calls import CallLine
    from moonbox.sandbox.decisions import ToolCall

__all__ = ["Approver"]

_TERMINAL = "/dev/tty"
_LONGEST = 2000  # characters of one argument that are shown before `v` is asked for


class Approver:
    """Give it to a Sandbox as `approve`. It reads the terminal itself: standard input may be the script."""

    def __init__(self, terminal: int, console: Console, line: CallLine) -> None:
        self._terminal = terminal
        self._console = console
        self._line = line
        self._one_at_a_time = threading.Lock()
        self._bell_in, self._bell_out = os.pipe()
        self._withdrawn = False

    @classmethod
    def at_terminal(cls, console: Console, line: CallLine) -> Approver | None:
        """None where nobody can be asked: such calls are then refused."""
        if not is_terminal(stderr=True):
            return None
        try:
            return cls(os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY), console, line)
        except OSError:
            return None

    def __call__(self, call: ToolCall) -> Decision:
        with self._one_at_a_time, self._line.hidden():
            if self._withdrawn:  # another call of the same batch was being asked about meanwhile
                return Decision("deny")
            cut = self._show(call, shortened=True)
            question = "run it? [y]es, [n]o, [a]lways, [e]dit" + ", [v]iew all" * cut + ": "
            while True:
                answer = self._read(question)
                if answer is None:
                    return Decision("deny")
                decision = self._understood(answer, call)
                if decision is not None:
                    return decision

    def begin(self) -> None:
        """A run begins, whose calls may be asked about."""
        self._withdrawn = False

    def withdraw(self) -> None:
        """Nobody waits for an answer any more: questions that stand, or wait for their turn, are answered with no."""
        self._withdrawn = True
        os.write(self._bell_out, b"!")
        with self._one_at_a_time:
            self._drain_bell()

    def close(self) -> None:
        self.withdraw()
        for fd in (self._terminal, self._bell_in, self._bell_out):
            os.close(fd)

    def _understood(self, answer: str, call: ToolCall) -> Decision | None:
        word, _, rest = answer.strip().partition(" ")
        match word.lower():
            case "y" | "yes":
                return Decision("allow")
            case "n" | "no":  # what follows is the reason that the script is told
                return Decision("deny", rest.strip())
            case "a" | "always":
                return Decision("always")
            case "e" | "edit":
                return self._edited(call)
            case "v" | "view":
                self._show(call, shortened=False)
        return None

    def _edited(self, call: ToolCall) -> Decision | None:
        before: Mapping[str, Any] = call.arguments if isinstance(call.arguments, dict) else {}
        answer = self._read('fields to change, as JSON such as {"path": "b.txt"} (empty: back): ')
        if not answer or not answer.strip():
            return None
        try:
            changes = json.loads(answer)
        except ValueError as problem:
            self._console.print(f"  that is not JSON: {problem}", style="red")
            return None
        if not isinstance(changes, dict):
            self._console.print("  give an object, in braces", style="red")
            return None
        return Decision("edit", arguments={**before, **changes})

    def _show(self, call: ToolCall, *, shortened: bool) -> bool:
        """Show the call; True when something of it was left out."""
        from rich.text import Text

        text = Text()
        text.append(f"{visible(call.name, keep='')}", "bold yellow")
        text.append(" needs your agreement")
        description = (call.tool.description if call.tool is not None else "").strip().partition("\n")[0]
        if description:
            text.append(f": {visible(description, keep='')}", "dim")
        arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
        left_out = 0
        for name, value in arguments.items():
            shown = json.dumps(value, ensure_ascii=False, default=str)
            cut = max(0, len(shown) - _LONGEST) if shortened else 0
            text.append(f"\n  {visible(name, keep='')}", "blue")
            text.append(f" = {visible(shown[: len(shown) - cut], keep='')}")
            if cut:
                left_out += cut
                text.append(f" … {cut:,} more characters are not shown", "bold red")
        self._console.print(text, soft_wrap=True)
        return left_out > 0

    def _read(self, question: str) -> str | None:
        """A line that the person typed; None at the end of input and when the question was withdrawn."""
        self._console.print(question, end="", style="bold", soft_wrap=True)
        self._console.file.flush()
        ready, _, _ = select.select([self._terminal, self._bell_in], [], [])
        line = b"" if self._bell_in in ready else os.read(self._terminal, 4096)
        if not line:
            self._console.print()
        return line.decode(errors="replace") if line else None

    def _drain_bell(self) -> None:
        os.set_blocking(self._bell_in, False)
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell_in, 64)
        os.set_blocking(self._bell_in, True)
