"""Errors that teach: what the engine reports of a failed run, in words for the model that must mend its script."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moonbox.errors import ScriptError
    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

__all__ = ["explain"]


def explain(
    error: EngineError,
    *,
    sources: Mapping[str, str],
    tools: Collection[str],
    limits: Limits,
    chunk: str | None = None,
) -> ScriptError:
    """Say what went wrong, where, and what to write instead.

    `sources` maps the chunks of a Repl's runs (`script`, `script#2`, …) to their text, as far as they are kept; the run
    that failed is `chunk`, or the last of them. `tools` are the paths of the tools that the script can call.
    """
    from moonbox.languages.lua.explain.compose import bare, compose

    try:
        return compose(error, sources=sources, tools=tools, limits=limits, chunk=chunk)
    except Exception:  # noqa: BLE001 - a flaw in a hint must never cost the error that it is about
        return bare(error)
