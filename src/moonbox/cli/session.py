"""One Repl as the command line drives it: calls are shown and approved at the terminal; Ctrl-C stops the script."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moonbox.cli.output import console, forget_typed, is_terminal, user_name
from moonbox.cli.run_options import CommandRunOptions, json_or_text
from moonbox.closing import Closing
from moonbox.compact import short
from moonbox.errors import Denied
from moonbox.runs.decisions import Decision, Middleware, ToolCall, about_script
from moonbox.runs.record import ScriptProgress, progress_words
from moonbox.threads import in_thread, own_thread
from moonbox.wording import counted, seconds, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

    from moonbox.audit.records import Run
    from moonbox.runs.call_entry import CallEntry
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PER_SECOND = 12
_BAR = 40  # columns
_TERMINAL = "/dev/tty"
_LONGEST = 2000  # characters of one argument that are shown before `v`


class Session(Closing):
    """Opens the Sandbox that the options describe, with the tools of its project, and one Repl in it.

    `wait` is how many seconds MCP servers have to start; with `sources`, all scripts there will be, only those that
    they use are started. `on_output` gets what scripts print, as it comes.
    """

    def __init__(
        self,
        options: CommandRunOptions,
        language: str,
        *,
        wait: float = 0.0,
        sources: Sequence[str] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        self._closing = contextlib.ExitStack()
        self.latest: Run | None = None
        """The latest run."""
        screen = console(stderr=True) if is_terminal(stderr=True) else None
        self._line = CallLine(screen)
        self._approver: Approver | None = None
        if screen is not None:
            with contextlib.suppress(OSError):  # there is no terminal to ask on
                terminal = os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
                self._approver = Approver(terminal, screen, self._line)
                self._closing.callback(self._approver.close)
        try:
            trail, config = options.open_trail(), options.project
            keeps_questions = options.journal is not None or bool(config and config.section("journal"))
            without_terminal = None if not keeps_questions else announce if options.wait_for_approval else refuse
            self.sandbox: Sandbox = options.open(
                language,
                approve=self._approver or without_terminal,
                on_call=self._line if self._line.shown else None,
                audit=trail,
                on_output=on_output and self._beside_line(on_output),
            )
            self._closing.callback(self.sandbox.close)
            if config is not None:
                from moonbox.project.assembly import add_project_tools

                add_project_tools(config, self.sandbox, self._closing, sink=trail, wait=wait, sources=sources)
            if not options.yes:
                self.sandbox.add_middleware(Middleware(before=_refuse_destructive))
            self.repl: Repl = self.sandbox.repl(before_write=self._remember)
        except BaseException:
            self._closing.close()
            raise

    def _beside_line(self, show: Callable[[str], None]) -> Callable[[str], None]:
        """Hide the line of calls while text is shown, because both use the same place."""

        def shown(text: str) -> None:
            with self._line.hidden():
                show(text)

        return shown

    def _remember(self, run: Run) -> Run:
        """Keep the record, also that of a run that was interrupted, which its caller does not get."""
        self.latest = run
        return run

    def run(self, source: str, *, inputs: Mapping[str, Any] | None = None) -> Run:
        """Run a script; `inputs` are its globals.

        After Ctrl-C: the record of what the script did until then, with the error `cancelled`.
        """
        before = self.latest
        if self._approver is not None:
            self._approver.begin()
        try:
            with self._line.watching():
                return self.repl.run(source, inputs=inputs, on_progress=self._line.advance)
        except KeyboardInterrupt:
            if self._approver is not None:
                self._approver.withdraw()
            if self.latest is None or self.latest is before:  # the script did not start
                raise
            return self.latest

    def close(self) -> None:
        self._closing.close()


def _refuse_destructive(call: ToolCall) -> None:
    """Raise Denied for a tool that may delete or overwrite, as in code mode, where scripts do not reach it."""
    tool = call.definition
    if tool is not None and tool.policy == "auto" and tool.hints.destructive:
        raise Denied(f"the tool '{call.tool}' may delete or overwrite; to let scripts call it, use --yes")


class CallLine:
    """The line that shows tool calls and progress as they happen, if there is a terminal; a Sandbox's `on_call`.

    The line appears with the first call or report of a run and goes when it ends. Calls begin and end in threads of the
    Sandbox, and the line is drawn in a thread of its own, so that one lock guards everything.
    """

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self.shown = console is not None
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._watching = False
        self._hidden = 0
        self._began = 0.0
        self._made = self._failed = 0
        self._open: dict[int, CallEntry] = {}
        self._progress: ScriptProgress | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Show the line during one run."""
        with self._lock:
            self._began, self._made, self._failed, self._open = time.monotonic(), 0, 0, {}
            self._watching, self._progress = True, None
        try:
            yield
        finally:
            with self._lock:
                self._watching = False
                self._stop()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while a person is asked."""
        with self._lock:
            self._hidden += 1
            self._stop()
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1

    def __call__(self, entry: CallEntry) -> None:
        """A call has begun or ended; from any thread."""
        with self._lock:
            if not self._watching:
                return
            if entry.open:
                self._made += 1
                self._open[entry.index] = entry
            else:
                self._open.pop(entry.index, None)
                self._failed += entry.status != "ok"
            if self._live is None and not self._hidden:
                self._start()

    def advance(self, progress: ScriptProgress) -> None:
        """The script says how far it is; a Repl's `on_progress`."""
        with self._lock:
            self._progress = progress
            if self._watching and self._live is None and not self._hidden:
                self._start()

    def _start(self) -> None:
        if not self.shown:
            return
        from rich.live import Live

        self._live = Live(
            get_renderable=self._shown, console=self._console, refresh_per_second=_PER_SECOND, transient=True
        )
        self._live.start(refresh=True)

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _shown(self) -> RenderableType:
        """A bar where the script says how much there is to do, and the line of calls."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        progress = self._progress
        if progress is None:
            return self._text()
        words = Text(progress_words(progress), no_wrap=True, overflow="ellipsis")
        bar = [ProgressBar(progress.total, progress.done, width=_BAR)] if progress.total else []
        return Group(*bar, words, *([self._text()] if self._made else []))

    def _text(self) -> Text:
        from rich.text import Text

        elapsed = time.monotonic() - self._began
        failed, waiting = self._failed, list(self._open.values())
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{_SPINNER[int(elapsed * _PER_SECOND) % len(_SPINNER)]} ", "cyan")
        line.append(counted(self._made, "call"), "bold")
        if failed:
            line.append(f", {failed} failed", "red")
        line.append(f" · {seconds(elapsed)}", "dim")
        if waiting:
            line.append(f" · {visible(waiting[0].tool, keep='')} ", "cyan")
            line.append(visible(short(waiting[0].arguments, 100), keep=""))
            if len(waiting) > 1:
                line.append(f" and {len(waiting) - 1} more", "dim")
        return line


# Approvals


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
