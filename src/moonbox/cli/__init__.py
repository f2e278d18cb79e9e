"""The command line: `moonbox`."""

from __future__ import annotations

import errno
import os
import sys

__all__ = ["main"]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main() -> None:
    """Run the command that the arguments name, and exit with its status."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed before the start, as by `>&-` in a shell
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # characters that a terminal cannot show must not be errors
    status: object = 1
    try:
        status = _status()
        sys.stdout.flush()
    except OSError as problem:
        if problem.errno in _NO_ROOM and problem.filename is None:
            print(f"error: the output cannot be written: {problem.strerror}", file=sys.stderr)
        elif not isinstance(problem, BrokenPipeError):  # the reader of our output, such as `head`, has closed the pipe
            raise
        # Python would try to write the rest at exit, and report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:  # before a command started
        status = 130
    sys.exit(status)  # type: ignore[arg-type]  # the value that SystemExit carried is passed on as it was


def _script_alone() -> tuple[str | None, str | None] | None:
    """The file and the script of `moonbox run FILE` and `moonbox run -e SCRIPT`; None for every other command line.

    These two forms have no options, so they do not need the option parser, which is slow to load.
    """
    if os.environ.keys() & {"_MOONBOX_COMPLETE", "MOONBOX_AUDIT", "MOONBOX_JOURNAL"}:
        return None
    match sys.argv[1:]:
        case ["run", "-e" | "--expr", script]:
            return None, script
        case ["run", file] if not file.startswith("-") and os.path.isfile(file):  # noqa: PTH113 - pathlib is slow to import
            return file, None
    return None


def _run_alone(file: str | None, expression: str | None) -> int:
    import gc

    from moonbox.worker.sources import ProcessSource

    gc.disable()  # while modules are loaded there is no garbage to find
    workers = ProcessSource.started()  # starts to load in parallel with this process
    try:
        from moonbox.cli.script import run_alone

        return run_alone(file, expression, workers)
    finally:
        workers.close()


def _status() -> object:
    if sys.argv[1:] in (["--version"], ["-V"]):  # answered without loading anything
        from moonbox import __version__

        print(f"moonbox {__version__}")
        return 0
    alone = _script_alone()
    if alone is not None:
        return _run_alone(*alone)
    from moonbox.cli.app import app

    try:
        app(prog_name="moonbox")
    except SystemExit as exit:
        return exit.code
    return 0
