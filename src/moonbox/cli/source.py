"""The script that a command was given: a file, standard input or text, and the language it is in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from moonbox.cli.screen import note
from moonbox.errors import UsageError
from moonbox.languages.registry import LANGUAGES
from moonbox.languages.registry import language as language_named
from moonbox.suggest import suggestion

__all__ = ["Script", "read_script"]


@dataclass(frozen=True, slots=True)
class Script:
    """What to run."""

    text: str
    language: str
    name: str | None = None
    """The file's name, for messages."""


def read_script(file: str | None, expression: str | None, language: str | None) -> Script:
    """The script that was asked for; UsageError in one line where there is none to be had."""
    if (file is None) == (expression is None):
        what = "both a file and -e were given: give one" if file else "give a file, - for standard input, or -e SCRIPT"
        raise UsageError(what)
    if expression is not None:
        return Script(expression, _language(language, None))
    assert file is not None
    if file == "-":
        chosen = _language(language, None)
        return Script(_text(_read_stdin(), "standard input", chosen), chosen)
    path = Path(file)
    data = _read(path)  # first of all: what is not there has no language either
    chosen = _language(language, path)
    return Script(_text(data, f"'{file}'", chosen), chosen, file)


def _language(given: str | None, path: Path | None) -> str:
    """The one that was named, or the one of the file's suffix, or the default."""
    if given is not None:
        return language_named(given).name
    suffix = path.suffix.lower() if path is not None else ""
    for known in LANGUAGES.values():
        if suffix in (known.suffix, ""):
            return known.name
    suffixes = " or ".join(known.suffix for known in LANGUAGES.values())
    raise UsageError(f"'{path}' does not end in {suffixes}; say what it is with --language")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        near = suggestion(path.name, [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else [])
        raise UsageError(f"there is no file '{path}'{near}") from None
    except IsADirectoryError:
        raise UsageError(f"'{path}' is a folder, not a script") from None
    except OSError as problem:
        raise UsageError(f"'{path}' cannot be read: {problem.strerror}") from None


def _read_stdin() -> bytes:
    if sys.stdin.isatty():
        print("Type a script; Ctrl-D runs it.", file=sys.stderr)
    try:
        return sys.stdin.buffer.read()
    except KeyboardInterrupt:
        note("")  # after the terminal's own ^C
        raise


def _text(data: bytes, name: str, language: str) -> str:
    if data.startswith(b"\x1bLua"):
        raise UsageError(f"{name} is compiled Lua; only source text can be run")
    if b"\0" in data:
        raise UsageError(f"{name} is binary, not a script: byte {data.index(0):,} is zero")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        byte = data[problem.start]
        raise UsageError(f"{name} is not UTF-8 text: byte {problem.start:,} is 0x{byte:02x}") from None
    if text.startswith("#!"):  # the line that names an interpreter becomes a comment: line numbers stay
        text = language_named(language).comment + text[2:]
    return text
