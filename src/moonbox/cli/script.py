"""Scripts on the command line: reading them from a file, standard input or text, running them, showing the result."""

from __future__ import annotations

import contextlib
import gc
import sys
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.cli.output import (
    is_terminal,
    print_error,
    print_json,
    print_note,
    report_error,
    save_media,
    show_error,
    show_output,
    show_tracebacks,
    show_values,
    summary,
)
from moonbox.cli.run_options import START_SECONDS, CommandRunOptions, default_trail, json_or_text, read_json
from moonbox.errors import MoonboxError, UsageError
from moonbox.languages.registry import LANGUAGES
from moonbox.languages.registry import language as language_named
from moonbox.suggest import suggestion
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from moonbox.audit.records import Run
    from moonbox.worker.sources import ProcessSource

INTERRUPTED = 130
_ROWS, _ITEMS = 500, 200


def run_alone(file: str | None, expression: str | None, workers: ProcessSource) -> int:
    """`moonbox run` with a script and no other option; its exit status."""
    try:
        options = CommandRunOptions(workers=workers)
        return run_script(read_script(file, expression, None, options), options, {})
    except MoonboxError as error:
        return report_error(error)


def run_script(
    script: Script,
    options: CommandRunOptions,
    inputs: Mapping[str, Any],
    *,
    as_json: bool = False,
    traceback: bool = False,
) -> int:
    """Run a script and show its result. Returns the exit status. `traceback`: also how the code of its tools failed."""
    live = _LiveOutput() if not as_json else None
    finished = _execute(script, options, inputs, live)
    if live is not None:
        live.end()
    if as_json:
        print_json(finished.to_dict())
    else:
        show_run(finished, script.name, trail=options.trail, printed=live is not None and live.used)
    if traceback:
        show_tracebacks(finished)
    save_media(finished)
    if finished.error is None:
        return 0
    return INTERRUPTED if finished.error.kind == "cancelled" else 1


class _LiveOutput:
    """Writes what the script prints to standard output while the script runs."""

    def __init__(self) -> None:
        self._stream, self._last = sys.stdout, ""

    @property
    def used(self) -> bool:
        return bool(self._last)

    def __call__(self, text: str) -> None:
        if text:
            self._last = text[-1]
            self._stream.write(visible(text) if self._stream.isatty() else text)
            self._stream.flush()

    def end(self) -> None:
        """End an incomplete line, so that later output starts on a new one."""
        if self._last not in ("", "\n"):
            self._stream.write("\n")


def _execute(script: Script, options: CommandRunOptions, inputs: Mapping[str, Any], live: _LiveOutput | None) -> Run:
    """Run a script. After Ctrl-C, the Run has what the script did until then."""
    from moonbox.cli.session import Session

    # Tools may print to stdout, which must have the script's own output only.
    with (
        contextlib.redirect_stdout(sys.stderr),
        Session(options, script.language, wait=START_SECONDS, sources=[script.text], on_output=live) as session,
    ):
        gc.freeze()  # the garbage collector can skip everything that is loaded now
        gc.enable()
        return session.run(script.text, inputs=inputs)


def show_run(run: Run, name: str | None = None, *, trail: str | None = None, printed: bool = False) -> None:
    """Show a run: output, values, error and a summary.

    `name`: the script's file. `trail`: where the run is recorded. `printed`: its output was shown while it ran.
    """
    if run.error is not None and run.error.kind == "cancelled" and not run.calls:
        print_note("")  # after the terminal's own ^C; with calls, the line of calls has removed it
    show_output(run, printed=printed)
    shortened = show_values(run, quote=False, rows=_ROWS, items=_ITEMS)
    sys.stdout.flush()
    if run.error is not None:
        if run.error.kind == "cancelled":
            print_error("interrupted" + (f" after {summary(run)}" if run.calls else ""))
        else:
            show_error(run.error, language=run.language, name=name)
    if not run.source.strip():
        print_note(f"{name or 'the script'} is empty")
    if shortened:
        print_note("shortened for the terminal; use a pipe or --json to see everything")
    if trail is not None:
        place = "" if trail == default_trail() else f" --db {quote(trail)}"
        print_note(f"{summary(run)} · moonbox audit show {run.id[:8]}{place}")
    elif run.calls and is_terminal() and run.ok:
        print_note(summary(run))


class Script(Struct, frozen=True):
    """A script to run."""

    text: str
    language: str
    name: str | None = None
    """The file's name, for messages."""


def read_script(file: str | None, expression: str | None, language: str | None, options: CommandRunOptions) -> Script:
    """The script that the arguments name. Raises UsageError if they do not name one.

    `options` say its language, where nothing else does.
    """
    if file is not None and expression is not None:
        raise UsageError(f"use either a file or -e, not both; to give the script a value: --set NAME={file}")
    if expression is not None:
        return Script(expression, _language(language, None, options))
    if file is None:
        raise UsageError("a script is required: a file, - for standard input, or -e SCRIPT")
    if file == "-":
        chosen = _language(language, None, options)
        return Script(_text(_read_stdin(), "standard input", chosen), chosen)
    from pathlib import Path

    path = Path(file)
    data = _read(path)  # read first: a missing file is a more important error than an unknown language
    chosen = _language(language, path, options)
    return Script(_text(data, f"'{file}'", chosen), chosen, file)


def script_text(path: Path) -> str:
    """The text of a file with a script of any language, as it is."""
    return _text(_read(path), f"'{path}'", None)


def read_inputs(pairs: Sequence[str], file: str | None) -> dict[str, Any]:
    """The globals that --input and --set describe; --set takes precedence."""
    inputs: dict[str, Any] = {}
    if file is not None:
        from pathlib import Path

        name = "standard input" if file == "-" else f"'{file}'"
        data = _read_stdin() if file == "-" else _read(Path(file), "file")
        try:
            given = read_json(data)
        except ValueError as problem:
            raise UsageError(f"--input: {name} is not valid JSON: {problem}") from None
        inputs = given if isinstance(given, dict) else {"input": given}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"--set must be NAME=VALUE, not '{pair}'")
        inputs[key] = json_or_text(text)
    return inputs


def _language(given: str | None, path: Path | None, options: CommandRunOptions) -> str:
    """The named language, or that of the file's suffix, or that of the project."""
    if given is not None:
        return language_named(given).name
    suffix = path.suffix.lower() if path is not None else ""
    if not suffix:
        return options.language
    for known in LANGUAGES.values():
        if suffix == known.suffix:
            return known.name
    suffixes = " or ".join(known.suffix for known in LANGUAGES.values())
    raise UsageError(f"'{path}' does not end in {suffixes}; name its language with --language")


def _read(path: Path, kind: str = "script") -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        others: list[str] = []
        with contextlib.suppress(OSError):  # there is no such folder, or it cannot be read
            others = [entry.name for entry in path.parent.iterdir()]
        raise UsageError(f"the file '{path}' does not exist{suggestion(path.name, others)}") from None
    except IsADirectoryError:
        raise UsageError(f"'{path}' is a folder, not a {kind}") from None
    except OSError as problem:
        raise UsageError(f"'{path}' cannot be read: {problem.strerror}") from None


def _read_stdin() -> bytes:
    try:
        if sys.stdin.isatty():
            print("Type a script; Ctrl-D runs it.", file=sys.stderr)
        return sys.stdin.buffer.read()
    except KeyboardInterrupt:
        print_note("")  # after the terminal's own ^C
        raise


def _text(data: bytes, name: str, language: str | None) -> str:
    if data.startswith(b"\x1bLua"):
        raise UsageError(f"{name} is compiled Lua; only source text can be run")
    if b"\0" in data:
        raise UsageError(f"{name} is a binary file, not a script (byte {data.index(0):,} is zero)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        byte = data[problem.start]
        raise UsageError(f"{name} is not UTF-8 (byte {problem.start:,} is 0x{byte:02x})") from None
    if language is not None and text.startswith("#!"):
        # The interpreter line becomes a comment, so that line numbers do not change.
        text = language_named(language).comment + text[2:]
    return text
