"""The languages' Lua files and words, as one JSON text for the npm package; run by scripts/build.mjs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from msgspec import to_builtins

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "src"))

from moonbox._version import __version__
from moonbox.languages import tables
from moonbox.languages.registry import DEFAULT_LANGUAGE, LANGUAGES
from moonbox.languages.rhai.language import runtime_source
from moonbox.languages.tables import table
from moonbox.limits import PRESETS, Limits
from moonbox.runs.docs import DISCOVERY_BUDGET
from moonbox.runs.environment import PROGRESS, SHOW, SLEEP, SLEEP_UNTIL

TABLES = ("forms.toml", "lua/explain/equivalents.toml", "lua/explain/slips.toml", "rhai/vocabulary.toml")
_PRELUDE = Path(tables.__file__).parent / "lua" / "prelude"


def main() -> None:
    prelude = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_PRELUDE.glob("*.lua"))}
    languages = {
        name: {
            "name": name,
            "texts": to_builtins(language.texts),
            "docs": dict(language.docs),
            "library_docs": dict(language.library_docs),
            "first_index": language.first_index,
            "features": sorted(language.features),
            "parameter_aliases": sorted(language.parameter_aliases),
            "runtime": None if language.runtime is None else runtime_source("outline"),
        }
        for name, language in LANGUAGES.items()
        if language.engine == LANGUAGES[DEFAULT_LANGUAGE].engine  # Python has an engine of its own, which is not here
    }
    bundle = {
        "version": __version__,
        "prelude": prelude,
        "languages": languages,
        "limits": {"default": Limits().to_dict(), **PRESETS},
        "discovery": DISCOVERY_BUDGET,
        "functions": {each.name: each.doc for each in (SHOW, PROGRESS, SLEEP, SLEEP_UNTIL)},
        "tables": {path: table(path) for path in TABLES},
        "opened": LANGUAGES["lua"].features,
    }
    json.dump(bundle, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
