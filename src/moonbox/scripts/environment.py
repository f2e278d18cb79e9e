"""The environment of one script execution: its source text, and a Repl with the host functions that are granted."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from moonbox.errors import ToolDefinitionError
from moonbox.limits import Limits
from moonbox.scripts.hostapi.api import HostApi
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from moonbox.audit.records import Run
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.configured import ScriptSettings

__all__ = ["define_host_functions", "file_stamp", "read_source", "script_repl"]

_MOST_HOST_CALLS = 1000
_LARGEST_FILE = 1_000_000


def read_source(path: Path) -> str:
    """The text of a script file; ToolDefinitionError says why it cannot be used."""
    try:
        if not path.is_file() and path.exists():
            raise ToolDefinitionError(f"{path} is not a file")
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise ToolDefinitionError(f"{path} is larger than {_LARGEST_FILE:,} bytes")
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise ToolDefinitionError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise ToolDefinitionError(f"{path} is not UTF-8") from None
    except OSError as problem:
        raise ToolDefinitionError(f"{path} cannot be read: {problem.strerror or problem}") from None


def file_stamp(path: Path) -> tuple[int, int]:
    """What changes when the file does."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@contextmanager
def script_repl(
    sandbox: Sandbox,
    settings: ScriptSettings,
    *,
    section: str,
    make_api: Callable[..., HostApi] | None = None,
    before_write: Callable[[Run], Run] | None = None,
) -> Iterator[Repl]:
    """A fresh Repl for one execution of one script; the records of its runs contain no secrets.

    `before_write` may add to each record.
    """
    api = (make_api or HostApi)(settings.grants, name=settings.name, section=section)
    api.hide(settings.hidden)

    def finish(run: Run) -> Run:
        redacted = api.redact_run(run)
        return redacted if before_write is None else before_write(redacted)

    try:
        limits = Limits(timeout=settings.timeout, max_tool_calls=_MOST_HOST_CALLS)
        with sandbox.repl(limits=limits, toolbox=Toolbox(), before_write=finish, check=False) as repl:
            define_host_functions(repl, api)
            yield repl
    finally:
        api.close()


def define_host_functions(target: Repl | Sandbox, api: HostApi) -> None:
    """Define every host function: the granted ones, and the others, whose refusal names the grant to add."""
    for name, function in {**api.absent, **api.functions}.items():
        target.define(name, function, doc=function.doc)
