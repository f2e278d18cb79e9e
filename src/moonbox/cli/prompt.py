"""The prompt: an editor for scripts with history, highlighting, completion and several lines."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.formatted_text import AnyFormattedText
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.lexers import Lexer

__all__ = ["Prompt", "history_path"]

_OPENS = re.compile(r"(\b(then|do|else|repeat)|\bfunction\b[^()]*\([^()]*\)|[{(\[])\s*$")
_CLOSES = re.compile(r"\s*(end\b|else\b|elseif\b|until\b|[})\]])")
_INDENT = "  "
_STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "continuation": "ansibrightblack",
        "pygments.keyword": "ansimagenta",
        "pygments.keyword.constant": "ansimagenta",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansicyan",
        "pygments.comment": "ansibrightblack italic",
        "pygments.name.builtin": "ansiblue",
        "pygments.name.function": "ansiblue",
    }
)


def history_path() -> Path:
    """Where what was typed is kept: beside the audit trail, in the user's folder for state."""
    from moonbox.audit.sinks import default_path

    return default_path().with_name("repl_history")


class Prompt:
    """Asks for one script after another."""

    def __init__(self, language: str, completer: Completer, is_complete: Callable[[str], bool]) -> None:
        label = f"{language}> "
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", label)],
            prompt_continuation=_continuation,
            multiline=True,
            key_bindings=_keys(is_complete),
            completer=completer,
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            history=_history(history_path()),
            lexer=_lexer(language),
            style=_STYLE,
            include_default_pygments_style=False,
        )

    def ask(self) -> str:
        """What was typed. KeyboardInterrupt after Ctrl-C, EOFError after Ctrl-D."""
        return self._session.prompt()


def _continuation(width: int, line: int, wrapped: int) -> AnyFormattedText:
    """What stands before a further line; nothing where a long line only wraps."""
    return [("class:continuation", " " * width if wrapped else "." * (width - 2) + "> ")]


def _keys(is_complete: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # Enter takes the completion, no more
        elif buffer.text.startswith(":") or not buffer.text.strip() or is_complete(buffer.text):
            _dedent(buffer)
            buffer.validate_and_handle()
        else:
            _dedent(buffer)
            buffer.insert_text("\n" + _indentation(buffer.document.current_line_before_cursor))

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("tab")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not buffer.document.current_line_before_cursor.strip():
            buffer.insert_text(_INDENT)
        elif buffer.complete_state is not None:
            buffer.complete_next()
        else:
            buffer.start_completion(insert_common_part=True)

    return keys


def _indentation(line: str) -> str:
    """How far the line after this one is set in."""
    indent = line[: len(line) - len(line.lstrip())]
    return indent + _INDENT if _OPENS.search(line) else indent


def _dedent(buffer: Buffer) -> None:
    """Move a line that closes a block back to where the block began."""
    document = buffer.document
    line, row = document.current_line, document.cursor_position_row
    if row == 0 or not _CLOSES.match(line):
        return
    wanted = len(_indentation(document.lines[row - 1])) - len(_INDENT)
    surplus = len(line) - len(line.lstrip()) - max(0, wanted)
    if surplus > 0:
        lines = [*document.lines[:row], line[surplus:], *document.lines[row + 1 :]]
        buffer.document = Document("\n".join(lines), document.cursor_position - surplus)


def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name

    from moonbox.languages.registry import language as language_named

    return PygmentsLexer(type(get_lexer_by_name(language_named(language).lexer)))


def _history(path: Path) -> History:
    """A file that only its owner can read; in memory where none can be had."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return FileHistory(path)
    return InMemoryHistory()
