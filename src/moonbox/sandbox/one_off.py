"""One-off runs: `moonbox.run`."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.runs.options import RunOptions
from moonbox.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from moonbox.audit.records import Run


def run(source: str, tools: Any = (), **options: Any) -> Run:
    """Run one script; the options are those of `Repl.run` and of Sandbox.

    Without tools, and with no option of Sandbox but `language`, it runs in a Sandbox that the process keeps for that
    until it exits. Otherwise it has a Sandbox of its own, which ends with the run.
    """
    given: Any = {name: options.pop(name) for name in RunOptions.__annotations__ if name in options}
    if tools == () and options.keys() <= {"language"}:
        return _shared_sandbox(os.getpid(), options.get("language", DEFAULT_LANGUAGE)).run(source, **given)
    with Sandbox(tools, **{"min_workers": 0, **options}) as box:
        return box.run(source, **given)


@cache
def _shared_sandbox(pid: int, language: str) -> Sandbox:  # a fork of the process needs one of its own
    return Sandbox(language=language)
