"""Reading a model's calls kindly: JSON text, a forgotten parameter name, a Markdown fence around the script."""

from __future__ import annotations

import json
from typing import Any

from moonbox.languages.registry import LANGUAGES

__all__ = ["parsed", "script_in", "short"]

_OTHER_NAMES = frozenset({"code", "source", "sourcecode", "script", "program", "input"}).union(
    *(each.parameter_aliases for each in LANGUAGES.values())
)
"""What models call the one parameter when they forget its name: a script is still a script."""


def parsed(arguments: Any) -> dict[str, Any] | None:
    """The arguments as a dict; text is read as JSON, as providers send it."""
    if arguments is None:
        return {}
    if isinstance(arguments, str | bytes | bytearray):
        if not arguments:
            return {}
        try:
            arguments = json.loads(arguments, strict=False)  # small models leave line breaks in strings as they are
        except (ValueError, RecursionError):
            return None
    return dict(arguments) if isinstance(arguments, dict) else None


def script_in(given: dict[str, Any], parameter: str) -> str | None:
    """The script in a call's arguments, if there is one."""
    source = given.get(parameter)
    if source is None and len(given) == 1 and str(next(iter(given))).lower() in _OTHER_NAMES:
        source = next(iter(given.values()))
    return _without_fence(source) if isinstance(source, str) else None


def short(value: Any) -> str:
    """A value for a message."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    except Exception:  # noqa: BLE001 - a number with thousands of digits, an object of the caller's own
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else text[:79] + "…"


def _without_fence(source: str) -> str:
    """The script without the Markdown fence that models sometimes put around it; line numbers stay."""
    text = source.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return "\n" + text[text.index("\n") + 1 : -3]
    return source
