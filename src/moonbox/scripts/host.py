"""A script's surroundings: a Repl with the host functions that its grants allow."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moonbox.limits import Limits
from moonbox.scripts.hostapi.api import HostApi
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.configured import ScriptSettings

__all__ = ["furnished", "offer"]

_MOST_HOST_CALLS = 1000


@contextmanager
def furnished(
    sandbox: Sandbox, settings: ScriptSettings, *, section: str, make_api: Callable[..., HostApi] | None = None
) -> Iterator[Repl]:
    """A fresh Repl for one execution of one script; what it knows of secrets never leaves it."""
    api = (make_api or HostApi)(settings.grants, name=settings.name, section=section)
    try:
        limits = Limits(timeout=settings.timeout, max_tool_calls=_MOST_HOST_CALLS)
        with sandbox.repl(limits=limits, toolbox=Toolbox(), before_write=api.scrub_run) as repl:
            offer(repl, api)
            yield repl
    finally:
        api.close()


def offer(target: Repl | Sandbox, api: HostApi) -> None:
    """Give scripts the host functions that were granted, and of the others the words that say what to grant."""
    functions: Mapping[str, Any] = {**api.absent, **api.functions}
    for name, function in functions.items():
        target.define(name, function, doc=function.doc)
