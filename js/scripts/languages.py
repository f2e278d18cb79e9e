"""The languages' Lua files and words, as one JSON text for the npm package; run by scripts/build.mjs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "src"))

from moonbox._version import __version__
from moonbox.languages.facts import FACTS
from moonbox.languages.lua.vocabulary import equivalents
from moonbox.languages.registry import DEFAULT_LANGUAGE, LANGUAGES
from moonbox.languages.rhai.vocabulary import rhai_words
from moonbox.limits import PRESETS, Limits
from moonbox.sandbox.docs import DISCOVERY_BUDGET
from moonbox.sandbox.environment import PROGRESS, SHOW
from moonbox.tools import facts, search
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


def main() -> None:
    prelude = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_PRELUDE.glob("*.lua"))}
    languages = {
        name: {
            "name": name,
            "texts": asdict(language.texts),
            "docs": dict(language.docs),
            "library_docs": dict(language.library_docs),
            "foreign": _foreign(language),
            "first_index": language.first_index,
            "features": sorted(language.features),
            "parameter_aliases": sorted(language.parameter_aliases),
            "runtime": None if language.runtime is None else language.runtime(),
        }
        for name, language in LANGUAGES.items()
    }
    bundle = {
        "version": __version__,
        "prelude": prelude,
        "languages": languages,
        "limits": {"default": Limits().to_dict(), **PRESETS},
        "discovery": DISCOVERY_BUDGET,
        "functions": {each.name: each.doc for each in (SHOW, PROGRESS)},
        "hints": {"messages": equivalents().messages, "absent": equivalents().absent, "loop": FACTS["loop"]},
        "facts": facts.PATTERNS,
        "paging": {"parameters": PARAMETERS, "only_with_limit": ONLY_WITH_LIMIT},
        "search": {"stop": sorted(search._STOP), "same": search._SAME, "endings": search._ENDINGS},
    }
    json.dump(bundle, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
