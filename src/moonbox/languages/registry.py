"""The languages that scripts can be written in. A further one is one more folder and one more entry here."""

from __future__ import annotations

from types import MappingProxyType

from moonbox.errors import UsageError
from moonbox.languages.language import EngineError, Language
from moonbox.languages.lua.language import LUA
from moonbox.languages.python.language import PYTHON
from moonbox.languages.rhai.language import RHAI
from moonbox.suggest import nearest

__all__ = ["DEFAULT_LANGUAGE", "LANGUAGES", "EngineError", "Language", "language"]

LANGUAGES = MappingProxyType({each.name: each for each in (LUA, RHAI, PYTHON)})
DEFAULT_LANGUAGE = LUA.name
"""Of scripts that name no language; also that of tool scripts and of connectors that are scripts."""


def language(name: str = DEFAULT_LANGUAGE) -> Language:
    """The language of that name."""
    known = LANGUAGES.get(name) if isinstance(name, str) else None
    if known is not None:
        return known
    close = nearest(name, LANGUAGES) if isinstance(name, str) else []
    advice = f"did you mean '{close[0]}'?" if close else f"known languages: {', '.join(LANGUAGES)}"
    raise UsageError(f"unknown language {name!r}; {advice}")
