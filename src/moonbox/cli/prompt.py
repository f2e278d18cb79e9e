"""The prompt: an editor for scripts with history, highlighting, several lines, and completion of names."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style

from moonbox.files import create_private_file
from moonbox.languages.registry import language as language_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from prompt_toolkit.buffer import Buffer

    from moonbox.sandbox.sandbox import Sandbox

_OPENS = re.compile(r"(\b(then|do|else|repeat)|\bfunction\b[^()]*\([^()]*\)|[{(\[])\s*$")
_CLOSES = re.compile(r"\s*(end\b|else\b|elseif\b|until\b|[})\]])")
_INDENT = "  "
_PATH = re.compile(r"[A-Za-z_][\w.]*:?\w*$", re.ASCII)
_DOCS_KEY = re.compile(r"""docs\[(["'])([^"']*)$""")
_COMMAND = re.compile(r":(\w*)$")
_COMMAND_ARGUMENT = re.compile(r":docs\s+(\S*)$")
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
    """The file of the history, in the same folder as the audit trail."""
    from moonbox.audit.sinks import default_path

    return default_path().with_name("repl_history")


def prompt(language: str, completer: Completer, is_complete: Callable[[str], bool]) -> PromptSession[str]:
    """Asks for one script after another. KeyboardInterrupt after Ctrl-C, EOFError after Ctrl-D."""
    from pygments.lexers import get_lexer_by_name

    return PromptSession(
        [("class:prompt", f"{language}> ")],
        # Blank for the rest of a long line that wraps.
        prompt_continuation=lambda width, _, wrapped: [
            ("class:continuation", " " * width if wrapped else "." * (width - 2) + "> ")
        ],
        multiline=True,
        key_bindings=_keys(is_complete),
        completer=completer,
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        history=_history(history_path()),
        lexer=PygmentsLexer(type(get_lexer_by_name(language_named(language).lexer))),
        style=_STYLE,
        include_default_pygments_style=False,
    )


def _keys(is_complete: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # Enter only accepts the completion
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
    """The indentation of the line after this one."""
    indent = line[: len(line) - len(line.lstrip())]
    return indent + _INDENT if _OPENS.search(line) else indent


def _dedent(buffer: Buffer) -> None:
    """Align a line that closes a block with the line that opened it."""
    document = buffer.document
    line, row = document.current_line, document.cursor_position_row
    if row == 0 or not _CLOSES.match(line):
        return
    wanted = len(_indentation(document.lines[row - 1])) - len(_INDENT)
    surplus = len(line) - len(line.lstrip()) - max(0, wanted)
    if surplus > 0:
        lines = [*document.lines[:row], line[surplus:], *document.lines[row + 1 :]]
        buffer.document = Document("\n".join(lines), document.cursor_position - surplus)


def _history(path: Path) -> History:
    """A history in a file that only its owner can read; in memory if the file cannot be used."""
    with contextlib.suppress(OSError):
        create_private_file(path)
        return FileHistory(path)
    return InMemoryHistory()


# Completion


def names_in(sandbox: Sandbox) -> dict[str, str]:
    """The whole path of each name that every script of this Sandbox finds, such as `math.max`, and what it is."""
    language = language_named(sandbox.language)
    paths = {name: text.partition("\n")[0] for name, text in language.docs.items()}
    if not language.tool_name("x").startswith("tools."):  # in Rhai it is documented, but it is not a variable
        paths.pop("tools", None)
    for table, members in language.libraries(sandbox.lua_features).items():
        paths |= {path: paths.get(path, "") for path in (f"{table}.{member}" for member in members)}
    for tool in sandbox.toolbox:
        if tool.policy != "direct":
            written = language.tool_name(sandbox.toolbox.alias(tool))
            paths[written] = tool.description.strip().partition("\n")[0]
    for path in tuple(paths):
        while path := path.rpartition(".")[0]:
            paths.setdefault(path, "")
    for name in language.features.keys() - sandbox.lua_features:
        for hidden in language.features[name]:
            paths.pop(hidden, None)
    return paths


class ScriptCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, sandbox: Sandbox, keywords: Iterable[str], commands: Mapping[str, str]) -> None:
        self._sandbox = sandbox
        self._keywords = dict.fromkeys(keywords, "")
        self._commands = commands
        self.look({})

    def look(self, defined: Mapping[str, str]) -> None:
        """Find the names again; `defined` are the globals of scripts, each with its type."""
        self._defined = defined
        self._paths = {**names_in(self._sandbox), **defined}
        self._documented = dict.fromkeys(self._sandbox.docs.names(), "")

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith(":"):
            return self._of_command(text)
        line = document.current_line_before_cursor
        key = _DOCS_KEY.search(line)
        if key is not None and "docs" in self._paths and "docs.get" not in self._paths:
            return _matching(self._documented, key[2], f"{key[1]}]")
        word = _PATH.search(line)
        return self._of_word(word[0]) if word is not None else ()

    def _of_command(self, text: str) -> Iterator[Completion]:
        command = _COMMAND.fullmatch(text)
        if command is not None:
            return _matching(self._commands, command[1])
        argument = _COMMAND_ARGUMENT.fullmatch(text)
        return _matching(self._documented, argument[1] if argument else "\0")

    def _of_word(self, word: str) -> Iterator[Completion]:
        value, colon, method = word.partition(":")
        if colon:  # only strings have methods
            may_be_string = self._defined.get(value) == "string" or value not in self._paths
            return _matching(self._members("string") if may_be_string else {}, method)
        table, _, beginning = word.rpartition(".")
        return _matching(self._members(table) if table else self._members("") | self._keywords, beginning)

    def _members(self, table: str) -> dict[str, str]:
        """What is in a table; the globals for an empty name."""
        parted = ((path.rpartition("."), about) for path, about in self._paths.items())
        return {name: about for (place, _, name), about in parted if place == table}


def _matching(offered: Mapping[str, str], beginning: str, ending: str = "") -> Iterator[Completion]:
    for name in sorted(offered):
        if name.startswith(beginning):
            yield Completion(name + ending, -len(beginning), display=name, display_meta=offered[name])
