"""Approvals at the terminal: the question about a call, and the person's answer."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
from typing import TYPE_CHECKING, Any

from moonbox.cli.output import forget_typed, is_terminal, user_name
from moonbox.cli.run_options import json_or_text
from moonbox.errors import Denied
from moonbox.runs.decisions import Decision, about_script
from moonbox.threads import in_thread, own_thread
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from moonbox.cli.session import CallLine
    from moonbox.runs.decisions import ToolCall

_TERMINAL = "/dev/tty"
_LONGEST = 2000  # characters of one argument that are shown before `v`


async def announce(call: ToolCall) -> Decision:
    """A Sandbox's `approve` without a terminal: says how to answer in the journal."""
    answer = f"moonbox approvals answer {call.question} --allow, or --deny"
    print(visible(f"{call.tool} waits for approval: {answer}", keep=""), file=sys.stderr, flush=True)
    raise Denied("there is no terminal to ask you on", code="approval_unavailable")


async def refuse(call: ToolCall) -> Decision:
    """A Sandbox's `approve` without a terminal, where no person is waited for."""
    reason = f"the tool '{call.tool}' needs your approval, and there is no terminal to ask you on"
    raise Denied(f"{reason}; with --wait-for-approval the call waits for `moonbox approvals answer`")


class Approver:
    """A Sandbox's `approve`: asks at the terminal itself, because standard input may be the script.

    Calls of one batch ask from threads of their own, one at a time. A pipe (the bell) wakes the thread that waits for
    an answer: after Ctrl-C, which is handled in the main thread, and when another approver has answered.
    """

    def __init__(self, terminal: int, console: Console, line: CallLine) -> None:
        self._terminal = terminal
        self._console = console
        self._line = line
        self._one_at_a_time = threading.Lock()
        self._bell_in, self._bell_out = os.pipe()
        os.set_blocking(self._bell_in, False)
        self._withdrawn = False
        self._asked: threading.Event | None = None  # of the call whose question is on the screen
        self._person = user_name()

    @classmethod
    def at_terminal(cls, console: Console, line: CallLine) -> Approver | None:
        """None without a terminal: such calls are then denied."""
        if not is_terminal(stderr=True):
            return None
        try:
            return cls(os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY), console, line)
        except OSError:
            return None

    async def __call__(self, call: ToolCall) -> Decision:
        from asyncio import CancelledError  # slow to load, and most scripts need no approval

        settled = threading.Event()
        try:
            decision: Decision = await in_thread(self._ask, call, settled, start=own_thread)
        except CancelledError:  # another approver has answered, or the script was stopped
            settled.set()
            if self._asked is settled:
                os.write(self._bell_out, b"!")
            raise
        return decision

    def _ask(self, call: ToolCall, settled: threading.Event) -> Decision:
        with self._one_at_a_time, self._line.hidden():
            self._asked = settled
            self._drain_bell()
            if self._withdrawn or settled.is_set():  # while this call waited for its turn
                return Decision("deny")
            cut = self._show(call, shortened=True)
            question = "allow it? [y]es, [n]o, [a]lways, [e]dit" + ", [v]iew all" * cut + ": "
            while True:
                answer = self._read(question)
                if answer is None:
                    return Decision("deny")
                decision = self._decision(answer, call)
                if decision is not None:
                    return decision

    def begin(self) -> None:
        """A run begins."""
        self._withdrawn = False

    def withdraw(self) -> None:
        """The run was cancelled: deny the call that is being asked about, and those that wait for their turn."""
        self._withdrawn = True
        os.write(self._bell_out, b"!")
        with self._one_at_a_time:
            self._drain_bell()

    def close(self) -> None:
        self.withdraw()
        for fd in (self._terminal, self._bell_in, self._bell_out):
            os.close(fd)

    def _decision(self, answer: str, call: ToolCall) -> Decision | None:
        word, _, rest = answer.strip().partition(" ")
        match word.lower():
            case "y" | "yes":
                return Decision("allow", by=self._person)
            case "n" | "no":  # the text after it is the reason, which the script receives
                return Decision("deny", rest.strip(), by=self._person)
            case "a" | "always":
                return Decision("always", by=self._person)
            case "e" | "edit":
                return self._edited(call)
            case "v" | "view":
                self._show(call, shortened=False)
        return None

    def _edited(self, call: ToolCall) -> Decision | None:
        before: Mapping[str, Any] = call.arguments if isinstance(call.arguments, dict) else {}
        answer = self._read('fields to change, as JSON such as {"path": "b.txt"} (empty to go back): ')
        if not answer or not answer.strip():
            return None
        changes = json_or_text(answer)
        if not isinstance(changes, dict):
            self._console.print("  invalid JSON: an object is required, in braces", style="red")
            return None
        return Decision("edit", arguments={**before, **changes}, by=self._person)

    def _show(self, call: ToolCall, *, shortened: bool) -> bool:
        """Show the call. Returns True if something was left out."""
        from rich.text import Text

        text = Text()
        text.append(f"{visible(call.tool, keep='')}", "bold yellow")
        text.append(" needs your approval")
        description = (call.definition.description if call.definition is not None else "").strip().partition("\n")[0]
        if description:
            text.append(f": {visible(description, keep='')}", "dim")
        if call.changed:
            parts = ", ".join(call.changed)
            text.append(f"\n  its definition has changed since you chose always: {parts}", "bold red")
        arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
        left_out = 0
        for line in about_script(call) if call.kind == "script" else ():
            text.append(f"\n  {visible(line, keep='')}", "yellow")
        for name, value in arguments.items():
            written = json.dumps(value, ensure_ascii=False, default=str)
            cut = max(0, len(written) - _LONGEST) if shortened else 0
            text.append(f"\n  {visible(name, keep='')}", "blue")
            text.append(f" = {visible(written[: len(written) - cut], keep='')}")
            if cut:
                left_out += cut
                text.append(f" … {counted(cut, 'more character')} not shown", "bold red")
        self._console.print(text, soft_wrap=True)
        return left_out > 0

    def _read(self, question: str) -> str | None:
        """A line that the person typed; None at the end of input, and when the run was cancelled."""
        forget_typed(self._terminal)  # ignore what was typed before the question
        self._console.print(question, end="", style="bold", soft_wrap=True)
        self._console.file.flush()
        ready, _, _ = select.select([self._terminal, self._bell_in], [], [])
        line = b"" if self._bell_in in ready else os.read(self._terminal, 4096)
        if not line:
            self._console.print()
        return line.decode(errors="replace") if line else None

    def _drain_bell(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell_in, 64)
