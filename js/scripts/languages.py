"""The languages' Lua files and words, as one JSON text for the npm package; run by scripts/build.mjs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import asdict

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "src"))

from moonbox._version import __version__
from moonbox.languages.facts import FACTS, LENGTHS
from moonbox.languages.language import RESERVED_WORDS
from moonbox.languages.lua.explain import slips
from moonbox.languages.lua.vocabulary import _BARE, BASE, LIBRARIES, equivalents, lua_vocabulary
from moonbox.languages.registry import DEFAULT_LANGUAGE, LANGUAGES
from moonbox.languages.rhai.vocabulary import rhai_words
from moonbox.limits import PRESETS, Limits
from moonbox.runs.docs import DISCOVERY_BUDGET
from moonbox.runs.environment import PROGRESS, SHOW
from moonbox.schema import facts
from moonbox.tools import search
from moonbox.tools.paging import ONLY_WITH_LIMIT, PARAMETERS

if TYPE_CHECKING:
    from moonbox.languages.language import Language

_PRELUDE = LANGUAGES[DEFAULT_LANGUAGE].folder / "prelude"


def _foreign(language: Language) -> dict[str, object] | None:
    """What other languages write, where the hints of a language that is compiled to Lua need it."""
    if language.name != "rhai":
        return None
    words = rhai_words()
    return {"functions": dict(words.foreign_functions), "methods": dict(words.foreign_methods)}


def _hints() -> dict[str, object]:
    """The tables that explain errors of Lua scripts."""
    table = slips._table()
    patterns = ("line", "text", "near", "failure")
    return {
        **equivalents()._asdict(),
        "messages": [(_pattern(pattern), hint) for pattern, hint in equivalents().messages],
        "rewrites": [(_pattern(pattern), new) for pattern, new in table.rewrites],
        "slips": [asdict(slip) | {name: _pattern(getattr(slip, name)) for name in patterns} for slip in table.slips],
        "facts": FACTS,
        "forms": dict(lua_vocabulary().forms),
        "lengths": sorted(LENGTHS),
        "reserved": sorted(RESERVED_WORDS),
        "base": sorted(BASE),
        "features": LANGUAGES["lua"].features,
        "libraries": {name: sorted(members) for name, members in LIBRARIES.items()},
        "bare": _BARE,
        "no_value": dict(lua_vocabulary().no_value),
    }


def _pattern(pattern: str) -> str:
    """A pattern of Python as JavaScript writes it: there a class that begins with a bracket needs it escaped."""
    return re.sub(r"(?<!\\)\[(\^?)\]", r"[\1\\]", pattern)


def main() -> None:
    prelude = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_PRELUDE.glob("*.lua"))}
    languages = {
        name: {
            "name": name,
            "texts": to_builtins(language.texts),
            "docs": dict(language.docs),
            "library_docs": dict(language.library_docs),
            "foreign": _foreign(language),
            "first_index": language.first_index,
            "features": sorted(language.features),
            "parameter_aliases": sorted(language.parameter_aliases),
            "runtime": None if language.runtime is None else language.runtime(),
        }
        for name, language in LANGUAGES.items()
        if not language.engine_checks  # Python has an engine of its own, which is not here
    }
    bundle = {
        "version": __version__,
        "prelude": prelude,
        "languages": languages,
        "limits": {"default": Limits().to_dict(), **PRESETS},
        "discovery": DISCOVERY_BUDGET,
        "functions": {each.name: each.doc for each in (SHOW, PROGRESS)},
        "hints": _hints(),
        "facts": facts.PATTERNS,
        "paging": {"parameters": PARAMETERS, "only_with_limit": ONLY_WITH_LIMIT},
        "search": {"stop": sorted(search._STOP), "same": search._SAME, "endings": search._ENDINGS},
    }
    json.dump(bundle, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
