"""The command line: `moonbox`."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name, and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # characters that a terminal cannot show must not be errors
    status: object = 1
    try:
        status = _status()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)  # type: ignore[arg-type]  # the value that SystemExit carried is passed on as it was


def _script_alone() -> str | None:
    """The script of `moonbox run -e SCRIPT`: without options, their parser, which is slow to load, is not needed."""
    if len(sys.argv) != 4 or os.environ.keys() & {"_MOONBOX_COMPLETE", "MOONBOX_AUDIT"}:
        return None
    _, command, option, script = sys.argv
    return script if command == "run" and option in ("-e", "--expr") else None


def _run_expression(script: str) -> int:
    import gc

    from moonbox.worker.sources import ProcessSource

    gc.disable()  # until everything is loaded, none of which is garbage
    source = ProcessSource.started()  # loads while this process does
    try:
        from moonbox.cli.script import run_expression

        return run_expression(script, source)
    finally:
        source.close()


def _status() -> object:
    if sys.argv[1:] in (["--version"], ["-V"]):  # answered without loading anything
        from moonbox import __version__

        print(f"moonbox {__version__}")
        return 0
    script = _script_alone()
    if script is not None:
        return _run_expression(script)
    from moonbox.cli.app import app

    try:
        app(prog_name="moonbox")
    except SystemExit as exit:
        return exit.code
    return 0
